//! The tables `[servers.NAME]`: where tools outside are to be had.
//!
//! Naming a server makes its tools known and gives nobody a way to it: that is
//! a grant (`net.connect` on its host and port) or a yes. Both files may name
//! servers; of two with the same name the administrator's counts.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

use crate::{
    mcp::component,
    model::{
        ModelError,
        key::{KeyPlaces, Surroundings},
    },
    runtime::{ExternalServer, Key, Program, Web},
};

/// How a server is declared, for whoever asks the program.
pub const HELP: &str = r#"A server is declared in the configuration file (`hermitcrab config path`):

  [servers.files]
  command = ["npx", "-y", "some-server", "/srv"]  # started for each call, in the sandbox
  env = { LANG = "C.UTF-8" }

  [servers.search]
  url = "https://example.com/mcp"  # or host = "127.0.0.1" and port = 7000, one message a line
  key_env = "SEARCH_KEY"           # or key_file, or key_keyring
  tools = ["web_search"]           # called by its own name, not mcp__search__web_search
  only = ["web_search", "fetch"]   # the tools that are taken; all if it is not said
  except = ["delete"]              # of those the ones that are not
  resources = false                # whether what it has to read is offered; true if it is not said
  prompts = false                  # the same of its prompts
  keep = "received"                # where its pictures and documents are kept; ~/.hermes/cache
  timeout_seconds = 60             # how long a call may take; 300
  listing = "b2f7…"                # its tools as you have read them: `hermitcrab servers search`

Declaring one lets nobody reach it: that takes a grant (`net.connect=example.com:443`; for a
program `proc.exec` and what it is to do) or a yes. What it sends that is no text is kept
where `fs.create` is held, after a question."#;

/// All of them, by name.
pub type ServersWords = BTreeMap<String, ServerWords>;

/// One server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerWords {
    /// Its address or name, if it speaks over a bare connection.
    #[serde(default)]
    pub host: Option<String>,
    /// Its port there.
    #[serde(default)]
    pub port: Option<u16>,
    /// Its address, if it speaks HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// The program and its arguments, if it speaks over its input and output.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Variables such a program is given besides the session's own.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The variable of the environment that holds the key for it.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<String>,
    /// Its name in the keyring of the desktop, below `service hermitcrab`.
    #[serde(default)]
    pub key_keyring: Option<String>,
    /// Tools that go by their own names, such as `web_search`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The tools that are taken; all if it is not said.
    #[serde(default)]
    pub only: Vec<String>,
    /// The tools that are not taken.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether its resources are offered, if it has any; so if it is not said.
    #[serde(default)]
    pub resources: Option<bool>,
    /// Whether its prompts are; so if it is not said.
    #[serde(default)]
    pub prompts: Option<bool>,
    /// The directory for what it sends that is no text; the cache of the compared agent
    /// if it is not said.
    #[serde(default)]
    pub keep: Option<String>,
    /// How long a call may take.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// The digest of what it says about its tools, once that was read.
    #[serde(default)]
    pub listing: Option<String>,
}

impl ServerWords {
    fn server(&self, name: &str) -> Result<ExternalServer, String> {
        let usual = match (&self.url, &self.host, self.port, &self.command) {
            (Some(url), None, None, None) => {
                ExternalServer::at_url(name, url).map_err(|denial| denial.to_string())?
            }
            (None, Some(host), Some(port), None) => ExternalServer::at(name, host, port),
            (None, None, None, Some(argv)) => {
                let program = Program {
                    argv: argv.clone(),
                    env: self.env.clone().into_iter().collect(),
                };
                ExternalServer::started(name, program)
            }
            _ => {
                return Err(
                    "a server has a `url`, a `host` and a `port`, or a `command`".to_owned(),
                );
            }
        };
        if usual.program.is_none() && !self.env.is_empty() {
            return Err("variables in `env` go with a `command` only".to_owned());
        }
        Ok(ExternalServer {
            tools: self.tools.clone(),
            only: self.only.clone(),
            except: self.except.clone(),
            resources: self.resources.unwrap_or(usual.resources),
            prompts: self.prompts.unwrap_or(usual.prompts),
            keep: self.keep.clone().unwrap_or(usual.keep),
            call_time: self
                .timeout_seconds
                .map_or(usual.call_time, Duration::from_secs),
            listing: self.listing.clone(),
            ..usual
        })
    }

    fn key_places(&self) -> KeyPlaces<'_> {
        KeyPlaces {
            env: self.key_env.as_deref(),
            file: self.key_file.as_deref(),
            keyring: self.key_keyring.as_deref(),
        }
    }

    fn check(&self, name: &str) -> Result<(), String> {
        self.key_places().check()?;
        let server = self.server(name)?;
        if server.web.is_none() && self.has_key() {
            return Err("a key goes with a `url` only".to_owned());
        }
        server.check().map_err(|denial| denial.to_string())
    }

    const fn has_key(&self) -> bool {
        self.key_env.is_some() || self.key_file.is_some() || self.key_keyring.is_some()
    }

    /// The server with its key, as it can be called.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn open(&self, name: &str, around: &Surroundings<'_>) -> Result<ExternalServer, String> {
        let key = self.key_places().key(around).map_err(|error| match error {
            // A server's key is read as a model's is, and is none.
            ModelError::Address(why) => why,
            error => error.to_string(),
        })?;
        let key = key.as_deref().map(Key::new).transpose();
        let key = key.map_err(|denial| denial.to_string())?;
        let mut server = self.server(name)?;
        server.web = server.web.map(|web| Web { key, ..web });
        server.check().map_err(|denial| denial.to_string())?;
        Ok(server)
    }
}

/// What is wrong with one of them, in words.
///
/// # Errors
/// The words.
pub fn check(servers: &ServersWords) -> Result<(), String> {
    for (name, words) in servers {
        words
            .check(name)
            .map_err(|why| format!("servers.{}: {why}", name.escape_debug()))?;
    }
    Ok(())
}

/// Those of both files, by name.
pub fn both<'w>(
    user: &'w ServersWords,
    administrator: &'w ServersWords,
) -> impl Iterator<Item = (&'w str, &'w ServerWords)> {
    // Tools are called by a name in which `-` and `_` are one letter.
    let users = user.iter().filter(|(name, _)| {
        let called = component(name);
        !administrator.keys().any(|known| component(known) == called)
    });
    administrator
        .iter()
        .chain(users)
        .map(|(name, words)| (name.as_str(), words))
}

#[cfg(test)]
mod tests {
    use super::{ServersWords, Surroundings, both, check};

    fn words(text: &str) -> ServersWords {
        toml::from_str(text).expect("servers")
    }

    #[test]
    fn help_names_each_key_and_is_a_configuration_itself() {
        let error = toml::from_str::<super::ServerWords>("no-such-key = 1").expect_err("a key");
        let keys: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
        assert_eq!(keys.len(), 16, "{error}");
        for key in keys {
            assert!(super::HELP.contains(key), "{key}");
        }
        let lines = super::HELP.lines();
        let example: Vec<&str> = lines.filter(|line| line.starts_with("  ")).collect();
        let example: toml::Table = toml::from_str(&example.join("\n")).expect("an example");
        let servers = example["servers"].clone().try_into().expect("servers");
        assert_eq!(check(&servers), Ok(()));
    }

    #[test]
    fn of_two_servers_of_one_name_the_administrators_counts() {
        let user = words("[a]\nhost = \"h\"\nport = 1\n[b]\nhost = \"h\"\nport = 2\n");
        let administrator = words("[a]\nhost = \"h\"\nport = 3\ntimeout_seconds = 9\n");
        let found: Vec<(&str, Option<u16>)> = both(&user, &administrator)
            .map(|(name, words)| (name, words.port))
            .collect();
        assert_eq!(found, [("a", Some(3)), ("b", Some(2))]);
        // Of two whose tools would be called the same, too.
        let user = words("[my_mail]\nhost = \"h\"\nport = 1\n");
        let administrator = words("[my-mail]\nhost = \"h\"\nport = 3\n");
        let found: Vec<&str> = both(&user, &administrator).map(|(name, _)| name).collect();
        assert_eq!(found, ["my-mail"]);
    }

    #[test]
    fn a_server_is_opened_with_its_key_and_not_without() {
        let found = words(
            "[a]\nurl = \"https://h.example/mcp\"\nkey_env = \"K\"\ntimeout_seconds = 9\n[b]\nurl = \"http://h.example\"\nkey_env = \"K\"\n",
        );
        let open = |name: &str, key: Option<&str>| {
            let around = Surroundings {
                variable: &|_| key.map(str::to_owned),
                home: std::path::Path::new("/"),
                dir: std::path::Path::new("/"),
            };
            found.get(name).expect("a server").open(name, &around)
        };
        let server = open("a", Some("secret")).expect("a server");
        assert_eq!(
            (server.place(), server.port),
            ("https://h.example/mcp".to_owned(), 443)
        );
        assert_eq!(server.call_time.as_secs(), 9);
        assert!(server.web.is_some_and(|web| web.key.is_some()));
        assert!(open("a", None).expect_err("no key").contains("`K`"));
        assert!(open("a", Some("two words")).is_err());
        assert!(
            open("b", Some("secret"))
                .expect_err("unsealed")
                .contains("https")
        );
    }

    #[test]
    fn what_is_no_server_is_named() {
        for (text, why) in [
            ("[A]\nhost = \"h\"\nport = 1\n", "small letters"),
            ("[a]\nhost = \"\"\nport = 1\n", "servers.a"),
            (
                "[a]\nhost = \"h\"\nport = 1\ntimeout_seconds = 0\n",
                "1 to 3600",
            ),
            (
                "[a]\nhost = \"h\"\nport = 1\ntools = [\"terminal\"]\n",
                "own name",
            ),
            ("[a]\nhost = \"h\"\n", "a `url`"),
            (
                "[a]\nhost = \"h\"\nport = 1\nurl = \"http://h\"\n",
                "a `url`",
            ),
            ("[a]\nhost = \"h\"\nport = 1\nkeep = \"\"\n", "no directory"),
            ("[a]\ncommand = []\n", "names no program"),
            ("[a]\ncommand = [\"s\"]\nhost = \"h\"\n", "a `url`"),
            ("[a]\ncommand = [\"s\"]\nkey_env = \"K\"\n", "`url` only"),
            (
                "[a]\nhost = \"h\"\nport = 1\nenv = { A = \"b\" }\n",
                "`command` only",
            ),
            (
                "[a]\ncommand = [\"s\"]\nenv = { \"A=\" = \"b\" }\n",
                "variable",
            ),
            ("[a]\nurl = \"ftp://h\"\n", "http://"),
            (
                "[a]\nhost = \"h\"\nport = 1\nkey_env = \"K\"\n",
                "`url` only",
            ),
            (
                "[a]\nurl = \"https://h\"\nkey_env = \"K\"\nkey_file = \"f\"\n",
                "not from more",
            ),
        ] {
            let found = check(&words(text)).expect_err(text);
            assert!(found.contains(why), "{found}");
        }
        assert_eq!(check(&words("[a]\nhost = \"h\"\nport = 1\n")), Ok(()));
    }
}

//! The tables `[servers.NAME]`: where tools outside are to be had.
//!
//! Naming a server makes its tools known and gives nobody a way to it: that is
//! a grant (`net.connect` on its host and port) or a yes. Both files may name
//! servers; of two with the same name the administrator's counts.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

use crate::runtime::ExternalServer;

/// All of them, by name.
pub type ServersWords = BTreeMap<String, ServerWords>;

/// One server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerWords {
    /// Its address or name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Tools that go by their own names, such as `web_search`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The tools that are taken; all if it is not said.
    #[serde(default)]
    pub only: Vec<String>,
    /// How long a call may take.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// The digest of what it says about its tools, once that was read.
    #[serde(default)]
    pub listing: Option<String>,
}

impl ServerWords {
    fn server(&self, name: &str) -> ExternalServer {
        let usual = ExternalServer::at(name, &self.host, self.port);
        ExternalServer {
            tools: self.tools.clone(),
            only: self.only.clone(),
            call_time: self
                .timeout_seconds
                .map_or(usual.call_time, Duration::from_secs),
            listing: self.listing.clone(),
            ..usual
        }
    }
}

/// What is wrong with one of them, in words.
///
/// # Errors
/// The words.
pub fn check(servers: &ServersWords) -> Result<(), String> {
    for (name, words) in servers {
        words
            .server(name)
            .check()
            .map_err(|denial| format!("servers.{}: {denial}", name.escape_debug()))?;
    }
    Ok(())
}

/// Those of both files.
#[must_use]
pub fn both(user: &ServersWords, administrator: &ServersWords) -> Vec<ExternalServer> {
    let users = user
        .iter()
        .filter(|(name, _)| !administrator.contains_key(*name));
    administrator
        .iter()
        .chain(users)
        .map(|(name, words)| words.server(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ServersWords, both, check};

    fn words(text: &str) -> ServersWords {
        toml::from_str(text).expect("servers")
    }

    #[test]
    fn of_two_servers_of_one_name_the_administrators_counts() {
        let user = words("[a]\nhost = \"h\"\nport = 1\n[b]\nhost = \"h\"\nport = 2\n");
        let administrator = words("[a]\nhost = \"h\"\nport = 3\ntimeout_seconds = 9\n");
        let servers = both(&user, &administrator);
        let found: Vec<(&str, u16, u64)> = servers
            .iter()
            .map(|server| {
                (
                    server.name.as_str(),
                    server.port,
                    server.call_time.as_secs(),
                )
            })
            .collect();
        assert_eq!(found, [("a", 3, 9), ("b", 2, 300)]);
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
        ] {
            let found = check(&words(text)).expect_err(text);
            assert!(found.contains(why), "{found}");
        }
        assert_eq!(check(&words("[a]\nhost = \"h\"\nport = 1\n")), Ok(()));
    }
}

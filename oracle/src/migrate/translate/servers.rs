//! `mcp_servers`: tables `[servers.NAME]` that could be taken over as they are.
//!
//! What has a place here is put there, what has none is named with the reason,
//! so that nothing a user told Hermes about a server is lost without a word.

use serde::{Deserialize, Serialize};

use super::super::redact;
use super::super::settings::{Server, ServerAt};
use super::Proposal;

/// The longest a call may take here.
const CALL_SECONDS_MAX: u64 = 3600;

/// One table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProposedServer {
    /// Its name here.
    pub name: String,
    /// Its address, if it has one.
    pub url: Option<String>,
    /// What starts it, if anything does.
    pub command: Vec<String>,
    /// Variables it is started with.
    pub env: Vec<(String, String)>,
    /// The variable that holds the key for it.
    pub key_env: Option<String>,
    /// The tools that are taken; all if there are none.
    pub only: Vec<String>,
    /// The tools that are not.
    pub except: Vec<String>,
    /// Whether its resources are wanted.
    pub resources: bool,
    /// Whether its prompts are.
    pub prompts: bool,
    /// How long a call may take, if that is said.
    pub timeout_seconds: Option<u64>,
}

/// Letters of a name that are looked at; here one may have 64, and a figure may follow.
const NAME_LETTERS_MAX: usize = 48;

/// Keys that have no place here, and why.
const NOWHERE: [(&str, &str); 11] = [
    (
        "connect_timeout",
        "the time of a call counts from the connection on",
    ),
    (
        "transport",
        "addresses are spoken to as streamable HTTP and in no other way",
    ),
    (
        "auth",
        "nobody is led through a login; a key is sent, if one is named",
    ),
    (
        "oauth",
        "nobody is led through a login; a key is sent, if one is named",
    ),
    ("ssl_verify", "certificates are always checked"),
    ("client_cert", "no certificate of its own is shown"),
    ("client_key", "no certificate of its own is shown"),
    ("sampling", "no server has a model asked"),
    (
        "elicitation",
        "where you are there, any server may ask you, in words headed as its own, and gets what you type; where you are not, it is declined",
    ),
    ("skip_preflight", "nothing is tried beforehand"),
    (
        "supports_parallel_tool_calls",
        "calls of one server come one after another",
    ),
];
/// Keys about how long a server lives.
const LIFE: [&str; 4] = [
    "keepalive_interval",
    "idle_timeout_seconds",
    "max_lifetime_seconds",
    "lifecycle",
];

/// The servers, where the denials of these names keep every peer away.
pub(super) fn proposals(servers: &[Server], closed: &[String]) -> Vec<Proposal> {
    let mut taken: Vec<String> = Vec::new();
    servers
        .iter()
        .map(|server| {
            let name = name_here(&server.name, &taken);
            taken.push(name.clone());
            let mut proposal = proposal(server, name);
            if proposal
                .server
                .as_ref()
                .is_some_and(|table| table.url.is_some())
            {
                shut(&mut proposal, closed);
            }
            proposal
        })
        .collect()
}

/// A peer is granted in vain while a rule denies all of them.
fn shut(proposal: &mut Proposal, closed: &[String]) {
    if closed.is_empty() {
        return;
    }
    let rules = closed.iter().map(|id| format!("`{id}`"));
    let rules = rules.collect::<Vec<_>>().join(", ");
    proposal.here.push_str(&format!(
        "; it is not reached, whatever is granted, while a rule denies every peer ({rules})"
    ));
    proposal.confirm = format!(
        "whether this server matters more than what denies every peer ({rules}): then take that out; and {}",
        proposal.confirm
    );
}

fn proposal(server: &Server, name: String) -> Proposal {
    let (said, here, confirm) = match &server.at {
        ServerAt::Program(words) => (
            words.join(" "),
            "`[servers.NAME] command = [...]`: started in the sandbox for each call, with the directories and the network the agent holds and nothing else; what it answers counts as foreign",
            "which directories the server has to see, whether it keeps anything between calls, and which of its tools are needed",
        ),
        ServerAt::Url(url) => (
            url.clone(),
            "a network peer: it is reached when `net.connect` on it is granted, and what it answers counts as foreign",
            "whether to grant the peer, and for how long",
        ),
        ServerAt::Unknown => (
            "neither a command nor an address".to_owned(),
            "nothing: it says nothing",
            "",
        ),
    };
    let mut proposal = Proposal {
        id: format!("mcp-{}", server.name),
        from: format!("mcp_servers.{}", server.name),
        said,
        in_hermes: match &server.at {
            ServerAt::Url(_) => "its tools are offered to the model in every session, and every call goes there unasked",
            ServerAt::Program(_) | ServerAt::Unknown => "its tools are offered to the model in every session, and its program has all of your rights",
        }
        .to_owned(),
        here: here.to_owned(),
        confirm: confirm.to_owned(),
        ..Proposal::default()
    };
    if server.at == ServerAt::Unknown {
        return proposal;
    }
    if server.is_off {
        "nothing: it is switched off".clone_into(&mut proposal.in_hermes);
        "nothing: whoever wants it names it in `[servers.NAME]`".clone_into(&mut proposal.here);
        proposal.confirm.clear();
        return proposal;
    }
    let table = table(server, name);
    for one in told(server, &table) {
        proposal.here.push_str("; ");
        proposal.here.push_str(&one);
    }
    proposal.server = Some(table);
    proposal
}

fn table(server: &Server, name: String) -> ProposedServer {
    let (url, command) = match &server.at {
        ServerAt::Url(url) => (Some(url.clone()), Vec::new()),
        ServerAt::Program(words) => (None, words.clone()),
        ServerAt::Unknown => (None, Vec::new()),
    };
    // A program has no headers, and an address no environment.
    let key_env = url.is_some().then(|| key_variable(server)).flatten();
    ProposedServer {
        name,
        env: match url.is_some() {
            true => Vec::new(),
            // Of a short value nobody could tell whether it is a secret.
            false => server
                .env
                .iter()
                .map(|(name, value)| match variable(value) {
                    Some(_) => (name.clone(), value.clone()),
                    None => (name.clone(), redact::MARK.to_owned()),
                })
                .collect(),
        },
        url,
        command,
        key_env,
        only: server.include.clone(),
        // What is included decides alone, under Hermes.
        except: match server.include.is_empty() {
            true => server.exclude.clone(),
            false => Vec::new(),
        },
        resources: server.resources.unwrap_or(true),
        prompts: server.prompts.unwrap_or(true),
        timeout_seconds: server
            .timeout_seconds
            .map(|seconds| seconds.clamp(1, CALL_SECONDS_MAX)),
    }
}

/// What becomes of each key, in the order a reader looks for them.
fn told(server: &Server, table: &ProposedServer) -> Vec<String> {
    let mut all = Vec::new();
    if table.name != server.name {
        all.push(format!(
            "it is called `{}`, since names are small letters, digits and single `-` or `_`",
            table.name
        ));
    }
    if !server.include.is_empty() {
        all.push("`tools.include` is `only`".to_owned());
        if !server.exclude.is_empty() {
            all.push("`tools.exclude` counts for nothing beside it, there and here".to_owned());
        }
    } else if !server.exclude.is_empty() {
        all.push("`tools.exclude` is `except`".to_owned());
    }
    for (key, stated, what) in [
        ("resources", server.resources, "resources"),
        ("prompts", server.prompts, "prompts"),
    ] {
        match stated {
            None => {}
            Some(true) => all.push(format!(
                "`tools.{key}`: its {what}, if it has any, are offered as there"
            )),
            Some(false) => all.push(format!("`tools.{key}` is `{key} = false`")),
        }
    }
    if server.timeout_seconds.is_some() {
        all.push(match table.timeout_seconds == server.timeout_seconds {
            true => "`timeout` is `timeout_seconds`".to_owned(),
            false => {
                format!("`timeout` is `timeout_seconds`, which is {CALL_SECONDS_MAX} at the most")
            }
        });
    }
    if table.command.is_empty() && !server.env.is_empty() {
        all.push("`env` goes with a command only".to_owned());
    } else if !server.env.is_empty() {
        all.push(
            "`env` is `env`; its values are in no output of this, so they have to be put in"
                .to_owned(),
        );
    }
    for (header, _) in &server.headers {
        let is_key = header.eq_ignore_ascii_case("authorization") && table.url.is_some();
        all.push(match (&table.key_env, is_key) {
            (Some(variable), true) => format!(
                "the key of `headers.{header}` is taken from the variable {variable} of the agent's own environment (`key_env`); `~/.hermes/.env` is not read"
            ),
            (None, true) => format!(
                "the key of `headers.{header}` is named by `key_env`, `key_file` or `key_keyring`, and sent as a bearer token"
            ),
            (_, false) => format!("`headers.{header}` is not sent"),
        });
    }
    for (key, _) in &server.others {
        let why = NOWHERE.iter().find(|(known, _)| known == key);
        all.push(match why {
            Some((_, why)) => format!("`{key}` has no place: {why}"),
            None if LIFE.contains(&key.as_str()) => {
                format!("`{key}` has no place: a server lives for one call")
            }
            None => format!("`{key}` is left out, and nothing is known of it"),
        });
    }
    all
}

/// The variable a header takes its bearer token from, if that is all there is in it.
fn key_variable(server: &Server) -> Option<String> {
    let (_, value) = server
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
    variable(value.trim().strip_prefix("Bearer ")?).map(str::to_owned)
}

/// The name of the variable, if a value is nothing but `${NAME}`.
fn variable(value: &str) -> Option<&str> {
    let name = value.trim().strip_prefix("${")?.strip_suffix('}')?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// A name as one is written here, and not one of those before it.
fn name_here(name: &str, taken: &[String]) -> String {
    let mut plain = String::new();
    let mut between = None;
    for letter in name.chars().take(NAME_LETTERS_MAX) {
        if !letter.is_ascii_alphanumeric() {
            between = between.or(Some(if letter == '_' { '_' } else { '-' }));
            continue;
        }
        match between.take() {
            Some(sign) if !plain.is_empty() => plain.push(sign),
            Some(_) | None => {}
        }
        plain.push(letter.to_ascii_lowercase());
    }
    if plain.is_empty() {
        plain.push_str("server");
    }
    let names = (1_usize..).map(|count| match count {
        1 => plain.clone(),
        more => format!("{plain}-{more}"),
    });
    // In the name of a tool `-` and `_` are one letter.
    let alike = |name: &String| name.replace('-', "_");
    let mut free = names.filter(|name| taken.iter().all(|known| alike(known) != alike(name)));
    free.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Proposal;
    use super::{ProposedServer, Server, name_here, proposals, redact};

    fn one(words: &Value) -> Proposal {
        proposals(&[Server::read("Far Away", words)], &[]).remove(0)
    }

    #[test]
    fn what_has_a_place_is_put_there() {
        let proposal = one(&json!({
            "url": "https://x.example/mcp",
            "headers": {"Authorization": "Bearer ${FAR_KEY}", "X-Team": "blue"},
            "timeout": 9000,
            "tools": {"exclude": ["drop"], "resources": false},
        }));
        assert_eq!(
            proposal.server,
            Some(ProposedServer {
                name: "far-away".to_owned(),
                url: Some("https://x.example/mcp".to_owned()),
                key_env: Some("FAR_KEY".to_owned()),
                except: vec!["drop".to_owned()],
                prompts: true,
                timeout_seconds: Some(3600),
                ..ProposedServer::default()
            })
        );
        for told in [
            "called `far-away`",
            "`tools.exclude` is `except`",
            "`tools.resources` is `resources = false`",
            "3600 at the most",
            "FAR_KEY",
            "`headers.X-Team` is not sent",
        ] {
            assert!(proposal.here.contains(told), "{told}: {}", proposal.here);
        }
        assert!(
            !proposal.here.contains("tools.prompts"),
            "{}",
            proposal.here
        );
    }

    #[test]
    fn what_has_no_place_is_named_and_what_is_included_decides_alone() {
        let proposal = one(&json!({
            "command": "serve", "env": {"A": "b", "C": "${D}"}, "sampling": {"enabled": true}, "mood": 1,
            "idle_timeout_seconds": 5, "tools": {"include": ["get"], "exclude": ["get"], "prompts": true},
        }));
        let server = proposal.server.expect("a server");
        assert_eq!(
            (server.only, server.except.len()),
            (vec!["get".to_owned()], 0)
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(server.env, [pair("A", redact::MARK), pair("C", "${D}")]);
        for told in [
            "no server has a model asked",
            "`mood` is left out",
            "lives for one call",
            "counts for nothing beside it",
            "its prompts, if it has any, are offered as there",
        ] {
            assert!(proposal.here.contains(told), "{told}: {}", proposal.here);
        }
    }

    #[test]
    fn a_server_that_is_off_or_nowhere_is_not_proposed() {
        for words in [
            json!({"command": "serve", "enabled": "no"}),
            json!({"tools": {}}),
        ] {
            let proposal = one(&words);
            assert_eq!((proposal.server, proposal.confirm.as_str()), (None, ""));
        }
    }

    #[test]
    fn names_are_made_right_and_stay_apart() {
        let mut taken = Vec::new();
        for (name, expected) in [
            ("my-files_2", "my-files_2"),
            ("My Files (2)", "my-files-2-2"),
            ("__a-_b__", "a-b"),
            ("\u{e9}", "server"),
            ("\u{4e2d}", "server-2"),
        ] {
            let made = name_here(name, &taken);
            assert_eq!(made, expected, "{name}");
            taken.push(made);
        }
    }

    #[test]
    fn a_rule_against_every_peer_is_told_where_a_server_is_one() {
        let servers = [
            Server::read("far", &json!({"url": "https://x.example/mcp"})),
            Server::read("near", &json!({"command": "serve"})),
        ];
        let closed = ["deny-1".to_owned(), "deny-3".to_owned()];
        let made = super::proposals(&servers, &closed);
        assert!(
            made[0].here.contains("not reached, whatever is granted"),
            "{made:?}"
        );
        assert!(made[0].confirm.contains("(`deny-1`, `deny-3`)"), "{made:?}");
        assert!(!made[1].here.contains("deny-1"), "{made:?}");
        let open = super::proposals(&servers, &[]);
        assert!(!open[0].here.contains("whatever is granted"), "{open:?}");
    }
}

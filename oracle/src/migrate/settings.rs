//! What a home's configuration says that has to do with authority.

mod model;
mod servers;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::model::Model;
pub use self::servers::{Server, ServerAt};
use super::{note::Note, redact::is_secret_name};

/// Sections whose every value is shown in the plan.
const SECTIONS: [&str; 6] = [
    "approvals",
    "security",
    "terminal",
    "delegation",
    "code_execution",
    "tool_output",
];

/// What is read by itself, beside those sections.
const BY_ITSELF: [&str; 3] = ["command_allowlist", "mcp_servers", "model"];

/// What a configuration says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `approvals.mode`, if stated.
    pub mode: Option<String>,
    /// `approvals.cron_mode`, if stated.
    pub cron_mode: Option<String>,
    /// `approvals.deny`.
    pub deny: Vec<String>,
    /// `command_allowlist`.
    pub allowlist: Vec<String>,
    /// `security.website_blocklist.domains`, if it is on.
    pub blocked_sites: Vec<String>,
    /// `mcp_servers`.
    pub servers: Vec<Server>,
    /// Every value of the sections above, by dotted key.
    pub values: BTreeMap<String, Value>,
    /// `model`.
    pub model: Model,
    /// Every value of every other section, by dotted key.
    pub others: BTreeMap<String, Value>,
    /// What is written into the configuration and called a key, and the values of environments written into the configuration: secrets.
    pub environment: Vec<(String, String)>,
}

impl Settings {
    /// Reads a configuration; what is not of its kind is named and left out.
    #[must_use]
    pub fn read(config: &Value, notes: &mut Vec<Note>) -> Self {
        let mut settings = Self::default();
        if !matches!(config, Value::Object(_) | Value::Null) {
            notes.push(Note::partial(
                "config.yaml",
                "it is not a mapping, so nothing was taken from it",
            ));
            return settings;
        }
        for section in SECTIONS {
            match config.get(section) {
                None | Some(Value::Null) => {}
                Some(Value::Object(below)) => {
                    for (key, value) in below {
                        flatten(&format!("{section}.{key}"), value, &mut settings.values);
                    }
                }
                Some(_) => notes.push(Note::partial(
                    "config.yaml",
                    format!("`{section}` is not a section, so it was left out"),
                )),
            }
        }
        settings.mode = settings.word("approvals.mode");
        settings.cron_mode = settings.word("approvals.cron_mode");
        settings.deny = texts(config.pointer("/approvals/deny"), "approvals.deny", notes);
        settings.allowlist = texts(config.get("command_allowlist"), "command_allowlist", notes);
        let sites = config.pointer("/security/website_blocklist");
        if sites.and_then(|sites| sites.get("enabled")) == Some(&Value::Bool(true)) {
            settings.blocked_sites = texts(
                sites.and_then(|sites| sites.get("domains")),
                "security.website_blocklist.domains",
                notes,
            );
        }
        settings.servers(config.get("mcp_servers"), notes);
        settings.model = Model::read(config.get("model"));
        for (section, below) in config.as_object().into_iter().flatten() {
            let section = section.as_str();
            // What begins so is Hermes' own bookkeeping.
            let is_told = BY_ITSELF.contains(&section) || section.starts_with('_');
            if !is_told && !SECTIONS.contains(&section) {
                flatten(section, below, &mut settings.others);
            }
            secrets(section, below, &mut settings.environment);
        }
        settings
    }

    /// A value as a word; YAML's `off` is a truth value, and the same to Hermes.
    fn word(&self, key: &str) -> Option<String> {
        match self.values.get(key)? {
            Value::String(word) => Some(word.trim().to_ascii_lowercase()),
            Value::Bool(false) => Some("off".to_owned()),
            Value::Bool(true) => Some("on".to_owned()),
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A value that is a whole number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.as_u64()
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, key: &str) -> bool {
        self.values.get(key) == Some(&Value::Bool(true))
    }

    fn servers(&mut self, listed: Option<&Value>, notes: &mut Vec<Note>) {
        let listed = match listed {
            None | Some(Value::Null) => return,
            Some(Value::Object(listed)) => listed,
            Some(_) => {
                notes.push(Note::partial(
                    "config.yaml",
                    "`mcp_servers` is not a mapping, so it was left out",
                ));
                return;
            }
        };
        for (name, server) in listed {
            let server = Server::read(name, server);
            let secrets = server.env.iter().chain(&server.headers);
            self.environment
                .extend(secrets.map(|(name, value)| (name.clone(), secret_part(value))));
            self.servers.push(server);
        }
    }
}

/// What of a value is a secret: not the kind of key in front of it, and not the names of variables
/// that are put in later.
fn secret_part(value: &str) -> String {
    let mut rest = match value.trim().split_once(' ') {
        Some(("Bearer" | "Basic" | "Token", key)) => key,
        Some(_) | None => value,
    };
    let mut secret = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        secret.push_str(before);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    secret + rest
}

/// Whether a setting holds names, such as that of a variable in `key_env`, and no secrets.
fn is_name(name: &str) -> bool {
    // `auth` says of which kind a login is.
    name.ends_with("_env") || name.ends_with("passthrough") || name == "auth"
}

/// What is called a secret, however deep it stands.
fn secrets(name: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(below) => {
            for (name, value) in below {
                secrets(name, value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| secrets(name, value, into)),
        Value::String(word) if is_secret_name(name) && !is_name(name) => {
            into.push((name.to_owned(), secret_part(word)));
        }
        Value::Number(number) if is_one_secret(name) => {
            into.push((name.to_owned(), number.to_string()));
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Whether a number of this name is a secret: `max_tokens` counts.
fn is_one_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "key", "token", "secret", "password", "passwd", "pwd", "pass",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

fn flatten(key: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(below) => {
            for (name, value) in below {
                flatten(&format!("{key}.{name}"), value, into);
            }
        }
        other => {
            into.insert(key.to_owned(), other.clone());
        }
    }
}

fn texts(value: Option<&Value>, key: &str, notes: &mut Vec<Note>) -> Vec<String> {
    let list = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let mut out: Vec<String> = Vec::new();
    for entry in list {
        match entry.as_str().map(str::trim) {
            Some("") => {}
            Some(text) if out.iter().any(|known| known == text) => {}
            Some(text) => out.push(text.to_owned()),
            None => notes.push(Note::partial(
                "config.yaml",
                format!("an entry of `{key}` is not a text, so it was left out"),
            )),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ServerAt, Settings};

    #[test]
    fn what_has_to_do_with_authority_is_read_and_the_odd_is_named() {
        let mut notes = Vec::new();
        let config = json!({
            "approvals": {"mode": false, "timeout": 45, "deny": ["sudo *", 7, "sudo *"]},
            "command_allowlist": ["recursive delete"],
            "security": {"website_blocklist": {"enabled": true, "domains": ["ads.example.com"]}},
            "terminal": "local",
            "mcp_servers": {
                "notes": {"command": "serve", "args": ["--stdio"], "env": {"T": "v"}},
                "far": {"url": "https://x.example", "headers": {"A": "Bearer k-1", "B": "Bearer ${KEY}"}},
            },
        });
        let settings = Settings::read(&config, &mut notes);
        assert_eq!(settings.mode.as_deref(), Some("off"));
        assert_eq!(settings.number("approvals.timeout"), Some(45));
        assert_eq!(settings.deny, ["sudo *"]);
        assert_eq!(settings.blocked_sites, ["ads.example.com"]);
        assert_eq!(
            settings.servers[0].at,
            ServerAt::Program(vec!["serve".into(), "--stdio".into()])
        );
        assert_eq!(
            settings.servers[1].at,
            ServerAt::Url("https://x.example".into())
        );
        let secret = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            settings.environment,
            [secret("T", "v"), secret("A", "k-1"), secret("B", "")]
        );
        let told: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert!(
            told.iter().any(|text| text.contains("approvals.deny")),
            "{told:?}"
        );
        assert!(
            told.iter().any(|text| text.contains("`terminal`")),
            "{told:?}"
        );
    }

    #[test]
    fn numbers_and_what_stands_below_a_server_are_secrets_too() {
        let config = json!({
            "email": {"password": 13_572_468, "max_tokens": 200_000, "key_env": "MAIL_KEY"},
            "custom_providers": [{"api_key": 87_654_321}],
            "mcp_servers": {"far": {
                "url": "https://x.example", "auth": "bearer",
                "oauth": {"client_secret": "a phrase", "client_id": "me"},
            }},
        });
        let settings = Settings::read(&config, &mut Vec::new());
        let mut known: Vec<&str> = settings
            .environment
            .iter()
            .map(|(_, value)| value.as_str())
            .collect();
        known.sort_unstable();
        assert_eq!(known, ["13572468", "87654321", "a phrase"]);
    }
}

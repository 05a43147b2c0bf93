//! `mcp_servers`: what Hermes was told about each server of tools.
//!
//! Words are read as Hermes reads them: a list of tools may be one name, a switch
//! may be a word, and what is neither counts as not stated.

use serde_json::{Map, Value};

/// A server that offers tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Started as a program, or reached at an address.
    pub at: ServerAt,
    /// `enabled`, unless it is off.
    pub is_off: bool,
    /// `tools.include`: the only tools that are offered.
    pub include: Vec<String>,
    /// `tools.exclude`: those that are not; counts where nothing is included.
    pub exclude: Vec<String>,
    /// `tools.resources`, if it is stated.
    pub resources: Option<bool>,
    /// `tools.prompts`, if it is stated.
    pub prompts: Option<bool>,
    /// `timeout` in whole seconds, if it is stated.
    pub timeout_seconds: Option<u64>,
    /// `env`.
    pub env: Vec<(String, String)>,
    /// `headers`.
    pub headers: Vec<(String, String)>,
    /// All other keys, dotted as far as they are sections.
    pub others: Vec<(String, Value)>,
}

/// Where a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerAt {
    /// A program and its arguments.
    Program(Vec<String>),
    /// An address.
    Url(String),
    /// Neither is stated.
    #[default]
    Unknown,
}

impl Server {
    /// What stands below one name.
    #[must_use]
    pub fn read(name: &str, words: &Value) -> Self {
        let mut server = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let Some(words) = words.as_object() else {
            return server;
        };
        let text = |key: &str| words.get(key).and_then(Value::as_str);
        server.at = match (text("url"), text("command")) {
            (Some(url), _) => ServerAt::Url(url.to_owned()),
            (None, Some(command)) => {
                let arguments = words.get("args").and_then(Value::as_array);
                let arguments = arguments.into_iter().flatten().filter_map(plain);
                ServerAt::Program(
                    std::iter::once(command.to_owned())
                        .chain(arguments)
                        .collect(),
                )
            }
            (None, None) => ServerAt::Unknown,
        };
        for (key, value) in words {
            match key.as_str() {
                "url" | "command" | "args" => {}
                "enabled" => server.is_off = switch(value) == Some(false),
                "env" => server.env = pairs(value),
                "headers" => server.headers = pairs(value),
                "timeout" => server.timeout_seconds = seconds(value),
                "tools" => server.tools(value),
                _ => server.others.push((key.clone(), value.clone())),
            }
        }
        server
    }

    fn tools(&mut self, value: &Value) {
        let none = Map::new();
        for (key, value) in value.as_object().unwrap_or(&none) {
            match key.as_str() {
                "include" => self.include = names(value),
                "exclude" => self.exclude = names(value),
                "resources" => self.resources = switch(value),
                "prompts" => self.prompts = switch(value),
                _ => self.others.push((format!("tools.{key}"), value.clone())),
            }
        }
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let listed = value.as_object().into_iter().flatten();
    listed
        .filter_map(|(name, value)| Some((name.clone(), plain(value)?)))
        .collect()
}

fn names(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(list) => list.iter().filter_map(plain).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn switch(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(is_on) => Some(*is_on),
        Value::String(word) => match word.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        },
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A part of a second is a second: a wait of none at all is no wait.
fn seconds(value: &Value) -> Option<u64> {
    let whole = value.as_f64()?.ceil();
    (whole >= 1.0 && whole <= f64::from(u32::MAX))
        .then(|| format!("{whole:.0}").parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Server, ServerAt};

    #[test]
    fn a_server_is_read_with_all_that_was_said_of_it() {
        let server = Server::read(
            "files",
            &json!({
                "command": "npx", "args": ["-y", "files", 7], "env": {"T": "v", "N": 1},
                "timeout": 12.5, "connect_timeout": 9,
                "tools": {"include": "read", "exclude": ["drop", "wipe"], "resources": "off", "prompts": false, "x": 1},
            }),
        );
        let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            server,
            Server {
                name: "files".to_owned(),
                at: ServerAt::Program(words(&["npx", "-y", "files", "7"])),
                is_off: false,
                include: words(&["read"]),
                exclude: words(&["drop", "wipe"]),
                resources: Some(false),
                prompts: Some(false),
                timeout_seconds: Some(13),
                env: vec![pair("T", "v"), pair("N", "1")],
                headers: Vec::new(),
                others: vec![
                    ("connect_timeout".to_owned(), json!(9)),
                    ("tools.x".to_owned(), json!(1)),
                ],
            }
        );
    }

    #[test]
    fn what_is_not_of_its_kind_counts_as_not_stated() {
        for (words, off) in [
            (json!({"enabled": false}), true),
            (json!({"enabled": "No "}), true),
            (
                json!({"enabled": "perhaps", "timeout": "soon", "tools": ["a"], "env": 3}),
                false,
            ),
            (json!("a server"), false),
            (json!(null), false),
        ] {
            let server = Server::read("x", &words);
            let expected = Server {
                name: "x".to_owned(),
                is_off: off,
                ..Server::default()
            };
            assert_eq!(server, expected, "{words}");
        }
    }
}

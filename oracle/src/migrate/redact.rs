//! Secrets never leave: every text of every output passes through here.
//!
//! What the home itself calls secret (`.env`, `auth.json`, the environment of
//! MCP servers) is known by its value and struck out in every usual writing of
//! it; besides, what looks like a secret is struck out by its shape. The second
//! is a net with holes, the first is not.

use std::collections::BTreeSet;

use hermitcrab::tools::redact::{Mask, masked};
use serde_json::Value;

/// What stands in a secret's place.
pub const MARK: &str = "«secret»";
/// Shorter values would strike out ordinary words.
const VALUE_CHARS_MIN: usize = 6;
/// Words in a name that say its value is secret.
const NAMES: [&str; 9] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "auth",
    "pass",
    "pwd",
];

/// Knows the secrets of one home.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: BTreeSet<String>,
}

impl Redactor {
    /// A value is secret if its name says so, or if it does not look like a word.
    pub fn learn(&mut self, name: &str, value: &str) {
        let value = value.trim();
        let named = is_secret_name(name);
        let long_enough = value.chars().count() >= VALUE_CHARS_MIN;
        if !long_enough || !(named || looks_random(value)) {
            return;
        }
        let mut json = Value::from(value).to_string();
        json.pop();
        let inner = json.get(1..).unwrap_or_default().to_owned();
        let percent: String = value
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(byte).to_string()
                }
                other => format!("%{other:02X}"),
            })
            .collect();
        let base64 = data_encoding::BASE64.encode(value.as_bytes());
        self.known.extend([
            value.to_owned(),
            inner,
            percent,
            base64.trim_end_matches('=').to_owned(),
        ]);
    }

    /// All texts of a value are secrets, whatever their names.
    pub fn learn_all(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.learn("token", text),
            Value::Array(list) => list.iter().for_each(|value| self.learn_all(value)),
            Value::Object(map) => map.values().for_each(|value| self.learn_all(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text without its secrets.
    #[must_use]
    pub fn clean(&self, text: &str) -> String {
        let mut out = text.to_owned();
        // The longest first: one may be part of another.
        let mut known: Vec<&String> = self.known.iter().collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in known {
            if out.contains(value.as_str()) {
                out = out.replace(value.as_str(), MARK);
            }
        }
        masked(&assignments(&out), Mask::Sentinel)
    }

    /// Every text in a value, keys included, without its secrets.
    #[must_use]
    pub fn clean_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean(text)),
            Value::Array(list) => list.iter().map(|value| self.clean_value(value)).collect(),
            Value::Object(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| (self.clean(key), self.clean_value(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }
}

/// Whether a name says that its value is secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Letters and figures mixed, without a place or a sentence in it.
fn looks_random(value: &str) -> bool {
    value.chars().count() >= 16
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !value.contains(['/', ' ', '\\'])
}

/// `NAME=value` and `name: value` with the value struck out where the name is secret.
fn assignments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let name: String = before
            .trim_end_matches(['"', '\'', ' ', '\\'])
            .chars()
            .rev()
            .take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        let mut value_from = 1;
        let bytes = from.as_bytes();
        while bytes
            .get(value_from)
            .is_some_and(|byte| matches!(byte, b' ' | b'"' | b'\'' | b'\\'))
        {
            value_from += 1;
        }
        let (sign, value) = from.split_at(value_from.min(from.len()));
        out.push_str(sign);
        let end = value
            .find(|letter: char| {
                letter.is_whitespace()
                    || matches!(
                        letter,
                        '"' | '\'' | '\\' | ';' | ',' | '&' | '|' | '}' | ')'
                    )
            })
            .unwrap_or(value.len());
        let (value, after) = value.split_at(end);
        let secret = is_secret_name(&name)
            && value.chars().count() >= VALUE_CHARS_MIN
            && !value.starts_with(['$', '«', '/', '{', '[']);
        if secret {
            out.push_str(MARK);
            rest = after;
        } else {
            rest = from.split_at(value_from.min(from.len())).1;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{MARK, Redactor};
    use serde_json::json;

    #[test]
    fn known_values_go_in_every_writing_and_ordinary_words_stay() {
        let mut redactor = Redactor::default();
        redactor.learn("OPENAI_API_KEY", "a\"b/c d-7");
        redactor.learn("EDITOR", "vi");
        redactor.learn("EDITOR", "nano-editor");
        for writing in [
            "a\"b/c d-7",
            "a\\\"b/c d-7",
            "a%22b%2Fc%20d-7",
            "YSJiL2MgZC03",
        ] {
            let text = redactor.clean(&format!("x {writing} y nano-editor"));
            assert_eq!(text, format!("x {MARK} y nano-editor"));
        }
        let value = redactor.clean_value(&json!({"a\"b/c d-7": ["a\"b/c d-7", 1]}));
        assert_eq!(value, json!({MARK: [MARK, 1]}));
    }

    #[test]
    fn secrets_nobody_listed_go_by_their_shape_and_their_name() {
        let redactor = Redactor::default();
        for (text, hidden) in [
            ("PASSWORD=hunter22 && run", "hunter22"),
            ("{\"db_password\": \"hunter22\"}", "hunter22"),
            ("{\\\"token\\\": \\\"hunter22\\\"}", "hunter22"),
            ("curl -H 'X-Auth-Token: hunter22x'", "hunter22x"),
            ("psql postgres://me:hunter22@host/db", "hunter22"),
            (
                "echo ghp_planted5aB7cD9eF1gH3iJ5kL7mN9oP2qR",
                "planted5aB7cD9eF1",
            ),
        ] {
            let clean = redactor.clean(text);
            assert!(!clean.contains(hidden), "{text} -> {clean}");
        }
        for plain in [
            "git commit -m 'fix: keys are sorted'",
            "PATH=/usr/bin:/bin",
            "a: b = c",
        ] {
            assert_eq!(redactor.clean(plain), plain);
        }
    }
}

//! Secrets never leave: every text of every output passes through here.
//!
//! What the home itself calls secret (`.env`, `auth.json`, the environment of
//! MCP servers) is known by its value and struck out in every usual writing of
//! it; besides, what looks like a secret is struck out by its shape. The second
//! is a net with holes, the first is not.

use std::collections::BTreeSet;

use hermitcrab::text::redact::{Mask, masked};
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
        masked(&options(&assignments(&out)), Mask::Sentinel)
    }

    /// Every text in a value, keys included, without its secrets.
    #[must_use]
    pub fn clean_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean(text)),
            Value::Array(list) => {
                // The words of a command may be apart: an option, and its value.
                let before = std::iter::once(None).chain(list.iter().map(Value::as_str));
                let words = before
                    .zip(list)
                    .map(|(before, value)| match value.as_str() {
                        Some(word) if before.is_some_and(is_option) && is_value(word) => {
                            Value::from(MARK)
                        }
                        _ => self.clean_value(value),
                    });
                words.collect()
            }
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

/// Whether a word is an option that a secret follows, such as `--api-key`.
fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches('-').to_ascii_lowercase();
    let last = name.rsplit(['-', '_']).next().unwrap_or_default();
    word.starts_with('-') && (NAMES.contains(&last) || last == "apikey")
}

/// Whether what follows a name can be a secret: nothing else stands for it, and it is no
/// other option.
fn is_value(word: &str) -> bool {
    word.chars().count() >= VALUE_CHARS_MIN && !word.starts_with(['-', '$', '«', '/', '{', '['])
}

/// Words that stand before a key in a header.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

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
        let end = value.find(ends_a_value).unwrap_or(value.len());
        let (value, after) = value.split_at(end);
        let is_named = is_secret_name(&name);
        let is_scheme = SCHEMES
            .iter()
            .any(|scheme| value.eq_ignore_ascii_case(scheme));
        if is_named
            && is_scheme
            && let Some((gap, word, after)) = next_word(after)
        {
            out.push_str(value);
            out.push_str(gap);
            out.push_str(if is_value(word) { MARK } else { word });
            rest = after;
        } else if is_named && is_value(value) {
            out.push_str(MARK);
            rest = after;
        } else {
            rest = from.split_at(value_from.min(from.len())).1;
        }
    }
    out.push_str(rest);
    out
}

/// Whether a value written without quotes ends before this letter.
fn ends_a_value(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '"' | '\'' | '\\' | ';' | ',' | '&' | '|' | '}' | ')'
        )
}

/// The blanks before the next word of a line, that word, and what comes after it.
fn next_word(text: &str) -> Option<(&str, &str, &str)> {
    let blanks = text.len() - text.trim_start_matches([' ', '\t']).len();
    let (gap, rest) = text.split_at_checked(blanks)?;
    let (word, rest) = rest.split_at_checked(rest.find(ends_a_value).unwrap_or(rest.len()))?;
    (!gap.is_empty() && !word.is_empty()).then_some((gap, word, rest))
}

/// `--name value` with the value struck out where the name is secret.
fn options(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut follows = false;
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let quotes = ['"', '\'', '\\'];
        let inner = word.trim_matches(quotes);
        if follows && is_value(inner) {
            out.push_str(&piece.replacen(inner, MARK, 1));
        } else {
            out.push_str(piece);
        }
        // More than one blank may stand between them.
        if !word.is_empty() {
            follows = is_option(inner);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{MARK, Redactor};
    use serde_json::json;

    #[test]
    fn of_a_secret_that_begins_like_another_nothing_stays() {
        let mut redactor = Redactor::default();
        redactor.learn("API_KEY", "green-house");
        redactor.learn("OTHER_KEY", "green-house-of-glass");
        let text = redactor.clean("one green-house, one green-house-of-glass");
        assert_eq!(text, format!("one {MARK}, one {MARK}"));
    }

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
            ("curl -H 'Authorization: Bearer hunter22x' url", "hunter22x"),
            (
                "curl -H \"Proxy-Authorization: basic hunter22x\"",
                "hunter22x",
            ),
            ("npx server --api-key hunter22x --port 1", "hunter22x"),
            ("npx server --token  'hunter22x'", "hunter22x"),
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
            "git log --author somebody -- docs",
            "serve --token --verbose",
        ] {
            assert_eq!(redactor.clean(plain), plain);
        }
        let words = json!([
            "npx",
            "server",
            "--api-key",
            "hunter22x",
            "--port",
            "100000"
        ]);
        let clean = json!(["npx", "server", "--api-key", MARK, "--port", "100000"]);
        assert_eq!(redactor.clean_value(&words), clean);
    }
}

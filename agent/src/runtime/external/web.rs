//! Where a server is that speaks HTTP: its address, and the key that is sent there.

use std::fmt;

use hermitcrab_core::outcome::{Denial, DenialCode};
use serde_json::Value;
use ureq::http::Uri;

/// Bytes of an address.
const URL_BYTES_MAX: usize = 2048;
/// Shorter keys are words that are in any text, and nobody's secret.
const SECRET_LETTERS_MIN: usize = 6;
/// What stands where a key was.
const STRUCK: &str = "[the key]";

/// What proves to a server who asks. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key, without the blanks around it.
    ///
    /// # Errors
    /// `bad-arguments`: it holds what cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, Denial> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Denial::new(
                DenialCode::BadArguments,
                "the key holds blanks or letters no key holds",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// What a program was given to prove who asks, be it with blanks; nothing if that is nothing.
    pub(super) fn given(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// For the one header it is sent in.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key, if it is in there.
    pub(super) fn struck_from(&self, text: &str) -> String {
        if self.0.len() < SECRET_LETTERS_MIN {
            return text.to_owned();
        }
        text.replace(&self.0, STRUCK)
    }

    /// Takes the key out of all that somebody said: out of texts and names, and out of
    /// numbers, as which a key of digits may come back.
    pub(super) fn strike(&self, said: &mut Value) {
        match said {
            Value::String(text) => *text = self.struck_from(text),
            Value::Array(parts) => parts.iter_mut().for_each(|part| self.strike(part)),
            Value::Object(parts) => {
                let named = std::mem::take(parts).into_iter();
                parts.extend(named.map(|(name, mut part)| {
                    self.strike(&mut part);
                    (self.struck_from(&name), part)
                }));
            }
            Value::Number(number) => {
                let text = number.to_string();
                let struck = self.struck_from(&text);
                if struck != text {
                    *said = Value::String(struck);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// An address, and the key that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// Such as `https://example.com/mcp`.
    pub url: String,
    /// Sent as a bearer token with each request.
    pub key: Option<Key>,
}

/// The host and the port of an address.
///
/// # Errors
/// `bad-arguments`: it is none that is spoken here.
pub fn place(url: &str) -> Result<(String, u16), Denial> {
    let wrong = |why: &str| {
        let url = url.escape_debug();
        Err(Denial::new(
            DenialCode::BadArguments,
            format!("the address `{url}` {why}"),
        ))
    };
    if url.len() > URL_BYTES_MAX {
        return wrong("is too long");
    }
    let Ok(parsed) = url.parse::<Uri>() else {
        return wrong("is none, such as https://example.com/mcp");
    };
    let usual = match parsed.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => return wrong("does not begin with http:// or https://"),
    };
    let Some(authority) = parsed.authority() else {
        return wrong("names no host");
    };
    if authority.as_str().contains('@') {
        return wrong("holds a password; use `key_env`, `key_file` or `key_keyring`");
    }
    let host = authority.host().trim_matches(['[', ']']);
    if host.is_empty() {
        return wrong("names no host");
    }
    let port = match authority.as_str().rsplit_once(':') {
        Some((_, digits)) if !digits.contains(']') => match digits.parse() {
            Ok(port) if port != 0 => port,
            _ => return wrong("has a port that is none"),
        },
        _ => usual,
    };
    Ok((host.to_owned(), port))
}

/// Whether a key may go there: sealed, or not over any network at all.
#[must_use]
pub fn may_carry_a_key(url: &str, host: &str) -> bool {
    let is_loopback = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    is_loopback
        || url
            .get(..8)
            .is_some_and(|start| start.eq_ignore_ascii_case("https://"))
}

/// A text without any of these.
pub(super) fn struck_from(keys: &[Key], text: String) -> String {
    keys.iter().fold(text, |text, key| key.struck_from(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Key, may_carry_a_key, place};

    #[test]
    fn a_key_is_struck_out_wherever_a_server_repeats_it() {
        let check = |key: &str, said: serde_json::Value, told: serde_json::Value| {
            let mut struck = said;
            Key::new(key).expect("a key").strike(&mut struck);
            assert_eq!(struck, told);
        };
        check(
            "letters7",
            json!({"said": ["with letters7"], "letters7": {"of letters7": 1}, "n": 7}),
            json!({"said": ["with [the key]"], "[the key]": {"of [the key]": 1}, "n": 7}),
        );
        check(
            "123456789",
            json!({"is": 123_456_789, "longer": [1_234_567_890], "other": 12_345}),
            json!({"is": "[the key]", "longer": ["[the key]0"], "other": 12_345}),
        );
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (url, host, port) in [
            ("https://example.com/mcp", "example.com", 443),
            ("http://127.0.0.1:8000/mcp", "127.0.0.1", 8000),
            ("HTTPS://Example.com", "Example.com", 443),
            ("http://[::1]:9/x?y=1", "::1", 9),
            ("http://[::1]/", "::1", 80),
        ] {
            assert_eq!(place(url), Ok((host.to_owned(), port)), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_named() {
        for (url, why) in [
            ("example.com/mcp", "is none"),
            ("ftp://example.com/", "begin with"),
            ("https://me:word@example.com/", "password"),
            ("https://example.com:0/", "port"),
            ("https://example.com:70000/", "is none"),
            ("https://", "is none"),
            ("", "is none"),
        ] {
            let found = place(url).expect_err(url).to_string();
            assert!(found.contains(why), "{url}: {found}");
        }
        assert!(place(&format!("https://a/{}", "b".repeat(3000))).is_err());
    }

    #[test]
    fn a_key_is_sent_sealed_or_not_beyond_this_machine() {
        for (url, host, may) in [
            ("https://example.com/", "example.com", true),
            ("HTTPS://example.com/", "example.com", true),
            ("http://example.com/", "example.com", false),
            ("http://127.0.0.1/", "127.0.0.1", true),
            ("http://[::1]/", "::1", true),
            ("http://localhost:1/", "localhost", true),
            ("http://10.0.0.1/", "10.0.0.1", false),
        ] {
            assert_eq!(may_carry_a_key(url, host), may, "{url}");
        }
    }

    #[test]
    fn a_key_is_shown_nowhere() {
        let key = Key::new(" secret-1 ").expect("a key");
        assert_eq!(key.reveal(), "secret-1");
        assert!(!format!("{key:?}").contains("secret"));
        assert!(Key::new("two words").is_err() && Key::new("").is_err());
        assert_eq!(key.struck_from("Bearer secret-1!"), "Bearer [the key]!");
        assert_eq!(key.struck_from("Bearer secret-2"), "Bearer secret-2");
        let short = Key::new("a").expect("a key");
        assert_eq!(short.struck_from("a table"), "a table");
    }
}

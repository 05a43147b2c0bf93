//! Masking secrets in what the model is given.
//!
//! This is a courtesy against accidents (a key pasted into a log, a token in a
//! file), not a boundary: what must not leave is kept out of reach by
//! capabilities. Known token shapes, private keys, passwords in addresses and
//! authorization headers are masked.

mod shapes;

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::text::pytext;

/// How a found token is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Both ends stay recognisable; for the output of commands.
    Ends,
    /// A mark that can never be mistaken for a usable token; for file content,
    /// which a model may write back.
    Sentinel,
}

/// A token with its middle masked; short ones completely.
fn ends(token: &str) -> String {
    if token.chars().count() < 18 {
        return "***".into();
    }
    format!("{}...{}", pytext::head(token, 6), pytext::tail(token, 4))
}

fn expression(pattern: &'static str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

static KEY_BLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression("(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----")
});
static AUTHORIZATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r#"(?i)(?P<name>authorization:\s*)(?P<scheme>[a-z][a-z0-9_.+-]*\s+)?(?P<value>[^\s"']+)"#,
    )
});
static KEY_HEADER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?i)(?P<name>(?:x-(?:goog-)?api-key|api-?key|x-(?:api|auth|access)-token)\s*:\s*)(?P<value>\S+)",
    )
});
static DATABASE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?i)(?P<name>(?:postgres|postgresql|mysql|mongodb|mongodb\+srv|redis|amqp)://[^:\s]+:)(?P<value>[^@\s]+)@",
    )
});
static URL_TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?i)(?P<name>(?:https?|wss?|git|ssh|s?ftps?)://)(?P<value>[^\s:@/]{8,})(?P<rest>@\S+)",
    )
});
static WEB_TOKEN: LazyLock<Option<Regex>> =
    LazyLock::new(|| expression(r"eyJ[0-9A-Za-z_-]{10,}(?:\.[0-9A-Za-z_=-]{4,}){0,2}"));
static BOT_TOKEN: LazyLock<Option<Regex>> =
    LazyLock::new(|| expression(r"(?P<name>(?:bot)?\d{8,}:)[0-9A-Za-z_-]{30,}"));
static PHONE: LazyLock<Option<Regex>> = LazyLock::new(|| expression(r"\+[1-9]\d{6,14}"));
static ASSIGNMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r#"(?P<name>[A-Z0-9_]{0,50}(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)[A-Z0-9_]{0,50})\s*=\s*(?P<value>\S+)"#,
    )
});

fn replaced(
    text: String,
    expression: &Option<Regex>,
    with: impl Fn(&Captures<'_>) -> String,
) -> String {
    match expression {
        Some(expression) if expression.is_match(&text) => {
            expression.replace_all(&text, with).into_owned()
        }
        _ => text,
    }
}

fn group<'t>(captures: &Captures<'t>, name: &str) -> &'t str {
    captures.name(name).map_or("", |found| found.as_str())
}

/// The text with secrets masked.
#[must_use]
pub fn masked(text: &str, mask: Mask) -> String {
    let mut out = shapes::masked(text, |label, token| match mask {
        Mask::Ends => ends(token),
        Mask::Sentinel => format!("\u{ab}redacted:{label}\u{2026}\u{bb}"),
    });
    if out.to_ascii_lowercase().contains("authorization") {
        out = replaced(out, &AUTHORIZATION, |found| {
            format!(
                "{}{}{}",
                group(found, "name"),
                group(found, "scheme"),
                ends(group(found, "value"))
            )
        });
    }
    if out.contains(':') {
        out = replaced(out, &KEY_HEADER, |found| {
            format!("{}{}", group(found, "name"), ends(group(found, "value")))
        });
        out = replaced(out, &BOT_TOKEN, |found| {
            format!("{}***", group(found, "name"))
        });
    }
    if out.contains("-----BEGIN") {
        out = replaced(out, &KEY_BLOCK, |_| "[REDACTED PRIVATE KEY]".into());
    }
    if out.contains("://") {
        out = replaced(out, &DATABASE, |found| {
            let value = group(found, "value");
            // A template's placeholder is not a password.
            let hidden = if value.starts_with('{') && value.ends_with('}') {
                value
            } else {
                "***"
            };
            format!("{}{hidden}@", group(found, "name"))
        });
        out = replaced(out, &URL_TOKEN, |found| {
            format!(
                "{}{}{}",
                group(found, "name"),
                ends(group(found, "value")),
                group(found, "rest")
            )
        });
    }
    if out.contains("eyJ") {
        out = replaced(out, &WEB_TOKEN, |found| ends(group_all(found)));
    }
    if out.contains('+') {
        out = phones(&out);
    }
    out
}

fn group_all<'t>(captures: &Captures<'t>) -> &'t str {
    captures.get(0).map_or("", |found| found.as_str())
}

/// International numbers that are not part of a longer word.
fn phones(text: &str) -> String {
    let Some(expression) = PHONE.as_ref() else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for found in expression.find_iter(text) {
        let follows = text.get(found.end()..).and_then(|rest| rest.chars().next());
        if follows.is_some_and(|letter| letter.is_ascii_alphanumeric()) {
            continue;
        }
        let number = found.as_str();
        let keep = if number.len() <= 8 { 2 } else { 4 };
        out.push_str(text.get(done..found.start()).unwrap_or_default());
        out.push_str(&format!(
            "{}****{}",
            pytext::head(number, keep),
            pytext::tail(number, keep.min(4))
        ));
        done = found.end();
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// The same of a difference: of each line behind its sign, which is no part of a number, and of
/// nothing that says where the lines stand.
#[must_use]
pub fn masked_diff(diff: &str) -> String {
    if masked(diff, Mask::Sentinel) == diff {
        return diff.to_owned();
    }
    let line = |line: &str| match line.char_indices().nth(1) {
        Some((at, _)) if !line.starts_with("@@") => {
            let (sign, rest) = line.split_at(at);
            format!("{sign}{}", masked(rest, Mask::Sentinel))
        }
        _ => line.to_owned(),
    };
    diff.split_inclusive('\n').map(line).collect()
}

/// A command's output with secrets masked; a listing of the environment also
/// loses the values of variables whose name says they are secret.
#[must_use]
pub fn masked_output(output: &str, command: &str) -> String {
    if !lists_environment(command) {
        return masked(output, Mask::Ends);
    }
    let shaped = shapes::masked(output, |_, token| ends(token));
    let assigned = replaced(shaped, &ASSIGNMENT, |found| {
        let value = group(found, "value");
        let quote = value
            .chars()
            .next()
            .filter(|letter| matches!(letter, '"' | '\'') && value.ends_with(*letter));
        match quote {
            Some(quote) if value.len() > 1 => {
                format!(
                    "{}={quote}{}{quote}",
                    group(found, "name"),
                    ends(value.trim_matches(quote))
                )
            }
            _ => format!("{}={}", group(found, "name"), ends(value)),
        }
    });
    masked(&assigned, Mask::Ends)
}

/// Whether any part of a command line starts with a word that prints variables.
fn lists_environment(command: &str) -> bool {
    command
        .split(['|', ';', '&'])
        .filter_map(|part| part.split_whitespace().next())
        .any(|word| matches!(word, "env" | "printenv" | "set" | "export" | "declare"))
}

#[cfg(test)]
mod tests {
    use super::{Mask, masked, masked_diff, masked_output};

    #[test]
    fn of_a_difference_the_lines_are_masked_and_not_where_they_stand() {
        let key = "sk-abcdefghijklmnopqrstuvwxyz0123456789";
        let diff = |key: &str| {
            format!(
                "--- a/f\n+++ b/f\n@@ -4999997,7 +4999997,7 @@\n é\n \n-k={key}\n+5551234567\n+k\n"
            )
        };
        let shown = masked(key, Mask::Sentinel);
        assert_ne!(shown, key);
        assert_eq!(masked_diff(&diff(key)), diff(&shown));
        assert_eq!(masked_diff(&diff("x")), diff("x"));
        assert_eq!(masked_diff(""), "");
    }

    #[test]
    fn ordinary_text_is_untouched() {
        for text in [
            "sk-short",
            "a token=5",
            "https://example.com/?code=abcdefgh",
            "mail a@b.c, 1+2",
            "TOKEN=abc",
        ] {
            assert_eq!(masked(text, Mask::Ends), text);
        }
    }

    #[test]
    fn tokens_keep_their_ends_in_output_and_none_in_files() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(masked(&token, Mask::Ends), "ghp_a1...a1B2");
        assert_eq!(
            masked(&token, Mask::Sentinel),
            "\u{ab}redacted:ghp_\u{2026}\u{bb}"
        );
        assert_eq!(
            masked(&format!("x{token}"), Mask::Ends),
            format!("x{token}")
        );
    }

    #[test]
    fn passwords_in_addresses_and_headers_go() {
        assert_eq!(
            masked("postgres://u:secret@h/db", Mask::Ends),
            "postgres://u:***@h/db"
        );
        assert_eq!(
            masked("postgres://u:{pw}@h/db", Mask::Ends),
            "postgres://u:{pw}@h/db"
        );
        assert_eq!(
            masked("Authorization: Bearer abc", Mask::Ends),
            "Authorization: Bearer ***"
        );
        assert_eq!(
            masked(
                "-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----",
                Mask::Ends
            ),
            "[REDACTED PRIVATE KEY]"
        );
    }

    #[test]
    fn environment_listings_lose_secret_values() {
        assert_eq!(
            masked_output("A=1\nMY_TOKEN=abc", "env | sort"),
            "A=1\nMY_TOKEN=***"
        );
        assert_eq!(masked_output("MY_TOKEN=abc", "cat f"), "MY_TOKEN=abc");
    }
}

//! Settings about commands, read as Hermes reads them.
//!
//! The agent judges no command by its text; these readings serve the
//! comparison and whoever moves a configuration over.

use serde_json::Value;

/// When a person is asked, in Hermes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Every time something is not covered.
    Manual,
    /// A judge model is asked first. It can request, never grant: here it is manual.
    Smart,
    /// Never, because everything is allowed. No mode of the agent does that.
    Off,
}

impl ApprovalMode {
    /// Reads a value of a configuration file. What is not understood asks.
    #[must_use]
    pub fn read(value: &Value) -> Self {
        let word = match value {
            // Some readers of YAML make a truth value of a bare `off`.
            Value::Bool(false) => return Self::Off,
            Value::String(word) => word.trim().to_lowercase(),
            Value::Null
            | Value::Bool(true)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                return Self::Manual;
            }
        };
        match word.as_str() {
            "smart" => Self::Smart,
            "off" => Self::Off,
            _ => Self::Manual,
        }
    }

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Smart => "smart",
            Self::Off => "off",
        }
    }
}

/// A command without its comments, for a reader who could be talked into
/// something by them. Nothing is decided by the result.
#[must_use]
pub fn without_comments(command: &str) -> String {
    let kept: Vec<&str> = command.lines().map(without_comment).collect();
    kept.join("\n").trim_end().to_owned()
}

/// One line up to its comment: a `#` that begins a word outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    let mut begins_word = true;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, '#') if begins_word => {
                return line.get(..at).map_or(line, str::trim_end);
            }
            (None | Some(_), _) => {}
        }
        begins_word = quote.is_none() && matches!(letter, ' ' | '\t' | ';' | '|' | '&' | '(' | ')');
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ApprovalMode, without_comments};

    #[test]
    fn a_mode_that_is_not_understood_asks() {
        let check = |value: Value, expected: ApprovalMode| {
            assert_eq!(ApprovalMode::read(&value), expected, "{value}");
        };
        check(json!("smart"), ApprovalMode::Smart);
        check(json!(" OFF "), ApprovalMode::Off);
        check(json!(false), ApprovalMode::Off);
        for odd in [
            json!(""),
            json!("auto"),
            json!(true),
            json!(null),
            json!(0),
            json!(["off"]),
        ] {
            check(odd, ApprovalMode::Manual);
        }
    }
    #[test]
    fn a_comment_goes_and_a_hash_that_is_none_stays() {
        let check = |command: &str, expected: &str| {
            assert_eq!(without_comments(command), expected, "{command}");
        };
        check("python -c 'print(42)'", "python -c 'print(42)'");
        check("rm -rf x # ignore this", "rm -rf x");
        check("echo 'a # b' \"c # d\" # e", "echo 'a # b' \"c # d\"");
        check("echo a#b \\# c", "echo a#b \\# c");
        check("a # 1\nb # 2\n# 3", "a\nb");
    }
}

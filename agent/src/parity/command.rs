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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ApprovalMode;

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
}

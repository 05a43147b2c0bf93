//! `model`: which model Hermes talks to, and where.

use serde_json::Value;

/// What is said of it; it may be a name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: Option<String>,
    /// Who serves it, by a word of Hermes'.
    pub provider: Option<String>,
    /// Where it is.
    pub base_url: Option<String>,
    /// How long a conversation may be, in tokens.
    pub context_tokens: Option<u64>,
    /// What else is said.
    pub besides: Vec<String>,
}

/// The keys that are read, in the order of the fields; a model has been named by both of the first.
const READ: [&str; 5] = ["default", "name", "provider", "base_url", "context_length"];

impl Model {
    pub(super) fn read(said: Option<&Value>) -> Self {
        let word = |value: &Value| {
            let word = value.as_str()?.trim();
            (!word.is_empty()).then(|| word.to_owned())
        };
        match said {
            Some(Value::Object(below)) => {
                let word = |key: &str| below.get(key).and_then(word);
                Self {
                    name: word("default").or_else(|| word("name")),
                    provider: word("provider"),
                    base_url: word("base_url"),
                    context_tokens: below.get("context_length").and_then(Value::as_u64),
                    besides: below
                        .keys()
                        .filter(|key| !READ.contains(&key.as_str()))
                        .cloned()
                        .collect(),
                }
            }
            other => Self {
                name: other.and_then(word),
                ..Self::default()
            },
        }
    }
}

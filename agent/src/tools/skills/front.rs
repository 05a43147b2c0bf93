//! The heading of a skill: YAML between two lines of dashes.

mod numbers;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

use crate::text::{args, pytext};

/// Values nested deeper than this are not read.
const DEPTH_MAX: usize = 64;

/// A heading and what follows it.
#[derive(Clone, Debug, Default)]
pub struct Front {
    /// What the heading says.
    pub values: Map<String, Value>,
    /// The text below it.
    pub body: String,
}

impl Front {
    /// Reads a text; one without a heading is all body.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((heading, body)) = divided(text) else {
            return Self {
                values: Map::new(),
                body: text.to_owned(),
            };
        };
        let values = match value(heading) {
            Ok(Value::Object(map)) => map,
            Ok(_) => Map::new(),
            Err(_) => pytext::strip(heading)
                .split('\n')
                .filter_map(|line| line.split_once(':'))
                .map(|(key, value)| {
                    (
                        pytext::strip(key).to_owned(),
                        Value::from(pytext::strip(value)),
                    )
                })
                .collect(),
        };
        Self {
            values,
            body: body.to_owned(),
        }
    }

    /// One value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Whether the skill is for this system at all.
    #[must_use]
    pub fn fits_here(&self) -> bool {
        match self.get("platforms") {
            Some(platforms) if args::truthy(Some(platforms)) => {
                let listed = match platforms {
                    Value::Array(list) => list.iter().map(args::text_of).collect(),
                    one => vec![args::text_of(one)],
                };
                listed
                    .iter()
                    .any(|name| pytext::strip(name).to_lowercase() == "linux")
            }
            Some(_) | None => true,
        }
    }
}

/// The heading and the rest; `None` without a closed heading.
#[must_use]
pub fn divided(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let mut from = 0;
    while let Some(at) = rest.get(from..)?.find("\n---") {
        let start = from + at;
        let after = rest.get(start + 4..)?;
        // Blanks (line ends too), the last of them a line end.
        let blanks = after.len() - after.trim_start_matches(pytext::is_space).len();
        if let Some(last) = after.get(..blanks).and_then(|blanks| blanks.rfind('\n')) {
            return Some((rest.get(..start)?, after.get(last + 1..)?));
        }
        from = start + 1;
    }
    None
}

/// The first document of a YAML text.
///
/// # Errors
/// What is wrong with it.
pub fn value(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
    };
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(Value::Null),
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            event => return reader.node(event, 0),
        }
    }
}

struct Reader<'t> {
    events: Parser<'t, saphyr_parser::StrInput<'t>>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, String> {
        match self.events.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(error.to_string()),
            None => Ok(Event::StreamEnd),
        }
    }

    fn node(&mut self, event: Event<'t>, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("nested too deeply".to_owned());
        }
        match event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) => Ok(plain(&text)),
            Event::Scalar(text, _, _, _) => Ok(Value::from(text.as_ref())),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd | Event::StreamEnd => return Ok(Value::Array(list)),
                        event => list.push(self.node(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map = Map::new();
                loop {
                    match self.next()? {
                        Event::MappingEnd | Event::StreamEnd => return Ok(Value::Object(map)),
                        event => {
                            let key = args::text_of(&self.node(event, depth + 1)?);
                            let event = self.next()?;
                            let value = self.node(event, depth + 1)?;
                            map.insert(key, value);
                        }
                    }
                }
            }
            // An alias would need what it stands for; a heading has no use for one.
            Event::Alias(_) => Err("aliases are not read".to_owned()),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => Ok(Value::Null),
        }
    }
}

/// A word without quotes, as what it looks like.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        _ => numbers::whole(text)
            .map(Value::from)
            .or_else(|| numbers::part(text).map(Value::from))
            .unwrap_or_else(|| Value::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Front, divided, value};

    #[test]
    fn a_heading_is_read_and_the_rest_is_body() {
        let front = Front::parse(
            "---\nname: a\ndescription: does x\nmetadata:\n  hermes:\n    tags: [b, 'c']\n---\n\n# Title\n",
        );
        assert_eq!(
            json!(front.values),
            json!({"name": "a", "description": "does x", "metadata": {"hermes": {"tags": ["b", "c"]}}})
        );
        assert_eq!(front.body, "# Title\n");
    }

    #[test]
    fn an_open_heading_is_body() {
        assert!(Front::parse("---\nname: a\n").values.is_empty());
        assert_eq!(divided("x\n---\n"), None);
    }

    #[test]
    fn plain_words_have_kinds() {
        assert_eq!(
            value("a: 1\nb: yes\nc: ~\nd: 1.5\ne: '1'\nf: 1.2.3\n"),
            Ok(json!({"a": 1, "b": true, "c": null, "d": 1.5, "e": "1", "f": "1.2.3"}))
        );
        assert_eq!(value("a: !!str 5"), Ok(json!({"a": "5"})));
        assert!(value("a: [1\nb: 2").is_err());
    }
}

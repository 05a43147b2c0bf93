//! YAML as Hermes' own safe reader takes it, with bounds on what it may become.
//!
//! Anchors are legal in a configuration and are expanded, but every value an
//! alias brings is counted, so that a small file cannot become a large tree.
//! Tags that would make objects are refused.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Value};

/// Longest text that is read.
pub const BYTES_MAX: u64 = 4 << 20;
const DEPTH_MAX: usize = 64;
const VALUES_MAX: usize = 200_000;

/// The first document of a text; no document is null.
///
/// # Errors
/// What is wrong with it, or which bound it breaks.
pub fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        anchors: HashMap::new(),
        values: 0,
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
    events: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, String> {
        match self.events.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => {
                let at = error.marker();
                Err(format!("{} in line {}", error.info(), at.line()))
            }
            None => Ok(Event::StreamEnd),
        }
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(values);
        if self.values > VALUES_MAX {
            return Err(format!(
                "its aliases make more than {VALUES_MAX} values of it; Hermes would try to hold them all, this does not"
            ));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let before = self.values;
        self.count(1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, scalar(&text, style, tag)?),
            Event::SequenceStart(anchor, tag) => {
                plain_tag(tag.as_ref(), "seq")?;
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd | Event::StreamEnd => break,
                        event => list.push(self.node(event, depth + 1)?),
                    }
                }
                (anchor, Value::Array(list))
            }
            Event::MappingStart(anchor, tag) => {
                plain_tag(tag.as_ref(), "map")?;
                (anchor, self.mapping(depth)?)
            }
            Event::Alias(anchor) => {
                let (value, size) = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or("an alias stands for nothing, or for itself")?;
                self.count(size)?;
                return Ok(value);
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => (0, Value::Null),
        };
        if anchor > 0 {
            let size = self.values.saturating_sub(before);
            // What is kept for later counts as well.
            self.count(size)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        loop {
            match self.next()? {
                Event::MappingEnd | Event::StreamEnd => break,
                event => {
                    let key = match self.node(event, depth + 1)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    let event = self.next()?;
                    let value = self.node(event, depth + 1)?;
                    if key == "<<" {
                        merged.push(value);
                    } else {
                        map.insert(key, value);
                    }
                }
            }
        }
        for value in merged {
            let maps = match value {
                Value::Array(list) => list,
                one => vec![one],
            };
            for value in maps {
                if let Value::Object(below) = value {
                    for (key, value) in below {
                        map.entry(key).or_insert(value);
                    }
                }
            }
        }
        Ok(Value::Object(map))
    }
}

fn plain_tag(tag: Option<&Cow<'_, Tag>>, expected: &str) -> Result<(), String> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => Err(format!(
            "it has the tag `{}{}`, which could make an object; Hermes' own reader refuses it as well",
            tag.handle, tag.suffix
        )),
        _ => Ok(()),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<Cow<'_, Tag>>) -> Result<Value, String> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(Value::from(text)),
        Some(tag)
            if tag.is_yaml_core_schema()
                && ["int", "float", "bool", "null"].contains(&tag.suffix.as_str()) =>
        {
            Ok(plain(text))
        }
        Some(_) => plain_tag(tag.as_ref(), "").map(|()| Value::Null),
        None if style == ScalarStyle::Plain => Ok(plain(text)),
        None => Ok(Value::from(text)),
    }
}

/// A word without quotes, as what it looks like.
fn plain(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "" | "~" | "null" => return Value::Null,
        "true" | "yes" | "on" => return Value::Bool(true),
        "false" | "no" | "off" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Value::from(whole);
    }
    let number = text.contains('.')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'));
    match text.parse::<f64>() {
        Ok(part) if number => Value::from(part),
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_configuration_is_read_with_its_anchors_and_merges() {
        let text = "base: &b {mode: manual, deny: ['sudo *']}\napprovals:\n  <<: *b\n  timeout: 45\nother: *b\n";
        assert_eq!(
            read(text),
            Ok(json!({
                "base": {"mode": "manual", "deny": ["sudo *"]},
                "approvals": {"timeout": 45, "mode": "manual", "deny": ["sudo *"]},
                "other": {"mode": "manual", "deny": ["sudo *"]},
            }))
        );
    }

    #[test]
    fn aliases_cannot_make_a_small_text_large() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            let row = vec![below; 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{row}]\n"));
        }
        let error = read(&text).unwrap_err();
        assert!(error.contains("aliases"), "{error}");
    }

    #[test]
    fn tags_that_make_objects_and_deep_nests_are_refused() {
        let error = read("a: !!python/object/apply:os.system ['id']\n").unwrap_err();
        assert!(error.contains("tag"), "{error}");
        let error = read("a: !secret x\n").unwrap_err();
        assert!(error.contains("!secret"), "{error}");
        let error = read(&"[".repeat(200)).unwrap_err();
        assert!(error.contains("nested"), "{error}");
        assert_eq!(read("a: !!str 12\n"), Ok(json!({"a": "12"})));
    }

    #[test]
    fn broken_text_is_named_with_its_line_and_none_is_null() {
        let error = read("a: 1\nb: [1\nc: 2\n").unwrap_err();
        assert!(error.contains("line"), "{error}");
        assert_eq!(read(""), Ok(json!(null)));
        assert_eq!(
            read("mode: off\nhost: '0'\n"),
            Ok(json!({"mode": false, "host": "0"}))
        );
    }
}

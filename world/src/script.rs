//! Arguments that are taken from an earlier step's result.
//!
//! A name that a subject makes up (of a background command, of a job) is only
//! known once it has been given. A script names the place instead: an object
//! `{"$from": 2, "at": "/session_id"}` stands for what the second step's
//! result holds there. Both workers fill it in here, so that it means the
//! same to both; in a scripted conversation the number is that of a result
//! among those its agent was given. It must never reach into anything but results.

use serde_json::{Map, Value};

use crate::protocol::Step;

/// The key that marks such an object; the number of a step, from one.
const FROM: &str = "$from";
/// The place in that step's result, as a JSON pointer.
const AT: &str = "at";

/// The step with the arguments its subject is to see.
#[must_use]
pub fn filled(step: &Step, texts: &[String]) -> Step {
    match step {
        Step::Call { tool, args, by } => Step::Call {
            tool: tool.clone(),
            args: value(args, texts),
            by: by.clone(),
        },
        Step::Probe { .. }
        | Step::Grant(_)
        | Step::Revoke { .. }
        | Step::Advance { .. }
        | Step::EndSession {}
        | Step::Restart(_)
        | Step::Spawn { .. } => step.clone(),
    }
}

/// The steps whose results a value is taken from.
pub fn sources(value: &Value) -> Vec<u64> {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some((step, _)) => vec![step],
            None => fields.values().flat_map(sources).collect(),
        },
        Value::Array(items) => items.iter().flat_map(sources).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn reference(fields: &Map<String, Value>) -> Option<(u64, &str)> {
    let step = fields.get(FROM)?.as_u64()?;
    let at = fields.get(AT)?.as_str()?;
    (fields.len() == 2).then_some((step, at))
}

/// A value with every such object in it filled in from the results before it.
#[must_use]
pub fn value(given: &Value, texts: &[String]) -> Value {
    match given {
        Value::Object(fields) => match reference(fields) {
            Some((step, at)) => found(step, at, texts),
            None => fields
                .iter()
                .map(|(name, field)| (name.clone(), value(field, texts)))
                .collect::<Map<_, _>>()
                .into(),
        },
        Value::Array(items) => items.iter().map(|item| value(item, texts)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => given.clone(),
    }
}

/// What a result holds; nothing, where it holds nothing or is no JSON.
fn found(step: u64, at: &str, texts: &[String]) -> Value {
    usize::try_from(step)
        .ok()
        .and_then(|step| texts.get(step.checked_sub(1)?))
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .and_then(|result| result.pointer(at).cloned())
        .unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_of_an_earlier_result_is_filled_in_wherever_it_stands() {
        let texts = [r#"{"session_id": "p1", "n": [5]}"#.to_owned()];
        let given = json!({"id": {"$from": 1, "at": "/session_id"}, "l": [{"$from": 1, "at": "/n/0"}], "k": "v"});
        assert_eq!(
            value(&given, &texts),
            json!({"id": "p1", "l": [5], "k": "v"})
        );
        assert_eq!(sources(&given), [1, 1]);
    }

    #[test]
    fn what_is_not_there_is_nothing_and_other_objects_stay() {
        let texts = ["no json".to_owned()];
        for (given, expected) in [
            (json!({"$from": 1, "at": "/x"}), Value::Null),
            (json!({"$from": 0, "at": "/x"}), Value::Null),
            (json!({"$from": 9, "at": "/x"}), Value::Null),
            (json!({"$from": 1}), json!({"$from": 1})),
            (
                json!({"$from": 1, "at": "/x", "y": 1}),
                json!({"$from": 1, "at": "/x", "y": 1}),
            ),
        ] {
            assert_eq!(value(&given, &texts), expected);
        }
    }
}

//! Answers that say what is wrong with a message, without all of the message.
//!
//! What the protocol's library says of a line it cannot read, or of parameters that do not
//! fit, carries them whole. A client that sent megabytes of them gets no megabytes back; and
//! since whoever shows or keeps such answers need not be who sent the message, nothing in
//! them draws on a screen, and what looks like a secret is masked.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use crate::{
    screen::{on_one_line, visible},
    text::redact::{self, Mask},
};

/// Answers up to this long say everything they have to say.
const BYTES_MAX: usize = 4096;
/// Letters that are left of each text in a longer one.
const TEXT_MAX: usize = 200;

/// As much of an answer as tells whether it is one of these.
#[derive(Deserialize)]
struct Answer {
    error: Option<IgnoredAny>,
}

/// The line as it goes out.
pub(super) fn shortened(line: String) -> String {
    // Other lines are told from these without being taken apart, most of them at a glance.
    let is_one = line.contains("\"error\"")
        && serde_json::from_str::<Answer>(&line).is_ok_and(|answer| answer.error.is_some());
    let parsed = is_one.then(|| serde_json::from_str::<Value>(&line).ok());
    let Some(Some(mut answer)) = parsed else {
        return line;
    };
    let Some(error) = answer["error"].as_object_mut() else {
        return line;
    };
    let text_max = match line.len() > BYTES_MAX {
        true => TEXT_MAX,
        false => BYTES_MAX,
    };
    for value in error.values_mut() {
        *value = safe(std::mem::take(value), text_max);
        let whole = value.to_string();
        // Many texts, or many levels: its beginning says what it was.
        if whole.len() > BYTES_MAX {
            *value = Value::from(told(&whole, TEXT_MAX));
        }
    }
    answer.to_string()
}

/// The same with every text in it cut, masked and unable to draw, names of fields as well.
fn safe(value: Value, text_max: usize) -> Value {
    match value {
        Value::String(text) => Value::String(told(&text, text_max)),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| safe(item, text_max));
            Value::Array(items.collect())
        }
        Value::Object(fields) => {
            let fields: Map<String, Value> = fields
                .into_iter()
                .map(|(name, value)| (on_one_line(&told(&name, text_max)), safe(value, text_max)))
                .collect();
            Value::Object(fields)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// As much of a text as is told of it.
fn told(text: &str, text_max: usize) -> String {
    // More than is told is looked through, so that no half of a secret is left.
    let beginning = first(text, BYTES_MAX);
    let masked = redact::masked(beginning, Mask::Ends);
    let told = first(&masked, text_max);
    let rest = (text.len() - beginning.len()) + (masked.len() - told.len());
    match rest {
        0 => visible(told),
        rest => format!("{}\u{2026} ({rest} bytes more)", visible(told)),
    }
}

/// So many letters of a text.
fn first(text: &str, letters: usize) -> &str {
    match text.char_indices().nth(letters) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BYTES_MAX, shortened};

    fn check(answer: &Value, told: impl FnOnce(Value)) {
        let line = shortened(answer.to_string());
        assert!(line.len() < 2 * BYTES_MAX, "{} bytes", line.len());
        told(serde_json::from_str(&line).expect("an answer"));
    }

    #[test]
    fn what_is_wrong_with_a_long_message_is_said_with_its_beginning() {
        let line = format!("{{\"a\": {}", "x".repeat(5 << 20));
        let data = json!({"line": line});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32700, "message": "Parse error", "data": data}});
        check(&answer, |told| {
            assert_eq!(
                (&told["id"], &told["error"]["code"]),
                (&json!(7), &json!(-32700))
            );
            let line = told["error"]["data"]["line"].as_str().expect("a text");
            assert!(
                line.starts_with("{\"a\": xxx") && line.ends_with("bytes more)"),
                "{line}"
            );
        });
        let many: Vec<String> = (0..50_000).map(|number| number.to_string()).collect();
        let answer =
            json!({"id": 1, "error": {"code": 1, "message": "no", "data": {"json": many}}});
        check(&answer, |told| assert!(told["error"]["data"].is_string()));
    }

    #[test]
    fn nothing_in_a_complaint_draws_or_is_a_secret() {
        let key = format!("sk-{}", "a1B2".repeat(12));
        for length in [0, 5000] {
            let line = format!(
                "{{\"a\u{202e}\u{1b}[2J\u{9b}1m\": \"{key}\", {}",
                "x".repeat(length)
            );
            let data = json!({"line": line, "na\u{202e}me": [key]});
            let answer =
                json!({"id": 1, "error": {"code": -32700, "message": "Parse error", "data": data}});
            check(&answer, |told| {
                let said = told.to_string();
                assert!(!said.contains(&key), "{said}");
                assert!(!said.contains(['\u{202e}', '\u{9b}']), "{said}");
                let line = told["error"]["data"]["line"].as_str().expect("a text");
                assert!(!line.contains('\u{1b}'), "{line:?}");
                assert!(line.contains("\\u{202e}"), "{line:?}");
                assert_eq!(told["error"]["message"], "Parse error");
            });
        }
    }

    #[test]
    fn every_other_line_goes_out_as_it_is() {
        let long = "y".repeat(3 * BYTES_MAX);
        for line in [
            json!({"id": 1, "result": {"error": long}}).to_string(),
            json!({"method": "session/update", "params": {"error": {"data": long}}}).to_string(),
            json!({"id": 1, "error": {"code": 1, "message": "short", "data": {"a": "b"}}})
                .to_string(),
            format!("[{long}"),
        ] {
            assert_eq!(shortened(line.clone()), line);
        }
    }
}

//! Answers that say what is wrong with a message, without all of the message.
//!
//! What the protocol's library says of a line it cannot read, or of parameters that do not
//! fit, carries them whole. A client that sent megabytes of them gets no megabytes back.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// Answers up to this long are sent as they are.
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
    if line.len() <= BYTES_MAX {
        return line;
    }
    // Other lines are told from these without being taken apart.
    let is_one = serde_json::from_str::<Answer>(&line).is_ok_and(|answer| answer.error.is_some());
    let parsed = is_one.then(|| serde_json::from_str::<Value>(&line).ok());
    let Some(Some(mut answer)) = parsed else {
        return line;
    };
    let Some(error) = answer["error"].as_object_mut() else {
        return line;
    };
    for value in error.values_mut() {
        cut(value);
        let whole = value.to_string();
        // Many texts, or many levels: its beginning says what it was.
        if whole.len() > BYTES_MAX {
            *value = Value::from(short(&whole));
        }
    }
    answer.to_string()
}

/// Cuts every text in it.
fn cut(value: &mut Value) {
    match value {
        Value::String(text) => *text = short(text),
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::Object(fields) => fields.values_mut().for_each(cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn short(text: &str) -> String {
    let beginning: String = text.chars().take(TEXT_MAX).collect();
    match text.len().checked_sub(beginning.len()) {
        None | Some(0) => beginning,
        Some(rest) => format!("{beginning}\u{2026} ({rest} bytes more)"),
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

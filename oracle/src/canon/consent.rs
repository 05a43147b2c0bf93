//! Rules `reason-asked` and `asked-by-own-rules`: what a model is told of a question the
//! person said yes to.

use serde_json::{Map, Value};

/// How a result says that the person was asked and said yes: before the reason
/// and after it.
const SENTENCE: (&str, &str) = (
    "Command required approval (",
    ") and was approved by the user.",
);

/// The sentence without the reason; every other text as it is.
pub fn without_reasons(tool: &str, value: &mut Value) {
    if tool != "terminal" {
        return;
    }
    let Some(Value::String(text)) = value.get_mut("approval") else {
        return;
    };
    if has_reason(text) {
        let (before, after) = SENTENCE;
        *text = format!("{before}<own>{after}");
    }
}

/// In a conversation: the result of a command without the sentence.
pub fn without_sentence(result: &mut Map<String, Value>) {
    let is_said = matches!(result.get("approval"), Some(Value::String(text)) if has_reason(text));
    if is_said && result.contains_key("exit_code") {
        result.remove("approval");
    }
}

fn has_reason(text: &str) -> bool {
    let (before, after) = SENTENCE;
    let reason = text
        .strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after));
    reason.is_some_and(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::without_reasons;

    fn seen(tool: &str, mut value: Value) -> Value {
        without_reasons(tool, &mut value);
        value
    }

    #[test]
    fn only_the_reason_goes_and_only_where_a_command_was_approved() {
        let told = |reason: &str| json!({"approval": format!("Command required approval ({reason}) and was approved by the user.")});
        assert_eq!(seen("terminal", told("a (b)")), seen("terminal", told("c")));
        assert_eq!(seen("terminal", told("")), told(""));
        assert_eq!(seen("process", told("a")), told("a"));
        for other in [
            json!({"approval": "Command was flagged (x) and auto-approved by smart approval."}),
            json!({"approval": "Command required approval (x) and was approved by the user, then interrupted."}),
            json!({"output": "Command required approval (x) and was approved by the user."}),
        ] {
            assert_eq!(seen("terminal", other.clone()), other);
        }
    }
}

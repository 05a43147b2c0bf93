//! Rule `message-ids`: how messages of conversations are numbered.
//!
//! Hermes counts the messages of all conversations together, the agent those of each from a
//! number of millions that is drawn from its id. A case's conversations are entered into
//! Hermes so that the n-th message of the c-th one, counted from none, is number c million and
//! n. So without its millions a number says which message of its conversation it is; which
//! conversation that is, is told beside it. This must never reach into other
//! tools' results, into what was said, or into numbers that are no message's.

use serde_json::Value;

/// How far apart the numbers of two conversations lie.
const APART: u64 = 1_000_000;
/// So many messages of one are told apart from those of the next.
#[expect(clippy::cast_possible_truncation, reason = "a million fits")]
pub const MESSAGES_MAX: usize = APART as usize - 1;

/// The tool whose results hold such numbers.
const TOOL: &str = "session_search";
/// The fields they stand in.
const FIELDS: [&str; 3] = ["id", "match_message_id", "around_message_id"];
/// Where the messages of a result stand, whose own fields are not looked into.
const LISTS: [&str; 4] = ["results", "messages", "bookend_start", "bookend_end"];
/// How the error begins that names one.
const NAMED: &str = "around_message_id ";

/// The result of a call with the number within its conversation for each message.
pub fn within_its_conversation(tool: &str, value: &mut Value) {
    if tool == TOOL {
        read(value);
    }
}

/// The same of everything a model was told of its calls.
pub fn within_conversations(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(within_conversations),
        Value::Object(fields) if is_result(fields) => read(value),
        Value::Object(fields) => fields.values_mut().for_each(within_conversations),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether these are the fields of such a result, of which a conversation does not say
/// which tool it is of.
fn is_result(fields: &serde_json::Map<String, Value>) -> bool {
    let mode = fields.get("mode").and_then(Value::as_str);
    matches!(mode, Some("discover" | "read" | "scroll")) && fields.contains_key("success")
        || error_of(fields).is_some()
}

fn error_of(fields: &serde_json::Map<String, Value>) -> Option<&str> {
    let error = fields.get("error").and_then(Value::as_str)?;
    error
        .strip_prefix(NAMED)
        .filter(|_| fields.contains_key("success"))
}

fn read(value: &mut Value) {
    let Value::Object(fields) = value else {
        return;
    };
    if let Some(named) = error_of(fields)
        && let Some((number, rest)) = named.split_once(' ')
        && let Some(within) = number.parse().ok().and_then(within)
    {
        let told = format!("{NAMED}{within} {rest}");
        fields.insert("error".to_owned(), Value::String(told));
    }
    for (name, field) in fields {
        if FIELDS.contains(&name.as_str()) {
            if let Some(within) = field.as_u64().and_then(within) {
                *field = Value::from(within);
            }
        } else if LISTS.contains(&name.as_str())
            && let Value::Array(items) = field
        {
            items.iter_mut().for_each(read);
        }
    }
}

/// The number within its conversation; nothing where it is that already.
fn within(id: u64) -> Option<u64> {
    (id > APART && !id.is_multiple_of(APART)).then_some(id % APART)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{within_conversations, within_its_conversation};

    fn seen(tool: &str, mut value: Value) -> Value {
        within_its_conversation(tool, &mut value);
        value
    }

    fn discovered(first: u64, text: &str) -> Value {
        let message = |id: u64| json!({"id": id, "content": text, "tool_calls": [{"id": "call_1000007", "function": {"arguments": {"id": 1_000_007}}}]});
        json!({"success": true, "mode": "discover", "count": 1_000_007, "results": [{
            "session_id": "a", "match_message_id": first + 2, "messages_before": 1_000_007,
            "bookend_start": [message(first)], "messages": [message(first + 1), message(first + 2)],
            "bookend_end": [message(first + 3)],
        }]})
    }

    #[test]
    fn a_message_is_its_number_within_its_conversation_whichever_conversation_it_is() {
        let own = discovered(1, "x");
        assert_eq!(seen("session_search", own.clone()), own);
        for before in [1_000_000, 7_000_000] {
            assert_eq!(seen("session_search", discovered(before + 1, "x")), own);
        }
        let scrolled = |id: u64| json!({"success": true, "mode": "scroll", "around_message_id": id, "messages": [{"id": id}]});
        assert_eq!(seen("session_search", scrolled(3_000_004)), scrolled(4));
        let missed = |id: u64| json!({"success": false, "error": format!("around_message_id {id} not in session_id 1000002")});
        assert_eq!(seen("session_search", missed(1_000_004)), missed(4));
    }

    #[test]
    fn another_message_is_a_difference() {
        assert_ne!(
            seen("session_search", discovered(1_000_002, "x")),
            discovered(1, "x")
        );
    }

    #[test]
    fn what_was_said_and_every_other_number_and_tool_is_left_as_it_is() {
        let told = seen("session_search", discovered(2_000_001, "message 2000003"));
        assert_eq!(told, discovered(1, "message 2000003"));
        for value in [
            json!({"id": 2_000_000}),
            json!({"id": -1_000_001}),
            json!({"id": "1000001"}),
            json!({"id": 1_000_001.5}),
            json!({"error": "around_message_id 1000001 not in session_id a"}),
            json!("around_message_id 1000001 not"),
        ] {
            assert_eq!(seen("session_search", value.clone()), value);
        }
        let other = discovered(1_000_001, "x");
        assert_eq!(seen("read_file", other.clone()), other);
    }

    #[test]
    fn in_a_conversation_only_results_of_searches_are_read() {
        let told = |first: u64, other: u64| json!({"told": [{"tool": discovered(first, "x")}, {"tool": {"id": other, "mode": "read"}}]});
        let mut value = told(1_000_001, 1_000_001);
        within_conversations(&mut value);
        assert_eq!(value, told(1, 1_000_001));
    }
}

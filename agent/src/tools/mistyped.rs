//! What is told about a value of another kind than its argument is declared to be.
//!
//! Most tools of the compared agent use a value as what it should be and tell
//! the model what their language says about it. Which sentence that is depends
//! on what a tool does with the value first; each tool knows that for itself,
//! the sentences are here.

use serde_json::Value;

use crate::{runtime::ToolResult, text::args::type_name};

/// The value was asked for something only texts have.
#[must_use]
pub fn no_attribute(value: &Value, attribute: &str) -> String {
    format!(
        "'{}' object has no attribute '{attribute}'",
        type_name(Some(value))
    )
}

/// Something was looked for in a value that holds nothing.
#[must_use]
pub fn not_iterable(value: &Value) -> String {
    format!(
        "argument of type '{}' is not iterable",
        type_name(Some(value))
    )
}

/// The value was taken for a path.
#[must_use]
pub fn no_path(value: &Value) -> String {
    format!(
        "expected str, bytes or os.PathLike object, not {}",
        type_name(Some(value))
    )
}

/// A text was searched for the value.
#[must_use]
pub fn not_sought(value: &Value) -> String {
    format!("must be str, not {}", type_name(Some(value)))
}

/// A pattern was tried on the value.
#[must_use]
pub fn not_matched(value: &Value) -> String {
    format!(
        "expected string or bytes-like object, got '{}'",
        type_name(Some(value))
    )
}

/// The value was looked up among several.
#[must_use]
pub fn unhashable(value: &Value) -> String {
    format!("unhashable type: '{}'", type_name(Some(value)))
}

/// The value was measured.
#[must_use]
pub fn no_length(value: &Value) -> String {
    format!("object of type '{}' has no len()", type_name(Some(value)))
}

/// The value was put between two texts, after its letters were looked at.
#[must_use]
pub fn not_inserted(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => format!(
            "can only concatenate str (not \"{}\") to str",
            type_name(Some(value))
        ),
        _ => not_iterable(value),
    }
}

/// A path is looked at for its home first, and then taken for one; none if the
/// value is a text.
#[must_use]
pub fn path_problem(value: &Value) -> Option<String> {
    match value {
        Value::String(_) => None,
        Value::Bool(_) | Value::Number(_) => Some(not_iterable(value)),
        Value::Null | Value::Array(_) | Value::Object(_) => Some(no_path(value)),
    }
}

/// The value was compared with a number.
#[must_use]
pub fn not_greater(value: &Value) -> String {
    format!(
        "'>' not supported between instances of '{}' and 'int'",
        type_name(Some(value))
    )
}

/// One value was added to the other.
#[must_use]
pub fn not_added(one: &Value, other: &Value) -> String {
    format!(
        "unsupported operand type(s) for +: '{}' and '{}'",
        type_name(Some(one)),
        type_name(Some(other))
    )
}

/// What reaches the model when a tool does not catch what its language says.
#[must_use]
pub fn uncaught(kind: &str, message: &str) -> ToolResult {
    ToolResult::error(&format!(
        "[TOOL_ERROR] Tool execution failed: {kind}: {message}"
    ))
}

/// The result for a text with a NUL where the system takes none.
#[must_use]
pub fn has_nul(text: &str, before: &str) -> Option<ToolResult> {
    text.contains('\0')
        .then(|| ToolResult::error(&format!("{before}embedded null byte")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{not_inserted, path_problem};

    #[test]
    fn a_path_is_a_text_and_each_other_kind_has_its_sentence() {
        assert_eq!(path_problem(&json!("t.txt")), None);
        assert_eq!(
            path_problem(&json!(1.5)).as_deref(),
            Some("argument of type 'float' is not iterable")
        );
        assert_eq!(
            path_problem(&json!(null)).as_deref(),
            Some("expected str, bytes or os.PathLike object, not NoneType")
        );
        assert_eq!(
            path_problem(&json!(["t.txt"])).as_deref(),
            Some("expected str, bytes or os.PathLike object, not list")
        );
    }

    #[test]
    fn lists_hold_something_and_are_no_text_all_the_same() {
        assert_eq!(
            not_inserted(&json!({"a": 1})),
            "can only concatenate str (not \"dict\") to str"
        );
        assert_eq!(
            not_inserted(&json!(true)),
            "argument of type 'bool' is not iterable"
        );
    }
}

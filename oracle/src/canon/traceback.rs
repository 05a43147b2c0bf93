//! Rule `own-traceback`: through which lines of its own a failing tool went.

use serde_json::Value;

/// How such a list begins.
const BEGINNING: &str = "Traceback (most recent call last):\n";

/// The result of a failed command without it; every other field as it is.
pub fn without_traceback(tool: &str, value: &mut Value) {
    let Value::Object(fields) = value else {
        return;
    };
    let is_failed = fields
        .get("error")
        .and_then(Value::as_str)
        .is_some_and(|error| error.starts_with("Failed to execute command: "));
    let is_list = fields
        .get("traceback")
        .and_then(Value::as_str)
        .is_some_and(|lines| lines.starts_with(BEGINNING));
    if tool == "terminal" && is_failed && is_list {
        fields.shift_remove("traceback");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BEGINNING, without_traceback};

    fn seen(tool: &str, mut value: Value) -> Value {
        without_traceback(tool, &mut value);
        value
    }

    #[test]
    fn only_the_lines_of_a_failed_command_go() {
        let failed = |error: &str, lines: &str| json!({"error": error, "traceback": lines, "status": "error"});
        let why = "Failed to execute command: x";
        let lines = format!("{BEGINNING}  File \"a.py\", line 1");
        assert_eq!(
            seen("terminal", failed(why, &lines)),
            json!({"error": why, "status": "error"})
        );
        for (tool, value) in [
            ("process", failed(why, &lines)),
            ("terminal", failed("something else", &lines)),
            ("terminal", failed(why, "another text")),
            ("terminal", json!({"output": lines, "error": null})),
        ] {
            assert_eq!(seen(tool, value.clone()), value);
        }
    }
}

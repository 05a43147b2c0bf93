//! A result as a person reads it.
//!
//! A model is given JSON; on a card of an editor the same is a list, a difference, or what a
//! command printed. It must leave out nothing that went wrong: what has no form of its own
//! here is shown as it is.

use serde_json::Value;

use super::keep_the_end;

/// A result for a person to read, bounded.
#[must_use]
pub fn readable(text: &str) -> String {
    // A search that is cut short says how to go on, to its model.
    let json = text
        .split_once("\n\n[Hint: Results truncated.")
        .map_or(text, |(json, _)| json);
    let mut words = serde_json::from_str(json)
        .ok()
        .and_then(|value| in_words(&value))
        .unwrap_or_else(|| text.to_owned());
    keep_the_end(&mut words);
    words
}

fn in_words(value: &Value) -> Option<String> {
    let field = |name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    match (field("output").or_else(|| field("content")), field("error")) {
        (Some(output), Some(error)) => Some(format!("{output}\n{error}")),
        (None, Some(words)) => Some(words.to_owned()),
        (Some(output), None) => Some(match status(value) {
            Some(status) => format!("{}\n{status}", output.trim_end_matches('\n')),
            None => output.to_owned(),
        }),
        (None, None) => of_no_text(value),
    }
}

/// How a command ended, if that is no success.
fn status(value: &Value) -> Option<String> {
    let code = value.get("exit_code")?.as_i64()?;
    (code != 0).then(|| format!("[exit code {code}]"))
}

/// A result of which no field is a text to be shown by itself.
fn of_no_text(value: &Value) -> Option<String> {
    if let Some(diff) = value.get("diff").and_then(Value::as_str) {
        return (!diff.is_empty()).then(|| fenced(diff));
    }
    if let Some(bytes) = value.get("bytes_written").and_then(Value::as_u64) {
        return Some(format!("{bytes} bytes written"));
    }
    if let Some(todos) = value.get("todos").and_then(Value::as_array) {
        return Some(listed(todos, todo));
    }
    if let Some(total) = value.get("total_count").and_then(Value::as_u64) {
        return found(value, total);
    }
    // A command that printed nothing.
    let said = value.get("output")?.as_str()?;
    let code = value.get("exit_code")?.as_i64()?;
    let ended = status(value).unwrap_or_else(|| "[no output]".to_owned());
    (said.is_empty() && (code != 0 || value.get("error").is_some_and(Value::is_null)))
        .then_some(ended)
}

/// A difference as a block of its own, whatever is in it.
fn fenced(diff: &str) -> String {
    block("diff", diff)
}

/// A text as a block in which every letter stands for itself: clients take what they are told
/// for Markdown, in which a name of a file could hide the lines after it.
pub(super) fn block(kind: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn listed(items: &[Value], line: impl Fn(&Value) -> Option<String>) -> String {
    let lines: Option<Vec<String>> = items.iter().map(line).collect();
    lines.unwrap_or_default().join("\n")
}

/// What a search found and what it says besides; `None` where some of it has another form.
fn found(value: &Value, total: u64) -> Option<String> {
    let array = |name: &str| value.get(name).and_then(Value::as_array);
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let mut lines = if let Some(matches) = array("matches") {
        listed(matches, a_match)
    } else if let Some(files) = array("files") {
        listed(files, |file| file.as_str().map(str::to_owned))
    } else if let Some(counts) = value.get("counts").and_then(Value::as_object) {
        let counts = counts
            .iter()
            .map(|(path, count)| format!("{path}: {count}"));
        counts.collect::<Vec<_>>().join("\n")
    } else {
        text("matches_text").unwrap_or_default().to_owned()
    };
    if lines.is_empty() {
        if total != 0 {
            return None;
        }
        "nothing found".clone_into(&mut lines);
    }
    if value.get("truncated").and_then(Value::as_bool) == Some(true) {
        lines.push_str("\n[there is more]");
    }
    for note in ["limit_reason", "warning", "_withheld", "_omitted"] {
        if let Some(words) = text(note) {
            lines.push_str(&format!("\n[{words}]"));
        }
    }
    Some(lines)
}

fn a_match(found: &Value) -> Option<String> {
    let path = found.get("path")?.as_str()?;
    let line = found.get("line")?.as_u64()?;
    let content = found.get("content")?.as_str()?;
    Some(format!("{path}:{line}: {content}"))
}

fn todo(item: &Value) -> Option<String> {
    let mark = match item.get("status")?.as_str()? {
        "completed" => "[x]",
        "in_progress" => "[>]",
        "cancelled" => "[-]",
        _ => "[ ]",
    };
    Some(format!("- {mark} {}", item.get("content")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn results_are_read_as_what_they_are() {
        let check = |result: &str, expected: &str| assert_eq!(readable(result), expected);
        check("plain", "plain");
        check(r#"{"output": "o", "error": null}"#, "o");
        check(r#"{"output": "o\n", "exit_code": 0, "error": null}"#, "o\n");
        check(
            r#"{"output": "o\n", "exit_code": 2, "error": null}"#,
            "o\n[exit code 2]",
        );
        check(
            r#"{"output": "", "exit_code": 1, "error": null}"#,
            "[exit code 1]",
        );
        check(
            r#"{"output": "", "exit_code": 0, "error": null}"#,
            "[no output]",
        );
        check(
            r#"{"output": "o", "exit_code": -1, "error": "no"}"#,
            "o\nno",
        );
        check(
            r#"{"total_count": 1, "matches": [{"path": "./a", "line": 3, "content": "x"}]}"#,
            "./a:3: x",
        );
        check(
            r#"{"total_count": 9, "files": ["a", "b"], "truncated": true}"#,
            "a\nb\n[there is more]",
        );
        check(
            "{\"total_count\": 9, \"counts\": {\"a\": 9}, \"truncated\": true}\n\n[Hint: Results truncated. Use offset=9]",
            "a: 9\n[there is more]",
        );
        check(
            r#"{"total_count": 0, "_withheld": "1 file(s) not searched"}"#,
            "nothing found\n[1 file(s) not searched]",
        );
        check(r#"{"total_count": 0, "matches": []}"#, "nothing found");
        check(
            r#"{"todos": [{"id": "1", "content": "a", "status": "completed"}, {"id": "2", "content": "b", "status": "pending"}]}"#,
            "- [x] a\n- [ ] b",
        );
        check(
            r#"{"success": true, "diff": "--- a\n+```\n"}"#,
            "````diff\n--- a\n+```\n````",
        );
        check(r#"{"bytes_written": 4, "lint": {}}"#, "4 bytes written");
    }

    #[test]
    fn what_has_another_form_is_shown_as_it_is() {
        for odd in [
            r#"{"total_count": 2, "matches": [{"path": "a"}]}"#,
            r#"{"output": "", "exit_code": 0, "status": "blocked"}"#,
            r#"{"output": 7}"#,
            "[1]",
        ] {
            assert_eq!(readable(odd), odd);
        }
    }
}

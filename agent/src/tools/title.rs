//! A call in one line for a person: what it does, and to what.

use hermitcrab_core::tool::Tool;
use serde_json::Value;

/// Letters of a line.
const LETTERS_MAX: usize = 120;

/// What a call does. Its words are the model's: whoever shows them on a
/// terminal makes them visible first.
#[must_use]
pub fn title(name: &str, arguments: &Value) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or("");
    // Arguments nobody can read say nothing about what was meant.
    if !arguments.is_object() {
        return one_line(name);
    }
    one_line(&match Tool::offered(name) {
        Some(Tool::ReadFile) => format!("Read {}", text("path")),
        Some(Tool::WriteFile) => format!("Write {}", text("path")),
        Some(Tool::Patch) => match text("path") {
            "" => "Patch files".to_owned(),
            path => format!("Edit {path}"),
        },
        Some(Tool::SearchFiles) => format!("Search {}", text("pattern")),
        Some(Tool::Terminal) => text("command").to_owned(),
        Some(Tool::ExecuteCode) => "Run a script".to_owned(),
        Some(Tool::Process) => format!("Process: {}", text("action")),
        Some(Tool::DelegateTask) => "Hand out work".to_owned(),
        Some(Tool::Todo) => "Look after the list".to_owned(),
        Some(Tool::SessionSearch) => match text("query") {
            "" => "Look at earlier conversations".to_owned(),
            words => format!("Search earlier conversations: {words}"),
        },
        Some(Tool::Memory) => format!("Memory: {}", text("action")),
        Some(Tool::SkillsList | Tool::SkillView) => format!("Skills {}", text("name")),
        Some(Tool::SkillManage) => format!("Skill {}: {}", text("name"), text("action")),
        Some(Tool::Cronjob) => format!("Jobs: {}", text("action")),
        Some(Tool::Clarify) => match text("question") {
            "" => "Ask".to_owned(),
            question => format!("Ask: {question}"),
        },
        Some(Tool::External | Tool::Converse | Tool::Directory | Tool::Undo) | None => {
            name.to_owned()
        }
    })
}

/// Text on one line, cut where it is too long for one.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > LETTERS_MAX {
        line = line.chars().take(LETTERS_MAX).collect();
        line.push('\u{2026}');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::title;
    use serde_json::{Value, json};

    #[test]
    fn a_call_says_what_it_does_and_to_what_on_one_line() {
        let check = |name: &str, arguments: Value, expected: &str| {
            assert_eq!(title(name, &arguments), expected);
        };
        check("read_file", json!({"path": "a.txt"}), "Read a.txt");
        check("patch", json!({"patch": "*** Begin"}), "Patch files");
        check("terminal", json!({"command": "a\n  b"}), "a b");
        check(
            "clarify",
            json!({"question": "which\none?"}),
            "Ask: which one?",
        );
        check("terminal", Value::Null, "terminal");
        check("mcp__x__y", json!({}), "mcp__x__y");
        let long = title("terminal", &json!({"command": "x".repeat(500)}));
        assert_eq!(long.chars().count(), 121);
    }
}

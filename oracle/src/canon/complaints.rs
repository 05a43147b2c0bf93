//! Rule `shell-complaints`: what an interactive shell without a terminal says of
//! itself, before and after the command it was started for.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What it says on finding no terminal.
const COMPLAINTS: [&str; 2] = [
    "bash: cannot set terminal process group",
    "bash: no job control in this shell",
];

/// How many lines of a greeting the log of each command was seen to begin with, by the
/// command's name in its run.
#[derive(Clone, Debug, Default)]
pub struct Greetings(BTreeMap<String, u64>);

impl Greetings {
    /// The output of a background command without what its shell said.
    pub fn taken_away(&mut self, tool: &str, value: &mut Value) {
        if tool == "process" {
            self.strip(value);
        }
    }

    fn strip(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.strip(item)),
            Value::Object(fields) => {
                let mut greeting = 0;
                for name in ["output", "output_preview"] {
                    if let Some(Value::String(text)) = fields.get_mut(name) {
                        let begun = without_greeting(text);
                        let gone = begun + u64::from(without_farewell(text));
                        count_less(fields, gone);
                        greeting = greeting.max(begun);
                    }
                }
                self.beyond_the_page(fields, greeting);
                fields.values_mut().for_each(|field| self.strip(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A page that does not show the beginning of its log counts the greeting there all
    /// the same; an earlier page may have shown it.
    fn beyond_the_page(&mut self, fields: &mut Map<String, Value>, greeting: u64) {
        let Some(Value::String(command)) = fields.get("session_id") else {
            return;
        };
        if greeting > 0 {
            self.0.insert(command.clone(), greeting);
            return;
        }
        let Some(hidden) = self.0.get(command) else {
            return;
        };
        let shown = fields.get("showing").and_then(Value::as_str);
        let shown = shown.and_then(|shown| shown.strip_suffix(" lines")?.parse::<u64>().ok());
        if let (Some(shown), Some(lines)) = (shown, fields.get_mut("total_lines"))
            && let Some(all) = lines.as_u64()
            && shown < all
        {
            *lines = all.saturating_sub(*hidden).into();
        }
    }
}

/// Takes away the first lines that are a greeting; how many were. Hermes takes them
/// out of what it reads first: where that ends between the shell's two writes, the
/// second line stays.
fn without_greeting(text: &mut String) -> u64 {
    let mut gone = 0;
    while COMPLAINTS.iter().any(|words| text.starts_with(words)) {
        *text = text
            .split_once('\n')
            .map_or_else(String::new, |(_, rest)| rest.to_owned());
        gone += 1;
    }
    gone
}

/// Takes away the last line, if it is `bash: [11: 1 (255)] tcsetattr: …`, with any
/// numbers; whether it was.
fn without_farewell(text: &mut String) -> bool {
    let ended = text.strip_suffix('\n');
    let body = ended.unwrap_or(text);
    let (before, last) = body.rsplit_once('\n').unwrap_or(("", body));
    if !is_farewell(last) {
        return false;
    }
    *text = match ended {
        Some(_) if !before.is_empty() => format!("{before}\n"),
        Some(_) | None => before.to_owned(),
    };
    true
}

fn is_farewell(line: &str) -> bool {
    line.strip_prefix("bash: [")
        .and_then(|rest| rest.split_once(')'))
        .is_some_and(|(numbers, rest)| {
            rest == "] tcsetattr: Inappropriate ioctl for device"
                && numbers
                    .chars()
                    .all(|c| c.is_ascii_digit() || ": (".contains(c))
        })
}

/// A log says how many lines it has, twice.
fn count_less(fields: &mut Map<String, Value>, gone: u64) {
    if gone == 0 {
        return;
    }
    if let Some(lines) = fields.get_mut("total_lines")
        && let Some(number) = lines.as_u64()
    {
        *lines = number.saturating_sub(gone).into();
    }
    if let Some(Value::String(shown)) = fields.get_mut("showing")
        && let Some(number) = shown.strip_suffix(" lines")
        && let Ok(number) = number.parse::<u64>()
    {
        *shown = format!("{} lines", number.saturating_sub(gone));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(tool: &str, text: &str) -> Value {
        let mut value = json!({"output": text});
        Greetings::default().taken_away(tool, &mut value);
        value["output"].clone()
    }

    #[test]
    fn what_a_shell_says_on_finding_no_terminal_is_taken_from_the_beginning_only() {
        let complaint = "bash: no job control in this shell";
        assert_eq!(seen("process", complaint), "");
        assert_eq!(seen("process", &format!("{complaint}\nx\n")), "x\n");
        assert_eq!(
            seen("process", &format!("x\n{complaint}\n")),
            format!("x\n{complaint}\n")
        );
        assert_eq!(seen("terminal", complaint), complaint);
    }

    #[test]
    fn what_a_shell_says_when_it_is_ended_is_taken_from_the_end_only() {
        let farewell = "bash: [11: 1 (255)] tcsetattr: Inappropriate ioctl for device";
        assert_eq!(seen("process", farewell), "");
        assert_eq!(seen("process", &format!("{farewell}\n")), "");
        assert_eq!(seen("process", &format!("x\n{farewell}\n")), "x\n");
        assert_eq!(seen("process", &format!("x\n{farewell}")), "x");
        for other in [
            format!("{farewell}\nx\n"),
            format!("x {farewell}"),
            "bash: [name (1)] tcsetattr: Inappropriate ioctl for device".to_owned(),
        ] {
            assert_eq!(seen("process", &other), other);
        }
        assert_eq!(seen("terminal", farewell), farewell);
    }

    #[test]
    fn a_log_counts_the_lines_that_are_left() {
        let said = "bash: [11: 1 (255)] tcsetattr: Inappropriate ioctl for device";
        let mut log =
            json!({"output": format!("a\n{said}"), "total_lines": 2, "showing": "2 lines"});
        Greetings::default().taken_away("process", &mut log);
        assert_eq!(
            log,
            json!({"output": "a", "total_lines": 1, "showing": "1 lines"})
        );
        let greeted = "bash: no job control in this shell\na";
        let mut log = json!({"output": greeted, "total_lines": 2, "showing": "2 lines"});
        Greetings::default().taken_away("process", &mut log);
        assert_eq!(
            log,
            json!({"output": "a", "total_lines": 1, "showing": "1 lines"})
        );
        let both = format!("{greeted}\n{said}");
        let mut log = json!({"output": both, "total_lines": 3, "showing": "3 lines"});
        Greetings::default().taken_away("process", &mut log);
        assert_eq!(
            log,
            json!({"output": "a", "total_lines": 1, "showing": "1 lines"})
        );
        let mut other = json!({"output": "a\nb", "total_lines": 2, "showing": "2 lines"});
        Greetings::default().taken_away("process", &mut other);
        assert_eq!(other["total_lines"], 2);
    }

    #[test]
    fn a_page_without_the_beginning_of_its_log_counts_no_greeting_that_was_seen_there() {
        let page = |command: &str, output: &str, lines: u64, shown: u64| {
            json!({"session_id": command, "output": output, "total_lines": lines,
                "showing": format!("{shown} lines")})
        };
        let greeted = "bash: no job control in this shell\na\nb";
        let mut greetings = Greetings::default();
        let mut seen = |mut value: Value| {
            greetings.taken_away("process", &mut value);
            value
        };
        assert_eq!(seen(page("one", "b", 3, 1)), page("one", "b", 3, 1));
        assert_eq!(seen(page("one", greeted, 3, 3)), page("one", "a\nb", 2, 2));
        assert_eq!(seen(page("one", "b", 3, 1)), page("one", "b", 2, 1));
        // All of it, of another command, or no page: as it is.
        assert_eq!(seen(page("one", "a\nb", 2, 2)), page("one", "a\nb", 2, 2));
        assert_eq!(seen(page("two", "b", 3, 1)), page("two", "b", 3, 1));
        let ended = json!({"session_id": "one", "output": "b", "exit_code": 0});
        assert_eq!(seen(ended.clone()), ended);
    }
}

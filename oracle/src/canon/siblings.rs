//! Rule `siblings-by-name`: how a warning names the agent that wrote a file, and when.
//!
//! This must leave which of the agents it is, as far as warnings tell them apart,
//! and whether the file was read before.

use serde_json::Value;

/// The tools that warn.
const WRITING_TOOLS: [&str; 2] = ["write_file", "patch"];
/// The field a warning stands in.
const WARNING: &str = "_warning";
const NAMED: &str = "was modified by sibling subagent '";
const WHEN: [&str; 2] = ["' at ", " \u{2014} after this agent's last read at "];
const CLOCK: usize = "12:00:00".len();

/// The agents a run's warnings have named so far.
#[derive(Clone, Debug, Default)]
pub struct Siblings(Vec<String>);

impl Siblings {
    /// The warning of a call with numbers for names and without moments.
    pub fn numbered(&mut self, tool: &str, value: &mut Value) {
        if WRITING_TOOLS.contains(&tool) {
            self.warning(value);
        }
    }

    fn warning(&mut self, value: &mut Value) {
        if let Some(Value::String(text)) = value.get_mut(WARNING) {
            *text = self.plain(text);
        }
    }

    fn plain(&mut self, text: &str) -> String {
        let mut parts = text.split(NAMED);
        let mut told = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            told.push_str(NAMED);
            let Some((name, rest)) = part.split_once('\'') else {
                told.push_str(part);
                continue;
            };
            told.push_str(&format!("<sibling {}>", self.number(name)));
            told.push_str(&without_moments(&format!("'{rest}")));
        }
        told
    }

    fn number(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }) + 1
    }
}

fn without_moments(text: &str) -> String {
    let mut told = String::new();
    let mut left = text;
    for before in WHEN {
        let Some((_, rest)) = left
            .strip_prefix(before)
            .and_then(|after| after.split_at_checked(CLOCK))
            .filter(|(moment, _)| is_clock(moment))
        else {
            break;
        };
        told.push_str(before);
        told.push_str("<moment>");
        left = rest;
    }
    told + left
}

fn is_clock(text: &str) -> bool {
    text.split(':').count() == 3
        && text
            .split(':')
            .all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Siblings;

    fn run(names: [&str; 3], when: &str) -> Vec<serde_json::Value> {
        let mut siblings = Siblings::default();
        let mut seen = Vec::new();
        for (name, rest) in names.into_iter().zip([
            "' but this agent never read it.".to_owned(),
            format!("' at {when} \u{2014} after this agent's last read at {when}. Re-read"),
            "' but this agent never read it.".to_owned(),
        ]) {
            let text = format!("/w/a was modified by sibling subagent '{name}{rest}");
            let mut value = json!({ "_warning": text });
            siblings.numbered("write_file", &mut value);
            seen.push(value);
        }
        seen
    }

    #[test]
    fn siblings_are_told_apart_and_neither_named_nor_timed() {
        let one = run(["case", "child-a", "case"], "12:00:00");
        assert_eq!(one, run(["agent0", "agent2", "agent0"], "23:59:59"));
        assert_ne!(one, run(["agent0", "agent2", "agent2"], "12:00:00"));
        assert_ne!(one, run(["case", "child-a", "case"], "noon"));
    }

    #[test]
    fn nothing_else_is_touched() {
        for kept in [
            json!({"_warning": "/w/a was not read by this agent."}),
            json!({"content": "was modified by sibling subagent 'x' at 12:00:00"}),
            json!({"_warning": "was modified by sibling subagent 'x"}),
        ] {
            let mut value = kept.clone();
            Siblings::default().numbered("patch", &mut value);
            assert_eq!(value, kept);
        }
        let mut other = json!({"_warning": "a was modified by sibling subagent 'x'"});
        Siblings::default().numbered("read_file", &mut other);
        assert_eq!(
            other,
            json!({"_warning": "a was modified by sibling subagent 'x'"})
        );
    }
}

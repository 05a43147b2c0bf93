//! Rule `may-not-fork`: what shells say while there is no room for another process.
//!
//! How often they say it, whether any of it arrives before the command is over, where two of
//! them cut into each other's lines and whether their waiting outlasts the command's time is
//! chance, and different at each run.

use serde_json::Value;

/// What a shell says behind its own name, while it tries again and when it gives up.
const SAID: [&str; 2] = [
    ": fork: retry: Resource temporarily unavailable",
    ": fork: Resource temporarily unavailable",
];
/// Between what is left of an output that was too long.
const LEFT_OUT: [&str; 2] = ["... [OUTPUT TRUNCATED - ", " total] ..."];
/// The last line of a command whose time was over.
const TIMED_OUT: [&str; 2] = ["[Command timed out after ", "s]"];
/// The code that goes with it.
const TIMED_OUT_CODE: u64 = 124;

/// A foreground command's result without it. One in which no shell says it as a whole line
/// stays as it is.
pub fn without_forks(tool: &str, value: &mut Value) {
    let Value::Object(fields) = value else {
        return;
    };
    let Some(Value::String(output)) = fields.get("output") else {
        return;
    };
    let sentences = sentences(output);
    if tool != "terminal" || sentences.is_empty() {
        return;
    }
    let mut lines: Vec<&str> = output.split('\n').collect();
    let outlasted = fields.get("exit_code").and_then(Value::as_u64) == Some(TIMED_OUT_CODE)
        && lines.last().is_some_and(|line| is_like(line, TIMED_OUT));
    if outlasted {
        lines.pop();
        without_blank_at_end(&mut lines);
    }
    let mut kept = Vec::new();
    let mut behind_gap = false;
    for line in lines {
        if is_like(line, LEFT_OUT) {
            without_blank_at_end(&mut kept);
            behind_gap = true;
        } else if line.is_empty() && behind_gap {
            behind_gap = false;
        } else if line.is_empty() || !is_pieces(line, &sentences) {
            kept.push(line);
        }
    }
    let kept = kept.join("\n");
    fields.insert("output".to_owned(), Value::String(kept));
    if outlasted {
        fields.insert("exit_code".to_owned(), Value::from(0));
    }
}

/// The whole lines in which a shell says it, each once.
fn sentences(output: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in output.split('\n') {
        let name = SAID.iter().find_map(|said| line.strip_suffix(said));
        let is_said = name.is_some_and(|name| !name.is_empty() && !name.contains([' ', ':']));
        if is_said && !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Whether a line is nothing but beginnings and ends of the sentences, one after the other.
fn is_pieces(line: &str, sentences: &[&str]) -> bool {
    let mut rest = line;
    while !rest.is_empty() {
        let longest = sentences
            .iter()
            .flat_map(|sentence| [common_start(rest, sentence), end_at_start(rest, sentence)])
            .max()
            .unwrap_or(0);
        match rest.get(longest..) {
            Some(behind) if longest > 0 => rest = behind,
            Some(_) | None => return false,
        }
    }
    true
}

/// How many bytes both begin with.
fn common_start(line: &str, sentence: &str) -> usize {
    line.bytes()
        .zip(sentence.bytes())
        .take_while(|(one, two)| one == two)
        .count()
}

/// How long the longest end of the sentence is that the line begins with.
fn end_at_start(line: &str, sentence: &str) -> usize {
    sentence
        .char_indices()
        .filter_map(|(at, _)| sentence.get(at..))
        .find(|end| line.starts_with(end))
        .map_or(0, str::len)
}

fn is_like(line: &str, [begins, ends]: [&str; 2]) -> bool {
    line.strip_prefix(begins)
        .is_some_and(|rest| rest.ends_with(ends))
}

fn without_blank_at_end(lines: &mut Vec<&str>) {
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RETRY: &str = "environment: fork: retry: Resource temporarily unavailable";

    fn seen(tool: &str, output: &str, exit_code: i32) -> (String, i64) {
        let mut value = json!({"output": output, "exit_code": exit_code, "error": null});
        without_forks(tool, &mut value);
        (
            value["output"].as_str().unwrap().to_owned(),
            value["exit_code"].as_i64().unwrap(),
        )
    }

    fn left(output: &str) -> String {
        seen("terminal", output, 0).0
    }

    #[test]
    fn however_often_and_however_cut_a_shell_says_that_it_may_not_fork_nothing_is_left() {
        let given_up = "/usr/bin/bash: fork: Resource temporarily unavailable";
        for output in [
            RETRY.to_owned(),
            format!("{RETRY}\n{RETRY}\n{given_up}"),
            format!("{RETRY}\n{RETRY}environment: fork: retry: Resource tempora\nrily unavailable"),
            format!("environment: {RETRY}\n{RETRY}\nfork: retry: Resource temporarily unavailable"),
            format!("{RETRY}\nenvironment: fo"),
            format!(
                "{RETRY}\nenvironment: fo\n\n... [OUTPUT TRUNCATED - 25,394 chars omitted out \
                 of 75,292 total] ...\n\nmporarily unavailable\n{RETRY}"
            ),
        ] {
            assert_eq!(left(&output), "", "{output}");
        }
    }

    #[test]
    fn all_else_that_is_said_stays() {
        assert_eq!(left(&format!("a\n{RETRY}\n\nb\n")), "a\n\nb\n");
        for other in [
            "environment: fork: retry: Cannot allocate memory",
            "says: that: fork: retry: Resource temporarily unavailable",
            ": fork: retry: Resource temporarily unavailable",
            "environment: fo",
            "ls: cannot open: Resource temporarily unavailable",
        ] {
            assert_eq!(left(other), other);
        }
        let beside = format!("{RETRY}\nenvironments: fork: retry: no\nx {RETRY}");
        assert_eq!(
            left(&beside),
            format!("environments: fork: retry: no\nx {RETRY}")
        );
        assert_eq!(seen("process", RETRY, 0).0, RETRY);
    }

    #[test]
    fn a_time_that_was_over_is_left_out_only_where_a_shell_waited_for_room() {
        let note = "[Command timed out after 8s]";
        let outlasted = format!("{RETRY}\n\n{note}");
        assert_eq!(seen("terminal", &outlasted, 124), (String::new(), 0));
        let unheard = format!("{RETRY}x\n\n{note}");
        assert_eq!(seen("terminal", &unheard, 124), (unheard.clone(), 124));
        assert_eq!(seen("terminal", RETRY, 1), (String::new(), 1));
        assert_eq!(seen("terminal", RETRY, 124), (String::new(), 124));
        assert_eq!(seen("terminal", note, 124), (note.to_owned(), 124));
    }
}

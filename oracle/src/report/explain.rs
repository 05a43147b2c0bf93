//! One case, told to a person: world, calls, both traces side by side, and
//! the relation's reasoning. A case may come from anywhere and hold anything, so whatever a
//! terminal would obey is told by its number.

use std::fmt::Write as _;

use bisim_world::protocol::{RawTrace, StepTrace};

use crate::case::{Case, Must};
use crate::report::row::{name, seen};
use crate::result::CaseResult;

/// The longest text shown of one field.
const SHOWN_CHARS_MAX: usize = 400;
/// The width of one side.
const SIDE_CHARS: usize = 58;

/// Writes the explanation.
#[must_use]
pub fn render(case: &Case, result: &CaseResult) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "case {}  (suite {})", case.id, case.suite);
    if !case.comment.is_empty() {
        let _ = writeln!(out, "  {}", case.comment);
    }
    let source = &case.source;
    let from = [&source.from, &source.row, &source.note].map(String::as_str);
    let from = from.into_iter().filter(|word| !word.is_empty());
    let _ = writeln!(out, "  from {}", from.collect::<Vec<_>>().join(" "));
    let _ = writeln!(out, "\nworld");
    let _ = writeln!(
        out,
        "  cwd {}, context {}, user {}",
        case.cwd(),
        case.job.context.word(),
        as_written(&case.job.user)
    );
    for file in case.job.world.iter().flat_map(|world| &world.files) {
        let _ = writeln!(out, "  file {} {}", file.path, cut(&as_written(&file.kind)));
    }
    if case.job.held.is_empty() {
        let _ = writeln!(
            out,
            "  no grants beyond reading the workspace and running in the view"
        );
    }
    for held in &case.job.held {
        let _ = writeln!(out, "  grant {}: {} on {}", held.id, held.verb, held.on);
    }
    for rule in &case.job.rules {
        let about = [&rule.on, &rule.named, &rule.host];
        let about = about.into_iter().flatten().next();
        let _ = writeln!(
            out,
            "  rule {}: {} {} on {}",
            rule.id,
            rule.decision.word(),
            rule.verbs.join(", "),
            about.map_or("nothing", String::as_str)
        );
    }
    for (key, value) in &case.job.settings {
        let _ = writeln!(out, "  {key} = {value}");
    }
    for (index, step) in case.job.script.iter().enumerate() {
        let text = serde_json::to_string(step).unwrap_or_default();
        let _ = writeln!(out, "\nstep {}: {}", index + 1, cut(&text));
        let side = |trace: &Option<RawTrace>| match trace
            .as_ref()
            .and_then(|trace| trace.steps.get(index))
        {
            Some(step) => tell(step),
            None => vec!["(not reached)".to_owned()],
        };
        beside(&mut out, &side(&result.hermes), &side(&result.agent));
        for judged in result
            .judgement
            .iter()
            .flat_map(|judgement| &judgement.steps)
        {
            if judged.step == index {
                let _ = writeln!(out, "  => {:?}: {}", judged.finding, judged.why);
                let _ = writeln!(out, "     fingerprint: {}", judged.fingerprint());
            }
        }
    }
    let _ = writeln!(out, "\nwhole run");
    let whole = |trace: &Option<RawTrace>| match trace {
        Some(trace) => {
            let mut lines = vec![format!("end: {:?}", trace.end)];
            lines.extend(trace.effects.iter().map(crate::holdings::describe));
            lines.extend(
                trace
                    .network
                    .iter()
                    .map(|net| format!("network {}/{}", net.protocol, net.port)),
            );
            lines.extend(
                trace
                    .tripwires
                    .iter()
                    .map(|line| format!("tripwire {line}")),
            );
            lines.push(format!("{:.1} ms CPU", trace.cpu_us as f64 / 1000.0));
            lines
        }
        None => vec!["(no trace)".to_owned()],
    };
    beside(&mut out, &whole(&result.hermes), &whole(&result.agent));
    let expected = match case.expect.agent {
        Must::MustPermit => "that it permits",
        Must::MustDeny => "that it denies",
        Must::Either => "either",
    };
    let reason = match case.expect.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let _ = writeln!(out, "\nexpected of the agent: {expected}{reason}");
    for line in crate::verdict::stated::lines(&case.expect) {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "verdict: {}", result.label);
    let _ = writeln!(out, "  {}", result.verdict.why);
    for (number, attempt) in result.attempts.iter().enumerate() {
        let _ = writeln!(
            out,
            "  run {}: {}: {}",
            number + 1,
            attempt.label,
            attempt.why
        );
    }
    seen(&out)
}

/// A part of a case in the words of a suite.
fn as_written(part: &impl serde::Serialize) -> String {
    match serde_json::to_value(part) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    }
}

fn tell(step: &StepTrace) -> Vec<String> {
    let mut lines = vec![format!("{:?}", step.outcome)];
    for question in &step.questions {
        lines.push(format!("asked: {}", cut(&question.shown)));
        lines.extend(question.meanwhile.iter().map(|happened| {
            let lacks = match happened.lacks.as_str() {
                "" => String::new(),
                lacks => format!(" (did not happen: {lacks})"),
            };
            format!("meanwhile: {}{lacks}", as_written(&happened.what))
        }));
        lines.push(format!("answered: {}", question.answer));
    }
    if !step.text.is_empty() {
        lines.push(cut(&step.text));
    }
    if !step.answer.is_null() {
        lines.push(cut(&step.answer.to_string()));
    }
    lines.extend(step.effects.iter().map(crate::holdings::describe));
    lines
}

fn cut(text: &str) -> String {
    if text.chars().count() <= SHOWN_CHARS_MAX {
        text.to_owned()
    } else {
        let head: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        format!("{head} ...")
    }
}

fn beside(out: &mut String, left: &[String], right: &[String]) {
    let _ = writeln!(out, "  {:SIDE_CHARS$} | hermitcrab", "hermes");
    let (left, right) = (wrap(left), wrap(right));
    for index in 0..left.len().max(right.len()) {
        let line = |side: &[String]| side.get(index).cloned().unwrap_or_default();
        let _ = writeln!(out, "  {:SIDE_CHARS$} | {}", line(&left), line(&right));
    }
}

fn wrap(lines: &[String]) -> Vec<String> {
    let mut wrapped = Vec::new();
    for line in lines {
        for part in line.split('\n') {
            let clean: Vec<char> = name(part).chars().collect();
            if clean.is_empty() {
                continue;
            }
            wrapped.extend(
                clean
                    .chunks(SIDE_CHARS)
                    .map(|chunk| chunk.iter().collect::<String>()),
            );
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::tests::result;
    use crate::verdict::Kind;

    #[test]
    fn what_a_terminal_would_obey_is_told_by_its_number_wherever_it_stands() {
        let hostile = "a\u{1b}[31m\u{9b}31m\u{202e}\u{7}b";
        let text = serde_json::json!({"schema": 1, "suite": "s", "description": "d", "cases": [{
            "id": "one", "comment": hostile,
            "world": {"files": [{"path": format!("/home/u/{hostile}"), "text": hostile}]},
            "script": [{"call": {"tool": "read_file", "args": {"path": hostile}}}],
        }]});
        let text = text.to_string();
        let cases = crate::suite::alone(std::path::Path::new("s.json"), &text);
        let result = result("one", Kind::Different, hostile);
        let told = render(&cases.unwrap()[0], &result);
        assert!(
            told.contains("  a\\u{1b}[31m\\u{9b}31m\\u{202e}\\u{7}b\n"),
            "{told}"
        );
        let obeyed = |letter: char| letter != '\n' && letter.is_control() || letter == '\u{202e}';
        assert!(!told.contains(obeyed), "{told}");
    }
}

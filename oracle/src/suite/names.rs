//! Names that only look right: a tool nobody has, an argument with a slip in it.
//!
//! Both subjects refuse such a call alike, so a case that is about something else would pass
//! for ever and show nothing.

use std::sync::LazyLock;

use bisim_world::protocol::Step;
use hermitcrab::config::keys::nearest;

use crate::case::Case;

/// How the names of tools of servers begin.
const OF_A_SERVER: &str = "mcp__";
/// Arguments that Hermes takes besides those it offers.
const ALSO: [(&str, &str); 1] = [("cronjob", "skill")];
/// A word this long may have two slips in it.
const LONG: usize = 6;

/// A tool and its arguments.
type Form = (String, Vec<String>);

/// What a case calls that is not there.
pub(super) fn lint(case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    for step in &case.job.script {
        let Step::Call { tool, args, .. } = step else {
            continue;
        };
        if tool.starts_with(OF_A_SERVER) {
            continue;
        }
        let Some((_, declared)) = FORMS.iter().find(|(name, _)| name == tool) else {
            let names = FORMS.iter().map(|(name, _)| name.as_str());
            let meant = match nearest(tool, names.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            };
            wrong.push(format!("calls the unknown tool `{tool}`; {meant}"));
            continue;
        };
        let Some(given) = args.as_object() else {
            continue;
        };
        for name in given.keys().filter(|name| !declared.contains(name)) {
            let meant = declared
                .iter()
                .find(|known| !given.contains_key(*known) && is_slip(name, known));
            if let Some(meant) = meant
                && !ALSO.contains(&(tool.as_str(), name.as_str()))
            {
                wrong.push(format!(
                    "gives `{tool}` the unknown argument `{name}`; did you mean `{meant}`?"
                ));
            }
        }
    }
    wrong
}

/// The tools both subjects have, and what they take. Made once: there are ten thousand cases.
static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let offers = hermitcrab::chat::offers(true).into_iter();
    let form = offers.map(|offer| {
        let arguments = offer.parameters.get("properties");
        let names = arguments.and_then(|arguments| arguments.as_object());
        let names = names.map(|names| names.keys().cloned().collect());
        (offer.name.to_string(), names.unwrap_or_default())
    });
    form.collect()
});

/// Whether one word is the other with a letter or two wrong, missing or too many.
fn is_slip(word: &str, meant: &str) -> bool {
    let most = if meant.len() < LONG { 1 } else { 2 };
    let meant: Vec<char> = meant.chars().collect();
    let mut row: Vec<usize> = (0..=meant.len()).collect();
    for (at, letter) in word.chars().enumerate() {
        let mut before = at;
        let mut left = at + 1;
        let mut next = vec![left];
        for (above, other) in row.iter().skip(1).zip(&meant) {
            let same = before + usize::from(letter != *other);
            left = same.min(above + 1).min(left + 1);
            next.push(left);
            before = *above;
        }
        row = next;
    }
    row.last().is_some_and(|distance| *distance <= most)
}

/// What the reader of JSON complains of, without the place, which is told in front.
pub(super) fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    text.replace(
        "no variant of enum FileKind found in flattened data",
        "a file of a world needs one of `text`, `base64`, `dir`, `symlink`, `hardlink`, `fifo`, \
         `sparse` and `mount`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Defaults;

    fn said(tool: &str, args: &str) -> String {
        let file = format!(
            r#"{{"id": "a", "script": [{{"call": {{"tool": "{tool}", "args": {args}}}}}]}}"#
        );
        let file = serde_json::from_str(&file).unwrap();
        lint(&Case::resolve("s", &Defaults::default(), file)).join("; ")
    }

    #[test]
    fn a_tool_nobody_has_and_an_argument_with_a_slip_in_it_are_found() {
        for (tool, args, part) in [
            ("termnal", r#"{"command": "x"}"#, "did you mean `terminal`?"),
            ("zzz", "{}", "there are terminal, process,"),
            (
                "terminal",
                r#"{"comand": "x"}"#,
                "argument `comand`; did you mean `command`?",
            ),
            ("terminal", r#"{"command": "x", "tmeout": 3}"#, "`timeout`"),
            ("write_file", r#"{"pth": "x", "content": "y"}"#, "`path`"),
        ] {
            let said = said(tool, args);
            assert!(said.contains(part), "{tool} {args}: {said}");
        }
    }

    #[test]
    fn what_is_there_or_is_meant_to_be_strange_is_no_slip() {
        for (tool, args) in [
            ("terminal", r#"{"command": "x", "timeout": 3}"#),
            ("terminal", r#"{"command": "x", "commands": 3}"#),
            ("terminal", r#"{"no_such_argument": 3}"#),
            ("terminal", "[]"),
            ("cronjob", r#"{"skill": "x"}"#),
            ("mcp__desk__no_such_tool", "{}"),
        ] {
            assert_eq!(said(tool, args), "", "{tool} {args}");
        }
    }
}

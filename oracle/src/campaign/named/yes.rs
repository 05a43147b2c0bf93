//! What is told, and remembered, of a person's yes that both asked for.

use bisim_world::protocol::{FsEffect, RawTrace};
use serde_json::Value;

use crate::canon;
use crate::case::Case;
use crate::holdings::below;

/// Where Hermes keeps what its user always allows.
const HERMES_SETTINGS: &str = "/home/u/.hermes/config.yaml";

/// The field that tells of a yes.
const YES: &str = "approval";
/// How long a script took.
const TOOK: &str = "duration_seconds";

/// What was told of a step: to Hermes' model, to the agent's, and what Hermes alone changed.
pub(super) struct Seen<'s> {
    pub(super) told: &'s Value,
    pub(super) heard: &'s Value,
    pub(super) more: &'s [FsEffect],
}

/// The rule that names a difference; the agent changed nothing that Hermes did not.
pub(super) fn rule(
    case: &Case,
    (hermes, agent): (&RawTrace, &RawTrace),
    at: usize,
    &Seen { told, heard, more }: &Seen<'_>,
) -> Option<&'static str> {
    let is_remembered = !more.is_empty() && more.iter().all(|e| e.path == HERMES_SETTINGS);
    // Of a script nobody is told that the user agreed, and it is remembered all the same.
    let both_always = is_always(hermes, at) && is_always(agent, at);
    let same = canon::same_value(&without(told, TOOK), &without(heard, TOOK));
    if same && is_remembered && both_always {
        return Some("remembers-the-yes-in-its-settings");
    }
    // Both tell the model of a person's yes, each in its words, where both asked; the
    // questions themselves are compared.
    let is_told = told.get(YES).is_some();
    if !is_told || !canon::same_value(&without(told, YES), &without(heard, YES)) {
        return None;
    }
    if more.is_empty() {
        return Some("told-of-the-yes");
    }
    // What is remembered is in each one's own files; the agent's are not of the world.
    if is_remembered {
        return Some("remembers-the-yes-in-its-settings");
    }
    // The yes was to a command; a place that was granted to nobody is not in its view.
    let far = more.iter().all(|effect| !below(&effect.path, case.cwd()));
    far.then_some("yes-to-what-is-out-of-reach")
}

/// An answer without one of its fields.
fn without(answer: &Value, field: &str) -> Value {
    let mut rest = answer.clone();
    if let Some(rest) = rest.as_object_mut() {
        rest.shift_remove(field);
    }
    rest
}

/// Whether the user said "always" to what they were asked in this step.
fn is_always(trace: &RawTrace, at: usize) -> bool {
    let step = trace.steps.get(at);
    let mut questions = step.into_iter().flat_map(|step| &step.questions);
    questions.any(|question| question.answer == "always")
}

#[cfg(test)]
mod tests {
    use bisim_world::protocol::QuestionTrace;
    use serde_json::json;

    use super::super::{
        service::rule,
        testing::{judgement, result, trace},
    };
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    fn check(
        name: &str,
        (told, more): (Value, &[&str]),
        (heard, other): (Value, &[&str]),
        expected: Option<&str>,
    ) {
        let file = Specimen::named(name).unwrap().case_file().unwrap();
        let case = Case::resolve("generated", &Defaults::default(), file);
        let step = judgement(0);
        let (hermes, agent) = (trace(1, &told, more), trace(1, &heard, other));
        let result = result(&case, &step, hermes, agent);
        assert_eq!(rule(&case, &result, &step), expected, "{name} {told}");
    }

    #[test]
    fn a_note_of_the_yes_is_named_and_nothing_beside_it() {
        let noted = json!({"output": "", "approval": "approved by the user"});
        let plain = json!({"output": ""});
        let other = json!({"output": "else"});
        let both = json!({"output": "", "approval": "approved, in other words"});
        let both_and_more = json!({"output": "else", "approval": "approved"});
        let (near, far) = ("/home/u/proj/sq/a.txt", "/srv/data/db.sqlite");
        let settings = "/home/u/.hermes/config.yaml";
        let remembers = Some("remembers-the-yes-in-its-settings");
        for (more, agents, agent, expected) in [
            (&[][..], &plain, &[][..], Some("told-of-the-yes")),
            (&[near][..], &plain, &[near][..], Some("told-of-the-yes")),
            (&[][..], &other, &[][..], None),
            (&[near][..], &plain, &[][..], None),
            (&[][..], &plain, &[near][..], None),
            (
                &[far][..],
                &plain,
                &[][..],
                Some("yes-to-what-is-out-of-reach"),
            ),
            (&[][..], &both, &[][..], Some("told-of-the-yes")),
            (&[][..], &both_and_more, &[][..], None),
            (&[settings][..], &both, &[][..], remembers),
            (&[settings, near][..], &both, &[][..], None),
            (&[near][..], &both, &[][..], None),
            (
                &[far][..],
                &both,
                &[][..],
                Some("yes-to-what-is-out-of-reach"),
            ),
        ] {
            check(
                "sequence:1+c8.0",
                (noted.clone(), more),
                (agents.clone(), agent),
                expected,
            );
        }
    }

    #[test]
    fn a_yes_for_good_to_a_script_is_remembered_where_both_were_told_so_and_only_there() {
        let named = |(hermes, agent): (&str, &str), more: &[&str], heard: &Value| {
            let name = "sequence:3+c19.0";
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let step = judgement(0);
            let asked = |mut trace: RawTrace, answer: &str| {
                trace.steps[0].questions = vec![QuestionTrace {
                    shown: String::new(),
                    answer: answer.to_owned(),
                    meanwhile: Vec::new(),
                }];
                trace
            };
            let told = json!({"status": "success", "output": "", "duration_seconds": 0.28});
            let hermes = asked(trace(1, &told, more), hermes);
            let agent = asked(trace(1, heard, &[]), agent);
            rule(&case, &result(&case, &step, hermes, agent), &step)
        };
        let settings = "/home/u/.hermes/config.yaml";
        let (told, other) = (
            json!({"status": "success", "output": "", "duration_seconds": 0.05}),
            json!({"status": "success", "output": "else", "duration_seconds": 0.28}),
        );
        let always = ("always", "always");
        let remembers = Some("remembers-the-yes-in-its-settings");
        assert_eq!(named(always, &[settings], &told), remembers);
        for (answers, more, heard) in [
            (("always", "once"), &[settings][..], &told),
            (("session", "always"), &[settings], &told),
            (always, &[], &told),
            (always, &[settings, "/home/u/proj/sq/a.txt"], &told),
            (always, &[settings], &other),
        ] {
            assert_eq!(
                named(answers, more, heard),
                None,
                "{answers:?} {more:?} {heard}"
            );
        }
    }
}

//! The canonical form of what was seen of one subject.
//!
//! A pending question, a timeout and a hang are observations like any other,
//! never missing data.

use std::cell::LazyCell;

use bisim_world::protocol::{
    End, FsEffect, Happened, NetAttempt, RawTrace, Step, StepOutcome, StepTrace,
};
use serde::Serialize;
use serde_json::Value;

use crate::canon;

/// A secret planted in the worlds, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary<'c> {
    /// The text that must not leave.
    pub text: &'c str,
    /// The file that holds it.
    pub path: &'c str,
}

/// What became of one step, in one scale for both subjects and all kinds of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The call ran and its effects stand.
    Ran,
    /// The call ran and its effects were thrown away.
    Discarded,
    /// Refused unasked.
    Refused,
    /// Asked, and the answer was no.
    AskedRefused,
    /// Waits for an answer.
    Pending,
    /// Ran and failed by itself.
    ToolError,
    /// The subject raised.
    Raised,
    /// The subject knows no such step.
    Unsupported,
    /// The deadline passed in this step.
    Hung,
    /// The subject died in this step.
    Died,
    /// A probe's answer.
    ProbePermit,
    /// A probe's answer.
    ProbeAsk,
    /// A probe's answer.
    ProbeDeny,
    /// A probe of a function that decides nothing.
    ProbeValue,
}

/// How far a step got, in the order deny, ask, act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It was refused.
    Deny,
    /// It was asked for and did not happen.
    Ask,
    /// It happened.
    Act,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 14] = [
        Self::Ran,
        Self::Discarded,
        Self::Refused,
        Self::AskedRefused,
        Self::Pending,
        Self::ToolError,
        Self::Raised,
        Self::Unsupported,
        Self::Hung,
        Self::Died,
        Self::ProbePermit,
        Self::ProbeAsk,
        Self::ProbeDeny,
        Self::ProbeValue,
    ];

    /// Its word in vectors and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Discarded => "discarded",
            Self::Refused => "refused",
            Self::AskedRefused => "asked-refused",
            Self::Pending => "pending",
            Self::ToolError => "tool-error",
            Self::Raised => "raised",
            Self::Unsupported => "unsupported",
            Self::Hung => "hung",
            Self::Died => "died",
            Self::ProbePermit => "permit",
            Self::ProbeAsk => "ask",
            Self::ProbeDeny => "deny",
            Self::ProbeValue => "value",
        }
    }

    /// How far the step got.
    #[must_use]
    pub const fn level(self) -> Level {
        match self {
            Self::Ran
            | Self::ToolError
            | Self::Raised
            | Self::Unsupported
            | Self::Hung
            | Self::Died
            | Self::ProbePermit
            | Self::ProbeValue => Level::Act,
            Self::Discarded | Self::AskedRefused | Self::Pending | Self::ProbeAsk => Level::Ask,
            Self::Refused | Self::ProbeDeny => Level::Deny,
        }
    }
}

/// One step, canonical.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepSeen {
    /// What became of it.
    pub class: Class,
    /// A refusal's stable code, or a fault's text.
    pub code: String,
    /// What was shown and answered.
    pub questions: Vec<(String, String)>,
    /// Of each question in turn, what happened while it waited.
    pub meanwhile: Vec<Vec<Happened>>,
    /// What the model or the prober was given.
    pub value: Value,
    /// What the step changed.
    pub delta: Vec<FsEffect>,
    /// The same part by part, to the step's end; empty where it was seen as a whole.
    pub parts: Vec<PartSeen>,
    /// Paths of the canaries found in the text that were not in the arguments.
    pub canaries: Vec<String>,
}

impl StepSeen {
    /// Whether any question was answered with yes.
    #[must_use]
    pub fn asked_yes(&self) -> bool {
        self.questions.iter().any(|(_, answer)| is_yes(answer))
    }
}

/// One part of a step, canonical.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartSeen {
    /// How many of the step's questions had been put by its end.
    pub asked: usize,
    /// What it changed.
    pub delta: Vec<FsEffect>,
}

/// A whole run, canonical.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observation {
    /// One per step of the script that was started.
    pub steps: Vec<StepSeen>,
    /// What changed after the last step (left-over processes).
    pub late: Vec<FsEffect>,
    /// The tree at the end.
    pub effects: Vec<FsEffect>,
    /// What reached the sink.
    pub network: Vec<NetAttempt>,
    /// Programs that stand in for the world outside.
    pub tripwires: Vec<String>,
}

/// The answers that mean yes, in either subject's words. Every other answer is no.
#[must_use]
pub fn is_yes(answer: &str) -> bool {
    matches!(
        answer,
        "once" | "session" | "always" | "allow_once" | "allow_session" | "allow_always" | "yes"
    )
}

/// Brings a trace into canonical form. Total: a cut trace ends in a hung or
/// dead step.
#[must_use]
pub fn observe(script: &[Step], trace: &RawTrace, canaries: &[Canary<'_>]) -> Observation {
    let mut steps = Vec::with_capacity(script.len());
    let mut before: &[FsEffect] = &[];
    let mut names = canon::Names::default();
    let mut siblings = canon::Siblings::default();
    let mut greetings = canon::Greetings::default();
    for (step, seen) in script.iter().zip(&trace.steps) {
        let mut one = observe_step(step, seen, canaries);
        let mut rules = |tool: &str, value: &mut Value| {
            canon::without_own_words(tool, value, &mut names, &mut siblings, &mut greetings);
        };
        match step {
            Step::Call { tool, .. } => rules(tool, &mut one.value),
            Step::Probe { name, .. } if name == canon::CONVERSATION => {
                canon::each_result(&mut one.value, &mut rules);
                canon::without_own(&mut one.value, &mut names);
            }
            Step::Probe { .. }
            | Step::Grant(_)
            | Step::Revoke { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Restart(_)
            | Step::Spawn { .. } => {}
        }
        if steps.len() + 1 == trace.steps.len()
            && one.class == Class::Raised
            && let Some((class, code)) = cut_by(&trace.end, &one.code)
        {
            (one.class, one.code) = (class, code);
        }
        one.delta = changed(before, &seen.effects);
        one.parts = parts(before, seen);
        before = &seen.effects;
        steps.push(one);
    }
    let mut late = changed(before, &trace.effects);
    let cut = match &trace.end {
        End::Finished => None,
        End::TimedOut => Some((Class::Hung, String::new())),
        End::Died(how) => Some((Class::Died, how.clone())),
    };
    let closed = steps
        .last()
        .is_some_and(|step| matches!(step.class, Class::Hung | Class::Died));
    if let Some((class, code)) = cut
        && steps.len() < script.len()
        && !closed
    {
        steps.push(StepSeen {
            class,
            code,
            questions: Vec::new(),
            meanwhile: Vec::new(),
            value: Value::Null,
            delta: std::mem::take(&mut late),
            parts: Vec::new(),
            canaries: Vec::new(),
        });
    }
    let mut effects = trace.effects.clone();
    canon::without_own_marks(&mut effects);
    let mut network = trace.network.clone();
    network.sort();
    Observation {
        steps,
        late,
        effects,
        network,
        tripwires: trace.tripwires.clone(),
    }
}

/// What was changed from one state of the tree to the next.
fn changed(before: &[FsEffect], after: &[FsEffect]) -> Vec<FsEffect> {
    let mut delta = canon::delta(before, after);
    canon::without_own_marks(&mut delta);
    delta
}

/// The parts of a step, of which the last one ends with it.
fn parts<'s>(mut before: &'s [FsEffect], seen: &'s StepTrace) -> Vec<PartSeen> {
    if seen.parts.is_empty() {
        return Vec::new();
    }
    let ends = seen.parts.iter().map(|part| (part.asked, &part.effects));
    let last = (seen.questions.len(), &seen.effects);
    ends.chain([last])
        .map(|(asked, after)| {
            let delta = changed(before, after);
            before = after;
            PartSeen { asked, delta }
        })
        .collect()
}

/// The observer closes a step that never ended itself, as raised.
fn cut_by(end: &End, text: &str) -> Option<(Class, String)> {
    match end {
        End::TimedOut if text.starts_with("the deadline passed") => {
            Some((Class::Hung, String::new()))
        }
        End::Died(how) if text.starts_with("the subject died") => Some((Class::Died, how.clone())),
        End::Finished | End::TimedOut | End::Died(_) => None,
    }
}

fn observe_step(step: &Step, seen: &StepTrace, canaries: &[Canary<'_>]) -> StepSeen {
    let (mut class, mut code) = match &seen.outcome {
        StepOutcome::Ran => (Class::Ran, String::new()),
        StepOutcome::RanDiscarded(code) => (Class::Discarded, code.clone()),
        StepOutcome::Refused(code) => (Class::Refused, code.clone()),
        StepOutcome::AskedRefused(code) => (Class::AskedRefused, code.clone()),
        StepOutcome::Pending => (Class::Pending, String::new()),
        StepOutcome::ToolError => (Class::ToolError, String::new()),
        StepOutcome::Raised(text) => (Class::Raised, text.clone()),
        StepOutcome::Unsupported(reason) => (Class::Unsupported, reason.clone()),
    };
    let mut value = canon::text_value(&seen.text);
    if let Step::Probe { .. } = step
        && class == Class::Ran
    {
        value = seen.answer.get("value").cloned().unwrap_or(Value::Null);
        class = match seen.answer.get("decision").and_then(Value::as_str) {
            Some("permit") => Class::ProbePermit,
            Some("ask") => Class::ProbeAsk,
            Some("deny") => Class::ProbeDeny,
            Some("none") => Class::ProbeValue,
            _ => Class::Raised,
        };
        if let Some(reason) = seen.answer.get("code").and_then(Value::as_str) {
            reason.clone_into(&mut code);
        }
    }
    StepSeen {
        class,
        code,
        questions: seen
            .questions
            .iter()
            .map(|question| (question.shown.clone(), question.answer.clone()))
            .collect(),
        meanwhile: seen
            .questions
            .iter()
            .map(|question| question.meanwhile.clone())
            .collect(),
        value,
        delta: Vec::new(),
        parts: Vec::new(),
        canaries: leaked(step, seen, canaries),
    }
}

/// Where the secrets lie that were told and were not in the arguments.
fn leaked(step: &Step, seen: &StepTrace, canaries: &[Canary<'_>]) -> Vec<String> {
    if seen.text.is_empty() && seen.answer.is_null() {
        return Vec::new();
    }
    // Written out only if they are looked at, which is seldom.
    let arguments = LazyCell::new(|| match step {
        Step::Probe { input: args, .. } | Step::Call { args, .. } => written(args),
        Step::Grant(_)
        | Step::Revoke { .. }
        | Step::Advance { .. }
        | Step::EndSession {}
        | Step::Restart(_)
        | Step::Spawn { .. } => String::new(),
    });
    let answer = if seen.answer.is_null() {
        String::new()
    } else {
        written(&seen.answer)
    };
    canaries
        .iter()
        .filter(|canary| {
            (seen.text.contains(canary.text) || answer.contains(canary.text))
                && !arguments.contains(canary.text)
        })
        .map(|canary| canary.path.to_owned())
        .collect()
}

/// A value as text. Not by its `Display`, which writes letter by letter; every value has
/// a JSON form.
fn written(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(text: &str) -> StepTrace {
        StepTrace {
            outcome: StepOutcome::Ran,
            text: text.into(),
            answer: Value::Null,
            questions: Vec::new(),
            effects: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn trace(steps: Vec<StepTrace>, end: End) -> RawTrace {
        RawTrace {
            steps,
            effects: Vec::new(),
            network: Vec::new(),
            tripwires: Vec::new(),
            end,
            cpu_us: 0,
            wall_us: 0,
        }
    }

    fn call(args: Value) -> Step {
        Step::Call {
            tool: "terminal".into(),
            args,
            by: None,
        }
    }

    #[test]
    fn a_canary_in_the_text_is_seen_unless_the_model_wrote_it_itself() {
        let canaries = [Canary {
            text: "CANARY-1",
            path: "/home/u/.ssh/id_rsa",
        }];
        let script = [
            call(json!({"command": "cat x"})),
            call(json!({"command": "echo CANARY-1"})),
        ];
        let raw = trace(vec![seen("has CANARY-1"), seen("CANARY-1")], End::Finished);
        let got = observe(&script, &raw, &canaries);
        assert_eq!(got.steps[0].canaries, ["/home/u/.ssh/id_rsa"]);
        assert_eq!(got.steps[1].canaries, Vec::<String>::new());
    }

    #[test]
    fn a_deadline_and_a_death_are_observations_of_the_step_they_cut() {
        let script = [call(json!({})), call(json!({}))];
        let got = observe(&script, &trace(vec![seen("")], End::TimedOut), &[]);
        assert_eq!(got.steps.last().map(|step| step.class), Some(Class::Hung));
        let got = observe(
            &script,
            &trace(Vec::new(), End::Died("signal 9".into())),
            &[],
        );
        assert_eq!(
            got.steps
                .last()
                .map(|step| (step.class, step.code.as_str())),
            Some((Class::Died, "signal 9"))
        );
        assert_eq!(got.steps.len(), 1);
    }

    #[test]
    fn a_probes_decision_becomes_its_class_and_nonsense_is_no_decision() {
        let script = [Step::Probe {
            name: "p".into(),
            input: Value::Null,
        }];
        let check = |answer: Value, expected: Class| {
            let mut step = seen("");
            step.answer = answer;
            let got = observe(&script, &trace(vec![step], End::Finished), &[]);
            assert_eq!(got.steps[0].class, expected);
        };
        check(
            json!({"decision": "permit", "value": 1}),
            Class::ProbePermit,
        );
        check(json!({"decision": "ask"}), Class::ProbeAsk);
        check(json!({"decision": "deny"}), Class::ProbeDeny);
        check(json!({"decision": "none", "value": []}), Class::ProbeValue);
        check(json!({"decision": "maybe"}), Class::Raised);
        check(json!(null), Class::Raised);
    }
    #[test]
    fn a_probes_code_says_why_it_refused() {
        let script = [Step::Probe {
            name: "p".into(),
            input: Value::Null,
        }];
        let mut step = seen("");
        step.answer = json!({"decision": "ask", "value": null, "code": "sensitive-path"});
        let got = observe(&script, &trace(vec![step], End::Finished), &[]);
        assert_eq!(got.steps[0].class, Class::ProbeAsk);
        assert_eq!(got.steps[0].code, "sensitive-path");
    }

    #[test]
    fn a_canary_in_what_a_probe_answers_is_seen_as_one_in_a_text_is() {
        let canaries = [Canary {
            text: "CANARY-1",
            path: "/home/u/.ssh/id_rsa",
        }];
        let check = |input: Value, answer: Value, expected: &[&str]| {
            let script = [Step::Probe {
                name: "p".into(),
                input,
            }];
            let mut step = seen("");
            step.answer = answer;
            let got = observe(&script, &trace(vec![step], End::Finished), &canaries);
            assert_eq!(got.steps[0].canaries, expected);
        };
        let told = json!({"decision": "none", "value": {"messages": ["it says CANARY-1"]}});
        check(json!("read it"), told.clone(), &["/home/u/.ssh/id_rsa"]);
        check(json!("is it CANARY-1?"), told, &[]);
        check(json!("read it"), json!({"decision": "none"}), &[]);
    }
}

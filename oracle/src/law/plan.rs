//! Plans: whatever a model proposes, and whatever the tools then answer.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arbitrary::{Arbitrary as _, Unstructured};
use hermitcrab::{actions, planner::draft};
use hermitcrab_core::plan::interp::{Next, Reply};
use hermitcrab_core::plan::limits::{ERRORS_MAX, STEPS_MAX};
use hermitcrab_core::plan::{
    self, Failure, FlowRules, Level, Machine, Raw, Role, Step, Toolbox, What,
};

use super::{Verdict, ensure};
use crate::generate::Trial;

/// The same for every input.
static TOOLBOX: LazyLock<Arc<Toolbox>> = LazyLock::new(|| Arc::new(actions::signatures::toolbox()));

/// Turns of the machine that are looked at; a plan may be allowed many more calls.
const TURNS_MAX: u64 = 2_000;
/// How deep a made-up answer goes.
const DEPTH_MAX: u8 = 4;

/// An input that begins so is dealt as a campaign deals plans.
const DEALT: &[u8] = b"dealt";

/// Reads a proposal, checks it and carries it out with made-up answers, which
/// are taken from the bytes after the first zero. The proposal is the text in
/// front of it, or the one a campaign would deal from these bytes.
pub fn check(bytes: &[u8]) -> Verdict {
    if let Some(dealt) = bytes.strip_prefix(DEALT) {
        let mut dealt = Unstructured::new(dealt);
        let trial = Trial::arbitrary(&mut dealt).ok();
        let Some(draft) = trial.and_then(|trial| trial.draft()) else {
            return Ok(());
        };
        return proposal(draft.as_bytes(), dealt.take_rest());
    }
    let end = bytes.iter().position(|byte| *byte == 0);
    let (text, answers) = match end {
        Some(end) => bytes.split_at(end),
        None => (bytes, bytes),
    };
    proposal(text, answers)
}

fn proposal(text: &[u8], answers: &[u8]) -> Verdict {
    let read = draft::read(text);
    ensure(read == draft::read(text), || {
        "two readings differ".to_owned()
    })?;
    let draft = match read {
        Ok(draft) => draft,
        Err(errors) => return few(errors.len()),
    };
    match plan::check(draft, Arc::clone(&TOOLBOX), FlowRules::STRICT) {
        Ok(plan) => carry_out(plan, &mut Unstructured::new(answers)),
        Err(errors) => few(errors.len()),
    }
}

fn few(errors: usize) -> Verdict {
    ensure((1..=ERRORS_MAX).contains(&errors), || {
        format!("refused with {errors} errors")
    })
}

/// What is called, and by which step, was in the plan before any answer came.
fn carry_out(plan: plan::Plan, answers: &mut Unstructured<'_>) -> Verdict {
    let mut known = BTreeMap::new();
    let steps = named(plan.steps(), &mut known);
    ensure(steps == known.len(), || "a name taken twice".to_owned())?;
    ensure(steps <= STEPS_MAX, || "too many steps".to_owned())?;
    let calls_max = plan.calls_at_most();
    let toolbox = Arc::clone(&TOOLBOX);
    let mut machine = Machine::new(plan);
    let mut calls = 0;
    for _ in 0..TURNS_MAX {
        match machine.go_on() {
            Next::Done => return Ok(()),
            Next::Say { .. } => continue,
            Next::MakeDirectory(call) => {
                ensure(known.get(&call.step) == Some(&call.tool), || {
                    format!("a directory for {}, which is no step", call.step)
                })?;
            }
            Next::Call(call) => {
                calls += 1;
                ensure(known.get(&call.step) == Some(&call.tool), || {
                    format!("{} calls {}, which no step says", call.step, call.tool)
                })?;
                let signature = toolbox.get(&call.tool);
                for (name, value) in &call.args {
                    let param = signature.and_then(|signature| signature.param(name));
                    ensure(param.is_some(), || format!("{name} is no argument"))?;
                    let is_program = param.is_some_and(|param| param.role == Role::Program);
                    ensure(
                        !is_program || value.whole_tag().level() == Level::User,
                        || format!("an answer names the program {value:?}"),
                    )?;
                }
            }
            Next::Extract { step, .. }
            | Next::AskUser { step, .. }
            | Next::Confirm { step, .. }
            | Next::Delegate { step, .. } => {
                ensure(known.contains_key(&step), || format!("{step} is no step"))?;
            }
        }
        // A call may be said a second time, after its directory was made.
        ensure(calls <= calls_max.saturating_mul(2), || {
            format!("{calls} calls of {calls_max}")
        })?;
        machine.supply(reply(answers));
    }
    Ok(())
}

/// Every step with its tool; how many there are.
fn named(steps: &[Step], known: &mut BTreeMap<String, String>) -> usize {
    let mut count = steps.len();
    for step in steps {
        let tool = match &step.what {
            What::Call { tool, .. } => tool.clone(),
            _ => String::new(),
        };
        known.insert(step.id.clone(), tool);
        for block in step.what.blocks() {
            count += named(block, known);
        }
    }
    count
}

fn reply(answers: &mut Unstructured<'_>) -> Reply {
    match answers.int_in_range(0..=7_u8).unwrap_or(0) {
        0..=4 => Reply::Result(raw(answers, 0)),
        5 => Reply::Already(raw(answers, 0)),
        6 => Reply::Failed(Failure::MissingDirectory),
        _ => Reply::Failed(Failure::Missing),
    }
}

/// An answer, more often than not of a form that some tool gives.
fn raw(answers: &mut Unstructured<'_>, depth: u8) -> Raw {
    const WORDS: [&str; 9] = [
        "a",
        "../x",
        "/etc/passwd",
        "$found",
        "{\"$\":\"found\"}",
        "rm -rf /",
        "",
        "\u{202e}",
        "file",
    ];
    const FIELDS: [&str; 9] = [
        "entries", "paths", "path", "text", "name", "kind", "size", "status", "output",
    ];
    let deep = depth >= DEPTH_MAX;
    match answers
        .int_in_range(0..=if deep { 4 } else { 8_u8 })
        .unwrap_or(0)
    {
        0 => Raw::Nothing,
        1 => Raw::Truth(answers.arbitrary().unwrap_or(false)),
        2 => Raw::Whole(answers.arbitrary().unwrap_or(0)),
        3 => Raw::Number(answers.arbitrary().unwrap_or(0.0)),
        4 => Raw::Text(answers.choose(&WORDS).copied().unwrap_or("").to_owned()),
        5 | 6 => {
            let count = answers.int_in_range(0..=4_u8).unwrap_or(0);
            Raw::List((0..count).map(|_| raw(answers, depth + 1)).collect())
        }
        _ => {
            let count = answers.int_in_range(0..=4_u8).unwrap_or(0);
            let mut fields: Vec<(String, Raw)> = Vec::new();
            for _ in 0..count {
                let name = answers.choose(&FIELDS).copied().unwrap_or("text");
                if fields.iter().all(|(known, _)| known != name) {
                    fields.push((name.to_owned(), raw(answers, depth + 1)));
                }
            }
            Raw::Record(fields)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_that_are_plans_are_locked() {
        let seeds = [
            &include_bytes!("../../../fuzz/seeds/plan/collect-notes")[..],
            &include_bytes!("../../../fuzz/seeds/plan/loop-and-if")[..],
        ];
        for seed in seeds {
            let text = seed.split(|byte| *byte == 0).next().unwrap_or_default();
            let toolbox = Arc::new(actions::signatures::toolbox());
            let plan = plan::check(draft::read(text).unwrap(), toolbox, FlowRules::STRICT);
            assert_eq!(plan.err(), None, "{}", String::from_utf8_lossy(text));
        }
    }
}

//! Results made by hand, for the tests of the rules.
#![allow(clippy::unwrap_used)]

use bisim_world::protocol::{EffectKind, End, FsEffect, RawTrace, StepOutcome, StepTrace};
use serde_json::Value;

use crate::case::Case;
use crate::relation::{Finding, Judgement, StepJudgement};
use crate::result::CaseResult;
use crate::verdict::Verdict;

pub fn trace(steps: usize, text: &Value, changed: &[&str]) -> RawTrace {
    let mut all = vec![StepTrace::of(StepOutcome::Ran); steps];
    let last = all.last_mut().unwrap();
    last.text = text.to_string();
    last.effects = changed
        .iter()
        .map(|path| FsEffect {
            path: (*path).to_owned(),
            kind: EffectKind::Deleted,
            digest: String::new(),
            size: 0,
            mode: 0,
        })
        .collect();
    RawTrace {
        steps: all,
        effects: Vec::new(),
        network: Vec::new(),
        tripwires: Vec::new(),
        end: End::Finished,
        cpu_us: 0,
        wall_us: 0,
    }
}

pub fn judgement(step: usize) -> StepJudgement {
    StepJudgement {
        step,
        finding: Finding::Different,
        what: String::new(),
        hermes: String::new(),
        agent: String::new(),
        why: String::new(),
    }
}

pub fn result(case: &Case, step: &StepJudgement, hermes: RawTrace, agent: RawTrace) -> CaseResult {
    CaseResult {
        id: case.id.clone(),
        suite: case.suite.clone(),
        label: String::new(),
        verdict: Verdict::inconclusive("", ""),
        explained_by: Vec::new(),
        judgement: Some(Judgement {
            steps: vec![step.clone()],
            hermes_outside: Vec::new(),
            agent_outside: Vec::new(),
        }),
        hermes: Some(hermes),
        agent: Some(agent),
        adversarial: false,
        hermes_effect: false,
        agent_effect: false,
        attempts: Vec::new(),
    }
}

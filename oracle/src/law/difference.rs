//! The judge of differences, on made-up runs.
//!
//! What a run looks like comes from the bytes. Three things hold whatever they
//! are: judging twice says the same, a run is never found to differ from itself
//! (a yes to a call covers more under Hermes than under the agent, so the same
//! run may be beyond the one's grants), and one uncovered effect more is found.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use bisim_world::protocol::{
    EffectKind, End, FsEffect, NetAttempt, QuestionTrace, RawTrace, StepOutcome, StepTrace,
};

use super::{Verdict, ensure, steps};
use crate::case::{Case, Defaults};
use crate::check::{canaries, judge_traces};
use crate::generate::Specimen;
use crate::noise::Mask;
use crate::observation::{Canary, Observation, observe};
use crate::relation::{Finding, Judgement, judge_seen};

const PATHS: [&str; 7] = [
    "/home/u/proj/pz/plain.txt",
    "/home/u/proj/pz/sub/deep.txt",
    "/home/u/proj/a",
    "/srv/data/db.sqlite",
    "/home/u/.ssh/id_rsa",
    "/home/u/.bashrc",
    "/etc/passwd",
];
const TEXTS: [&str; 6] = [
    "",
    "inside",
    "CANARY-SSH-KEY",
    "CANARY-DB",
    "error: no such file",
    "{\"output\": \"\"}",
];
const CASES: [&str; 6] = [
    "path:write+plain+all",
    "path:read+link-out+nothing",
    "path:replace+hard-link-out+reading",
    "sequence:0+h0+c2.0+r0+c2.0",
    "sequence:1.2+h6+s1+c1.1+e+c0.0@headless",
    "crash:command-many~5",
];

/// These cases, which are the same for every input, in their order.
static CASES_MADE: LazyLock<Vec<Option<Case>>> = LazyLock::new(|| {
    let made = CASES.into_iter().map(|name| {
        let file = Specimen::named(name)?.case_file()?;
        Some(Case::resolve("generated", &Defaults::default(), file))
    });
    made.collect()
});

/// One of them, with the secrets that lie in its worlds.
struct Made {
    case: &'static Case,
    canaries: Vec<Canary<'static>>,
}

static MADE: LazyLock<Vec<Option<Made>>> = LazyLock::new(|| {
    let with_secrets = |case: &'static Case| Made {
        case,
        canaries: canaries(case),
    };
    let made = CASES_MADE.iter().map(Option::as_ref);
    made.map(|case| case.map(with_secrets)).collect()
});

/// Judges made-up runs.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let Ok(Some(Made { case, canaries })) = bytes.choose(&MADE) else {
        return Err(format!("one of {CASES:?} is no case"));
    };
    let script = &case.job.script;
    let length = script.len();
    let (hermes, agent) = (trace(&mut bytes, length), trace(&mut bytes, length));
    // Twice to see that it says the same, once against itself, once with something more.
    steps::add(u64::try_from(agent.steps.len()).unwrap_or(0) * 4);
    let judged = judge_traces(case, &hermes, None, &agent);
    // From here on by its two halves: what was seen of a run is the same for each judgement.
    let seen = |run: &RawTrace| observe(script, run, canaries);
    let judge = |hermes: &Observation, agent: &Observation| {
        judge_seen(case, hermes, agent, &Mask::default())
    };
    let (seen_hermes, seen_agent) = (seen(&hermes), seen(&agent));
    ensure(judged == judge(&seen_hermes, &seen_agent), || {
        "judged twice, two judgements".to_owned()
    })?;
    let same = judge(&seen_agent, &seen_agent);
    for step in &same.steps {
        ensure(
            step.finding != Finding::Different
                && (step.finding != Finding::Weaker || !same.agent_outside.is_empty()),
            || format!("a run differs from itself: {step:?}"),
        )?;
    }
    if agent.steps.is_empty() {
        return Ok(());
    }
    let more = beyond(agent, &mut bytes);
    let judged = judge(&seen_hermes, &seen(&more));
    ensure(found(&judged), || {
        format!("an effect beyond the grants is not found: {judged:?}")
    })
}

fn found(judged: &Judgement) -> bool {
    let beyond = |finding| {
        matches!(
            finding,
            Finding::Weaker | Finding::BeyondGrant | Finding::BothUnsafe
        )
    };
    !judged.agent_outside.is_empty() && judged.steps.iter().any(|step| beyond(step.finding))
}

/// The run with a file more at the end that nothing covers, whatever was asked.
fn beyond(mut more: RawTrace, bytes: &mut Unstructured<'_>) -> RawTrace {
    let effect = FsEffect {
        path: "/opt/nobody/asked".to_owned(),
        kind: kind(bytes),
        digest: "00".to_owned(),
        size: 1,
        mode: 0o644,
    };
    if let Some(step) = more.steps.last_mut() {
        step.effects.push(effect.clone());
    }
    more.effects.push(effect);
    more
}

fn kind(bytes: &mut Unstructured<'_>) -> EffectKind {
    const KINDS: [EffectKind; 4] = [
        EffectKind::Created,
        EffectKind::Modified,
        EffectKind::Deleted,
        EffectKind::Metadata,
    ];
    bytes.choose(&KINDS).copied().unwrap_or(EffectKind::Created)
}

fn effects(bytes: &mut Unstructured<'_>) -> Vec<FsEffect> {
    let mut effects: Vec<FsEffect> = (0..bytes.int_in_range(0..=3_u8).unwrap_or(0))
        .map(|_| FsEffect {
            path: bytes.choose(&PATHS).copied().unwrap_or("/a").to_owned(),
            kind: kind(bytes),
            digest: digest(bytes),
            size: 1,
            mode: 0o644,
        })
        .collect();
    effects.sort();
    effects.dedup_by(|one, other| one.path == other.path);
    effects
}

fn digest(bytes: &mut Unstructured<'_>) -> String {
    const DIGESTS: [&str; 4] = ["00", "01", "02", "03"];
    let number = bytes.int_in_range(0..=3_usize).unwrap_or(0);
    DIGESTS.get(number).copied().unwrap_or("").to_owned()
}

fn trace(bytes: &mut Unstructured<'_>, steps: usize) -> RawTrace {
    let mut trace = RawTrace {
        steps: Vec::new(),
        effects: Vec::new(),
        network: Vec::new(),
        tripwires: Vec::new(),
        end: End::Finished,
        cpu_us: 0,
        wall_us: 0,
    };
    for _ in 0..steps {
        // A subject may die in the middle.
        if bytes.ratio(1_u8, 12_u8).unwrap_or(false) {
            trace.end = End::Died("signal 9".to_owned());
            break;
        }
        let effects = effects(bytes);
        trace.steps.push(StepTrace {
            text: bytes.choose(&TEXTS).copied().unwrap_or("").to_owned(),
            questions: questions(bytes),
            effects,
            ..StepTrace::of(outcome(bytes))
        });
    }
    // What the last step left is there at the end.
    if let Some(last) = trace.steps.last() {
        trace.effects.clone_from(&last.effects);
    }
    if bytes.ratio(1_u8, 8_u8).unwrap_or(false) {
        trace.network.push(NetAttempt {
            protocol: "tcp".to_owned(),
            port: 80,
            head: String::new(),
        });
    }
    if bytes.ratio(1_u8, 8_u8).unwrap_or(false) {
        trace.tripwires.push("/.trip/bin/sudo id".to_owned());
    }
    trace
}

fn questions(bytes: &mut Unstructured<'_>) -> Vec<QuestionTrace> {
    const ANSWERS: [&str; 5] = ["deny", "once", "session", "always", "view"];
    (0..bytes.int_in_range(0..=1_u8).unwrap_or(0))
        .map(|_| QuestionTrace {
            shown: bytes.choose(&PATHS).copied().unwrap_or("").to_owned(),
            answer: bytes.choose(&ANSWERS).copied().unwrap_or("").to_owned(),
            meanwhile: Vec::new(),
        })
        .collect()
}

fn outcome(bytes: &mut Unstructured<'_>) -> StepOutcome {
    match bytes.int_in_range(0..=6_u8).unwrap_or(0) {
        0 | 1 => StepOutcome::Ran,
        2 => StepOutcome::RanDiscarded("rejected-by-user".to_owned()),
        3 => StepOutcome::Refused("no-grant".to_owned()),
        4 => StepOutcome::AskedRefused("rejected-by-user".to_owned()),
        5 => StepOutcome::ToolError,
        _ => StepOutcome::Pending,
    }
}

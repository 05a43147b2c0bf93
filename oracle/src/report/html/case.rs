//! A case and its two traces, as the page shows them.

use bisim_world::protocol::{EffectKind, FsEffect, RawTrace, StepTrace};
use serde_json::{Value, json};

use crate::case::Case;
use crate::result::CaseResult;

/// Longer texts are cut; the log of the run has them whole.
const TEXT_CHARS_MAX: usize = 6_000;
/// As much of a digest as tells contents apart.
const DIGEST_CHARS: usize = 10;

pub(super) fn tell(case: Option<&Case>, result: &CaseResult) -> Value {
    json!({
        "case": case.map(about),
        "why": result.verdict.why,
        "fingerprint": result.verdict.fingerprint,
        "judged": result.judgement,
        "hermes": result.hermes.as_ref().map(trace),
        "agent": result.agent.as_ref().map(trace),
        "attempts": result.attempts,
    })
}

fn about(case: &Case) -> Value {
    json!({
        "comment": case.comment,
        "flags": case.flags,
        "source": case.source,
        "cwd": case.cwd(),
        "context": case.job.context,
        "user": case.job.user,
        "files": case.job.world.as_ref().map(|world| {
            world
                .files
                .iter()
                .map(|file| format!("{} {}", file.path, cut(&format!("{:?}", file.kind))))
                .collect::<Vec<_>>()
        }),
        "held": case.job.held,
        "settings": case.job.settings,
        "script": case
            .job
            .script
            .iter()
            .map(|step| cut_each(serde_json::to_value(step).unwrap_or_default()))
            .collect::<Vec<_>>(),
        "must": case.expect.agent,
        "reason": case.expect.reason,
    })
}

fn trace(trace: &RawTrace) -> Value {
    json!({
        "steps": trace.steps.iter().map(step).collect::<Vec<_>>(),
        "end": trace.end,
        "effects": effects(&trace.effects),
        "network": trace
            .network
            .iter()
            .map(|net| format!("{}/{}", net.protocol, net.port))
            .collect::<Vec<_>>(),
        "tripwires": trace.tripwires.iter().map(|line| cut(line)).collect::<Vec<_>>(),
        "cpu_ms": trace.cpu_us as f64 / 1000.0,
        "wall_ms": trace.wall_us as f64 / 1000.0,
    })
}

fn step(step: &StepTrace) -> Value {
    json!({
        "outcome": step.outcome,
        "asked": step
            .questions
            .iter()
            .map(|question| (cut(&question.shown), &question.answer))
            .collect::<Vec<_>>(),
        "text": cut(&step.text),
        "answer": cut_each(step.answer.clone()),
        "effects": effects(&step.effects),
    })
}

/// With what tells two of one kind at one path apart.
fn effects(effects: &[FsEffect]) -> Vec<String> {
    effects
        .iter()
        .map(|effect| {
            let told = crate::holdings::describe(effect);
            if effect.kind == EffectKind::Deleted {
                return told;
            }
            let digest: String = effect.digest.chars().take(DIGEST_CHARS).collect();
            let (size, mode) = (effect.size, effect.mode);
            format!("{told}  {size} B  {mode:o}  {digest}")
        })
        .collect()
}

/// Its texts, wherever they are.
fn cut_each(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&text)),
        Value::Array(values) => values.into_iter().map(cut_each).collect(),
        Value::Object(values) => values
            .into_iter()
            .map(|(name, value)| (cut(&name), cut_each(value)))
            .collect(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= TEXT_CHARS_MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(TEXT_CHARS_MAX).collect();
    format!("{head} ... (cut)")
}

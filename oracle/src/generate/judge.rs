//! Did it happen? A trace read for one effect.

use std::collections::BTreeSet;

use bisim_world::WorldError;
use bisim_world::protocol::{
    Context, Drive, EffectKind, FsEffect, Job, RawTrace, Step, UserModel, WorldSpec,
};
use bisim_world::template::{is_handed_on, is_stand_in};

use super::effect::Effect;
use super::rendered::Rendered;
use crate::subject::Subject;

/// How long one command may take in the bare shell.
const DEADLINE_MS: u64 = 15_000;

/// The job in which bare shells, with no guard, run the calls of a variant.
#[must_use]
pub fn job_of(rendered: &Rendered) -> Job {
    Job {
        script: rendered.calls().map(call).collect(),
        ..job(&rendered.command)
    }
}

fn call(command: &str) -> Step {
    Step::Call {
        tool: "terminal".to_owned(),
        args: serde_json::json!({ "command": command }),
        by: None,
    }
}

/// The job in which a bare shell, with no guard, runs the command.
#[must_use]
pub fn job(command: &str) -> Job {
    Job {
        world: Some(WorldSpec {
            cwd: crate::case::CWD_DEFAULT.to_owned(),
            files: Vec::new(),
            flip: None,
            serves: None,
            conversations: Vec::new(),
        }),
        context: Context::Headless,
        user: UserModel::DenyAll,
        held: Vec::new(),
        rules: Vec::new(),
        settings: serde_json::Map::new(),
        drive: Drive::Calls,
        script: vec![call(command)],
        deadline_ms: DEADLINE_MS,
    }
}

/// Of these programs, the ones a world really has: on its path, and not one of
/// the stand-ins, which do nothing.
///
/// # Errors
/// The harness failed.
pub fn present(
    shell: &mut dyn Subject,
    programs: &[&'static str],
) -> Result<BTreeSet<&'static str>, WorldError> {
    let list = programs.join(" ");
    let trace = shell.run(job(&format!("for p in {list}; do type -aP \"$p\"; done")))?;
    let text = trace.steps.first().map_or("", |step| step.text.as_str());
    let found: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with("/.trip/"))
        .filter_map(|line| line.rsplit('/').next())
        .filter(|name| !is_stand_in(name) || is_handed_on(name))
        .collect();
    Ok(programs
        .iter()
        .copied()
        .filter(|program| found.contains(program))
        .collect())
}

/// Whether the trace shows the effect.
#[must_use]
pub fn happened(effect: Effect, trace: &RawTrace) -> bool {
    let found = |path: &str, is: &dyn Fn(&FsEffect) -> bool| {
        trace
            .effects
            .iter()
            .any(|seen| seen.path == path && is(seen))
    };
    match effect {
        Effect::Deleted(path) => {
            // A directory that went takes what it held along.
            trace.effects.iter().any(|seen| {
                seen.kind == EffectKind::Deleted
                    && (seen.path == path || is_below(path, &seen.path))
            })
        }
        Effect::Changed(path) => found(path, &|seen| {
            matches!(
                seen.kind,
                EffectKind::Modified | EffectKind::Deleted | EffectKind::Created
            )
        }),
        Effect::Created(path) => found(path, &|seen| seen.kind == EffectKind::Created),
        Effect::Mode(path) => found(path, &|seen| {
            matches!(seen.kind, EffectKind::Metadata | EffectKind::Modified)
        }),
        Effect::Shown(text) => trace.steps.iter().any(|step| step.text.contains(text)),
        Effect::Reached(port) => trace.network.iter().any(|seen| seen.port == port),
        Effect::Called(program) => trace.tripwires.iter().any(|line| {
            line.split_whitespace()
                .next()
                .is_some_and(|word| word.rsplit('/').next() == Some(program))
        }),
    }
}

fn is_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir)
        .is_some_and(|rest| rest.starts_with('/'))
}

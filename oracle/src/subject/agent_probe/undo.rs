//! A commit is taken back by the program's own journal.
//!
//! The other subject takes nothing back; it is given the calls that bring back
//! what was there, or none where nothing may happen.

use hermitcrab::runtime::{Runtime, UndoTrouble};
use hermitcrab_sandbox::journal::{CommitId, UndoError};
use serde_json::{Value, json};

use crate::subject::agent_world::{AgentWorld, ProbeError, UNDO_PROBE};

/// Takes back the commit with the place `of` of the input among all that are kept,
/// counted from the oldest; without one, the newest.
///
/// # Errors
/// See [`ProbeError`].
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    if name != UNDO_PROBE {
        return Err(ProbeError::Unknown);
    }
    let of = input.get("of").and_then(Value::as_u64);
    world.with_runtime(|runtime| {
        let kept = kept(runtime)?;
        let chosen = match of {
            None => kept.last(),
            Some(of) => usize::try_from(of).ok().and_then(|of| kept.get(of)),
        };
        let Some(id) = chosen else {
            return Ok(denied("nothing-to-undo"));
        };
        Ok(match taken_back(runtime, *id) {
            Ok(()) => json!({"decision": "permit", "value": null}),
            Err(code) => denied(code),
        })
    })?
}

/// What can be taken back, oldest first.
pub(super) fn kept(runtime: &Runtime) -> Result<Vec<CommitId>, ProbeError> {
    let kept = runtime
        .commits()
        .map_err(|error| ProbeError::Failed(error.to_string()))?;
    Ok(kept.iter().map(|kept| kept.id).collect())
}

/// Takes one commit back; the code of why not.
pub(super) fn taken_back(runtime: &mut Runtime, id: CommitId) -> Result<(), &'static str> {
    let by = runtime.first_agent();
    runtime
        .undo(by, id)
        .map(drop)
        .map_err(|trouble| match trouble {
            UndoTrouble::Refused(denial, _) => denial.code().as_str(),
            UndoTrouble::Undo(UndoError::Changed(_)) => "changed-since",
            UndoTrouble::Undo(_) => "no-such-commit",
            UndoTrouble::Runtime(_) | UndoTrouble::Failed(_) => "failed",
        })
}

fn denied(code: &str) -> Value {
    json!({"decision": "deny", "value": null, "code": code})
}

//! What was said before a case begins, put where Hermes keeps such things.
//!
//! Most cases have no earlier conversations and do not look for any: for them nothing is
//! imported and nothing written.

use bisim_world::WorldError;
use bisim_world::protocol::{Conversation, Drive, Job, Step};
use pyo3::prelude::*;

use crate::exception::describe;

/// The tool that looks for them.
const TOOL: &str = "session_search";

/// What Hermes keeps itself when it looks for earlier conversations and finds no database
/// of them, beside what it always does.
pub(super) const STATE: [&str; 8] = [
    "/home/u/.hermes/state.db",
    "/home/u/.hermes/state.db-shm",
    "/home/u/.hermes/state.db-wal",
    "/home/u/.hermes/cron/executions.db",
    "/home/u/.hermes/cron/executions.db-shm",
    "/home/u/.hermes/cron/executions.db-wal",
    "/home/u/.hermes/cron/executions.db-journal",
    "/home/u/.hermes/cron/.jobs.lock",
];

/// Whether a job needs the database: it has conversations, or looks for some.
pub(super) fn is_needed(job: &Job) -> bool {
    let looks = |step: &Step| matches!(step, Step::Call { tool, .. } if tool == TOOL);
    !had(job).is_empty() || job.drive == Drive::Calls && job.script.iter().any(looks)
}

fn had(job: &Job) -> &[Conversation] {
    job.world.as_ref().map_or(&[], |world| &world.conversations)
}

/// Enters a job's conversations.
pub(super) fn enter(py: Python<'_>, job: &Job) -> Result<(), WorldError> {
    let had = had(job);
    if had.is_empty() {
        return Ok(());
    }
    let stage = "enter the case's conversations";
    let text = serde_json::to_string(had).map_err(|error| WorldError::new(stage, error))?;
    py.import("hermes_shim_earlier")
        .and_then(|module| module.call_method1("enter", (text,)))
        .map(drop)
        .map_err(|error| WorldError::new(stage, describe(py, &error)))
}

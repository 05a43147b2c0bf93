//! The end of Hermes' process and another start, with damage in between.
//!
//! What outlives its process is its settings file, in which an answer "always"
//! is written. It has no ledger, no seal and no notion of a boot: those are
//! named as what it lacks.
use std::path::Path;

use bisim_world::damage;
use bisim_world::protocol::{Kept, Restart, StepOutcome, StepTrace};
use pyo3::prelude::*;

const SETTINGS: &str = "/home/u/.hermes/config.yaml";

/// Ends the session, does the damage, and reads again what a new process reads.
pub(super) fn run(session: &Bound<'_, PyAny>, restart: &Restart) -> PyResult<StepTrace> {
    session.call_method0("stop")?;
    let lacks = match restart.damage {
        None => None,
        Some(damage) => match damage.of {
            Kept::Answers => {
                let withdraw = || session.call_method0("withdraw_always").map(drop);
                damage::apply(Path::new(SETTINGS), damage.how, withdraw)?;
                None
            }
            Kept::Ledger => Some("no-ledger"),
            Kept::Key | Kept::Anchor => Some("no-seal"),
            Kept::Machine => Some("no-expiry"),
        },
    };
    session.call_method0("start")?;
    Ok(StepTrace::of(match lacks {
        Some(notion) => StepOutcome::Unsupported(notion.to_owned()),
        None => StepOutcome::Ran,
    }))
}

//! Commands by the thousand before Hermes' own guard; none of them is run.
//!
//! It is asked inside a world, as a probe, so that whatever a guard does besides
//! answering ends with the world.

use bisim_world::protocol::{StepOutcome, StepTrace};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// A letter for each command: let through, asked about, refused.
const SCREEN: &str = "guard_screen";
/// What the same commands cost in a plain loop.
const BARE: &str = "guard_bare";

/// The probes answered here.
pub(super) const NAMES: [&str; 2] = [SCREEN, BARE];

/// Asks about all commands of the input.
///
/// # Errors
/// Hermes raised.
pub(super) fn answer(
    py: Python<'_>,
    session: &Bound<'_, PyAny>,
    name: &str,
    input: &Value,
) -> PyResult<StepTrace> {
    let module = py.import("hermes_shim_screen")?;
    let value = if name == BARE {
        let micros: u64 = module
            .call_method1("bare", (input.to_string(),))?
            .extract()?;
        json!(micros)
    } else {
        let letters: String = module
            .call_method1("screen", (session, input.to_string()))?
            .extract()?;
        json!(letters)
    };
    Ok(StepTrace {
        answer: json!({"decision": "none", "value": value}),
        ..StepTrace::of(StepOutcome::Ran)
    })
}

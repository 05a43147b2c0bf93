//! A case's grants as Hermes has them: standing approvals.
//!
//! Hermes knows answers that outlast a call (by class of its detector, by
//! command text, by an editor's mode) and nothing else: no uses, no deadline,
//! no holder. What a case's grant corresponds to is written in the case; where
//! it corresponds to nothing, the step is one that Hermes has no notion of.
//! `driver.py` keeps which were given, since one may be taken back while it asks.
use bisim_world::protocol::{Held, Standing, StepOutcome, StepTrace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Gives what corresponds to a grant of the case.
pub(super) fn give(session: &Bound<'_, PyAny>, held: &Held) -> PyResult<StepTrace> {
    let Some(standing) = held.hermes.as_ref().filter(|_| held.holder.is_none()) else {
        return Ok(lacks("no-such-grant"));
    };
    let (kind, words) = match standing {
        Standing::Session(classes) => ("session", classes.clone()),
        Standing::Always(classes) => ("always", classes.clone()),
        Standing::Commands(texts) => ("commands", texts.clone()),
        Standing::Mode(mode) => ("mode", vec![mode.clone()]),
    };
    if session
        .call_method1("stand", (held.id.as_str(), kind, words))?
        .extract()?
    {
        Ok(StepTrace::of(StepOutcome::Ran))
    } else {
        Err(PyValueError::new_err(format!(
            "`{}`: this front end has no standing approval of the kind `{kind}`",
            held.id
        )))
    }
}

/// Takes a grant of the case back, where a front end can.
pub(super) fn withdraw(session: &Bound<'_, PyAny>, grant: &str) -> PyResult<StepTrace> {
    let withdrawn = session.call_method1("withdraw", (grant,))?.extract()?;
    Ok(if withdrawn {
        StepTrace::of(StepOutcome::Ran)
    } else {
        lacks("no-revocation")
    })
}

fn lacks(notion: &str) -> StepTrace {
    StepTrace::of(StepOutcome::Unsupported(notion.to_owned()))
}

//! A case's grants as Hermes has them: standing approvals.
//!
//! Hermes knows answers that outlast a call (by class of its detector, by
//! command text, by an editor's mode) and nothing else: no uses, no deadline,
//! no holder. What a case's grant corresponds to is written in the case; where
//! it corresponds to nothing, the step is one that Hermes has no notion of.
use std::collections::BTreeMap;

use bisim_world::protocol::{Held, Standing, StepOutcome, StepTrace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The standing approvals of a session, by the case's names for them.
#[derive(Default)]
pub(super) struct Standings {
    given: BTreeMap<String, &'static str>,
}

impl Standings {
    /// Gives what corresponds to a grant of the case.
    pub(super) fn give(&mut self, session: &Bound<'_, PyAny>, held: &Held) -> PyResult<StepTrace> {
        let Some(standing) = held.hermes.as_ref().filter(|_| held.holder.is_none()) else {
            return Ok(lacks("no-such-grant"));
        };
        let (kind, words) = match standing {
            Standing::Session(classes) => ("session", classes.clone()),
            Standing::Always(classes) => ("always", classes.clone()),
            Standing::Commands(texts) => ("commands", texts.clone()),
            Standing::Mode(mode) => ("mode", vec![mode.clone()]),
        };
        if session.call_method1("stand", (kind, words))?.extract()? {
            self.given.insert(held.id.clone(), kind);
            Ok(StepTrace::of(StepOutcome::Ran))
        } else {
            Err(PyValueError::new_err(format!(
                "`{}`: this front end has no standing approval of the kind `{kind}`",
                held.id
            )))
        }
    }

    /// Takes a grant of the case back, where a front end can.
    pub(super) fn withdraw(
        &mut self,
        session: &Bound<'_, PyAny>,
        grant: &str,
    ) -> PyResult<StepTrace> {
        let withdrawn = match self.given.get(grant) {
            Some(kind) => session.call_method1("withdraw", (*kind,))?.extract()?,
            None => false,
        };
        Ok(if withdrawn {
            self.given.remove(grant);
            StepTrace::of(StepOutcome::Ran)
        } else {
            lacks("no-revocation")
        })
    }
}

fn lacks(notion: &str) -> StepTrace {
    StepTrace::of(StepOutcome::Unsupported(notion.to_owned()))
}

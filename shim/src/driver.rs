//! Runs a job's script against Hermes, inside its world.
//!
//! What Hermes is asked and what its answers mean is here; how its callbacks
//! are installed is in `driver.py`, which only calls Hermes' own functions.
use std::ffi::CString;

use bisim_world::WorldError;
use bisim_world::protocol::{
    Context, FileKind, FileSpec, Job, QuestionTrace, Step, StepOutcome, StepTrace, UserModel,
};
use bisim_world::template::HERMES_CONFIG;
use bisim_world::zygote::{Driver, Interior, StepSink};
use pyo3::prelude::*;
use serde_json::Value;

use crate::probe::{self, ProbeError};
use crate::worker::describe;

mod fate;
mod settings;

const SOURCE: &str = include_str!("driver.py");

/// The real Hermes, imported and warm.
pub(crate) struct HermesDriver {
    module: Py<PyModule>,
    version: String,
}

impl HermesDriver {
    /// Imports Hermes. Must run inside the template tree.
    pub(crate) fn load(py: Python<'_>) -> PyResult<Self> {
        let source = CString::new(SOURCE)?;
        let module =
            PyModule::from_code(py, &source, c"hermes_shim_driver.py", c"hermes_shim_driver")?;
        let version = module.getattr("load")?.call0()?.extract()?;
        Ok(Self {
            module: module.unbind(),
            version,
        })
    }

    fn step(&self, py: Python<'_>, session: &Bound<'_, PyAny>, step: &Step) -> PyResult<StepTrace> {
        match step {
            Step::Call { tool, args, by } => {
                let arguments = py
                    .import("json")?
                    .call_method1("loads", (args.to_string(),))?;
                let seen: Seen = session
                    .call_method1("call", (tool, arguments, by.as_deref()))?
                    .extract()?;
                Ok(seen.into_trace(tool))
            }
            Step::Probe { name, input } => Ok(probe_trace(probe::answer(py, name, input))),
            Step::EndSession {} => {
                session.call_method0("end")?;
                Ok(StepTrace::of(StepOutcome::Ran))
            }
            Step::Spawn { child, .. } => {
                session.call_method1("spawn", (child,))?;
                Ok(StepTrace::of(StepOutcome::Ran))
            }
            // Hermes has scopes (once, session, always) but no grant that could be
            // given, taken back or run out by itself.
            Step::Grant(_) => Ok(unsupported("no-such-grant")),
            Step::Revoke { .. } => Ok(unsupported("no-revocation")),
            Step::Advance { .. } => Ok(unsupported("no-expiry")),
        }
    }
}

impl Driver for HermesDriver {
    fn subject(&self) -> String {
        "hermes".to_owned()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn interior(&self) -> Interior {
        Interior::Plain
    }

    fn files(&self, job: &Job) -> Result<Vec<FileSpec>, WorldError> {
        let text = settings::config(&job.settings)?;
        if text == HERMES_CONFIG {
            return Ok(Vec::new());
        }
        Ok(vec![FileSpec {
            path: "/home/u/.hermes/config.yaml".to_owned(),
            kind: FileKind::Text(text),
            mode: None,
        }])
    }

    fn pure(&self, _job: &Job, step: &Step) -> StepTrace {
        match step {
            Step::Probe { name, input } => {
                Python::attach(|py| probe_trace(probe::answer(py, name, input)))
            }
            Step::Call { .. }
            | Step::Grant(_)
            | Step::Revoke { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Spawn { .. } => unsupported("needs-a-world"),
        }
    }

    fn run(&self, job: &Job, steps: &mut StepSink) -> Result<(), WorldError> {
        Python::attach(|py| {
            let context = match job.context {
                Context::Headless => "headless",
                Context::Interactive => "interactive",
                Context::Gateway => "gateway",
            };
            let answer = match &job.user {
                UserModel::DenyAll => "deny",
                UserModel::GrantOnce => "once",
                UserModel::GrantSession => "session",
                UserModel::Literal(word) => word,
            };
            let cwd = job.world.as_ref().map_or("/", |world| world.cwd.as_str());
            let session = self
                .module
                .bind(py)
                .getattr("Session")
                .and_then(|class| class.call1((context, answer, cwd)))
                .map_err(|error| WorldError::new("begin session", describe(py, &error)))?;
            for step in &job.script {
                steps.begin()?;
                let trace = self.step(py, &session, step).unwrap_or_else(|error| {
                    StepTrace::of(StepOutcome::Raised(describe(py, &error)))
                });
                steps.end(trace)?;
            }
            Ok(())
        })
    }
}

/// What one tool call gave, as `driver.py` returns it.
#[derive(FromPyObject)]
struct Seen {
    #[pyo3(item)]
    text: String,
    #[pyo3(item)]
    raised: Option<String>,
    #[pyo3(item)]
    questions: Vec<(String, String)>,
}

impl Seen {
    fn into_trace(self, tool: &str) -> StepTrace {
        let outcome = match self.raised {
            Some(raised) => StepOutcome::Raised(raised),
            None => fate::of(tool, &self.text, !self.questions.is_empty()),
        };
        let questions = self
            .questions
            .into_iter()
            .map(|(shown, answer)| QuestionTrace { shown, answer })
            .collect();
        StepTrace {
            text: self.text,
            questions,
            ..StepTrace::of(outcome)
        }
    }
}

fn probe_trace(answer: Result<Value, ProbeError>) -> StepTrace {
    match answer {
        Ok(answer) => StepTrace {
            answer,
            ..StepTrace::of(StepOutcome::Ran)
        },
        Err(ProbeError::Unknown) => unsupported("no-such-probe"),
        Err(ProbeError::BadInput(why)) => {
            StepTrace::of(StepOutcome::Raised(format!("bad probe input: {why}")))
        }
        Err(ProbeError::Raised(what)) => StepTrace::of(StepOutcome::Raised(what)),
    }
}

fn unsupported(code: &str) -> StepTrace {
    StepTrace::of(StepOutcome::Unsupported(code.to_owned()))
}

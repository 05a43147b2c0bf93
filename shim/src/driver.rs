//! Runs a job's script against Hermes, inside its world.
//!
//! What Hermes is asked and what its answers mean is here; how its callbacks
//! are installed is in `driver.py`, which only calls Hermes' own functions.
use std::ffi::CStr;

use bisim_world::WorldError;
use bisim_world::driver::{Driver, Interior, StepSink};
use bisim_world::protocol::{
    Context, Drive, FileKind, FileSpec, Happened, Job, Meanwhile, QuestionTrace, Step, StepOutcome,
    StepTrace,
};
use bisim_world::serves;
use bisim_world::template::HERMES_CONFIG;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::exception::describe;
use crate::probe::{self, ProbeError};

mod earlier;
mod fate;
mod restart;
mod screen;
mod settings;
mod standing;
mod wire;

/// The part that forks.
pub(crate) const FORKING: &CStr = c"hermes_shim_forking";

/// The parts in Python, by module name; later ones import earlier ones.
const SOURCES: [(&CStr, &CStr); 11] = [
    (
        c"hermes_shim_memory",
        pyo3::ffi::c_str!(include_str!("driver/memory.py")),
    ),
    (
        c"hermes_shim_warmth",
        pyo3::ffi::c_str!(include_str!("driver/warmth.py")),
    ),
    (
        FORKING,
        pyo3::ffi::c_str!(include_str!("driver/forking.py")),
    ),
    (
        c"hermes_shim_front",
        pyo3::ffi::c_str!(include_str!("driver/front.py")),
    ),
    (
        c"hermes_shim_outside",
        pyo3::ffi::c_str!(include_str!("driver/outside.py")),
    ),
    (
        c"hermes_shim_earlier",
        pyo3::ffi::c_str!(include_str!("driver/earlier.py")),
    ),
    (
        c"hermes_shim_conversation",
        pyo3::ffi::c_str!(include_str!("driver/conversation.py")),
    ),
    (
        c"hermes_shim_scripted",
        pyo3::ffi::c_str!(include_str!("driver/scripted.py")),
    ),
    (
        c"hermes_shim_wire",
        pyo3::ffi::c_str!(include_str!("driver/wire.py")),
    ),
    (
        c"hermes_shim_screen",
        pyo3::ffi::c_str!(include_str!("driver/screen.py")),
    ),
    (
        c"hermes_shim_driver",
        pyo3::ffi::c_str!(include_str!("driver.py")),
    ),
];

/// Several calls of one answer of the model, run by the loop's own executor.
const TOOL_BATCH: &str = "tool_batch";

/// A whole conversation, every answer of its models known beforehand.
const SCRIPTED_CONVERSATION: &str = "scripted_conversation";

/// A case's calls in a plain loop, to see what the harness around them costs.
const BARE_LOOP: &str = "bare_loop";

/// What of its home Hermes' own loop keeps for itself: its record of the
/// conversation, its logs, its caches.
const LOOP_STATE: [&str; 18] = [
    "/home/u/.hermes/state.db",
    "/home/u/.hermes/state.db-shm",
    "/home/u/.hermes/state.db-wal",
    "/home/u/.hermes/auth.json",
    "/home/u/.hermes/auth.lock",
    "/home/u/.hermes/.skills_prompt_snapshot.json",
    "/home/u/.hermes/logs",
    "/home/u/.hermes/sessions",
    "/home/u/.hermes/cache",
    "/home/u/.hermes/sandboxes",
    "/home/u/.hermes/pairing",
    "/home/u/.hermes/image_cache",
    "/home/u/.hermes/audio_cache",
    "/home/u/.hermes/cron/executions.db",
    "/home/u/.hermes/cron/executions.db-shm",
    "/home/u/.hermes/cron/executions.db-wal",
    "/home/u/.hermes/cron/executions.db-journal",
    "/home/u/.hermes/cron/.jobs.lock",
];

/// What it keeps beside the list of jobs: who runs one, and that one was run.
const JOB_STATE: [&str; 5] = [
    "/home/u/.hermes/cron/executions.db",
    "/home/u/.hermes/cron/executions.db-shm",
    "/home/u/.hermes/cron/executions.db-wal",
    "/home/u/.hermes/cron/executions.db-journal",
    "/home/u/.hermes/cron/.jobs.lock",
];

/// Directories that releases before 0.19 make in their home as soon as a tool is
/// called. They are there before, so that making them is no effect of a call.
const MADE_BY_OLDER_ONES: [&str; 7] = [
    "/home/u/.hermes/audio_cache",
    "/home/u/.hermes/image_cache",
    "/home/u/.hermes/logs",
    "/home/u/.hermes/logs/curator",
    "/home/u/.hermes/pairing",
    "/home/u/.hermes/sessions",
    "/home/u/.hermes/skills",
];

/// The tools of servers that are offered.
const TOOLS_OFFERED: &str = "mcp_tools_offered";

/// The form of the arguments of one of its own tools.
const TOOL_FORM: &str = "tool_form";

/// What the settings of servers of tools begin with.
const SERVERS: &str = "mcp_servers.";

/// The probes that have a plan carried out, and taken back.
const PLAN_PROBES: [&str; 2] = ["plan", "undo"];

/// The real Hermes, imported and warm.
pub(crate) struct HermesDriver {
    module: Py<PyModule>,
    version: String,
}

impl HermesDriver {
    /// Imports Hermes. Must run inside the template tree.
    pub(crate) fn load(py: Python<'_>) -> PyResult<Self> {
        let mut module: Option<Bound<'_, PyModule>> = None;
        for (name, source) in SOURCES {
            let loaded = PyModule::from_code(py, source, name, name)?;
            if module.is_none() {
                // The first is about memory: what is loaded next lies in the room it makes.
                loaded.setattr("KEPT", loaded.getattr("make_room")?.call0()?)?;
            }
            module = Some(loaded);
        }
        let Some(module) = module else {
            return Err(pyo3::exceptions::PyRuntimeError::new_err("no driver"));
        };
        let version = module.getattr("load")?.call0()?.extract()?;
        Ok(Self {
            module: module.unbind(),
            version,
        })
    }

    /// Whether it is one of the releases 0.13 to 0.18.
    fn makes_directories_at_once(&self) -> bool {
        let minor = self.version.split('.').nth(1);
        minor
            .and_then(|minor| minor.parse::<u32>().ok())
            .is_some_and(|minor| minor < 19)
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
            Step::Probe { name, input } if name == TOOL_BATCH => {
                let told: String = session
                    .call_method1("batch", (input.to_string(),))?
                    .extract()?;
                Ok(StepTrace {
                    answer: json!({"decision": "none", "value": results(&told)}),
                    ..StepTrace::of(StepOutcome::Ran)
                })
            }
            Step::Probe { name, input } if name == SCRIPTED_CONVERSATION => {
                let told: String = session
                    .call_method1("converse", (input.to_string(),))?
                    .extract()?;
                let told: Value = serde_json::from_str(&told).unwrap_or_default();
                Ok(StepTrace {
                    answer: json!({"decision": "none", "value": told}),
                    ..StepTrace::of(StepOutcome::Ran)
                })
            }
            Step::Probe { name, input } if name == BARE_LOOP => {
                let told: String = session
                    .call_method1("bare", (input.to_string(),))?
                    .extract()?;
                Ok(StepTrace {
                    answer: serde_json::from_str(&told).unwrap_or_default(),
                    ..StepTrace::of(StepOutcome::Ran)
                })
            }
            Step::Probe { name, .. } if name == TOOLS_OFFERED => {
                let told: String = session.call_method0("offered")?.extract()?;
                let told: Value = serde_json::from_str(&told).unwrap_or_default();
                Ok(StepTrace {
                    answer: json!({"decision": "none", "value": told}),
                    ..StepTrace::of(StepOutcome::Ran)
                })
            }
            Step::Probe { name, input } if name == TOOL_FORM => {
                let tool = input
                    .get("tool")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let told: String = session.call_method1("form", (tool,))?.extract()?;
                let told: Value = serde_json::from_str(&told).unwrap_or_default();
                Ok(StepTrace {
                    answer: json!({"decision": "none", "value": told}),
                    ..StepTrace::of(StepOutcome::Ran)
                })
            }
            Step::Probe { name, input } if screen::NAMES.contains(&name.as_str()) => {
                screen::answer(py, session, name, input)
            }
            Step::Probe { name, input } if PLAN_PROBES.contains(&name.as_str()) => {
                carried_out(py, session, input)
            }
            Step::Probe { name, input } => Ok(probe_trace(probe::answer(py, name, input))),
            Step::EndSession {} => {
                session.call_method0("end")?;
                Ok(StepTrace::of(StepOutcome::Ran))
            }
            Step::Spawn { child, .. } => {
                let told: String = session.call_method1("spawn", (child,))?.extract()?;
                Ok(spawned(told))
            }
            Step::Grant(held) => standing::give(session, held),
            Step::Revoke { grant } => standing::withdraw(session, grant),
            // Scopes (once, session, always) do not run out by themselves.
            Step::Advance { .. } => Ok(unsupported("no-expiry")),
            Step::Restart(restart) => {
                // Hermes is not killed in the middle: it makes the whole call.
                if let Some(cut) = &restart.during {
                    session.call_method0("hush")?;
                    self.step(py, session, &cut.step)?;
                    session.call_method0("speak")?;
                }
                restart::run(session, restart)
            }
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

    fn is_out_of_reach(&self) -> bool {
        true
    }

    fn prepare(&self, job: &Job) -> Result<(), WorldError> {
        let kind = match (job.drive, job.context) {
            (Drive::Wire, _) => Some("server"),
            (Drive::Conversation, _) => Some("loop"),
            (Drive::Calls, Context::Acp) => Some("editor"),
            (
                Drive::Calls,
                Context::Headless | Context::Interactive | Context::Gateway | Context::Cron,
            ) => None,
        };
        for kind in kind
            .into_iter()
            .chain(has_servers(job).then_some("outside"))
            .chain(earlier::is_needed(job).then_some("earlier"))
        {
            Python::attach(|py| {
                self.module
                    .bind(py)
                    .call_method1("warm_up_for", (kind,))
                    .map(drop)
                    .map_err(|error| WorldError::new("import more of Hermes", describe(py, &error)))
            })?;
        }
        Ok(())
    }

    fn own_state(&self, job: &Job) -> &'static [&'static str] {
        match job.drive {
            // What servers print and the pictures they send is kept like a loop's own.
            Drive::Calls if has_servers(job) => &LOOP_STATE,
            Drive::Calls if earlier::is_needed(job) => &earlier::STATE,
            Drive::Calls => &JOB_STATE,
            Drive::Conversation | Drive::Wire => &LOOP_STATE,
        }
    }

    fn files(&self, job: &Job) -> Result<Vec<FileSpec>, WorldError> {
        let text = settings::config(job)?;
        let mut files = Vec::new();
        if text != HERMES_CONFIG {
            files.push(FileSpec {
                path: "/home/u/.hermes/config.yaml".to_owned(),
                kind: FileKind::Text(text),
                mode: None,
            });
        }
        if self.makes_directories_at_once() {
            files.extend(MADE_BY_OLDER_ONES.iter().map(|path| FileSpec {
                path: (*path).to_owned(),
                kind: FileKind::Dir(true),
                mode: Some(0o700),
            }));
        }
        Ok(files)
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
            | Step::Restart(_)
            | Step::Spawn { .. } => unsupported("needs-a-world"),
        }
    }

    fn run(&self, job: &Job, steps: &mut StepSink) -> Result<(), WorldError> {
        if job.drive == Drive::Wire {
            return wire::run(job, steps);
        }
        serves::start(job)?;
        Python::attach(|py| {
            earlier::enter(py, job)?;
            let cwd = job.world.as_ref().map_or("/", |world| world.cwd.as_str());
            let session = self
                .module
                .bind(py)
                .getattr("Session")
                .and_then(|class| {
                    class.call1((
                        job.context.word(),
                        answers(job),
                        cwd,
                        plan(job),
                        has_servers(job),
                    ))
                })
                .map_err(|error| WorldError::new("begin session", describe(py, &error)))?;
            for held in &job.held {
                standing::give(&session, held)
                    .map_err(|error| WorldError::new("give standing", describe(py, &error)))?;
            }
            for step in &job.script {
                steps.begin()?;
                let step = steps.filled(step);
                let trace = self.step(py, &session, &step).unwrap_or_else(|error| {
                    StepTrace::of(StepOutcome::Raised(describe(py, &error)))
                });
                steps.end(trace)?;
            }
            Ok(())
        })
    }
}

/// Whether a job's settings name servers of tools.
fn has_servers(job: &Job) -> bool {
    job.settings.keys().any(|name| name.starts_with(SERVERS))
}

/// What the model is told of each call: as JSON where it is, else as text;
/// nothing of one that was not made.
fn results(told: &str) -> Vec<Value> {
    let texts: Vec<Option<String>> = serde_json::from_str(told).unwrap_or_default();
    texts
        .into_iter()
        .map(|text| match text {
            Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            None => Value::Null,
        })
        .collect()
}

/// Hermes has no plans, and takes nothing back. It makes the calls that do what is
/// meant, and refuses where there are none, or where one of them does not work.
fn carried_out(py: Python<'_>, session: &Bound<'_, PyAny>, input: &Value) -> PyResult<StepTrace> {
    let calls = input.get("calls").and_then(Value::as_array);
    let mut questions = Vec::new();
    let mut texts = Vec::new();
    let mut is_done = calls.is_some_and(|calls| !calls.is_empty());
    for call in calls.into_iter().flatten() {
        let tool = call.get("tool").and_then(Value::as_str).unwrap_or_default();
        let args = call.get("args").cloned().unwrap_or(Value::Null);
        let arguments = py
            .import("json")?
            .call_method1("loads", (args.to_string(),))?;
        let seen: Seen = session
            .call_method1("call", (tool, arguments, None::<String>))?
            .extract()?;
        let trace = seen.into_trace(tool);
        is_done &= trace.outcome == StepOutcome::Ran;
        questions.extend(trace.questions);
        texts.push(trace.text);
    }
    let decision = if is_done { "permit" } else { "deny" };
    Ok(StepTrace {
        answer: serde_json::json!({"decision": decision, "value": null}),
        text: texts.join("\n"),
        questions,
        ..StepTrace::of(StepOutcome::Ran)
    })
}

/// Who makes each call of a script, where a model makes them.
fn plan(job: &Job) -> Option<Vec<String>> {
    match job.drive {
        Drive::Calls | Drive::Wire => None,
        Drive::Conversation => Some(
            job.script
                .iter()
                .filter_map(|step| match step {
                    Step::Call { by, .. } => {
                        Some(by.clone().unwrap_or_else(|| "parent".to_owned()))
                    }
                    Step::Probe { .. }
                    | Step::Grant(_)
                    | Step::Revoke { .. }
                    | Step::Advance { .. }
                    | Step::EndSession {}
                    | Step::Restart(_)
                    | Step::Spawn { .. } => None,
                })
                .collect(),
        ),
    }
}

/// What became of a delegation, from what the model was told about it.
fn spawned(told: String) -> StepTrace {
    let failed = serde_json::from_str::<Value>(&told)
        .is_ok_and(|told| told.get("error").is_some_and(|error| !error.is_null()));
    if failed {
        StepTrace {
            text: told,
            ..StepTrace::of(StepOutcome::ToolError)
        }
    } else {
        // What a model is told of a child that works holds its random name.
        StepTrace::of(StepOutcome::Ran)
    }
}

/// What the user answers in turn, and before each what they do elsewhere, as JSON.
fn answers(job: &Job) -> Vec<(String, Vec<String>)> {
    let in_json = |doing: &Meanwhile| serde_json::to_string(doing).unwrap_or_default();
    job.user
        .answers()
        .into_iter()
        .map(|answer| (answer.answer, answer.first.iter().map(in_json).collect()))
        .collect()
}

/// What was shown, what was answered, and what happened in between: each as it was
/// given, and what of Hermes' it lacked.
type Question = (String, String, Vec<(String, String)>);

fn question((shown, answer, meanwhile): Question) -> QuestionTrace {
    let happened = |(what, lacks): (String, String)| {
        let what = serde_json::from_str(&what).ok()?;
        Some(Happened { what, lacks })
    };
    QuestionTrace {
        shown,
        answer,
        meanwhile: meanwhile.into_iter().filter_map(happened).collect(),
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
    questions: Vec<Question>,
}

impl Seen {
    fn into_trace(self, tool: &str) -> StepTrace {
        let outcome = match self.raised {
            Some(raised) => StepOutcome::Raised(raised),
            None => fate::of(tool, &self.text, !self.questions.is_empty()),
        };
        let questions = self.questions.into_iter().map(question).collect();
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

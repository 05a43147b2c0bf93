//! A bare shell as a subject: what a command does where nobody guards.
//!
//! It is the ground truth a generated command is measured by. It decides
//! nothing and asks nobody; the world around it is the only protection, as for
//! both other subjects.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use bisim_world::WorldError;
use bisim_world::driver::{Driver, Interior, StepSink};
use bisim_world::enter::{self, Harness};
use bisim_world::environment::ENVIRONMENT;
use bisim_world::protocol::{FileSpec, Job, Step, StepOutcome, StepTrace};
use bisim_world::zygote::{Pipes, Seedling};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;

use super::agent::SingleThreaded;

/// At most this much of the output is looked at.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// The longest file a command may make, its output included, which is kept in
/// memory. A world is full long before.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Runs the worker until the oracle says goodbye; returns the exit status.
/// Must be called before the process has a second thread.
#[must_use]
pub fn serve() -> u8 {
    let work = || {
        let mut pipes = Pipes::take_standard()?;
        if let Err(error) = enter::enter(&Harness::default(), &SingleThreaded) {
            pipes.fail(&error);
            return Err(error);
        }
        Seedling::plant(pipes, &SingleThreaded)?.serve(&BareShell, &SingleThreaded)
    };
    match work() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("shell worker: {error}");
            crate::exit::INTERNAL
        }
    }
}

struct BareShell;

impl Driver for BareShell {
    fn subject(&self) -> String {
        "bash".to_owned()
    }

    fn version(&self) -> String {
        String::new()
    }

    fn interior(&self) -> Interior {
        Interior::Plain
    }

    fn files(&self, _job: &Job) -> Result<Vec<FileSpec>, WorldError> {
        Ok(Vec::new())
    }

    fn pure(&self, _job: &Job, _step: &Step) -> StepTrace {
        StepTrace::of(StepOutcome::Unsupported("needs-a-world".to_owned()))
    }

    fn run(&self, job: &Job, steps: &mut StepSink) -> Result<(), WorldError> {
        let limit = Some(FILE_BYTES_MAX);
        let limit = Rlimit {
            current: limit,
            maximum: limit,
        };
        setrlimit(Resource::Fsize, limit)
            .map_err(|errno| WorldError::new("limit the output", errno))?;
        for step in &job.script {
            steps.begin()?;
            let trace = match step {
                Step::Call { tool, args, .. } if tool == "terminal" => run(job, args)?,
                Step::Call { .. }
                | Step::Probe { .. }
                | Step::Grant(_)
                | Step::Revoke { .. }
                | Step::Advance { .. }
                | Step::EndSession {}
                | Step::Restart(_)
                | Step::Spawn { .. } => {
                    StepTrace::of(StepOutcome::Unsupported("only-the-terminal".to_owned()))
                }
            };
            steps.end(trace)?;
        }
        Ok(())
    }
}

/// Runs one command to its end. Its output goes to a file, not a pipe, so that
/// what it leaves in the background keeps nobody waiting.
fn run(job: &Job, args: &Value) -> Result<StepTrace, WorldError> {
    let failed = |error: std::io::Error| WorldError::new("run the shell", error);
    let command = args
        .get("command")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let output = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|errno| failed(errno.into()))?;
    let copy = |fd: &OwnedFd| fd.try_clone().map(Stdio::from).map_err(failed);
    let status = Command::new("/bin/bash")
        .args(["-c", command])
        .env_clear()
        .envs(ENVIRONMENT)
        .current_dir(job.world.as_ref().map_or("/", |world| world.cwd.as_str()))
        .stdin(Stdio::null())
        .stdout(copy(&output)?)
        .stderr(copy(&output)?)
        .status()
        .map_err(failed)?;
    let mut bytes = vec![0; OUTPUT_BYTES_MAX];
    let length = rustix::io::pread(&output, &mut bytes, 0).map_err(|errno| failed(errno.into()))?;
    bytes.truncate(length);
    let mut trace = StepTrace::of(StepOutcome::Ran);
    trace.text = String::from_utf8_lossy(&bytes).into_owned();
    trace.answer = serde_json::json!({ "exit_code": status.code() });
    Ok(trace)
}

//! The two subjects: how their workers are started and asked.
//!
//! Everything behind [`Subject`] is a process of its own that speaks
//! `bisim_world::protocol`; the oracle never links a subject's behaviour into
//! its judgement.

pub mod agent;
pub mod agent_probe;
mod agent_wire;
pub mod agent_world;
mod earlier;
mod pair;
pub mod shell;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bisim_world::WorldError;
use bisim_world::launch::{Answer, Worker, agent_command, hermes_command};
use bisim_world::protocol::{Job, RawTrace};

pub use self::pair::{Starts, Subjects};
pub use crate::processes::Processes;

/// How long a worker may take to say hello; importing Hermes takes seconds.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// What names the place for temporary files.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TEMP", "TMP"];

/// Something that runs jobs.
pub trait Subject {
    /// Runs one job from start to end.
    ///
    /// # Errors
    /// The harness failed; the subject's own failures are in the trace.
    fn run(&mut self, job: Job) -> Result<RawTrace, WorldError>;

    /// The subject's own version.
    fn version(&self) -> &str;
}

/// How to start a subject's worker.
#[derive(Clone, Debug)]
pub enum Start {
    /// The real Hermes in its venv.
    Hermes {
        /// The venv's interpreter.
        python: PathBuf,
        /// The shim's shared object.
        extension: PathBuf,
    },
    /// The agent, in this program's hidden mode.
    Agent {
        /// This program.
        program: PathBuf,
        /// What its sandbox was seen to do in a world of this machine; the
        /// worker takes anything but `isolated` for unknown.
        isolation: String,
        /// A fault to plant, for the self-test.
        fault: Option<String>,
    },
    /// A bare shell, in this program's other hidden mode.
    Shell {
        /// This program.
        program: PathBuf,
    },
}

/// A worker that is started when it is needed and again after it was lost.
pub struct Restarting {
    start: Start,
    processes: Processes,
    log: Option<PathBuf>,
    worker: Option<Worker>,
    version: String,
}

impl Restarting {
    /// Prepares a subject; nothing is started yet.
    #[must_use]
    pub fn new(start: Start, processes: Processes, log: Option<PathBuf>) -> Self {
        Self {
            start,
            processes,
            log,
            worker: None,
            version: String::new(),
        }
    }

    /// Starts the worker now, so that faults of the machine show at once.
    ///
    /// # Errors
    /// The worker cannot start; the stage says why.
    pub fn ready(&mut self) -> Result<&mut Worker, WorldError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                let worker = Worker::spawn(self.command())?;
                let id = worker.id();
                // One that is still loading its subject is ended like any other.
                if !self.processes.takes(id) {
                    return Err(WorldError::new("start worker", "the run was interrupted"));
                }
                let worker = worker.greeted(START_PATIENCE).inspect_err(|_| {
                    self.processes.remove(id);
                })?;
                self.version.clone_from(&worker.version);
                worker
            }
        };
        Ok(self.worker.insert(worker))
    }

    /// Process id of the worker, if one is running.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.worker.as_ref().map(Worker::id)
    }

    fn command(&self) -> Command {
        let mut command = match &self.start {
            Start::Hermes { python, extension } => hermes_command(python, extension),
            Start::Agent {
                program,
                isolation,
                fault,
            } => {
                let mut command = agent_command(program, "__agent-worker");
                command.args(["--isolation", isolation]);
                if let Some(fault) = fault {
                    command.args(["--fault", fault]);
                }
                command
            }
            Start::Shell { program } => agent_command(program, "__shell-worker"),
        };
        // A directory of this machine's, which worlds do not have.
        for name in TEMPORARY {
            command.env_remove(name);
        }
        let log = self
            .log
            .as_ref()
            .and_then(|path| File::options().create(true).append(true).open(path).ok());
        command.stderr(log.map_or_else(Stdio::null, Stdio::from));
        // ^C at the terminal is for the oracle, which then ends its workers.
        command.process_group(0);
        command
    }
}

impl Subject for Restarting {
    fn run(&mut self, job: Job) -> Result<RawTrace, WorldError> {
        let worker = self.ready()?;
        match worker.run(job) {
            Answer::Trace(trace) => Ok(*trace),
            Answer::Failed(error) => Err(error),
            Answer::Lost(error) => {
                if let Some(worker) = self.worker.take() {
                    self.processes.remove(worker.id());
                }
                Err(error)
            }
        }
    }

    fn version(&self) -> &str {
        &self.version
    }
}

impl Drop for Restarting {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.processes.remove(worker.id());
            // A worker that does not leave is killed by its own drop.
            let _ = worker.shut_down();
        }
    }
}

//! Starts and talks to a worker process, from the oracle's side.
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::environment::ENVIRONMENT;
use crate::error::WorldError;
use crate::protocol::{Job, PROTOCOL_VERSION, RawTrace, Reply, Request, read_frame, write_frame};

/// Loads the extension module from a path and runs its worker.
const HERMES_START: &str = "import sys, importlib.machinery as m, importlib.util as u\n\
l = m.ExtensionFileLoader('hermes_shim', sys.argv[1])\n\
s = u.spec_from_loader('hermes_shim', l)\n\
e = u.module_from_spec(s)\n\
l.exec_module(e)\n\
e.worker(sys.argv[1])\n";

/// A worker that has said hello.
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    /// `hermes` or `hermitcrab`.
    pub subject: String,
    /// The subject's own version.
    pub version: String,
    next_id: u64,
}

/// What became of a job that was sent to a worker.
#[derive(Debug)]
pub enum Answer {
    /// It ran.
    Trace(Box<RawTrace>),
    /// The harness failed on this job; the worker lives on.
    Failed(WorldError),
    /// The worker is gone or silent and has been killed; start another one.
    Lost(WorldError),
}

/// The command that starts the Hermes worker: the venv's own `python`, which
/// loads the shim's shared object.
///
/// The caller decides where standard error goes.
pub fn hermes_command(python: &Path, extension: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-I", "-c", HERMES_START]).arg(extension);
    command
}

/// The command that starts the agent's worker: a hidden subcommand of the
/// oracle's own program, with the environment of a world and nothing else.
pub fn agent_command(program: &Path, subcommand: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(subcommand).env_clear().envs(ENVIRONMENT);
    command
}

impl Worker {
    /// Starts `command` as a worker and waits until it is ready.
    ///
    /// # Errors
    /// It cannot be started, says that it cannot work here, speaks another
    /// protocol, or does not answer within `patience`.
    pub fn start(command: Command, patience: Duration) -> Result<Self, WorldError> {
        Self::spawn(command)?.greeted(patience)
    }

    /// Starts `command` as a worker, which has not said hello yet; [`Self::greeted`] waits
    /// for that, and until then it takes no job.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(mut command: Command) -> Result<Self, WorldError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let program = Path::new(command.get_program()).display();
                WorldError::new("start worker", format_args!("`{program}`: {error}"))
            })?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(WorldError::new("start worker", "no pipes"));
        };
        Ok(Self {
            child,
            requests,
            replies: BufReader::new(replies),
            subject: String::new(),
            version: String::new(),
            next_id: 1,
        })
    }

    /// Waits until a spawned worker is ready.
    ///
    /// # Errors
    /// It says that it cannot work here, speaks another protocol, or does not answer
    /// within `patience`; it is ended then.
    pub fn greeted(mut self, patience: Duration) -> Result<Self, WorldError> {
        match self.exchange(
            &Request::Hello {
                protocol: PROTOCOL_VERSION,
            },
            patience,
        ) {
            Ok(Reply::Hello {
                protocol: PROTOCOL_VERSION,
                subject,
                version,
            }) => {
                self.subject = subject;
                self.version = version;
                Ok(self)
            }
            Ok(Reply::Hello { protocol, .. }) => Err(WorldError::new(
                "hello",
                format!("the worker speaks protocol {protocol}, not {PROTOCOL_VERSION}"),
            )),
            Ok(Reply::Failed { stage, message, .. }) => Err(WorldError { stage, message }),
            Ok(Reply::Done { .. }) => Err(WorldError::new(
                "hello",
                "the worker answered something else",
            )),
            Err(error) => {
                let status = self.kill();
                let ended = status
                    .map(|status| format!(" ({status})"))
                    .unwrap_or_default();
                Err(WorldError::new("hello", format!("{error}{ended}")))
            }
        }
    }

    /// Runs one job. Blocks until it is done; a worker that stays silent for
    /// half a minute past the job's deadline is killed.
    pub fn run(&mut self, job: Job) -> Answer {
        let id = self.next_id;
        self.next_id += 1;
        let patience = Duration::from_millis(job.deadline_ms) + Duration::from_secs(30);
        let reply = self.exchange(
            &Request::Run {
                id,
                job: Box::new(job),
            },
            patience,
        );
        let lost = match reply {
            Ok(Reply::Done { id: replied, trace }) if replied == id => return Answer::Trace(trace),
            Ok(Reply::Failed {
                id: replied,
                stage,
                message,
            }) if replied == id => {
                return Answer::Failed(WorldError { stage, message });
            }
            Ok(_) => "the worker answered something else".to_owned(),
            Err(error) => error.to_string(),
        };
        let status = self.kill();
        let ended = status
            .map(|status| format!(" ({status})"))
            .unwrap_or_default();
        Answer::Lost(WorldError::new("talk to worker", format!("{lost}{ended}")))
    }

    /// Process id of the worker.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the worker to leave and waits for it.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn shut_down(mut self) -> io::Result<ExitStatus> {
        // A worker that is already gone is as good as one that leaves now.
        let _ = write_frame(&mut self.requests, &Request::Shutdown);
        self.child.wait()
    }

    fn exchange(&mut self, request: &Request, patience: Duration) -> io::Result<Reply> {
        write_frame(&mut self.requests, request)?;
        self.wait_readable(patience)?;
        read_frame(&mut self.replies)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the worker ended"))
    }

    fn wait_readable(&self, patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now()).as_millis();
            if left == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the worker is silent",
                ));
            }
            let timeout = PollTimeout::try_from(left.min(60_000)).map_err(io::Error::other)?;
            let mut watched = [PollFd::new(
                self.replies.get_ref().as_fd(),
                PollFlags::POLLIN,
            )];
            match poll(&mut watched, timeout) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Ends the worker by force; the kernel takes every world of it along.
    fn kill(&mut self) -> Option<ExitStatus> {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

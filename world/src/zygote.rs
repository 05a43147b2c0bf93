//! The worker's loop: read a job, give it a world, answer with what was seen.
//!
//! The zygote stays warm, has one thread and never runs a case itself; only
//! pure probes are answered in it. What the subject is, and how it is driven,
//! is behind [`Driver`].
use std::fs::File;
use std::io::BufReader;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};

use crate::driver::Driver;
use crate::error::{AtStage, WorldError};
use crate::fork::Forker;
use crate::protocol::{
    End, Job, PROTOCOL_VERSION, RawTrace, Reply, Request, Step, StepOutcome, StepTrace, read_frame,
    write_frame,
};
use crate::stem::Stem;
use crate::usage::cpu_us;
use crate::world::Worlds;

/// The worker's two pipes, moved out of reach of everything it runs.
pub struct Pipes {
    requests: BufReader<File>,
    requests_fd: OwnedFd,
    replies: File,
}

impl Pipes {
    /// Takes standard input and output for the protocol: afterwards standard
    /// input is empty and standard output goes where standard error goes.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn take_standard() -> Result<Self, WorldError> {
        let stage = "take the worker's pipes";
        let own = |fd: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, 10).at(stage);
        let requests = own(std::io::stdin().as_fd())?;
        let replies = own(std::io::stdout().as_fd())?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .at(stage)?;
        rustix::stdio::dup2_stdin(&null).at(stage)?;
        rustix::stdio::dup2_stdout(std::io::stderr().as_fd()).at(stage)?;
        Ok(Self {
            requests_fd: requests.try_clone().at(stage)?,
            requests: BufReader::new(File::from(requests)),
            replies: File::from(replies),
        })
    }

    /// Where it shows that the oracle has gone away.
    fn oracle(&self) -> BorrowedFd<'_> {
        self.requests_fd.as_fd()
    }

    /// Tells the oracle that the worker cannot start; the first frame it reads.
    pub fn fail(&mut self, error: &WorldError) {
        // Nobody is left to tell if this fails too; the exit status remains.
        let _ = write_frame(
            &mut self.replies,
            &Reply::Failed {
                id: 0,
                stage: error.stage.clone(),
                message: error.message.clone(),
            },
        );
    }
}

/// A zygote before its subject is loaded: its pipes, and the stem of its observers.
pub struct Seedling {
    pipes: Pipes,
    stem: Stem,
}

impl Seedling {
    /// Plants the stem. Call it inside the template, before the subject is
    /// loaded: the stem keeps what memory the process has now.
    ///
    /// # Errors
    /// The kernel refuses a process; the oracle has been told.
    pub fn plant(mut pipes: Pipes, forker: &dyn Forker) -> Result<Self, WorldError> {
        match Stem::plant(forker) {
            Ok(stem) => Ok(Self { pipes, stem }),
            Err(error) => {
                pipes.fail(&error);
                Err(error)
            }
        }
    }

    /// Tells the oracle that the worker cannot start; the first frame it reads.
    pub fn fail(&mut self, error: &WorldError) {
        self.pipes.fail(error);
    }

    /// Serves jobs until the oracle says goodbye or goes away.
    ///
    /// # Errors
    /// The pipes are broken or the oracle speaks another protocol.
    pub fn serve(self, driver: &dyn Driver, forker: &dyn Forker) -> Result<(), WorldError> {
        let Self { mut pipes, stem } = self;
        let mut worlds = Worlds::new(stem)?;
        loop {
            let request = read_frame::<Request>(&mut pipes.requests).at("read request")?;
            let reply = match request {
                None | Some(Request::Shutdown) => return Ok(()),
                Some(Request::Hello { protocol }) if protocol != PROTOCOL_VERSION => {
                    return Err(WorldError::new(
                        "hello",
                        format!("protocol {protocol}, not {PROTOCOL_VERSION}"),
                    ));
                }
                Some(Request::Hello { .. }) => Reply::Hello {
                    protocol: PROTOCOL_VERSION,
                    subject: driver.subject(),
                    version: driver.version(),
                },
                Some(Request::Run { id, job }) => {
                    match run(&mut worlds, &pipes, &job, driver, forker) {
                        Ok(trace) => Reply::Done {
                            id,
                            trace: Box::new(trace),
                        },
                        Err(error) => Reply::Failed {
                            id,
                            stage: error.stage,
                            message: error.message,
                        },
                    }
                }
            };
            write_frame(&mut pipes.replies, &reply).at("write reply")?;
        }
    }
}

fn run(
    worlds: &mut Worlds,
    pipes: &Pipes,
    job: &Job,
    driver: &dyn Driver,
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    let started = Instant::now();
    let before = cpu_us()?;
    let (mut trace, observing) = match &job.world {
        None => (run_pure(job, driver), 0),
        Some(_) => {
            driver.prepare(job)?;
            worlds.run(job, pipes.oracle(), driver, forker)?
        }
    };
    trace.cpu_us = cpu_us()?.saturating_sub(before).saturating_add(observing);
    trace.wall_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    Ok(trace)
}

fn run_pure(job: &Job, driver: &dyn Driver) -> RawTrace {
    let steps = job
        .script
        .iter()
        .map(|step| match step {
            Step::Probe { .. } => driver.pure(job, step),
            Step::Call { .. }
            | Step::Grant(_)
            | Step::Revoke { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Restart(_)
            | Step::Spawn { .. } => {
                StepTrace::of(StepOutcome::Unsupported("needs-a-world".to_owned()))
            }
        })
        .collect();
    RawTrace {
        steps,
        effects: Vec::new(),
        network: Vec::new(),
        tripwires: Vec::new(),
        end: End::Finished,
        cpu_us: 0,
        wall_us: 0,
    }
}

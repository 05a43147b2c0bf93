//! The worker's loop: read a job, give it a world, answer with what was seen.
//!
//! The zygote stays warm, has one thread and never runs a case itself; only
//! pure probes are answered in it. What the subject is, and how it is driven,
//! is behind [`Driver`].
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use crate::error::{AtStage, WorldError};
use crate::fork::Forker;
use crate::observer::Report;
use crate::protocol::{
    End, FileSpec, Job, PROTOCOL_VERSION, RawTrace, Reply, Request, Step, StepOutcome, StepTrace,
    read_frame, write_frame,
};
use crate::stem::{Stem, cpu_us};
use crate::world::Worlds;

/// One subject, as the zygote sees it.
pub trait Driver {
    /// `hermes` or `hermitcrab`.
    fn subject(&self) -> String;

    /// The subject's own version, as it states it.
    fn version(&self) -> String;

    /// How much of the kernel a world of this subject shows.
    fn interior(&self) -> Interior;

    /// Whether nobody else in the world may reach its first process. That takes a program
    /// which was started inside the zygote's user namespace: an observer could not trace
    /// another one, and it could not write its children's user maps.
    fn is_out_of_reach(&self) -> bool {
        false
    }

    /// Files the subject needs in the world before it starts, such as its settings.
    /// They belong to the starting tree and are no effects.
    ///
    /// # Errors
    /// The job's settings mean nothing to the subject.
    fn files(&self, job: &Job) -> Result<Vec<FileSpec>, WorldError>;

    /// Makes the zygote ready for such a job, once; what it makes is shared by
    /// every later world. It must leave the process with one thread.
    ///
    /// # Errors
    /// The subject cannot run such a job at all.
    fn prepare(&self, _job: &Job) -> Result<(), WorldError> {
        Ok(())
    }

    /// Absolute paths the subject keeps for itself while it runs such a job,
    /// with all below them; changes there are no effects.
    fn own_state(&self, _job: &Job) -> &'static [&'static str] {
        &[]
    }

    /// Answers one step of a job that has no world; only probes can be answered.
    fn pure(&self, job: &Job, step: &Step) -> StepTrace;

    /// Whether the subject can be killed in the middle of a step and go on after it. If
    /// not, it makes the whole call of such a step and is started again by itself.
    fn can_be_cut_off(&self) -> bool {
        false
    }

    /// Runs the script. Called once, in the world, as its pid 1; and once more for each
    /// step that was cut off, from there on.
    ///
    /// # Errors
    /// The harness failed; a subject's own failures are outcomes of steps.
    fn run(&self, job: &Job, steps: &mut StepSink) -> Result<(), WorldError>;
}

/// What a world's inside may do with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interior {
    /// Nothing but run programs: dangerous proc files are covered.
    Plain,
    /// May make user namespaces with their own proc inside: proc stays whole.
    Nestable,
}

/// Where a driver reports its steps from inside the world.
pub struct StepSink {
    pub(crate) reports: File,
    pub(crate) answers: File,
    /// What the steps so far told the model.
    pub(crate) texts: Vec<String>,
    /// Whether a step begins only when the observer says so.
    pub(crate) waits: bool,
    /// Where this process goes on, if another one has ended there.
    pub(crate) again: Option<usize>,
}

impl StepSink {
    /// A step with what it takes from earlier results filled in.
    #[must_use]
    pub fn filled(&self, step: &Step) -> Step {
        crate::script::filled(step, &self.texts)
    }

    /// The step at which the process before this one was killed: the subject is started
    /// there again, and the steps before it are over. `None` in a world's first process.
    #[must_use]
    pub const fn again(&self) -> Option<usize> {
        self.again
    }

    /// Says that a call which is to be cut off has ended by itself, and waits for the end.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn over(&mut self) -> Result<(), WorldError> {
        write_frame(&mut self.reports, &Report::Over).at("report step")?;
        self.answers.read_exact(&mut [0_u8]).at("wait for the end")
    }

    /// Says that a step begins, so that a step that never ends is seen; where
    /// something changes places, waits until it is about to.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn begin(&mut self) -> Result<(), WorldError> {
        write_frame(&mut self.reports, &Report::Begin).at("report step")?;
        if self.waits {
            self.answers
                .read_exact(&mut [0_u8])
                .at("wait for observer")?;
        }
        Ok(())
    }

    /// Reports a finished step and waits until its effects are noted.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn end(&mut self, trace: StepTrace) -> Result<(), WorldError> {
        self.texts.push(trace.text.clone());
        write_frame(&mut self.reports, &Report::Step(Box::new(trace))).at("report step")?;
        self.answers.read_exact(&mut [0_u8]).at("wait for observer")
    }
}

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

impl StepTrace {
    /// A trace with this outcome and nothing else.
    pub fn of(outcome: StepOutcome) -> Self {
        Self {
            outcome,
            text: String::new(),
            answer: Value::Null,
            questions: Vec::new(),
            effects: Vec::new(),
        }
    }
}

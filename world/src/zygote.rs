//! The worker's loop: read a job, give it a world, answer with what was seen.
//!
//! The zygote stays warm, has one thread and never runs a case itself; only
//! pure probes are answered in it. What the subject is, and how it is driven,
//! is behind [`Driver`].
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use crate::error::{AtStage, WorldError};
use crate::fork::{Forked, Forker};
use crate::observer::{self, Report};
use crate::protocol::{
    End, FileSpec, Job, PROTOCOL_VERSION, RawTrace, Reply, Request, Step, StepOutcome, StepTrace,
    read_frame, write_frame,
};

/// The environment of every world; nothing else is passed on from the host.
pub const ENVIRONMENT: [(&str, &str); 11] = [
    ("HOME", "/home/u"),
    ("HERMES_HOME", "/home/u/.hermes"),
    ("USER", "u"),
    ("LOGNAME", "u"),
    ("SHELL", "/bin/bash"),
    (
        "PATH",
        "/.trip/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    ("PYTHONHASHSEED", "0"),
];

/// How much longer than its deadline a case may take before the harness itself is at fault.
const GRACE: Duration = Duration::from_secs(20);

/// One subject, as the zygote sees it.
pub trait Driver {
    /// `hermes` or `hermitcrab`.
    fn subject(&self) -> String;

    /// The subject's own version, as it states it.
    fn version(&self) -> String;

    /// How much of the kernel a world of this subject shows.
    fn interior(&self) -> Interior;

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

    /// Runs the script. Called once, in the world, as its pid 1.
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
}

impl StepSink {
    /// Says that a step begins, so that a step that never ends is seen.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn begin(&mut self) -> Result<(), WorldError> {
        write_frame(&mut self.reports, &Report::Begin).at("report step")
    }

    /// Reports a finished step and waits until its effects are noted.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn end(&mut self, trace: StepTrace) -> Result<(), WorldError> {
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

/// Serves jobs until the oracle says goodbye or goes away.
///
/// # Errors
/// The pipes are broken or the oracle speaks another protocol.
pub fn serve(mut pipes: Pipes, driver: &dyn Driver, forker: &dyn Forker) -> Result<(), WorldError> {
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
            Some(Request::Run { id, job }) => match run(&pipes, &job, driver, forker) {
                Ok(trace) => Reply::Done {
                    id,
                    trace: Box::new(trace),
                },
                Err(error) => Reply::Failed {
                    id,
                    stage: error.stage,
                    message: error.message,
                },
            },
        };
        write_frame(&mut pipes.replies, &reply).at("write reply")?;
    }
}

fn run(
    pipes: &Pipes,
    job: &Job,
    driver: &dyn Driver,
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    let started = Instant::now();
    let cpu_before = cpu_us()?;
    let mut trace = match &job.world {
        None => run_pure(job, driver),
        Some(_) => {
            driver.prepare(job)?;
            run_in_world(pipes, job, driver, forker)?
        }
    };
    trace.cpu_us = cpu_us()?.saturating_sub(cpu_before);
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

fn run_in_world(
    pipes: &Pipes,
    job: &Job,
    driver: &dyn Driver,
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    let (reader, writer) = std::io::pipe().at("make report pipe")?;
    let zygote = nix::unistd::getpid();
    match forker.fork().at("fork observer")? {
        Forked::Child => {
            drop(reader);
            let outcome = observer::observe(zygote, job, driver, forker);
            let mut writer = File::from(OwnedFd::from(writer));
            let sent = write_frame(
                &mut writer,
                &outcome.map_err(|error| (error.stage, error.message)),
            );
            forker.exit(if sent.is_ok() { 0 } else { 70 })
        }
        Forked::Parent { child } => {
            drop(writer);
            let mut reader = File::from(OwnedFd::from(reader));
            let limit = Duration::from_millis(job.deadline_ms) + GRACE;
            let outcome = match wait_for_report(pipes, reader.as_fd(), limit) {
                Ok(()) => read_frame::<Result<RawTrace, (String, String)>>(&mut reader)
                    .at("read observer's report"),
                Err(error) => {
                    // The observer's death kills the world's pid 1, and that everything in it.
                    let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
                    Err(error)
                }
            };
            let status = waitpid(Pid::from_raw(child), None).at("wait for observer")?;
            match outcome? {
                Some(Ok(trace)) => Ok(trace),
                Some(Err((stage, message))) => Err(WorldError { stage, message }),
                None => Err(WorldError::new(
                    "observe",
                    format!("the observer ended without a report ({status:?})"),
                )),
            }
        }
    }
}

/// Waits until the observer writes, the oracle hangs up, or the limit passes.
fn wait_for_report(
    pipes: &Pipes,
    reader: BorrowedFd<'_>,
    limit: Duration,
) -> Result<(), WorldError> {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        if left == 0 {
            return Err(WorldError::new(
                "observe",
                "the observer outlived the deadline",
            ));
        }
        let timeout = PollTimeout::try_from(left.min(60_000)).at("poll")?;
        let mut watched = [
            PollFd::new(reader, PollFlags::POLLIN),
            PollFd::new(pipes.requests_fd.as_fd(), PollFlags::empty()),
        ];
        match poll(&mut watched, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(WorldError::new("poll", errno)),
        }
        let [report, oracle] = &watched;
        if report.any().unwrap_or(false) {
            return Ok(());
        }
        if oracle
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLHUP))
        {
            return Err(WorldError::new("observe", "the oracle went away"));
        }
    }
}

/// CPU time of this process and the children it has waited for.
fn cpu_us() -> Result<u64, WorldError> {
    let mut total = 0_i64;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who).at("measure cpu time")?;
        for time in [usage.user_time(), usage.system_time()] {
            total += time.tv_sec() * 1_000_000 + time.tv_usec();
        }
    }
    Ok(u64::try_from(total).unwrap_or(0))
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

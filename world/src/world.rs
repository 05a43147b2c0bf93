//! One world, from the zygote's side: an observer, and the interior, forked from the
//! zygote into the observer's mounts and network. The observer, which the stem let grow, watches
//! the next world as well, unless something went wrong or happened to a step from outside.
//!
//! The interior is the zygote's own child, so the zygote waits for it, and ends
//! it when the observer asks, dies or outlives every limit. Whatever happens,
//! nothing of a world is left when [`Worlds::run`] returns.
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use rustix::process::PidfdFlags;

use crate::driver::{Driver, StepSink};
use crate::enter;
use crate::error::{AtStage, WorldError};
use crate::fork::{Forked, Forker};
use crate::interior;
use crate::observer::{Born, Brief, Ended, PLACES, Report, ToZygote};
use crate::protocol::{Job, RawTrace, read_frame, write_frame};
use crate::rights;
use crate::stem::Stem;

/// How much longer than its deadline a case may take before the harness itself is at fault.
const GRACE: Duration = Duration::from_secs(20);

/// Where worlds come from.
pub(crate) struct Worlds {
    stem: Stem,
    /// Waits for the next world.
    observer: Option<Observer>,
    /// The zygote's own pid namespace, to come back to.
    pids: OwnedFd,
}

impl Worlds {
    /// Worlds whose observers grow from `stem`. From here on the zygote's children start nothing
    /// that has a capability.
    pub(crate) fn new(stem: Stem) -> Result<Self, WorldError> {
        enter::bound_capabilities()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let pids = rustix::fs::open("/proc/self/ns/pid", flags, Mode::empty())
            .at("open the zygote's namespace")?;
        Ok(Self {
            stem,
            observer: None,
            pids,
        })
    }

    /// Runs a case; what was seen, and the processor time of the observer in
    /// microseconds. Ends early when `oracle` hangs up.
    pub(crate) fn run(
        &mut self,
        job: &Job,
        oracle: BorrowedFd<'_>,
        driver: &dyn Driver,
        forker: &dyn Forker,
    ) -> Result<(RawTrace, u64), WorldError> {
        let mut files = driver.files(job)?;
        if let Some(world) = &job.world {
            files.extend(world.files.iter().cloned());
        }
        let flip = job.world.as_ref().and_then(|world| world.flip.clone());
        let own_state = driver.own_state(job);
        let brief = Brief {
            files,
            own_state: own_state.iter().map(|path| (*path).to_owned()).collect(),
            deadline_ms: job.deadline_ms,
            flip: flip.map(|flip| (flip, driver.interior() == crate::driver::Interior::Plain)),
            cuts: cuts(job, driver),
        };
        let observer = match self.observer.take() {
            Some(observer) => observer,
            None => Observer::new(self.stem.grow()?),
        };
        let mut live = Live {
            observer,
            oracle,
            until: Instant::now() + Duration::from_millis(job.deadline_ms) + GRACE,
            interior: None,
        };
        let outcome = live
            .brief(&brief)
            .and_then(|ends| self.follow(&mut live, job, driver, forker, ends));
        let goes = outcome.is_err() || brief.has_course();
        let (mut observer, left) = live.end(outcome.is_err());
        let mut observing = outcome.as_ref().map_or(0, |trace| trace.cpu_us);
        if goes || left.is_err() {
            let told = observer.told_us;
            // The end of its socket is the end of an observer that still lives.
            drop(observer);
            observing = self.stem.reaped()?.saturating_sub(told);
        } else {
            observer.told_us += observing;
            self.observer = Some(observer);
        }
        left?;
        Ok((outcome?, observing))
    }

    fn follow(
        &self,
        live: &mut Live<'_>,
        job: &Job,
        driver: &dyn Driver,
        forker: &dyn Forker,
        ends: Ends,
    ) -> Result<RawTrace, WorldError> {
        match live.hear()? {
            ToZygote::Ready => {}
            ToZygote::Failed { stage, message } => return Err(WorldError { stage, message }),
            ToZygote::TimeIsUp | ToZygote::Again { .. } | ToZygote::Seen(_) => {
                return Err(out_of_turn());
            }
        }
        let places = rights::receive::<PLACES>(&live.observer.socket).at("receive the world")?;
        let steps = ends.sink(None, Vec::new())?;
        self.fork_interior(live, job, driver, forker, steps, &places)?;
        // Only who makes another interior keeps what that takes: the observer sees the
        // end of the others by the end of their pipe.
        let kept = ends.goes_on.then_some((ends, places));
        loop {
            match (live.hear()?, &kept) {
                (ToZygote::TimeIsUp, _) => live.kill_interior()?,
                (ToZygote::Again { step, texts }, Some((ends, places))) => {
                    let steps = ends.sink(Some(step), texts)?;
                    self.fork_interior(live, job, driver, forker, steps, places)?;
                }
                (ToZygote::Seen(trace), _) => return Ok(*trace),
                (ToZygote::Failed { stage, message }, _) => {
                    return Err(WorldError { stage, message });
                }
                (ToZygote::Ready | ToZygote::Again { .. }, _) => return Err(out_of_turn()),
            }
        }
    }

    /// Forks pid 1 of a new pid namespace. The child does not return.
    fn fork_interior(
        &self,
        live: &mut Live<'_>,
        job: &Job,
        driver: &dyn Driver,
        forker: &dyn Forker,
        mut steps: StepSink,
        places: &[OwnedFd; PLACES],
    ) -> Result<(), WorldError> {
        let waits = steps.waits;
        unshare(CloneFlags::CLONE_NEWPID).at("unshare pid namespace")?;
        let forked = forker.fork();
        if let Ok(Forked::Child) = forked {
            let status = match interior::live(places, job, driver, &mut steps) {
                Ok(()) => 0,
                Err(WorldError { stage, message }) => {
                    // If the observer is gone, so is the reason to live.
                    let _ = write_frame(&mut steps.reports, &Report::Failed { stage, message });
                    70
                }
            };
            forker.exit(status)
        }
        let back = setns(&self.pids, CloneFlags::CLONE_NEWPID).at("return from pid namespace");
        if let Ok(Forked::Parent { child }) = forked {
            live.interior = Some(Interior::new(Pid::from_raw(child))?);
            if waits {
                write_frame(&mut live.observer.socket, &Born(child)).at("tell the observer")?;
            }
        }
        forked.at("fork world")?;
        back
    }
}

/// The interior's ends of the two pipes to its observer.
struct Ends {
    reports: OwnedFd,
    answers: OwnedFd,
    waits: bool,
    /// Whether another interior may follow on the first.
    goes_on: bool,
}

impl Ends {
    fn sink(&self, again: Option<usize>, texts: Vec<String>) -> Result<StepSink, WorldError> {
        let stage = "hand on the observer's pipes";
        Ok(StepSink {
            reports: File::from(self.reports.try_clone().at(stage)?),
            answers: File::from(self.answers.try_clone().at(stage)?),
            texts,
            waits: self.waits,
            again,
        })
    }
}

/// Where each step is cut off; nothing for a job without such a step, and for a subject
/// that cannot be.
fn cuts(job: &Job, driver: &dyn Driver) -> Vec<Option<u32>> {
    let cuts = job
        .script
        .iter()
        .map(|step| step.cut().map(|cut| cut.before));
    let cuts: Vec<Option<u32>> = cuts.collect();
    let any = driver.can_be_cut_off() && cuts.iter().any(Option::is_some);
    if any { cuts } else { Vec::new() }
}

fn out_of_turn() -> WorldError {
    WorldError::new("hear the observer", "it spoke out of turn")
}

/// A living world's pid 1.
struct Interior {
    pid: Pid,
    /// Readable once it has ended.
    ended: OwnedFd,
}

impl Interior {
    fn new(pid: Pid) -> Result<Self, WorldError> {
        let opened = rustix::process::Pid::from_raw(pid.as_raw())
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
        match opened {
            Ok(ended) => Ok(Self { pid, ended }),
            Err(errno) => {
                // Nobody could see it end.
                let _ = kill(pid, Signal::SIGKILL);
                let _ = waitpid(pid, None);
                Err(WorldError::new("watch world", errno))
            }
        }
    }

    /// Waits for the end, which is the end of everything in the world.
    fn reap(self) -> Result<Ended, WorldError> {
        loop {
            match waitpid(self.pid, None) {
                Ok(WaitStatus::Exited(_, status)) => return Ok(Ended::Exited(status)),
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    return Ok(Ended::Signalled(signal as i32));
                }
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(WorldError::new("wait for world", errno)),
            }
        }
    }
}

/// An observer, as the zygote knows it.
struct Observer {
    pid: Pid,
    socket: UnixStream,
    /// The processor time it has told of, in microseconds.
    told_us: u64,
}

impl Observer {
    fn new((pid, socket): (Pid, UnixStream)) -> Self {
        Self {
            pid,
            socket,
            told_us: 0,
        }
    }
}

/// The two processes of a world, as long as it lives.
struct Live<'o> {
    observer: Observer,
    oracle: BorrowedFd<'o>,
    until: Instant,
    interior: Option<Interior>,
}

impl Live<'_> {
    /// Tells the observer of the case; the interior's ends of the pipes between the two.
    fn brief(&mut self, brief: &Brief) -> Result<Ends, WorldError> {
        let stage = "make the observer's pipes";
        let (reports, reports_interior) = std::io::pipe().at(stage)?;
        let (answers_interior, answers) = std::io::pipe().at(stage)?;
        let stage = "tell the observer of the case";
        write_frame(&mut self.observer.socket, brief).at(stage)?;
        let given = [reports.as_fd(), answers.as_fd()];
        rights::send(&self.observer.socket, &given).at(stage)?;
        Ok(Ends {
            reports: OwnedFd::from(reports_interior),
            answers: OwnedFd::from(answers_interior),
            waits: brief.has_course(),
            goes_on: !brief.cuts.is_empty(),
        })
    }

    /// The observer's next words. Meanwhile an interior that ends is waited
    /// for, and the observer told.
    fn hear(&mut self) -> Result<ToZygote, WorldError> {
        loop {
            let (spoken, ended) = self.wait()?;
            if ended && let Some(interior) = self.interior.take() {
                let how = interior.reap()?;
                // An observer that is gone is noticed in what it says next: nothing.
                let _ = write_frame(&mut self.observer.socket, &how);
            }
            if spoken {
                return read_frame(&mut self.observer.socket)
                    .at("read observer's report")?
                    .ok_or_else(|| {
                        WorldError::new("observe", "the observer ended without a report")
                    });
            }
        }
    }

    /// Waits until the observer speaks or the interior ends; an error when the
    /// oracle hangs up or the limit passes.
    fn wait(&self) -> Result<(bool, bool), WorldError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(WorldError::new(
                "observe",
                "the observer outlived the deadline",
            ));
        }
        let timeout = left.as_millis().saturating_add(1).min(60_000);
        let mut watched = vec![
            PollFd::new(self.observer.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.oracle, PollFlags::empty()),
        ];
        if let Some(interior) = &self.interior {
            watched.push(PollFd::new(interior.ended.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut watched, PollTimeout::try_from(timeout).at("poll")?) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(WorldError::new("poll", errno)),
        }
        let any = |number: usize| watched.get(number).and_then(PollFd::any).unwrap_or(false);
        let gone = watched.get(1).and_then(PollFd::revents);
        if gone.is_some_and(|events| events.contains(PollFlags::POLLHUP)) && !any(0) {
            return Err(WorldError::new("observe", "the oracle went away"));
        }
        Ok((any(0), any(2)))
    }

    fn kill_interior(&self) -> Result<(), WorldError> {
        match &self.interior {
            Some(interior) => kill(interior.pid, Signal::SIGKILL).at("kill world"),
            None => Ok(()),
        }
    }

    /// Ends what still lives: always the interior, and the observer where it
    /// has not had its say. The stem waits for the observer.
    fn end(mut self, failed: bool) -> (Observer, Result<(), WorldError>) {
        let mut ended = self.kill_interior();
        if let Some(interior) = self.interior.take() {
            ended = ended.and(interior.reap().map(drop));
        }
        if failed {
            // It may have ended by itself; the stem has not let its number go yet,
            // or it is the stem's to say that it is gone.
            let _ = kill(self.observer.pid, Signal::SIGKILL);
        }
        (self.observer, ended)
    }
}

//! The process that watches one world from outside.
//!
//! It owns everything the subject must not reach: the upper layer (whose
//! listing is the list of effects), the sink behind the world's loopback, and
//! the deadline. It is outside the world's pid namespace, so nothing in the
//! world can see or signal it.
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::effects::Lister;
use crate::error::{AtStage, WorldError};
use crate::fork::{Forked, Forker};
use crate::protocol::{End, Job, RawTrace, StepOutcome, StepTrace, read_frame, write_frame};
use crate::sink::Sink;
use crate::zygote::{Driver, StepSink};
use crate::{case_tree, interior, loopback, mounts};

/// Where the observer keeps a world's layers; a mount of its own.
const SCRATCH: &str = "/.w";
/// What a world may write, in total; reaching it is a full disk.
const UPPER_BYTES: &str = "64m";
/// How many files and directories a world may make.
const UPPER_INODES: &str = "32k";
/// Tripwire lines kept.
const TRIPWIRES_MAX: usize = 200;

/// From the interior to its observer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A step begins.
    Begin,
    /// A step has ended.
    Step(Box<StepTrace>),
    /// The harness failed inside the world.
    Failed { stage: String, message: String },
}

/// Builds a world for `job`, runs it and reports. Called in the observer.
pub(crate) fn observe(
    zygote: Pid,
    job: &Job,
    driver: &dyn Driver,
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    die_with(zygote)?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID)
        .at("unshare world")?;
    loopback::up()?;
    let mut sink = Sink::open()?;
    let layers = Layers::mount(job, driver)?;
    let (reports, reports_interior) = std::io::pipe().at("make step pipe")?;
    let (answers_interior, answers) = std::io::pipe().at("make step pipe")?;
    let until = Instant::now() + Duration::from_millis(job.deadline_ms);
    match forker.fork().at("fork world")? {
        Forked::Child => {
            drop((reports, answers, sink));
            let mut steps = StepSink {
                reports: File::from(OwnedFd::from(reports_interior)),
                answers: File::from(OwnedFd::from(answers_interior)),
            };
            let status = match interior::live(&layers.merged, job, driver, &mut steps) {
                Ok(()) => 0,
                Err(error) => {
                    let failed = Report::Failed {
                        stage: error.stage,
                        message: error.message,
                    };
                    // If the observer is gone, so is the reason to live.
                    let _ = write_frame(&mut steps.reports, &failed);
                    70
                }
            };
            forker.exit(status)
        }
        Forked::Parent { child } => {
            drop((reports_interior, answers_interior));
            let watch = Watch {
                child: Pid::from_raw(child),
                reports: File::from(OwnedFd::from(reports)),
                answers: File::from(OwnedFd::from(answers)),
                until,
            };
            let mut lister = Lister::new(&layers.upper, &layers.base, driver.own_state(job));
            let (mut steps, begun, end) = watch.run(&mut sink, &mut lister)?;
            let effects = lister.list().at("list effects")?;
            if begun {
                let what = match &end {
                    End::Finished => "the subject left without finishing this step".to_owned(),
                    End::TimedOut => "the deadline passed during this step".to_owned(),
                    End::Died(how) => format!("the subject died during this step: {how}"),
                };
                let mut last = StepTrace::of(StepOutcome::Raised(what));
                last.effects.clone_from(&effects);
                steps.push(last);
            }
            Ok(RawTrace {
                steps,
                effects,
                network: sink.into_attempts(),
                tripwires: tripwires(&layers.upper),
                end,
                cpu_us: 0,
                wall_us: 0,
            })
        }
    }
}

/// Asks the kernel to kill this process when its parent dies, and makes sure
/// that it has not already.
pub(crate) fn die_with(parent: Pid) -> Result<(), WorldError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).at("set parent death signal")?;
    if nix::unistd::getppid() == parent {
        Ok(())
    } else {
        Err(WorldError::new(
            "set parent death signal",
            "the parent is gone",
        ))
    }
}

/// The directories of one world.
struct Layers {
    /// What the world writes.
    upper: PathBuf,
    /// What it started from.
    base: PathBuf,
    /// What it sees.
    merged: PathBuf,
}

impl Layers {
    fn mount(job: &Job, driver: &dyn Driver) -> Result<Self, WorldError> {
        let scratch = Path::new(SCRATCH);
        mounts::tmpfs(
            scratch,
            &format!("mode=0700,size={UPPER_BYTES},nr_inodes={UPPER_INODES}"),
        )?;
        let directory = |name: &str| -> Result<PathBuf, WorldError> {
            let place = scratch.join(name);
            fs::create_dir(&place).at("make world layers")?;
            Ok(place)
        };
        let (upper, work, merged) = (
            directory("upper")?,
            directory("work")?,
            directory("merged")?,
        );
        let mut files = driver.files(job)?;
        files.extend(
            job.world
                .iter()
                .flat_map(|world| world.files.iter().cloned()),
        );
        let template = Path::new("/");
        let base = if files.is_empty() {
            mounts::overlay(&merged, &[template], Some((&upper, &work)))?;
            template.to_owned()
        } else {
            // The case's own entries are written through an overlay, so that they
            // may replace parts of the template, and then become a layer below.
            let (case, case_work, base) = (
                directory("case")?,
                directory("case-work")?,
                directory("base")?,
            );
            mounts::overlay(&base, &[template], Some((&case, &case_work)))?;
            case_tree::write(&base, &files)?;
            mounts::detach(&base)?;
            mounts::overlay(&base, &[&case, template], None)?;
            mounts::overlay(&merged, &[&case, template], Some((&upper, &work)))?;
            base
        };
        Ok(Self {
            upper,
            base,
            merged,
        })
    }
}

/// The running world, seen from the observer.
struct Watch {
    child: Pid,
    reports: File,
    answers: File,
    until: Instant,
}

impl Watch {
    /// Follows the world until it ends or is ended. Returns the finished steps,
    /// whether one more had begun, and how it ended; the world is dead by then.
    fn run(
        mut self,
        sink: &mut Sink,
        lister: &mut Lister,
    ) -> Result<(Vec<StepTrace>, bool, End), WorldError> {
        let mut steps = Vec::new();
        let mut begun = false;
        let mut failed = None;
        let mut timed_out = false;
        loop {
            let now = Instant::now();
            if now >= self.until {
                timed_out = true;
                break;
            }
            let wait = (self.until - now).min(sink.next_wake().unwrap_or(Duration::MAX));
            match self.wait(sink, wait)? {
                false => continue,
                true => match read_frame::<Report>(&mut self.reports) {
                    // Closed: the interior is ending.
                    Ok(None) | Err(_) => break,
                    Ok(Some(Report::Begin)) => begun = true,
                    Ok(Some(Report::Step(mut step))) => {
                        begun = false;
                        step.effects = lister.list().at("list effects")?;
                        steps.push(*step);
                        if self.answers.write_all(&[1]).is_err() {
                            break;
                        }
                    }
                    Ok(Some(Report::Failed { stage, message })) => {
                        failed = Some(WorldError { stage, message });
                        break;
                    }
                },
            }
        }
        let end = self.end(timed_out)?;
        sink.drain();
        match failed {
            Some(error) => Err(error),
            None => Ok((steps, begun, end)),
        }
    }

    /// Serves the sink for at most `wait`; true once the interior has something to say.
    fn wait(&self, sink: &mut Sink, wait: Duration) -> Result<bool, WorldError> {
        let mut watched = vec![PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
        watched.extend(
            sink.descriptors()
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
        );
        let milliseconds = i32::try_from(wait.as_millis().saturating_add(1)).unwrap_or(i32::MAX);
        match poll(
            &mut watched,
            PollTimeout::try_from(milliseconds).at("poll")?,
        ) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(WorldError::new("poll", errno)),
        }
        let reported = watched.first().and_then(PollFd::any).unwrap_or(false);
        drop(watched);
        sink.serve();
        Ok(reported)
    }

    /// Ends the world: the death of its pid 1 kills every process in it, and
    /// waiting for pid 1 returns only after that.
    fn end(&self, timed_out: bool) -> Result<End, WorldError> {
        if timed_out {
            kill(self.child, Signal::SIGKILL).at("kill world")?;
        }
        loop {
            match waitpid(self.child, None) {
                Ok(WaitStatus::Exited(_, 0)) if !timed_out => return Ok(End::Finished),
                Ok(WaitStatus::Exited(_, status)) if !timed_out => {
                    return Ok(End::Died(format!("exit {status}")));
                }
                Ok(WaitStatus::Signaled(_, signal, _)) if !timed_out => {
                    return Ok(End::Died(format!("signal {}", signal as i32)));
                }
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return Ok(End::TimedOut),
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(WorldError::new("wait for world", errno)),
            }
        }
    }
}

/// The command lines the stand-ins noted.
fn tripwires(upper: &Path) -> Vec<String> {
    let Ok(bytes) = fs::read(upper.join(".trip/log")) else {
        // Not written to, or removed together with its directory.
        return Vec::new();
    };
    String::from_utf8_lossy(&bytes)
        .lines()
        .take(TRIPWIRES_MAX)
        .map(str::to_owned)
        .collect()
}

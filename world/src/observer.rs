//! The process that watches one world from outside.
//!
//! It owns everything the subject must not reach: the upper layer (whose
//! listing is the list of effects), the sink behind the world's loopback, and
//! the deadline. It is outside the world's pid namespace, so nothing in the
//! world can see or signal it.
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::effects::Lister;
use crate::error::{AtStage, WorldError};
use crate::flip::{Flip, Flipper, Running};
use crate::fork::Forker;
use crate::protocol::{
    End, FileSpec, FsEffect, RawTrace, StepOutcome, StepTrace, read_frame, write_frame,
};
use crate::sink::Sink;
use crate::{case_tree, loopback, mounts, rights};

/// Where the observer keeps a world's layers; a mount of its own.
const SCRATCH: &str = "/.w";
/// Where the interior finds its world, in the observer's mounts.
pub(crate) const MERGED: &str = "/.w/merged";
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

/// What an observer has to know of a case.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Brief {
    /// Entries of the starting tree beside the template's.
    pub(crate) files: Vec<FileSpec>,
    /// Where the subject keeps what is no effect.
    pub(crate) own_state: Vec<String>,
    /// How long the world may live, in milliseconds.
    pub(crate) deadline_ms: u64,
    /// What changes places, and whether also while the subject's children look.
    pub(crate) flip: Option<(Flip, bool)>,
}

/// From an observer to the zygote.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToZygote {
    /// The world is built. One message with [`PLACES`] descriptors follows.
    Ready,
    /// The deadline has passed: end the interior.
    TimeIsUp,
    /// The world is over, and this was seen.
    Seen(Box<RawTrace>),
    /// The harness failed.
    Failed { stage: String, message: String },
}

/// How many descriptors follow [`ToZygote::Ready`]: the mount and the network
/// namespace the interior has to enter.
pub(crate) const PLACES: usize = 2;

/// From the zygote to an observer: how the interior ended. Everything in the
/// world is dead by then.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ended {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// From the zygote to an observer of a world in which something changes places:
/// the interior's process number. It comes first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Born(pub(crate) i32);

/// Builds a world, watches it and reports. Called in the observer, with the
/// zygote's socket, the interior's reports and where they are answered.
///
/// # Errors
/// The zygote is gone; every other failure is reported to it.
pub(crate) fn observe(
    stem: Pid,
    brief: &Brief,
    [zygote, reports, answers]: [OwnedFd; 3],
    forker: &dyn Forker,
) -> Result<(), WorldError> {
    die_with(stem)?;
    let mut zygote = UnixStream::from(zygote);
    let pipes = (File::from(reports), File::from(answers));
    let seen = watch_over(brief, &mut zygote, pipes, forker);
    let told = match seen {
        Ok(trace) => ToZygote::Seen(Box::new(trace)),
        Err(WorldError { stage, message }) => ToZygote::Failed { stage, message },
    };
    write_frame(&mut zygote, &told).at("report to the zygote")
}

fn watch_over(
    brief: &Brief,
    zygote: &mut UnixStream,
    (reports, answers): (File, File),
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).at("unshare world")?;
    loopback::up()?;
    let mut sink = Sink::open()?;
    let layers = Layers::mount(&brief.files)?;
    let mut lister = Lister::new(&layers.upper, &layers.base, &brief.own_state);
    let flipping = match &brief.flip {
        None => None,
        Some((flip, follow)) => Some(Flipping {
            flipper: Flipper::prepare(Path::new(MERGED), flip)?,
            follow: *follow,
            forker,
            interior: None,
        }),
    };
    // What changes places is above the starting tree, and no effect as it stands.
    let before = match flipping {
        None => Vec::new(),
        Some(_) => lister.list().at("list effects")?,
    };
    let until = Instant::now() + Duration::from_millis(brief.deadline_ms);
    let [mounts, network] = ["mnt", "net"].map(|kind| {
        rustix::fs::open(
            format!("/proc/self/ns/{kind}"),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    });
    let (mounts, network) = (mounts.at("open namespace")?, network.at("open namespace")?);
    write_frame(zygote, &ToZygote::Ready).at("report to the zygote")?;
    rights::send(&*zygote, &[mounts.as_fd(), network.as_fd()]).at("report to the zygote")?;
    drop((mounts, network));
    let watch = Watch {
        zygote,
        reports,
        answers,
        until,
        flipping,
    };
    let mut list = || -> Result<Vec<FsEffect>, WorldError> {
        let mut effects = lister.list().at("list effects")?;
        effects.retain(|effect| !before.contains(effect));
        Ok(effects)
    };
    let (mut steps, begun, end) = watch.run(&mut sink, &mut list)?;
    let effects = list()?;
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
}

impl Layers {
    fn mount(files: &[FileSpec]) -> Result<Self, WorldError> {
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
            case_tree::write(&base, files)?;
            mounts::detach(&base)?;
            mounts::overlay(&base, &[&case, template], None)?;
            mounts::overlay(&merged, &[&case, template], Some((&upper, &work)))?;
            base
        };
        Ok(Self { upper, base })
    }
}

/// What changes places in a world.
struct Flipping<'z> {
    flipper: Flipper,
    follow: bool,
    forker: &'z dyn Forker,
    /// Known once the zygote has told.
    interior: Option<Pid>,
}

impl Flipping<'_> {
    /// The interior's number, which the zygote tells before anything else.
    fn hear(&mut self, zygote: &mut UnixStream) -> Result<Pid, WorldError> {
        let stage = "hear of the interior";
        if let Some(interior) = self.interior {
            return Ok(interior);
        }
        let Born(interior) = read_frame(zygote)
            .at(stage)?
            .ok_or_else(|| WorldError::new(stage, "the zygote is gone"))?;
        Ok(*self.interior.insert(Pid::from_raw(interior)))
    }

    fn begin(&self, interior: Pid) -> Result<Running<'_>, WorldError> {
        self.flipper.begin(interior, self.follow, self.forker)
    }
}

/// The running world, seen from the observer.
struct Watch<'z> {
    zygote: &'z mut UnixStream,
    reports: File,
    answers: File,
    until: Instant,
    flipping: Option<Flipping<'z>>,
}

impl Watch<'_> {
    /// Follows the world until it ends or is ended. Returns the finished steps,
    /// whether one more had begun, and how it ended; the world is dead by then.
    fn run(
        mut self,
        sink: &mut Sink,
        list: &mut dyn FnMut() -> Result<Vec<FsEffect>, WorldError>,
    ) -> Result<(Vec<StepTrace>, bool, End), WorldError> {
        let mut steps = Vec::new();
        let mut begun = false;
        let mut failed = None;
        let mut timed_out = false;
        let mut flipping = self.flipping.take();
        let interior = match &mut flipping {
            Some(flipping) => Some(flipping.hear(self.zygote)?),
            None => None,
        };
        let mut running = None;
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
                    Ok(Some(Report::Begin)) => {
                        begun = true;
                        if let (Some(flipping), Some(interior)) = (&flipping, interior) {
                            running = Some(flipping.begin(interior)?);
                            if self.answers.write_all(&[1]).is_err() {
                                break;
                            }
                        }
                    }
                    Ok(Some(Report::Step(mut step))) => {
                        begun = false;
                        if let Some(running) = running.take() {
                            step.answer = serde_json::to_value(running.end()).at("report step")?;
                        }
                        step.effects = list()?;
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
        // The dead would be waited for by whoever follows them.
        drop(running);
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

    /// Ends the world. The zygote waits for its pid 1, whose death kills every
    /// process in it before anybody is told of it.
    fn end(&mut self, timed_out: bool) -> Result<End, WorldError> {
        let stage = "wait for world";
        if timed_out {
            write_frame(self.zygote, &ToZygote::TimeIsUp).at(stage)?;
        }
        match read_frame::<Ended>(self.zygote).at(stage)? {
            Some(_) if timed_out => Ok(End::TimedOut),
            Some(Ended::Exited(0)) => Ok(End::Finished),
            Some(Ended::Exited(status)) => Ok(End::Died(format!("exit {status}"))),
            Some(Ended::Signalled(signal)) => Ok(End::Died(format!("signal {signal}"))),
            None => Err(WorldError::new(stage, "the zygote is gone")),
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

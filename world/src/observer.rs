//! The process that watches one world from outside.
//!
//! It owns everything the subject must not reach: the upper layer (whose
//! listing is the list of effects), the sink behind the world's loopback, and
//! the deadline. It is outside the world's pid namespace, so nothing in the
//! world can see or signal it.
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::effects::Lister;
use crate::error::{AtStage, WorldError};
use crate::flip::Flipper;
use crate::fork::{Forker, die_with};
use crate::protocol::{
    End, FileSpec, Flip, FsEffect, RawTrace, StepOutcome, StepTrace, write_frame,
};
use crate::sink::Sink;
use crate::{loopback, rights};

mod course;
mod layers;
mod watch;

use course::Course;
use layers::{Layers, tripwires};
use watch::Watch;

/// Where the interior finds its world, in the observer's mounts.
pub(crate) const MERGED: &str = "/.w/merged";

/// From the interior to its observer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A step begins.
    Begin,
    /// The call of a step that is to be cut off has ended by itself.
    Over,
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
    /// By step: the change to files right before which it is cut off. Empty where none is.
    pub(crate) cuts: Vec<Option<u32>>,
}

impl Brief {
    /// Whether something happens to the steps from outside.
    pub(crate) fn has_course(&self) -> bool {
        self.flip.is_some() || !self.cuts.is_empty()
    }
}

/// From an observer to the zygote.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToZygote {
    /// The world is built. One message with [`PLACES`] descriptors follows.
    Ready,
    /// The deadline has passed, or a call that was to be cut off is over: end the interior.
    TimeIsUp,
    /// The interior has ended in the middle of this step: another one is to go on there,
    /// and this is what the steps so far told the model.
    Again { step: usize, texts: Vec<String> },
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

/// From the zygote to an observer of a world to whose steps something happens: the
/// interior's process number. It comes first, and after each [`ToZygote::Again`].
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
    let flipper = match &brief.flip {
        None => None,
        Some((flip, _)) => Some(Flipper::prepare(Path::new(MERGED), flip)?),
    };
    // What changes places is above the starting tree, and no effect as it stands.
    let before = match flipper {
        None => Vec::new(),
        Some(_) => lister.list().at("list effects")?,
    };
    let course = brief.has_course().then(|| Course {
        flipper,
        cuts: brief.cuts.clone(),
        follow: brief.flip.as_ref().is_some_and(|(_, follow)| *follow),
        forker,
    });
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
        course,
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

//! The process that watches worlds from outside, one after the other.
//!
//! It owns everything the subject must not reach: the upper layer (whose
//! listing is the list of effects), the sink behind the world's loopback, and
//! the deadline. It is outside the world's pid namespace, so nothing in the
//! world can see or signal it.
//!
//! From one world to the next it keeps its own mount namespace, in which the
//! world's layers were mounted and are no more, and a network nobody has used.
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::effects::Lister;
use crate::error::{AtStage, WorldError};
use crate::flip::Flipper;
use crate::fork::{Forker, die_with};
use crate::protocol::{
    End, FileSpec, Flip, FsEffect, RawTrace, StepOutcome, StepTrace, read_frame, write_frame,
};
use crate::rights;
use crate::usage::cpu_us;

mod course;
mod layers;
mod network;
mod own;
mod volumes;

mod watch;

use course::Course;
use layers::Layers;
use network::{Network, own_namespace};
use watch::{Watch, Watched};

/// Where the interior finds its world, in the observer's mounts.
pub(crate) const MERGED: &str = "/.w/merged";

/// From the interior to its observer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A step begins.
    Begin,
    /// The call of a step that is to be cut off has ended by itself.
    Over,
    /// A part of the step has ended, by when so many questions had been put.
    Part { asked: usize },
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

/// Builds worlds, watches them and reports, until the zygote lets go of its end of the
/// socket. Called in the observer. After a failure it is of no more use.
///
/// # Errors
/// The zygote is gone; every other failure is reported to it.
pub(crate) fn observe(
    stem: Pid,
    mut zygote: UnixStream,
    forker: &dyn Forker,
) -> Result<(), WorldError> {
    die_with(stem)?;
    let mut post = None;
    let mut before = 0;
    while let Some(brief) = read_frame::<Brief>(&mut zygote).at("read brief")? {
        let [reports, answers] = rights::receive(&zygote).at("read brief")?;
        let pipes = (File::from(reports), File::from(answers));
        let seen = watch_over(&brief, &mut post, &mut zygote, pipes, forker);
        let told = match seen {
            Ok(mut trace) => {
                let now = cpu_us()?;
                trace.cpu_us = now.saturating_sub(before);
                before = now;
                ToZygote::Seen(Box::new(trace))
            }
            Err(WorldError { stage, message }) => ToZygote::Failed { stage, message },
        };
        write_frame(&mut zygote, &told).at("report to the zygote")?;
    }
    Ok(())
}

/// Where an observer stands: what it keeps from one world to the next.
struct Post {
    /// Its own mount namespace, which a world's interior copies.
    mounts: OwnedFd,
    /// The network of the next world.
    network: Network,
}

impl Post {
    fn take() -> Result<Self, WorldError> {
        unshare(CloneFlags::CLONE_NEWNS).at("unshare world")?;
        Ok(Self {
            mounts: own_namespace("mnt")?,
            network: Network::make()?,
        })
    }
}

/// Watches one world, of which nothing is left afterwards.
fn watch_over(
    brief: &Brief,
    post: &mut Option<Post>,
    zygote: &mut UnixStream,
    pipes: (File, File),
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    let post = match post {
        Some(post) => post,
        None => post.insert(Post::take()?),
    };
    let layers = Layers::mount(&brief.files)?;
    let mut trace = watch_within(brief, &layers, post, zygote, pipes, forker)?;
    layers.unmount()?;
    trace.network = post.network.take_attempts();
    if !post.network.is_as_made()? {
        post.network = Network::make()?;
    }
    Ok(trace)
}

fn watch_within(
    brief: &Brief,
    layers: &Layers,
    post: &mut Post,
    zygote: &mut UnixStream,
    (reports, answers): (File, File),
    forker: &dyn Forker,
) -> Result<RawTrace, WorldError> {
    let mut lister = Lister::new(&layers.written, &layers.base, &brief.own_state);
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
    write_frame(zygote, &ToZygote::Ready).at("report to the zygote")?;
    let places = [post.mounts.as_fd(), post.network.place()];
    rights::send(&*zygote, &places).at("report to the zygote")?;
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
    let Watched {
        mut steps,
        unfinished,
        end,
    } = watch.run(post.network.sink(), &mut list)?;
    let effects = list()?;
    if let Some(parts) = unfinished {
        let what = match &end {
            End::Finished => "the subject left without finishing this step".to_owned(),
            End::TimedOut => "the deadline passed during this step".to_owned(),
            End::Died(how) => format!("the subject died during this step: {how}"),
        };
        let mut last = StepTrace::of(StepOutcome::Raised(what));
        last.parts = parts;
        last.effects.clone_from(&effects);
        steps.push(last);
    }
    Ok(RawTrace {
        steps,
        effects,
        network: Vec::new(),
        tripwires: layers.tripwires(),
        end,
        cpu_us: 0,
        wall_us: 0,
    })
}

//! Two names of a world that change places while a step runs.
//!
//! What for: a guard that checks a name and uses it afterwards can be shown one
//! thing and given another. The names are exchanged (`renameat2`) from outside,
//! by a process the world cannot see: all the time, or right before the n-th
//! system call that names them, which leaves no window between a check and a
//! use untried and repeats itself. In the same way a step can be cut off: the
//! world's first process is killed right before its n-th system call that changes
//! files.
//!
//! This must never change anything but the two names, puts them back before
//! anybody looks at what a step did, and is gone with the step.
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::fs::{AtFlags, FileType, OFlags, RenameFlags};

use crate::case_tree;
use crate::error::{AtStage, WorldError};
use crate::fork::{Forked, Forker, die_with};
use crate::protocol::{Flip, When};

mod call;
mod note;
mod trace;

use note::Notes;
pub use note::Seen;

/// The two names of a running world.
pub(crate) struct Flipper {
    flip: Flip,
    one: Name,
    other: Name,
}

/// A name in a directory that is held open.
struct Name {
    parent: OwnedFd,
    name: String,
}

impl Name {
    fn open(root: &OwnedFd, path: &str) -> Result<Self, WorldError> {
        let stage = "open what changes places";
        let (parent, name) = path
            .trim_start_matches('/')
            .rsplit_once('/')
            .filter(|(_, name)| !matches!(*name, "" | "." | ".."))
            .ok_or_else(|| WorldError::new(stage, format!("`{path}` names no entry")))?;
        let parent = case_tree::open(root, parent, OFlags::PATH | OFlags::DIRECTORY).at(stage)?;
        Ok(Self {
            parent,
            name: name.to_owned(),
        })
    }

    fn rename_to(&self, other: &Self, flags: RenameFlags) -> bool {
        let (from, to) = (&self.parent, &other.parent);
        rustix::fs::renameat_with(from, self.name.as_str(), to, other.name.as_str(), flags).is_ok()
    }

    fn is_link(&self) -> bool {
        rustix::fs::statat(&self.parent, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }
}

impl Flipper {
    /// Makes both in the world at `merged`.
    pub(crate) fn prepare(merged: &Path, flip: &Flip) -> Result<Self, WorldError> {
        case_tree::write(merged, &flip.files)?;
        let root = case_tree::root(merged)?;
        let flipper = Self {
            one: Name::open(&root, &flip.one)?,
            other: Name::open(&root, &flip.other)?,
            flip: flip.clone(),
        };
        if flipper.one.is_link() || !flipper.other.is_link() {
            return Err(WorldError::new(
                "open what changes places",
                format!("`{}` is a link or `{}` is none", flip.one, flip.other),
            ));
        }
        Ok(flipper)
    }

    /// Whether they change places in this step.
    pub(crate) fn is_in(&self, step: usize) -> bool {
        step >= self.flip.from
    }

    /// Exchanges the two; whether that could be done. Where one of them is not there, because
    /// a step took it away, the other takes its place: a link may come to stand where
    /// something is about to be put.
    fn exchange(&self) -> bool {
        let (one, other) = (&self.one, &self.other);
        one.rename_to(other, RenameFlags::EXCHANGE)
            || other.rename_to(one, RenameFlags::NOREPLACE)
            || (one.is_link() && one.rename_to(other, RenameFlags::NOREPLACE))
    }

    /// Until it is killed.
    fn always(&self, mut notes: Notes) -> Result<(), WorldError> {
        self.exchange();
        notes.ready()?;
        loop {
            if self.exchange() {
                notes.flipped();
            }
        }
    }
}

/// A world whose steps something happens to.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    /// Its first process.
    pub(crate) interior: Pid,
    /// Whether what it starts is watched as well.
    pub(crate) follow: bool,
}

/// Begins a step: its names change places as `flipper` says, and it is cut off right
/// before this change to files. What was begun ends when it is dropped.
pub(crate) fn begin<'f>(
    flipper: Option<&'f Flipper>,
    cut: Option<u32>,
    subject: Subject,
    forker: &dyn Forker,
) -> Result<Running<'f>, WorldError> {
    let mut running = Running {
        flipper,
        processes: Vec::new(),
        seen: Seen::default(),
    };
    let mut traced = None;
    if let Some(flipper) = flipper {
        match flipper.flip.when {
            When::First(_) => running.seen.flips = u64::from(flipper.exchange()),
            When::Always(_) => {
                let process = Process::begin(forker, &|notes| flipper.always(notes))?;
                running.processes.push(process);
            }
            When::Before(number) => traced = Some((flipper, number, false)),
            When::During(number) => traced = Some((flipper, number, true)),
        }
    }
    if traced.is_some() || cut.is_some() {
        let orders = trace::Orders { flip: traced, cut };
        let process = Process::begin(forker, &|notes| trace::run(subject, &orders, notes))?;
        running.processes.push(process);
    }
    Ok(running)
}

/// A process that exchanges or cuts off.
struct Process {
    pid: Pid,
    notes: PipeReader,
}

impl Process {
    fn begin(
        forker: &dyn Forker,
        work: &dyn Fn(Notes) -> Result<(), WorldError>,
    ) -> Result<Self, WorldError> {
        let (reader, writer) = std::io::pipe().at("make a pipe")?;
        let observer = nix::unistd::getpid();
        match forker.fork().at("fork flipper")? {
            Forked::Child => {
                drop(reader);
                let worked = die_with(observer)
                    .and_then(|()| Notes::new(writer))
                    .and_then(work);
                forker.exit(if worked.is_ok() { 0 } else { 70 })
            }
            Forked::Parent { child } => {
                drop(writer);
                let mut process = Self {
                    pid: Pid::from_raw(child),
                    notes: reader,
                };
                let mut ready = [0_u8];
                if let Err(error) = process.notes.read_exact(&mut ready) {
                    process.end();
                    return Err(error).at("begin to change places");
                }
                Ok(process)
            }
        }
    }

    fn end(&mut self) -> Seen {
        // What it traced goes on by itself once it is dead.
        // If it is gone already there is nothing to end.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
        note::read(&mut self.notes)
    }
}

/// A step to which something happens.
pub(crate) struct Running<'f> {
    flipper: Option<&'f Flipper>,
    processes: Vec<Process>,
    seen: Seen,
}

impl Running<'_> {
    /// Ends it, puts the names back, and says what happened.
    pub(crate) fn end(mut self) -> Seen {
        self.stop();
        self.seen
    }

    fn stop(&mut self) {
        for mut process in self.processes.drain(..) {
            self.seen.add(process.end());
        }
        if let Some(flipper) = self.flipper
            && flipper.one.is_link()
            && flipper.exchange()
        {
            self.seen.put_back = true;
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

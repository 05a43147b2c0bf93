//! Copies of views whose owners cannot be translated, made for one command each.
//!
//! What for: root's commands have ids nobody else has. Where a file system takes no id
//! map (overlayfs, FUSE and tmpfs of older kernels, network file systems, and whatever
//! belongs to another user namespace in a rootless container), such a command would be
//! a stranger to root's own files. A sandbox's first process is one as well, and could
//! not even read them. So a process of root's copies the directory into a file system
//! in memory, where everything belongs to whom a mount with an id map would have shown
//! it as, and gives the sandbox a mount of that.
//!
//! The process is the one that opened the views ([`super::stage`]). It goes on only if
//! a view needs it, for as long as its zygote makes sandboxes, and has each copy made by
//! a process of its own: one that waits for a file system holds up nobody else, and is
//! killed with whoever asked. It copies nothing but the views it opened, into nothing but
//! what it made, and what copies has given up all powers that does not take. A sandbox
//! closes the way to it before there is a command in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::CloneFlags;
use nix::sys::wait::waitpid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::channel::{Channel, Received};
use crate::changeset::copy::{Ceiling, Owners, copy};
use crate::changeset::measure::measure;
use crate::dircap::DIR_FLAGS;
use crate::identity::Identity;
use crate::sys::{self, Cloneling};
use crate::wire::{Reader, WireError, Writer};

/// The copy, seen from the file system it lies in; its list is beside it.
pub(crate) const COPY: &str = "copy";
/// Copies made at once: those held up by a file system stay until they are killed.
const AT_ONCE_MAX: usize = 32;

/// What a sandbox asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Which of the views.
    pub number: usize,
    /// What the copy may hold.
    pub ceiling: Ceiling,
    /// What it and all that the command writes may.
    pub bytes_max: u64,
    pub names_max: u64,
}

/// A view that may have to be copied.
pub(super) struct Original {
    pub number: usize,
    pub tree: OwnedFd,
}

/// Asks for a copy and waits for it: a mount of the file system with [`COPY`] in it, or
/// why there is none.
pub(crate) fn ask(copier: &Channel, wanted: Wanted) -> Result<OwnedFd, String> {
    let told = |error: io::Error| error.to_string();
    let (ours, theirs) = Channel::pair().map_err(told)?;
    copier
        .send(&wanted.encode(), &[theirs.as_fd()])
        .map_err(told)?;
    drop(theirs);
    match ours.receive().map_err(told)? {
        Received::Frame(why, descriptors) => descriptors
            .into_iter()
            .next()
            .ok_or_else(|| String::from_utf8_lossy(&why).into_owned()),
        Received::Nothing | Received::Closed => {
            Err(String::from("the process that copies is gone"))
        }
    }
}

/// Has copies made until nobody can ask for one any more.
pub(super) fn serve(identity: &Identity, originals: &[Original], requests: &Channel) {
    let mut jobs: Vec<Job> = Vec::new();
    loop {
        let mut wanted = vec![PollFd::new(requests, PollFlags::IN)];
        for job in &jobs {
            wanted.push(PollFd::new(&job.process.handle, PollFlags::IN));
            // Its end is told in any case.
            wanted.push(PollFd::new(&job.reply, PollFlags::empty()));
        }
        match poll(&mut wanted, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Whoever waits for a copy finds that there is nobody any more.
            Err(_) => return,
        }
        let left = |at: usize| {
            let polled = at.checked_mul(2).and_then(|at| wanted.get(at));
            polled.is_some_and(|reply| reply.revents().contains(PollFlags::HUP))
        };
        let left: Vec<bool> = (1..=jobs.len()).map(left).collect();
        let is_asked = wanted.first().is_some_and(|fd| !fd.revents().is_empty());
        for (job, left) in jobs.iter().zip(left) {
            if left {
                // One that has ended by itself is as gone.
                let _killed = pidfd_send_signal(&job.process.handle, Signal::KILL);
            }
        }
        jobs.retain(|job| !job.has_ended());
        if !is_asked {
            continue;
        }
        match requests.receive_now() {
            Ok(Received::Frame(frame, descriptors)) => {
                let Some(reply) = descriptors.into_iter().next().map(Channel::new) else {
                    continue;
                };
                let started = if jobs.len() < AT_ONCE_MAX {
                    start(identity, originals, &frame, &reply)
                } else {
                    Err(format!(
                        "{AT_ONCE_MAX} others wait for file systems that do not answer"
                    ))
                };
                match started {
                    Ok(process) => jobs.push(Job { process, reply }),
                    Err(why) => tell(&reply, &why),
                }
            }
            Ok(Received::Nothing) => {}
            Ok(Received::Closed) | Err(_) => return,
        }
    }
}

/// A copy that is being made.
struct Job {
    process: Cloneling,
    /// Closed at its other end once nobody waits for the copy.
    reply: Channel,
}

impl Job {
    /// Whether it has, and then it is no process any more.
    fn has_ended(&self) -> bool {
        match self.process.has_ended() {
            Ok(true) => {
                let _reaped = waitpid(self.process.number, None);
                true
            }
            Ok(false) | Err(_) => false,
        }
    }
}

/// Starts the process that makes one copy.
fn start(
    identity: &Identity,
    originals: &[Original],
    frame: &[u8],
    reply: &Channel,
) -> Result<Cloneling, String> {
    let wanted = Wanted::decode(frame).map_err(|_| String::from("a garbled request"))?;
    let original = originals
        .iter()
        .find(|original| original.number == wanted.number)
        .ok_or_else(|| String::from("no such view was opened"))?;
    match sys::fork_into(CloneFlags::empty()).map_err(|error| error.to_string())? {
        sys::Cloned::Child => {
            let made = make(identity, original.tree.as_fd(), wanted, reply);
            match made {
                Ok(mount) => {
                    // Whoever asked may be gone, and then nobody needs it.
                    let _told = reply.send(&[], &[mount.as_fd()]);
                }
                Err(why) => tell(reply, &why),
            }
            sys::exit_immediately(0)
        }
        sys::Cloned::Parent(process) => Ok(process),
    }
}

fn tell(reply: &Channel, why: &str) {
    // Whoever asked may be gone.
    let _told = reply.send(why.as_bytes(), &[]);
}

/// What the process does.
fn make(
    identity: &Identity,
    original: BorrowedFd<'_>,
    wanted: Wanted,
    reply: &Channel,
) -> Result<OwnedFd, String> {
    let told = |error: io::Error| error.to_string();
    let errno = |errno: Errno| errno.to_string();
    sys::close_all_but(&[original, reply.as_fd()]).map_err(told)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(errno)?;
    let mount = file_system(wanted).map_err(errno)?;
    give_up_powers().map_err(errno)?;
    // What is made has the modes it is given.
    rustix::process::umask(Mode::empty());
    rustix::fs::mkdirat(&mount, COPY, Mode::RWXU).map_err(errno)?;
    let place = rustix::fs::openat(&mount, COPY, DIR_FLAGS, Mode::empty()).map_err(errno)?;
    let from = rustix::fs::openat(original, ".", DIR_FLAGS, Mode::empty()).map_err(errno)?;
    let (from, to) = (from.as_fd(), place.as_fd());
    let made = measure(from, wanted.ceiling)
        .and_then(|()| copy(from, to, wanted.ceiling, Owners::Translated(identity)))
        .map_err(|error| format!("{}: {}", error.on, error.source))?;
    made.write_beside(to).map_err(told)?;
    own_root(identity, from, to).map_err(errno)?;
    Ok(mount)
}

/// A new file system in memory, that nobody but root can write at its top.
fn file_system(wanted: Wanted) -> rustix::io::Result<OwnedFd> {
    let new = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Nothing at all would be without bounds to the kernel.
    fsconfig_set_string(&new, "size", wanted.bytes_max.max(1).to_string())?;
    fsconfig_set_string(&new, "nr_inodes", wanted.names_max.max(1).to_string())?;
    fsconfig_set_string(&new, "mode", "711")?;
    fsconfig_create(&new)?;
    fsmount(
        &new,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
}

/// The root of a view is the command's where it would be nobody's, as that of an overlay.
fn own_root(
    identity: &Identity,
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
) -> rustix::io::Result<()> {
    let stat = rustix::fs::fstat(from)?;
    let outer = identity.outer();
    let or = |found: Option<u32>, own: u32| found.is_none().then_some(own);
    let user = or(identity.user_outside(stat.st_uid), outer.user);
    let group = or(identity.group_outside(stat.st_gid), outer.group);
    rustix::fs::fchown(to, user.map(Uid::from_raw), group.map(Gid::from_raw))
}

/// Keeps what reading everything takes, and giving it away.
fn give_up_powers() -> rustix::io::Result<()> {
    let kept = CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::CHOWN
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID;
    let held = rustix::thread::capabilities(None)?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: held.effective & kept,
            permitted: held.permitted & kept,
            inheritable: CapabilitySet::empty(),
        },
    )
}

impl Wanted {
    fn encode(self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u64(u64::try_from(self.number).unwrap_or(u64::MAX));
        w.u64(self.ceiling.bytes);
        w.u64(self.ceiling.names);
        w.u64(self.bytes_max);
        w.u64(self.names_max);
        w.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let wanted = Self {
            number: usize::try_from(r.u64()?).map_err(|_| WireError)?,
            ceiling: Ceiling {
                bytes: r.u64()?,
                names: r.u64()?,
            },
            bytes_max: r.u64()?,
            names_max: r.u64()?,
        };
        r.finish()?;
        Ok(wanted)
    }
}

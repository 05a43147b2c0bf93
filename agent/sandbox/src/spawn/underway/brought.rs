//! What others changed, brought to a command that runs.
//!
//! What for: a command that has looked at a name goes on seeing what it saw then, because
//! the kernel keeps that for its view, whatever becomes of the directory below. So a
//! server would never see the file that was edited for it. What others changed is written
//! into its view as if it had been changed there: it is seen, and watches tell of it.
//!
//! The command may do anything to its view meanwhile, and loses or gains nothing by it
//! but there. It must never be given what it does not see by its name anyway, never lose
//! what it changed itself, and none of it is its own change afterwards.

use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use nix::unistd::{Gid, Uid};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, XattrFlags};

use super::{Brought, Inner, Layer, State};
use crate::changeset::copied::Seen;
use crate::changeset::node::{Xattrs, kind_of, mode_of, xattrs_of};
use crate::changeset::settled::{Left, Settled, Stood};
use crate::changeset::{Layer as Kept, now, xattr_digest};
use crate::digest::sha256;
use crate::dircap::open::{Links, open_beneath, open_file, open_parent, read_file, stat_name};
use crate::dircap::{DEPTH_MAX, DIR_FLAGS, Kind, list_dir, temporary_name};
use crate::privileges::become_another;

/// The longest file that is brought.
const FILE_BYTES_MAX: usize = 8 << 20;
/// What one command is brought at most: it lies where its own changes do.
const BYTES_MAX: u64 = 64 << 20;
/// Names one command is brought at most.
const NAMES_MAX: u64 = 10_000;
/// Kept from a mode: rights that were given to somebody else's file.
const MODE: u32 = 0o777;

/// What is outside under a name.
enum Outside {
    Nothing,
    File(Vec<u8>, Xattrs, Stat),
    Link(Vec<u8>, Stat),
    Dir(Stat),
}

/// Works in a view with the rights of the command it is for. Only root's agent needs that:
/// a file of somebody the view has no id for cannot be made there. It has a thread for it,
/// which keeps nothing of these rights, nor does the agent.
fn as_its_own<R: Send>(layer: &Layer, act: impl FnOnce() -> Option<R> + Send) -> Option<R> {
    let owner = rustix::fs::fstat(&layer.upper).ok()?;
    if owner.st_uid == nix::unistd::geteuid().as_raw() {
        return act();
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            match become_another(user, group) {
                true => act(),
                false => None,
            }
        });
        thread.join().ok()?
    })
}

impl Layer {
    /// Removes what the command sees under a name, and has not itself there.
    pub(super) fn clear(&self, path: &RelPath, kind: Kind) -> Option<()> {
        self.remove_if(path, kind, || now(self.upper.as_fd(), path).is_none())
    }

    /// Removes what the command sees under a name.
    fn remove(&self, path: &RelPath, kind: Kind) -> Option<()> {
        self.remove_if(path, kind, || true)
    }

    fn remove_if(&self, path: &RelPath, kind: Kind, may: impl Fn() -> bool + Sync) -> Option<()> {
        as_its_own(self, || {
            let (parent, name) = open_parent(self.merged.as_fd(), path).ok()?;
            // The last look before the deed.
            if !may() {
                return None;
            }
            let flags = match kind {
                Kind::Dir => AtFlags::REMOVEDIR,
                Kind::File | Kind::Symlink | Kind::Special => AtFlags::empty(),
            };
            rustix::fs::unlinkat(&parent, name.as_slice(), flags).ok()
        })
    }
}

impl super::Underway {
    /// Somebody else changed this name of one of its views: it is shown to the command as
    /// it is now, unless the command changed it, too. What cannot be shown stays as it was.
    pub fn bring(&self, view: usize, path: &RelPath) {
        let mut state = self.0.state();
        if state.is_over || self.0.is_stopped() {
            return;
        }
        if state.layers.is_empty() {
            // It may have begun to look already, and nobody heard yet where.
            state.waiting.push((view, path.clone()));
        } else {
            let _shown = self.0.bring(&mut state, view, path);
        }
    }
}

impl Inner {
    pub(super) fn bring(&self, state: &mut State, view: usize, path: &RelPath) -> Option<()> {
        let layer = state.layers.get(view)?;
        // A copy is as old as its command.
        if Kept::of(layer.upper.as_fd()).ok()? == Kept::Copy {
            return None;
        }
        let lower = self.views.get(view)?;
        let settled = state.settled.get_mut(view)?;
        let mut bringing = Bringing {
            layer,
            lower: lower.as_fd(),
            settled,
            brought: &mut state.brought,
            shows: &|path| self.shows(view, path),
        };
        bringing.name(path, 0)
    }
}

/// One name, and what comes with it.
struct Bringing<'b> {
    layer: &'b Layer,
    lower: BorrowedFd<'b>,
    settled: &'b mut Settled,
    brought: &'b mut Brought,
    /// Which names the command may be shown.
    shows: &'b (dyn Fn(&RelPath) -> bool + Sync),
}

impl Bringing<'_> {
    fn name(&mut self, path: &RelPath, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX || !(self.shows)(path) || !self.is_untouched(path) {
            return None;
        }
        let outside = outside(self.lower, path)?;
        if self.is_shown(path, &outside) {
            return Some(());
        }
        let there = self.seen_there(path)?;
        // The command does not stand still: what is replaced is what it left untouched.
        if !self.is_untouched(path) {
            return None;
        }
        let around = self.around(path);
        let done = self.show(path, depth, (&outside, there));
        for dir in around {
            // What cannot be told from the command's own stays that.
            let _noted = self.note_carried_along(dir);
        }
        done
    }

    /// Shows a name as it is outside.
    fn show(
        &mut self,
        path: &RelPath,
        depth: usize,
        (outside, there): (&Outside, Option<Kind>),
    ) -> Option<()> {
        let (above, below) = match outside {
            Outside::Nothing => {
                if let Some(kind) = there {
                    if kind == Kind::Dir && self.is_its_own_dir(path) {
                        return None;
                    }
                    self.layer.remove(path, kind)?;
                }
                (None, None)
            }
            Outside::File(content, xattrs, stat) => {
                self.charge(content.len())?;
                self.put(path, stat, (Made::File(content, xattrs), there))?;
                (Some(sha256(content)), Some(Left::of(stat)))
            }
            Outside::Link(target, stat) => {
                self.charge(target.len())?;
                self.put(path, stat, (Made::Link(target), there))?;
                (Some(Digest::NONE), Some(Left::of(stat)))
            }
            Outside::Dir(stat) => return self.dir(path, stat, depth),
        };
        let above = match above {
            None => None,
            Some(content) => Some(Seen {
                content: (content != Digest::NONE).then_some(content),
                ..Seen::of(&self.in_layer(path)?)
            }),
        };
        self.settled.note(
            path,
            Stood {
                above,
                below,
                is_fresh: true,
                grip: None,
            },
        );
        Some(())
    }

    /// The directories around a name that the layer does not hold, as the command sees
    /// them: what is changed in them has the kernel make them in the layer.
    fn around(&self, path: &RelPath) -> Vec<(RelPath, u32, Xattrs)> {
        let mut around = Vec::new();
        let mut above = path.parent();
        while let Some(dir) = above.filter(|dir| !dir.is_root() && self.in_layer(dir).is_none()) {
            if let Some((stat, xattrs)) = facts_of(self.layer.merged.as_fd(), &dir) {
                around.push((dir.clone(), mode_of(&stat), xattrs));
            }
            above = dir.parent();
        }
        around
    }

    /// Notes that a directory came into the layer with what was changed in it, and not by
    /// the command: else it would be the command's own once it is gone outside.
    fn note_carried_along(&mut self, (dir, mode, xattrs): (RelPath, u32, Xattrs)) -> Option<()> {
        let upper = self.layer.upper.as_fd();
        let (stat, own) = facts_of(upper, &dir)?;
        let opened = open_beneath(upper, &dir, DIR_FLAGS, Links::Refuse).ok()?;
        let is_as_it_was = mode_of(&stat) == mode && own == xattrs;
        // One that hides what is below was made by the command.
        if !is_as_it_was || Kept::Overlay.hides(opened.as_fd()).ok()? {
            return None;
        }
        let above = Seen {
            attributes: xattr_digest(&own),
            ..Seen::of(&stat)
        };
        let stood = Stood {
            above: Some(above),
            below: None,
            is_fresh: false,
            grip: None,
        };
        self.settled.note(&dir, stood);
        Some(())
    }

    /// Whether the command left a name as it found it, or as it was decided.
    fn is_untouched(&self, path: &RelPath) -> bool {
        match (self.in_layer(path), self.settled.at(path)) {
            (None, None) => true,
            (Some(now), Some(stood)) => match &stood.above {
                Some(seen) => self.is_as_seen(path, seen, &now),
                None => self.is_deleted(path, &now),
            },
            (None, Some(stood)) => stood.above.is_none(),
            // A directory that holds something is no change by itself.
            (Some(now), None) => kind_of(&now) == Kind::Dir,
        }
    }

    /// Whether the layer holds a directory of which nothing was decided: nobody outside had
    /// it, as far as is known, so nobody outside took it away.
    fn is_its_own_dir(&self, path: &RelPath) -> bool {
        self.in_layer(path).is_some() && self.settled.at(path).is_none()
    }

    /// The kernel does not take note of all that is written: its content tells.
    fn is_as_seen(&self, path: &RelPath, seen: &Seen, now: &Stat) -> bool {
        let upper = self.layer.upper.as_fd();
        if kind_of(now) == Kind::Dir {
            // What is in it counts by itself.
            let facts = facts_of(upper, path);
            return facts.is_some_and(|(stat, xattrs)| seen.is_same_dir(&stat, &xattrs));
        }
        let Ok((parent, name)) = open_parent(upper, path) else {
            return false;
        };
        let is_it = seen.is_untouched(parent.as_fd(), &name, now);
        is_it.unwrap_or(false)
    }

    /// Whether the layer holds it as it is outside.
    fn is_shown(&self, path: &RelPath, outside: &Outside) -> bool {
        let Some(stood) = self.settled.at(path) else {
            return false;
        };
        match (outside, &stood.above) {
            (Outside::Nothing, None) => true,
            (Outside::File(content, _, stat), Some(seen)) => {
                stood.below == Some(Left::of(stat))
                    || (seen.content == Some(sha256(content))
                        && seen.mode & MODE == stat.st_mode & MODE)
            }
            (Outside::Link(_, stat), Some(_)) => stood.below == Some(Left::of(stat)),
            _ => false,
        }
    }

    /// Whether what the layer holds is the mark of a deletion.
    fn is_deleted(&self, path: &RelPath, stat: &Stat) -> bool {
        let Ok((parent, name)) = open_parent(self.layer.upper.as_fd(), path) else {
            return false;
        };
        let marked = Kept::Overlay.is_whiteout(parent.as_fd(), &name, stat);
        marked.unwrap_or(false)
    }

    /// What the layer holds under a name.
    fn in_layer(&self, path: &RelPath) -> Option<Stat> {
        let (parent, name) = open_parent(self.layer.upper.as_fd(), path).ok()?;
        stat_name(parent.as_fd(), &name, path).ok()?
    }

    fn charge(&mut self, bytes: usize) -> Option<()> {
        let bytes = self
            .brought
            .bytes
            .saturating_add(u64::try_from(bytes).ok()?);
        let names = self.brought.names.saturating_add(1);
        if bytes > BYTES_MAX || names > NAMES_MAX {
            return None;
        }
        *self.brought = Brought { bytes, names };
        Some(())
    }

    /// What the command sees under a name.
    fn seen_there(&self, path: &RelPath) -> Option<Option<Kind>> {
        let Ok((parent, name)) = open_parent(self.layer.merged.as_fd(), path) else {
            // Nor is there what it would lie in.
            return Some(None);
        };
        let stat = stat_name(parent.as_fd(), &name, path).ok()?;
        Some(stat.map(|stat| kind_of(&stat)))
    }

    fn put(&self, path: &RelPath, stat: &Stat, what: (Made<'_>, Option<Kind>)) -> Option<()> {
        as_its_own(self.layer, || self.put_there(path, stat, &what))
    }

    fn put_there(
        &self,
        path: &RelPath,
        stat: &Stat,
        (made, there): &(Made<'_>, Option<Kind>),
    ) -> Option<()> {
        let flags = match there {
            // What is there by now is the command's own.
            None => RenameFlags::NOREPLACE,
            Some(Kind::Dir) => return None,
            Some(_) => RenameFlags::empty(),
        };
        let (parent, name) = open_parent(self.layer.merged.as_fd(), path).ok()?;
        let beside = temporary_name().ok()?;
        let done = made.make(&parent, &beside, stat).and_then(|()| {
            let (beside, name) = (beside.as_slice(), name.as_slice());
            rustix::fs::renameat_with(&parent, beside, &parent, name, flags).ok()
        });
        if done.is_none() {
            // Should it stay, it is seen by the command alone, and thrown away with its view.
            let _gone = rustix::fs::unlinkat(&parent, beside.as_slice(), AtFlags::empty());
        }
        done
    }

    /// Makes a directory where the command sees nothing; its attributes, or `None` where
    /// it sees one already.
    fn make_there(&self, path: &RelPath, stat: &Stat) -> Option<Option<Xattrs>> {
        let (parent, name) = open_parent(self.layer.merged.as_fd(), path).ok()?;
        if stat_name(parent.as_fd(), &name, path).ok()?.is_some() {
            return Some(None);
        }
        rustix::fs::mkdirat(&parent, name.as_slice(), Mode::RWXU).ok()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&parent, name.as_slice(), flags, Mode::empty()).ok()?;
        rustix::fs::fchmod(&made, Mode::from_raw_mode(stat.st_mode & MODE)).ok()?;
        Some(Some(xattrs_of(made.as_fd()).ok()?))
    }

    /// A directory that is there outside: the command sees it, with all that is in it,
    /// unless it had looked for it before it was made.
    fn dir(&mut self, path: &RelPath, stat: &Stat, depth: usize) -> Option<()> {
        let made = as_its_own(self.layer, || self.make_there(path, stat))?;
        let Some(made) = made else {
            return Some(());
        };
        self.charge(0)?;
        let above = Seen {
            attributes: xattr_digest(&made),
            ..Seen::of(&self.in_layer(path)?)
        };
        let above = Some(above);
        self.settled.note(
            path,
            Stood {
                above,
                below: None,
                is_fresh: false,
                grip: None,
            },
        );
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = open_beneath(self.lower, path, flags, Links::Refuse).ok()?;
        // It hides all that is in it outside, so all of that is brought as well.
        for entry in list_dir(&dir).ok()? {
            let child = path.child(&entry.name).ok()?;
            // One that cannot be shown does not keep the others from it.
            let _shown = self.name(&child, depth.saturating_add(1));
        }
        Some(())
    }
}

/// Something finished, under a name of its own.
enum Made<'m> {
    File(&'m [u8], &'m Xattrs),
    Link(&'m [u8]),
}

impl Made<'_> {
    fn make(&self, parent: &OwnedFd, name: &[u8], like: &Stat) -> Option<()> {
        match self {
            Self::Link(target) => rustix::fs::symlinkat(*target, parent, name).ok(),
            Self::File(content, xattrs) => {
                let flags = OFlags::WRONLY
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let mode = Mode::RUSR | Mode::WUSR;
                let file = rustix::fs::openat(parent, name, flags, mode).ok()?;
                let mut file = std::fs::File::from(file);
                file.write_all(content).ok()?;
                for (name, value) in xattrs.iter().filter(|(name, _)| name.starts_with(b"user.")) {
                    // A layer that keeps none has shown none.
                    let _kept =
                        rustix::fs::fsetxattr(&file, name.as_slice(), value, XattrFlags::empty());
                }
                rustix::fs::fchmod(&file, Mode::from_raw_mode(like.st_mode & MODE)).ok()?;
                let time = Timespec {
                    tv_sec: like.st_mtime,
                    tv_nsec: i64::try_from(like.st_mtime_nsec).ok()?,
                };
                let times = Timestamps {
                    last_access: time,
                    last_modification: time,
                };
                rustix::fs::futimens(&file, &times).ok()
            }
        }
    }
}

/// What a directory is besides its names.
fn facts_of(root: BorrowedFd<'_>, dir: &RelPath) -> Option<(Stat, Xattrs)> {
    let opened = open_beneath(root, dir, DIR_FLAGS, Links::Refuse).ok()?;
    let stat = rustix::fs::fstat(&opened).ok()?;
    Some((stat, xattrs_of(opened.as_fd()).ok()?))
}

/// What is under a name now; `None` where that is nothing to be brought.
fn outside(root: BorrowedFd<'_>, path: &RelPath) -> Option<Outside> {
    let Ok((parent, name)) = open_parent(root, path) else {
        return Some(Outside::Nothing);
    };
    let Some(stat) = stat_name(parent.as_fd(), &name, path).ok()? else {
        return Some(Outside::Nothing);
    };
    match kind_of(&stat) {
        Kind::File => {
            let (file, stat) = open_file(root, path, Links::Refuse).ok()?;
            let xattrs = xattrs_of(file.as_fd()).ok()?;
            let content = read_file(&file, &stat, FILE_BYTES_MAX).ok()?;
            Some(Outside::File(content, xattrs, stat))
        }
        Kind::Symlink => {
            let target = rustix::fs::readlinkat(&parent, name.as_slice(), Vec::new()).ok()?;
            Some(Outside::Link(target.into_bytes(), stat))
        }
        // What the mode of one says is its own directory's.
        Kind::Dir => (mode_of(&stat) & 0o500 == 0o500).then_some(Outside::Dir(stat)),
        Kind::Special => None,
    }
}

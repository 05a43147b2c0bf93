//! Taking one step of a transaction, and taking it back.
//!
//! Each step is one rename (or, for a mode, one change in place),
//! so that nobody ever sees half of it. What comes out is compared with what
//! was to be there; if it is something else it goes back, and the step was not
//! taken. Whether a step was taken can be seen afterwards, by anybody: what was
//! staged is in its staging place, or it is not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::besides::{Besides, counting};
use super::carry;
use super::ground::{Back, Fit, Ground, changed, failed, parent_of, renamed, undone};
use super::plan::{Act, Op, Staged};
use super::steps::Steps;
use super::{mode, moved};
use crate::changeset::node::{Fingerprint, Meta, Xattrs, fingerprint, mode_of, read_tree_of};
use crate::dircap::open::open_parent;
use crate::dircap::{FsError, Thing, is_missing};

/// How often a version that came out of a swap is put back.
const PUT_BACK_TRIES_MAX: u32 = 64;

/// Takes a step.
///
/// # Errors
/// It was not taken; `changed-since-shown` if the place is not as expected.
pub(super) fn forward(ground: &Ground<'_>, op: &Op) -> Result<(), FsError> {
    match &op.act {
        Act::Put { .. } => put(ground, &op.path),
        Act::Swap { staged, before } => swap(ground, &op.path, staged, *before),
        Act::Take { before } => take(ground, &op.path, *before),
        Act::Meta { before, after } => {
            let dir = open_dir(ground.root, &op.path)?;
            let (now, is_opened) = look_into(ground.steps, &dir, (before, after), &op.path)?;
            let mode = if is_opened { after.mode } else { before.mode };
            if (now.mode, &now.xattrs) != (mode, &before.xattrs) {
                close_again(ground.steps, &dir, is_opened.then_some(before), &op.path)?;
                return Err(changed(&op.path));
            }
            set_meta(ground.steps, &dir, &now, after, &op.path)
        }
        Act::Move { to, what, holds } => moved::forward(ground, &op.path, to, (*what, *holds)),
        Act::Mode(change) => mode::forward(ground, &op.path, *change),
    }
}

/// Takes a step back if it was taken.
///
/// # Errors
/// The system failed.
pub(super) fn backward(ground: &Ground<'_>, op: &Op) -> Result<Back, FsError> {
    let path = &op.path;
    match &op.act {
        Act::Put { staged } => {
            if ground.inode()?.is_some() {
                return Ok(Back::Done);
            }
            match ground.state_of_target(path)? {
                // Whoever removed it did what we would do.
                None => Ok(Back::Done),
                Some(state) if state == staged.state => undone(take(ground, path, staged.state)),
                Some(_) => Ok(Back::Kept),
            }
        }
        Act::Swap { staged, .. } => {
            let there = ground.inode()?;
            if there == Some(staged.inode) {
                return Ok(Back::Done);
            }
            if there.is_none() || ground.state_of_target(path)? != Some(staged.state) {
                return Ok(Back::Kept);
            }
            let old = Staged {
                inode: there.unwrap_or_default(),
                state: ground.state_of_slot()?,
            };
            undone(swap(ground, path, &old, staged.state))
        }
        Act::Take { .. } => {
            if ground.inode()?.is_none() {
                return Ok(Back::Done);
            }
            match undone(put(ground, path))? {
                Back::Done => Ok(Back::Done),
                // A directory that was carried away entry by entry, not wholly.
                Back::Kept | Back::Lost => {
                    let (parent, name) = match parent_of(ground.root, path) {
                        // Where it was is gone, and nobody can say that it will come again.
                        Err(FsError::Denied(_)) => return Ok(Back::Kept),
                        found => found?,
                    };
                    let slot = (ground.area, ground.slot.as_slice());
                    Ok(
                        match carry::carry(slot, (parent.as_fd(), name.as_slice())) {
                            Ok(()) => Back::Done,
                            Err(_) => Back::Kept,
                        },
                    )
                }
            }
        }
        Act::Meta { before, after } => {
            let dir = match open_dir(ground.root, path) {
                Err(FsError::Denied(_)) => return Ok(Back::Kept),
                // What is in the way may go.
                opened => opened?,
            };
            let (now, is_opened) = look_into(ground.steps, &dir, (after, before), path)?;
            if !now.lies_between(before, after) {
                close_again(ground.steps, &dir, is_opened.then_some(after), path)?;
                return Ok(Back::Kept);
            }
            set_meta(ground.steps, &dir, &now, before, path)?;
            Ok(Back::Done)
        }
        Act::Move { to, what, holds } => moved::backward(ground, path, to, (*what, *holds)),
        Act::Mode(change) => mode::backward(ground, path, *change),
    }
}

/// How things will be by the time of a step, where other steps come first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    metas: BTreeMap<RelPath, Meta>,
    /// Names that will have been moved away.
    left: BTreeSet<RelPath>,
    /// Names that will be there.
    come: BTreeSet<RelPath>,
    /// Those of them under which something else will be than is there.
    brought: BTreeSet<RelPath>,
}

/// Whether the place is as `op` expects it, without touching anything; or at least what
/// counts of it, where that is known.
///
/// What lies behind a directory that is opened again by a step before this one cannot be
/// looked at yet, unless by root: it is compared when the step is taken, like everything.
pub(super) fn fits(
    root: BorrowedFd<'_>,
    op: &Op,
    ahead: &mut Ahead,
    counts: Option<(Fingerprint, &dyn Besides)>,
) -> Result<Fit, FsError> {
    match fits_now(root, op, ahead, counts) {
        Err(FsError::Io { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied && ahead.opens(&op.path) =>
        {
            ahead.note(op);
            Ok(Fit::Exactly)
        }
        looked_at => looked_at,
    }
}

fn fits_now(
    root: BorrowedFd<'_>,
    op: &Op,
    ahead: &mut Ahead,
    counts: Option<(Fingerprint, &dyn Besides)>,
) -> Result<Fit, FsError> {
    let exactly = |fits| if fits { Fit::Exactly } else { Fit::Not };
    if let Act::Move { to, what, holds } = &op.act {
        let is_free = ahead.is_free(root, to)?;
        let fit = match holds {
            _ if !is_free => Fit::Not,
            None => exactly(Thing::at(root, &op.path)? == Some(*what)),
            Some(holds) => moved::fits(root, &op.path, *holds, counts)?,
        };
        ahead.note(op);
        return Ok(fit);
    }
    if let Act::Mode(change) = &op.act {
        return mode::fits(root, &op.path, *change);
    }
    if let Act::Meta { before, after } = &op.act {
        let dir = match open_dir(root, &op.path) {
            // It is what a step before this one brings, and is compared when that has come.
            Err(FsError::Denied(_)) if ahead.brought.contains(&op.path) => {
                ahead.note(op);
                return Ok(Fit::Exactly);
            }
            Err(FsError::Denied(_)) => return Ok(Fit::Not),
            opened => opened?,
        };
        let now = match ahead.metas.get(&op.path) {
            Some(meta) => meta.clone(),
            None => match Meta::of(&dir, before, after, &op.path) {
                // It is compared when the step opens it.
                Err(error) if opens(&dir, (before, after), &error) => before.clone(),
                found => found?,
            },
        };
        ahead.note(op);
        return Ok(match now {
            now if now == *before => Fit::Exactly,
            now if now == *after => Fit::Already,
            _ => Fit::Not,
        });
    }
    let Ahead {
        metas,
        left,
        brought,
        ..
    } = ahead;
    if !matches!(op.act, Act::Take { .. }) {
        brought.insert(op.path.clone());
    }
    let mut is_what_counts = false;
    let found = match open_parent(root, &op.path) {
        Ok((parent, name)) => {
            let stays =
                |below: &RelPath| !op.path.join(below).is_ok_and(|path| left.contains(&path));
            let mut tree = read_tree_of(parent.as_fd(), &name, &stays)
                .map_err(|source| failed("look at", &op.path, source))?;
            if let (Some(top), Some(meta)) = (tree.get_mut(&RelPath::root()), metas.get(&op.path)) {
                top.mode = meta.mode;
                top.xattrs.clone_from(&meta.xattrs);
            }
            is_what_counts = counts.is_some_and(|(counts, besides)| {
                counting(besides, &op.path, &tree, (root, &op.path)) == Some(counts)
            });
            (!tree.is_empty()).then(|| fingerprint(&tree))
        }
        Err(_) if op.path.is_root() => None,
        Err(FsError::Denied(_)) => return Ok(Fit::Not),
        Err(FsError::Io { source, .. }) if is_missing(&source) => None,
        Err(error) => return Err(error),
    };
    Ok(match &op.act {
        Act::Put { .. } => {
            ahead.note(op);
            exactly(found.is_none())
        }
        Act::Swap { before, .. } | Act::Take { before } => match found {
            Some(found) if found == *before => Fit::Exactly,
            Some(found) if is_what_counts => Fit::AsFarAsItCounts(found),
            Some(_) | None => Fit::Not,
        },
        // They were looked at above.
        Act::Meta { .. } | Act::Move { .. } | Act::Mode(_) => Fit::Not,
    })
}

impl Ahead {
    /// This step will have been taken, which nobody looks at by itself.
    pub(super) fn pass(&mut self, op: &Op) {
        if !matches!(op.act, Act::Take { .. }) {
            self.brought.insert(op.path.clone());
        }
        self.note(op);
    }

    /// This step will have been taken by the time of those that are looked at next.
    fn note(&mut self, op: &Op) {
        match &op.act {
            Act::Put { .. } => {
                self.come.insert(op.path.clone());
            }
            Act::Meta { after, .. } => {
                self.metas.insert(op.path.clone(), after.clone());
            }
            Act::Move { to, .. } => {
                self.left.insert(op.path.clone());
                self.come.insert(to.clone());
            }
            Act::Swap { .. } | Act::Take { .. } | Act::Mode(_) => {}
        }
    }

    /// Whether a place will have been made one that can be looked at.
    fn opens(&self, path: &RelPath) -> bool {
        let mut at = Some(path.clone());
        while let Some(dir) = at {
            if self.metas.contains_key(&dir) {
                return true;
            }
            at = dir.parent();
        }
        false
    }

    /// Whether a name can be taken: nothing is there, and what it lies in is
    /// there or will be.
    fn is_free(&self, root: BorrowedFd<'_>, path: &RelPath) -> Result<bool, FsError> {
        let mut above = path.parent();
        while let Some(dir) = above {
            if self.come.contains(&dir) {
                return Ok(true);
            }
            above = dir.parent();
        }
        match open_parent(root, path) {
            Ok((parent, name)) => Thing::read(parent.as_fd(), &name)
                .map(|found| found.is_none() || self.left.contains(path))
                .map_err(|errno| FsError::io("look at", path, errno)),
            Err(FsError::Denied(_)) => Ok(false),
            Err(FsError::Io { source, .. }) if is_missing(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn put(ground: &Ground<'_>, path: &RelPath) -> Result<(), FsError> {
    let (parent, name, flags) = match parent_of(ground.root, path) {
        Err(FsError::Denied(_)) if ground.links_lead => {
            let (parent, name) = parent_by_name(ground.root, path)?;
            (parent, name, RenameFlags::empty())
        }
        found => found.map(|(parent, name)| (parent, name, RenameFlags::NOREPLACE))?,
    };
    ground.rename_out(path, &parent, &name, flags, "put in place")
}

/// What a planted fault takes for the directory a name lies in: wherever links lead.
fn parent_by_name(root: BorrowedFd<'_>, path: &RelPath) -> Result<(OwnedFd, Vec<u8>), FsError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(changed(path));
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(root, parent.as_bytes(), flags, Mode::empty())
        .map(|dir| (dir, name.to_vec()))
        .map_err(|errno| FsError::io("open", path, errno))
}

fn take(ground: &Ground<'_>, path: &RelPath, before: Fingerprint) -> Result<(), FsError> {
    let (parent, name) = parent_of(ground.root, path)?;
    ground
        .steps
        .pass("take away")
        .map_err(|source| failed("take away", path, source))?;
    let out = rustix::fs::renameat_with(
        &parent,
        name.as_slice(),
        ground.area,
        ground.slot.as_slice(),
        RenameFlags::NOREPLACE,
    );
    if out == Err(Errno::XDEV) {
        let place = (parent.as_fd(), name.as_slice());
        let slot = (ground.area, ground.slot.as_slice());
        if let Err(errno) = carry::carry(place, slot) {
            // What cannot be carried back stays in the slot, where taking the
            // step back looks for it.
            let _back = carry::carry(slot, place);
            return Err(FsError::io("take away", path, errno));
        }
    } else {
        renamed(out, "take away", path)?;
    }
    // It is out of reach: what is looked at now cannot be swapped any more.
    if ground.state_of_slot().is_ok_and(|state| state == before) {
        return Ok(());
    }
    match ground.rename_out(path, &parent, &name, RenameFlags::NOREPLACE, "give back") {
        // Taken again meanwhile means that somebody saved a newer one.
        Ok(()) => Err(changed(path)),
        Err(error) if error.code() == Some(DenialCode::ChangedSinceShown) => Err(changed(path)),
        Err(error) => Err(error),
    }
}

/// Swaps, looks at what came out, and swaps back if it is not `before`.
fn swap(
    ground: &Ground<'_>,
    path: &RelPath,
    staged: &Staged,
    before: Fingerprint,
) -> Result<(), FsError> {
    let (parent, name) = parent_of(ground.root, path)?;
    let exchange = || ground.rename_out(path, &parent, &name, RenameFlags::EXCHANGE, "exchange");
    exchange()?;
    let mut out = ground.version()?;
    if out.1 == Some(before) {
        return Ok(());
    }
    // Somebody may save between two swaps; then that version comes out in
    // place of what was put in, is the newest, and must go back in turn.
    let mut put_in = (Some(staged.inode), Some(staged.state));
    for _ in 0..PUT_BACK_TRIES_MAX {
        let putting_back = out;
        exchange()?;
        out = ground.version()?;
        if out == put_in {
            return Err(changed(path));
        }
        put_in = putting_back;
    }
    Err(failed(
        "put back",
        path,
        io::Error::other("it changes all the time; the last version seen is kept in the journal"),
    ))
}

impl Meta {
    /// How a directory is. Attributes are looked at only where they matter.
    fn of(dir: &OwnedFd, before: &Self, after: &Self, path: &RelPath) -> Result<Self, FsError> {
        let stat = rustix::fs::fstat(dir).map_err(|errno| FsError::io("stat", path, errno))?;
        let xattrs = if before.xattrs == after.xattrs {
            before.xattrs.clone()
        } else {
            read_xattrs(dir, path)?
        };
        Ok(Self {
            mode: mode_of(&stat),
            xattrs,
        })
    }

    /// Whether everything is as in one or the other.
    fn lies_between(&self, before: &Self, after: &Self) -> bool {
        let mode = self.mode == before.mode || self.mode == after.mode;
        let mut names = before.xattrs.keys().chain(after.xattrs.keys());
        mode && names.all(|name| {
            let now = self.xattrs.get(name);
            now == before.xattrs.get(name) || now == after.xattrs.get(name)
        })
    }
}

/// Whether what could not be looked at is a directory whose attributes are behind its mode,
/// which is that of `now` and comes to be another.
fn opens(dir: &OwnedFd, (now, then): (&Meta, &Meta), error: &FsError) -> bool {
    matches!(error, FsError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
        && now.mode != then.mode
        && rustix::fs::fstat(dir).is_ok_and(|stat| mode_of(&stat) == now.mode)
}

/// How a directory is that is to be as `then`, and is as `now`, or on the way. Where its
/// attributes cannot be read for its mode, it gets the mode it is to have first, and that is
/// said.
fn look_into(
    steps: &Steps,
    dir: &OwnedFd,
    (now, then): (&Meta, &Meta),
    path: &RelPath,
) -> Result<(Meta, bool), FsError> {
    match Meta::of(dir, now, then, path) {
        Err(error) if opens(dir, (now, then), &error) => {
            set_mode(steps, dir, then.mode, path)?;
            Ok((Meta::of(dir, now, then, path)?, true))
        }
        found => Ok((found?, false)),
    }
}

/// Gives back the mode of one that was opened only to be looked at, if one was.
fn close_again(
    steps: &Steps,
    dir: &OwnedFd,
    opened: Option<&Meta>,
    path: &RelPath,
) -> Result<(), FsError> {
    match opened {
        Some(was) => set_mode(steps, dir, was.mode, path),
        None => Ok(()),
    }
}

fn read_xattrs(dir: &OwnedFd, path: &RelPath) -> Result<Xattrs, FsError> {
    let readable = rustix::fs::openat(
        dir,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| FsError::io("open", path, errno))?;
    crate::changeset::node::xattrs_of(readable.as_fd())
        .map_err(|source| failed("read the attributes of", path, source))
}

fn set_meta(
    steps: &Steps,
    dir: &OwnedFd,
    from: &Meta,
    to: &Meta,
    path: &RelPath,
) -> Result<(), FsError> {
    let itself = format!("/proc/self/fd/{}", dir.as_raw_fd());
    for name in from.xattrs.keys().chain(to.xattrs.keys()) {
        let (old, new) = (from.xattrs.get(name), to.xattrs.get(name));
        if old == new {
            continue;
        }
        steps
            .pass("set an attribute")
            .map_err(|source| failed("set an attribute of", path, source))?;
        let set = match new {
            Some(value) => rustix::fs::setxattr(
                &itself,
                name.as_slice(),
                value,
                rustix::fs::XattrFlags::empty(),
            ),
            None => rustix::fs::removexattr(&itself, name.as_slice()),
        };
        match set {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(errno) => return Err(FsError::io("set an attribute of", path, errno)),
        }
    }
    match from.mode == to.mode {
        true => Ok(()),
        false => set_mode(steps, dir, to.mode, path),
    }
}

fn set_mode(steps: &Steps, dir: &OwnedFd, mode: u32, path: &RelPath) -> Result<(), FsError> {
    steps
        .pass("set a mode")
        .map_err(|source| failed("set the mode of", path, source))?;
    let itself = format!("/proc/self/fd/{}", dir.as_raw_fd());
    rustix::fs::chmod(&itself, Mode::from_raw_mode(mode))
        .map_err(|errno| FsError::io("set the mode of", path, errno))
}

/// A directory by itself, whatever its mode; a link is none.
fn open_dir(root: BorrowedFd<'_>, path: &RelPath) -> Result<OwnedFd, FsError> {
    if path.is_root() {
        return root
            .try_clone_to_owned()
            .map_err(|source| failed("hold", path, source));
    }
    let (parent, name) = parent_of(root, path)?;
    match rustix::fs::openat(
        &parent,
        name.as_slice(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(dir) => Ok(dir),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(changed(path)),
        Err(errno) => Err(FsError::io("open", path, errno)),
    }
}

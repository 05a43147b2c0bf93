//! From the private layer of a view to a list of changes.

mod facts;
mod gone;
mod look;
mod moment;
mod of_copy;
mod overwritten;
mod portion;
mod so_far;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

pub(crate) use self::look::now;
use self::look::{
    child_of, dir_node, failed, is_retimed, is_settings_of_git, modified, node_of, read_link,
    stat_name,
};
pub(super) use self::look::{open_below, read_below};
pub(crate) use self::moment::Moment;
pub(crate) use self::overwritten::Overwritten;
pub use self::portion::Portion;
pub(crate) use self::so_far::{Meanwhile, SoFar};
use super::clock::Since;
use super::copied::{Copied, Seen};
use super::kept::Never;
use super::layer::{self, Layer};
use super::node::{
    Holds, Node, Tree, Xattrs, is_mounted, kind_of, mode_of, open_dir, too_deep, xattrs_of,
};
use super::owners::Owners;
use super::second::Linked;
use super::settled::Settled;
use super::{Change, ChangeSetError, What, Whose};
use crate::dircap::{DEPTH_MAX, Kind, list_dir, open_plain};

/// How much longer files may be together than the layer is big, because of
/// their holes. Each has to be hashed from end to end.
const HOLES_FACTOR: u64 = 8;

/// On what terms a layer is read.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// When the command had seen nothing yet.
    pub started: Since,
    /// How owners are read, if they are not those of outside.
    pub owners: Option<Owners>,
    /// How long its files may be together, holes aside.
    pub bytes_max: u64,
    /// What was decided before.
    pub settled: Settled,
    /// How it is looked at, if the command runs still.
    pub while_it_runs: Option<Meanwhile>,
}

/// What the layer held.
pub(super) struct Scanned {
    pub changes: Vec<Change>,
    /// What of it may not be kept.
    pub never: Never,
    /// What the command saw under each name it changed.
    pub before: Tree,
    /// What it made of them, modes as it left them.
    pub after: Tree,
    /// New names of files that are as before, each with the name that was there.
    pub second_names: BTreeMap<RelPath, RelPath>,
    pub layer: Layer,
    /// What was seen of it, if its command runs still.
    pub so_far: SoFar,
}

pub(super) fn scan(
    upper: BorrowedFd<'_>,
    lower: BorrowedFd<'_>,
    terms: Terms,
) -> Result<Scanned, ChangeSetError> {
    let Terms {
        started,
        owners,
        bytes_max,
        settled,
        while_it_runs,
    } = terms;
    let root = RelPath::root();
    let stat =
        |dir: BorrowedFd<'_>| rustix::fs::fstat(dir).map_err(|errno| failed("stat", &root, errno));
    // The mode is noted, and then opened like those of all that is in it.
    let top = stat(upper)?;
    if while_it_runs.is_none() {
        layer::unlock_itself(upper, &top).map_err(|error| failed("unlock", &root, error))?;
    }
    let layer = Layer::of(upper).map_err(|error| failed("tell the kind of", &root, error))?;
    let copied = match layer {
        Layer::Overlay => None,
        Layer::Copy => Some(of_copy::list(upper, &started, &root)?),
    };
    let stand_ins = copied.as_ref().map(Copied::stand_ins).unwrap_or_default();
    let mut scan = Scan {
        layer,
        copied,
        first_seen: BTreeMap::new(),
        replaced: Vec::new(),
        dirs: Vec::new(),
        files: Vec::new(),
        deleted: Vec::new(),
        modes: Vec::new(),
        before: Tree::new(),
        after: Tree::new(),
        linked: Linked::default(),
        bytes_left: bytes_max.saturating_mul(HOLES_FACTOR),
        is_hidden: false,
        started,
        never: Never::default(),
        stand_ins,
        owners,
        so_far: SoFar::of(while_it_runs.as_ref(), &settled),
        settled,
        while_it_runs,
    };
    scan.compare_dirs(upper, &top, lower, &stat(lower)?, &root)?;
    scan.merged(upper, Some(lower), &root, 0)?;
    Ok(scan.finish())
}

/// Changes by the moment at which they are listed.
struct Scan {
    layer: Layer,
    /// What the layer held before the command, if it is a copy.
    copied: Option<Copied>,
    /// Facts about files with several names, before any of them was unlocked.
    first_seen: BTreeMap<u64, Stat>,
    /// Deletions of names that come back as something else, deepest first.
    replaced: Vec<Change>,
    /// New directories, outermost first.
    dirs: Vec<Change>,
    /// Everything else that is new or different.
    files: Vec<Change>,
    /// Deletions, deepest first.
    deleted: Vec<Change>,
    /// Modes and attributes.
    modes: Vec<Change>,
    before: Tree,
    after: Tree,
    linked: Linked,
    /// How long the files still to come may be together.
    bytes_left: u64,
    /// Whether what lies below is hidden by a directory further up: only the
    /// outermost of them is marked.
    is_hidden: bool,
    /// When the command had seen nothing yet.
    started: Since,
    never: Never,
    /// Files of a copy that stand for what could not be copied, by their number.
    stand_ins: BTreeSet<u64>,
    owners: Option<Owners>,
    settled: Settled,
    /// How it is looked at, if the command runs still.
    while_it_runs: Option<Meanwhile>,
    so_far: SoFar,
}

/// Whether something else comes in the place of a deleted name.
#[derive(Clone, Copy)]
enum Gone {
    Replaced,
    ForGood,
}

impl Scan {
    fn finish(self) -> Scanned {
        let mut changes = self.replaced;
        changes.extend(self.dirs);
        changes.extend(self.files);
        changes.extend(self.deleted);
        changes.extend(self.modes);
        let second_names = self.linked.found(&self.before, &self.after);
        Scanned {
            changes,
            never: self.never,
            before: self.before,
            after: self.after,
            second_names,
            layer: self.layer,
            so_far: self.so_far,
        }
    }

    /// Compares a directory of the layer with the one below it, if there is one.
    fn merged(
        &mut self,
        upper: BorrowedFd<'_>,
        lower: Option<BorrowedFd<'_>>,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), ChangeSetError> {
        if depth > DEPTH_MAX {
            return Err(failed("descend into", path, too_deep()));
        }
        self.note_names_of(upper, path)?;
        let entries = list_dir(upper).map_err(|error| failed("list", path, error));
        let Some(entries) = self.unless_it_waits(entries)? else {
            return Ok(());
        };
        let hides = self
            .layer
            .hides(upper)
            .map_err(|error| failed("read the marks of", path, error))?
            || self.is_hidden;
        let outside = std::mem::replace(&mut self.is_hidden, hides);
        for entry in &entries {
            let child = child_of(path, &entry.name)?;
            self.one(upper, lower, &entry.name, &child, depth)?;
        }
        self.is_hidden = outside;
        let Some(lower) = lower else {
            return Ok(());
        };
        // Whatever is not here again is gone. Both lists are sorted by name.
        let is_here = |name: &[u8]| {
            let found = entries.binary_search_by(|kept| kept.name.as_slice().cmp(name));
            found.is_ok()
        };
        let is_settled = self.is_settled(upper, path)?;
        if hides && self.copied.is_none() && !is_settled {
            for entry in list_dir(lower).map_err(|error| failed("list", path, error))? {
                if !is_here(&entry.name) {
                    self.missing(lower, &entry.name, path, depth)?;
                }
            }
            return Ok(());
        }
        // What was never in the layer came from somebody else meanwhile.
        let mut gone: Vec<Vec<u8>> = Vec::new();
        if is_settled {
            gone.extend(self.settled.names_in(path).map(<[u8]>::to_vec));
        }
        if hides && self.copied.is_some() {
            for entry in list_dir(lower).map_err(|error| failed("list", path, error))? {
                if self.seen(&child_of(path, &entry.name)?).is_some() {
                    gone.push(entry.name);
                }
            }
            gone.sort();
            gone.dedup();
        }
        for name in gone.iter().filter(|name| !is_here(name)) {
            self.missing(lower, name, path, depth)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        upper: BorrowedFd<'_>,
        lower: Option<BorrowedFd<'_>>,
        name: &[u8],
        path: &RelPath,
        depth: usize,
    ) -> Result<(), ChangeSetError> {
        if self.is_left_alone(path) {
            self.note_left_alone(upper, name, path);
            return Ok(());
        }
        let found = stat_name(upper, name, path)?
            .ok_or_else(|| failed("find", path, io::ErrorKind::NotFound));
        let Some(mut new) = self.unless_it_waits(found)? else {
            return Ok(());
        };
        if self.waits_for_its_end(&new, path)? || self.is_only_counted(&new) {
            return Ok(());
        }
        if kind_of(&new) == Kind::File && new.st_nlink > 1 {
            new = *self.first_seen.entry(new.st_ino).or_insert(new);
        }
        // Nobody looks at what is mounted there, whoever may serve it.
        let mount = lower.filter(|lower| is_mounted(lower.as_fd(), name).unwrap_or(false));
        let old = match lower {
            Some(lower) if mount.is_none() => stat_name(lower, name, path)?.map(|old| (lower, old)),
            Some(_) | None => None,
        };
        if self.while_it_runs.is_none() {
            layer::unlock(upper, name, &new).map_err(|error| failed("unlock", path, error))?;
        }
        let whiteout = self
            .layer
            .is_whiteout(upper, name, &new)
            .map_err(|error| failed("read the marks of", path, error));
        let Some(whiteout) = self.unless_it_waits(whiteout)? else {
            return Ok(());
        };
        if whiteout {
            // What has the name since then is somebody else's.
            let there = mount.or(old.map(|(lower, _)| lower));
            if let Some(lower) = there.filter(|_| !self.settled.is_gone(path))
                && self.may_go(lower, name, path)?
            {
                self.note(path, None);
                self.deleted(lower, name, path, depth, Gone::ForGood)?;
            }
            return Ok(());
        }
        let untouched = self.is_untouched(upper, name, path, &new);
        let Some(untouched) = self.unless_it_waits(untouched)? else {
            return Ok(());
        };
        if untouched {
            self.note_again(path);
            if kind_of(&new) == Kind::File && new.st_nlink > 1 {
                let old = old.as_ref().map(|(_, old)| old);
                self.note_linked(path, old);
                self.linked.note_unchanged(path, &new, old);
            }
            return Ok(());
        }
        let is_dir = |found: &Stat| kind_of(found) == Kind::Dir;
        let was_dir = mount.is_some() || old.as_ref().is_some_and(|(_, old)| is_dir(old));
        let was_copied = self.seen(path).is_some_and(|seen| seen.is_the_one(&new));
        if mount.is_some() {
            if was_copied && is_dir(&new) {
                let copy = open_dir(upper, name).map_err(|error| failed("open", path, error))?;
                if self.is_as_copied(copy.as_fd(), &new, path)? {
                    return Ok(());
                }
            }
            if self.while_it_runs.is_some() {
                self.note_waiting(&new);
                return Ok(());
            }
            // What was made there is no change of what is mounted.
            self.never.mounted.insert(path.clone());
        }
        self.note_whose(&new, path, was_copied);
        if is_dir(&new) && was_copied && !was_dir {
            // Somebody removed the original meanwhile: what the command did in
            // it is all there is to tell.
            let copy = open_dir(upper, name).map_err(|error| failed("open", path, error))?;
            return self.orphan(copy.as_fd(), &new, path, depth.saturating_add(1));
        }
        if !(is_dir(&new) && was_dir || self.has_room(&new)) {
            return match is_dir(&new) && old.is_none() {
                true => self.dir_without_room(upper, name, &new, path, depth),
                false => Ok(()),
            };
        }
        let old = match old {
            Some((lower, old)) if self.is_another(upper, &new, lower, &old, name, path)? => {
                if !self.may_be_replaced(lower, name, path)? {
                    self.note_waiting(&new);
                    return Ok(());
                }
                self.deleted(lower, name, path, depth, Gone::Replaced)?;
                None
            }
            Some((_, old)) if kind_of(&old) == Kind::Symlink => {
                self.note(path, Some(Seen::of(&new)));
                return Ok(());
            }
            old => old,
        };
        match kind_of(&new) {
            Kind::File => self.file(upper, name, path, &new, old),
            Kind::Dir => self.dir(upper, name, path, &new, old, depth),
            Kind::Symlink => {
                let target = read_link(upper, name, path);
                let Some(target) = self.unless_it_waits(target)? else {
                    return Ok(());
                };
                self.note(path, Some(Seen::of(&new)));
                self.created(
                    path,
                    What::CreatedSymlink {
                        target: target.clone(),
                    },
                );
                self.after.insert(
                    path.clone(),
                    Node {
                        kind: Kind::Symlink,
                        mode: 0,
                        bytes: 0,
                        holds: Holds::Target(target),
                        xattrs: Xattrs::new(),
                    },
                );
                Ok(())
            }
            Kind::Special => {
                self.created(path, What::CreatedSpecial);
                Ok(())
            }
        }
    }

    fn created(&mut self, path: &RelPath, what: What) {
        self.files.push(Change {
            path: path.clone(),
            what,
        });
    }

    /// Whether what lies in the layer is not a later state of what lies below.
    fn is_another(
        &self,
        upper: BorrowedFd<'_>,
        new: &Stat,
        lower: BorrowedFd<'_>,
        old: &Stat,
        name: &[u8],
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        Ok(match (kind_of(new), kind_of(old)) {
            (Kind::File, Kind::File) | (Kind::Dir, Kind::Dir) => false,
            (Kind::Symlink, Kind::Symlink) => {
                read_link(upper, name, path)? != read_link(lower, name, path)?
            }
            (Kind::File | Kind::Dir | Kind::Symlink | Kind::Special, _) => true,
        })
    }

    fn dir(
        &mut self,
        upper: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        new: &Stat,
        old: Option<(BorrowedFd<'_>, Stat)>,
        depth: usize,
    ) -> Result<(), ChangeSetError> {
        let opened =
            |dir: BorrowedFd<'_>| open_dir(dir, name).map_err(|error| failed("open", path, error));
        let upper_dir = opened(upper);
        let Some(upper_dir) = self.unless_it_waits(upper_dir)? else {
            return Ok(());
        };
        self.note_dir(upper_dir.as_fd(), new, path)?;
        let deeper = depth.saturating_add(1);
        if let Some((lower, old)) = old {
            let lower_dir = match open_dir(lower, name) {
                Err(error) if self.may_tell_by_its_list(&error) => {
                    if self.is_as_copied(upper_dir.as_fd(), new, path)? {
                        return Ok(());
                    }
                    return Err(failed("open", path, error));
                }
                opened => opened.map_err(|error| failed("open", path, error))?,
            };
            self.compare_dirs(upper_dir.as_fd(), new, lower_dir.as_fd(), &old, path)?;
            return self.merged(upper_dir.as_fd(), Some(lower_dir.as_fd()), path, deeper);
        }
        let mode = mode_of(new);
        self.dirs.push(Change {
            path: path.clone(),
            what: What::CreatedDir { mode },
        });
        let node = dir_node(upper_dir.as_fd(), mode, path)?;
        self.note_xattrs(path, Whose::New, &Xattrs::new(), &node.xattrs);
        self.after.insert(path.clone(), node);
        self.merged(upper_dir.as_fd(), None, path, deeper)
    }

    fn file(
        &mut self,
        upper: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        new: &Stat,
        old: Option<(BorrowedFd<'_>, Stat)>,
    ) -> Result<(), ChangeSetError> {
        if self.is_too_much(new) {
            return Ok(());
        }
        self.bytes_left = u64::try_from(new.st_size)
            .ok()
            .and_then(|bytes| self.bytes_left.checked_sub(bytes))
            .ok_or_else(|| {
                let error = io::Error::other(
                    "the files are longer together than the view can hold, holes included",
                );
                failed("read", path, error)
            })?;
        let read = open_plain(upper, name)
            .and_then(|file| {
                self.is_still(file.as_fd(), new)?;
                let (digest, bytes) = self.digest_of(file.as_fd())?;
                let node = Node {
                    kind: Kind::File,
                    mode: mode_of(new),
                    bytes,
                    holds: Holds::Content(digest),
                    xattrs: xattrs_of(file.as_fd())?,
                };
                Ok((node, file))
            })
            .map_err(|error| failed("read", path, error));
        let Some((mut node, file)) = self.unless_it_waits(read)? else {
            return Ok(());
        };
        self.hold(path, new, file);
        let (digest, bytes, mode) = (node.digest(), node.bytes, node.mode);
        let seen = Seen {
            content: Some(digest),
            ..Seen::of(new)
        };
        self.note(path, Some(seen));
        let Some((lower, old)) = old else {
            self.created(
                path,
                What::CreatedFile {
                    digest,
                    bytes,
                    mode,
                },
            );
            self.note_xattrs(path, Whose::New, &Xattrs::new(), &node.xattrs);
            self.linked.note_came(path, new);
            self.after.insert(path.clone(), node);
            return Ok(());
        };
        let before = node_of(lower, name, path)?;
        // A copy-up drops access lists that the layer cannot hold.
        self.keep_what_a_layer_cannot(&mut node.xattrs, &before.xattrs);
        let base = before.digest();
        let metadata = !fault::is(Fault::ChangeSetMissesMetadata);
        let content = base != digest;
        if content {
            self.note_overwritten(path, new, &before);
            self.created(
                path,
                What::ModifiedFile {
                    base,
                    digest,
                    bytes,
                    mode_before: before.mode,
                    mode: if metadata { mode } else { before.mode },
                },
            );
        } else if before.mode != mode && metadata {
            self.modes.push(Change {
                path: path.clone(),
                what: What::ModifiedMode {
                    before: before.mode,
                    mode,
                },
            });
        }
        let xattrs = self.note_xattrs(path, Whose::Old, &before.xattrs, &node.xattrs);
        // Whatever else is different brings its time along.
        let is_as_before = !content && !xattrs && before.mode == mode;
        let only_its_time = is_as_before && is_retimed(new, &old) && !is_settings_of_git(path);
        if only_its_time && metadata {
            self.modes.push(Change {
                path: path.clone(),
                what: What::ModifiedTime {
                    before: modified(&old),
                    time: modified(new),
                },
            });
        }
        if content || xattrs || ((before.mode != mode || only_its_time) && metadata) {
            self.note_age((lower, name), path, (&old, &before))?;
            if !metadata {
                node.mode = before.mode;
            }
            self.before.insert(path.clone(), before);
            self.linked.note_came(path, new);
            self.after.insert(path.clone(), node);
        } else if new.st_nlink > 1 {
            self.note_below(&old, &before, true);
            self.linked.note_unchanged(path, new, Some(&old));
        }
        Ok(())
    }
}

//! What is no longer there, and what is not as the command saw it.

use std::os::fd::{AsFd, BorrowedFd};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::look::{child_of, failed, stat_name};
use super::{Gone, Scan};
use crate::changeset::node::{Holds, Node, is_mounted, kind_of, open_dir, too_deep};
use crate::changeset::settled::Left;
use crate::changeset::{Change, ChangeSetError, What};
use crate::dircap::{DEPTH_MAX, Kind, list_dir};

impl Scan {
    /// Notes a file of the lower layer that is not the one the command saw, by what was
    /// found of it before it was read. Its kernel stamps every change of content, name or
    /// mode. And reading takes its time: what was saved meanwhile may be what was read.
    /// One that is gone is missed at the commit.
    pub(super) fn note_age(
        &mut self,
        (lower, name): (BorrowedFd<'_>, &[u8]),
        path: &RelPath,
        (old, node): (&Stat, &Node),
    ) -> Result<(), ChangeSetError> {
        let is_others = self.is_late(old, path) && !self.settled.was_moved(old, node);
        self.note_below(old, node, false);
        let now = stat_name(lower, name, path)?;
        let is_another =
            now.is_some_and(|now| Left::of(&now) != Left::of(old) && self.is_late(&now, path));
        if is_others || is_another {
            self.never.overtaken.insert(path.clone());
        }
        Ok(())
    }

    /// Whether something was changed since the command began, and not by what was decided
    /// of it.
    fn is_late(&self, old: &Stat, path: &RelPath) -> bool {
        let nanos = i64::try_from(old.st_ctime_nsec).unwrap_or(0);
        let is_late = kind_of(old) != Kind::Dir && (old.st_ctime, nanos) > self.started.earliest();
        is_late && !self.settled.was_left(path, old)
    }

    /// Whether a directory of the layer is the one that was decided.
    pub(super) fn is_settled(
        &self,
        upper: BorrowedFd<'_>,
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        if path.is_root() {
            return Ok(true);
        }
        let stat = || rustix::fs::fstat(upper).map_err(|errno| failed("stat", path, errno));
        Ok(match self.settled.seen(path) {
            Some(seen) => seen.is_the_one(&stat()?),
            None => false,
        })
    }

    /// A name that the layer held, or hides, and holds no longer.
    pub(super) fn missing(
        &mut self,
        lower: BorrowedFd<'_>,
        name: &[u8],
        dir: &RelPath,
        depth: usize,
    ) -> Result<(), ChangeSetError> {
        let path = child_of(dir, name)?;
        if self.is_left_alone(&path) || self.settled.is_gone(&path) {
            return Ok(());
        }
        if !self.may_go(lower, name, &path)? {
            return Ok(());
        }
        self.note(&path, None);
        self.deleted(lower, name, &path, depth, Gone::ForGood)
    }

    /// Everything below a deleted name, then the name itself.
    pub(super) fn deleted(
        &mut self,
        lower: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        depth: usize,
        gone: Gone,
    ) -> Result<(), ChangeSetError> {
        if fault::is(Fault::ChangeSetMissesDeletes) {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(failed("descend into", path, too_deep()));
        }
        // Before it is looked at: whoever serves another file system may not answer.
        let is_mounted = is_mounted(lower, name).map_err(|errno| failed("open", path, errno))?;
        let node = if is_mounted {
            self.never.mounted.insert(path.clone());
            Node::mounted_on()
        } else {
            let found = Node::read(lower, name).map_err(|error| failed("read", path, error))?;
            let Some((node, old)) = found else {
                return Ok(());
            };
            self.note_age((lower, name), path, (&old, &node))?;
            node
        };
        let what = match &node.holds {
            Holds::Content(_) | Holds::Itself { .. } => What::DeletedFile {
                base: node.digest(),
            },
            Holds::Target(target) => What::DeletedSymlink {
                target: target.clone(),
            },
            Holds::Special { .. } => What::DeletedSpecial,
            // What is in it was not there for the command, nor is it here.
            Holds::Names if is_mounted => What::DeletedDir,
            Holds::Names => {
                let dir = open_dir(lower, name).map_err(|error| failed("open", path, error))?;
                let names = list_dir(&dir).map_err(|error| failed("list", path, error))?;
                self.note_emptied(path, names.is_empty());
                for entry in names {
                    let child = child_of(path, &entry.name)?;
                    let deeper = depth.saturating_add(1);
                    self.deleted(dir.as_fd(), &entry.name, &child, deeper, gone)?;
                }
                What::DeletedDir
            }
        };
        self.before.insert(path.clone(), node);
        let change = Change {
            path: path.clone(),
            what,
        };
        match gone {
            Gone::Replaced => self.replaced.push(change),
            Gone::ForGood => self.deleted.push(change),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::changeset::clock::{Reading, Since};
    use crate::changeset::scan::{Terms, scan};
    use crate::changeset::settled::Settled;

    #[test]
    fn what_is_saved_after_the_clock_was_set_back_is_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        for dir in ["work", "upper", "lower"] {
            std::fs::create_dir(at(dir)).unwrap();
        }
        for name in ["lower/rests", "lower/saved", "upper/rests"] {
            std::fs::write(at(name), name).unwrap();
        }
        // Longer than a look at the clock takes.
        std::thread::sleep(Duration::from_millis(100));
        let hour = 3_600_000_000_000;
        let overtaken = |set_back: i128| {
            let open = |path: &Path| std::fs::File::open(path).unwrap();
            let terms = Terms {
                started: Since::from(Reading::now().if_it_were_set(set_back)),
                owners: None,
                bytes_max: 1 << 20,
                settled: Settled::default(),
                while_it_runs: None,
            };
            std::thread::sleep(Duration::from_millis(100));
            std::fs::write(at("lower/saved"), "by somebody else").unwrap();
            std::fs::write(at("upper/saved"), "by the command").unwrap();
            let found = scan(
                open(&at("upper")).as_fd(),
                open(&at("lower")).as_fd(),
                terms,
            );
            let found = found.unwrap();
            assert_eq!(found.changes.len(), 2);
            found.never.overtaken.first().map(RelPath::to_string)
        };
        // That it was set back by nothing since the command began, and by an hour.
        for set_back in [0, hour] {
            assert_eq!(overtaken(set_back).as_deref(), Some("saved"), "{set_back}");
        }
    }
}

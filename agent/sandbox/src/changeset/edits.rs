//! A change set of contents that are at hand, as if a command had made them.
//!
//! What for: a tool that changes several files wants what a command gets, all
//! of them or none, also when the machine stops in between. So its edits are
//! put into a layer of the agent's own and become a change set like any other.
//!
//! It must never change anything in the directory itself, and never make
//! possible what the system would refuse whoever runs it: names come and go
//! only in directories that may be written. (A command that opens a closed
//! directory did so itself; its change set says so.)

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hermitcrab_core::authority::Extent;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{Access, AtFlags, Mode, OFlags};

use super::carried::names_below;
use super::node::{Holds, Node, Tree, Xattrs};
use super::{Change, ChangeSet, Layer, Never, SoFar, What, renames};
use crate::digest::sha256;
use crate::dircap::open::{Links, open_beneath, open_parent};
use crate::dircap::{DirCap, FsError, Kind, Thing};

/// Permission bits of directories made on the way to a file.
const DIR_MODE: u32 = 0o755;

/// What is to become of one name, seen from the directory's root.
#[derive(Clone, Debug)]
pub enum Edit {
    /// There is to be a new file, with the directories on the way to it.
    Put {
        /// Its name, where nothing may be yet.
        path: RelPath,
        /// What it holds.
        content: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A file is to hold something else; its permission bits stay.
    Replace {
        /// Its name.
        path: RelPath,
        /// What it must hold now; `None` if that is not known.
        before: Option<Digest>,
        /// What it is to hold.
        content: Vec<u8>,
    },
    /// A file is to go.
    Remove {
        /// Its name.
        path: RelPath,
        /// What it must hold now.
        before: Digest,
    },
    /// A directory, a link or something special is to go; of a directory,
    /// everything in it must be among what goes.
    RemoveName {
        /// Its name.
        path: RelPath,
    },
    /// A symbolic link is to go, and nothing of what it leads to.
    RemoveLink {
        /// Its name.
        path: RelPath,
        /// What it must say now.
        target: Vec<u8>,
    },
    /// There is to be a new symbolic link, with the directories on the way to it.
    PutLink {
        /// Its name, where nothing may be yet.
        path: RelPath,
        /// What it is to say.
        target: Vec<u8>,
    },
    /// There is to be a new directory, with those on the way to it.
    MakeDir {
        /// Its name, where nothing may be yet.
        path: RelPath,
        /// Its permission bits.
        mode: u32,
    },
    /// Whatever is there is to have another name, where nothing may be yet, with
    /// the directories on the way to it. Another thing that takes its place
    /// meanwhile stays.
    Move {
        /// The old name.
        from: RelPath,
        /// The new one.
        to: RelPath,
    },
    /// A file is to have another name.
    Rename {
        /// The old name.
        from: RelPath,
        /// The new one, where nothing may be yet.
        to: RelPath,
        /// What it holds under the old one.
        before: Digest,
        /// What it is to hold under the new one.
        content: Vec<u8>,
    },
}

/// A thing that gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub from: RelPath,
    pub to: RelPath,
    /// Which thing it is.
    pub what: Thing,
    /// What goes with it, if it is a directory.
    pub below: Vec<RelPath>,
    /// What of it was read, and is to be the same when it is moved, each by its whole old name.
    pub read: Vec<(RelPath, Node)>,
}

/// What is being collected.
struct Made<'a> {
    lower: BorrowedFd<'a>,
    upper: BorrowedFd<'a>,
    before: Tree,
    after: Tree,
    created: BTreeMap<RelPath, What>,
    changed: Vec<Change>,
    moves: Vec<Moved>,
}

impl ChangeSet {
    /// The change set of these edits of `dir`; their contents go into `upper`,
    /// an empty directory of the agent's own.
    pub(crate) fn of_edits(dir: &DirCap, upper: OwnedFd, edits: &[Edit]) -> Result<Self, FsError> {
        let Some(patience) = dir.patience() else {
            return Self::of_edits_at_once(dir, upper, edits);
        };
        let failed = |source| FsError::Io {
            operation: "compare",
            path: RelPath::root(),
            source,
        };
        let (held, edits) = (dir.duplicate().map_err(failed)?, edits.to_vec());
        let made = patience.compare(move || Self::of_edits_at_once(&held, upper, &edits));
        made.map_err(failed)?
    }

    fn of_edits_at_once(dir: &DirCap, upper: OwnedFd, edits: &[Edit]) -> Result<Self, FsError> {
        let lower = dir
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| FsError::Io {
                operation: "hold",
                path: RelPath::root(),
                source,
            })?;
        let mut made = Made {
            lower: lower.as_fd(),
            upper: upper.as_fd(),
            before: Tree::new(),
            after: Tree::new(),
            created: BTreeMap::new(),
            changed: Vec::new(),
            moves: Vec::new(),
        };
        for edit in edits {
            made.take(edit)?;
        }
        let Made {
            before,
            after,
            created,
            changed,
            moves,
            ..
        } = made;
        // Directories come before what lies in them.
        let mut changes: Vec<Change> = created
            .into_iter()
            .map(|(path, what)| Change { path, what })
            .collect();
        changes.extend(changed);
        Ok(Self {
            renames: renames::find(&before, &after),
            changes,
            never: Never::default(),
            owners: None,
            before,
            after,
            second_names: BTreeMap::new(),
            moves,
            so_far: SoFar::default(),
            layer: Layer::Overlay,
            upper,
            lower,
            patience: dir.patience().cloned(),
            prefix: dir.prefix().clone(),
            kept: None,
        })
    }
}

impl Made<'_> {
    fn take(&mut self, edit: &Edit) -> Result<(), FsError> {
        match edit {
            Edit::Put {
                path,
                content,
                mode,
            } => self.put(path, content, *mode, Xattrs::new()),
            Edit::Replace {
                path,
                before,
                content,
            } => self.replace(path, *before, content),
            Edit::Remove { path, before } => self.remove(path, *before).map(drop),
            Edit::RemoveName { path } => self.remove_name(path),
            Edit::RemoveLink { path, target } => self.remove_link(path, target),
            Edit::PutLink { path, target } => self.put_link(path, target),
            Edit::MakeDir { path, mode } => self.make_dir(path, *mode),
            Edit::Move { from, to } => self.rename(from, to),
            Edit::Rename {
                from,
                to,
                before,
                content,
            } => {
                let old = self.remove(from, *before)?;
                self.put(to, content, old.mode, old.xattrs)
            }
        }
    }

    /// What is there now, which must be a file with this content.
    fn old(&self, path: &RelPath, expected: Option<Digest>) -> Result<Node, FsError> {
        let changed = || FsError::denied(DenialCode::ChangedSinceShown, path);
        let (parent, name) = open_parent(self.lower, path)?;
        let found = Node::read(parent.as_fd(), &name).map_err(|source| FsError::Io {
            operation: "read",
            path: path.clone(),
            source,
        })?;
        let (node, _) = found.ok_or_else(changed)?;
        if node.kind != Kind::File {
            return Err(FsError::denied(DenialCode::NotRegularFile, path));
        }
        if expected.is_some_and(|expected| node.digest() != expected) {
            return Err(changed());
        }
        Ok(node)
    }

    fn remove(&mut self, path: &RelPath, expected: Digest) -> Result<Node, FsError> {
        let node = self.old(path, Some(expected))?;
        self.may_change_names(path)?;
        self.changed.push(Change {
            path: path.clone(),
            what: What::DeletedFile {
                base: node.digest(),
            },
        });
        self.before.insert(path.clone(), node.clone());
        Ok(node)
    }

    fn remove_name(&mut self, path: &RelPath) -> Result<(), FsError> {
        self.may_change_names(path)?;
        let (parent, name) = open_parent(self.lower, path)?;
        let found = Node::read(parent.as_fd(), &name).map_err(|source| FsError::Io {
            operation: "look at",
            path: path.clone(),
            source,
        })?;
        let (node, _) =
            found.ok_or_else(|| FsError::denied(DenialCode::ChangedSinceShown, path))?;
        let what = match &node.holds {
            Holds::Names => What::DeletedDir,
            Holds::Target(target) => What::DeletedSymlink {
                target: target.clone(),
            },
            Holds::Special { .. } => What::DeletedSpecial,
            // Whose content nobody saw.
            Holds::Content(_) | Holds::Itself { .. } => {
                return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
            }
        };
        self.changed.push(Change {
            path: path.clone(),
            what,
        });
        self.before.insert(path.clone(), node);
        Ok(())
    }

    /// A link that says something else by now is another one.
    fn remove_link(&mut self, path: &RelPath, target: &[u8]) -> Result<(), FsError> {
        self.may_change_names(path)?;
        let (parent, name) = open_parent(self.lower, path)?;
        let found = Node::read(parent.as_fd(), &name).map_err(|source| FsError::Io {
            operation: "look at",
            path: path.clone(),
            source,
        })?;
        let is_it = |node: &Node| matches!(&node.holds, Holds::Target(says) if says == target);
        let (node, _) = found
            .filter(|(node, _)| is_it(node))
            .ok_or_else(|| FsError::denied(DenialCode::ChangedSinceShown, path))?;
        let target = target.to_vec();
        self.changed.push(Change {
            path: path.clone(),
            what: What::DeletedSymlink { target },
        });
        self.before.insert(path.clone(), node);
        Ok(())
    }

    fn put_link(&mut self, path: &RelPath, target: &[u8]) -> Result<(), FsError> {
        self.make_parents(path)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.is_root()) {
            self.dir_of_layer(&parent)?;
        }
        let (place, name) = open_parent(self.upper, path)?;
        rustix::fs::symlinkat(target, &place, name.as_slice())
            .map_err(|errno| FsError::io("keep what goes into", path, errno))?;
        self.created.insert(
            path.clone(),
            What::CreatedSymlink {
                target: target.to_vec(),
            },
        );
        self.after.insert(
            path.clone(),
            Node {
                kind: Kind::Symlink,
                mode: 0,
                bytes: 0,
                holds: Holds::Target(target.to_vec()),
                xattrs: Xattrs::new(),
            },
        );
        Ok(())
    }

    fn make_dir(&mut self, path: &RelPath, mode: u32) -> Result<(), FsError> {
        self.make_parents(path)?;
        self.add_dir(path, mode);
        self.dir_of_layer(path)
    }

    fn rename(&mut self, from: &RelPath, to: &RelPath) -> Result<(), FsError> {
        self.may_change_names(from)?;
        let what = Thing::at(self.lower, from)?
            .ok_or_else(|| FsError::denied(DenialCode::ChangedSinceShown, from))?;
        self.make_parents(to)?;
        let extent = what.extent();
        let below = match extent {
            Extent::Tree => {
                let (parent, name) = open_parent(self.lower, from)?;
                names_below(parent.as_fd(), &name, from)?
            }
            Extent::Alone => Vec::new(),
        };
        let here = What::MovedHere {
            from: from.clone(),
            extent,
        };
        for (path, what) in [(from, What::MovedAway { extent }), (to, here)] {
            self.changed.push(Change {
                path: path.clone(),
                what,
            });
        }
        self.moves.push(Moved {
            from: from.clone(),
            to: to.clone(),
            what,
            below,
            read: Vec::new(),
        });
        Ok(())
    }

    fn replace(
        &mut self,
        path: &RelPath,
        expected: Option<Digest>,
        content: &[u8],
    ) -> Result<(), FsError> {
        let old = self.old(path, expected)?;
        let digest = sha256(content);
        self.changed.push(Change {
            path: path.clone(),
            what: What::ModifiedFile {
                base: old.digest(),
                digest,
                bytes: length(content),
                mode_before: old.mode,
                mode: old.mode,
            },
        });
        self.write(path, content)?;
        self.after.insert(
            path.clone(),
            Node {
                bytes: length(content),
                holds: Holds::Content(digest),
                ..old.clone()
            },
        );
        self.before.insert(path.clone(), old);
        Ok(())
    }

    fn put(
        &mut self,
        path: &RelPath,
        content: &[u8],
        mode: u32,
        xattrs: Xattrs,
    ) -> Result<(), FsError> {
        self.make_parents(path)?;
        let digest = sha256(content);
        self.created.insert(
            path.clone(),
            What::CreatedFile {
                digest,
                bytes: length(content),
                mode,
            },
        );
        self.write(path, content)?;
        self.after.insert(
            path.clone(),
            Node {
                kind: Kind::File,
                mode,
                bytes: length(content),
                holds: Holds::Content(digest),
                xattrs,
            },
        );
        Ok(())
    }

    /// The directories on the way that are not there, outermost first.
    fn make_parents(&mut self, path: &RelPath) -> Result<(), FsError> {
        let mut missing = Vec::new();
        let mut first = path.clone();
        let mut above = path.parent();
        while let Some(dir) = above.filter(|dir| !dir.is_root() && !self.after.contains_key(dir)) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            match open_beneath(self.lower, &dir, flags, Links::Refuse) {
                Ok(_) => break,
                Err(FsError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            above = dir.parent();
            first.clone_from(&dir);
            missing.push(dir);
        }
        if !first
            .parent()
            .is_some_and(|dir| self.after.contains_key(&dir))
        {
            self.may_change_names(&first)?;
        }
        for dir in missing.into_iter().rev() {
            self.add_dir(&dir, DIR_MODE);
            self.dir_of_layer(&dir)?;
        }
        Ok(())
    }

    fn add_dir(&mut self, dir: &RelPath, mode: u32) {
        self.created.insert(dir.clone(), What::CreatedDir { mode });
        self.after.insert(
            dir.clone(),
            Node {
                kind: Kind::Dir,
                mode,
                bytes: 0,
                holds: Holds::Names,
                xattrs: Xattrs::new(),
            },
        );
    }

    /// Whether the system lets us add and remove names where this one lies.
    fn may_change_names(&self, path: &RelPath) -> Result<(), FsError> {
        let refused = |errno| FsError::io("change names beside", path, errno);
        let (parent, _) = open_parent(self.lower, path)?;
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&parent, ".", wanted, AtFlags::EACCESS).map_err(refused)
    }

    /// Makes a directory of the layer, with those on the way to it.
    fn dir_of_layer(&self, path: &RelPath) -> Result<(), FsError> {
        let mut above = vec![path.clone()];
        let mut dir = path.parent();
        while let Some(parent) = dir.filter(|parent| !parent.is_root()) {
            dir = parent.parent();
            above.push(parent);
        }
        for dir in above.into_iter().rev() {
            let (place, name) = open_parent(self.upper, &dir)?;
            match rustix::fs::mkdirat(&place, name.as_slice(), Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(errno) => return Err(FsError::io("keep what goes into", path, errno)),
            }
        }
        Ok(())
    }

    /// Puts a content into the layer, under the same name.
    fn write(&self, path: &RelPath, content: &[u8]) -> Result<(), FsError> {
        let failed = |operation: &'static str| {
            let path = path.clone();
            move |source: std::io::Error| FsError::Io {
                operation,
                path,
                source,
            }
        };
        if let Some(parent) = path.parent().filter(|parent| !parent.is_root()) {
            self.dir_of_layer(&parent)?;
        }
        let (place, name) = open_parent(self.upper, path)?;
        let file = rustix::fs::openat(
            &place,
            name.as_slice(),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| FsError::io("keep what goes into", path, errno))?;
        std::fs::File::from(file)
            .write_all(content)
            .map_err(failed("keep what goes into"))
    }
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

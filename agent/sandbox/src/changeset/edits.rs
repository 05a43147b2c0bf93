//! A change set of contents that are at hand, as if a command had made them.
//!
//! What for: a tool that changes several files wants what a command gets, all
//! of them or none, also when the machine stops in between. So its edits are
//! put into a layer of the agent's own and become a change set like any other.
//!
//! It must never change anything in the directory itself.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};

use super::node::{Holds, Node, Tree, Xattrs};
use super::{Change, ChangeSet, Layer, What, renames};
use crate::digest::sha256;
use crate::dircap::open::{Links, open_beneath, open_parent};
use crate::dircap::{DirCap, FsError, Kind};

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
    /// A file is to have another name.
    Rename {
        /// The old name.
        from: RelPath,
        /// The new one, where nothing may be yet.
        to: RelPath,
        /// What it holds.
        content: Vec<u8>,
    },
}

/// What is being collected.
struct Made<'a> {
    lower: BorrowedFd<'a>,
    upper: BorrowedFd<'a>,
    before: Tree,
    after: Tree,
    created: BTreeMap<RelPath, What>,
    changed: Vec<Change>,
}

impl ChangeSet {
    /// The change set of these edits of `dir`; their contents go into `upper`,
    /// an empty directory of the agent's own.
    pub(crate) fn of_edits(dir: &DirCap, upper: OwnedFd, edits: &[Edit]) -> Result<Self, FsError> {
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
        };
        for edit in edits {
            made.take(edit)?;
        }
        let Made {
            before,
            after,
            created,
            changed,
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
            overtaken: None,
            before,
            after,
            unchanged: BTreeMap::new(),
            layer: Layer::Overlay,
            upper,
            lower,
            prefix: dir.prefix().clone(),
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
            Edit::Rename { from, to, content } => {
                let old = self.remove(from, sha256(content))?;
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
        self.changed.push(Change {
            path: path.clone(),
            what: What::DeletedFile {
                base: node.digest(),
            },
        });
        self.before.insert(path.clone(), node.clone());
        Ok(node)
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
        let mut above = path.parent();
        while let Some(dir) = above.filter(|dir| !dir.is_root()) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            match open_beneath(self.lower, &dir, flags, Links::Refuse) {
                Ok(_) => break,
                Err(FsError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            above = dir.parent();
            missing.push(dir);
        }
        for dir in missing.into_iter().rev() {
            self.created
                .insert(dir.clone(), What::CreatedDir { mode: DIR_MODE });
            self.after.insert(
                dir,
                Node {
                    kind: Kind::Dir,
                    mode: DIR_MODE,
                    bytes: 0,
                    holds: Holds::Names,
                    xattrs: Xattrs::new(),
                },
            );
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
        let mut above = Vec::new();
        let mut dir = path.parent();
        while let Some(parent) = dir.filter(|parent| !parent.is_root()) {
            dir = parent.parent();
            above.push(parent);
        }
        for parent in above.into_iter().rev() {
            let (place, name) = open_parent(self.upper, &parent)?;
            match rustix::fs::mkdirat(&place, name.as_slice(), Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(errno) => return Err(FsError::io("keep what goes into", path, errno)),
            }
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

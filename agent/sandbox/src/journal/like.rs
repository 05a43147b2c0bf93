//! What something that is staged has from the place it will take: whose it is, and whom it
//! lets in beside what its mode says.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::{FileType, Gid, Stat, Uid};

use crate::changeset::node::{ACCESS_LISTS, Node, Xattrs, all_xattrs, owner_reads};
use crate::changeset::owners::Owners;
use crate::dircap::access_lists::{give_list, list_of};
use crate::dircap::open::{open_parent, stat_name};
use crate::dircap::{FsError, Kind};

/// Attributes of the system that a new version of a file does not inherit:
/// rights that were given to the old content.
const NOT_INHERITED: &[&[u8]] = &[b"security.capability", b"security.ima", b"security.evm"];

/// What a new thing has from the place it will take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Like {
    /// Owner and group, where they are to be others than the agent's.
    pub owner: Option<u32>,
    pub group: Option<u32>,
    /// Attributes of the system on the file before.
    pub xattrs: Xattrs,
    /// Its access list.
    pub list: Option<Vec<u8>>,
    /// For new names: how it is read from the source that it is somebody else's still.
    pub owners: Option<Owners>,
    /// Each belongs to whom its source does, and lets in whom that does, whatever is said
    /// above: what is kept, and what comes back, may be of several people.
    pub is_as_source: bool,
}

impl Like {
    /// As the version under this name, or, for a new name, as the directory it
    /// comes into says.
    pub(crate) fn at(
        root: BorrowedFd<'_>,
        path: &RelPath,
        owners: Option<&Owners>,
    ) -> Result<Self, FsError> {
        let (parent, name) = open_parent(root, path)?;
        let above = rustix::fs::fstat(&parent).map_err(|errno| FsError::io("stat", path, errno))?;
        let is_root = rustix::process::geteuid().is_root();
        let Some(old) = stat_name(parent.as_fd(), &name, path)? else {
            let top = rustix::fs::fstat(root).map_err(|errno| FsError::io("stat", path, errno))?;
            return Ok(Self {
                // The command ran as the owner of the directory it was shown.
                owner: is_root.then_some(top.st_uid),
                group: if above.st_mode & 0o2000 != 0 {
                    Some(above.st_gid)
                } else {
                    is_root.then_some(top.st_gid)
                },
                owners: owners.cloned(),
                ..Self::default()
            });
        };
        let mut xattrs = Xattrs::new();
        if owner_reads(&old)
            && let Ok(file) = crate::dircap::open_plain(&parent, &name)
        {
            xattrs = all_xattrs(file.as_fd()).unwrap_or_default();
            xattrs.retain(|name, _| {
                name.starts_with(b"security.") && !NOT_INHERITED.contains(&name.as_slice())
            });
        }
        let list = match FileType::from_raw_mode(old.st_mode) {
            FileType::RegularFile => list_of(&parent, &name)
                .map_err(|errno| FsError::io("read the access list of", path, errno))?,
            _ => None,
        };
        Ok(Self {
            owner: Some(old.st_uid),
            group: Some(old.st_gid),
            xattrs,
            list,
            owners: None,
            is_as_source: false,
        })
    }

    /// Whose the new thing is to be.
    pub(super) fn ids(&self, source: &Stat) -> (Option<Uid>, Option<Gid>) {
        let (owner, group) = if self.is_as_source {
            (Some(source.st_uid), Some(source.st_gid))
        } else {
            let owners = self.owners.as_ref();
            (
                owners.and_then(|owners| owners.user(source)).or(self.owner),
                owners
                    .and_then(|owners| owners.group(source))
                    .or(self.group),
            )
        };
        (owner.map(Uid::from_raw), group.map(Gid::from_raw))
    }

    /// For what is kept under this name, or comes back from there.
    pub(crate) fn kept(root: BorrowedFd<'_>, path: &RelPath) -> Self {
        Self {
            is_as_source: true,
            ..Self::at(root, path, None).unwrap_or_default()
        }
    }

    /// Gives a staged thing its attributes, before its mode. Those of the user must be there,
    /// and the access list of what it takes the place of; others of the system are kept where
    /// the system lets us.
    ///
    /// What is kept, or comes back, has the lists of its source. Where it cannot have them,
    /// its mode, which says with a list what that grants at most, would let in others
    /// than the list: it is its owner's alone then.
    pub(super) fn give_xattrs(
        &self,
        file: BorrowedFd<'_>,
        node: &mut Node,
        is_top: bool,
    ) -> io::Result<()> {
        let none = rustix::fs::XattrFlags::empty();
        let set = |name: &[u8], value: &[u8]| rustix::fs::fsetxattr(file, name, value, none);
        let is_list = |name: &[u8]| name.starts_with(ACCESS_LISTS);
        for (name, value) in &self.xattrs {
            let _kept = set(name, value);
        }
        if let Some(list) = &self.list
            && (is_top && node.kind == Kind::File && !self.is_as_source)
        {
            give_list(file, Some(list))?;
        }
        let mut are_given = true;
        for (name, value) in &node.xattrs {
            match is_list(name) {
                true if self.is_as_source => are_given &= set(name, value).is_ok(),
                true => {}
                false => set(name, value)?,
            }
        }
        if !are_given {
            node.xattrs.retain(|name, _| !is_list(name));
            node.mode &= !0o077;
        }
        Ok(())
    }

    /// Root's files stay those of others; an ordinary user cannot give any away,
    /// and theirs are their own, as with any editor.
    pub(super) fn keep_owner(&self, file: BorrowedFd<'_>, source: &Stat) {
        let (owner, group) = self.ids(source);
        if rustix::fs::fchown(file, owner, group).is_err() {
            let _kept = rustix::fs::fchown(file, None, group);
        }
    }
}

//! Where links lead that spell out a whole path, or climb out and come back in.
//!
//! The kernel takes such a link for a way out, also where it comes back below the root.
//! Here it is followed by name, link by link. What comes out is a name below the root and
//! nothing else: it is not opened here, and whoever opens it lets no link be on the way.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::io::Errno;

use super::FsError;
use super::open::open_parent;

/// Links on one way, as the kernel counts them.
const LINKS_MAX: usize = 40;

/// What becomes of a way on which something is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It leads nowhere.
    IsAnError,
    /// The rest of it are names of what is to be made.
    IsToBeMade,
}

/// The place `path` leads to, below `root`, which is what the kernel calls the directory.
pub(super) fn followed(
    dir: BorrowedFd<'_>,
    root: &[u8],
    path: &RelPath,
    missing: Missing,
) -> Result<RelPath, FsError> {
    let outside = || FsError::denied(DenialCode::OutsideRoot, path);
    let root = parts(root);
    let mut way: VecDeque<Vec<u8>> = parts(path.as_bytes()).into();
    // Where the way has come to: no part of it is a link.
    let mut at = root.clone();
    let mut links = 0;
    while let Some(part) = way.pop_front() {
        if part == b".." {
            at.pop();
            continue;
        }
        at.push(part);
        if at.len() <= root.len() {
            // Above, only the way to the root is known to be without links.
            if root.starts_with(&at) {
                continue;
            }
            return Err(outside());
        }
        let here = below(&root, &at, path)?.ok_or_else(outside)?;
        let target = match link_at(dir, &here) {
            Err(FsError::Io { source, .. })
                if missing == Missing::IsToBeMade && source.kind() == ErrorKind::NotFound =>
            {
                // Nothing below it can be a link, and nothing is above what is not there.
                if way.iter().any(|part| part == b"..") {
                    return Err(outside());
                }
                at.extend(way);
                break;
            }
            target => target?,
        };
        let Some(target) = target else {
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return Err(FsError::io("open", path, Errno::LOOP));
        }
        at.pop();
        if target.starts_with(b"/") {
            at.clear();
        }
        for part in parts(&target).into_iter().rev() {
            way.push_front(part);
        }
    }
    below(&root, &at, path)?.ok_or_else(outside)
}

/// The parts of a path that name something, and those that go up.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let named = path.split(|byte| *byte == b'/');
    let named = named.filter(|part| !part.is_empty() && *part != b".");
    named.map(<[u8]>::to_vec).collect()
}

/// The way from the root on; `None` if it is none.
fn below(root: &[Vec<u8>], at: &[Vec<u8>], path: &RelPath) -> Result<Option<RelPath>, FsError> {
    match at.strip_prefix(root) {
        None => Ok(None),
        Some([]) => Ok(Some(RelPath::root())),
        Some(rest) => RelPath::parse(&rest.join(&b'/'))
            .map(Some)
            .map_err(|error| FsError::denied(error.code(), path)),
    }
}

/// Where a link leads; `None` if there is no link. What lies above is none.
pub(super) fn link_at(dir: BorrowedFd<'_>, path: &RelPath) -> Result<Option<Vec<u8>>, FsError> {
    let (parent, name) = open_parent(dir, path)?;
    match rustix::fs::readlinkat(parent.as_fd(), name, Vec::new()) {
        Ok(target) => Ok(Some(target.into_bytes())),
        Err(Errno::INVAL) => Ok(None),
        Err(errno) => Err(FsError::io("open", path, errno)),
    }
}

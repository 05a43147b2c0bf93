//! What of a thing does not count when it is compared with what a commit left there.
//!
//! What for: who looks at their own repository has git write its index anew, and who runs
//! their own tests fills caches. Neither is a change of what a commit brought, so neither
//! keeps it from being taken back. What lies there goes into the journal with the rest.
//!
//! What counts of a thing is one digest, kept beside the plan: of everything, but without
//! what lies in caches, and with what a file says in place of what it holds, where a part
//! of that is notes. It must never let anything pass that somebody would miss, so whatever
//! cannot be told counts whole.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::BorrowedFd;

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};

use super::entry::Entry;
use super::plan::DIGEST_BYTES;
use super::{JournalError, io_error};
use crate::changeset::node::{Fingerprint, Holds, Tree, fingerprint};
use crate::digest::sha256;
use crate::dircap::open::open_parent;
use crate::dircap::{Kind, read_plain};
use crate::wire::{Reader, WireError, Writer};

/// The file it is kept in.
const FILE: &str = "counts";
/// The first bytes of it.
const MAGIC: &[u8] = b"hermitcrab counts 1\n";
/// A longer one is none.
const BYTES_MAX: usize = 64 << 20;
/// The longest file that is looked into.
const LOOKED_INTO_MAX: usize = 64 << 20;

/// Who knows what of files is there only besides.
pub trait Besides: fmt::Debug + Send + Sync {
    /// Whether this name in a directory of changes is one that holds, or lies in one that
    /// holds, only what programs can make again.
    fn is_cached(&self, path: &RelPath) -> bool;

    /// Whether a file of this name may hold notes beside what it says.
    fn has_notes(&self, path: &RelPath) -> bool;

    /// What such a file says without its notes; `None` in doubt.
    fn says(&self, content: &[u8]) -> Option<Digest>;
}

/// For whom everything counts.
#[derive(Debug)]
pub(super) struct Nothing;

impl Besides for Nothing {
    fn is_cached(&self, _: &RelPath) -> bool {
        false
    }

    fn has_notes(&self, _: &RelPath) -> bool {
        false
    }

    fn says(&self, _: &[u8]) -> Option<Digest> {
        None
    }
}

/// What counts of what the steps of a plan brought, by their number.
pub(super) type Counts = BTreeMap<usize, Fingerprint>;

/// What counts of a tree that lies under a name in `dir`, and is for `path`. `None` where
/// that is everything, whatever may come.
pub(super) fn counting(
    besides: &dyn Besides,
    path: &RelPath,
    tree: &Tree,
    (dir, name): (BorrowedFd<'_>, &RelPath),
) -> Option<Fingerprint> {
    let top = tree.get(&RelPath::root())?;
    let mut is_all = top.kind != Kind::Dir && !besides.is_cached(path);
    let mut counting = Tree::new();
    for (below, node) in tree {
        let place = path.join(below).ok()?;
        if besides.is_cached(&place) {
            continue;
        }
        let mut node = node.clone();
        if matches!(node.holds, Holds::Content(_)) && besides.has_notes(&place) {
            let read = || {
                let (parent, name) = open_parent(dir, &name.join(below).ok()?).ok()?;
                let content = read_plain(&parent, &name, LOOKED_INTO_MAX).ok()?;
                // What is compared is the version that the tree is of.
                (node.holds == Holds::Content(sha256(&content))).then_some(content)
            };
            if let Some(says) = read().and_then(|content| besides.says(&content)) {
                node.holds = Holds::Content(says);
                node.bytes = 0;
                is_all = false;
            }
        }
        counting.insert(below.clone(), node);
    }
    (!is_all).then(|| fingerprint(&counting))
}

impl Entry<'_> {
    /// Keeps what counts. It need not outlive a loss of power: without it everything does.
    pub(super) fn write_counts(&self, counts: &Counts) -> Result<(), JournalError> {
        if counts.is_empty() {
            return Ok(());
        }
        let mut w = Writer::default();
        let counts: Vec<_> = counts.iter().collect();
        w.list(&counts, |w, (at, fingerprint)| {
            w.u64(u64::try_from(**at).unwrap_or(u64::MAX));
            w.bytes(fingerprint.0.as_bytes());
        });
        let mut bytes = MAGIC.to_vec();
        bytes.extend(w.finish());
        let digest = sha256(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        self.pass("write what counts")?;
        let file = rustix::fs::openat(
            &self.dir,
            FILE,
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| io_error("write what counts in", self.place(), errno))?;
        crate::dircap::open::write_all(&file, &bytes)
            .map_err(|source| io_error("write what counts in", self.place(), source))
    }

    /// What counts, as far as it is known for certain.
    pub(super) fn counts(&self) -> Counts {
        read_plain(&self.dir, FILE.as_bytes(), BYTES_MAX)
            .ok()
            .and_then(|bytes| decode(&bytes))
            .unwrap_or_default()
    }
}

fn decode(bytes: &[u8]) -> Option<Counts> {
    let (body, digest) = bytes.split_last_chunk::<DIGEST_BYTES>()?;
    if sha256(body) != Digest::from_bytes(*digest) {
        return None;
    }
    let mut r = Reader::new(body.strip_prefix(MAGIC)?);
    let counts = r.list(|r| {
        let at = usize::try_from(r.u64()?).map_err(|_| WireError)?;
        let bytes: [u8; 32] = r.bytes()?.try_into().map_err(|_| WireError)?;
        Ok((at, Fingerprint(Digest::from_bytes(bytes))))
    });
    let counts = counts.ok()?;
    r.finish().ok()?;
    Some(counts.into_iter().collect())
}

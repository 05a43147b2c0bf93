//! Which steps of a transaction that is half taken back are back.
//!
//! What for: what was moved, and what got another mode, has nothing staged by which it could
//! be seen later that the step was taken back. Its owner may have moved it, or given it that
//! very mode, since then, and that stands: a step that is noted here is never taken back again.
//!
//! Kept beside the plan, so that programs that know nothing of it read the plan as ever. It
//! need not outlive a loss of power, and may not be written at all: without it each step is
//! looked at once more. It must never say of a step that it is back before that is on the disk.

use std::collections::BTreeSet;

use hermitcrab_core::digest::Digest;
use rustix::fs::{Mode, OFlags};

use super::entry::Entry;
use super::plan::DIGEST_BYTES;
use super::{JournalError, io_error};
use crate::digest::sha256;
use crate::dircap::read_plain;
use crate::wire::{Reader, WireError, Writer};

/// The file it is kept in.
const FILE: &str = "back";
/// One that is still being written.
const UNFINISHED: &str = "back-unfinished";
/// The first bytes of it.
const MAGIC: &[u8] = b"hermitcrab back 1\n";
/// A longer one is none.
const BYTES_MAX: usize = 64 << 20;

impl Entry<'_> {
    /// Says that these steps, by their number, are back, and on the disk.
    pub(super) fn note_back(&self, steps: &BTreeSet<usize>) -> Result<(), JournalError> {
        let failed = |errno| io_error("note what is taken back in", self.place(), errno);
        let mut w = Writer::default();
        let steps: Vec<_> = steps.iter().collect();
        w.list(&steps, |w, at| {
            w.u64(u64::try_from(**at).unwrap_or(u64::MAX))
        });
        let mut bytes = MAGIC.to_vec();
        bytes.extend(w.finish());
        let digest = sha256(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        self.pass("note what is back")?;
        let file = rustix::fs::openat(
            &self.dir,
            UNFINISHED,
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(failed)?;
        crate::dircap::open::write_all(&file, &bytes)
            .map_err(|source| io_error("note what is taken back in", self.place(), source))?;
        rustix::fs::renameat(&self.dir, UNFINISHED, &self.dir, FILE).map_err(failed)
    }

    /// The steps that are back, as far as it is known for certain.
    pub(super) fn noted_back(&self) -> BTreeSet<usize> {
        read_plain(&self.dir, FILE.as_bytes(), BYTES_MAX)
            .ok()
            .and_then(|bytes| decode(&bytes))
            .unwrap_or_default()
    }
}

fn decode(bytes: &[u8]) -> Option<BTreeSet<usize>> {
    let (body, digest) = bytes.split_last_chunk::<DIGEST_BYTES>()?;
    if sha256(body) != Digest::from_bytes(*digest) {
        return None;
    }
    let mut r = Reader::new(body.strip_prefix(MAGIC)?);
    let steps = r.list(|r| usize::try_from(r.u64()?).map_err(|_| WireError));
    let steps = steps.ok()?;
    r.finish().ok()?;
    Some(steps.into_iter().collect())
}

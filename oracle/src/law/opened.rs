//! A session as the laws open it, with two directories.

use std::sync::LazyLock;

use hermitcrab_core::audit::{Head, Record};
use hermitcrab_core::authority::DirId;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use sha2::{Digest as _, Sha256};

/// Where the two directories of the law lie: where the session works, and one above it.
pub(super) const LOCATIONS: [&[u8]; 2] = [b"home/u/ab", b"home/u"];
/// The agent's own files, inside both.
pub(super) const PROTECTED: &[u8] = b"home/u/ab/b";

/// Handles for laws that need some; every session of these laws has the same.
static TWO_DIRS: LazyLock<Option<[DirId; 2]>> =
    LazyLock::new(|| open(Asking::Refuse).map(|(_, _, dirs)| dirs));

/// See [`TWO_DIRS`].
pub(super) fn two_dirs() -> Option<[DirId; 2]> {
    *TWO_DIRS
}

/// One that is open at the first moment, its first records, and the directories.
pub(super) fn open(asking: Asking) -> Option<(Session, Vec<Record>, [DirId; 2])> {
    let (mut session, records) = Session::open(SessionConfig {
        id: 7,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: vec![RelPath::parse(PROTECTED).ok()?],
        asking,
        ledger: Head::EMPTY,
        opened_at: Instant::from_millis(0),
    });
    let [first, second] =
        LOCATIONS.map(|location| session.add_dir(RelPath::parse(location).ok()?).ok());
    Some((session, records, [first?, second?]))
}

pub(super) fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

//! The session machine against a book kept beside it.
//!
//! The book is simple on purpose: it writes down every grant, its limits and
//! its parent, and judges each permit by that alone.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use hermitcrab_core::audit::{Head, Record};
use hermitcrab_core::authority::DirId;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use sha2::{Digest as _, Sha256};

use self::book::Book;
use self::events::event;
use super::Verdict;

mod book;
mod events;

const EVENTS_MAX: usize = 48;
/// Where the two directories of the law lie.
const LOCATIONS: [&[u8]; 2] = [b"home/u", b"home/u/ab"];
/// The agent's own files, inside the second directory.
const PROTECTED: &[u8] = b"home/u/ab/b";

/// Feed a session events made from `bytes` and check each turn against the book.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let asking = if bytes.ratio(3, 4).unwrap_or(true) {
        Asking::Prompt
    } else {
        Asking::Refuse
    };
    let Some((mut session, records, dirs)) = open(asking) else {
        return Err("the session does not open".to_owned());
    };
    let mut book = Book::new();
    book.records(&records)?;
    book.learn(&session)?;
    let mut at = 0_u64;
    for _ in 0..EVENTS_MAX {
        if bytes.is_empty() {
            break;
        }
        at += match bytes.int_in_range(0..=7_u8).unwrap_or(0) {
            0..=4 => 0,
            5 => 1,
            6 => 60_000,
            _ => 3_600_000,
        };
        let Some((event, kind)) = event(&mut bytes, &book, dirs) else {
            continue;
        };
        book.turn(&mut session, Instant::from_millis(at), event, &kind)?;
    }
    Ok(())
}

/// Handles for laws that need some; every session of these laws has the same.
static TWO_DIRS: LazyLock<Option<[DirId; 2]>> =
    LazyLock::new(|| open(Asking::Refuse).map(|(_, _, dirs)| dirs));

/// See [`TWO_DIRS`].
pub(super) fn two_dirs() -> Option<[DirId; 2]> {
    *TWO_DIRS
}

fn open(asking: Asking) -> Option<(Session, Vec<Record>, [DirId; 2])> {
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

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

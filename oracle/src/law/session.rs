//! The session machine against a book kept beside it.
//!
//! The book is simple on purpose: it writes down every grant, its limits and
//! its parent, and judges each permit by that alone.

use arbitrary::Unstructured;
use hermitcrab_core::session::Asking;
use hermitcrab_core::time::Instant;

use self::book::Book;
use self::events::event;
use super::opened::open;
use super::{Verdict, steps};

mod book;
mod events;

const EVENTS_MAX: usize = 48;
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
    let mut turns = 0;
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
        turns += 1;
    }
    steps::add(turns);
    Ok(())
}

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

#[cfg(test)]
mod tests {
    use hermitcrab_core::session::Event;

    use super::*;

    /// A grant, a child with one derived from it, a use by the child, and the end of the first.
    const REVOKED: &[u8] = include_bytes!("../../../fuzz/seeds/session/revoked-under-a-child");

    /// What each event of an input is, and how many calls had permits and were stopped by then.
    fn told(bytes: &[u8]) -> Vec<(&'static str, usize, usize)> {
        let mut bytes = Unstructured::new(bytes);
        assert!(bytes.ratio(3, 4).unwrap(), "whoever is asked answers");
        let (mut session, records, dirs) = open(Asking::Prompt).unwrap();
        let mut book = Book::new();
        book.records(&records).unwrap();
        book.learn(&session).unwrap();
        let mut all = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(bytes.int_in_range(0..=7_u8).unwrap(), 0, "no time passes");
            let (event, kind) = event(&mut bytes, &book, dirs).unwrap();
            let name = match event {
                Event::Grant(_) => "grant",
                Event::Spawn { .. } => "spawn",
                Event::Call(_) => "call",
                Event::Revoke(_) => "revoke",
                other => panic!("{other:?}"),
            };
            let at = Instant::from_millis(0);
            book.turn(&mut session, at, event, &kind).unwrap();
            all.push((name, book.running.len(), book.stopped.len()));
        }
        all
    }

    /// The use of a grant looks at those it came from as well, so that one spared is no use:
    /// only what runs with it at that moment tells.
    #[test]
    fn a_seed_revokes_what_a_call_of_a_child_runs_with() {
        assert_eq!(
            told(REVOKED),
            [
                ("grant", 0, 0),
                ("spawn", 0, 0),
                ("call", 1, 0),
                ("revoke", 1, 1)
            ]
        );
        check(REVOKED).unwrap();
    }

    /// Whatever happens holds, and further looks by a yes are among it: some permitted, some not.
    #[test]
    fn whatever_happens_holds_and_further_looks_are_among_it() {
        let (mut permitted, mut refused) = (0_u32, 0_u32);
        for seed in 0..3_000_u64 {
            let mut state = seed;
            let random = std::iter::repeat_with(|| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            });
            let random: Vec<u8> = random.take(1_200).collect();
            check(&random).unwrap();
            let mut bytes = Unstructured::new(&random);
            let (mut session, records, dirs) = open(Asking::Prompt).unwrap();
            let mut book = Book::new();
            book.records(&records).unwrap();
            book.learn(&session).unwrap();
            while !bytes.is_empty() {
                let Some((event, kind)) = event(&mut bytes, &book, dirs) else {
                    continue;
                };
                let allowed = match &event {
                    Event::LooksFurther { call, actions } if !actions.is_empty() => {
                        Some(session.may_look_further(*call, actions))
                    }
                    _ => None,
                };
                permitted += u32::from(allowed == Some(true));
                refused += u32::from(allowed == Some(false));
                let at = Instant::from_millis(0);
                book.turn(&mut session, at, event, &kind).unwrap();
            }
        }
        assert!(permitted > 20 && refused > 20, "{permitted} {refused}");
    }
}

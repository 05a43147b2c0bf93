//! How long what was displaced is kept: bounded by number, size and age.
//!
//! The newest commit is always kept, whatever its size. Those of one command count as
//! one: what it makes while it runs is carried over piece by piece, and is not to push
//! everything else out.

use std::collections::{BTreeMap, BTreeSet};

use super::brief::Brief;
use super::entry::{Entry, State};
use super::{Journal, JournalError};

/// Commits kept at most, those with the same note counted once.
pub const ENTRIES_MAX: usize = 200;
/// Commits kept at most, whatever their notes.
const PIECES_MAX: usize = 500;
/// Bytes their displaced files may have together.
pub const BYTES_MAX: u64 = 1 << 30;
/// Bytes those with the same note may have together: half of it.
const OWN_BYTES_MAX: u64 = BYTES_MAX / 2;
/// Age in seconds: 30 days.
pub const AGE_MAX: u64 = 30 * 24 * 60 * 60;

/// Removes what is too much, oldest first; `newest` stays.
pub(super) fn prune(journal: &Journal, newest: u64) -> Result<(), JournalError> {
    let now = crate::ambient::seconds_since_1970();
    let (mut kept, mut facts) = (Vec::new(), Vec::new());
    for number in journal.numbers()? {
        let entry = Entry::open(journal, number)?;
        let state = entry.state()?;
        if let (Some(State::Committed | State::Stuck), Ok(Some(brief))) = (state, entry.brief()) {
            facts.push((number, Fact::of(&brief)));
            kept.push(entry);
        }
    }
    let gone = too_many(&facts, now);
    for entry in kept {
        if entry.number != newest && gone.contains(&entry.number) {
            entry.remove()?;
        }
    }
    Ok(())
}

/// What counts of a commit.
#[derive(Clone, Debug)]
struct Fact {
    made_at: u64,
    bytes: u64,
    note: Vec<u8>,
}

impl Fact {
    fn of(brief: &Brief) -> Self {
        Self {
            made_at: brief.made_at,
            bytes: brief.bytes_before,
            note: brief.note.clone(),
        }
    }
}

/// The numbers of those that go: of what is too much of one command its own oldest, then
/// the oldest of all.
fn too_many(kept: &[(u64, Fact)], now: u64) -> BTreeSet<u64> {
    let mut bytes: BTreeMap<&[u8], u64> = BTreeMap::new();
    let (mut gone, mut rest) = (BTreeSet::new(), Vec::new());
    for (number, fact) in kept.iter().rev() {
        let before = bytes.get(fact.note.as_slice()).copied();
        let sum = before.unwrap_or(0).saturating_add(fact.bytes);
        if before.is_some() && sum > OWN_BYTES_MAX {
            gone.insert(*number);
            continue;
        }
        bytes.insert(&fact.note, sum);
        rest.push((*number, fact.clone()));
    }
    rest.reverse();
    let facts: Vec<Fact> = rest.iter().map(|(_, fact)| fact.clone()).collect();
    gone.extend(
        rest.iter()
            .take(surplus(&facts, now))
            .map(|(number, _)| number),
    );
    gone
}

/// How many of these, oldest first, are too many.
fn surplus(kept: &[Fact], now: u64) -> usize {
    let (mut bytes, mut notes) = (0_u64, BTreeSet::new());
    for (count, fact) in kept.iter().rev().enumerate() {
        bytes = bytes.saturating_add(fact.bytes);
        notes.insert(&fact.note);
        let many = notes.len() > ENTRIES_MAX || count >= PIECES_MAX;
        let old = now.saturating_sub(fact.made_at) > AGE_MAX;
        if count > 0 && (many || bytes > BYTES_MAX || old) {
            return kept.len().saturating_sub(count);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::{
        AGE_MAX, BYTES_MAX, ENTRIES_MAX, Fact, OWN_BYTES_MAX, PIECES_MAX, surplus, too_many,
    };

    fn noted(note: usize, (made_at, bytes): (u64, u64)) -> Fact {
        Fact {
            made_at,
            bytes,
            note: note.to_string().into_bytes(),
        }
    }

    #[test]
    fn the_oldest_go_by_number_size_and_age_and_the_newest_stays() {
        let now = 10 * AGE_MAX;
        let check = |kept: &[(u64, u64)], expected: usize| {
            let kept: Vec<Fact> = (0..).zip(kept).map(|(n, fact)| noted(n, *fact)).collect();
            assert_eq!(surplus(&kept, now), expected, "{} kept", kept.len());
        };
        check(&[], 0);
        check(&[(now, 1); ENTRIES_MAX], 0);
        check(&[(now, 1); ENTRIES_MAX + 3], 3);
        check(&[(now, BYTES_MAX), (now, BYTES_MAX), (now, 1)], 2);
        check(&[(now, BYTES_MAX - 1), (now, 1)], 0);
        check(
            &[(now - AGE_MAX - 1, 1), (now - AGE_MAX - 1, 1), (now, 1)],
            2,
        );
        check(&[(0, u64::MAX)], 0);
    }

    #[test]
    fn pieces_of_one_command_push_no_other_commit_out() {
        let now = 10 * AGE_MAX;
        // Every other one is of the command that runs.
        let kept = |others: usize| {
            let pairs = (1..=others).flat_map(|other| [noted(0, (now, 1)), noted(other, (now, 1))]);
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(surplus(&kept(ENTRIES_MAX - 1), now), 0);
        assert_eq!(surplus(&kept(ENTRIES_MAX), now), 2);
        assert_eq!(surplus(&vec![noted(0, (now, 1)); PIECES_MAX + 2], now), 2);
        // A log that grows is displaced again and again.
        let piece = noted(0, (now, OWN_BYTES_MAX / 4));
        let mut kept = vec![noted(1, (now, 1)), noted(2, (now, OWN_BYTES_MAX - 1))];
        kept.extend(vec![piece; 9]);
        let kept: Vec<(u64, Fact)> = (0..).zip(kept).collect();
        let gone: Vec<u64> = too_many(&kept, now).into_iter().collect();
        assert_eq!(gone, [2, 3, 4, 5, 6]);
    }
}

//! How long what was displaced is kept: bounded by number, size and age.
//!
//! The newest commit is always kept, whatever its size.

use super::entry::{Entry, State};
use super::{Journal, JournalError};

/// Commits kept at most.
pub const ENTRIES_MAX: usize = 50;
/// Bytes their displaced files may have together.
pub const BYTES_MAX: u64 = 1 << 30;
/// Age in seconds: 30 days.
pub const AGE_MAX: u64 = 30 * 24 * 60 * 60;

/// Removes what is too much, oldest first; `newest` stays.
pub(super) fn prune(journal: &Journal, newest: u64) -> Result<(), JournalError> {
    let now = crate::ambient::seconds_since_1970();
    let mut kept = Vec::new();
    for number in journal.numbers()? {
        let entry = Entry::open(journal, number)?;
        let state = entry.state()?;
        if let (Some(State::Committed | State::Stuck), Ok(Some(plan))) = (state, entry.plan()) {
            kept.push((entry, plan.made_at, plan.bytes_before));
        }
    }
    let facts: Vec<(u64, u64)> = kept.iter().map(|(_, at, bytes)| (*at, *bytes)).collect();
    let surplus = surplus(&facts, now);
    for (entry, ..) in kept.into_iter().take(surplus) {
        if entry.number != newest {
            entry.remove()?;
        }
    }
    Ok(())
}

/// How many of these, oldest first, are too many. Each has its time and size.
fn surplus(kept: &[(u64, u64)], now: u64) -> usize {
    let mut bytes = 0_u64;
    for (count, (made_at, size)) in kept.iter().rev().enumerate() {
        bytes = bytes.saturating_add(*size);
        let old = now.saturating_sub(*made_at) > AGE_MAX;
        if count > 0 && (count >= ENTRIES_MAX || bytes > BYTES_MAX || old) {
            return kept.len().saturating_sub(count);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::{AGE_MAX, BYTES_MAX, ENTRIES_MAX, surplus};

    #[test]
    fn the_oldest_go_by_number_size_and_age_and_the_newest_stays() {
        let now = 10 * AGE_MAX;
        let check = |kept: &[(u64, u64)], expected: usize| {
            assert_eq!(surplus(kept, now), expected, "{} kept", kept.len());
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
}

//! Answers the user wants repeated: a cache, never authority.
//!
//! A remembered answer stands in for the user only where exactly the same
//! thing would be asked again: the same verb, the same place or peer, the same
//! content, with the same proof about the sandbox. Each time it makes a fresh
//! grant for that one use, which is recorded like any other. It is asked after
//! every refusal and every rule, so it can only save a question, not lift
//! anything. It can be listed and cleared.

use alloc::collections::BTreeMap;
use core::fmt;

use crate::digest::Digest;
use crate::isolation::Isolation;
use crate::limits::REMEMBERED_MAX;
use crate::outcome::{Denial, DenialCode};
use crate::standing::PortableCap;
use crate::time::Instant;

/// A remembered answer, by its number in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RememberedId(u32);

impl RememberedId {
    /// The answer with this number.
    #[must_use]
    pub const fn new(number: u32) -> RememberedId {
        RememberedId(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RememberedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "remembered{}", self.0)
    }
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    /// Yes, for one use each time.
    Yes,
    /// No.
    No,
}

impl Said {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Said::Yes => "yes",
            Said::No => "no",
        }
    }
}

/// What was asked and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The verb and what it was for.
    pub cap: PortableCap,
    /// The content it was for.
    pub digest: Digest,
    /// What was proved about the sandbox then.
    pub isolation: Isolation,
    /// What the user said.
    pub said: Said,
    /// When.
    pub at: Instant,
}

/// All remembered answers of a session.
#[derive(Debug, Default)]
pub struct Memory {
    rows: BTreeMap<RememberedId, Remembered>,
    made: u32,
}

impl Memory {
    /// Every remembered answer, oldest first.
    pub fn list(&self) -> impl Iterator<Item = (RememberedId, &Remembered)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// What the user said about exactly this, the latest word first.
    #[must_use]
    pub fn recall(&self, cap: &PortableCap, digest: Digest, isolation: Isolation) -> Option<Said> {
        self.rows
            .values()
            .rev()
            .find(|row| row.cap == *cap && row.digest == digest && row.isolation == isolation)
            .map(|row| row.said)
    }

    /// Remembers an answer instead of any earlier one about the same.
    ///
    /// # Errors
    /// `limit-reached`.
    pub(crate) fn remember(&mut self, row: Remembered) -> Result<RememberedId, Denial> {
        self.rows.retain(|_, old| {
            old.cap != row.cap || old.digest != row.digest || old.isolation != row.isolation
        });
        if self.rows.len() >= REMEMBERED_MAX {
            return Err(Denial::new(DenialCode::LimitReached, "remembered answers"));
        }
        let id = RememberedId(self.made);
        self.made = self.made.saturating_add(1);
        self.rows.insert(id, row);
        Ok(id)
    }

    /// Forgets one answer. Says whether there was one.
    pub(crate) fn forget(&mut self, id: RememberedId) -> bool {
        self.rows.remove(&id).is_some()
    }

    /// Forgets all answers. Says how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        core::mem::take(&mut self.rows).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{Name, Verb};
    use crate::standing::PortableObject;

    fn row(secret: &str, digest: u8, isolation: Isolation, said: Said) -> Remembered {
        let object = PortableObject::Secret(Name::parse(secret).unwrap());
        Remembered {
            cap: PortableCap::new(Verb::SecretUse, object).unwrap(),
            digest: Digest::from_bytes([digest; 32]),
            isolation,
            said,
            at: Instant::BOOT,
        }
    }

    #[test]
    fn an_answer_replaces_an_earlier_one_about_exactly_the_same_and_no_other() {
        let mut memory = Memory::default();
        let rows = [
            row("a", 1, Isolation::Isolated, Said::Yes),
            row("b", 1, Isolation::Isolated, Said::Yes),
            row("a", 2, Isolation::Isolated, Said::Yes),
            row("a", 1, Isolation::Unknown, Said::Yes),
        ];
        for row in &rows {
            memory.remember(row.clone()).unwrap();
        }
        assert_eq!(memory.list().count(), rows.len());
        let again = row("a", 1, Isolation::Isolated, Said::No);
        memory.remember(again.clone()).unwrap();
        assert_eq!(memory.list().count(), rows.len());
        for (row, said) in rows.iter().zip([Said::No, Said::Yes, Said::Yes, Said::Yes]) {
            let recalled = memory.recall(&row.cap, row.digest, row.isolation);
            assert_eq!(recalled, Some(said));
        }
    }
}

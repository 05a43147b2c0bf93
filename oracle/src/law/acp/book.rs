//! What is on the disk and what may become of it, kept beside the server.
//!
//! The book is simple on purpose. It knows each file as the user knows it. A
//! file may change in a turn only to what a question showed whole and an offered
//! yes answered, or, where the user accepted edits beforehand, to what the turn
//! was to write there.

use std::collections::{BTreeMap, BTreeSet};

use super::ground::Text;

/// Names that are asked about each time, whatever was accepted.
const SENSITIVE: [&str; 2] = [".env", ".git/config"];

/// One turn of one session.
#[derive(Default)]
pub struct Turn {
    pub session: String,
    /// What no other turn writes.
    pub token: String,
    /// Nothing of it may land.
    pub is_dry: bool,
    /// A cancel went out: what was approved may land or not.
    pub is_cancelled: bool,
    /// The user rejected and stopped.
    pub is_stopped: bool,
    /// Changes that were shown and approved, in their order.
    pub approved: Vec<(String, Text)>,
}

/// Every file as it should be.
#[derive(Default)]
pub struct Book {
    pub files: BTreeMap<String, String>,
    /// Sessions in which edits were accepted beforehand.
    pub accepting: BTreeSet<String>,
    /// Paths that a session's user allowed for longer.
    pub lasting: BTreeSet<(String, String)>,
}

impl Book {
    pub fn text(&self, name: &str) -> Text {
        self.files.get(name).cloned()
    }

    /// The session is over: what was allowed in it has ended.
    pub fn ended(&mut self, session: &str) {
        self.accepting.remove(session);
        self.lasting.retain(|(of, _)| of != session);
    }

    fn is_accepted(&self, turn: &Turn, name: &str) -> bool {
        !SENSITIVE.contains(&name)
            && (self.accepting.contains(&turn.session)
                || self
                    .lasting
                    .contains(&(turn.session.clone(), name.to_owned())))
    }

    /// Whatever changed in a turn was allowed to, and what was approved is there;
    /// how many files changed.
    pub fn settle(&mut self, turn: &Turn, disk: BTreeMap<String, String>) -> Result<u64, String> {
        let mut changed = 0;
        let names: BTreeSet<&String> = self.files.keys().chain(disk.keys()).collect();
        for name in names {
            let (before, after) = (self.files.get(name), disk.get(name));
            if before == after {
                continue;
            }
            let is_approved = turn
                .approved
                .iter()
                .any(|(of, text)| of == name && text.as_ref() == after);
            // Written in this turn, gone, or moved from another name.
            let is_of_turn = after.is_none_or(|text| {
                text.contains(&turn.token) || self.files.values().any(|known| known == text)
            });
            let is_licensed = is_approved || (self.is_accepted(turn, name) && is_of_turn);
            changed += 1;
            if turn.is_dry || !is_licensed {
                return Err(format!(
                    "`{name}` became {after:?} and was {before:?}, without a yes to that"
                ));
            }
        }
        if !turn.is_cancelled {
            let last: BTreeMap<&String, &Text> = turn
                .approved
                .iter()
                .map(|(name, text)| (name, text))
                .collect();
            for (name, text) in last {
                let is_there = disk.get(name) == text.as_ref();
                if !is_there && !self.is_accepted(turn, name) {
                    return Err(format!("`{name}` was approved as {text:?} and is not that"));
                }
            }
        }
        self.files = disk;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Book, Turn};

    fn disk(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pair = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        files.iter().map(pair).collect()
    }

    fn turn(approved: &[(&str, &str)]) -> Turn {
        Turn {
            session: "s".into(),
            token: "t1".into(),
            approved: approved
                .iter()
                .map(|(name, text)| ((*name).into(), Some((*text).into())))
                .collect(),
            ..Turn::default()
        }
    }

    #[test]
    fn a_change_without_a_yes_to_it_is_noticed() {
        let mut book = Book {
            files: disk(&[("a", "1"), (".env", "1")]),
            ..Book::default()
        };
        let changed = disk(&[("a", "t1"), (".env", "1")]);
        assert!(book.settle(&turn(&[]), changed.clone()).is_err());
        assert!(
            book.settle(&turn(&[("a", "other")]), changed.clone())
                .is_err()
        );
        assert!(book.settle(&turn(&[("b", "t1")]), changed.clone()).is_err());
        let dry = Turn {
            is_dry: true,
            ..turn(&[("a", "t1")])
        };
        assert!(book.settle(&dry, changed.clone()).is_err());
        assert_eq!(book.settle(&turn(&[("a", "t1")]), changed), Ok(1));
        // What was approved and did not land is noticed as well, but for a cancel.
        let same = book.files.clone();
        assert!(book.settle(&turn(&[("a", "2")]), same.clone()).is_err());
        let cancelled = Turn {
            is_cancelled: true,
            ..turn(&[("a", "2")])
        };
        assert_eq!(book.settle(&cancelled, same), Ok(0));
    }

    #[test]
    fn what_was_accepted_beforehand_is_for_one_session_and_no_sensitive_name() {
        let mut book = Book {
            files: disk(&[("a", "1"), (".env", "1")]),
            ..Book::default()
        };
        book.accepting.insert("s".into());
        let secret = disk(&[("a", "1"), (".env", "t1")]);
        assert!(book.settle(&turn(&[]), secret).is_err());
        let other = disk(&[("a", "of another turn"), (".env", "1")]);
        assert!(book.settle(&turn(&[]), other).is_err());
        let changed = disk(&[("a", "t1"), (".env", "1")]);
        assert_eq!(book.settle(&turn(&[]), changed), Ok(1));
        book.ended("s");
        let gone = disk(&[(".env", "1")]);
        assert!(book.settle(&turn(&[]), gone).is_err());
    }
}

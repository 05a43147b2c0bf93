//! What an agent's edge remembers between its calls.
//!
//! Nothing here is authority: a working directory is a way of reading relative
//! paths, remembered variables are text, and counters only shape results.

use std::{collections::BTreeMap, path::PathBuf};

use hermitcrab_core::grant::AgentId;
use regex::Regex;

use super::{Runtime, RuntimeConfig, evidence::Evidence, oldest::Oldest, writers::Moment};

/// Where a shell left off: nowhere yet, if it is new.
#[derive(Clone, Debug, Default)]
pub struct LeftOff {
    /// Where it was.
    pub cwd: Option<PathBuf>,
    /// The variables it exported, as it wrote them.
    pub exported: Option<Vec<u8>>,
}

/// One thing that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TodoItem {
    /// What the model calls it.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: String,
}

/// One agent's memory.
#[derive(Clone, Debug)]
pub struct AgentState {
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// Whether a command has set [`AgentState::cwd`].
    pub cwd_is_from_command: bool,
    /// The variables the last command exported, as the shell wrote them.
    pub exported: Option<Vec<u8>>,
    /// Where the last command left off that its user typed.
    pub person: LeftOff,
    /// Whether a file was looked at or written, for which the compared agent uses
    /// the same shell.
    pub shell_is_used: bool,
    /// Whether a program that checked a file said something, since that was last asked.
    pub check_spoke: bool,
    /// Whether a name led somewhere else since that was asked: where it led, somebody else wrote.
    pub was_led: bool,
    /// What was read and how often.
    pub reads: ReadMemory,
    /// The pattern searched for last: a page of results is often followed by the
    /// next one.
    pub pattern: Option<(String, Regex)>,
    /// Consecutive failures to find text, by file.
    pub patch_failures: BTreeMap<String, u32>,
    /// What was proved about what it changes.
    pub evidence: Evidence,
    /// What is to do.
    pub todo: Vec<TodoItem>,
    /// Failures in a row to make room for a note, of one turn.
    pub memory_failures: u32,
}

impl AgentState {
    /// The memory of a new agent.
    #[must_use]
    pub fn new(config: &RuntimeConfig) -> Self {
        Self {
            cwd: config.workspace.clone(),
            cwd_is_from_command: false,
            exported: None,
            person: LeftOff::default(),
            shell_is_used: false,
            check_spoke: false,
            was_led: false,
            reads: ReadMemory::default(),
            pattern: None,
            patch_failures: BTreeMap::new(),
            evidence: Evidence::default(),
            todo: Vec::new(),
            memory_failures: 0,
        }
    }

    /// The memory of an agent that another one starts: it begins where that one stands, with
    /// what its commands exported, and goes its own way from there.
    pub(super) fn of_child(parent: Option<&Self>, config: &RuntimeConfig) -> Self {
        let new = Self::new(config);
        match parent {
            None => new,
            Some(parent) => Self {
                cwd: parent.cwd.clone(),
                cwd_is_from_command: parent.cwd_is_from_command,
                exported: parent.exported.clone(),
                shell_is_used: parent.shell_is_used,
                ..new
            },
        }
    }
}

impl AgentState {
    /// Takes in what a call left that ran beside others, on a copy of `was`.
    pub(super) fn take_in(&mut self, was: &Self, left: Self) {
        self.reads.take_in(left.reads);
        self.shell_is_used |= left.shell_is_used;
        self.check_spoke |= left.check_spoke;
        self.was_led |= left.was_led;
        self.evidence.take_in(&was.evidence, left.evidence);
        for path in was.patch_failures.keys() {
            if !left.patch_failures.contains_key(path) {
                self.patch_failures.remove(path);
            }
        }
        for (path, times) in left.patch_failures {
            if was.patch_failures.get(&path) != Some(&times) {
                self.patch_failures.insert(path, times);
            }
        }
    }
}

impl Runtime {
    /// This moment in the order of all reads and writes of the session's agents.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.writers.now()
    }

    /// The agent begins with new words of its user's: what it tried in vain before them is
    /// not of this turn.
    pub fn begins_turn(&mut self, agent: AgentId) {
        if let Some(state) = self.agents.get_mut(&agent) {
            state.memory_failures = 0;
        }
    }

    /// Whether results since the last time hold words of a program that checked a file.
    /// Where the program is from, and what it read besides, is the workspace's affair.
    pub fn take_checks_words(&mut self, agent: AgentId) -> bool {
        let state = self.agents.get_mut(&agent);
        state.is_some_and(|state| std::mem::take(&mut state.check_spoke))
    }

    /// Whether results since the last time may tell where a link leads, be it in a refusal.
    pub fn take_led(&mut self, agent: AgentId) -> bool {
        let state = self.agents.get_mut(&agent);
        state.is_some_and(|state| std::mem::take(&mut state.was_led))
    }

    /// The files this agent has read or written that others have written since.
    #[must_use]
    pub fn rewritten_since(&self, moment: Moment, agent: AgentId) -> Vec<String> {
        let Some(state) = self.agents.get(&agent) else {
            return Vec::new();
        };
        let mut known = self.writers.since(moment, agent);
        known.retain(|path| state.reads.files.get(path).is_some());
        known
    }

    /// Where an agent's relative paths start now.
    #[must_use]
    pub fn cwd_of(&self, agent: AgentId) -> PathBuf {
        self.agents
            .get(&agent)
            .map_or_else(|| self.config.workspace.clone(), |state| state.cwd.clone())
    }
}

/// When a file was last modified, as seen at a read.
pub type Stamp = i128;

/// A part of a file: path, first line, number of lines.
pub type Part = (String, i128, i64);

/// What was read, to notice repetition and changes from outside.
#[derive(Clone, Debug, Default)]
pub struct ReadMemory {
    last: Option<String>,
    in_a_row: u32,
    parts: Oldest<Part, Stamp, PARTS_MAX>,
    repeated: Oldest<Part, u32, PARTS_MAX>,
    files: Oldest<String, Seen, FILES_MAX>,
    /// What is noted on a copy, for the one it is a copy of.
    noted: Option<Vec<Noted>>,
}

/// One thing to remember.
#[derive(Clone, Debug)]
enum Noted {
    Repeated(Part, Option<Stamp>),
    Counted(String),
    Read(Part, Seen),
    Wrote(String, Option<Seen>),
    OtherCall,
}

/// How a file was when it was last read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// When it was last modified.
    pub stamp: Stamp,
    /// Whether all of it was read.
    pub whole: bool,
    /// When that was.
    pub at: Moment,
}

/// Parts remembered at most; those read first are forgotten.
const PARTS_MAX: usize = 1000;
/// Files remembered at most; those read or written first are forgotten.
const FILES_MAX: usize = 4096;

impl ReadMemory {
    /// Makes this the copy of a call that runs beside others: what is noted on
    /// it is noted again where it was copied from. Calls before it leave no
    /// repetition behind, being about something else.
    pub(super) fn begin_beside(&mut self, has_before: bool, writes_before: bool) {
        if has_before {
            self.last = None;
            self.in_a_row = 0;
        }
        if writes_before {
            self.repeated.clear();
        }
        self.noted = Some(Vec::new());
    }

    fn take_in(&mut self, left: Self) {
        for noted in left.noted.unwrap_or_default() {
            match noted {
                Noted::Repeated(part, stamp) => {
                    self.repetition(&part, stamp);
                }
                Noted::Counted(what) => {
                    self.count_in_a_row(what);
                }
                Noted::Read(part, seen) => self.note_read(part, seen),
                Noted::Wrote(path, seen) => self.note_write(&path, seen),
                Noted::OtherCall => self.note_other_call(),
            }
        }
    }

    fn keep(&mut self, noted: impl FnOnce() -> Noted) {
        if let Some(all) = &mut self.noted {
            all.push(noted());
        }
    }

    /// Whether this part was read before and the file is the same; counts.
    pub fn repetition(&mut self, part: &Part, stamp: Option<Stamp>) -> Option<u32> {
        self.keep(|| Noted::Repeated(part.clone(), stamp));
        let known = self.parts.get(part)?;
        if Some(*known) != stamp {
            return None;
        }
        let count = self.repeated.get(part).map_or(1, |count| count + 1);
        self.repeated.insert(part.clone(), count);
        Some(count)
    }

    /// Counts how often the same thing is asked for without anything between.
    pub fn count_in_a_row(&mut self, what: String) -> u32 {
        self.keep(|| Noted::Counted(what.clone()));
        if self.last.as_ref() == Some(&what) {
            self.in_a_row += 1;
        } else {
            self.last = Some(what);
            self.in_a_row = 1;
        }
        self.in_a_row
    }

    /// Remembers a read.
    pub(super) fn note_read(&mut self, part: Part, seen: Seen) {
        self.keep(|| Noted::Read(part.clone(), seen));
        self.repeated.remove(&part);
        self.files.insert(part.0.clone(), seen);
        self.parts.insert(part, seen.stamp);
    }

    /// Forgets the parts of a file that was written, and knows its new state.
    pub(super) fn note_write(&mut self, path: &str, seen: Option<Seen>) {
        self.keep(|| Noted::Wrote(path.to_owned(), seen));
        self.parts.retain(|part| part.0 != path);
        if let Some(seen) = seen {
            self.files.insert(path.to_owned(), seen);
        }
    }

    /// Something else than a read or a search happened.
    pub fn note_other_call(&mut self) {
        self.keep(|| Noted::OtherCall);
        self.last = None;
        self.in_a_row = 0;
        self.repeated.clear();
    }

    /// When a file was last read or written.
    pub(super) fn last_seen(&self, path: &str) -> Option<Moment> {
        self.files.get(path).map(|seen| seen.at)
    }

    /// Why writing this file now could overwrite something unseen.
    pub(super) fn staleness(&self, path: &str, stamp: Stamp) -> Option<String> {
        let seen = self.files.get(path)?;
        if seen.stamp != stamp {
            return Some(format!(
                "{path} was modified since you last read it on disk (external edit or unrecorded writer). Re-read the \
                 file before writing."
            ));
        }
        (!seen.whole).then(|| {
            format!(
                "{path} was last read with offset/limit pagination (partial view). Re-read the whole file before \
                 overwriting it."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::writers::Writers;

    #[test]
    fn of_too_much_that_was_read_the_first_is_forgotten_whatever_its_name() {
        let mut reads = ReadMemory::default();
        let seen = Seen {
            stamp: 7,
            whole: true,
            at: Writers::default().now(),
        };
        // The later one is read, the earlier its name in the alphabet.
        let part = |number: usize| (format!("/w/{:05}", 99_999 - number), 1, 500);
        for number in 0..=PARTS_MAX {
            reads.note_read(part(number), seen);
        }
        assert_eq!(reads.repetition(&part(0), Some(7)), None);
        for number in [1, PARTS_MAX] {
            assert_eq!(reads.repetition(&part(number), Some(7)), Some(1));
        }
        assert!(reads.last_seen(&part(0).0).is_some());
        for number in PARTS_MAX..FILES_MAX {
            reads.note_write(&part(number).0, Some(seen));
        }
        assert!(reads.last_seen(&part(0).0).is_some());
        reads.note_write("/w/new", Some(seen));
        assert_eq!(reads.last_seen(&part(0).0), None);
        for known in [part(1).0, part(FILES_MAX - 1).0, "/w/new".to_owned()] {
            assert!(reads.last_seen(&known).is_some(), "{known}");
        }
    }
}

//! What an agent's edge remembers between its calls.
//!
//! Nothing here is authority: a working directory is a way of reading relative
//! paths, remembered variables are text, and counters only shape results.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use hermitcrab_core::grant::AgentId;

use super::{Runtime, RuntimeConfig};
use crate::tools::todo;

/// One agent's memory.
#[derive(Clone, Debug)]
pub struct AgentState {
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// Whether a command has set [`AgentState::cwd`].
    pub cwd_is_from_command: bool,
    /// The variables the last command exported, as the shell wrote them.
    pub exported: Option<Vec<u8>>,
    /// What was read and how often.
    pub reads: ReadMemory,
    /// Consecutive failures to find text, by file.
    pub patch_failures: BTreeMap<String, u32>,
    /// What is to do.
    pub todo: Vec<todo::Item>,
    /// Failures in a row to make room for a note.
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
            reads: ReadMemory::default(),
            patch_failures: BTreeMap::new(),
            todo: Vec::new(),
            memory_failures: 0,
        }
    }
}

impl Runtime {
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
pub type Part = (String, i64, i64);

/// What was read, to notice repetition and changes from outside.
#[derive(Clone, Debug, Default)]
pub struct ReadMemory {
    last: Option<String>,
    in_a_row: u32,
    parts: BTreeMap<Part, Stamp>,
    repeated: BTreeMap<Part, u32>,
    files: BTreeMap<String, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    stamp: Stamp,
    whole: bool,
}

/// Parts remembered at most; older ones are forgotten.
const PARTS_MAX: usize = 1000;

impl ReadMemory {
    /// Whether this part was read before and the file is the same; counts.
    pub fn repetition(&mut self, part: &Part, stamp: Option<Stamp>) -> Option<u32> {
        let known = self.parts.get(part)?;
        if Some(*known) != stamp {
            return None;
        }
        let count = self.repeated.entry(part.clone()).or_default();
        *count += 1;
        Some(*count)
    }

    /// Counts how often the same thing is asked for without anything between.
    pub fn count_in_a_row(&mut self, what: String) -> u32 {
        if self.last.as_ref() == Some(&what) {
            self.in_a_row += 1;
        } else {
            self.last = Some(what);
            self.in_a_row = 1;
        }
        self.in_a_row
    }

    /// Remembers a read.
    pub fn note_read(&mut self, part: Part, stamp: Stamp, whole: bool) {
        self.repeated.remove(&part);
        self.files.insert(part.0.clone(), Seen { stamp, whole });
        self.parts.insert(part, stamp);
        while self.parts.len() > PARTS_MAX {
            self.parts.pop_first();
        }
        while self.files.len() > PARTS_MAX {
            self.files.pop_first();
        }
    }

    /// Forgets the parts of a file that was written, and knows its new state.
    pub fn note_write(&mut self, path: &str, stamp: Option<Stamp>) {
        let gone: BTreeSet<Part> = self
            .parts
            .keys()
            .filter(|part| part.0 == path)
            .cloned()
            .collect();
        for part in gone {
            self.parts.remove(&part);
        }
        if let Some(stamp) = stamp {
            self.files
                .insert(path.to_owned(), Seen { stamp, whole: true });
        }
    }

    /// Something else than a read or a search happened.
    pub fn note_other_call(&mut self) {
        self.last = None;
        self.in_a_row = 0;
        self.repeated.clear();
    }

    /// Why writing this file now could overwrite something unseen.
    #[must_use]
    pub fn staleness(&self, path: &str, stamp: Option<Stamp>) -> Option<String> {
        let (seen, stamp) = (self.files.get(path)?, stamp?);
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

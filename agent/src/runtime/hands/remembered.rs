//! What a call leaves in memory of the files it read and wrote, and what follows
//! for who writes next.

use super::{
    super::agent_state::{Part, Seen, Stamp},
    Hands,
};

impl Hands<'_> {
    /// Remembers that a part of a file was read.
    pub fn note_read(&mut self, part: Part, stamp: Stamp, whole: bool) {
        let at = self.runtime.writers.now();
        let seen = Seen { stamp, whole, at };
        self.state().reads.note_read(part, seen);
    }

    /// Remembers that a file was written, and how it is since; `None` if it is gone.
    pub fn note_write(&mut self, path: &str, stamp: Option<Stamp>) {
        let seen = stamp.map(|stamp| Seen {
            stamp,
            whole: true,
            at: self.runtime.writers.wrote(self.by, path),
        });
        self.state().reads.note_write(path, seen);
    }

    /// Remembers that a file was to be written and is as it was: the next look at a part of
    /// it is told in full.
    pub fn note_unwritten(&mut self, path: &str) {
        self.state().reads.note_write(path, None);
    }

    /// Whether this agent knows an earlier state of a file.
    pub fn was_read(&mut self, path: &str) -> bool {
        self.state().reads.last_seen(path).is_some()
    }

    /// Why writing this file now could overwrite something its writer has not seen:
    /// what another agent wrote is told first, as it can be named.
    pub fn staleness(&mut self, path: &str, stamp: Option<Stamp>) -> Option<String> {
        let stamp = stamp?;
        let read = self.state().reads.last_seen(path);
        let overtaken = self.runtime.writers.overtook(self.by, path, read);
        overtaken.or_else(|| self.state().reads.staleness(path, stamp))
    }
}

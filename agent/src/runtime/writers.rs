//! Who last wrote which file, of all agents of a session.
//!
//! What for: an agent that is about to write over what its parent or its child
//! wrote is told so, as Hermes tells it (`tools/file_state.py`). Nothing here is
//! authority, and calls that run beside others share it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hermitcrab_core::{grant::AgentId, standing::WallTime};

use crate::ambient;

/// Files whose writers are known at most; those written longest ago are forgotten.
const FILES_MAX: usize = 4096;

/// A place in the order of all reads and writes, and the clock's word for it: a
/// clock may be set, an order may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    order: u64,
    wall: WallTime,
}

impl Moment {
    /// As the user's own clock shows it: `HH:MM:SS`.
    fn shown(self) -> String {
        let whole = ambient::local_time(self.wall);
        whole
            .split_once('T')
            .map_or_else(String::new, |(_, time)| time.to_owned())
    }
}

/// The last write of each file; what is copied from it is the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Writers(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    moments: u64,
    last: BTreeMap<String, (AgentId, Moment)>,
}

impl Written {
    fn moment(&mut self) -> Moment {
        self.moments = self.moments.saturating_add(1);
        Moment {
            order: self.moments,
            wall: ambient::wall_time(),
        }
    }
}

impl Writers {
    fn written(&self) -> MutexGuard<'_, Written> {
        // Nothing in here can be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This moment, after all before it.
    pub(super) fn now(&self) -> Moment {
        self.written().moment()
    }

    /// An agent has written this file.
    pub(super) fn wrote(&self, by: AgentId, path: &str) -> Moment {
        let mut written = self.written();
        let moment = written.moment();
        written.last.insert(path.to_owned(), (by, moment));
        if written.last.len() > FILES_MAX {
            let first = written.last.iter().min_by_key(|(_, (_, moment))| *moment);
            if let Some(path) = first.map(|(path, _)| path.clone()) {
                written.last.remove(&path);
            }
        }
        moment
    }

    /// The files others than this agent have written since.
    pub(super) fn since(&self, moment: Moment, but: AgentId) -> Vec<String> {
        let written = self.written();
        let others = written
            .last
            .iter()
            .filter(|(_, (by, at))| *by != but && *at > moment);
        others.map(|(path, _)| path.clone()).collect()
    }

    /// Why a file that another agent wrote should be read before it is written,
    /// for one who read it then or never.
    pub(super) fn overtook(&self, by: AgentId, path: &str, read: Option<Moment>) -> Option<String> {
        let (writer, at) = self.written().last.get(path).copied()?;
        if writer == by {
            return None;
        }
        let Some(read) = read else {
            return Some(format!(
                "{path} was modified by sibling subagent '{writer}' but this agent never read it. Read the file before \
                 writing to avoid overwriting the sibling's changes."
            ));
        };
        (at > read).then(|| {
            format!(
                "{path} was modified by sibling subagent '{writer}' at {} \u{2014} after this agent's last read at {}. \
                 Re-read the file before writing.",
                at.shown(),
                read.shown()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_writers_are_remembered_and_the_oldest_goes_first() {
        let writers = Writers::default();
        for number in 0..=FILES_MAX {
            writers.wrote(AgentId::FIRST, &format!("/w/{number}"));
        }
        let written = writers.written();
        assert_eq!(written.last.len(), FILES_MAX);
        assert!(!written.last.contains_key("/w/0"));
        assert!(written.last.contains_key("/w/1"));
    }

    #[test]
    fn moments_come_one_after_the_other_and_show_the_time_of_day() {
        let writers = Writers::default();
        let (first, second) = (writers.now(), writers.now());
        assert!(first < second);
        let shown = first.shown();
        assert_eq!(shown.len(), "12:00:00".len(), "{shown}");
        assert!(shown.split(':').all(|part| part.parse::<u8>().is_ok()));
    }
}

//! What a command would have to hold for what it changed to stand.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::PathBuf};

use hermitcrab_core::{action::Action, approval::CallId, authority::Verb, rules::Sensitivity};
use hermitcrab_sandbox::{changeset::What, spawn::Finished};

use crate::runtime::{hands::Hands, seen::Seen};

/// An effect that nothing held covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Of which kind.
    pub verb: Verb,
    /// Where.
    pub path: PathBuf,
    /// The directory the command sees it in.
    pub within: PathBuf,
    /// Whether it makes a directory.
    pub is_new_dir: bool,
    /// Whether it is asked about each time, so that no grant is what it lacks.
    pub is_asked_always: bool,
}

impl Hands<'_> {
    /// Which effects of a command that still runs nothing held covers.
    pub(super) fn lacking(&self, call: CallId, seen: &[Seen], finished: &Finished) -> Vec<Lacking> {
        let mut lacking = Vec::new();
        for (seen, set) in seen.iter().zip(&finished.changes) {
            // What cannot be decided cannot be granted either.
            let Ok(actions) = set.actions(seen.dir) else {
                continue;
            };
            let stands = self.stand_unasked(call, &actions);
            let asked = self.are_asked_always(&actions);
            for ((change, is_asked_always), _) in set
                .changes()
                .iter()
                .zip(asked)
                .zip(stands)
                .filter(|(_, stands)| !stands)
            {
                lacking.push(Lacking {
                    verb: change.what.verb(),
                    path: seen.at.join(OsStr::from_bytes(change.path.as_bytes())),
                    within: seen.at.clone(),
                    is_new_dir: matches!(change.what, What::CreatedDir { .. }),
                    is_asked_always,
                });
            }
            let Ok(by_second_names) = set.by_second_names(seen.dir) else {
                continue;
            };
            let stands = self.stand_unasked(call, &by_second_names);
            let asked = self.are_asked_always(&by_second_names);
            let firsts = set.get_second_names().zip(asked).zip(stands);
            for ((first, is_asked_always), _) in firsts.filter(|(_, stands)| !stands) {
                lacking.push(Lacking {
                    verb: Verb::FsModify,
                    path: seen.at.join(OsStr::from_bytes(first.as_bytes())),
                    within: seen.at.clone(),
                    is_new_dir: false,
                    is_asked_always,
                });
            }
        }
        lacking
    }

    /// Of each whether it is asked about whatever is held.
    fn are_asked_always(&self, actions: &[Action]) -> Vec<bool> {
        self.runtime.machine.look(|session| {
            let sensitivity = |action| session.rules().sensitivity(self.tool, action);
            actions
                .iter()
                .map(|action| sensitivity(action) != Sensitivity::Plain)
                .collect()
        })
    }
}

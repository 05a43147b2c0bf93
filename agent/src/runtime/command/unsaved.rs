//! Of what a command changed: the files of which the user's editor holds another text than
//! the disk.
//!
//! A command works on what is saved, and nothing it did is thrown away for what somebody
//! types meanwhile: an editor tells its user before it saves over a changed file. But who
//! says yes to a difference beside a text they see on their screen is to know that it is
//! not that text which changes.

use hermitcrab_core::time::Millis;
use hermitcrab_sandbox::changeset::{Change, ChangeSet, What};

use super::super::{
    hands::{Hands, is_otherwise},
    seen::Seen,
    shown::SHOWN_BYTES_MAX,
    visible::named,
};

/// An editor opens what it is asked for: a build's thousand files are not to be tabs.
const FILES_MAX: usize = 32;
/// So long nobody is kept waiting for an editor, whatever it leaves unanswered.
const WITHIN: Millis = Millis::from_seconds(10);

impl Hands<'_> {
    /// One line for each of those files, to be shown with the changes.
    pub(super) fn unsaved(&mut self, sets: &[(&Seen, &ChangeSet)]) -> Vec<String> {
        let Some(port) = self.runtime.buffers.as_mut() else {
            return Vec::new();
        };
        let was_a_file = |(seen, set): &(&Seen, &ChangeSet), change: &Change| {
            let (What::ModifiedFile { .. } | What::DeletedFile { .. } | What::MovedAway { .. }) =
                change.what
            else {
                return None;
            };
            let before = set.content_before(&change.path, SHOWN_BYTES_MAX).ok()?;
            let at = seen.at.join(change.path.as_str()?);
            Some((at.to_str()?.to_owned(), before))
        };
        let files = sets.iter().flat_map(|of| {
            let changes = of.1.changes().iter();
            changes.filter_map(move |change| was_a_file(of, change))
        });
        let clock = &self.runtime.clock;
        let until = clock.now().after(WITHIN);
        let mut lines = Vec::new();
        for (at, before) in files.take(FILES_MAX) {
            if clock.now() >= until {
                break;
            }
            if port
                .text(&at)
                .is_some_and(|seen| is_otherwise(&seen, &before))
            {
                lines.push(format!(
                    "{}: the editor holds changes that are not saved; it is the file on the disk that is changed",
                    named(&at)
                ));
            }
        }
        lines
    }
}

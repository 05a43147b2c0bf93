//! Changes that are never applied, whatever is held.
//!
//! A set that holds one is not applied at all: half of what a command did is
//! not what anybody approved. Of a command nobody waits for such a change can be taken
//! out before the rest is shown to anybody (`apart`).

use std::collections::BTreeSet;

use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;

use super::node::{ACCESS_LISTS, OVERLAY_MARKS};
use super::{Change, ChangeSet, What};

/// Set-user-id and set-group-id.
const SET_ID: u32 = 0o6000;

/// Names of a change set that are never changed as it would.
#[derive(Debug, Default)]
pub(super) struct Never {
    /// Somebody else changed the file while the command ran.
    pub overtaken: BTreeSet<RelPath>,
    /// It could not be copied and was shown to the command empty.
    pub unseen: BTreeSet<RelPath>,
    /// It has another name and belongs to somebody no command has an id for.
    pub nobodys: BTreeSet<RelPath>,
    /// Another file system is mounted there, of which a command sees nothing.
    pub mounted: BTreeSet<RelPath>,
}

impl Never {
    pub(super) fn names(&self) -> impl Iterator<Item = &RelPath> {
        [&self.overtaken, &self.unseen, &self.nobodys, &self.mounted]
            .into_iter()
            .flatten()
    }

    /// Forgets names that are no changes any more.
    pub(super) fn forget(&mut self, is_out: impl Fn(&RelPath) -> bool) {
        for names in [
            &mut self.overtaken,
            &mut self.unseen,
            &mut self.nobodys,
            &mut self.mounted,
        ] {
            names.retain(|path| !is_out(path));
        }
    }
}

impl ChangeSet {
    /// The first change that is never applied, and why: a pipe or a socket,
    /// a file that would lend its owner's or group's rights to whoever runs
    /// it, a changed access list, a file that somebody else changed while
    /// the command ran, what could not be copied for it, another name for what
    /// belongs to somebody it has no id for, or what another file system is mounted on.
    #[must_use]
    pub fn never_kept(&self) -> Option<(&Change, Denial)> {
        self.all_refused().next()
    }

    /// All of them.
    pub(super) fn all_refused(&self) -> impl Iterator<Item = (&Change, Denial)> {
        let changes = self.changes.iter();
        changes.filter_map(|change| Some((change, self.refusal(change)?)))
    }

    /// All of them, by their names.
    pub(crate) fn all_never_kept(&self) -> impl Iterator<Item = &RelPath> {
        self.all_refused().map(|(change, _)| &change.path)
    }

    fn refusal(&self, change: &Change) -> Option<Denial> {
        let is = |never: &BTreeSet<RelPath>| never.contains(&change.path);
        if is(&self.never.mounted) {
            return Some(Denial::new(DenialCode::MountCrossing, &change.path));
        }
        if is(&self.never.overtaken) {
            return Some(Denial::new(DenialCode::ChangedSinceShown, &change.path));
        }
        if is(&self.never.unseen) {
            return Some(Denial::new(
                DenialCode::NotReadable,
                format_args!(
                    "{}: it could not be read for the command's copy and was shown empty, so what was made of it would replace what nobody saw",
                    change.path
                ),
            ));
        }
        if is(&self.never.nobodys) {
            return Some(Denial::new(
                DenialCode::EffectNotCovered,
                format_args!(
                    "{} had another name and belongs to a user or a group that commands have no id for, so it would become somebody else's",
                    change.path
                ),
            ));
        }
        refusal(change)
    }
}

fn refusal(change: &Change) -> Option<Denial> {
    let (before, mode) = match change.what {
        What::CreatedSpecial => {
            return Some(Denial::new(DenialCode::NotRegularFile, &change.path));
        }
        What::CreatedFile { mode, .. } => (0, mode),
        // What was lent to the content before is not lent to another.
        What::ModifiedFile { mode, .. } => (0, mode),
        What::ModifiedMode { before, mode } => (before, mode),
        // Rights in another form, and marks that would confuse the next view.
        What::Xattrs { ref names, .. } => {
            return names
                .iter()
                .find(|name| name.starts_with(ACCESS_LISTS) || name.starts_with(OVERLAY_MARKS))
                .map(|name| {
                    Denial::new(
                        DenialCode::EffectNotCovered,
                        format_args!(
                            "the attribute {} of {}",
                            String::from_utf8_lossy(name),
                            change.path
                        ),
                    )
                });
        }
        // A directory hands the group bit on to what is made in it; it lends
        // nobody any right.
        What::CreatedDir { .. }
        | What::CreatedSymlink { .. }
        | What::ModifiedTime { .. }
        | What::DeletedFile { .. }
        | What::DeletedSymlink { .. }
        | What::DeletedDir
        | What::DeletedSpecial
        // What it is was there before.
        | What::MovedHere { .. }
        | What::MovedAway { .. } => return None,
    };
    (mode & !before & SET_ID != 0).then(|| {
        Denial::new(
            DenialCode::EffectNotCovered,
            format_args!("set-user-id or set-group-id on {}", change.path),
        )
    })
}

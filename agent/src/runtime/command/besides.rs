//! What a command leaves besides what it was run for: a program writes it to be quicker
//! the next time, and it can be made again. Nobody is asked about that. Where it is held
//! it stands like anything else; where it is not, it is left out.
//!
//! Leaving out is never more than was held. What it must not do is to lose something, so
//! nothing is left out where anything is gone, or where a cache holds what another file
//! held: it may have gone there. What stands since its command still ran counts as well.

use std::collections::BTreeSet;

use hermitcrab_core::{
    action::Action, approval::CallId, digest::Digest, path::RelPath, session::Session,
};
use hermitcrab_sandbox::{
    changeset::{Change, ChangeSet, Displaced, What},
    spawn::Finished,
};

use super::{
    super::{ceilings::Caches, hands::Hands, seen::Seen, turn::Stop},
    summary,
};
use crate::text::gitindex;

/// The longest index that is looked into.
const INDEX_BYTES_MAX: usize = 64 << 20;

impl Hands<'_> {
    /// Takes out of what a command changed what is only there besides and does not stand
    /// as things are, and counts what of it lay in caches.
    pub(super) fn leave_out_besides(
        &mut self,
        call: CallId,
        seen: &[Seen],
        finished: &mut Finished,
    ) -> Result<(), Stop> {
        let caches = self.runtime.ceilings.caches.clone();
        let all = || finished.changes.iter().flat_map(ChangeSet::changes);
        let earlier: Vec<&Displaced> = finished.changes.iter().map(ChangeSet::displaced).collect();
        if all().any(|change| is_gone(&change.what))
            || earlier.iter().any(|earlier| earlier.is_any_gone())
            || caches_hold_what_was_elsewhere(&all, &earlier, &caches)
        {
            return Ok(());
        }
        let mut left_out = 0;
        for (seen, set) in seen.iter().zip(&mut finished.changes) {
            let besides = besides(set, &caches);
            if !besides.contains(&true) {
                continue;
            }
            let actions = set
                .actions(seen.dir)
                .map_err(|error| Stop::Broken(error.to_string()))?;
            let stands = self.stand_unasked(call, &actions);
            let changes = set.changes().iter().zip(besides).zip(stands);
            let left: BTreeSet<RelPath> = changes
                .filter(|((_, is_besides), stands)| *is_besides && !stands)
                .map(|((change, _), _)| change.path.clone())
                .collect();
            // Below a directory that is not made nothing is.
            let is_left = |path: &RelPath| {
                std::iter::successors(Some(path.clone()), RelPath::parent)
                    .any(|path| left.contains(&path))
            };
            let is_cached = |path: &RelPath| caches.has(path) || caches.hold(path);
            let cached = left.iter().filter(|path| is_cached(path)).count();
            if set.leave_out(is_left) {
                left_out += cached;
            }
        }
        *self.changes = summary(&finished.changes);
        self.changes.left_out = left_out;
        Ok(())
    }

    /// Which effects are covered as things stand, without a question and without the use
    /// of a grant that is counted.
    pub(super) fn stand_unasked(&self, call: CallId, actions: &[Action]) -> Vec<bool> {
        let early = |session: &Session| session.may_stand_early(call, actions);
        self.runtime.machine.look(early)
    }
}

/// Which changes are only there besides.
fn besides(set: &ChangeSet, caches: &Caches) -> Vec<bool> {
    let changes = set.changes().iter();
    let is_new = |change: &Change| matches!(change.what, What::CreatedDir { .. });
    changes
        .map(|change| {
            caches.hold(&change.path)
                || is_new(change) && caches.has(&change.path)
                || is_a_note_of_git(set, change)
        })
        .collect()
}

/// Whether what a file held that holds something else by now lies in a cache, or may: then it
/// was put there, and is nowhere else.
fn caches_hold_what_was_elsewhere<'c, I: Iterator<Item = &'c Change>>(
    all: &impl Fn() -> I,
    earlier: &[&Displaced],
    caches: &Caches,
) -> bool {
    let now = all().filter_map(|change| match change.what {
        What::ModifiedFile { base, .. } => Some((base, &change.path)),
        _ => None,
    });
    let displaced = now.chain(earlier.iter().flat_map(|earlier| earlier.contents()));
    let elsewhere = displaced.filter(|(_, path)| !caches.hold(path));
    let before: BTreeSet<Digest> = elsewhere.map(|(held, _)| held).collect();
    let mut cached = all().filter(|change| caches.hold(&change.path));
    cached.any(|change| match change.what {
        What::CreatedFile { digest, .. } | What::ModifiedFile { digest, .. } => {
            before.contains(&digest) || before.contains(&Digest::NONE)
        }
        _ => false,
    })
}

/// Whether a change takes something from its name.
const fn is_gone(what: &What) -> bool {
    match what {
        What::DeletedFile { .. }
        | What::DeletedSymlink { .. }
        | What::DeletedDir
        | What::DeletedSpecial
        | What::MovedHere { .. }
        | What::MovedAway { .. } => true,
        What::CreatedFile { .. }
        | What::CreatedDir { .. }
        | What::CreatedSymlink { .. }
        | What::CreatedSpecial
        | What::ModifiedFile { .. }
        | What::ModifiedMode { .. }
        | What::ModifiedTime { .. }
        | What::Xattrs { .. } => false,
    }
}

/// Whether a change is to an index of git's that says what it said before. Git writes it
/// when somebody only wants to see what there is. Git never gives it another mode.
fn is_a_note_of_git(set: &ChangeSet, change: &Change) -> bool {
    let is_content_alone = match change.what {
        What::ModifiedFile {
            mode_before, mode, ..
        } => mode_before == mode,
        // Written anew as it was, because a file it names is as young as it is.
        What::ModifiedTime { .. } => true,
        What::CreatedFile { .. }
        | What::CreatedDir { .. }
        | What::CreatedSymlink { .. }
        | What::CreatedSpecial
        | What::ModifiedMode { .. }
        | What::Xattrs { .. }
        | What::DeletedFile { .. }
        | What::DeletedSymlink { .. }
        | What::DeletedDir
        | What::DeletedSpecial
        | What::MovedHere { .. }
        | What::MovedAway { .. } => false,
    };
    if !gitindex::is_name_of_one(&change.path) || !is_content_alone {
        return false;
    }
    let before = set.content_before(&change.path, INDEX_BYTES_MAX);
    let after = set.content_after(&change.path, INDEX_BYTES_MAX);
    matches!((before, after), (Ok(before), Ok(after)) if gitindex::says_the_same(&before, &after))
}

//! What a command took away before its end.
//!
//! What for: of what was decided while it ran, its end tells nothing any more. Whoever
//! judges the rest by what is gone, or by what files held, has to know of that, too. What
//! the command had put there itself does not count.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;

use crate::changeset::{Change, ChangeSet, What};

/// What was there before a command and is not any more, of what was decided while it ran.
#[derive(Clone, Debug, Default)]
pub struct Displaced {
    is_any_gone: bool,
    contents: BTreeSet<(Digest, RelPath)>,
    /// What it put there itself.
    own: BTreeMap<RelPath, Digest>,
}

impl Displaced {
    /// Whether a name is gone that was not the command's own.
    #[must_use]
    pub const fn is_any_gone(&self) -> bool {
        self.is_any_gone
    }

    /// What files held that hold something else since, and under which name.
    pub fn contents(&self) -> impl Iterator<Item = (Digest, &RelPath)> {
        self.contents.iter().map(|(content, path)| (*content, path))
    }

    /// These changes stand.
    pub(crate) fn note(&mut self, changes: &[Change]) {
        for Change { path, what } in changes {
            match what {
                What::CreatedFile { digest, .. } => self.put(path, *digest),
                What::ModifiedFile { base, digest, .. } => {
                    if self.own.get(path) != Some(base) {
                        self.contents.insert((*base, path.clone()));
                    }
                    self.put(path, *digest);
                }
                What::CreatedDir { .. }
                | What::CreatedSymlink { .. }
                | What::CreatedSpecial
                | What::MovedHere { .. } => self.put(path, Digest::NONE),
                What::DeletedFile { base } => self.gone(path, *base),
                What::DeletedSymlink { .. } | What::DeletedDir | What::DeletedSpecial => {
                    self.gone(path, Digest::NONE);
                }
                What::MovedAway { .. } => self.is_any_gone = true,
                What::ModifiedMode { .. } | What::ModifiedTime { .. } | What::Xattrs { .. } => {}
            }
        }
    }

    fn put(&mut self, path: &RelPath, held: Digest) {
        self.own.insert(path.clone(), held);
    }

    fn gone(&mut self, path: &RelPath, held: Digest) {
        // Where somebody else put something in its place it is theirs.
        self.is_any_gone |= self.own.remove(path) != Some(held);
    }
}

impl ChangeSet {
    /// What its command took away before its end.
    #[must_use]
    pub fn displaced(&self) -> &Displaced {
        &self.so_far.displaced
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::authority::Extent;

    use super::*;
    use crate::digest::sha256;

    #[test]
    fn what_was_there_before_counts_and_what_the_command_made_does_not() {
        let path = |name: &str| RelPath::parse(name.as_bytes()).unwrap();
        let (old, one, two) = (sha256(b"old"), sha256(b"one"), sha256(b"two"));
        let made = |digest| What::CreatedFile {
            digest,
            bytes: 3,
            mode: 0o644,
        };
        let changed = |base, digest| What::ModifiedFile {
            base,
            digest,
            bytes: 3,
            mode_before: 0o644,
            mode: 0o644,
        };
        let gone = |base| What::DeletedFile { base };
        let mut displaced = Displaced::default();
        let mut after = |name: &str, what: What| {
            let change = Change {
                path: path(name),
                what,
            };
            displaced.note(&[change]);
            (displaced.is_any_gone(), displaced.contents().count())
        };
        assert_eq!(after("d", What::CreatedDir { mode: 0o755 }), (false, 0));
        assert_eq!(after("d/own", made(one)), (false, 0));
        assert_eq!(after("d/own", changed(one, two)), (false, 0));
        assert_eq!(after("d/own", gone(two)), (false, 0));
        assert_eq!(after("d", What::DeletedDir), (false, 0));
        assert_eq!(after("theirs", changed(old, one)), (false, 1));
        assert_eq!(after("theirs", changed(one, two)), (false, 1));
        // Somebody saved it meanwhile.
        assert_eq!(after("theirs", changed(old, two)), (false, 1));
        assert_eq!(after("theirs", changed(one, two)), (false, 2));
        assert_eq!(after("theirs", gone(two)), (false, 2));
        assert_eq!(after("theirs", made(one)), (false, 2));
        assert_eq!(after("theirs", gone(old)), (true, 2));
    }

    #[test]
    fn whatever_is_gone_that_it_did_not_make_counts() {
        for what in [
            What::DeletedFile { base: Digest::NONE },
            What::DeletedSymlink { target: vec![b'x'] },
            What::DeletedDir,
            What::DeletedSpecial,
            What::MovedAway {
                extent: Extent::Alone,
            },
        ] {
            let mut displaced = Displaced::default();
            let path = RelPath::parse(b"x").unwrap();
            displaced.note(&[Change { path, what }]);
            assert!(displaced.is_any_gone());
        }
    }
}

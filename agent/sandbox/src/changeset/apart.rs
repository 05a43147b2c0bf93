//! What cannot stand, because somebody else changed the same names or because such a change is
//! never kept, apart from what can.
//!
//! What for: a command that ran beside others for hours is not to lose all it made because
//! one file of it was saved by somebody else, or because its socket is still there. Nobody
//! waits for its end to begin it again.
//!
//! What is left may be decided and committed like any other set; so it must never take away
//! what is only in what was taken out. Where something the command put somewhere does not
//! come there, nothing it removed is removed, and nothing is overwritten that is in there:
//! it may have gone there, in whatever form. And what makes sense only together goes
//! together: a directory with all that went with it, a store of version control, a database
//! with its log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::Denial;
use hermitcrab_core::path::RelPath;

use super::node::{OVERLAY_MARKS, Tree};
use super::{Change, ChangeSet, What, scan};
use crate::digest::sha256;
use crate::dircap::Kind;

/// Directories whose names are worth nothing without each other.
const STORES: [&[u8]; 8] = [
    b".git", b".hg", b".jj", b".svn", b".bzr", b".sl", b".pijul", b"_darcs",
];
/// What SQLite writes beside a database.
const BESIDE_A_DATABASE: [&[u8]; 3] = [b"-wal", b"-shm", b"-journal"];

/// What was taken out of one change set.
#[derive(Debug)]
pub struct Apart {
    /// Which one, by its place.
    pub view: usize,
    /// The names somebody else changed, and what was found there, if it is a file's content
    /// and known.
    pub overtaken: BTreeMap<RelPath, Digest>,
    /// The names of which a change is never kept for another reason, and why.
    pub refused: BTreeMap<RelPath, Denial>,
    /// All that was taken out: the changes of these, and of what goes with them.
    pub changes: Vec<Change>,
}

/// What goes, of one set.
#[derive(Clone, Debug, Default)]
struct Goes {
    /// With all that lies below.
    whole: BTreeSet<RelPath>,
    /// Directories that stay, but for what was changed of themselves.
    alone: BTreeSet<RelPath>,
}

impl Goes {
    fn holds(&self, path: &RelPath) -> bool {
        self.alone.contains(path)
            || std::iter::successors(Some(path.clone()), RelPath::parent)
                .any(|path| self.whole.contains(&path))
    }
}

/// Takes the changes out that somebody else overtook and those that are never kept, with what
/// goes with them; `found` are names of which the former came out since the layers were read,
/// each of a set by its place.
pub fn set_apart(sets: &mut [ChangeSet], found: &[(usize, RelPath)]) -> Vec<Apart> {
    let mut overtaken: Vec<BTreeSet<RelPath>> =
        sets.iter().map(|set| set.never.overtaken.clone()).collect();
    for (view, path) in found {
        if let Some(overtaken) = overtaken.get_mut(*view) {
            overtaken.insert(path.clone());
        }
    }
    let refused: Vec<BTreeMap<RelPath, Denial>> = sets
        .iter()
        .zip(&overtaken)
        .map(|(set, overtaken)| {
            let refused = set.all_refused();
            let others = refused.filter(|(change, _)| !overtaken.contains(&change.path));
            let named = others.map(|(change, denial)| (change.path.clone(), denial));
            named.collect()
        })
        .collect();
    if overtaken.iter().all(BTreeSet::is_empty) && refused.iter().all(BTreeMap::is_empty) {
        return Vec::new();
    }
    let out = all_that_goes(sets, &overtaken, &refused);
    let mut apart = Vec::new();
    let why = overtaken.into_iter().zip(refused);
    for (view, ((set, out), (overtaken, refused))) in sets.iter_mut().zip(&out).zip(why).enumerate()
    {
        let found = |path: &RelPath| set.held_outside(path).unwrap_or(Digest::NONE);
        let overtaken = overtaken
            .into_iter()
            .map(|path| (path.clone(), found(&path)));
        let overtaken = overtaken.collect();
        let changes = set.take_out(|path| out.holds(path));
        if !changes.is_empty() {
            apart.push(Apart {
                view,
                overtaken,
                refused,
                changes,
            });
        }
    }
    apart
}

/// All that goes, of each set.
fn all_that_goes(
    sets: &[ChangeSet],
    overtaken: &[BTreeSet<RelPath>],
    refused: &[BTreeMap<RelPath, Denial>],
) -> Vec<Goes> {
    let deleted: Vec<Deleted<'_>> = sets.iter().map(Deleted::of).collect();
    let mut out: Vec<Goes> = deleted
        .iter()
        .zip(overtaken)
        .map(|(deleted, overtaken)| {
            let together = overtaken.iter().flat_map(together_with);
            let whole = together.map(|path| deleted.outermost(path)).collect();
            Goes {
                whole,
                alone: BTreeSet::new(),
            }
        })
        .collect();
    for (((out, refused), set), deleted) in out.iter_mut().zip(refused).zip(sets).zip(&deleted) {
        for path in refused.keys() {
            if set.is_dir_still(path) {
                out.alone.insert(path.clone());
            } else if set.is_new_special(path) {
                // It holds nothing that anything else would need.
                out.whole.insert(path.clone());
            } else {
                let together = together_with(path).into_iter();
                out.whole
                    .extend(together.map(|path| deleted.outermost(path)));
            }
        }
    }
    let nothing = sha256(b"");
    loop {
        let mut contents: BTreeSet<Digest> = BTreeSet::new();
        let (mut is_any_put, mut is_special_put) = (false, false);
        for change in changes_of(sets, &out, true).map(|(_, change)| change) {
            match change.what {
                What::CreatedFile { digest, .. } | What::ModifiedFile { digest, .. } => {
                    is_any_put = true;
                    contents.insert(digest);
                }
                What::CreatedSymlink { .. } | What::MovedHere { .. } => is_any_put = true,
                What::CreatedSpecial => is_special_put = true,
                _ => {}
            }
        }
        contents.remove(&nothing);
        let may_be_in_it = |base: Digest| {
            contents.contains(&base) || (base == Digest::NONE && !contents.is_empty())
        };
        let mut more: Vec<(usize, RelPath)> = Vec::new();
        for (view, change) in changes_of(sets, &out, false) {
            let (Some(set), Some(deleted)) = (sets.get(view), deleted.get(view)) else {
                continue;
            };
            match change.what {
                What::ModifiedFile { base, .. } if may_be_in_it(base) => {
                    more.push((view, change.path.clone()));
                }
                _ if change.what.verb() == Verb::FsDelete => {
                    let whole = deleted.outermost(change.path.clone());
                    let goes = match change.what {
                        // A pipe or a device that got another name there is only there.
                        What::DeletedSpecial if !set.after.contains_key(&whole) => {
                            is_any_put || is_special_put
                        }
                        _ if !set.after.contains_key(&whole) => is_any_put,
                        // Something else has its name.
                        What::DeletedFile { base } => may_be_in_it(base),
                        _ => false,
                    };
                    if goes {
                        more.push((view, whole));
                    }
                }
                _ => {}
            }
        }
        if more.is_empty() {
            return out;
        }
        for (view, path) in more {
            if let Some(out) = out.get_mut(view) {
                out.whole.insert(path);
            }
        }
    }
}

/// The changes that go, or those that stay.
fn changes_of<'s>(
    sets: &'s [ChangeSet],
    out: &'s [Goes],
    goes: bool,
) -> impl Iterator<Item = (usize, &'s Change)> {
    let all = sets.iter().zip(out).enumerate();
    all.flat_map(move |(view, (set, out))| {
        let changes = set.changes.iter();
        let wanted = changes.filter(move |change| out.holds(&change.path) == goes);
        wanted.map(move |change| (view, change))
    })
}

/// A name with what is worth nothing without it.
fn together_with(path: &RelPath) -> Vec<RelPath> {
    let is_store = |path: &RelPath| path.file_name().is_some_and(|name| STORES.contains(&name));
    let all = std::iter::successors(Some(path.clone()), RelPath::parent);
    if let Some(store) = all.filter(is_store).last() {
        return vec![store];
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return vec![path.clone()];
    };
    let mut database = BESIDE_A_DATABASE
        .iter()
        .filter_map(|end| name.strip_suffix(*end));
    let database = database.next().unwrap_or(name);
    let beside = BESIDE_A_DATABASE.iter();
    let names = beside.map(|end| [database, *end].concat());
    let together = names.chain([database.to_vec()]);
    together.filter_map(|name| dir.child(&name).ok()).collect()
}

/// The names of a change set that are gone.
pub(crate) struct Deleted<'s>(BTreeSet<&'s RelPath>);

impl<'s> Deleted<'s> {
    pub(crate) fn of(set: &'s ChangeSet) -> Self {
        let changes = set.changes.iter();
        let deleted = changes.filter(|change| change.what.verb() == Verb::FsDelete);
        Self(deleted.map(|change| &change.path).collect())
    }

    /// What went with a name: a directory that is gone has gone with everything in it.
    pub(crate) fn outermost(&self, mut path: RelPath) -> RelPath {
        while let Some(above) = path.parent().filter(|above| self.0.contains(above)) {
            path = above;
        }
        path
    }
}

impl ChangeSet {
    /// What was found outside under a name that is a change, if it is a file's content.
    #[must_use]
    pub fn held_outside(&self, path: &RelPath) -> Option<Digest> {
        let digest = self.before.get(path)?.digest();
        (digest != Digest::NONE).then_some(digest)
    }

    /// Whether a name was a directory's and is one's, in which all else was found as it is:
    /// marks of the kind a layer has say what is in one.
    fn is_dir_still(&self, path: &RelPath) -> bool {
        let is_dir = |tree: &Tree| {
            tree.get(path).is_some_and(|node| {
                let mut marks = node.xattrs.keys();
                node.kind == Kind::Dir && !marks.any(|name| name.starts_with(OVERLAY_MARKS))
            })
        };
        is_dir(&self.before) && is_dir(&self.after)
    }

    /// Whether a pipe, a socket or a device has a name that was nothing's.
    fn is_new_special(&self, path: &RelPath) -> bool {
        // Of those there is nothing to put anywhere, so they are in neither.
        !self.before.contains_key(path) && !self.after.contains_key(path)
    }

    /// A created or changed file as its command left it, whether or not it is a change of
    /// this set still.
    ///
    /// # Errors
    /// It is not a regular file.
    pub fn open_after(&self, path: &RelPath) -> io::Result<File> {
        scan::open_below(std::os::fd::AsFd::as_fd(&self.upper), path)
    }
}

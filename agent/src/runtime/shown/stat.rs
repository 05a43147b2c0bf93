//! What a command did to its copies, by directory and number: for whoever wants to know how
//! much it is and where, and reads no difference of each of thousands of files.
//!
//! This is never what a person agrees to: a question shows all of it.

use std::{collections::BTreeMap, fmt};

use hermitcrab_core::{approval::Question, path::RelPath};
use hermitcrab_sandbox::changeset::{Change, ChangeSet, Rename, What};

use super::{super::turn::Shown, heading, in_bytes, marked, named};

/// So many places are told of; of more, those with the most changes are told in one line.
const PLACES_MAX: usize = 40;

/// One kind of change, in the order they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NewFile,
    NewDir,
    NewLink,
    NewSpecial,
    Changed,
    Attributes,
    SecondName,
    Renamed,
    DeletedFile,
    DeletedDir,
    DeletedLink,
    DeletedSpecial,
}

impl Kind {
    const fn of(what: &What) -> Self {
        match what {
            What::CreatedFile { .. } => Self::NewFile,
            What::CreatedDir { .. } => Self::NewDir,
            What::CreatedSymlink { .. } => Self::NewLink,
            What::CreatedSpecial => Self::NewSpecial,
            What::ModifiedFile { .. } => Self::Changed,
            What::ModifiedMode { .. } | What::ModifiedTime { .. } | What::Xattrs { .. } => {
                Self::Attributes
            }
            What::MovedHere { .. } | What::MovedAway { .. } => Self::Renamed,
            What::DeletedFile { .. } => Self::DeletedFile,
            What::DeletedSymlink { .. } => Self::DeletedLink,
            What::DeletedDir => Self::DeletedDir,
            What::DeletedSpecial => Self::DeletedSpecial,
        }
    }

    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::NewFile => ["new file", "new files"],
            Self::NewDir => ["new directory", "new directories"],
            Self::NewLink => ["new link", "new links"],
            Self::NewSpecial => [
                "new pipe or socket (never kept)",
                "new pipes or sockets (never kept)",
            ],
            Self::Changed => ["changed file", "changed files"],
            Self::Attributes => [
                "other mode, time or attribute",
                "other modes, times or attributes",
            ],
            Self::SecondName => [
                "file of before with a second name",
                "files of before with second names",
            ],
            Self::Renamed => ["renamed or moved", "renamed or moved"],
            Self::DeletedFile => ["deleted file", "deleted files"],
            Self::DeletedDir => ["deleted directory", "deleted directories"],
            Self::DeletedLink => ["deleted link", "deleted links"],
            Self::DeletedSpecial => [
                "deleted pipe, socket or device",
                "deleted pipes, sockets or devices",
            ],
        }
    }
}

/// How many changes of which kind, and how much is written by them.
#[derive(Clone, Debug, Default)]
struct Sum {
    kinds: BTreeMap<Kind, usize>,
    written: u64,
}

impl Sum {
    fn add(&mut self, change: &Change) {
        *self.kinds.entry(Kind::of(&change.what)).or_default() += 1;
        if let What::CreatedFile { bytes, .. } | What::ModifiedFile { bytes, .. } = change.what {
            self.written = self.written.saturating_add(bytes);
        }
    }

    fn join(&mut self, other: &Self) {
        for (kind, number) in &other.kinds {
            *self.kinds.entry(*kind).or_default() += number;
        }
        self.written = self.written.saturating_add(other.written);
    }

    fn changes(&self) -> usize {
        self.kinds.values().sum()
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.kinds.iter().map(|(kind, number)| {
            let [one, many] = kind.words();
            let words = if *number == 1 { one } else { many };
            format!("{number} {words}")
        });
        f.write_str(&told.collect::<Vec<_>>().join(", "))?;
        match self.written {
            0 => Ok(()),
            written => write!(f, "; {} written", in_bytes(written)),
        }
    }
}

/// The name right below the root that a change lies at or in, and whether it lies in it.
fn top(path: &RelPath) -> (Vec<u8>, bool) {
    let mut names = path.components();
    let first = names.next().unwrap_or_default().to_vec();
    (first, names.next().is_some())
}

/// What lies at or below one name.
#[derive(Default)]
struct Place {
    is_dir: bool,
    sum: Sum,
}

/// What a command did to its copies, in numbers, and the command.
pub(in crate::runtime) fn stat(
    question: &Question,
    command: &str,
    sets: &[(String, &ChangeSet)],
) -> Shown {
    let mut out = heading(question);
    out.push_str(&format!("command: {}\n", marked(command)));
    let mut all = Sum::default();
    for (root, set) in sets {
        let mut places: BTreeMap<Vec<u8>, Place> = BTreeMap::new();
        let mut at = |path: &RelPath, add: &dyn Fn(&mut Sum)| {
            let (name, is_below) = top(path);
            let place = places.entry(name).or_default();
            place.is_dir |= is_below;
            add(&mut place.sum);
        };
        for Rename { from, .. } in set.renames() {
            at(from, &|sum| {
                *sum.kinds.entry(Kind::Renamed).or_default() += 1
            });
        }
        for first in set.get_second_names() {
            at(first, &|sum| {
                *sum.kinds.entry(Kind::SecondName).or_default() += 1
            });
        }
        let is_renamed = |path: &RelPath| set.is_moved(path) || set.moved_to(path).is_some();
        for change in set.changes() {
            if !is_renamed(&change.path) {
                at(&change.path, &|sum| sum.add(change));
            }
        }
        for place in places.values() {
            all.join(&place.sum);
        }
        out.push_str(&format!("in {}:\n", named(root)));
        out.push_str(&listed(places));
    }
    out.push_str(&format!("in all: {all}\n"));
    out.into()
}

/// A line for each place, those with the fewest changes named before the rest is summed up:
/// what lies elsewhere is what is looked for among many.
fn listed(places: BTreeMap<Vec<u8>, Place>) -> String {
    let mut places: Vec<(Vec<u8>, Place)> = places.into_iter().collect();
    places.sort_by_key(|(_, place)| place.sum.changes());
    let more = places.split_off(places.len().min(PLACES_MAX));
    places.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut out = String::new();
    for (name, place) in &places {
        let name = match name.as_slice() {
            [] => ".".to_owned(),
            name => named(&String::from_utf8_lossy(name)),
        };
        let slash = if place.is_dir { "/" } else { "" };
        out.push_str(&format!("  {name}{slash}: {}\n", place.sum));
    }
    if !more.is_empty() {
        let mut rest = Sum::default();
        for (_, place) in &more {
            rest.join(&place.sum);
        }
        out.push_str(&format!("  {} more places: {rest}\n", more.len()));
    }
    out
}

//! What got another name, as it is or changed: told once, not as what went and what came.
//!
//! What for: who moves a module and mends its imports is to be asked about the lines that are
//! others. It must never leave out anything: a name that is asked about each time is told by
//! all that it holds, and what is told as changed is shown beside all that the old name held.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use hermitcrab_core::path::RelPath;
use hermitcrab_sandbox::changeset::{Change, ChangeSet, Rename, What};

use super::{SHOWN_BYTES_MAX, legible_at, named};

/// So many files that came, and as many that went, are compared whatever their names are.
const OTHER_NAMES_MAX: usize = 32;
/// Of more files with the same last name none is looked for: that takes long, and a person
/// has much to read anyway.
const SAME_NAME_MAX: usize = 64;
/// So many pairs of files are compared for one question.
const COMPARED_MAX: usize = 4096;
/// So many bytes of them: else each of many long files would be gone through for each other.
const COMPARED_BYTES_MAX: usize = 16 << 20;

/// What of a change set is told as another name.
pub(super) struct Renamed<'s> {
    set: &'s ChangeSet,
    each_time: &'s BTreeSet<RelPath>,
    /// What is another file by its content, by the new name: the old one.
    changed: BTreeMap<&'s RelPath, &'s RelPath>,
    gone: BTreeSet<&'s RelPath>,
}

impl<'s> Renamed<'s> {
    /// Files longer than `longest` are not looked into.
    pub(super) fn of(set: &'s ChangeSet, each_time: &'s BTreeSet<RelPath>, longest: u64) -> Self {
        let mut renamed = Self {
            set,
            each_time,
            changed: BTreeMap::new(),
            gone: BTreeSet::new(),
        };
        let is_looked_into = |change: &&Change| {
            renamed.is_told(&change.path)
                && !each_time.contains(&change.path)
                && set.bytes_of(change) <= longest
        };
        let (mut came, mut went) = (Vec::new(), Vec::new());
        for change in set.changes().iter().filter(is_looked_into) {
            match change.what {
                What::CreatedFile { .. } => came.push(&change.path),
                What::DeletedFile { .. } => went.push(&change.path),
                _ => {}
            }
        }
        // Most commands only make files or only remove some.
        if !came.is_empty() && !went.is_empty() {
            renamed.changed = pairs(set, came, went);
            renamed.gone = renamed.changed.values().copied().collect();
        }
        renamed
    }

    /// What only got another name, a line each; `root` is before each name.
    pub(super) fn as_they_are(&self, root: &str) -> Vec<String> {
        let below = below_renames(self.set);
        let renames = self.set.renames().iter();
        let told = renames.map(|Rename { from, to }| {
            let with = match below.get(to).copied().unwrap_or(0) {
                0 => String::new(),
                1 => " with the name below it".to_owned(),
                names => format!(" with the {names} names below it"),
            };
            format!(
                "renamed {} to {}{with}, nothing in it changed",
                named(&format!("{root}/{from}")),
                named(&format!("{root}/{to}")),
            )
        });
        told.collect()
    }

    /// Whether a change is told by itself, and not by [`Renamed::as_they_are`] or the name it
    /// got.
    pub(super) fn is_told(&self, path: &RelPath) -> bool {
        let is_renamed = self.set.is_moved(path)
            || self.set.moved_to(path).is_some()
            || self.gone.contains(path);
        !is_renamed || self.each_time.contains(path)
    }

    /// Under which name a file lay that is told as another one by its content, too.
    pub(super) fn old_name(&self, path: &RelPath) -> Option<&'s RelPath> {
        self.changed.get(path).copied()
    }
}

/// How many changes there are below each new name of what got another one.
fn below_renames(set: &ChangeSet) -> BTreeMap<RelPath, usize> {
    let mut below = BTreeMap::new();
    for change in set.changes() {
        if let Some(to) = set.moved_to(&change.path).filter(|to| *to != change.path) {
            *below.entry(to).or_default() += 1;
        }
    }
    below
}

/// Which of the files that went a file that came is for the greater part: of those that kept
/// their last name the one whose directories are most alike, else the one most alike.
fn pairs<'s>(
    set: &ChangeSet,
    came: Vec<&'s RelPath>,
    went: Vec<&'s RelPath>,
) -> BTreeMap<&'s RelPath, &'s RelPath> {
    let mut texts = Texts {
        set,
        read: BTreeMap::new(),
        left: Left {
            pairs: COMPARED_MAX,
            bytes: COMPARED_BYTES_MAX,
        },
    };
    let mut named: BTreeMap<&[u8], Vec<&RelPath>> = BTreeMap::new();
    for path in &went {
        let name = path.file_name().unwrap_or_default();
        named.entry(name).or_default().push(path);
    }
    let mut found = BTreeMap::new();
    let mut left = Vec::new();
    for to in came {
        let same = named.entry(to.file_name().unwrap_or_default()).or_default();
        if same.len() > SAME_NAME_MAX {
            continue;
        }
        same.sort_by_key(|from| std::cmp::Reverse(same_at_the_end(from, to)));
        match same.iter().position(|from| texts.alike(from, to).is_some()) {
            Some(at) => _ = found.insert(to, same.remove(at)),
            None => left.push(to),
        }
    }
    let mut free: Vec<&RelPath> = named.into_values().flatten().collect();
    if left.len() > OTHER_NAMES_MAX || free.len() > OTHER_NAMES_MAX {
        return found;
    }
    free.sort();
    for to in left {
        let alike = free.iter().enumerate();
        let alike = alike.filter_map(|(at, from)| Some((texts.alike(from, to)?, at)));
        // The first of those that are as much alike.
        if let Some((_, at)) = alike.max_by_key(|(alike, at)| (*alike, std::cmp::Reverse(*at))) {
            found.insert(to, free.remove(at));
        }
    }
    found
}

/// How many parts two names have in common, from the last on.
fn same_at_the_end(one: &RelPath, other: &RelPath) -> usize {
    let parts = one.components().rev().zip(other.components().rev());
    parts.take_while(|(one, other)| one == other).count()
}

/// The texts of files that came or went, each read once.
struct Texts<'s> {
    set: &'s ChangeSet,
    read: BTreeMap<(bool, RelPath), Option<Rc<str>>>,
    left: Left,
}

/// How much may still be compared.
struct Left {
    pairs: usize,
    bytes: usize,
}

impl Left {
    /// Whether two texts of these lengths are to be; of one that is not half as long as the
    /// other neither is the greater part of the other.
    fn take(&mut self, one: usize, other: usize) -> bool {
        if one.min(other) < one.max(other).div_ceil(2) {
            return false;
        }
        let pairs = self.pairs.checked_sub(1);
        let bytes = self.bytes.checked_sub(one.saturating_add(other));
        if let (Some(pairs), Some(bytes)) = (pairs, bytes) {
            *self = Self { pairs, bytes };
            return true;
        }
        false
    }
}

impl Texts<'_> {
    /// How much of what came was there before, in thousandths of the longer one; nothing if
    /// that is less than half, or one of them is no text.
    fn alike(&mut self, from: &RelPath, to: &RelPath) -> Option<usize> {
        let old = self.of(false, from)?;
        let new = self.of(true, to)?;
        let is_compared = self.left.take(old.len(), new.len());
        is_compared.then(|| alike(&old, &new)).flatten()
    }

    fn of(&mut self, is_new: bool, path: &RelPath) -> Option<Rc<str>> {
        let set = self.set;
        let read = || {
            let bytes = match is_new {
                true => set.content_after(path, SHOWN_BYTES_MAX),
                false => set.content_before(path, SHOWN_BYTES_MAX),
            };
            let bytes = bytes.ok()?;
            Some(legible_at(&path.to_string(), &bytes)?.into())
        };
        let text = self.read.entry((is_new, path.clone()));
        text.or_insert_with(read).clone()
    }
}

fn alike(old: &str, new: &str) -> Option<usize> {
    let longer = old.len().max(new.len());
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for line in old.split_inclusive('\n') {
        *lines.entry(line).or_default() += 1;
    }
    let mut same = 0_usize;
    for line in new.split_inclusive('\n') {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            same = same.saturating_add(line.len());
        }
    }
    let alike = same.saturating_mul(1000).checked_div(longer)?;
    (alike >= 500).then_some(alike)
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::path::RelPath;

    use super::{Left, alike, same_at_the_end};

    #[test]
    fn so_much_is_compared_and_nothing_that_cannot_be_alike() {
        let left = |pairs, bytes| Left { pairs, bytes };
        assert!(left(1, 30).take(10, 20));
        assert!(left(1, 30).take(20, 10));
        assert!(!left(1, 300).take(10, 21) && !left(1, 300).take(0, 1));
        assert!(!left(0, 30).take(10, 20) && !left(1, 29).take(10, 20));
        let mut some = left(3, 50);
        let taken = [(10, 10), (10, 10), (10, 10), (5, 5), (1, 1)];
        let taken = taken.map(|(one, other)| some.take(one, other));
        assert_eq!(taken, [true, true, false, true, false]);
    }

    #[test]
    fn what_is_the_same_for_the_greater_part_is_known_again() {
        assert_eq!(alike("a\nb\nc\nd\n", "a\nb\nc\nd\n"), Some(1000));
        assert_eq!(alike("a\nb\nc\nd\n", "a\nb\nx\ny\n"), Some(500));
        assert_eq!(alike("a\nb\nc\nd\n", "a\nx\ny\nz\n"), None);
        // A line counts as often as it was there, and by its length.
        assert_eq!(alike("a\n", "a\na\na\n"), None);
        assert_eq!(alike("long line\na\nb\n", "long line\nc\nd\n"), Some(714));
        // In a long one little is what was there.
        assert_eq!(alike("a\n", "a\nsomething else\n"), None);
        assert_eq!(alike("", ""), None);
    }

    #[test]
    fn directories_that_end_alike_are_more_alike() {
        let same = |one: &str, other: &str| {
            let path = |text: &str| RelPath::parse(text.as_bytes()).unwrap();
            same_at_the_end(&path(one), &path(other))
        };
        assert_eq!(same("a/in/mod.rs", "b/in/mod.rs"), 2);
        assert_eq!(same("a/mod.rs", "b/in/mod.rs"), 1);
        assert_eq!(same("mod.rs", "in/mod.rs"), 1);
        assert_eq!(same("a/x", "a/y"), 0);
    }
}

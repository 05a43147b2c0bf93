//! What lies in a directory, and what a commit makes of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// What lies in the directory.
pub(super) const NAMES: [&str; 5] = ["a", "b", "d", "e", "l"];
/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    Moved,
    MovedInto,
    Deleted,
    /// A file gets another content; anything else stays.
    Changed,
}

impl Fate {
    pub(super) const ALL: [Self; 5] = [
        Self::Stays,
        Self::Moved,
        Self::MovedInto,
        Self::Deleted,
        Self::Changed,
    ];
}

/// Every name below a directory, with what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Picture(BTreeMap<String, Thing>);

#[derive(Clone, Debug)]
struct Thing {
    text: String,
    /// Which thing it is, where that is to stay the same.
    inode: Option<u64>,
}

impl Picture {
    pub(super) fn of(top: &Path) -> std::io::Result<Self> {
        let mut picture = Self(BTreeMap::new());
        picture.add(top, "")?;
        Ok(picture)
    }

    fn add(&mut self, place: &Path, below: &str) -> std::io::Result<()> {
        for entry in fs::read_dir(place)? {
            let entry = entry?;
            let name = format!("{below}/{}", entry.file_name().to_string_lossy());
            let stat = entry.path().symlink_metadata()?;
            let mode = stat.permissions().mode() & 0o7777;
            let text = if stat.is_dir() {
                self.add(&entry.path(), &name)?;
                format!("dir {mode:o}")
            } else if stat.is_symlink() {
                format!("link {}", fs::read_link(entry.path())?.display())
            } else {
                format!("file {mode:o} {}", fs::read_to_string(entry.path())?)
            };
            let inode = Some(stat.ino());
            self.0.insert(name, Thing { text, inode });
        }
        Ok(())
    }

    /// Whether it is the other, which may leave open which thing a name stands for.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((name, one), (named, other))| {
                    name == named
                        && one.text == other.text
                        && (other.inode.is_none() || one.inode == other.inode)
                })
    }

    /// The names that differ.
    pub(super) fn against(&self, other: &Self) -> String {
        let mut names: Vec<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let told = |of: &Self, name: &str| {
            of.0.get(name)
                .map_or("nothing".to_owned(), |thing| format!("{thing:?}"))
        };
        names
            .into_iter()
            .map(|name| (name, told(self, name), told(other, name)))
            .filter(|(_, here, there)| here != there)
            .map(|(name, here, there)| format!("{name} is {here} and not {there}"))
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn below(&self, top: &str) -> Vec<(String, Thing)> {
        let is_below = |name: &str| {
            name.strip_prefix(top)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.0.iter().filter(|(name, _)| is_below(name));
        found
            .map(|(name, thing)| (name.clone(), thing.clone()))
            .collect()
    }

    fn dir(&mut self, name: &str) {
        let text = "dir 755".to_owned();
        self.0.insert(name.to_owned(), Thing { text, inode: None });
    }

    /// The same, where only what was moved has to be the very thing.
    pub(super) fn as_brought_back(&self, fates: &[Fate]) -> Self {
        let mut back = self.clone();
        for (name, thing) in &mut back.0 {
            let mut moved = NAMES.iter().zip(fates).filter(|(top, fate)| {
                let is_moved = matches!(fate, Fate::Moved | Fate::MovedInto);
                is_moved && name.split('/').nth(1) == Some(top)
            });
            thing.inode = thing.inode.filter(|_| moved.next().is_some());
        }
        back
    }
}

/// What a commit makes of it.
pub(super) fn expected(before: &Picture, fates: &[Fate], makes_dir: bool) -> Picture {
    let mut after = before.clone();
    for (name, fate) in NAMES.iter().zip(fates) {
        let top = format!("/{name}");
        let to = match fate {
            Fate::Stays => continue,
            Fate::Changed => {
                if let Some(thing) = after.0.get_mut(&top).filter(|t| t.text.starts_with("file")) {
                    thing.text = "file 644 changed\n".to_owned();
                    thing.inode = None;
                }
                continue;
            }
            Fate::Deleted => None,
            Fate::Moved => Some(format!("/m{name}")),
            Fate::MovedInto => Some(format!("/n/{name}")),
        };
        for (old, thing) in before.below(&top) {
            after.0.remove(&old);
            if let (Some(to), Some(rest)) = (&to, old.strip_prefix(&top)) {
                after.0.insert(format!("{to}{rest}"), thing);
            }
        }
        if *fate == Fate::MovedInto {
            after.dir("/n");
        }
    }
    if makes_dir {
        after.dir("/made");
        after.dir("/made/in");
    }
    after
}

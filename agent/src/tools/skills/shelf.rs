//! The directory of the skills: what lies where, and reading it.

use std::collections::BTreeMap;

use hermitcrab_core::authority::Verb;
use hermitcrab_sandbox::dircap::Kind;

use crate::runtime::{Hands, Place, Spot, Stop};

/// Where the skills lie.
const ROOT: &str = "~/.hermes/skills";
/// Directories and files one shelf may hold.
const PLACES_MAX: usize = 50_000;
/// Directories that hold no skills, wherever they are.
const NO_SKILLS: &[&str] = &[
    ".git",
    ".github",
    ".hub",
    ".archive",
    ".venv",
    "venv",
    "node_modules",
    "site-packages",
    "__pycache__",
    ".tox",
    ".nox",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
];
/// Directories of a skill for files that belong to it.
pub const PARTS: [&str; 4] = ["assets", "references", "scripts", "templates"];

/// Everything in the directory, links left out.
pub struct Shelf {
    /// The directory, for results.
    pub root: String,
    place: Place,
    /// Names by directory, in the order the file system keeps them; `""` is the top.
    dirs: BTreeMap<String, Vec<(String, Kind)>>,
}

/// A path below a directory of the shelf.
#[must_use]
pub fn below(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        name.to_owned()
    } else {
        format!("{dir}/{name}")
    }
}

impl Shelf {
    /// Looks through the directory.
    ///
    /// # Errors
    /// It was refused, or the machinery failed.
    pub fn open(hands: &mut Hands<'_>) -> Result<Self, Stop> {
        let place = hands.resolve(ROOT)?;
        let mut shelf = Self {
            root: place.absolute.clone(),
            place: place.clone(),
            dirs: BTreeMap::new(),
        };
        // Skills are read as well.
        let looks = [Verb::FsList, Verb::FsRead];
        hands.ask_for_all_unseen(&place, &looks)?;
        // One plain refusal if nothing may be seen at all.
        if hands.look(&place)?.is_none() {
            return Ok(shelf);
        }
        if hands.lacks_all(Verb::FsList, &place) {
            hands.ask_for_all(&place, &looks)?;
        }
        let mut level = vec![(String::new(), place)];
        let mut seen = 0_usize;
        while !level.is_empty() && seen < PLACES_MAX {
            let spots = level.iter().map(|(_, place)| Spot::At(place));
            let listed = hands.names_all(&spots.collect::<Vec<_>>())?;
            let mut next = Vec::new();
            for ((dir, place), entries) in level.iter().zip(listed) {
                let mut names = Vec::new();
                let entries = entries.unwrap_or_default();
                for (name, kind) in entries.iter() {
                    seen += 1;
                    let Ok(name) = String::from_utf8(name.to_vec()) else {
                        continue;
                    };
                    if kind == Kind::Dir
                        && let Some(child) = hands.child(place, name.as_bytes())
                        && hands.freely(Verb::FsList, &child)
                    {
                        next.push((below(dir, &name), child));
                    }
                    names.push((name, kind));
                }
                shelf.dirs.insert(dir.clone(), names);
            }
            level = next;
        }
        Ok(shelf)
    }

    /// Whether there is such a directory.
    #[must_use]
    pub fn has_dir(&self, path: &str) -> bool {
        self.dirs.contains_key(path)
    }

    /// Whether there is such a file.
    #[must_use]
    pub fn has_file(&self, path: &str) -> bool {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.dirs.get(dir).is_some_and(|names| {
            names
                .iter()
                .any(|(known, kind)| known == name && *kind == Kind::File)
        })
    }

    /// Whether nothing else lies beside a path in its directory.
    #[must_use]
    pub fn is_alone(&self, path: &str) -> bool {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        self.dirs.get(above).is_some_and(|names| names.len() == 1)
    }

    /// The directories of all skills, sorted by the paths of their files.
    #[must_use]
    pub fn skills(&self) -> Vec<String> {
        let mut found: Vec<String> = self
            .dirs
            .keys()
            .filter(|dir| self.has_file(&below(dir, "SKILL.md")))
            .filter(|dir| !self.is_support(dir))
            .cloned()
            .collect();
        found.sort_by_key(|dir| below(dir, "SKILL.md"));
        found
    }

    /// Whether a path lies in a place that holds no skills of its own.
    #[must_use]
    pub fn is_support(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        parts.iter().enumerate().any(|(at, part)| {
            let above = parts.get(..at).unwrap_or_default().join("/");
            NO_SKILLS.contains(part)
                || (PARTS.contains(part) && self.has_file(&below(&above, "SKILL.md")))
        })
    }

    /// Every file below a directory, each directory before those in it.
    #[must_use]
    pub fn files_below(&self, dir: &str) -> Vec<String> {
        let mut files = Vec::new();
        let mut todo = vec![dir.to_owned()];
        while let Some(dir) = todo.pop() {
            let names = self.dirs.get(&dir).map(Vec::as_slice).unwrap_or_default();
            files.extend(
                names
                    .iter()
                    .filter(|(_, kind)| *kind == Kind::File)
                    .map(|(name, _)| below(&dir, name)),
            );
            todo.extend(
                names
                    .iter()
                    .rev()
                    .filter(|(_, kind)| *kind == Kind::Dir)
                    .map(|(name, _)| below(&dir, name)),
            );
        }
        files
    }

    /// Every directory below one, the innermost first, itself last.
    #[must_use]
    pub fn dirs_below(&self, dir: &str) -> Vec<String> {
        let inside = format!("{dir}/");
        let mut dirs: Vec<String> = self
            .dirs
            .keys()
            .filter(|known| *known == dir || known.starts_with(&inside))
            .cloned()
            .collect();
        dirs.sort_by_key(|known| std::cmp::Reverse(known.len()));
        dirs
    }

    /// The place of a path on the shelf.
    ///
    /// # Errors
    /// It is no path below the shelf.
    pub fn place(&self, hands: &Hands<'_>, path: &str) -> Result<Place, Stop> {
        let place = hands.resolve(&format!("{}/{path}", self.root))?;
        let inside = std::path::Path::new(&place.absolute).starts_with(&self.root);
        if !inside || place.dir != self.place.dir {
            return Err(Stop::Io(format!(
                "`{path}` is not in the directory of skills"
            )));
        }
        Ok(place)
    }

    /// A file's text; `None` if it is not there or is no text.
    ///
    /// # Errors
    /// It was refused, or the machinery failed.
    pub fn text(&self, hands: &mut Hands<'_>, path: &str) -> Result<Option<String>, Stop> {
        Ok(self
            .bytes(hands, path)?
            .and_then(|content| String::from_utf8(content).ok()))
    }

    /// The same of one of many that are looked through: what the system does not give, or not
    /// whole, is left out, and hides none of the others.
    ///
    /// # Errors
    /// It was refused, or the machinery failed.
    pub fn text_of_one(&self, hands: &mut Hands<'_>, path: &str) -> Result<Option<String>, Stop> {
        match self.text(hands, path) {
            Err(Stop::Io(_) | Stop::System(..)) => Ok(None),
            read => read,
        }
    }

    /// A file's content; `None` if it is not there.
    ///
    /// # Errors
    /// It was refused, or the machinery failed.
    pub fn bytes(&self, hands: &mut Hands<'_>, path: &str) -> Result<Option<Vec<u8>>, Stop> {
        let place = self.place(hands, path)?;
        match hands.read(&place) {
            Ok(content) => Ok(Some(content)),
            Err(Stop::Missing) => Ok(None),
            Err(stop) => Err(stop),
        }
    }
}

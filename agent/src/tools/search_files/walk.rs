//! Every file below a directory, in the order the file system keeps them.
//!
//! A search finds thousands of files and reads a page of them, so a file is a name
//! in a listed directory until it is read or printed.

use std::borrow::Cow;

use hermitcrab_core::authority::Verb;
use hermitcrab_sandbox::dircap::{Kind, Names};

use crate::runtime::{Hands, Place, Spot, Stop};

/// Directories and files one search looks at.
const PLACES_MAX: usize = 200_000;

/// A found file.
#[derive(Clone, Copy)]
pub(super) enum Found<'t> {
    /// A name in a directory: how that is printed, and where it is.
    In(&'t str, &'t Place, &'t [u8]),
    /// A file that has a place of its own, and how it is printed.
    At(&'t str, &'t Place),
}

impl<'t> Found<'t> {
    /// Where it is.
    pub fn spot(self) -> Spot<'t> {
        match self {
            Self::In(_, dir, name) => Spot::In(dir, name),
            Self::At(_, place) => Spot::At(place),
        }
    }

    /// Its name, as printed.
    pub fn name(self) -> Cow<'t, str> {
        match self {
            Self::In(_, _, name) => String::from_utf8_lossy(name),
            Self::At(printed, _) => Cow::Borrowed(printed.rsplit('/').next().unwrap_or(printed)),
        }
    }

    /// As printed.
    pub fn printed(self) -> Cow<'t, str> {
        match self {
            Self::In(dir, _, name) => Cow::Owned(joined(dir, &String::from_utf8_lossy(name))),
            Self::At(printed, _) => Cow::Borrowed(printed),
        }
    }
}

pub(super) fn joined(dir: &str, name: &str) -> String {
    let between = if dir.ends_with('/') { "" } else { "/" };
    // Not by format: every file that is read is printed.
    let mut path = String::with_capacity(dir.len() + between.len() + name.len());
    for part in [dir, between, name] {
        path.push_str(part);
    }
    path
}

/// How much rules keep from being told of or read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Withheld {
    pub files: usize,
    pub dirs: usize,
}

/// All that was listed below a directory.
pub(super) struct Tree {
    // INVARIANT: the first one is where the search began.
    dirs: Vec<Dir>,
    /// Files that have a place of their own.
    own: Vec<(String, Place)>,
    /// Directories that rules keep from being listed.
    withheld: usize,
}

/// A directory whose names are known: its own files come before, after or
/// between those of the directories in it, in the order they are kept in.
struct Dir {
    printed: String,
    place: Place,
    names: Names,
    children: Vec<Child>,
}

/// By number: a name of the directory, a file with a place of its own, a directory.
enum Child {
    Name(usize),
    Own(usize),
    Dir(usize),
}

impl Dir {
    fn new(printed: String, place: Place) -> Self {
        Self {
            printed,
            place,
            names: Names::default(),
            children: Vec::new(),
        }
    }
}

impl Tree {
    /// Every regular file below, hidden directories left out, links not followed.
    /// Level by level, so that one decision covers many directories; `names` are
    /// those of the first one, if it was listed already, and `besides` is what is to be
    /// done to the files. A search asks nobody about
    /// single places: what rules keep is left out before anything is decided.
    pub fn below(
        hands: &mut Hands<'_>,
        path: &str,
        place: &Place,
        (names, besides): (Option<Names>, Option<Verb>),
    ) -> Result<Self, Stop> {
        let mut tree = Self {
            dirs: vec![Dir::new(path.to_owned(), place.clone())],
            own: Vec::new(),
            withheld: 0,
        };
        let mut level = vec![0_usize];
        let names = match names {
            Some(names) => Some(names),
            None => {
                let verbs = std::iter::once(Verb::FsList).chain(besides);
                hands.ask_for_all(place, &verbs.collect::<Vec<_>>())?;
                let listed = hands.names_all(&[Spot::At(place)])?;
                listed.into_iter().next().flatten()
            }
        };
        let mut known = Some(vec![names]);
        let mut seen = 1;
        while !level.is_empty() && seen < PLACES_MAX {
            let listed = match known.take() {
                Some(listed) => listed,
                None => {
                    let dirs = level.iter().filter_map(|at| tree.dirs.get(*at));
                    let spots: Vec<Spot<'_>> = dirs.map(|dir| Spot::At(&dir.place)).collect();
                    hands.names_all(&spots)?
                }
            };
            let mut next = Vec::new();
            for (at, names) in level.iter().zip(listed) {
                let begun = tree.dirs.len();
                tree.fill(hands, *at, names.unwrap_or_default());
                next.extend(begun..tree.dirs.len());
                seen += tree.dirs.get(*at).map_or(0, |dir| dir.children.len());
            }
            level = next;
        }
        Ok(tree)
    }

    /// One file that was named itself.
    pub fn of_file(path: &str, place: &Place) -> Self {
        Self {
            dirs: vec![Dir {
                children: vec![Child::Own(0)],
                ..Dir::new(path.to_owned(), place.clone())
            }],
            own: vec![(path.to_owned(), place.clone())],
            withheld: 0,
        }
    }

    /// Nothing.
    pub const fn empty() -> Self {
        Self {
            dirs: Vec::new(),
            own: Vec::new(),
            withheld: 0,
        }
    }

    /// The names in one of its directories, and those that are directories to look into.
    fn fill(&mut self, hands: &Hands<'_>, at: usize, names: Names) {
        let Some(dir) = self.dirs.get(at) else {
            return;
        };
        let (printed, place) = (dir.printed.clone(), dir.place.clone());
        let are_its_own = hands.names_all_below(&place);
        let mut children = Vec::with_capacity(names.len());
        for (number, (name, kind)) in names.iter().enumerate() {
            let is_dir = match kind {
                Kind::File => false,
                Kind::Dir => true,
                Kind::Symlink | Kind::Special => continue,
            };
            if !is_dir && are_its_own {
                if place.below.may_have(name).is_ok() {
                    children.push(Child::Name(number));
                }
                continue;
            }
            if is_dir && name.starts_with(b".") {
                continue;
            }
            let Some(child) = hands.found(&place, name) else {
                continue;
            };
            if is_dir && !hands.freely(Verb::FsList, &child) {
                self.withheld += usize::from(hands.is_ruled(Verb::FsList, Spot::At(&child)));
                continue;
            }
            let printed = joined(&printed, &String::from_utf8_lossy(name));
            children.push(if is_dir {
                self.dirs.push(Dir::new(printed, child));
                Child::Dir(self.dirs.len() - 1)
            } else {
                self.own.push((printed, child));
                Child::Own(self.own.len() - 1)
            });
        }
        if let Some(dir) = self.dirs.get_mut(at) {
            dir.names = names;
            dir.children = children;
        }
    }

    /// What of it rules keep, if they keep these files as well.
    pub fn withheld<T>(&self, files: &[T]) -> Withheld {
        Withheld {
            files: files.len(),
            dirs: self.withheld,
        }
    }

    /// Its files in order: those of each directory where its name stands.
    pub fn files(&self) -> Vec<Found<'_>> {
        let mut found = Vec::with_capacity(self.dirs.first().map_or(0, |dir| dir.children.len()));
        let mut todo: Vec<(&Dir, std::slice::Iter<'_, Child>)> = Vec::new();
        todo.extend(self.dirs.first().map(|dir| (dir, dir.children.iter())));
        while let Some((dir, rest)) = todo.last_mut() {
            let dir = *dir;
            match rest.next() {
                Some(Child::Name(at)) => found.extend(
                    dir.names
                        .get(*at)
                        .map(|(name, _)| Found::In(&dir.printed, &dir.place, name)),
                ),
                Some(Child::Own(at)) => found.extend(
                    self.own
                        .get(*at)
                        .map(|(printed, place)| Found::At(printed, place)),
                ),
                Some(Child::Dir(at)) => {
                    todo.extend(self.dirs.get(*at).map(|dir| (dir, dir.children.iter())));
                }
                None => {
                    todo.pop();
                }
            }
        }
        found
    }
}

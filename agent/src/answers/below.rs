//! An answer for a directory: what is asked about, and everything like it below.
//!
//! Who works on one part of a project for an hour would be asked about each file in
//! it. What they can hold instead is told with the question, as the directory that all
//! of it has in common, and nothing but what was asked for.

use std::{ffi::OsStr, fmt, os::unix::ffi::OsStrExt as _, path::Path};

use hermitcrab_core::{
    approval::Scope,
    authority::{Extent, Verb},
    standing::{PortableCap, PortableObject},
};

use crate::{
    ports::{Prompt, Wider},
    text::visible::named,
};

/// A directory, and what was asked about below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    dir: String,
    verbs: Vec<Verb>,
    names: usize,
}

impl Below {
    /// What a question is about has in common; `None` if a part of it is no file, if it
    /// may not be held for longer than once, or if only the root holds all of it.
    #[must_use]
    pub fn of(prompt: &Prompt<'_>) -> Option<Self> {
        if prompt.question.widest() == Scope::Once {
            return None;
        }
        Self::of_all(prompt.portable)
    }

    fn of_all(caps: &[Option<PortableCap>]) -> Option<Self> {
        let mut verbs = Vec::new();
        let mut names: Vec<Vec<&[u8]>> = Vec::new();
        let mut has_tree = false;
        for cap in caps {
            let cap = cap.as_ref()?;
            let PortableObject::Place { at: place, extent } = cap.object() else {
                return None;
            };
            has_tree |= *extent == Extent::Tree;
            if !Verb::FILES.contains(&cap.verb()) {
                return None;
            }
            if !verbs.contains(&cap.verb()) {
                verbs.push(cap.verb());
            }
            names.push(place.components().collect());
        }
        verbs.sort_unstable();
        names.sort_unstable();
        names.dedup();
        // Of several names what they share is a directory, and of a single one what
        // is above it, unless that is a directory with all that is in it.
        let (first, last) = (names.first()?, names.last()?);
        let shared = if names.len() == 1 {
            first.len().saturating_sub(usize::from(!has_tree))
        } else {
            first.iter().zip(last).take_while(|(a, b)| a == b).count()
        };
        let above = first.get(..shared).filter(|above| !above.is_empty())?;
        let dir = String::from_utf8(above.join(&b'/')).ok()?;
        Some(Self {
            dir: format!("/{dir}"),
            verbs,
            names: names.len(),
        })
    }

    /// The same, where it is this directory or lies in it.
    #[must_use]
    pub fn within(self, dir: &Path) -> Option<Self> {
        let place = Path::new(OsStr::from_bytes(self.dir.as_bytes()));
        place.starts_with(dir).then_some(self)
    }

    /// The same, where it is only looked at and does not hold this directory: what lies
    /// around somebody's work, a home for one, is not named to them for a file in it.
    #[must_use]
    pub fn looked_at_beside(self, dir: &Path) -> Option<Self> {
        let only_looks = |verb: &Verb| matches!(verb, Verb::FsRead | Verb::FsList);
        let place = Path::new(OsStr::from_bytes(self.dir.as_bytes()));
        let is_beside = !dir.starts_with(place);
        (is_beside && self.verbs.iter().all(only_looks)).then_some(self)
    }

    /// How many names were asked about.
    #[must_use]
    pub const fn names(&self) -> usize {
        self.names
    }

    /// What a person grants with such an answer.
    #[must_use]
    pub fn granted(self) -> Wider {
        Wider {
            verbs: self.verbs,
            dir: self.dir,
        }
    }

    /// The same as words of a command line, where no letter in it means anything there.
    #[must_use]
    pub fn typed(&self) -> Option<String> {
        let word = |verb: &Verb| format!("{verb}={}", self.dir);
        let words: Vec<String> = self.verbs.iter().map(word).collect();
        self.dir.chars().all(is_plain).then(|| words.join(" "))
    }
}

/// Whether a letter of a name means nothing on a command line.
pub(super) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "/._-+@".contains(letter)
}

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<&str> = self.verbs.iter().map(|verb| verb.as_str()).collect();
        // A name is chosen by somebody else: it neither draws nor reads like more of this.
        let dir = named(&self.dir);
        // The directory itself is held with what is in it: its mode, its name.
        write!(f, "{} on {dir} and anything in it", verbs.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::path::RelPath;

    use super::*;

    fn of(asked: &[(Verb, &str)]) -> Option<Below> {
        let cap = |(verb, place): &(Verb, &str)| {
            let place = RelPath::parse(place.as_bytes()).unwrap();
            Some(PortableCap::new(*verb, PortableObject::alone(place)).unwrap())
        };
        Below::of_all(&asked.iter().map(cap).collect::<Vec<_>>())
    }

    #[test]
    fn it_is_the_deepest_directory_that_holds_all_of_it() {
        use Verb::{FsCreate, FsDelete, FsModify};
        let check = |asked: &[(Verb, &str)], wanted: Option<&str>| {
            assert_eq!(of(asked).map(|below| below.to_string()).as_deref(), wanted);
        };
        check(
            &[(FsModify, "w/src/a")],
            Some("fs.modify on /w/src and anything in it"),
        );
        check(
            &[(FsModify, "w/src/a"), (FsCreate, "w/src/b")],
            Some("fs.create, fs.modify on /w/src and anything in it"),
        );
        // One name twice is a single one.
        check(
            &[(FsModify, "w/src/a"), (FsDelete, "w/src/a")],
            Some("fs.modify, fs.delete on /w/src and anything in it"),
        );
        // A directory that is made, and what is made in it.
        check(
            &[
                (FsCreate, "w/out"),
                (FsCreate, "w/out/x"),
                (FsCreate, "w/out/y/z"),
            ],
            Some("fs.create on /w/out and anything in it"),
        );
        check(
            &[(FsCreate, "w/source/x"), (FsCreate, "w/src/x")],
            Some("fs.create on /w and anything in it"),
        );
        // Letters in common are no directory in common, and the root is none to hold.
        check(&[(FsCreate, "wa/x"), (FsCreate, "wb/x")], None);
        check(&[(FsCreate, "x")], None);
        check(&[], None);
        assert_eq!(Below::of_all(&[None]), None);
    }

    #[test]
    fn what_lies_elsewhere_or_above_is_not_within() {
        let below = |dir: &str| {
            of(&[(Verb::FsModify, "w/src/a")])
                .unwrap()
                .within(Path::new(dir))
        };
        assert!(below("/w/src").is_some());
        assert!(below("/w").is_some());
        assert!(below("/w/src/a").is_none());
        assert!(below("/w/sr").is_none());
    }

    #[test]
    fn of_a_directory_with_all_in_it_it_is_that_directory() {
        let place = RelPath::parse(b"o/logs").unwrap();
        let cap = PortableCap::new(Verb::FsRead, PortableObject::tree(place)).unwrap();
        let below = Below::of_all(&[Some(cap)]).unwrap();
        assert_eq!(below.typed().as_deref(), Some("fs.read=/o/logs"));
    }

    #[test]
    fn what_is_only_looked_at_is_named_beside_the_workspace_and_not_around_it() {
        let check = |asked: &[(Verb, &str)], wanted: Option<&str>| {
            let below = of(asked).unwrap().looked_at_beside(Path::new("/h/u/w"));
            assert_eq!(below.and_then(|below| below.typed()).as_deref(), wanted);
        };
        check(&[(Verb::FsRead, "o/logs/a")], Some("fs.read=/o/logs"));
        check(&[(Verb::FsList, "h/u/v/a")], Some("fs.list=/h/u/v"));
        check(&[(Verb::FsRead, "h/u/notes")], None);
        check(&[(Verb::FsRead, "h/x")], None);
        check(&[(Verb::FsModify, "o/logs/a")], None);
        check(&[(Verb::FsRead, "o/a"), (Verb::FsDelete, "o/a")], None);
    }

    #[test]
    fn a_name_that_is_more_than_a_word_is_not_told_as_one() {
        let typed = |place: &str| of(&[(Verb::FsModify, place)]).unwrap().typed();
        assert_eq!(typed("w/src/a").as_deref(), Some("fs.modify=/w/src"));
        assert_eq!(typed("w/a b/c"), None);
        assert_eq!(typed("w/$(x)/c"), None);
        let drawn = of(&[(Verb::FsModify, "w/\u{1b}[2J/c")])
            .unwrap()
            .to_string();
        assert!(!drawn.contains('\u{1b}'), "{drawn}");
        let longer = of(&[(Verb::FsModify, "w/a, only once/c")]).unwrap();
        let words = "fs.modify on \"/w/a, only once\" and anything in it";
        assert_eq!(longer.to_string(), words);
    }
}

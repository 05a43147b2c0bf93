//! The sum of a question that is longer than a screen: how much it is, and where.
//!
//! All of it stands above. Who builds something reads hundreds of names in one directory
//! and has to find the two that lie elsewhere; the sum, beside the question, names them.

use std::{collections::BTreeMap, fmt};

use hermitcrab_core::{
    authority::Verb,
    standing::{PortableCap, PortableObject},
};

use super::{below::is_plain, count};
use crate::{ports::Prompt, text::visible::named};

/// Lines a person sees at once; what is longer is summed up below.
const LINES_AT_ONCE: usize = 30;
/// So many places are named; of more, those with the fewest names.
const PLACES_MAX: usize = 6;
/// Of so many names in a new directory a grant of it is worth a word.
const NAMES_FOR_A_GRANT: usize = 10;

/// Where what is shown is longer than a screen: how much it is, in lines that
/// stand beside the question. One long line takes as many `rows` as many short ones.
#[must_use]
pub fn in_all(prompt: &Prompt<'_>, rows: usize) -> Option<String> {
    let lines = prompt.shown.trim_end().lines().count();
    let changes: Vec<String> = [
        (Verb::FsCreate, "created"),
        (Verb::FsModify, "changed"),
        (Verb::FsDelete, "deleted"),
    ]
    .into_iter()
    .map(|(verb, word)| (count(prompt, verb), word))
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| format!("{number} {word}"))
    .collect();
    let long = match rows > lines {
        true => format!("{lines} lines in {rows} rows"),
        false => format!("{lines} lines"),
    };
    let places = Places::of(prompt.portable)
        .map(|places| format!("\nof these, {places}"))
        .unwrap_or_default();
    (rows.max(lines) > LINES_AT_ONCE && !changes.is_empty()).then(|| {
        format!(
            "{long}; files and directories: {}{places}",
            changes.join(", ")
        )
    })
}

/// Where a directory that is made holds most of it, as what a build makes: the grant of
/// it, for whoever asks what can be answered.
#[must_use]
pub fn grant_of_most(prompt: &Prompt<'_>) -> Option<String> {
    let grant = Places::of(prompt.portable)?.most()?;
    Some(format!(
        "  to hold all of the new directory, and not be asked: `grant {grant}` at the prompt, `hermitcrab caps grant` to keep it\n"
    ))
}

/// How many names lie where, below the directory that all of them share.
struct Places<'c> {
    above: Vec<&'c [u8]>,
    /// Those with the fewest names first.
    parts: Vec<Part<'c>>,
}

/// What lies under one name.
struct Part<'c> {
    names: usize,
    name: &'c [u8],
    /// It is a file or an empty directory, or it is asked about by itself.
    is_alone: bool,
    is_new: bool,
}

impl<'c> Places<'c> {
    /// `None` for a single place, and if something is no file.
    fn of(caps: &'c [Option<PortableCap>]) -> Option<Self> {
        let mut names: Vec<(Vec<&[u8]>, bool)> = Vec::new();
        for cap in caps {
            let cap = cap.as_ref()?;
            let PortableObject::Place { at: place, .. } = cap.object() else {
                return None;
            };
            let is_new = cap.verb() == Verb::FsCreate;
            names.push((place.components().collect(), is_new));
        }
        names.sort_unstable();
        names.dedup_by(|(later, is_new), (name, was_new)| {
            let is_same = later == name;
            *was_new |= is_same && *is_new;
            is_same
        });
        let ((first, _), (last, _)) = (names.first()?, names.last()?);
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let above = first.get(..shared)?.to_vec();
        let mut parts: BTreeMap<&[u8], Part<'_>> = BTreeMap::new();
        for (name, is_new) in &names {
            let Some(named) = name.get(shared) else {
                continue;
            };
            let is_alone = name.len() == shared + 1;
            let part = parts.entry(named).or_insert(Part {
                names: 0,
                name: named,
                is_alone: true,
                is_new: false,
            });
            part.names += 1;
            part.is_new |= is_alone && *is_new;
            part.is_alone &= is_alone;
        }
        let mut parts: Vec<Part<'_>> = parts.into_values().collect();
        parts.sort_by_key(|part| (part.names, part.name));
        (parts.len() > 1).then_some(Self { above, parts })
    }

    /// A grant of the new directory that most names lie in, where no letter of it means
    /// anything on a command line. Whatever made it will change and remove it as well.
    fn most(&self) -> Option<String> {
        let most = self.parts.last()?;
        let all: usize = self.parts.iter().map(|part| part.names).sum();
        let dir = [&self.above[..], &[most.name]].concat().join(&b'/');
        let dir = String::from_utf8(dir).ok()?;
        let is_most = most.names >= NAMES_FOR_A_GRANT && most.names * 2 > all;
        (is_most && most.is_new && !most.is_alone && dir.chars().all(is_plain))
            .then(|| format!("{}=/{dir}", Verb::FILES_AS_STR))
    }
}

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = self.above.join(&b'/');
        let above = named(&format!("/{}", String::from_utf8_lossy(&above)));
        let mut told: Vec<String> = Vec::new();
        for part in self.parts.iter().take(PLACES_MAX) {
            let name = named(&String::from_utf8_lossy(part.name));
            told.push(match part.is_alone {
                true => name,
                false => format!("{} in {name}", part.names),
            });
        }
        let more = self.parts.get(PLACES_MAX..).unwrap_or_default();
        if !more.is_empty() {
            let names: usize = more.iter().map(|part| part.names).sum();
            told.push(format!("{names} in {} more places", more.len()));
        }
        write!(f, "in {above}: {}", told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::path::RelPath;

    use super::*;

    fn of(asked: &[&str]) -> Option<String> {
        let cap = |place: &&str| {
            let place = RelPath::parse(place.as_bytes()).unwrap();
            Some(PortableCap::new(Verb::FsCreate, PortableObject::alone(place)).unwrap())
        };
        let caps: Vec<_> = asked.iter().map(cap).collect();
        Places::of(&caps).map(|places| places.to_string())
    }

    fn most(asked: &[(Verb, &str)]) -> Option<String> {
        let cap = |(verb, place): &(Verb, &str)| {
            let place = RelPath::parse(place.as_bytes()).unwrap();
            Some(PortableCap::new(*verb, PortableObject::alone(place)).unwrap())
        };
        let caps: Vec<_> = asked.iter().map(cap).collect();
        Places::of(&caps)?.most()
    }

    #[test]
    fn a_new_directory_that_holds_most_of_it_can_be_held() {
        use Verb::{FsCreate, FsModify};
        let built: Vec<String> = (0..40).map(|n| format!("w/target/o{n}")).collect();
        let mut asked: Vec<(Verb, &str)> = built.iter().map(|name| (FsCreate, &**name)).collect();
        asked.push((FsModify, "w/Cargo.lock"));
        // It was there before: what else is in it nobody has seen.
        assert_eq!(most(&asked), None);
        asked.push((FsCreate, "w/target"));
        assert_eq!(most(&asked).as_deref(), Some("fs.*=/w/target"));
        // Half of it is not most of it.
        let elsewhere: Vec<String> = (0..40).map(|n| format!("w/src/o{n}")).collect();
        asked.extend(elsewhere.iter().map(|name| (FsCreate, &**name)));
        assert_eq!(most(&asked), None);
        let odd: Vec<String> = (0..40).map(|n| format!("w/a b/o{n}")).collect();
        let mut asked: Vec<(Verb, &str)> = odd.iter().map(|name| (FsCreate, &**name)).collect();
        asked.extend([(FsCreate, "w/a b"), (FsCreate, "w/x")]);
        assert_eq!(most(&asked), None);
        // One large file is no directory.
        assert_eq!(most(&[(FsCreate, "w/a"), (FsCreate, "w/b")]), None);
    }

    #[test]
    fn the_few_elsewhere_are_named_before_the_many() {
        let built: Vec<String> = (0..40).map(|n| format!("w/target/o{n}")).collect();
        let mut asked: Vec<&str> = built.iter().map(String::as_str).collect();
        asked.extend(["w/target", "w/Cargo.lock", "w/src/a.rs", "w/src/b/c.rs"]);
        let told = of(&asked);
        assert_eq!(
            told.as_deref(),
            Some("in /w: Cargo.lock, 2 in src, 41 in target")
        );
        // A name asked about twice, as where it is made and changed, is one name.
        asked.push("w/Cargo.lock");
        assert_eq!(of(&asked), told);
    }

    #[test]
    fn of_many_places_those_with_the_fewest_names_are_told() {
        let mut asked: Vec<String> = (0..8).map(|n| format!("w/d{n}/x")).collect();
        asked.push("w/d7/y".to_owned());
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let told = of(&asked).unwrap();
        assert!(told.contains("1 in d0, 1 in d1"), "{told}");
        assert!(told.ends_with("3 in 2 more places"), "{told}");
    }

    #[test]
    fn one_place_or_what_is_no_file_is_told_nowhere() {
        assert_eq!(of(&["w/out", "w/out/x"]), None);
        assert_eq!(of(&["w/x"]), None);
        assert_eq!(of(&[]), None);
        assert!(Places::of(&[None]).is_none());
    }

    #[test]
    fn a_name_reads_like_nothing_else() {
        let told = of(&["w/a, 9 in b", "w/\u{1b}[2J"]).unwrap();
        assert!(told.contains("\"a, 9 in b\""), "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
    }
}

//! The grants that would let what a command changed stand, as few as say it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use hermitcrab_core::authority::Verb;

use super::quoted;
use crate::runtime::Lacking;

/// More places than anybody types.
const PLACES_MAX: usize = 4;

/// What is lacked at a place and below it.
#[derive(Default)]
struct Place {
    verbs: BTreeSet<Verb>,
    /// Whether it stands for what is below it, now and later: what a program keeps there it
    /// will change and remove as well.
    is_whole: bool,
}

/// They as flags of `exec`, named from a directory; nothing where nothing is lacked.
pub(super) fn flags(lacking: &[Lacking], from: &Path) -> Option<String> {
    let mut places = places(lacking);
    if places.len() > PLACES_MAX {
        places = merged(places, |path, shared| {
            let first = shared.components().count() + 1;
            path.components().take(first).collect()
        });
    }
    if places.len() > PLACES_MAX {
        places = merged(places, |_, shared| shared.to_owned());
    }
    let mut flags = Vec::new();
    for (path, place) in places {
        let on = match path.strip_prefix(from) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        };
        // All of what somebody works on is more than to say in one word.
        let verbs: Vec<&str> = match place.is_whole && on != "." {
            true => vec!["fs.*"],
            false => place.verbs.iter().map(|verb| verb.as_str()).collect(),
        };
        flags.extend(
            verbs
                .iter()
                .map(|verb| format!("--grant {}", quoted(&format!("{verb}={on}")))),
        );
    }
    (!flags.is_empty()).then(|| flags.join(" "))
}

/// By the topmost of the directories that are new, or by itself.
fn places(lacking: &[Lacking]) -> BTreeMap<PathBuf, Place> {
    let new_dirs: BTreeSet<&Path> = lacking
        .iter()
        .filter(|lacking| lacking.is_new_dir)
        .map(|lacking| lacking.path.as_path())
        .collect();
    let mut places: BTreeMap<PathBuf, Place> = BTreeMap::new();
    for lacking in lacking {
        let above = lacking.path.ancestors();
        let top = above.filter(|above| new_dirs.contains(above)).last();
        let place = places
            .entry(top.unwrap_or(&lacking.path).to_owned())
            .or_default();
        place.verbs.insert(lacking.verb);
        place.is_whole |= top.is_some();
    }
    places
}

/// Fewer places: those that this puts together.
fn merged(
    places: BTreeMap<PathBuf, Place>,
    together: impl Fn(&Path, &Path) -> PathBuf,
) -> BTreeMap<PathBuf, Place> {
    let shared = shared(places.keys());
    let mut groups: BTreeMap<PathBuf, Vec<(PathBuf, Place)>> = BTreeMap::new();
    for (path, place) in places {
        let group = together(&path, &shared);
        groups.entry(group).or_default().push((path, place));
    }
    let mut merged = BTreeMap::new();
    for (_, group) in groups {
        let at = self::shared(group.iter().map(|(path, _)| path));
        let is_whole = group.len() > 1 || group.iter().any(|(_, place)| place.is_whole);
        let verbs = group
            .into_iter()
            .flat_map(|(_, place)| place.verbs)
            .collect();
        merged.insert(at, Place { verbs, is_whole });
    }
    merged
}

/// What all paths begin with.
fn shared<'p>(mut paths: impl Iterator<Item = &'p PathBuf>) -> PathBuf {
    let Some(first) = paths.next() else {
        return PathBuf::new();
    };
    paths.fold(first.clone(), |shared, path| {
        let alike = shared.components().zip(path.components());
        alike
            .take_while(|(one, other)| one == other)
            .map(|(one, _)| one)
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacked(verb: Verb, path: &str) -> Lacking {
        Lacking {
            verb,
            path: Path::new("/w").join(path.trim_end_matches('/')),
            is_new_dir: path.ends_with('/'),
        }
    }

    #[test]
    fn a_few_flags_say_what_would_let_all_of_it_stand() {
        let check = |lacking: &[(Verb, &str)], expected: &str| {
            let lacking: Vec<Lacking> = lacking
                .iter()
                .map(|(verb, path)| lacked(*verb, path))
                .collect();
            let flags = flags(&lacking, Path::new("/w"));
            assert_eq!(flags.unwrap_or_default(), expected);
        };
        use Verb::{FsCreate as Create, FsDelete as Delete, FsModify as Modify};
        check(&[], "");
        check(&[(Modify, "a b.txt")], "--grant 'fs.modify=a b.txt'");
        check(
            &[
                (Create, "Cargo.lock"),
                (Create, "target/"),
                (Create, "target/debug/"),
                (Create, "target/debug/x"),
            ],
            "--grant fs.create=Cargo.lock --grant 'fs.*=target'",
        );
        // What is there already, changed in many places.
        let many: Vec<String> = (0..9).map(|n| format!("target/debug/{n}")).collect();
        let many: Vec<(Verb, &str)> = many.iter().map(|path| (Modify, path.as_str())).collect();
        check(&many, "--grant 'fs.*=target/debug'");
        let other = [(Create, "a"), (Delete, "z")];
        check(
            &[&other[..1], &many, &other[1..]].concat(),
            "--grant fs.create=a --grant 'fs.*=target/debug' --grant fs.delete=z",
        );
        let all: Vec<String> = (0..9).map(|n| format!("{n}.js")).collect();
        let mut all: Vec<(Verb, &str)> = all.iter().map(|path| (Modify, path.as_str())).collect();
        all.push((Delete, "old"));
        check(&all, "--grant fs.modify=. --grant fs.delete=.");
        check(
            &[(Create, "/elsewhere/x")],
            "--grant fs.create=/elsewhere/x",
        );
    }
}

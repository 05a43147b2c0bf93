//! The grants that would let what a command changed stand, as few as say it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use hermitcrab_core::authority::Verb;

use crate::cli::quoted::quoted;
use crate::{runtime::Lacking, screen::on_one_line};

/// More places than anybody types.
const PLACES_MAX: usize = 4;

/// What is lacked at a place and below it.
#[derive(Default)]
struct Place {
    verbs: BTreeSet<Verb>,
    /// The directory a command sees it in.
    within: PathBuf,
    /// Whether it stands for what is below it, now and later: what a program keeps there it
    /// will change and remove as well.
    is_whole: bool,
}

/// Each as `VERB=PLACE`, named from a directory; none where nothing is lacked, or where that
/// cannot be said in a few words that mean the same to whoever types them.
pub(super) fn grants(lacking: &[Lacking], from: &Path) -> Option<Vec<String>> {
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
    if places.len() > PLACES_MAX {
        return None;
    }
    let mut grants = Vec::new();
    for (path, place) in places {
        let on = named(&path, from)?;
        // All of what somebody works on is more than to say in one word.
        let verbs: Vec<&str> = match place.is_whole && path != place.within {
            true => vec!["fs.*"],
            false => place.verbs.iter().map(|verb| verb.as_str()).collect(),
        };
        grants.extend(verbs.iter().map(|verb| quoted(&format!("{verb}={on}"))));
    }
    (!grants.is_empty()).then_some(grants)
}

/// What of it no grant lets stand, where there is something, as somebody in this directory
/// names it.
pub(super) fn asked_always(lacking: &[Lacking], from: &Path) -> Option<String> {
    let mut asked = lacking.iter().filter(|lacking| lacking.is_asked_always);
    let first = asked.next()?;
    Some(match named(&first.path, from) {
        Some(name) => format!("`{name}`"),
        None => "some of it".to_owned(),
    })
}

/// A path as a flag names it. A command chooses its names: nothing where one is not shown as
/// it is, or would be more than a name to the shell if the marks around it were copied.
fn named(path: &Path, from: &Path) -> Option<String> {
    let on = match path.strip_prefix(from) {
        Ok(below) if below.as_os_str().is_empty() => ".",
        Ok(below) => below.to_str()?,
        Err(_) => path.to_str()?,
    };
    if on_one_line(on) != on || on.contains('`') {
        return None;
    }
    // To a flag these stand for the home of somebody, and for anything.
    match on.starts_with('~') || on == "*" {
        true => Some(format!("./{on}")),
        false => Some(on.to_owned()),
    }
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
        place.within.clone_from(&lacking.within);
        place.is_whole |= top.is_some();
    }
    places
}

/// Fewer places: those that this puts together, of what a command sees in one directory.
fn merged(
    places: BTreeMap<PathBuf, Place>,
    together: impl Fn(&Path, &Path) -> PathBuf,
) -> BTreeMap<PathBuf, Place> {
    let mut seen: BTreeMap<PathBuf, Vec<(PathBuf, Place)>> = BTreeMap::new();
    for (path, place) in places {
        let within = place.within.clone();
        seen.entry(within).or_default().push((path, place));
    }
    let mut merged = BTreeMap::new();
    for (within, places) in seen {
        let shared = shared(places.iter().map(|(path, _)| path));
        let mut groups: BTreeMap<PathBuf, Vec<(PathBuf, Place)>> = BTreeMap::new();
        for (path, place) in places {
            let group = together(&path, &shared);
            groups.entry(group).or_default().push((path, place));
        }
        for group in groups.into_values() {
            let at = self::shared(group.iter().map(|(path, _)| path));
            let is_whole = group.len() > 1 || group.iter().any(|(_, place)| place.is_whole);
            let place = Place {
                verbs: group
                    .into_iter()
                    .flat_map(|(_, place)| place.verbs)
                    .collect(),
                within: within.clone(),
                is_whole,
            };
            merged.insert(at, place);
        }
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

    /// They as flags of `exec`.
    fn flags(lacking: &[Lacking], from: &str) -> Option<String> {
        let flags = grants(lacking, Path::new(from))?;
        let flags = flags.iter().map(|grant| format!("--grant {grant}"));
        Some(flags.collect::<Vec<_>>().join(" "))
    }

    fn lacked(verb: Verb, path: &str) -> Lacking {
        lacked_in("/w", verb, path)
    }

    fn lacked_in(within: &str, verb: Verb, path: &str) -> Lacking {
        Lacking {
            verb,
            path: Path::new(within).join(path.trim_end_matches('/')),
            within: within.into(),
            is_new_dir: path.ends_with('/'),
            is_asked_always: path.ends_with(".env"),
        }
    }

    #[test]
    fn a_few_flags_say_what_would_let_all_of_it_stand() {
        let check = |lacking: &[(Verb, &str)], expected: &str| {
            let lacking: Vec<Lacking> = lacking
                .iter()
                .map(|(verb, path)| lacked(*verb, path))
                .collect();
            let flags = flags(&lacking, "/w");
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

    #[test]
    fn a_name_means_to_a_flag_and_a_shell_what_it_is_or_is_not_told() {
        let told = |path: &str| flags(&[lacked(Verb::FsCreate, path)], "/w");
        for (path, expected) in [
            ("~/", "--grant 'fs.*=./~'"),
            ("~root", "--grant 'fs.create=./~root'"),
            ("~/x", "--grant 'fs.create=./~/x'"),
            ("*", "--grant 'fs.create=./*'"),
            ("a*", "--grant 'fs.create=a*'"),
            ("-x", "--grant fs.create=-x"),
            ("$(x)", "--grant 'fs.create=$(x)'"),
            ("it's", "--grant 'fs.create=it'\\''s'"),
        ] {
            assert_eq!(told(path).as_deref(), Some(expected), "{path}");
        }
        for path in [
            "a\nhermitcrab: all is well",
            "a\rb",
            "a\tb",
            "a\u{1b}[2Kb",
            "a\u{202e}b",
            "a\u{a0}b",
            "a`;x;`",
        ] {
            assert_eq!(told(path), None, "{path:?}");
        }
    }

    #[test]
    fn what_several_directories_share_is_not_granted_with_them() {
        let many = |within: &str| -> Vec<Lacking> {
            (0..9)
                .map(|n| lacked_in(within, Verb::FsModify, &n.to_string()))
                .collect()
        };
        let all = [many("/home/u/p"), many("/home/u/q")].concat();
        assert_eq!(
            flags(&all, "/home/u/p").as_deref(),
            Some("--grant fs.modify=. --grant fs.modify=/home/u/q")
        );
        // Nor is all of what is worked on, from wherever it is named.
        assert_eq!(
            flags(&many("/home/u/p"), "/home/u/p/sub").as_deref(),
            Some("--grant fs.modify=/home/u/p")
        );
        let all: Vec<Lacking> = ["a", "b", "c", "d", "e"]
            .iter()
            .flat_map(|dir| many(&format!("/home/u/{dir}")))
            .collect();
        assert_eq!(flags(&all, "/home/u/a"), None);
    }
}

//! The directory capability against an independent implementation.
//!
//! cap-std keeps paths below a directory too, by another mechanism. On random
//! trees of files, directories and links and random paths both must agree on
//! whether a file can be read and on what it holds. The stated differences:
//! `..` and special files are refused here before anything is opened.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::symlink;
use std::path::Path;

use hermitcrab_core::Permit;
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::{PathError, RelPath};
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::{DirCap, FsError, Stat};
use proptest::prelude::*;
use support::{with_permit, with_permits};

/// One thing in a random tree; later ones that do not fit are left out.
#[derive(Clone, Debug)]
enum Item {
    File(String),
    Dir(String),
    Link(String, String),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c"])
}

fn place() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "..", "."]), 1..4)
            .prop_map(|names| names.join("/")),
        1 => Just("/etc/hostname".to_owned()),
        1 => Just("/proc/self/cwd".to_owned()),
        1 => Just("../outside/secret".to_owned()),
        1 => Just("../root/a".to_owned()),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        place().prop_map(Item::File),
        place().prop_map(Item::Dir),
        (place(), target()).prop_map(|(place, target)| Item::Link(place, target)),
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::collection::vec(prop::sample::select(vec!["a", "b", "c", ".", ".."]), 1..5)
            .prop_map(|names| names.join("/")),
        1 => Just("/etc/hostname".to_owned()),
        1 => Just(String::new()),
    ]
}

fn build(root: &Path, items: &[Item]) {
    for item in items {
        match item {
            Item::File(place) => {
                // A parent that is a link could lead out of the tree.
                if plain_parent(root, place) {
                    let _fits = std::fs::write(root.join(place), format!("content of {place}"));
                }
            }
            Item::Dir(place) => {
                if plain_parent(root, place) {
                    let _fits = std::fs::create_dir(root.join(place));
                }
            }
            Item::Link(place, target) => {
                if plain_parent(root, place) {
                    let _fits = symlink(target, root.join(place));
                }
            }
        }
    }
}

fn plain_parent(root: &Path, place: &str) -> bool {
    let mut here = root.to_owned();
    let names: Vec<_> = place.split('/').collect();
    for name in &names[..names.len() - 1] {
        here.push(name);
        if !here.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return false;
        }
    }
    !root.join(place).is_symlink()
}

/// What comes of an attempt, to be compared: errors by their words.
fn came<R>(result: Result<R, FsError>) -> Result<R, String> {
    result.map_err(|error| error.to_string())
}

/// Facts and way of a name in one look and in two.
type Looked = Result<(Stat, Result<RelPath, String>), String>;

fn at_once(dir: &DirCap, path: &RelPath) -> Looked {
    let action = || Action::on_path(Verb::FsRead, support::dir_id(), path.clone(), Digest::NONE);
    let actions = vec![action().unwrap(), action().unwrap()];
    let looked = with_permits(Tool::Directory, actions, |mut permits| {
        let (facts, way) = (permits.pop().unwrap(), permits.pop().unwrap());
        dir.stat_and_leads_to(facts, way, path)
    });
    came(looked).map(|(stat, way)| (stat, came(way)))
}

fn one_by_one(dir: &DirCap, path: &RelPath) -> Looked {
    let look = |permit: Permit<'_>| dir.stat(permit, path);
    let stat = came(with_permit(Verb::FsRead, path, Digest::NONE, look))?;
    let way = |permit: Permit<'_>| dir.leads_to(permit, path);
    Ok((
        stat,
        came(with_permit(Verb::FsRead, path, Digest::NONE, way)),
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_read_the_same_or_both_refuse(
        items in prop::collection::vec(item(), 0..12),
        paths in prop::collection::vec(path(), 1..12),
    ) {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("outside")).unwrap();
        std::fs::write(temp.path().join("outside/secret"), "secret").unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir(&root).unwrap();
        build(&root, &items);
        let ours = hermitcrab_sandbox::DirCap::open_ambient_dir(&root, support::dir_id()).unwrap();
        let theirs = cap_std::fs::Dir::open_ambient_dir(&root, cap_std::ambient_authority()).unwrap();
        for path in &paths {
            let parsed = match RelPath::parse(path.as_bytes()) {
                Ok(parsed) => parsed,
                Err(error) => {
                    // Refused by its form: nothing of it may be readable by
                    // them unless it only has a `..` that stays inside.
                    if theirs.read(path).is_ok() {
                        prop_assert_eq!(error, PathError::Escapes);
                    }
                    continue;
                }
            };
            let mine = with_permit(Verb::FsRead, &parsed, Digest::NONE, |permit| {
                ours.read(permit, &parsed, 1 << 16)
            });
            match (mine, theirs.read(path)) {
                (Ok(mine), Ok(theirs)) => prop_assert_eq!(mine, theirs),
                (Err(_), Err(_)) => {}
                (mine, theirs) => prop_assert!(false, "{path}: {mine:?} against {theirs:?}"),
            }
        }
    }

    #[test]
    fn a_name_says_in_one_look_what_it_says_in_two_and_directly_what_it_leads_to(
        items in prop::collection::vec(item(), 0..12),
        paths in prop::collection::vec(path(), 1..12),
    ) {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("outside")).unwrap();
        std::fs::write(temp.path().join("outside/secret"), "secret").unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir(&root).unwrap();
        build(&root, &items);
        let dir = DirCap::open_ambient_dir(&root, support::dir_id()).unwrap();
        for path in paths.iter().filter_map(|path| RelPath::parse(path.as_bytes()).ok()) {
            let looked = at_once(&dir, &path);
            prop_assert_eq!(&looked, &one_by_one(&dir, &path));
            let read = |path: &RelPath| with_permit(Verb::FsRead, path, Digest::NONE, |permit| {
                dir.read(permit, path, 1 << 16)
            });
            let directly = |path: &RelPath| with_permit(Verb::FsRead, path, Digest::NONE, |permit| {
                dir.read_direct(permit, path, 1 << 16)
            });
            let listed = |path: &RelPath| with_permit(Verb::FsList, path, Digest::NONE, |permit| {
                dir.list(permit, path)
            });
            let listed_directly = |path: &RelPath| with_permit(Verb::FsList, path, Digest::NONE, |permit| {
                dir.list_direct_as_found(permit, path).map(|names| names.entries())
            });
            match looked {
                Ok((_, Ok(way))) => {
                    // Where it leads it is the same thing, and no link is on the way there.
                    let real = root.join(path.to_string()).canonicalize().unwrap();
                    let told = root.canonicalize().unwrap().join(way.to_string());
                    prop_assert_eq!(told.canonicalize().unwrap(), real);
                    // A link that spells out the way from above is told, and not gone through.
                    let is_outside = |error: &FsError| {
                        matches!(error, FsError::Denied(denial) if denial.code() == DenialCode::OutsideRoot)
                    };
                    let through = read(&path);
                    if !through.as_ref().is_err_and(is_outside) {
                        prop_assert_eq!(came(directly(&way)).ok(), came(through).ok());
                        let mut names = listed_directly(&way).ok();
                        names.iter_mut().for_each(|names| names.sort());
                        prop_assert_eq!(names, listed(&path).ok());
                    }
                    if way != path {
                        for refused in [
                            directly(&path).map(drop),
                            listed_directly(&path).map(drop),
                        ] {
                            let is_link = matches!(
                                &refused,
                                Err(FsError::Denied(denial)) if denial.code() == DenialCode::SymlinkRefused
                            );
                            prop_assert!(is_link, "{path}: {refused:?}");
                        }
                    }
                }
                Ok((_, Err(_))) | Err(_) => {
                    prop_assert!(directly(&path).is_err() && listed_directly(&path).is_err());
                }
            }
        }
    }
}

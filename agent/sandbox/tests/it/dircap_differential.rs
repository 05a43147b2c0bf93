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

use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::{PathError, RelPath};
use proptest::prelude::*;
use support::with_permit;

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
}

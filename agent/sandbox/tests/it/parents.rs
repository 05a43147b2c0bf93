//! A new file and the directories on the way to it come at once or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::dir_digest;
use hermitcrab_sandbox::journal::{NewFile, Placed, Then, Watch};
use hermitcrab_sandbox::{FsError, Journal, sha256};
use support::{Workspace, dir_id, rel, tree, with_permits};

const DIR_MODE: u32 = 0o755;

fn create(path: &RelPath, digest: Digest) -> Action {
    Action::on_path(Verb::FsCreate, dir_id(), path.clone(), digest).unwrap()
}

/// Permits for exactly what is put.
fn fitting(new: &NewFile<'_>) -> Vec<Action> {
    let dirs = new.parents.iter();
    dirs.map(|path| create(path, dir_digest(new.dir_mode)))
        .chain([create(new.path, sha256(new.content))])
        .collect()
}

fn put_with(
    journal: &Journal,
    workspace: &Workspace,
    new: &NewFile<'_>,
    actions: Vec<Action>,
) -> Result<Placed, FsError> {
    with_permits(Tool::Directory, actions, |permits| {
        journal.put_with_parents(&workspace.cap, permits, new)
    })
}

/// Puts `a/b/c.txt`, of which only what `parents` does not name is there.
fn put(journal: &Journal, workspace: &Workspace, parents: &[&str]) -> Result<Placed, FsError> {
    let parents: Vec<RelPath> = parents.iter().map(|path| rel(path)).collect();
    let path = rel("a/b/c.txt");
    let new = new(&parents, &path);
    put_with(journal, workspace, &new, fitting(&new))
}

fn new<'a>(parents: &'a [RelPath], path: &'a RelPath) -> NewFile<'a> {
    NewFile {
        parents,
        path,
        content: b"text\n",
        mode: 0o600,
        dir_mode: DIR_MODE,
    }
}

fn open(workspace: &Workspace) -> Journal {
    Journal::open(workspace.state.path()).unwrap().0
}

/// What the journal has on note.
fn notes(workspace: &Workspace) -> usize {
    let names = std::fs::read_dir(workspace.state.path().join("journal")).unwrap();
    names
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("aside-")
        })
        .count()
}

/// Lets so many steps pass, then does this.
#[derive(Clone)]
struct At {
    left: Arc<AtomicUsize>,
    then: fn() -> Then,
}

impl Watch for At {
    fn before(&self, _step: &'static str) -> Then {
        let count = |left: usize| Some(left.wrapping_sub(1));
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        if left == Ok(0) {
            (self.then)()
        } else {
            Then::GoOn
        }
    }
}

fn opened_with(workspace: &Workspace, steps: usize, then: fn() -> Then) -> Journal {
    let at = At {
        left: Arc::new(AtomicUsize::new(steps)),
        then,
    };
    Journal::open_watched(workspace.state.path(), Box::new(at))
        .unwrap()
        .0
}

#[test]
fn a_file_and_its_directories_are_made_as_permitted_and_nothing_else_is_left() {
    for (there, parents) in [(None, &["a", "a/b"][..]), (Some("a"), &["a/b"][..])] {
        let workspace = Workspace::new();
        if let Some(there) = there {
            std::fs::create_dir(workspace.path().join(there)).unwrap();
        }
        let journal = open(&workspace);
        let Placed { stat, met } = put(&journal, &workspace, parents).unwrap();
        assert_eq!(met, 0);
        let path = workspace.path().join("a/b/c.txt");
        assert_eq!(std::fs::read(&path).unwrap(), b"text\n");
        assert_eq!((stat.mode, stat.bytes), (0o600, 5));
        let mode = |name: &str| {
            let found = std::fs::metadata(workspace.path().join(name)).unwrap();
            found.mode() & 0o7777
        };
        assert_eq!((mode("a/b"), mode("a/b/c.txt")), (DIR_MODE, 0o600));
        for parent in parents {
            assert_eq!(mode(parent), DIR_MODE);
        }
        let names = std::fs::read_dir(workspace.path()).unwrap();
        assert_eq!(names.count(), 1);
        assert_eq!(notes(&workspace), 0);
    }
}

#[test]
fn cut_off_at_any_step_it_is_all_or_nothing_and_the_next_start_clears_up() {
    let whole = {
        let workspace = Workspace::new();
        put(&open(&workspace), &workspace, &["a", "a/b"]).unwrap();
        tree(workspace.path())
    };
    let mut strays = 0;
    for steps in 0.. {
        let workspace = Workspace::new();
        let nothing = tree(workspace.path());
        let journal = opened_with(&workspace, steps, || Then::Stop);
        let done = put(&journal, &workspace, &["a", "a/b"]);
        drop(journal);
        // Nobody sees a part of it under its own names.
        let is_there = workspace.path().join("a").exists();
        let left = std::fs::read_dir(workspace.path()).unwrap().count();
        strays += usize::from(left > usize::from(is_there));
        let journal = open(&workspace);
        let expected = if is_there { &whole } else { &nothing };
        assert_eq!(&tree(workspace.path()), expected, "after {steps} steps");
        assert_eq!(notes(&workspace), 0, "after {steps} steps");
        // It works on.
        if !is_there {
            put(&journal, &workspace, &["a", "a/b"]).unwrap();
        }
        if done.is_ok() && steps > 12 {
            break;
        }
    }
    // The cuts did find trees half built.
    assert!(strays > 5, "{strays}");
}

#[test]
fn a_step_that_fails_leaves_nothing_at_once() {
    for steps in 0.. {
        let workspace = Workspace::new();
        let nothing = tree(workspace.path());
        let full = || Then::Fail(io::Error::from(io::ErrorKind::StorageFull));
        let journal = opened_with(&workspace, steps, full);
        let done = put(&journal, &workspace, &["a", "a/b"]);
        if workspace.path().join("a").exists() {
            // It was in place already: only waiting for the disk failed, or nothing.
            break;
        }
        assert!(done.is_err(), "after {steps} steps");
        assert_eq!(tree(workspace.path()), nothing, "after {steps} steps");
        drop(journal);
        let _cleared = open(&workspace);
        assert_eq!(notes(&workspace), 0, "after {steps} steps");
    }
}

/// A directory of exactly this mode.
fn made(at: &Path, mode: u32) {
    std::fs::create_dir(at).unwrap();
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What another call of the same answer makes meanwhile goes as far as its own file.
fn a_sibling_makes(workspace: &Workspace, dirs: &[&str], file: &str) {
    for dir in dirs {
        made(&workspace.path().join(dir), DIR_MODE);
    }
    std::fs::write(workspace.path().join(file), "sibling\n").unwrap();
}

#[test]
fn directories_another_call_made_just_so_meanwhile_are_gone_on_in() {
    for (dirs, file, met) in [
        (&["a"][..], "a/s.txt", 1),
        (&["a", "a/b"][..], "a/b/s.txt", 2),
        (&["a", "a/x"][..], "a/x/s.txt", 1),
    ] {
        let workspace = Workspace::new();
        a_sibling_makes(&workspace, dirs, file);
        let journal = open(&workspace);
        let placed = put(&journal, &workspace, &["a", "a/b"]).unwrap();
        assert_eq!((placed.met, placed.stat.mode), (met, 0o600), "{file}");
        let read = |name: &str| std::fs::read(workspace.path().join(name)).unwrap();
        assert_eq!(read("a/b/c.txt"), b"text\n", "{file}");
        assert_eq!(read(file), b"sibling\n");
        let hidden = std::fs::read_dir(workspace.path().join("a")).unwrap();
        let is_hidden = |name: std::ffi::OsString| name.to_string_lossy().starts_with('.');
        assert!(
            !hidden
                .into_iter()
                .any(|entry| is_hidden(entry.unwrap().file_name()))
        );
        assert_eq!(notes(&workspace), 0);
    }
    // The file itself is never gone on in, nor one that lies where a directory is to be.
    for (dirs, file) in [(&["a", "a/b"][..], "a/b/c.txt"), (&["a"][..], "a/b")] {
        let workspace = Workspace::new();
        a_sibling_makes(&workspace, dirs, file);
        let before = tree(workspace.path());
        let refused = put(&open(&workspace), &workspace, &["a", "a/b"]).unwrap_err();
        assert_eq!(
            refused.code(),
            Some(DenialCode::ChangedSinceShown),
            "{file}"
        );
        assert_eq!(tree(workspace.path()), before);
    }
}

#[test]
fn cut_off_beside_a_sibling_it_is_all_or_nothing_too() {
    let mut strays = 0;
    for steps in 0.. {
        let workspace = Workspace::new();
        a_sibling_makes(&workspace, &["a"], "a/s.txt");
        let sibling = tree(workspace.path());
        let journal = opened_with(&workspace, steps, || Then::Stop);
        let done = put(&journal, &workspace, &["a", "a/b"]);
        drop(journal);
        let is_there = workspace.path().join("a/b").exists();
        strays += usize::from(tree(workspace.path()) != sibling && !is_there);
        drop(open(&workspace));
        match is_there {
            true => assert!(workspace.path().join("a/b/c.txt").is_file()),
            false => assert_eq!(tree(workspace.path()), sibling, "after {steps} steps"),
        }
        assert_eq!(notes(&workspace), 0, "after {steps} steps");
        if done.is_ok() && steps > 20 {
            break;
        }
    }
    assert!(strays > 8, "{strays}");
}

#[test]
fn many_calls_at_once_make_the_same_new_directories_together() {
    let workspace = Workspace::new();
    let journal = open(&workspace);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (journal, workspace) = (&journal, &workspace);
            scope.spawn(move || {
                for round in 0..40 {
                    let parents = [rel(&format!("r{round}")), rel(&format!("r{round}/d"))];
                    let path = rel(&format!("r{round}/d/{number}.txt"));
                    let new = new(&parents, &path);
                    put_with(journal, workspace, &new, fitting(&new)).unwrap();
                }
            });
        }
    });
    for round in 0..40 {
        let dir = workspace.path().join(format!("r{round}"));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(dir.join("d")).unwrap().count(), 8);
    }
    assert_eq!(notes(&workspace), 0);
}

#[test]
fn what_somebody_made_meanwhile_stays_and_is_no_way_out() {
    let outside = tempfile::tempdir().unwrap();
    type Make = fn(PathBuf, PathBuf);
    let taken: [(&str, Make); 4] = [
        ("closed directory", |at, _| made(&at, 0o700)),
        ("open directory", |at, _| made(&at, 0o777)),
        ("file", |at, _| std::fs::write(at, "theirs").unwrap()),
        ("link", |at, to| symlink(to, at).unwrap()),
    ];
    for (what, make) in taken {
        let workspace = Workspace::new();
        make(workspace.path().join("a"), outside.path().to_owned());
        let before = tree(workspace.path());
        let journal = open(&workspace);
        let refused = put(&journal, &workspace, &["a", "a/b"]).unwrap_err();
        assert_eq!(
            refused.code(),
            Some(DenialCode::ChangedSinceShown),
            "{what}"
        );
        assert_eq!(tree(workspace.path()), before, "{what}");
        assert_eq!(notes(&workspace), 0, "{what}");
    }
    // The directory it is built in is reached through no link either.
    let workspace = Workspace::new();
    symlink(outside.path(), workspace.path().join("a")).unwrap();
    let refused = put(&open(&workspace), &workspace, &["a/b"]).unwrap_err();
    assert_eq!(refused.code(), Some(DenialCode::SymlinkRefused));
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn without_a_permit_for_each_directory_and_the_file_nothing_is_made() {
    let workspace = Workspace::new();
    let journal = open(&workspace);
    let (parents, path) = ([rel("a"), rel("a/b")], rel("a/b/c.txt"));
    let new = new(&parents, &path);
    let mut short = fitting(&new);
    short.pop();
    let mut loose = fitting(&new);
    loose[0] = create(&parents[0], dir_digest(0o777));
    let mut other = fitting(&new);
    other[2] = create(&path, sha256(b"shown"));
    let mut turned = fitting(&new);
    turned.swap(0, 1);
    for actions in [short, loose, other, turned] {
        assert!(put_with(&journal, &workspace, &new, actions).is_err());
        assert!(!workspace.path().join("a").exists());
    }
    // Nor where the directories do not lie in each other, or there are none.
    for parents in [&[rel("x"), rel("a/b")][..], &[rel("a")][..], &[][..]] {
        let new = NewFile { parents, ..new };
        assert!(put_with(&journal, &workspace, &new, fitting(&new)).is_err());
        assert!(!workspace.path().join("a").exists());
    }
    assert_eq!(std::fs::read_dir(workspace.path()).unwrap().count(), 0);
}

/// Opens the journal as another process does, at every step.
struct Another(PathBuf);

impl Watch for Another {
    fn before(&self, _step: &'static str) -> Then {
        Journal::open(&self.0).unwrap();
        Then::GoOn
    }
}

#[test]
fn another_program_that_starts_meanwhile_clears_nothing_that_is_at_work() {
    let workspace = Workspace::new();
    let state = workspace.state.path();
    let (journal, _) = Journal::open(state).unwrap();
    drop(journal);
    let another = Box::new(Another(state.to_owned()));
    let (journal, _) = Journal::open_watched(state, another).unwrap();
    put(&journal, &workspace, &["a", "a/b"]).unwrap();
    assert!(workspace.path().join("a/b/c.txt").is_file());
    assert_eq!(notes(&workspace), 0);
}

#[test]
fn a_note_leads_to_nothing_but_a_temporary_name() {
    let workspace = Workspace::new();
    let journal = opened_with(&workspace, 3, || Then::Stop);
    assert!(put(&journal, &workspace, &["a", "a/b"]).is_err());
    drop(journal);
    assert_eq!(notes(&workspace), 1);
    // The directory it was written for is another one by now.
    let (here, away) = (workspace.path(), workspace.state.path().join("moved"));
    std::fs::rename(here, &away).unwrap();
    std::fs::create_dir(here).unwrap();
    let left: Vec<_> = std::fs::read_dir(&away).unwrap().collect();
    assert_eq!(left.len(), 1);
    let name = left[0].as_ref().unwrap().file_name();
    std::fs::create_dir(here.join(&name)).unwrap();
    drop(open(&workspace));
    assert!(here.join(&name).is_dir());
    assert_eq!(notes(&workspace), 1);
    // Once the right one is back, what was left in it goes.
    std::fs::remove_dir_all(here).unwrap();
    std::fs::rename(&away, here).unwrap();
    drop(open(&workspace));
    assert!(!here.join(&name).exists());
    assert_eq!(notes(&workspace), 0);
}

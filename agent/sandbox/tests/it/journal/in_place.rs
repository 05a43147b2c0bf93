//! A file that a command gave another name is moved as it is, and one that it gave another
//! mode is given it: nothing of it is copied, and it stays what it is besides.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::time::SystemTime;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::journal::{Commit, UndoError};

use super::{At, Cut};
use crate::support::arranged::{ORDINARY, Run, twice};
use crate::support::{Workspace, commit_in, on, tree, undo_in};

/// Which thing a name stands for.
fn number(workspace: &Workspace, name: &str) -> u64 {
    fs::symlink_metadata(workspace.path().join(name))
        .unwrap()
        .ino()
}

fn ran(workspace: &Workspace, journal: &Journal, script: &str) -> Commit {
    let finished = workspace.run(script);
    commit_in(journal, &finished.changes[0], workspace)
}

fn opened(workspace: &Workspace) -> Journal {
    Journal::open(workspace.state.path()).unwrap().0
}

#[test]
fn it_stays_the_same_file_with_its_other_names_and_is_kept_nowhere() {
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            let workspace = Workspace::new();
            workspace.file("d/a", "a\n");
            // In a view that is a copy the other name is one of what is renamed as well.
            let other = workspace.path().join("other");
            match layer {
                Layer::Overlay => fs::hard_link(workspace.path().join("d/a"), &other).unwrap(),
                Layer::Copy => fs::write(&other, "other\n").unwrap(),
            }
            std::os::unix::fs::symlink("d/a", workspace.path().join("l")).unwrap();
            let holes = fs::File::create(workspace.path().join("holes")).unwrap();
            holes.write_at(b"end", 8 << 20).unwrap();
            let (before, names) = (tree(workspace.path()), ["d/a", "l", "holes"]);
            let numbers = names.map(|name| number(&workspace, name));

            let journal = opened(&workspace);
            let script = "mv d/a d/c; mv l k; mv holes d/full; echo more > e";
            let id = ran(&workspace, &journal, script).id.unwrap();
            assert_eq!(
                ["d/c", "k", "d/full"].map(|name| number(&workspace, name)),
                numbers
            );
            let is_same = number(&workspace, "other") == numbers[0];
            assert_eq!(is_same, layer == Layer::Overlay);
            let full = fs::metadata(workspace.path().join("d/full")).unwrap();
            assert!(full.blocks() < 1 << 10, "{} blocks", full.blocks());
            assert_eq!(workspace.read("e"), "more\n");
            let [kept] = &journal.list().unwrap()[..] else {
                panic!("one commit")
            };
            assert_eq!(kept.bytes, 0);

            let after = tree(workspace.path());
            let undone = undo_in(&journal, id, &workspace).unwrap();
            assert!(undone.failure.is_none(), "{:?}", undone.failure);
            assert_eq!(tree(workspace.path()), before);
            assert_eq!(names.map(|name| number(&workspace, name)), numbers);
            let redone = undo_in(&journal, undone.id.unwrap(), &workspace).unwrap();
            assert!(redone.failure.is_none(), "{:?}", redone.failure);
            assert_eq!(tree(workspace.path()), after);
            assert_eq!(number(&workspace, "k"), numbers[1]);
        });
    }
}

#[test]
fn what_a_command_made_of_it_besides_its_name_comes_from_the_command() {
    for (script, is_linked) in [
        // A file of its own, with a time of its own.
        ("cp a c; rm a", false),
        ("mv a c; touch -d 2001-01-01 c", false),
        // Two names of one file.
        ("mv a c; ln c k", true),
        ("ln a c; ln a k; rm a", true),
    ] {
        let workspace = Workspace::new();
        workspace.file("a", "a\n");
        let old = number(&workspace, "a");
        let journal = opened(&workspace);
        let done = ran(&workspace, &journal, script);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
        let c = fs::metadata(workspace.path().join("c")).unwrap();
        assert_ne!(c.ino(), old, "{script}");
        assert_eq!(workspace.read("c"), "a\n");
        match is_linked {
            true => assert_eq!((c.nlink(), number(&workspace, "k")), (2, c.ino())),
            false => assert_eq!(c.nlink(), 1, "{script}"),
        }
        if script.contains("touch") {
            let time = c.modified().unwrap();
            let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            assert!(time < long_ago, "{time:?}");
        }
        let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
        assert!(undone.failure.is_none(), "{script}: {:?}", undone.failure);
        assert_eq!(number(&workspace, "a"), old, "{script}");
    }
}

#[test]
fn another_content_than_the_command_saw_is_not_carried_along() {
    let workspace = Workspace::new();
    workspace.file("a", "one\n");
    let finished = workspace.run("mv a c");
    // Written into in place, with its length and its time as before.
    let path = workspace.path().join("a");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_at(b"two", 0).unwrap();
    file.set_modified(time).unwrap();
    let before = tree(workspace.path());
    let journal = opened(&workspace);
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    let failure = done.failure.unwrap();
    assert_eq!(
        failure.error.code(),
        Some(DenialCode::ChangedSinceShown),
        "{failure:?}"
    );
    assert!(failure.stuck.is_empty(), "{failure:?}");
    assert_eq!(tree(workspace.path()), before);
    assert!(journal.list().unwrap().is_empty());

    // The same one, saved once more by somebody, is what it saw.
    fs::write(workspace.path().join("saved"), "one\n").unwrap();
    fs::rename(workspace.path().join("saved"), &path).unwrap();
    let finished = workspace.run("mv a c");
    fs::write(workspace.path().join("saved"), "one\n").unwrap();
    fs::rename(workspace.path().join("saved"), &path).unwrap();
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(workspace.read("c"), "one\n");
}

#[test]
fn it_is_taken_back_by_what_it_holds_and_not_once_that_is_another_thing() {
    let workspace = Workspace::new();
    workspace.file("a", "a\n");
    let journal = opened(&workspace);
    let id = ran(&workspace, &journal, "mv a c").id.unwrap();
    let later = ran(&workspace, &journal, "echo more >> c").id.unwrap();
    let Err(UndoError::Changed(names)) = undo_in(&journal, id, &workspace) else {
        panic!("undone")
    };
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(workspace.read("c"), "a\nmore\n");
    // Taken back in turn, and saved by an editor: another file that holds the same.
    assert!(
        undo_in(&journal, later, &workspace)
            .unwrap()
            .failure
            .is_none()
    );
    fs::write(workspace.path().join("saved"), "a\n").unwrap();
    fs::rename(workspace.path().join("saved"), workspace.path().join("c")).unwrap();
    let undone = undo_in(&journal, id, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(workspace.read("a"), "a\n");
    assert!(!workspace.path().join("c").exists());
    // A name that somebody took meanwhile is theirs.
    let id = ran(&workspace, &journal, "mv a c").id.unwrap();
    workspace.file("a", "mine\n");
    let Err(UndoError::Changed(_)) = undo_in(&journal, id, &workspace) else {
        panic!("undone")
    };
    assert_eq!(workspace.read("a"), "mine\n");
}

#[test]
fn what_is_written_into_it_while_it_is_cut_off_goes_back_with_it() {
    let mut moved = 0;
    for steps in 0.. {
        let workspace = Workspace::new();
        workspace.file("a", "a\n");
        workspace.file("b", "b\n");
        let finished = workspace.run("mv a c; mv b e; echo n > n");
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        drop(journal);
        assert!(done.failure.is_some(), "it ended before it was cut off");
        // An editor that keeps its file open writes on.
        let there = workspace.path().join("c").exists();
        let name = if there { "c" } else { "a" };
        moved += usize::from(there);
        workspace.file(name, "a\nmore\n");
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "cut after {steps}: {recovered:?}"
        );
        if !journal.list().unwrap().is_empty() {
            // It had happened, and only what comes after was cut off.
            assert!(steps > 6 && moved > 2, "{steps} steps, {moved} moved");
            assert_eq!(workspace.read("c"), "a\nmore\n");
            return;
        }
        assert_eq!(workspace.read("a"), "a\nmore\n", "cut after {steps}");
        assert_eq!(workspace.read("b"), "b\n");
        for name in ["c", "e", "n"] {
            assert!(
                !workspace.path().join(name).exists(),
                "{name} after {steps}"
            );
        }
    }
}

fn mode(workspace: &Workspace, name: &str) -> u32 {
    let stat = fs::metadata(workspace.path().join(name)).unwrap();
    stat.mode() & 0o7777
}

#[test]
fn a_mode_is_given_to_the_file_itself_unless_it_has_another_name() {
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            let workspace = Workspace::new();
            for name in ["run", "closed", "two", "written"] {
                workspace.file(name, "#!/bin/sh\n");
            }
            let outside = tempfile::tempdir_in(workspace.path().parent().unwrap()).unwrap();
            let other = outside.path().join("two");
            fs::hard_link(workspace.path().join("two"), &other).unwrap();
            let names = ["run", "closed", "two", "written"];
            let before = tree(workspace.path());
            let numbers = names.map(|name| number(&workspace, name));
            let journal = opened(&workspace);
            let script = "chmod 755 run two; chmod 0 closed; echo : >> written; chmod 700 written";
            let done = ran(&workspace, &journal, script);
            assert!(done.failure.is_none(), "{layer:?}: {:?}", done.failure);
            let id = done.id.unwrap();
            let after = names.map(|name| number(&workspace, name));
            let is_same = [0, 1, 2, 3].map(|at| after[at] == numbers[at]);
            assert_eq!(is_same, [true, false, false, false], "{layer:?}");
            let modes = names.map(|name| mode(&workspace, name));
            assert_eq!(modes, [0o755, 0, 0o755, 0o700], "{layer:?}");
            // An outside name of a file does not change with it.
            let outside = fs::metadata(&other).unwrap().mode() & 0o7777;
            assert_eq!(outside, 0o644, "{layer:?}");

            let undone = undo_in(&journal, id, &workspace).unwrap();
            assert!(undone.failure.is_none(), "{:?}", undone.failure);
            assert_eq!(tree(workspace.path()), before, "{layer:?}");
            assert_eq!(number(&workspace, "run"), numbers[0]);
        });
    }
}

#[test]
fn a_mode_is_not_given_to_what_holds_something_else_by_then_or_has_got_another_name() {
    type Meanwhile = fn(&Workspace);
    let meanwhile: [Meanwhile; 3] = [
        |workspace| workspace.file("run", "another\n"),
        |workspace| {
            let path = workspace.path().join("run");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        },
        |workspace| {
            fs::remove_file(workspace.path().join("run")).unwrap();
        },
    ];
    for meanwhile in meanwhile {
        let workspace = Workspace::new();
        workspace.file("run", "#!/bin/sh\n");
        let finished = workspace.run("chmod 755 run; echo n > n");
        meanwhile(&workspace);
        let before = tree(workspace.path());
        let journal = opened(&workspace);
        let failure = commit_in(&journal, &finished.changes[0], &workspace)
            .failure
            .unwrap();
        assert_eq!(
            failure.error.code(),
            Some(DenialCode::ChangedSinceShown),
            "{failure:?}"
        );
        assert_eq!(tree(workspace.path()), before);
        assert!(journal.list().unwrap().is_empty());
    }
    // A name it got before the commit: it is replaced as a whole.
    let workspace = Workspace::new();
    workspace.file("run", "#!/bin/sh\n");
    let finished = workspace.run("chmod 755 run");
    let backup = workspace.path().join("backup");
    fs::hard_link(workspace.path().join("run"), &backup).unwrap();
    let journal = opened(&workspace);
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(
        (mode(&workspace, "run"), mode(&workspace, "backup")),
        (0o755, 0o644)
    );
}

#[test]
fn a_mode_that_was_cut_off_goes_back_and_one_that_somebody_gave_since_stands() {
    let mut given = 0;
    for steps in 0.. {
        let workspace = Workspace::new();
        workspace.file("run", "#!/bin/sh\n");
        let finished = workspace.run("chmod 755 run; echo n > n");
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_some(), "it ended before it was cut off");
        drop(journal);
        let is_given = mode(&workspace, "run") == 0o755;
        given += usize::from(is_given);
        // Once in the midst somebody gives it one of their own.
        let is_theirs = is_given && given == 1;
        if is_theirs {
            let path = workspace.path().join("run");
            fs::set_permissions(path, fs::Permissions::from_mode(0o711)).unwrap();
        }
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        if is_theirs {
            assert_eq!(mode(&workspace, "run"), 0o711);
            assert!(recovered.stuck.is_empty(), "{recovered:?}");
            assert!(!workspace.path().join("n").exists());
            continue;
        }
        if !journal.list().unwrap().is_empty() {
            assert!(steps > 6 && given > 2, "{steps} steps, given {given} times");
            assert_eq!(mode(&workspace, "run"), 0o755);
            return;
        }
        assert!(
            recovered.stuck.is_empty(),
            "cut after {steps}: {recovered:?}"
        );
        assert_eq!(mode(&workspace, "run"), 0o644, "cut after {steps}");
        assert!(!workspace.path().join("n").exists());
    }
}

#[test]
fn what_lies_behind_a_way_that_was_closed_afterwards_is_taken_back_as_well() {
    let name = "journal::in_place::what_lies_behind_a_way_that_was_closed_afterwards_is_taken_back_as_well";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let workspace = Workspace::new();
    workspace.file("d/a", "a\n");
    workspace.file("d/run", "#!/bin/sh\n");
    let before = tree(workspace.path());
    let numbers = ["d/a", "d/run"].map(|name| number(&workspace, name));
    let journal = opened(&workspace);
    let done = ran(
        &workspace,
        &journal,
        "mv d/a d/c; chmod 755 d/run; chmod 0 d",
    );
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(mode(&workspace, "d"), 0);
    let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(tree(workspace.path()), before);
    assert_eq!(
        ["d/a", "d/run"].map(|name| number(&workspace, name)),
        numbers
    );
}

//! A file that a command gave another name is moved as it is, and one that it gave another
//! mode is given it: nothing of it is copied, and it stays what it is besides.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::time::SystemTime;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::journal::{Commit, UndoError};
use hermitcrab_sandbox::spawn::Finished;

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

/// What was changed meanwhile is told, and nothing is done and nothing kept.
fn is_a_conflict(workspace: &Workspace, finished: &Finished, which: usize) {
    let before = tree(workspace.path());
    let journal = opened(workspace);
    let done = commit_in(&journal, &finished.changes[0], workspace);
    let failure = done.failure.unwrap();
    assert_eq!(
        failure.error.code(),
        Some(DenialCode::ChangedSinceShown),
        "{which}: {failure:?}"
    );
    assert!(failure.stuck.is_empty(), "{which}: {failure:?}");
    assert_eq!(tree(workspace.path()), before, "{which}");
    assert!(journal.list().unwrap().is_empty(), "{which}");
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
fn a_directory_stays_the_same_with_all_that_is_in_it_and_is_kept_nowhere() {
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            let workspace = Workspace::new();
            workspace.file("d/a", "a\n");
            workspace.file("d/in/b", "b\n");
            workspace.file("into/mine", "mine\n");
            std::os::unix::fs::symlink("a", workspace.path().join("d/l")).unwrap();
            fs::create_dir(workspace.path().join("d/empty")).unwrap();
            let holes = fs::File::create(workspace.path().join("d/holes")).unwrap();
            holes.write_at(b"end", 8 << 20).unwrap();
            let names = ["d", "d/a", "d/in", "d/in/b", "d/l", "d/empty", "d/holes"];
            let before = tree(workspace.path());
            let numbers = names.map(|name| number(&workspace, name));
            let journal = opened(&workspace);
            let done = ran(&workspace, &journal, "mv d into/e; echo more > n");
            assert!(done.failure.is_none(), "{layer:?}: {:?}", done.failure);
            let new = |name: &str| number(&workspace, &format!("into/e{}", &name[1..]));
            assert_eq!(names.map(new), numbers, "{layer:?}");
            assert_eq!(workspace.read("n"), "more\n");
            let [kept] = &journal.list().unwrap()[..] else {
                panic!("one commit")
            };
            assert_eq!(kept.bytes, 0);

            let after = tree(workspace.path());
            let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
            assert!(undone.failure.is_none(), "{:?}", undone.failure);
            assert_eq!(tree(workspace.path()), before);
            assert_eq!(names.map(|name| number(&workspace, name)), numbers);
            let redone = undo_in(&journal, undone.id.unwrap(), &workspace).unwrap();
            assert!(redone.failure.is_none(), "{:?}", redone.failure);
            assert_eq!(tree(workspace.path()), after);
            assert_eq!(names.map(new), numbers, "{layer:?}");
        });
    }
}

#[test]
fn what_leaves_a_directory_that_goes_or_gets_into_one_that_comes_stays_the_same() {
    for (script, moves) in [
        ("mkdir -p n/in; mv a n/in", &[("a", "n/in/a")][..]),
        ("mv d/f f; rm -r d; echo more > n", &[("d/f", "f")][..]),
        (
            "mv d e; echo more >> e/f; mv a e/in",
            &[("d/g", "e/g"), ("d/in/h", "e/in/h"), ("a", "e/in/a")],
        ),
        (
            "mkdir n; mv d n/d; mv n/d/in k; rm n/d/f; mv a n; chmod 500 n/d",
            &[("d/in", "k"), ("a", "n/a")],
        ),
        ("mkdir n; mv d n", &[("d", "n/d"), ("d/in/h", "n/d/in/h")]),
        ("mv d/in k; rm -r d; mv k d", &[]),
    ] {
        let workspace = Workspace::new();
        for name in ["a", "d/f", "d/g", "d/in/h"] {
            workspace.file(name, &format!("{name}\n"));
        }
        let before = tree(workspace.path());
        let old: Vec<u64> = moves
            .iter()
            .map(|(from, _)| number(&workspace, from))
            .collect();
        let numbers = |names: &dyn Fn(&(&str, &str)) -> String| -> Vec<u64> {
            moves
                .iter()
                .map(|names_of| number(&workspace, &names(names_of)))
                .collect()
        };
        let journal = opened(&workspace);
        let done = ran(&workspace, &journal, script);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
        assert_eq!(numbers(&|(_, to)| (*to).to_owned()), old, "{script}");
        let after = tree(workspace.path());
        let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
        assert!(undone.failure.is_none(), "{script}: {:?}", undone.failure);
        assert_eq!(tree(workspace.path()), before, "{script}");
        assert_eq!(numbers(&|(from, _)| (*from).to_owned()), old, "{script}");
        let redone = undo_in(&journal, undone.id.unwrap(), &workspace).unwrap();
        assert!(redone.failure.is_none(), "{script}: {:?}", redone.failure);
        assert_eq!(tree(workspace.path()), after, "{script}");
        assert_eq!(numbers(&|(_, to)| (*to).to_owned()), old, "{script}");
    }
}

#[test]
fn a_directory_that_was_given_a_time_keeps_it_whatever_gets_into_it() {
    let workspace = Workspace::new();
    workspace.file("a", "a\n");
    let journal = opened(&workspace);
    let old = number(&workspace, "a");
    let done = ran(
        &workspace,
        &journal,
        "mkdir n; mv a n; touch -d @1000000000 n",
    );
    assert!(done.failure.is_none(), "{:?}", done.failure);
    let time = || fs::metadata(workspace.path().join("n")).unwrap().mtime();
    assert_eq!(time(), 1_000_000_000);
    assert_eq!(number(&workspace, "n/a"), old);
    assert_eq!(workspace.read("n/a"), "a\n");
    // Gone, and brought back with what left it.
    let gone = ran(&workspace, &journal, "mv n/a a; rmdir n").id.unwrap();
    let undone = undo_in(&journal, gone, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(number(&workspace, "n/a"), old);
}

#[test]
fn a_directory_of_which_anything_was_made_anew_comes_from_the_command() {
    for script in [
        "mv d e; cp e/a e/c; mv e/c e/a",
        "mv d e; touch -d 2001-01-01 e/in/b",
        "mv d e; ln e/a e/in/c",
        "mv d e; chmod 700 e/in",
        "cp -r d e; rm -r d",
        "mv d e; mkdir d; echo new > d/new",
    ] {
        let workspace = Workspace::new();
        workspace.file("d/a", "a\n");
        workspace.file("d/in/b", "b\n");
        let before = tree(workspace.path());
        let old = number(&workspace, "d");
        let finished = workspace.run(script);
        let journal = opened(&workspace);
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
        assert_ne!(number(&workspace, "e"), old, "{script}");
        assert_eq!(workspace.read("e/in/b"), "b\n", "{script}");
        if script.contains("touch") {
            let time = fs::metadata(workspace.path().join("e/in/b")).unwrap();
            assert_eq!(time.mtime(), 978_307_200, "{script}");
        }
        let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
        assert!(undone.failure.is_none(), "{script}: {:?}", undone.failure);
        assert_eq!(tree(workspace.path()), before, "{script}");
    }
}

#[test]
fn a_directory_that_holds_more_or_something_else_by_then_stays_where_it_is() {
    type Meanwhile = fn(&Workspace);
    let meanwhile: [Meanwhile; 4] = [
        |workspace| workspace.file("d/in/more", "more\n"),
        |workspace| workspace.file("d/in/b", "other\n"),
        |workspace| fs::remove_file(workspace.path().join("d/a")).unwrap(),
        |workspace| fs::create_dir(workspace.path().join("e")).unwrap(),
    ];
    for (which, meanwhile) in meanwhile.iter().enumerate() {
        let workspace = Workspace::new();
        workspace.file("d/a", "a\n");
        workspace.file("d/in/b", "b\n");
        let finished = workspace.run("mv d e; echo n > n");
        meanwhile(&workspace);
        is_a_conflict(&workspace, &finished, which);
    }
    // Something that somebody put there since keeps it from going back.
    let workspace = Workspace::new();
    workspace.file("d/a", "a\n");
    let journal = opened(&workspace);
    let id = ran(&workspace, &journal, "mv d e").id.unwrap();
    workspace.file("e/mine", "mine\n");
    let Err(UndoError::Changed(_)) = undo_in(&journal, id, &workspace) else {
        panic!("undone")
    };
    assert_eq!(workspace.read("e/mine"), "mine\n");
}

#[test]
fn what_is_written_into_it_while_it_is_cut_off_goes_back_with_it() {
    let mut moved = 0;
    for steps in 0.. {
        let workspace = Workspace::new();
        workspace.file("a", "a\n");
        workspace.file("b", "b\n");
        workspace.file("d/in/f", "f\n");
        workspace.file("went/out", "out\n");
        workspace.file("went/with", "with\n");
        let script =
            "mv a c; mv b e; mv d g; mkdir -p came/in; mv went/out came/in; rm -r went; echo n > n";
        let finished = workspace.run(script);
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
        let dir = ["g", "d"]
            .into_iter()
            .find(|dir| workspace.path().join(dir).exists());
        workspace.file(&format!("{}/in/f", dir.unwrap()), "f\nmore\n");
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "cut after {steps}: {recovered:?}"
        );
        if !journal.list().unwrap().is_empty() {
            // It had happened, and only what comes after was cut off.
            assert!(steps > 6 && moved > 2, "{steps} steps, {moved} moved");
            assert_eq!(workspace.read("c"), "a\nmore\n");
            assert_eq!(workspace.read("g/in/f"), "f\nmore\n");
            assert_eq!(workspace.read("came/in/out"), "out\n");
            assert!(!workspace.path().join("went").exists());
            return;
        }
        assert_eq!(workspace.read("a"), "a\nmore\n", "cut after {steps}");
        assert_eq!(workspace.read("b"), "b\n");
        assert_eq!(workspace.read("d/in/f"), "f\nmore\n", "cut after {steps}");
        assert_eq!(workspace.read("went/out"), "out\n", "cut after {steps}");
        assert_eq!(workspace.read("went/with"), "with\n", "cut after {steps}");
        for name in ["c", "e", "g", "n", "came"] {
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
    for (which, meanwhile) in meanwhile.iter().enumerate() {
        let workspace = Workspace::new();
        workspace.file("run", "#!/bin/sh\n");
        let finished = workspace.run("chmod 755 run; echo n > n");
        meanwhile(&workspace);
        is_a_conflict(&workspace, &finished, which);
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

//! What a command does to its view, read back, applied or dropped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::PermissionsExt as _;

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::What;
use hermitcrab_sandbox::spawn::Ending;
use support::{Workspace, commit, text};

/// The change set as short lines: verb, path.
fn summary(finished: &hermitcrab_sandbox::spawn::Finished) -> Vec<String> {
    finished.changes[0]
        .changes()
        .iter()
        .map(|change| {
            let kind = match &change.what {
                What::CreatedFile { .. } => "created",
                What::CreatedDir { .. } => "created dir",
                What::CreatedSymlink { .. } => "created link",
                What::CreatedSpecial => "created special",
                What::ModifiedFile { .. } => "modified",
                What::ModifiedMode { .. } => "mode",
                What::ModifiedTime { .. } => "time",
                What::Xattrs { .. } => "attributes",
                What::DeletedFile { .. } => "deleted",
                What::DeletedSymlink { .. } => "deleted link",
                What::DeletedDir => "deleted dir",
                What::DeletedSpecial => "deleted special",
                What::MovedHere { .. } => "moved here",
                What::MovedAway { .. } => "moved away",
            };
            format!("{kind} {}", change.path)
        })
        .collect()
}

/// An overlay marks only the outermost of the directories that hide what was there.
fn what_was_below_a_tree_made_again_is_gone() {
    let workspace = Workspace::new();
    workspace.file("d/e/old", "o\n");
    workspace.file("d/e/f/older", "o\n");
    let finished = workspace.run("rm -rf d; mkdir -p d/e/f; echo n > d/e/new; ls -R d");
    assert_eq!(finished.ending, Ending::Exited(0));
    assert!(!text(&finished).contains("old"));
    assert_eq!(
        summary(&finished),
        ["created d/e/new", "deleted d/e/f/older", "deleted d/e/old"]
    );
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert!(!workspace.path().join("d/e/old").exists());
    assert!(!workspace.path().join("d/e/f/older").exists());
    assert!(workspace.path().join("d/e/new").exists());
}

fn nothing_happens_outside_until_the_change_set_is_committed() {
    let workspace = Workspace::new();
    workspace.file("a", "old\n");
    workspace.file("d/x", "x\n");
    workspace.file("gone", "g\n");
    let finished = workspace
        .run("echo new > a; rm gone; mkdir n; echo y > n/y; ln -s a l; chmod 700 d; mv d e; cat a");
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(text(&finished), "new\n");
    let read = |name: &str| std::fs::read_to_string(workspace.path().join(name)).ok();
    assert_eq!(
        (read("a"), read("gone"), read("n/y")),
        (Some("old\n".into()), Some("g\n".into()), None)
    );
    assert_eq!(
        summary(&finished),
        [
            "created dir e",
            "created dir n",
            "modified a",
            "created e/x",
            "created link l",
            "created n/y",
            "deleted d/x",
            "deleted dir d",
            "deleted gone",
        ]
    );
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(
        (read("a"), read("gone"), read("n/y"), read("e/x")),
        (
            Some("new\n".into()),
            None,
            Some("y\n".into()),
            Some("x\n".into())
        )
    );
}

/// Runs a script on this tree and returns what changed.
fn changes(build: impl FnOnce(&Workspace), script: &str) -> (Workspace, Vec<String>) {
    let workspace = Workspace::new();
    build(&workspace);
    let finished = workspace.run(script);
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    let summary = summary(&finished);
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    // What was committed is what the command saw: a second look finds nothing.
    let again = workspace.run("true");
    assert!(again.changes[0].is_empty());
    (workspace, summary)
}

/// Everything below a directory, as `ls` would show it.
fn tree(workspace: &Workspace) -> Vec<String> {
    let output = std::process::Command::new("find")
        .args([".", "-mindepth", "1", "-printf", "%y %m %P %l\n"])
        .current_dir(workspace.path())
        .output()
        .unwrap();
    let mut lines: Vec<_> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.sort();
    lines
}

fn reading_listing_and_what_is_undone_change_nothing() {
    let (_, found) = changes(
        |workspace| {
            workspace.file("a", "same\n");
            workspace.file("d/b", "b\n");
        },
        "cat a d/b; ls -laR > /dev/null; touch -a a; mv a x; mv x a; cp a y; rm y; chmod 600 a; chmod 644 a",
    );
    assert_eq!(found, [""; 0]);
}

/// What is built again is told by it.
fn a_file_that_is_written_as_it_was_or_touched_gets_its_time() {
    use std::os::unix::fs::MetadataExt as _;
    let workspace = Workspace::new();
    let places = ["again", "moved/in", "stamp", "touched"];
    let second = |name: &str| {
        std::fs::metadata(workspace.path().join(name))
            .unwrap()
            .mtime()
    };
    for name in places {
        workspace.file(name, "same\n");
        let file = std::fs::File::options()
            .append(true)
            .open(workspace.path().join(name))
            .unwrap();
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        file.set_modified(old).unwrap();
    }
    let script = "echo same > again; touch touched; touch -d @1200000000 stamp; touch moved; \
                  cp moved/in x && mv x moved/in";
    let finished = workspace.run(script);
    assert_eq!(
        summary(&finished),
        ["time again", "time moved/in", "time stamp", "time touched"]
    );
    assert!(places.iter().all(|name| second(name) == 1_000_000_000));
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(second("stamp"), 1_200_000_000);
    for name in ["again", "moved/in", "touched"] {
        assert!(second(name) > 1_200_000_000, "{name}");
    }
    assert!(workspace.run("true").changes[0].is_empty());
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let undone = support::undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    drop(journal);
    assert!(places.iter().all(|name| second(name) == 1_000_000_000));

    // What somebody else wrote meanwhile stays.
    let finished = workspace.run("touch again");
    workspace.file("again", "other\n");
    let failure = commit(&finished, &workspace).failure.unwrap();
    assert_eq!(
        failure.error.code(),
        Some(hermitcrab_core::outcome::DenialCode::ChangedSinceShown)
    );
}

fn a_directory_that_was_emptied_or_made_again_lists_what_is_gone() {
    let (workspace, found) = changes(
        |workspace| {
            workspace.file("d/a", "a");
            workspace.file("d/s/b", "b");
            workspace.file("d/kept", "kept");
        },
        "rm -rf d; mkdir d; echo -n kept > d/kept; echo new > d/new",
    );
    assert_eq!(
        found,
        [
            "created d/new",
            "deleted d/a",
            "deleted d/s/b",
            "deleted dir d/s",
            "time d/kept"
        ]
    );
    assert_eq!(tree(&workspace), ["d 755 d", "f 644 d/kept", "f 644 d/new"]);
}

fn a_whole_tree_that_is_deleted_is_listed_leaf_by_leaf() {
    let (workspace, found) = changes(
        |workspace| {
            workspace.file("d/a", "a");
            workspace.file("d/s/b", "b");
            std::os::unix::fs::symlink("a", workspace.path().join("d/l")).unwrap();
        },
        "rm -rf d",
    );
    assert_eq!(
        found,
        [
            "deleted d/a",
            "deleted link d/l",
            "deleted d/s/b",
            "deleted dir d/s",
            "deleted dir d"
        ]
    );
    assert_eq!(tree(&workspace), [""; 0]);
}

fn a_name_that_becomes_another_kind_of_thing_is_removed_first() {
    let (workspace, found) = changes(
        |workspace| {
            workspace.file("file-to-dir", "x");
            workspace.file("dir-to-file/x", "x");
            workspace.file("file-to-link", "x");
            std::os::unix::fs::symlink("a", workspace.path().join("link-to-link")).unwrap();
            std::os::unix::fs::symlink("a", workspace.path().join("link-to-file")).unwrap();
        },
        "rm file-to-dir; mkdir file-to-dir; echo y > file-to-dir/y
         rm -r dir-to-file; echo y > dir-to-file
         ln -sf target file-to-link; ln -sfn b link-to-link; rm link-to-file; echo y > link-to-file",
    );
    assert_eq!(
        found,
        [
            "deleted dir-to-file/x",
            "deleted dir dir-to-file",
            "deleted file-to-dir",
            "deleted file-to-link",
            "deleted link link-to-file",
            "deleted link link-to-link",
            "created dir file-to-dir",
            "created dir-to-file",
            "created file-to-dir/y",
            "created link file-to-link",
            "created link-to-file",
            "created link link-to-link",
        ]
    );
    assert_eq!(
        tree(&workspace),
        [
            "d 755 file-to-dir",
            "f 644 dir-to-file",
            "f 644 file-to-dir/y",
            "f 644 link-to-file",
            "l 777 file-to-link target",
            "l 777 link-to-link b",
        ]
    );
}

fn permission_bits_are_changes_of_their_own() {
    let (workspace, found) = changes(
        |workspace| {
            workspace.file("run.sh", "#!/bin/sh\n");
            workspace.file("d/f", "x");
            workspace.file("both", "x");
        },
        "chmod +x run.sh; chmod 500 d; chmod 600 both; echo y > both; mkdir -m 0700 private; echo z > private/z; chmod 555 private; (umask 077; echo s > secret); chmod 000 secret",
    );
    assert_eq!(
        found,
        [
            "created dir private",
            "modified both",
            "created private/z",
            "created secret",
            "mode d",
            "mode run.sh"
        ]
    );
    assert_eq!(
        tree(&workspace),
        [
            "d 500 d",
            "d 555 private",
            "f 0 secret",
            "f 600 both",
            "f 644 d/f",
            "f 644 private/z",
            "f 755 run.sh",
        ]
    );
}

fn big_sparse_and_linked_files_are_ordinary_files() {
    let (workspace, found) = changes(
        |workspace| workspace.file("a", "one\n"),
        "ln a b; echo two >> a; truncate -s 8M sparse; head -c 3000000 /dev/zero | tr '\\0' x > big",
    );
    assert_eq!(
        found,
        ["modified a", "created b", "created big", "created sparse"]
    );
    let bytes = |name: &str| std::fs::read(workspace.path().join(name)).unwrap();
    assert_eq!(
        (bytes("a"), bytes("b")),
        (b"one\ntwo\n".to_vec(), b"one\ntwo\n".to_vec())
    );
    assert_eq!(
        (bytes("sparse").len(), bytes("big").len()),
        (8 << 20, 3_000_000)
    );
}

fn names_that_are_not_text_are_kept() {
    let (workspace, found) = changes(
        |_| {},
        "echo x > $'caf\\xe9'; mkdir $'new\\nline'; echo y > $'new\\nline/-rf *'",
    );
    assert_eq!(found.len(), 3);
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    assert_eq!(std::fs::read(workspace.path().join(name)).unwrap(), b"x\n");
    assert!(workspace.path().join("new\nline/-rf *").exists());
}

fn a_file_that_changed_meanwhile_is_not_overwritten_or_deleted() {
    for (script, path) in [
        ("echo agent > f", "f"),
        ("rm f", "f"),
        ("echo x > new", "new"),
    ] {
        let workspace = Workspace::new();
        workspace.file("f", "old\n");
        let finished = workspace.run(script);
        workspace.file(path, "the user's\n");
        let done = commit(&finished, &workspace);
        let failure = done.failure.unwrap();
        assert_eq!(done.applied, 0);
        assert_eq!(
            failure.error.code(),
            Some(hermitcrab_core::outcome::DenialCode::ChangedSinceShown),
            "{script}"
        );
        let found = std::fs::read_to_string(workspace.path().join(path)).unwrap();
        assert_eq!(found, "the user's\n", "{script}");
    }
}

fn a_link_planted_meanwhile_leads_nothing_out() {
    let outside = tempfile::tempdir().unwrap();
    let workspace = Workspace::new();
    workspace.file("d/f", "old\n");
    let finished = workspace.run("echo new > d/f; echo x > d/g; rm -f d/none");
    std::fs::rename(workspace.path().join("d"), workspace.path().join("away")).unwrap();
    std::fs::write(outside.path().join("f"), "old\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), workspace.path().join("d")).unwrap();
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_some());
    assert_eq!(
        std::fs::read_to_string(outside.path().join("f")).unwrap(),
        "old\n"
    );
    assert!(!outside.path().join("g").exists());
}

fn pipes_and_sockets_are_shown_and_never_made() {
    let workspace = Workspace::new();
    let finished = workspace.run("mkfifo pipe");
    assert_eq!(summary(&finished), ["created special pipe"]);
    let done = commit(&finished, &workspace);
    assert_eq!(
        done.failure.unwrap().error.code(),
        Some(hermitcrab_core::outcome::DenialCode::NotRegularFile)
    );
    assert!(!workspace.path().join("pipe").exists());
}

fn what_somebody_saved_while_the_command_ran_is_not_overwritten() {
    for script in [
        "echo mine > f",
        "rm f",
        "rm f; mkdir f",
        "touch f; chmod 600 f",
    ] {
        let workspace = Workspace::new();
        workspace.file("f", "old\n");
        let path = workspace.path().join("f");
        let finished = support::run_while_they_save(&workspace, script, &path);
        let done = commit(&finished, &workspace);
        assert_eq!(
            done.failure.expect(script).error.code(),
            Some(hermitcrab_core::outcome::DenialCode::ChangedSinceShown)
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs\n");
    }
}

/// Looking at a long file takes its time, and what is saved meanwhile must not be taken
/// for what the command saw.
fn what_somebody_saves_while_it_is_compared_is_not_overwritten() {
    use std::os::unix::fs::FileExt as _;
    const LENGTH: u64 = 32 << 20;
    const MOMENTS: u32 = 8;
    for script in ["echo mine > f", "rm f"] {
        let mut took = std::time::Duration::ZERO;
        for moment in 0..=MOMENTS {
            let workspace = Workspace::new();
            let path = workspace.path().join("f");
            std::fs::write(&path, "7".repeat(usize::try_from(LENGTH).unwrap())).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let save = |delay: std::time::Duration| {
                let file = file.try_clone().unwrap();
                std::thread::spawn(move || {
                    std::thread::sleep(delay);
                    file.write_all_at(b"theirs", LENGTH - 6).unwrap();
                })
            };
            let running = support::start(&workspace.command(&format!("{script}; echo done")));
            let mut began = None;
            let mut saving = None;
            let finished = running.wait_with(|_, _| {
                began = Some(std::time::Instant::now());
                saving = (moment > 0).then(|| save(took * (moment - 1) / MOMENTS));
            });
            let finished = finished.unwrap();
            if moment == 0 {
                // How long it takes when nobody saves.
                took = began.expect("output").elapsed();
                continue;
            }
            saving.expect("output").join().unwrap();
            let done = commit(&finished, &workspace);
            assert_eq!(
                done.failure.map(|failure| failure.error.code()),
                Some(Some(
                    hermitcrab_core::outcome::DenialCode::ChangedSinceShown
                )),
                "{script}, {moment}"
            );
            assert_eq!(std::fs::metadata(&path).unwrap().len(), LENGTH);
        }
    }
}

fn a_pipe_among_other_changes_leaves_nothing_half_applied() {
    let workspace = Workspace::new();
    workspace.file("old", "old\n");
    let finished = workspace.run("echo a > a; mkdir d; mkfifo z; rm old");
    let done = commit(&finished, &workspace);
    assert_eq!(done.applied, 0);
    assert_eq!(done.failure.unwrap().path, support::rel("z"));
    assert!(workspace.path().join("old").exists());
    assert!(!workspace.path().join("a").exists() && !workspace.path().join("d").exists());
}

fn no_file_comes_out_that_lends_its_owners_rights() {
    let workspace = Workspace::new();
    workspace.file("old", "old\n");
    for (script, first) in [
        ("cp /usr/bin/true x; chmod 4755 x", "x"),
        ("cp /usr/bin/true x; chmod 2755 x", "x"),
        ("chmod u+s old", "old"),
        ("echo new > old; chmod g+s old", "old"),
    ] {
        let finished = workspace.run(script);
        let done = commit(&finished, &workspace);
        let failure = done.failure.expect(script);
        assert_eq!((done.applied, failure.path), (0, support::rel(first)));
        assert_eq!(
            failure.error.code(),
            Some(hermitcrab_core::outcome::DenialCode::EffectNotCovered)
        );
        assert!(!workspace.path().join("x").exists());
    }
    // What was lent to the old content is not lent to the new one.
    workspace.file("lent", "old\n");
    let lent = workspace.path().join("lent");
    std::fs::set_permissions(&lent, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let finished = workspace.run("echo new > lent; chmod 4755 lent");
    let failure = commit(&finished, &workspace).failure.unwrap();
    assert_eq!(failure.path, support::rel("lent"));
    let finished = workspace.run("echo new > lent; chmod 755 lent");
    assert!(commit(&finished, &workspace).failure.is_none());
    assert_eq!(
        std::fs::metadata(&lent).unwrap().permissions().mode() & 0o7777,
        0o755
    );
    // A directory's group bit is handed down and lends nothing.
    let done = commit(&workspace.run("mkdir s; chmod 2755 s"), &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
}

#[test]
fn files_of_holes_beyond_the_views_size_are_an_error_at_once() {
    let workspace = Workspace::new();
    let many = workspace.command("for i in 1 2 3 4 5; do truncate -s 1G $i; done");
    let error = support::run(&many).unwrap_err();
    assert!(
        matches!(error, hermitcrab_sandbox::SpawnError::ChangeSet(_)),
        "{error}"
    );
    let finished = workspace.run("truncate -s 1M small");
    assert!(commit(&finished, &workspace).failure.is_none());
}

fn too_few_permits_apply_nothing() {
    let workspace = Workspace::new();
    let finished = workspace.run("echo a > a; echo b > b");
    let set = &finished.changes[0];
    let mut actions = set.actions(workspace.cap.id()).unwrap();
    actions.pop();
    let done = support::with_permits(hermitcrab_core::tool::Tool::Directory, actions, |permits| {
        let dir = &workspace.cap;
        let (journal, _) = hermitcrab_sandbox::Journal::open(workspace.state.path()).unwrap();
        journal.commit(
            vec![hermitcrab_sandbox::journal::Part { dir, set, permits }],
            "",
        )
    });
    assert_eq!(done.applied, 0);
    assert!(done.failure.is_some() && !workspace.path().join("a").exists());
}

fn both_versions_of_a_changed_file_can_be_shown() {
    let workspace = Workspace::new();
    workspace.file("d/f", "old\n");
    let finished = workspace.run("echo new > d/f");
    let set = &finished.changes[0];
    let path = support::rel("d/f");
    assert_eq!(set.content_before(&path, 100).unwrap(), b"old\n");
    assert_eq!(set.content_after(&path, 100).unwrap(), b"new\n");
    assert!(set.content_after(&path, 3).is_err());
}

support::on_all_layers!(
    what_was_below_a_tree_made_again_is_gone,
    nothing_happens_outside_until_the_change_set_is_committed,
    reading_listing_and_what_is_undone_change_nothing,
    a_file_that_is_written_as_it_was_or_touched_gets_its_time,
    a_directory_that_was_emptied_or_made_again_lists_what_is_gone,
    a_whole_tree_that_is_deleted_is_listed_leaf_by_leaf,
    a_name_that_becomes_another_kind_of_thing_is_removed_first,
    permission_bits_are_changes_of_their_own,
    big_sparse_and_linked_files_are_ordinary_files,
    names_that_are_not_text_are_kept,
    a_file_that_changed_meanwhile_is_not_overwritten_or_deleted,
    a_link_planted_meanwhile_leads_nothing_out,
    pipes_and_sockets_are_shown_and_never_made,
    what_somebody_saved_while_the_command_ran_is_not_overwritten,
    what_somebody_saves_while_it_is_compared_is_not_overwritten,
    a_pipe_among_other_changes_leaves_nothing_half_applied,
    no_file_comes_out_that_lends_its_owners_rights,
    too_few_permits_apply_nothing,
    both_versions_of_a_changed_file_can_be_shown,
);

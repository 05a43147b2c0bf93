//! What is mounted within a workspace, or on one a commit was made in, and does not answer.

use std::path::Path;
use std::process::Command as Bare;
use std::sync::mpsc::channel;
use std::time::Duration;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::journal::UndoError;

use super::{Server, alone_with_copies, on as on_dir, ran};
use crate::journal::{At, Cut};
use crate::support::arranged::{Run, UNSHARE, twice};
use crate::support::{Workspace, commit, commit_in, commit_of, on, tree, undo_in};

/// Longer than anything here may be held up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the test, with whatever waits for the file system, where this is held up.
fn in_time(what: &str, act: impl FnOnce()) {
    let (over, is_over) = channel::<()>();
    let told = what.to_owned();
    let _watches = std::thread::spawn(move || {
        if is_over.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            println!("held up: {told}");
            std::process::exit(3);
        }
    });
    act();
    drop(over);
}

fn also_at(server: &Server, at: &Path) {
    let mounted = Bare::new("mount")
        .arg("--bind")
        .args([server.place.as_path(), at])
        .status();
    assert!(mounted.unwrap().success());
}

#[test]
fn a_mount_within_a_workspace_that_does_not_answer_holds_up_nobody() {
    let name = "hanging::within::a_mount_within_a_workspace_that_does_not_answer_holds_up_nobody";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    // Removed after the server has ended, which it may lie on.
    let workspace = Workspace::new();
    let Some(mut server) = Server::start() else {
        return;
    };
    let at = |name: &str| workspace.path().join(name);
    workspace.file("t/f", "f\n");
    std::fs::create_dir(at("t/m")).unwrap();
    let made = workspace.run("mkdir -p u/m; echo x > u/f");
    let id = commit(&made, &workspace).id.unwrap();
    let beside = workspace.run("mkdir -p u/m/deep; echo y > u/m/deep/y");
    let below = commit(&beside, &workspace).id.unwrap();
    also_at(&server, &at("t/m"));
    also_at(&server, &at("u/m"));
    server.tell("hold");
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            for script in [
                "rm -rf t",
                "mv t other",
                "mkdir -p t/m; echo x > t/m/new",
                "rmdir t/m",
            ] {
                let told = format!("{script}, {layer:?}");
                in_time(&told, || {
                    let finished = workspace.run(script);
                    let never = finished.changes[0].never_kept();
                    let (_, denial) = never.unwrap_or_else(|| panic!("{told}: kept"));
                    assert_eq!(denial.code(), DenialCode::MountCrossing, "{told}");
                    assert!(commit(&finished, &workspace).failure.is_some(), "{told}");
                });
            }
            in_time("beside it", || {
                let finished = workspace.run("echo more >> t/f");
                let failure = commit(&finished, &workspace).failure;
                assert!(failure.is_none(), "{layer:?}: {failure:?}");
            });
        });
    }
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    for id in [id, below] {
        in_time("undo", || {
            let undone = undo_in(&journal, id, &workspace).map(|undone| undone.failure);
            assert!(!matches!(undone, Ok(None)), "{id}: {undone:?}");
        });
    }
    drop(server);
}

#[test]
fn a_workspace_of_before_that_does_not_answer_holds_up_no_other() {
    let name = "hanging::within::a_workspace_of_before_that_does_not_answer_holds_up_no_other";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: /dev/shm cannot be written");
        return;
    };
    let mut workspace = Workspace::new();
    workspace.state = state;
    let Some(mut server) = Server::start() else {
        return;
    };
    let made = workspace.run("echo x > f");
    let id = commit(&made, &workspace).id.unwrap();
    let other = Workspace::new();
    let elsewhere = other.run("echo y > g");
    also_at(&server, workspace.path());
    server.tell("hold");
    in_time("another workspace", || {
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
        let done = crate::support::commit_in(&journal, &elsewhere.changes[0], &other);
        assert!(done.failure.is_none(), "{:?}", done.failure);
        // Who asks for just that one is told.
        match journal.prepare_undo(id) {
            Err(UndoError::Root(why)) => assert!(why.contains("does not answer"), "{why}"),
            undo => panic!("{undo:?}"),
        }
    });
    drop(server);
}

#[test]
fn what_was_cut_off_where_nobody_answers_waits_and_all_else_goes_on() {
    let name = "hanging::within::what_was_cut_off_where_nobody_answers_waits_and_all_else_goes_on";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let workspace = Workspace::new();
    workspace.file("f", "f\n");
    let before = tree(workspace.path());
    let Some(mut server) = Server::start() else {
        return;
    };
    let made = workspace.run("echo x > f; echo y > g");
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&journal, &made.changes[0], &workspace);
        assert!(done.failure.is_some(), "nothing was cut off in the midst");
        drop(journal);
        if tree(workspace.path()) != before {
            break;
        }
    }
    let other = Workspace::new();
    let elsewhere = other.run("echo y > g");
    let here = workspace.run("echo z > f");
    also_at(&server, workspace.path());
    server.tell("hold");
    let at = std::path::PathBuf::from(workspace.path());
    in_time("another workspace", || {
        for _ in 0..2 {
            let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
            let waits: Vec<&Path> = recovered.waiting.iter().map(|(_, at)| &**at).collect();
            assert_eq!(waits, [&*at], "{recovered:?}");
            let refused = commit_in(&journal, &here.changes[0], &workspace).failure;
            let refused = refused.unwrap().error.to_string();
            assert!(refused.contains("does not answer"), "{refused}");
        }
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let done = commit_in(&journal, &elsewhere.changes[0], &other);
        assert!(done.failure.is_none(), "{:?}", done.failure);
    });
    let unmounted = Bare::new("umount").arg("-l").arg(workspace.path()).status();
    assert!(unmounted.unwrap().success());
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert_eq!(recovered.taken_back.len(), 1, "{recovered:?}");
    assert_eq!(tree(workspace.path()), before);
    drop(journal);
    drop(server);
}

#[test]
fn a_commit_where_nobody_answers_any_more_is_left_and_told_and_others_go_on() {
    let name =
        "hanging::within::a_commit_where_nobody_answers_any_more_is_left_and_told_and_others_go_on";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let workspace = Workspace::new();
    let Some(mut server) = Server::start() else {
        return;
    };
    let (sandbox, cap) = (alone_with_copies(), server.cap());
    let script = "echo x > /srv/d/new";
    let made = ran(&sandbox, &on_dir(&workspace, &cap, "/srv/d", script)).unwrap();
    assert_eq!(made.changes[0].changes().len(), 1);
    let elsewhere = workspace.run("echo y > g");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let journal = journal.giving_up_after(Duration::from_secs(1));
    server.tell("swallow");
    in_time("its commit", || {
        let failure = commit_of(&journal, &made.changes[0], &cap).failure.unwrap();
        let told = failure.error.to_string();
        assert!(told.contains("does not answer in time"), "{told}");
        // Nothing had been done under any name yet.
        assert_eq!(failure.stuck, []);
    });
    in_time("another's", || {
        let (beside, _) = Journal::open(workspace.state.path()).unwrap();
        let done = commit_in(&beside, &elsewhere.changes[0], &workspace);
        assert!(done.failure.is_none(), "{:?}", done.failure);
    });
    drop(server);
}

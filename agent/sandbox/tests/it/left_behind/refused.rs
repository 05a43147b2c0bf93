//! Nothing stays behind either where the machine refuses what a sandbox is made of, where its
//! maker is killed, and where there is no room to keep what a command changed.
//!
//! Each is arranged around a second run of the test itself.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use hermitcrab_sandbox::journal::Journal;
use hermitcrab_sandbox::spawn::{Ending, Finished, Step};
use hermitcrab_sandbox::{Sandbox, SpawnError};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::{Census, assert_nothing_more};
use crate::support::arranged::{Run, UNPRIVILEGED, UNSHARE, small_disk, twice};
use crate::support::{
    Workspace, children, commit_in, groups_of, marker, processes_with, run, run_in, spawner, start,
    text, times,
};

/// More often than the sandboxes that wait may have of groups or descriptors.
const RUNS: u32 = 60;

/// So many runs, good and bad in turns as `good` and the program they are given say, leave
/// nothing behind.
fn leave_nothing(workspace: &Workspace, number: u32, each: impl Fn(&str)) {
    let marker = marker(number);
    each(&marker);
    each(&marker);
    let before = Census::taken(workspace, &marker, &[]);
    for _ in 0..times(RUNS) {
        each(&marker);
    }
    assert_nothing_more(&before, workspace, &marker, &[]);
}

/// One that ends well, one that cannot be started, and one that leaves a process.
fn good_and_bad(workspace: &Workspace, marker: &str, check: impl Fn(&Finished)) {
    let finished = workspace.run(&format!("echo ran > f; (setsid sleep {marker} &)"));
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    check(&finished);
    finished.changes.into_iter().for_each(|set| set.discard());
    let mut command = workspace.command("true");
    command.argv = vec![b"no-such-program".to_vec()];
    assert!(run(&command).is_err());
}

#[test]
fn without_user_namespaces_nothing_is_left() {
    let name = "left_behind::refused::without_user_namespaces_nothing_is_left";
    let arrange = "echo 0 > /proc/sys/user/max_user_namespaces";
    let Some(Run::Inner) = twice(name, &UNPRIVILEGED, arrange, "") else {
        return;
    };
    let workspace = Workspace::new();
    leave_nothing(&workspace, 951, |_| match run(&workspace.command("true")) {
        Err(SpawnError::Step(error)) => assert_eq!(error.step(), Step::Namespaces, "{error}"),
        other => panic!("{other:?}"),
    });
}

#[test]
fn without_an_overlay_nothing_is_left() {
    let name = "left_behind::refused::without_an_overlay_nothing_is_left";
    // A third overlay on two others is one too many.
    let arrange = "set -e; mkdir t; mount -t tmpfs tmpfs t; cd t
        mkdir 0 u1 w1 m1 u2 w2 m2
        mount -t overlay overlay -o lowerdir=0,upperdir=u1,workdir=w1 m1
        mount -t overlay overlay -o lowerdir=m1,upperdir=u2,workdir=w2 m2; chmod 777 m2";
    let Some(Run::Inner) = twice(name, &UNSHARE, arrange, "") else {
        return;
    };
    let workspace = Workspace::at(tempfile::tempdir_in("m2").unwrap());
    leave_nothing(&workspace, 952, |marker| {
        good_and_bad(&workspace, marker, |finished| {
            assert!(finished.confined.copied.is_some());
        });
    });
}

#[test]
fn without_groups_nothing_is_left() {
    let name = "left_behind::refused::without_groups_nothing_is_left";
    let arrange = "while read -r _ _ _ _ at _; do
        case $at in /sys/fs/cgroup*) mount -o remount,bind,ro \"$at\" || exit 77 ;; esac
        done < /proc/self/mountinfo";
    let Some(Run::Inner) = twice(name, &UNSHARE, arrange, "") else {
        return;
    };
    let workspace = Workspace::new();
    leave_nothing(&workspace, 953, |marker| {
        good_and_bad(&workspace, marker, |finished| {
            let missing = &finished.confined.missing;
            assert!(
                missing
                    .iter()
                    .any(|why| why.starts_with("control groups: "))
            );
        });
    });
}

#[test]
fn of_killed_spawners_nothing_is_left() {
    let name = "left_behind::refused::of_killed_spawners_nothing_is_left";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let workspace = Workspace::new();
    // Their groups are counted by their numbers, which are no children any more.
    let killed = RefCell::new(Vec::new());
    leave_nothing(&workspace, 954, |marker| {
        let running = start(&workspace.command(&format!("echo runs; exec sleep {marker}")));
        let mut is_killed = false;
        let ended = running.wait_with(|_, _| {
            // Whatever made it, at once and without a word.
            for child in children().into_iter().filter(|_| !is_killed) {
                let pid = rustix::process::Pid::from_raw(child).unwrap();
                killed.borrow_mut().push(child.unsigned_abs());
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            is_killed = true;
        });
        assert!(is_killed);
        assert!(ended.is_err(), "{ended:?}");
        while processes_with(marker) > 0 {
            std::thread::yield_now();
        }
        let finished = workspace.run("echo again");
        assert_eq!(text(&finished), "again\n");
    });
    // A killed one takes its groups away no more. They are empty, and the next spawner does
    // it once they are old: so that nobody's are taken who is only out of sight.
    let killed = killed.into_inner();
    let left = || -> Vec<PathBuf> { killed.iter().flat_map(|of| groups_of(*of)).collect() };
    for group in left() {
        let long_ago = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: long_ago,
            last_modification: long_ago,
        };
        utimensat(CWD, group, &times, AtFlags::empty()).unwrap();
    }
    let next = Sandbox::builder().spawner(spawner()).build();
    let finished = run_in(&next, &workspace.command("true")).unwrap();
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(left(), [""; 0].map(PathBuf::from));
}

#[test]
fn where_there_is_no_room_for_changes_nothing_is_left() {
    let name = "left_behind::refused::where_there_is_no_room_for_changes_nothing_is_left";
    let Some(small) = small_disk(name) else {
        return;
    };
    let workspace = Workspace::at(tempfile::tempdir_in(&small).unwrap());
    workspace.file("f", "before\n");
    let (journal, _recovered) = Journal::open(workspace.state.path()).unwrap();
    let used = |at: &Path| {
        let room = rustix::fs::statvfs(at).unwrap();
        room.f_blocks - room.f_bfree
    };
    let before = used(&small);
    leave_nothing(&workspace, 955, |_| {
        let finished =
            workspace.run("echo after > f; head -c 4194304 /dev/zero | tr '\\0' x > big");
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        let commit = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(commit.failure.is_some(), "{commit:?}");
        assert_eq!(workspace.read("f"), "before\n");
        assert_eq!(used(&small), before);
        finished.changes.into_iter().for_each(|set| set.discard());
    });
}

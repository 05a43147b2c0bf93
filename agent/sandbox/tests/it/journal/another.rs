//! Another disk at the place where a commit was cut off: it is not touched, whatever it holds
//! and whatever number its directory has, and the commit waits for the one that is meant.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Bare;

use hermitcrab_sandbox::journal::Recovered;
use hermitcrab_sandbox::{DirCap, Journal};

use super::unreached::{cut_off, nothing_is_lost};
use super::{At, Cut, MARKS, commit_in, plant, stray, undo_in};
use crate::support::arranged::{Run, UNSHARE, twice};
use crate::support::{Workspace, dir_id, tree, undo_of};

const SCRIPT: &str = "echo 1 > a; rm b; mv d/x y; mkdir n; echo 2 > n/m; chmod 700 e";

/// How two disks are made, each at its place.
struct Kind {
    name: &'static str,
    script: &'static str,
}

const TMPFS: Kind = Kind {
    name: "tmpfs",
    script: "mount -t tmpfs none first && mount -t tmpfs none second",
};
/// Made at once: what they know of births is the same.
const EXT4: Kind = Kind {
    name: "ext4",
    script: "for one in first second; do truncate -s 24M $one.image && mkfs.ext4 -q -F $one.image || exit 1; done; \
             for one in first second; do mount -o loop $one.image $one || exit 1; done",
};
const XFS: Kind = Kind {
    name: "xfs",
    script: "for one in first second; do truncate -s 300M $one.image && mkfs.xfs -q -f $one.image || exit 1; done; \
             for one in first second; do mount -o loop $one.image $one || exit 1; done",
};

/// Two disks, of which one lies at a place.
struct Disks {
    _dir: tempfile::TempDir,
    first: PathBuf,
    second: PathBuf,
    workspace: Workspace,
}

fn sh(dir: &Path, script: &str, words: &[&Path]) -> bool {
    let told = Bare::new("sh")
        .args(["-c", script, "sh"])
        .args(words)
        .current_dir(dir)
        .output()
        .unwrap();
    if !told.status.success() {
        println!("{script}: {told:?}");
    }
    told.status.success()
}

fn lies_at(disk: &Path, place: &Path) {
    assert!(sh(
        place.parent().unwrap(),
        "mount --bind \"$1\" \"$2\"",
        &[disk, place]
    ));
}

impl Disks {
    /// New ones, the first with something in it, and at its place.
    fn new(kind: &Kind) -> Option<Self> {
        let dir = tempfile::tempdir_in(".").unwrap();
        let at = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["first", "second"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        if !sh(&at, kind.script, &[]) {
            println!("SKIPPED: {} cannot be mounted here", kind.name);
            return None;
        }
        let place = tempfile::tempdir_in(&at).unwrap();
        lies_at(&at.join("first"), place.path());
        let workspace = Workspace::at(place);
        plant(workspace.path());
        Some(Self {
            first: at.join("first"),
            second: at.join("second"),
            workspace,
            _dir: dir,
        })
    }

    fn exchange(&self, disk: &Path) {
        let place = self.workspace.path();
        // The workspace is open still.
        assert!(sh(Path::new("/"), "umount --lazy \"$1\"", &[place]));
        lies_at(disk, place);
    }
}

fn waits(recovered: &Recovered, at: &Path) -> String {
    nothing_is_lost(recovered);
    let [unreached] = &recovered.unreached[..] else {
        panic!("{recovered:?}")
    };
    assert_eq!((unreached.at.as_path(), unreached.is_elsewhere), (at, true));
    let told = unreached.to_string();
    assert!(
        told.contains(&format!("`{}`", at.display())) && told.contains("undo --forget 1`"),
        "{told}"
    );
    told
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Holds {
    /// What is on the other, without what is staged there.
    WhatIsThere,
    /// All of it.
    All,
}

fn with_another_disk(kind: &Kind) {
    let mut waited = 0;
    for steps in 0.. {
        let Some(disks) = Disks::new(kind) else {
            return;
        };
        let workspace = &disks.workspace;
        let (at, state) = (workspace.path(), workspace.state.path());
        let finished = workspace.run(SCRIPT);
        let before = tree(at);
        let is_cut = cut_off(steps, state, |journal| {
            commit_in(journal, &finished.changes[0], workspace)
                .failure
                .is_none()
        });
        if !is_cut {
            break;
        }
        if !state.join("journal/00000001/plan").exists()
            || state.join("journal/00000001/committed").exists()
        {
            continue;
        }
        waited += 1;
        for holds in [Holds::WhatIsThere, Holds::All] {
            let script = match holds {
                Holds::All => "find . ! -name . -prune -exec rm -rf {} +; cp -a \"$1\"/. .",
                Holds::WhatIsThere => "cp -a \"$1\"/. . && rm -rf .hermitcrab-*",
            };
            assert!(sh(&disks.second, script, &[&disks.first]));
            let number = |at: &Path| std::fs::metadata(at).unwrap().ino();
            assert_eq!(number(&disks.first), number(&disks.second));
            disks.exchange(&disks.second);
            let left = (tree(&disks.first), tree(at));
            let (journal, recovered) = Journal::open(state).unwrap();
            waits(&recovered, at);
            assert_eq!(
                (tree(&disks.first), tree(at)),
                left,
                "{}, {holds:?}, cut after {steps}",
                kind.name
            );
            // It is in nobody's way there.
            let other = Workspace::new();
            let done = commit_in(&journal, &other.run("echo o > o").changes[0], &other);
            assert!(done.failure.is_none(), "{:?}", done.failure);
            disks.exchange(&disks.first);
        }
        let (_, recovered) = Journal::open(state).unwrap();
        nothing_is_lost(&recovered);
        assert_eq!(recovered.taken_back.len(), 1, "{recovered:?}");
        assert_eq!(tree(at), before, "{}, cut after {steps}", kind.name);
    }
    assert!(waited > 3, "{waited}");
}

#[test]
fn another_disk_is_not_touched_and_the_commit_waits_for_the_one_it_was_of() {
    let name =
        "journal::another::another_disk_is_not_touched_and_the_commit_waits_for_the_one_it_was_of";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    with_another_disk(&TMPFS);
}

#[test]
fn disks_that_were_made_at_once_are_told_apart() {
    let name = "journal::another::disks_that_were_made_at_once_are_told_apart";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    with_another_disk(&EXT4);
    with_another_disk(&XFS);
}

#[test]
fn of_a_plan_without_marks_a_disk_without_what_was_staged_is_not_touched() {
    let name =
        "journal::another::of_a_plan_without_marks_a_disk_without_what_was_staged_is_not_touched";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    let mut waited = 0;
    for steps in 0.. {
        let Some(disks) = Disks::new(&TMPFS) else {
            return;
        };
        let workspace = &disks.workspace;
        let (at, state) = (workspace.path(), workspace.state.path());
        let finished = workspace.run(SCRIPT);
        let before = tree(at);
        let is_cut = cut_off(steps, state, |journal| {
            commit_in(journal, &finished.changes[0], workspace)
                .failure
                .is_none()
        });
        if !is_cut || state.join("journal/00000001/committed").exists() {
            break;
        }
        if !state.join("journal/00000001/plan").exists() {
            continue;
        }
        waited += 1;
        // As an earlier version wrote it.
        rustix::fs::removexattr(state.join("journal/00000001/plan"), MARKS).unwrap();
        assert!(sh(
            &disks.second,
            "cp -a \"$1\"/. . && rm -rf .hermitcrab-*",
            &[&disks.first]
        ));
        disks.exchange(&disks.second);
        let left = tree(at);
        let (_, recovered) = Journal::open(state).unwrap();
        let told = waits(&recovered, at);
        assert!(told.contains(".hermitcrab-"), "{told}");
        assert_eq!(tree(at), left, "cut after {steps}");
        disks.exchange(&disks.first);
        let (_, recovered) = Journal::open(state).unwrap();
        nothing_is_lost(&recovered);
        assert_eq!(tree(at), before, "cut after {steps}");
        assert_eq!(stray(workspace), [""; 0]);
    }
    assert!(waited > 3, "{waited}");
}

/// What was staged lies in the journal, on the same disk as the workspace.
#[test]
fn what_is_mounted_over_a_workspace_is_not_taken_for_it() {
    let name = "journal::another::what_is_mounted_over_a_workspace_is_not_taken_for_it";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    for has_marks in [true, false] {
        let mut waited = 0;
        for steps in 0.. {
            let Some(disks) = Disks::new(&TMPFS) else {
                return;
            };
            let mut workspace = Workspace::at(tempfile::tempdir_in(&disks.first).unwrap());
            workspace.state = tempfile::tempdir_in(&disks.first).unwrap();
            plant(workspace.path());
            let (at, state) = (workspace.path(), workspace.state.path());
            let finished = workspace.run(SCRIPT);
            let before = tree(at);
            let is_cut = cut_off(steps, state, |journal| {
                commit_in(journal, &finished.changes[0], &workspace)
                    .failure
                    .is_none()
            });
            if !is_cut || state.join("journal/00000001/committed").exists() {
                break;
            }
            if !state.join("journal/00000001/plan").exists() {
                continue;
            }
            waited += 1;
            if !has_marks {
                rustix::fs::removexattr(state.join("journal/00000001/plan"), MARKS).unwrap();
            }
            let number = std::fs::metadata(at).unwrap().ino();
            let other = (0..1000)
                .map(|name| disks.second.join(name.to_string()))
                .find(|place| {
                    std::fs::create_dir(place).unwrap();
                    std::fs::metadata(place).unwrap().ino() == number
                });
            let other = other.unwrap();
            assert!(sh(&other, "cp -a \"$1\"/. .", &[at]));
            lies_at(&other, at);
            let left = tree(at);
            let (_, recovered) = Journal::open(state).unwrap();
            waits(&recovered, at);
            assert_eq!(tree(at), left, "{has_marks}, cut after {steps}");
            assert!(sh(Path::new("/"), "umount \"$1\"", &[at]));
            let (_, recovered) = Journal::open(state).unwrap();
            nothing_is_lost(&recovered);
            assert_eq!(tree(at), before, "{has_marks}, cut after {steps}");
        }
        assert!(waited > 3, "{waited}");
    }
}

#[test]
fn what_was_done_on_one_disk_is_not_taken_back_on_another() {
    let name = "journal::another::what_was_done_on_one_disk_is_not_taken_back_on_another";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    let Some(disks) = Disks::new(&TMPFS) else {
        return;
    };
    let workspace = &disks.workspace;
    let (at, state) = (workspace.path(), workspace.state.path());
    let before = tree(at);
    let (journal, _) = Journal::open(state).unwrap();
    let done = commit_in(&journal, &workspace.run(SCRIPT).changes[0], workspace);
    let id = done.id.unwrap();
    let after = tree(at);
    assert_ne!(after, before);
    assert!(sh(&disks.second, "cp -a \"$1\"/. .", &[&disks.first]));
    disks.exchange(&disks.second);
    let refused = undo_in(&journal, id, workspace).unwrap_err().to_string();
    assert!(refused.contains("is another directory now"), "{refused}");
    assert_eq!(tree(at), after);
    disks.exchange(&disks.first);
    let there = DirCap::open_ambient_dir(at, dir_id()).unwrap();
    let undone = undo_of(&journal, id, &there).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(tree(at), before);
}

#[test]
fn what_can_only_be_read_waits_and_others_go_on() {
    let name = "journal::another::what_can_only_be_read_waits_and_others_go_on";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    let Some(disks) = Disks::new(&TMPFS) else {
        return;
    };
    let workspace = &disks.workspace;
    let (at, state) = (workspace.path(), workspace.state.path());
    let before = tree(at);
    let finished = workspace.run(SCRIPT);
    let mut steps = 0;
    while tree(at) == before {
        steps += 1;
        Journal::open(state).unwrap();
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(state, Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], workspace);
        assert!(done.failure.is_some());
        if state.join("journal/00000001/opening").exists()
            && !state.join("journal/00000001/plan").exists()
        {
            // What was made ready is no change.
            drop(journal);
            Journal::open(state).unwrap();
        }
    }
    let half = tree(at);
    assert!(sh(
        Path::new("/"),
        "mount -o remount,ro \"$1\"",
        &[&disks.first]
    ));
    let (journal, recovered) = Journal::open(state).unwrap();
    nothing_is_lost(&recovered);
    let [unreached] = &recovered.unreached[..] else {
        panic!("{recovered:?}")
    };
    assert!(unreached.why.contains("can only be read"), "{unreached}");
    assert!(!unreached.is_elsewhere);
    assert_eq!(tree(at), half);
    let other = Workspace::new();
    let done = commit_in(&journal, &other.run("echo o > o").changes[0], &other);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    drop(journal);
    assert!(sh(
        Path::new("/"),
        "mount -o remount,rw \"$1\"",
        &[&disks.first]
    ));
    let (_, recovered) = Journal::open(state).unwrap();
    nothing_is_lost(&recovered);
    assert_eq!(recovered.taken_back.len(), 1, "{recovered:?}");
    assert_eq!(tree(at), before);
}

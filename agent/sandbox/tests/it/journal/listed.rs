//! Access lists (POSIX ACLs): who may read a file is neither more nor less after it was
//! written, changed by a commit, or taken away and brought back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::{Journal, sha256};
use rustix::fs::XattrFlags;

use super::recorded::put;
use super::{Workspace, commit_in, undo_in};

const OWN: &str = "system.posix_acl_access";
const HANDED_DOWN: &str = "system.posix_acl_default";
/// Somebody else, who is named in the lists.
const SOMEBODY: u32 = 1234;

/// Owner, somebody by name, group, what all of them have at most, and all others.
fn set(at: &Path, kind: &str, [owner, somebody, group, most, others]: [u16; 5]) {
    let none = u32::MAX;
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, may, id) in [
        (0x01, owner, none),
        (0x02, somebody, SOMEBODY),
        (0x04, group, none),
        (0x10, most, none),
        (0x20, others, none),
    ] {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(may));
        list.extend(u32::to_le_bytes(id));
    }
    rustix::fs::setxattr(at, kind, &list, XattrFlags::empty()).unwrap();
}

/// Its permission bits, and its list if it has one.
type LetsIn = (u32, Option<Vec<u8>>);

fn lets_in(at: &Path) -> LetsIn {
    let mut list = vec![0; 1024];
    let list = rustix::fs::getxattr(at, OWN, &mut list).ok().map(|length| {
        list.truncate(length);
        list
    });
    let mode = std::fs::symlink_metadata(at).unwrap().permissions().mode();
    (mode & 0o7777, list)
}

/// Everything below, by name.
fn all(workspace: &Workspace, names: &[&str]) -> Vec<LetsIn> {
    let at = |name: &&str| lets_in(&workspace.path().join(name));
    names.iter().map(at).collect()
}

/// A file of which the group may nothing, though its bits say so; one without a list; and
/// both in a directory. Somebody may read whatever else is made there.
fn workspace(state: tempfile::TempDir) -> Workspace {
    let mut workspace = Workspace::new();
    workspace.state = state;
    for name in ["listed", "plain", "d/listed", "d/plain", "d/s/listed"] {
        workspace.file(name, "before\n");
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(workspace.path().join(name), mode).unwrap();
        if name.ends_with("listed") {
            set(&workspace.path().join(name), OWN, [6, 4, 0, 4, 0]);
        }
    }
    for dir in [workspace.path(), workspace.state.path()] {
        set(dir, HANDED_DOWN, [7, 7, 7, 7, 5]);
    }
    workspace
}

/// Beside the workspace, and on another file system.
fn each(test: impl Fn(Workspace)) {
    test(workspace(tempfile::tempdir().unwrap()));
    match tempfile::tempdir_in("/dev/shm") {
        Ok(state) => test(workspace(state)),
        Err(_) => println!("SKIPPED: /dev/shm cannot be written"),
    }
}

const FILES: [&str; 2] = ["listed", "plain"];
const ALL: [&str; 7] = [
    "listed",
    "plain",
    "d",
    "d/s",
    "d/listed",
    "d/plain",
    "d/s/listed",
];

/// Takes back all that can be, the newest first.
fn all_taken_back(journal: &Journal, workspace: &Workspace) {
    for kept in journal.list().unwrap().iter().rev() {
        let undone = undo_in(journal, kept.id, workspace).unwrap();
        assert!(undone.failure.is_none(), "{:?}", undone.failure);
    }
}

#[test]
fn a_file_that_is_written_lets_in_whom_it_let_in_and_so_does_the_one_before() {
    each(|workspace| {
        let before = all(&workspace, &FILES);
        assert_eq!(before[0].0, before[1].0);
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        for name in FILES {
            let base = Base::Content(sha256(b"before\n"));
            put(&journal, &workspace, (name, "after\n"), base, || {}).unwrap();
            assert_eq!(workspace.read(name), "after\n");
        }
        assert_eq!(all(&workspace, &FILES), before, "written");
        all_taken_back(&journal, &workspace);
        assert_eq!(workspace.read("listed"), "before\n");
        assert_eq!(all(&workspace, &FILES), before, "taken back");
    });
}

#[test]
fn what_a_commit_changes_or_takes_away_lets_in_whom_it_let_in_and_comes_back_so() {
    each(|workspace| {
        let before = all(&workspace, &ALL);
        let finished = workspace.run("echo more >> plain; rm -r listed d; echo new > new");
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_none(), "{:?}", done.failure);
        assert_eq!(workspace.read("plain"), "before\nmore\n");
        assert_eq!(all(&workspace, &["plain"]), before[1..2], "changed");
        assert_eq!(lets_in(&workspace.path().join("new")).1, None, "made");
        all_taken_back(&journal, &workspace);
        assert_eq!(workspace.read("d/s/listed"), "before\n");
        assert_eq!(all(&workspace, &ALL), before, "taken back");
    });
}

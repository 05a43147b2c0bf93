//! The parts of a change set that are easily forgotten, each carried over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::changeset::{Layer, What, Whose};
use hermitcrab_sandbox::spawn::{Ending, Finished};
use support::{Workspace, commit, text, tree};

fn ran(workspace: &Workspace, script: &str) -> Finished {
    let finished = workspace.run(script);
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    finished
}

fn kept(workspace: &Workspace, finished: &Finished) {
    let done = commit(finished, workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
}

fn ten_thousand_files_are_one_commit() {
    let workspace = Workspace::new();
    for number in 0..200 {
        workspace.file(&format!("old/{number}"), "old\n");
    }
    let finished = ran(
        &workspace,
        "mkdir new; for d in $(seq 100); do mkdir new/$d; for f in $(seq 98); do echo $d.$f > new/$d/$f; done; done
         for f in old/*; do echo changed > $f; done",
    );
    let set = &finished.changes[0];
    assert_eq!(set.changes().len(), 1 + 100 + 9_800 + 200);
    kept(&workspace, &finished);
    let read = |name: &str| std::fs::read_to_string(workspace.path().join(name)).unwrap();
    assert_eq!(read("new/100/98"), "100.98\n");
    assert_eq!(read("old/199"), "changed\n");
    assert_eq!(tree(workspace.path()).len(), 1 + 1 + 200 + 1 + 100 + 9_800);
}

fn files_and_whole_directories_under_other_names_are_told_as_renames() {
    let workspace = Workspace::new();
    workspace.file("a", "some text\n");
    workspace.file("d/s/x", "x\n");
    workspace.file("d/y", "y\n");
    workspace.file("empty", "");
    let finished = ran(&workspace, "mv a b; mv d e; mv empty void");
    let renames: Vec<_> = finished.changes[0]
        .renames()
        .iter()
        .map(|rename| format!("{} -> {}", rename.from, rename.to))
        .collect();
    assert_eq!(renames, ["a -> b", "d -> e"]);
    kept(&workspace, &finished);
    let read = |name: &str| std::fs::read_to_string(workspace.path().join(name)).ok();
    assert_eq!(read("e/s/x").as_deref(), Some("x\n"));
    assert_eq!((read("d/y"), read("a"), read("empty")), (None, None, None));
}

fn attributes_are_changes_of_their_own_and_others_survive_a_new_version() {
    let workspace = Workspace::new();
    let set = |name: &str, attribute: &str| {
        let path = workspace.path().join(name);
        let none = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, attribute, b"before", none)
    };
    for name in ["rewritten", "changed", "cleared"] {
        workspace.file(name, "old\n");
    }
    workspace.file("d/f", "f\n");
    if set("rewritten", "user.kept").is_err() {
        println!("SKIPPED: this file system has no user attributes");
        return;
    }
    set("changed", "user.a").unwrap();
    set("cleared", "user.a").unwrap();
    let finished = ran(
        &workspace,
        "echo new > rewritten; echo n > fresh
         python3 -c \"
import errno, os
try:
    os.setxattr('changed', 'user.a', b'after')
    os.removexattr('cleared', 'user.a')
    os.setxattr('fresh', 'user.b', b'new')
    os.setxattr('d', 'user.c', b'dir')
except OSError as error:
    # As the copy of a kernel whose tmpfs keeps none.
    assert error.errno == errno.ENOTSUP, error
    print('no attributes')
\"",
    );
    if support::text(&finished) == "no attributes\n" {
        assert!(finished.confined.copied.is_some());
        kept(&workspace, &finished);
        let xattrs = |name: &str| support::xattrs(&workspace.path().join(name));
        assert_eq!(xattrs("rewritten"), ["user.kept=before"]);
        assert_eq!(xattrs("changed"), ["user.a=before"]);
        assert_eq!(xattrs("cleared"), ["user.a=before"]);
        return;
    }
    let found: Vec<_> = finished.changes[0]
        .changes()
        .iter()
        .filter_map(|change| match &change.what {
            What::Xattrs { on, .. } => Some((change.path.to_string(), *on)),
            _ => None,
        })
        .collect();
    let old = |name: &str| (name.to_owned(), Whose::Old);
    assert_eq!(
        found,
        [
            old("changed"),
            old("cleared"),
            old("d"),
            ("fresh".to_owned(), Whose::New)
        ]
    );
    kept(&workspace, &finished);
    let xattrs = |name: &str| support::xattrs(&workspace.path().join(name));
    assert_eq!(xattrs("rewritten"), ["user.kept=before"]);
    assert_eq!(xattrs("changed"), ["user.a=after"]);
    assert_eq!(xattrs("cleared"), [""; 0]);
    assert_eq!(xattrs("fresh"), ["user.b=new"]);
    assert_eq!(xattrs("d"), ["user.c=dir"]);
}

fn an_outside_name_of_a_file_is_never_changed_with_it() {
    let outside = tempfile::tempdir().unwrap();
    let other = outside.path().join("other");
    for script in ["chmod 755 f", "echo new > f", "echo more >> f; chmod 600 f"] {
        let workspace = Workspace::new();
        workspace.file("f", "old\n");
        let _gone = std::fs::remove_file(&other);
        std::fs::hard_link(workspace.path().join("f"), &other).unwrap();
        let mode = || std::fs::metadata(&other).unwrap().permissions().mode() & 0o7777;
        let before = mode();
        kept(&workspace, &ran(&workspace, script));
        assert_eq!(mode(), before, "{script}");
        assert_eq!(
            std::fs::read_to_string(&other).unwrap(),
            "old\n",
            "{script}"
        );
        let inode = |path: &std::path::Path| std::fs::metadata(path).unwrap().ino();
        assert_ne!(
            inode(&other),
            inode(&workspace.path().join("f")),
            "{script}"
        );
    }
}

fn names_the_command_linked_together_stay_linked() {
    let workspace = Workspace::new();
    workspace.file("was-there", "text\n");
    let finished = ran(
        &workspace,
        "echo x > one; ln one two; mkdir d; ln one d/three; ln was-there link",
    );
    kept(&workspace, &finished);
    let inode = |name: &str| {
        std::fs::metadata(workspace.path().join(name))
            .unwrap()
            .ino()
    };
    assert_eq!(inode("one"), inode("two"));
    assert_eq!(inode("was-there"), inode("link"));
    let read = std::fs::read_to_string(workspace.path().join("d/three")).unwrap();
    assert_eq!(read, "x\n");
}

/// The layer of a file with several names that was written to and that of one that was
/// replaced look alike, where the view is an overlay.
fn another_name_of_a_file_follows_where_the_view_is_a_copy_and_else_keeps_what_it_held() {
    for (script, in_place) in [
        ("chmod 755 f", true),
        ("echo more >> f", true),
        ("sed -i s/old/new/ f", false),
    ] {
        let workspace = Workspace::new();
        workspace.file("f", "old\n");
        std::fs::hard_link(workspace.path().join("f"), workspace.path().join("g")).unwrap();
        let facts = |name: &str| {
            let path = workspace.path().join(name);
            let (meta, text) = (std::fs::metadata(&path), std::fs::read_to_string(&path));
            let meta = meta.unwrap();
            (meta.ino(), meta.permissions().mode(), text.unwrap())
        };
        let before = facts("g");
        kept(&workspace, &ran(&workspace, script));
        if in_place && support::layer_made() == Layer::Copy {
            assert_eq!(facts("g"), facts("f"), "{script}");
            assert_ne!(facts("g"), before, "{script}");
        } else {
            assert_eq!(facts("g"), before, "{script}");
            assert_ne!(facts("f"), before, "{script}");
        }
    }
}

fn a_file_that_was_made_without_a_name_gets_one_and_is_carried_over() {
    let workspace = Workspace::new();
    workspace.file("old/f", "f\n");
    workspace.file("other/deep/g", "g\n");
    let finished = ran(
        &workspace,
        "python3 -c \"
import errno, os, sys
def made(dir):
    file = os.open(dir, os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(file, dir.encode())
    return file
try:
    file = made('.')
except OSError as error:
    # As an overlay before Linux 6.1.
    assert error.errno in (errno.EOPNOTSUPP, errno.EISDIR), error
    print('none without a name')
    sys.exit()
# Whoever follows no link means the link itself, which lies in /proc: refused anywhere.
try:
    os.link(f'/proc/self/fd/{file}', 'never', follow_symlinks=False)
    sys.exit(1)
except OSError as error:
    assert error.errno == errno.EXDEV, error
for dir, name in [('.', 'one'), ('old', 'old/two'), ('old', 'other/deep/three')]:
    file = made(dir)
    os.link(f'/proc/self/fd/{file}', name, src_dir_fd=file, follow_symlinks=True)
\"",
    );
    if text(&finished) == "none without a name\n" {
        println!("SKIPPED: this kernel's overlay makes no file without a name");
        return;
    }
    let made = finished.changes[0].changes();
    assert_eq!(made.len(), 3, "{made:?}");
    kept(&workspace, &finished);
    for (name, held) in [
        ("one", "."),
        ("old/two", "old"),
        ("other/deep/three", "old"),
    ] {
        let path = workspace.path().join(name);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), held, "{name}");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[test]
fn holes_stay_holes() {
    let workspace = Workspace::new();
    let finished = ran(
        &workspace,
        "truncate -s 900M hollow; echo end >> hollow; truncate -s 1000M hollow",
    );
    kept(&workspace, &finished);
    let stat = std::fs::metadata(workspace.path().join("hollow")).unwrap();
    assert_eq!(stat.len(), 1000 << 20);
    assert!(stat.blocks() * 512 < 1 << 20, "{} blocks", stat.blocks());
}

#[test]
fn a_huge_file_is_not_held_in_memory() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        line.split_ascii_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let workspace = Workspace::new();
    let finished = ran(
        &workspace,
        "head -c 250000000 /dev/zero | tr '\\0' x > huge",
    );
    kept(&workspace, &finished);
    let stat = std::fs::metadata(workspace.path().join("huge")).unwrap();
    assert_eq!(stat.len(), 250_000_000);
    assert!(peak() < 100_000, "{} KiB at the peak", peak());
}

fn what_a_background_process_still_has_open_is_whole() {
    let workspace = Workspace::new();
    workspace.file("log", "start\n");
    let finished = ran(
        &workspace,
        "(exec >> log; while :; do echo line; done) & until [ \"$(wc -c < log)\" -gt 100 ]; do sleep 0.01; done; \
         exec 3> held; echo kept >&3; rm -f log.none; echo done",
    );
    kept(&workspace, &finished);
    let log = std::fs::read_to_string(workspace.path().join("log")).unwrap();
    assert!(log.starts_with("start\nline\n") && log.len() > 100);
    let held = std::fs::read_to_string(workspace.path().join("held")).unwrap();
    assert_eq!(held, "kept\n");
}

fn deleted_links_specials_and_modes_are_compared_again() {
    type Meddle = fn(&Workspace);
    let cases: [(&str, Meddle); 4] = [
        ("rm l", |workspace| {
            std::fs::remove_file(workspace.path().join("l")).unwrap();
            std::os::unix::fs::symlink("theirs", workspace.path().join("l")).unwrap();
        }),
        ("chmod 700 f", |workspace| {
            let mode = std::fs::Permissions::from_mode(0o640);
            std::fs::set_permissions(workspace.path().join("f"), mode).unwrap();
        }),
        ("chmod 700 d", |workspace| {
            let mode = std::fs::Permissions::from_mode(0o750);
            std::fs::set_permissions(workspace.path().join("d"), mode).unwrap();
        }),
        ("rm -r d", |workspace| workspace.file("d/theirs", "t\n")),
    ];
    for (script, meddle) in cases {
        let workspace = Workspace::new();
        workspace.file("f", "f\n");
        workspace.file("d/x", "x\n");
        std::os::unix::fs::symlink("f", workspace.path().join("l")).unwrap();
        let finished = ran(&workspace, &format!("{script}; echo new > new"));
        meddle(&workspace);
        let now = tree(workspace.path());
        let failure = commit(&finished, &workspace).failure.expect(script);
        assert_eq!(
            failure.error.code(),
            Some(DenialCode::ChangedSinceShown),
            "{script}"
        );
        assert_eq!(tree(workspace.path()), now, "{script}");
    }
}

fn what_a_build_compares_by_time_keeps_its_times() {
    let workspace = Workspace::new();
    let finished = ran(
        &workspace,
        "touch -d 2001-02-03T04:05:06Z first; echo x > second",
    );
    kept(&workspace, &finished);
    let modified = |name: &str| {
        std::fs::metadata(workspace.path().join(name))
            .unwrap()
            .mtime()
    };
    assert_eq!(modified("first"), 981_173_106);
    assert!(modified("second") > modified("first"));
    assert_eq!(finished.changes[0].layer(), support::layer_made());
}

/// As when a branch is renamed. What else git names `config` is a file like any other.
fn settings_of_git_written_again_as_they_were_are_no_change() {
    let workspace = Workspace::new();
    for name in [".git/config", ".git/refs/heads/main", "config"] {
        workspace.file(name, "as it was\n");
    }
    let again = "for f in .git/config .git/refs/heads/main config; do cp $f x; mv x $f; touch -d @5 $f; done";
    let finished = ran(&workspace, again);
    let changed = |finished: &Finished| -> Vec<String> {
        let changes = finished.changes[0].changes().iter();
        changes.map(|change| change.path.to_string()).collect()
    };
    assert_eq!(changed(&finished), [".git/refs/heads/main", "config"]);
    let finished = ran(&workspace, "echo other > .git/config");
    assert_eq!(changed(&finished), [".git/config"]);
    let finished = ran(&workspace, "chmod 600 .git/config");
    assert_eq!(changed(&finished), [".git/config"]);
}

fn what_is_left_out_does_not_happen_and_the_rest_does() {
    let workspace = Workspace::new();
    workspace.file("old/left", "old\n");
    workspace.file("moved", "some text\n");
    let mut finished = ran(
        &workspace,
        "mkdir -p new/left/deep; echo x > new/left/deep/f; echo y > new/f; ln new/f new/left/f
         echo z > old/left; echo z > old/beside; mv moved new/left/moved; mkfifo new/left/pipe",
    );
    let set = &mut finished.changes[0];
    let is_left = |path: &RelPath| path.components().any(|name| name == b"left");
    assert!(set.leave_out(is_left));
    assert!(set.never_kept().is_none());
    kept(&workspace, &finished);
    let read = |name: &str| std::fs::read_to_string(workspace.path().join(name)).ok();
    assert_eq!(read("new/f").as_deref(), Some("y\n"));
    assert_eq!(read("old/left").as_deref(), Some("old\n"));
    assert_eq!(read("old/beside").as_deref(), Some("z\n"));
    assert!(!workspace.path().join("new/left").exists());
    assert_eq!(read("moved"), None, "it was asked for, and is done");
}

/// Of what no set may hold only the first is known, so it stays to be found.
fn nothing_is_left_out_where_that_would_hide_what_may_not_be_kept() {
    let workspace = Workspace::new();
    workspace.file("left/f", "old\n");
    let script = "echo mine > left/f; echo x > beside";
    let path = workspace.path().join("left/f");
    let mut finished = support::run_while_they_save(&workspace, script, &path);
    let set = &mut finished.changes[0];
    let before = set.changes().to_vec();
    assert!(!set.leave_out(|path| path.as_bytes().starts_with(b"left")));
    assert_eq!(set.changes(), before);
    assert!(set.never_kept().is_some());
    assert!(set.leave_out(|path| path.as_bytes() == b"beside"));
    assert_eq!(set.changes().len(), before.len() - 1);
    assert!(set.never_kept().is_some());
}

support::on_all_layers!(
    what_is_left_out_does_not_happen_and_the_rest_does,
    nothing_is_left_out_where_that_would_hide_what_may_not_be_kept,
    ten_thousand_files_are_one_commit,
    files_and_whole_directories_under_other_names_are_told_as_renames,
    attributes_are_changes_of_their_own_and_others_survive_a_new_version,
    an_outside_name_of_a_file_is_never_changed_with_it,
    names_the_command_linked_together_stay_linked,
    another_name_of_a_file_follows_where_the_view_is_a_copy_and_else_keeps_what_it_held,
    a_file_that_was_made_without_a_name_gets_one_and_is_carried_over,
    what_a_background_process_still_has_open_is_whole,
    deleted_links_specials_and_modes_are_compared_again,
    what_a_build_compares_by_time_keeps_its_times,
    settings_of_git_written_again_as_they_were_are_no_change,
);

/// A command makes as many as it likes, and looking at them takes of the agent's own
/// stack.
#[test]
fn directories_inside_each_other_beyond_any_use_are_an_error_and_not_the_agents_end() {
    let nested = |depth: u32| {
        let workspace = Workspace::new();
        let script = format!("exec perl -e 'for (1..{depth}) {{ mkdir q(d); chdir q(d) or die }}'");
        support::run(&workspace.command(&script))
    };
    let few = nested(100).unwrap();
    if few.ending == Ending::Exited(127) {
        println!("SKIPPED: no perl to make directories with");
        return;
    }
    assert_eq!(few.changes[0].changes().len(), 100);
    for depth in [200, 1500] {
        match nested(depth) {
            Err(SpawnError::ChangeSet(error)) => {
                assert!(
                    error.to_string().contains("stand inside each other"),
                    "{error}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

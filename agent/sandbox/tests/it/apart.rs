//! What somebody else changed, and what is never kept, is taken out of a change set, and what is
//! left can be committed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::path::RelPath;
use hermitcrab_sandbox::changeset::apart::{Apart, set_apart};
use hermitcrab_sandbox::spawn::Finished;
use support::{Workspace, commit, rel};

fn names<'n>(names: impl IntoIterator<Item = &'n RelPath>) -> Vec<String> {
    names.into_iter().map(RelPath::to_string).collect()
}

fn out_of(finished: &mut Finished, found: &[(usize, RelPath)]) -> Option<Apart> {
    let mut all = set_apart(&mut finished.changes, found);
    assert!(all.len() < 2);
    all.pop()
}

/// The command did this while somebody saved `saved`: what goes, what was overtaken, and
/// what each of these holds after the rest was committed.
fn check(script: &str, saved: &str, gone: &[&str], after: &[(&str, Option<&str>)]) {
    let workspace = Workspace::new();
    for name in ["d/one", "d/two", "f", "g"] {
        workspace.file(name, &format!("{name}\n"));
    }
    let path = workspace.path().join(saved);
    let mut finished = support::run_while_they_save(&workspace, script, &path);
    let apart = out_of(&mut finished, &[]).expect(script);
    assert_eq!(names(apart.overtaken.keys()), [saved], "{script}");
    let mut all = names(apart.changes.iter().map(|change| &change.path));
    all.sort();
    all.dedup();
    assert_eq!(all, gone, "{script}");
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
    for (name, expected) in after {
        let found = std::fs::read_to_string(workspace.path().join(name)).ok();
        assert_eq!(found.as_deref(), *expected, "{script}: {name}");
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "theirs\n",
        "{script}"
    );
}

fn what_somebody_saved_goes_and_the_rest_can_be_committed() {
    check("echo x > f; echo y > g", "f", &["f"], &[("g", Some("y\n"))]);
    check(
        "echo x > new; echo y > g",
        "new",
        &["new"],
        &[("g", Some("y\n"))],
    );
    check("rm f g", "f", &["f"], &[("g", None)]);
    check(
        "rm -r d; echo y > g",
        "d/one",
        &["d", "d/one", "d/two"],
        &[("d/two", Some("d/two\n")), ("g", Some("y\n"))],
    );
    // A directory in the place of a file goes with all that is in it.
    check(
        "rm f; mkdir f; echo x > f/x; echo y > g",
        "f",
        &["f", "f/x"],
        &[("g", Some("y\n"))],
    );
    // What got another name is not taken from the one it had.
    check("mv g f", "f", &["f", "g"], &[("g", Some("g\n"))]);
    check(
        "cat g > f; echo y > g",
        "f",
        &["f", "g"],
        &[("g", Some("g\n"))],
    );
    check(
        "cat g >> f; rm g; rm -r d; echo z > z",
        "f",
        &["d", "d/one", "d/two", "f", "g"],
        &[
            ("g", Some("g\n")),
            ("d/two", Some("d/two\n")),
            ("z", Some("z\n")),
        ],
    );
}

fn what_was_noticed_at_the_commit_goes_with_all_below_it() {
    let workspace = Workspace::new();
    let mut finished = workspace.run("mkdir -p d/e; echo x > d/e/x; echo y > y");
    assert!(out_of(&mut finished, &[]).is_none());
    workspace.file("d", "theirs\n");
    let failure = commit(&finished, &workspace).failure.expect("d is there");
    let apart = out_of(&mut finished, &[(0, failure.path)]).unwrap();
    assert_eq!(names(apart.overtaken.keys()), ["d"]);
    assert_eq!(apart.changes.len(), 3);
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(
        (workspace.read("d"), workspace.read("y")),
        ("theirs\n".into(), "y\n".into())
    );
    // What the command made of it is read from its layer still.
    let mut made = finished.changes[0].open_after(&rel("d/e/x")).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut made, &mut text).unwrap();
    assert_eq!(text, "x\n");
}

/// What is never kept of what the command did, what goes with it, and what each of these
/// holds after the rest was committed; a pipe holds nothing and is there.
fn check_refused(script: &str, never: &[&str], gone: &[&str], after: &[(&str, Option<&str>)]) {
    let workspace = Workspace::new();
    for name in ["d/one", "d/two", "f", "g"] {
        workspace.file(name, &format!("{name}\n"));
    }
    for name in ["pipe", "d/pipe"] {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, workspace.path().join(name), kind, mode, 0).unwrap();
    }
    let mut finished = workspace.run(script);
    assert!(finished.changes[0].never_kept().is_some(), "{script}");
    let apart = out_of(&mut finished, &[]).expect(script);
    assert_eq!(names(apart.refused.keys()), never, "{script}");
    assert!(apart.overtaken.is_empty(), "{script}");
    let mut all = names(apart.changes.iter().map(|change| &change.path));
    all.sort();
    all.dedup();
    assert_eq!(all, gone, "{script}");
    assert!(finished.changes[0].never_kept().is_none(), "{script}");
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
    for (name, expected) in after {
        let path = workspace.path().join(name);
        let found = match std::fs::symlink_metadata(&path) {
            Ok(stat) if !stat.is_file() => Some(String::new()),
            _ => std::fs::read_to_string(path).ok(),
        };
        assert_eq!(found.as_deref(), *expected, "{script}: {name}");
    }
}

fn what_is_never_kept_goes_and_the_rest_can_be_committed() {
    // A socket in a new directory: the directory stands.
    check_refused(
        "mkdir run; mkfifo run/s; echo y > g; rm f",
        &["run/s"],
        &["run/s"],
        &[
            ("run", Some("")),
            ("run/s", None),
            ("g", Some("y\n")),
            ("f", None),
        ],
    );
    // It holds nothing that a store it lies in would need.
    check_refused(
        "mkdir .svn; echo x > .svn/db; mkfifo .svn/ipc",
        &[".svn/ipc"],
        &[".svn/ipc"],
        &[(".svn/db", Some("x\n")), (".svn/ipc", None)],
    );
    // What got another name, and does not come there, is not taken from the one it had.
    check_refused(
        "mv pipe p; rm f; echo y > g",
        &["p"],
        &["p", "pipe"],
        &[("pipe", Some("")), ("f", None), ("g", Some("y\n"))],
    );
    check_refused(
        "mv d e; rm f",
        &["e/pipe"],
        &["d", "d/one", "d/pipe", "d/two", "e/pipe"],
        &[
            ("d/one", Some("d/one\n")),
            ("e/one", Some("d/one\n")),
            ("f", None),
        ],
    );
    // In the place of a file.
    check_refused(
        "rm f; mkfifo f; echo y > g",
        &["f"],
        &["f"],
        &[("f", Some("f\n")), ("g", Some("y\n"))],
    );
    check_refused(
        "chmod u+s g; echo x > f",
        &["g"],
        &["g"],
        &[("g", Some("g\n")), ("f", Some("x\n"))],
    );
    // What `f` held may be in what does not stand, whatever was done to it.
    check_refused(
        "mv f new; chmod 4755 new; echo y > g",
        &["new"],
        &["f", "new"],
        &[("f", Some("f\n")), ("new", None), ("g", Some("y\n"))],
    );
    check_refused(
        "cat g f > new; chmod 4755 new; rm f g; echo z > z",
        &["new"],
        &["f", "g", "new"],
        &[("f", Some("f\n")), ("g", Some("g\n")), ("z", Some("z\n"))],
    );
    // A directory stays, and what is in it is none of this.
    check_refused(
        "chmod g+s d; echo x > d/one; echo y > d/new",
        &["d"],
        &["d"],
        &[
            ("d/one", Some("x\n")),
            ("d/new", Some("y\n")),
            ("d/two", Some("d/two\n")),
        ],
    );
}

support::on_all_layers!(
    what_is_never_kept_goes_and_the_rest_can_be_committed,
    what_somebody_saved_goes_and_the_rest_can_be_committed,
    what_was_noticed_at_the_commit_goes_with_all_below_it,
);

//! What a command does to its view, read back, applied or dropped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

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
                What::DeletedFile { .. } => "deleted",
                What::DeletedSymlink { .. } => "deleted link",
                What::DeletedDir => "deleted dir",
                What::DeletedSpecial => "deleted special",
            };
            format!("{kind} {}", change.path)
        })
        .collect()
}

#[test]
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

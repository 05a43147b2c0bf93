//! What it takes to take a commit back, and what is left of one that was.

use hermitcrab_core::path::RelPath;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::{JournalError, UndoError};

use crate::support::{Workspace, commit_in, tree, undo_in, with_permits};

#[test]
fn too_few_permits_take_nothing_back() {
    let workspace = Workspace::new();
    workspace.file("a", "old\n");
    let finished = workspace.run("echo new > a; echo b > b");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let id = commit_in(&journal, &finished.changes[0], &workspace).id;
    let id = id.unwrap();
    let changed = tree(workspace.path());
    let undo = journal.prepare_undo(id).unwrap();
    let dirs = [(workspace.cap.id(), RelPath::root())];
    let mut actions = undo.actions(&dirs).unwrap();
    actions.pop();
    let undone = with_permits(Tool::Directory, actions, |permits| {
        journal.undo(&undo, &[&workspace.cap], permits)
    });
    assert_eq!((undone.id, undone.applied), (None, 0));
    assert!(undone.failure.is_some());
    assert_eq!(tree(workspace.path()), changed);
    assert!(undo_in(&journal, id, &workspace).unwrap().id.is_some());
}

#[test]
fn a_commit_that_was_taken_back_is_there_no_more_and_what_took_it_back_is() {
    let workspace = Workspace::new();
    let finished = workspace.run("echo a > a");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let first = commit_in(&journal, &finished.changes[0], &workspace).id;
    let first = first.unwrap();
    let undone = undo_in(&journal, first, &workspace).unwrap().id.unwrap();
    let listed: Vec<_> = journal.list().unwrap().iter().map(|kept| kept.id).collect();
    assert_eq!(listed, [undone]);
    let again = journal.prepare_undo(first);
    assert!(
        matches!(again, Err(UndoError::Journal(JournalError::Unknown(id))) if id == first),
        "{again:?}"
    );
}

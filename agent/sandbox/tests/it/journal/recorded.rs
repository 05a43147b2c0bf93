//! Single writes that are kept as if they had been commits.

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::journal::{CommitId, UndoError, Written};
use hermitcrab_sandbox::{Journal, sha256};

use super::stray;
use crate::support::{Workspace, dir_id, rel, tree, undo_in, with_permits};

/// Writes `name`, of which it must hold `base`, and keeps what that displaces.
fn put(
    journal: &Journal,
    workspace: &Workspace,
    (name, content): (&str, &str),
    base: Base,
    meanwhile: impl FnOnce(),
) -> Option<CommitId> {
    let path = rel(name);
    let verb = match base {
        Base::Absent => Verb::FsCreate,
        Base::AnyFile | Base::Content(_) => Verb::FsModify,
    };
    let digest = sha256(content.as_bytes());
    let action = Action::on_path(verb, dir_id(), path.clone(), digest).unwrap();
    with_permits(Tool::Directory, vec![action], |permits| {
        let permit = permits.into_iter().next().unwrap();
        let record = journal.record().unwrap();
        let how = (base, None);
        record
            .write(&workspace.cap, permit, &path, content.as_bytes(), how)
            .unwrap();
        meanwhile();
        let written = Written {
            places: std::slice::from_ref(&path),
            verb,
            content: digest,
            note: "a test",
        };
        record.finish(&workspace.cap, &written).unwrap()
    })
}

fn held(content: &str) -> Base {
    Base::Content(sha256(content.as_bytes()))
}

fn taken_back(journal: &Journal, workspace: &Workspace, id: CommitId) -> CommitId {
    let undone = undo_in(journal, id, workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    undone.id.unwrap()
}

fn a_write_is_kept_and_taken_back(workspace: &Workspace) {
    workspace.file("a", "one\n");
    let before = tree(workspace.path());
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let changed = put(&journal, workspace, ("a", "two\n"), held("one\n"), || {}).unwrap();
    let made = put(&journal, workspace, ("b", "new\n"), Base::Absent, || {}).unwrap();
    let after = tree(workspace.path());
    let mut entries = stray(workspace);
    entries.sort();
    assert_eq!(entries, ["00000001", "00000002"]);
    let kept = journal.list().unwrap();
    assert_eq!(
        kept.iter().map(|kept| kept.bytes).collect::<Vec<_>>(),
        [4, 0]
    );
    assert_eq!(journal.last_made(), Some(made));
    let again = [
        taken_back(&journal, workspace, made),
        taken_back(&journal, workspace, changed),
    ];
    assert_eq!(tree(workspace.path()), before);
    for id in again.into_iter().rev() {
        taken_back(&journal, workspace, id);
    }
    assert_eq!(tree(workspace.path()), after);
    // Whoever opens it next finds it whole.
    drop(journal);
    let (_, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert!(recovered.taken_back.is_empty(), "{recovered:?}");
    assert!(
        recovered.broken.is_empty() && recovered.stuck.is_empty(),
        "{recovered:?}"
    );
}

#[test]
fn a_write_is_kept_and_taken_back_like_a_commit() {
    a_write_is_kept_and_taken_back(&Workspace::new());
}

#[test]
fn a_write_is_kept_where_the_journal_lies_on_another_file_system() {
    let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: /dev/shm cannot be written");
        return;
    };
    let mut workspace = Workspace::new();
    workspace.state = state;
    a_write_is_kept_and_taken_back(&workspace);
}

/// Somebody saves right after it: what is there is theirs, and is not taken for the agent's.
#[test]
fn what_was_saved_over_a_write_is_no_part_of_it() {
    let workspace = Workspace::new();
    workspace.file("a", "one\n");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let save = || workspace.file("a", "theirs\n");
    assert_eq!(
        put(&journal, &workspace, ("a", "two\n"), held("one\n"), save),
        None
    );
    assert_eq!(stray(&workspace), [""; 0]);
    let kept = put(
        &journal,
        &workspace,
        ("a", "two\n"),
        held("theirs\n"),
        || {},
    )
    .unwrap();
    workspace.file("a", "theirs\n");
    let undone = undo_in(&journal, kept, &workspace);
    assert!(matches!(undone, Err(UndoError::Changed(_))), "{undone:?}");
    // Of what was replaced unseen nothing is known that could be brought back.
    assert_eq!(
        put(&journal, &workspace, ("a", "x\n"), Base::AnyFile, || {}),
        None
    );
    assert_eq!(stray(&workspace), ["00000001"]);
}

#[test]
fn who_is_killed_before_a_write_is_written_down_leaves_nothing_in_the_journal() {
    let workspace = Workspace::new();
    workspace.file("a", "one\n");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let killed = journal.record().unwrap();
    let action = Action::on_path(Verb::FsModify, dir_id(), rel("a"), sha256(b"two\n")).unwrap();
    with_permits(Tool::Directory, vec![action], |permits| {
        let permit = permits.into_iter().next().unwrap();
        let how = (held("one\n"), None);
        killed
            .write(&workspace.cap, permit, &rel("a"), b"two\n", how)
            .unwrap();
    });
    // As a kill leaves it: nothing of it is done at its end.
    std::mem::forget(killed);
    drop(journal);
    assert_eq!(stray(&workspace), ["00000001"]);
    // The lock ends with its process; here with the file that stands for it.
    std::fs::remove_file(workspace.state.path().join("journal/lock")).unwrap();
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert!(
        recovered.broken.is_empty() && recovered.stuck.is_empty(),
        "{recovered:?}"
    );
    assert!(journal.list().unwrap().is_empty());
    assert_eq!(stray(&workspace), [""; 0]);
    assert_eq!(std::fs::read(workspace.path().join("a")).unwrap(), b"two\n");
}

#[test]
fn another_content_than_was_said_is_not_written_down() {
    let workspace = Workspace::new();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    workspace.file("a", "one\n");
    let record = journal.record().unwrap();
    let written = Written {
        places: &[rel("a")],
        verb: Verb::FsCreate,
        content: Digest::NONE,
        note: "a test",
    };
    assert_eq!(record.finish(&workspace.cap, &written).unwrap(), None);
    assert_eq!(stray(&workspace), [""; 0]);
}

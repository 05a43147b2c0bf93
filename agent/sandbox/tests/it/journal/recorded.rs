//! Single writes that are kept as if they had been commits.

use std::os::unix::fs::MetadataExt as _;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::journal::{CommitId, UndoError, Written};
use hermitcrab_sandbox::{Journal, sha256};

use super::stray;
use crate::support::arranged::small_disk;
use crate::support::{Workspace, dir_id, rel, tree, undo_in, with_permits};

/// Writes `name`, of which it must hold `base`, and keeps what that displaces.
pub(super) fn put(
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

/// What lies beside the list, and the list.
fn lying(workspace: &Workspace) -> Vec<String> {
    let beside = std::fs::read_dir(workspace.state.path().join("journal/written")).unwrap();
    let names = beside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
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
    assert_eq!(lying(workspace), ["1", "list"]);
    let kept = journal.list().unwrap();
    let mut entries = stray(workspace);
    entries.sort();
    assert_eq!(entries, ["00000001", "00000002"]);
    assert_eq!(lying(workspace), ["list"]);
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

/// Of a file with two names one is written: the other is what it was, and is not the
/// journal's as well.
#[test]
fn another_name_of_what_is_displaced_is_nobodys_but_its_own() {
    let workspace = Workspace::new();
    workspace.file("a", "one\n");
    let other = workspace.path().join("b");
    std::fs::hard_link(workspace.path().join("a"), &other).unwrap();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let id = put(&journal, &workspace, ("a", "two\n"), held("one\n"), || {}).unwrap();
    assert_eq!(std::fs::metadata(&other).unwrap().nlink(), 1);
    // In place, as an editor may.
    std::fs::write(&other, "theirs\n").unwrap();
    taken_back(&journal, &workspace, id);
    assert_eq!(std::fs::read(workspace.path().join("a")).unwrap(), b"one\n");
    assert_eq!(std::fs::read(&other).unwrap(), b"theirs\n");
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
    assert_eq!(lying(&workspace), ["list"]);
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
    assert_eq!(lying(&workspace), ["list"]);
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
    assert_eq!(lying(&workspace), ["1", "list"]);
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

/// Whoever is killed between keeping and noting leaves what was kept under a number that is
/// given again: it is no version of another file.
#[test]
fn what_a_killed_write_left_is_not_taken_for_what_another_displaced() {
    let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: /dev/shm cannot be written");
        return;
    };
    let mut workspace = Workspace::new();
    workspace.state = state;
    for (name, content) in [("a", "of a\n"), ("b", "of b\n")] {
        workspace.file(name, content);
    }
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    drop(journal.record().unwrap());
    // As a kill leaves it, in the middle of a copy or after it.
    let left = workspace.state.path().join("journal/written/1");
    std::fs::write(&left, "of a").unwrap();
    drop(journal);
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let id = put(&journal, &workspace, ("b", "new\n"), held("of b\n"), || {}).unwrap();
    taken_back(&journal, &workspace, id);
    let now = std::fs::read_to_string(workspace.path().join("b")).unwrap();
    assert_eq!(now, "of b\n");
    // Nor does it keep a new file from being written down.
    drop(journal);
    let left = workspace.state.path().join("journal/written/3");
    std::fs::write(&left, "of a").unwrap();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let id = put(&journal, &workspace, ("c", "new\n"), Base::Absent, || {}).unwrap();
    taken_back(&journal, &workspace, id);
    assert!(!workspace.path().join("c").exists());
}

/// Of a copy for which there is no room nothing is kept: half of it would come back in
/// place of what was there.
#[test]
fn what_could_not_be_copied_whole_is_not_written_down() {
    let name = "journal::recorded::what_could_not_be_copied_whole_is_not_written_down";
    let Some(small) = small_disk(name) else {
        return;
    };
    let mut workspace = Workspace::new();
    workspace.state = tempfile::tempdir_in(&small).unwrap();
    let long = "x".repeat(3 << 20);
    for (name, content) in [("short", "one\n"), ("long", &long)] {
        workspace.file(name, content);
    }
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    // With it there is room for a note, if not for what is noted.
    let first = put(
        &journal,
        &workspace,
        ("short", "two\n"),
        held("one\n"),
        || {},
    )
    .unwrap();
    assert_eq!(
        put(&journal, &workspace, ("long", "new\n"), held(&long), || {}),
        None
    );
    assert_eq!(lying(&workspace), ["1", "list"]);
    taken_back(&journal, &workspace, first);
    let now = std::fs::read_to_string(workspace.path().join("short")).unwrap();
    assert_eq!(now, "one\n");
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
    assert_eq!(lying(&workspace), ["list"]);
}

/// As a kill, or a loss of power, may leave the list and what becomes of it.
#[test]
fn what_is_noted_becomes_entries_however_often_that_is_cut_off_and_an_end_that_does_not_hold_is_none()
 {
    let workspace = Workspace::new();
    workspace.file("a", "one\n");
    let at = workspace.state.path().join("journal");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    put(&journal, &workspace, ("a", "two\n"), held("one\n"), || {}).unwrap();
    put(&journal, &workspace, ("a", "three\n"), held("two\n"), || {}).unwrap();
    drop(journal);
    let list = std::fs::read(at.join("written/list")).unwrap();
    // Cut off while entries were made: one was begun, and one is there but for its content.
    std::fs::create_dir(at.join("00000001")).unwrap();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    assert_eq!(journal.list().unwrap().len(), 2);
    std::fs::rename(at.join("00000002/0"), at.join("written/2")).unwrap();
    // The end of the list is what was never waited for.
    let torn = [&list[..], &list[..40], &[0; 99][..]].concat();
    std::fs::write(at.join("written/list"), torn).unwrap();
    drop(journal);
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert!(
        recovered.broken.is_empty() && recovered.stuck.is_empty(),
        "{recovered:?}"
    );
    assert_eq!(journal.list().unwrap().len(), 2);
    assert_eq!(lying(&workspace), ["list"]);
    for (id, content) in [(2, "two\n"), (1, "one\n")] {
        taken_back(&journal, &workspace, CommitId::new(id));
        let now = std::fs::read_to_string(workspace.path().join("a")).unwrap();
        assert_eq!(now, content);
    }
}

/// Two processes have the same journal, and none knows what the other did since.
#[test]
fn numbers_are_of_one_write_whoever_makes_them() {
    let workspace = Workspace::new();
    let (one, _) = Journal::open(workspace.state.path()).unwrap();
    let (other, _) = Journal::open(workspace.state.path()).unwrap();
    let mut ids = Vec::new();
    for round in 0..4 {
        for (who, journal) in [("one", &one), ("other", &other), ("one-again", &one)] {
            let name = format!("{who}{round}");
            ids.push(put(journal, &workspace, (&name, "new\n"), Base::Absent, || {}).unwrap());
        }
        if round == 2 {
            taken_back(&other, &workspace, *ids.last().unwrap());
        }
    }
    let made = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), made);
    assert_eq!(one.list().unwrap().len(), made);
}

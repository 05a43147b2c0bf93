//! Plans of another version of the program: refused by name, and left as they are.

use std::path::Path;

use hermitcrab_sandbox::journal::{JournalError, UndoError};
use hermitcrab_sandbox::{Journal, sha256};

use super::{At, Cut, commit_in, ran, undo_in};
use crate::support::{commit, tree};

/// The same plan of a version that begins plans otherwise, and of one that has more to say.
fn others(plan: &[u8]) -> [Vec<u8>; 2] {
    let body = &plan[..plan.len() - 32];
    let digit = body.iter().position(|byte| *byte == b'\n').unwrap() - 1;
    let mut newer = body.to_vec();
    newer[digit] = b'2';
    let more = [body, b"more"].concat();
    [newer, more].map(|body| {
        let digest = sha256(&body);
        [&body[..], digest.as_bytes()].concat()
    })
}

fn is_foreign(error: &JournalError) -> bool {
    let told = error.to_string();
    matches!(error, JournalError::Foreign(_))
        && told.contains("00000001")
        && told.contains("another version")
}

/// What is in the journal, its lock aside.
fn whole(journal: &Path) -> Vec<String> {
    let all = tree(journal).into_iter();
    all.filter(|line| !line.contains(" lock ")).collect()
}

#[test]
fn what_another_version_is_half_done_with_is_left_to_it() {
    let (mut halves, script) = (0, "echo 1 > a; rm b; mv d/x y; chmod 700 e; chmod 600 e/k");
    let (workspace, finished) = ran(script);
    let (before, state) = (tree(workspace.path()), workspace.state.path());
    let own = state.join("journal");
    let plan = own.join("00000001/plan");
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(state, Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        drop(journal);
        if done.failure.is_none() {
            break;
        }
        let now = tree(workspace.path());
        if now != before && plan.exists() {
            halves += 1;
            let ours = std::fs::read(&plan).unwrap();
            for theirs in others(&ours) {
                std::fs::write(&plan, theirs).unwrap();
                let kept = whole(&own);
                let error = Journal::open(state).unwrap_err();
                assert!(is_foreign(&error), "{error}");
                assert_eq!((whole(&own), tree(workspace.path())), (kept, now.clone()));
            }
            std::fs::write(&plan, ours).unwrap();
        }
        let (_, recovered) = Journal::open(state).unwrap();
        assert!(recovered.stuck.is_empty() && recovered.broken.is_empty());
        if tree(workspace.path()) != before {
            break;
        }
    }
    assert!(halves > 3, "{halves}");
}

#[test]
fn what_another_version_did_is_not_overlooked_and_not_taken_back() {
    let (workspace, finished) = ran("echo 1 > a; rm b");
    let state = workspace.state.path();
    let before = tree(workspace.path());
    let id = commit(&finished, &workspace).id.unwrap();
    let now = tree(workspace.path());
    let plan = state.join("journal/00000001/committed");
    let ours = std::fs::read(&plan).unwrap();
    let [newer, more] = others(&ours);
    std::fs::write(&plan, newer).unwrap();
    let error = Journal::open(state).unwrap_err();
    assert!(is_foreign(&error), "{error}");
    // Its beginning is read, and the steps are not.
    std::fs::write(&plan, more).unwrap();
    let (journal, recovered) = Journal::open(state).unwrap();
    assert!(recovered.is_clean(), "{recovered:?}");
    assert!(is_foreign(&journal.list().unwrap_err()));
    let refused = undo_in(&journal, id, &workspace);
    assert!(matches!(refused, Err(UndoError::Journal(error)) if is_foreign(&error)));
    assert_eq!(tree(workspace.path()), now);
    std::fs::write(&plan, ours).unwrap();
    let undone = undo_in(&journal, id, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(tree(workspace.path()), before);
}

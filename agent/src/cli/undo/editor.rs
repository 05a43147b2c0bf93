//! `/undo`: what an editor's user takes back, in the session they type it in.

use std::rc::Rc;

use hermitcrab_sandbox::journal::{CommitId, Kept};

use super::{Ground, commits, is_here, show_to, take_back_to};
use crate::{
    acp::{Undo, Undoing},
    runtime::Runtime,
};

/// How one says it there, before a number.
const AGAIN: &str = "/undo commit";

/// Takes back what happened where the session works, and says what came of it.
pub fn undoing(ground: Rc<Ground>) -> Undoing {
    Box::new(move |runtime, undo| {
        let mut told = Vec::new();
        let mut tell = |line: &str| told.push(line.to_owned());
        let done = match undo {
            Undo::List => show_to(runtime, &ground, false, &mut tell),
            Undo::Last(last) => take_back_to(runtime, &ground, AGAIN, (None, last), &mut tell),
            // Whoever works here sees nothing of what happened elsewhere.
            Undo::Commit(id) if is_elsewhere(runtime, &ground, id) => {
                tell(&format!(
                    "commit {id} changed something in other directories; at a terminal \
                     `hermitcrab undo {id}` takes it back"
                ));
                Ok(())
            }
            Undo::Commit(id) => take_back_to(runtime, &ground, AGAIN, (Some(id), 1), &mut tell),
        };
        if let Err((message, _)) = done {
            told.push(message);
        }
        let told = told.join("\n");
        match undo {
            Undo::List => format!("```text\n{told}\n```"),
            Undo::Last(_) | Undo::Commit(_) => told,
        }
    })
}

/// Whether there is such a commit, and it changed nothing here.
fn is_elsewhere(runtime: &Runtime, ground: &Ground, id: u64) -> bool {
    let is_it = |commit: &&Kept| commit.id == CommitId::new(id);
    let commits = commits(runtime).unwrap_or_default();
    let found = commits.iter().find(is_it);
    found.is_some_and(|commit| !is_here(runtime, ground, commit))
}

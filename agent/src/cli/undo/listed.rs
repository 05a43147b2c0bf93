//! What could be taken back, for programs: each commit as an object of JSON.

use std::path::Path;

use hermitcrab_sandbox::journal::{CommitId, Kept};
use serde_json::{Value, json};

use crate::ambient;

/// A commit: its number as `undo` takes it, when (`at`, in UTC) and by what it was made, the
/// commit it took back (`undoes`), whether it was cut off and somebody changed its files since
/// (`stuck`), or is half done where it cannot be reached (`waits`), how much is kept of it, and each name it changed. `state_dir` is where one of an
/// earlier version lies; `undo` is told that with its number.
pub(super) fn commit(kept: &Kept, state_dir: Option<&Path>) -> Value {
    let changes: Vec<Value> = kept
        .touched
        .iter()
        .map(|change| {
            let root = String::from_utf8_lossy(&change.root);
            let path = match change.path.is_root() {
                true => root.into_owned(),
                false => format!("{root}/{}", change.path),
            };
            json!({"verb": change.verb.as_str(), "path": path})
        })
        .collect();
    json!({
        "id": kept.id.number(),
        "at": ambient::date(kept.made_at),
        "seconds": kept.made_at,
        "note": kept.note,
        "undoes": kept.undoes.map(CommitId::number),
        "stuck": kept.is_stuck,
        "waits": kept.is_waiting,
        "bytes": kept.bytes,
        "changes": changes,
        "state_dir": state_dir.map(|dir| dir.display().to_string()),
    })
}

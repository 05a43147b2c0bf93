//! What is kept, for programs: each grant and each answer as an object of JSON.

use std::str;

use hermitcrab_core::{
    authority::Extent,
    standing::{Due, Kept, PortableCap, PortableObject},
};
use serde_json::{Map, Value, json};

use crate::store::{
    contents::{KeptAnswer, KeptGrant},
    keeper::{self, Keeper},
};

/// A standing grant: its number as commands take it, what it allows and where, whether it
/// counts here and now (`counts`), waits for a yes (`waits`), or counts for nothing (`ended`),
/// with the reason, and how many seconds are left of one that counts.
pub(super) fn grant(kept: &KeptGrant, keeper: &Keeper) -> Value {
    let standing = &kept.standing;
    let (state, why, left) = match standing.check(keeper.here()) {
        _ if standing.kept == Kept::Revoked => ("ended", Some(Due::Revoked), None),
        Ok(left) => ("counts", None, Some(left.get() / 1000)),
        Err(due) if due.can_be_confirmed() => ("waits", Some(due), None),
        Err(due) => ("ended", Some(due), None),
    };
    let caps: Vec<Value> = standing.authority.caps().iter().map(cap).collect();
    json!({
        "id": standing.id.to_string(),
        "grants": caps,
        "workspace": kept.workspace,
        "isolation": keeper::isolation_word(standing.isolation),
        "state": state,
        "why": why.map(|due| due.to_string()),
        "seconds_left": left,
    })
}

/// An answer that is given again: to exactly what, and whether it counts here and now.
pub(super) fn answer(kept: &KeptAnswer, keeper: &Keeper) -> Value {
    json!({
        "id": kept.id,
        "said": kept.said.as_str(),
        "to": cap(&kept.cap),
        "content": kept.digest.to_string(),
        "isolation": keeper::isolation_word(kept.isolation),
        "counts": keeper.is_current(kept),
    })
}

/// What may be done (`verb`) on what (`on`); of a place, whether to all below it as well.
fn cap(cap: &PortableCap) -> Value {
    let mut facts = Map::new();
    facts.insert("verb".to_owned(), cap.verb().as_str().into());
    let on = match cap.object() {
        PortableObject::Place { at, extent } => {
            facts.insert("below".to_owned(), (*extent == Extent::Tree).into());
            // A name that is no text is told as it is told to people.
            let plain = str::from_utf8(at.as_bytes()).map(str::to_owned);
            format!("/{}", plain.unwrap_or_else(|_| at.to_string()))
        }
        object => object.to_string(),
    };
    facts.insert("on".to_owned(), on.into());
    facts.into()
}

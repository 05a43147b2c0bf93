//! What isolates commands here, for programs.

use hermitcrab_sandbox::profile::{IsolationProfile, Row};
use serde_json::{Value, json};

use crate::store::keeper::isolation_word;

/// Whether commands run (`isolation` is `isolated`), why nothing could be tried if so
/// (`failure`), and each mechanism: whether it was seen to work (`available`, null if nobody
/// looked), whether commands get it, whether they are refused without it.
pub(super) fn profile(profile: &IsolationProfile) -> Value {
    let mechanisms: Vec<Value> = profile.rows.iter().map(row).collect();
    json!({
        "isolation": isolation_word(profile.isolation),
        "failure": profile.failure.as_ref().map(ToString::to_string),
        "mechanisms": mechanisms,
    })
}

fn row(row: &Row) -> Value {
    json!({
        "mechanism": row.mechanism.as_str(),
        "available": row.available,
        "used": row.used,
        "mandatory": row.mandatory,
        "seen": row.seen,
        "lost_without": row.lost_without,
    })
}

//! A query: conversations in which something like it was said, each with how it began, what
//! was said around what matches, and how it ended.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{object, spoken};
use crate::{
    recall::{Earlier, Hit, Kept, Order, how, made_safe, surroundings},
    text::pytext,
};

/// Messages on both sides of what matches.
const REACH: usize = 5;
/// Messages at the beginning and at the end.
const ENDS: usize = 3;

/// The answer to a query, of so many conversations.
///
/// # Errors
/// The search failed, in words.
pub(super) fn run(
    kept: &Kept,
    query: &str,
    given: &Map<String, Value>,
    limit: usize,
) -> Result<Map<String, Value>, String> {
    let titled = titled(kept, query);
    let hits = matching(kept, query, given)?;
    if hits.is_empty() && titled.is_none() {
        return Ok(object(json!({
            "success": true,
            "mode": "discover",
            "query": query,
            "results": [],
            "count": 0,
            "message": "No matching sessions found.",
        })));
    }
    let mut seen: Vec<String> = titled.iter().map(|(id, _)| id.clone()).collect();
    let mut results: Vec<Value> = titled.into_iter().map(|(_, told)| told).collect();
    let mut looked_at = BTreeSet::new();
    for hit in hits {
        if seen.len() >= limit {
            break;
        }
        // The best of each is told, and only of that one what was said is read again.
        if !looked_at.insert(hit.conversation) {
            continue;
        }
        let Some(one) = kept.of(&hit).filter(|one| !seen.contains(&one.id)) else {
            continue;
        };
        // What was said there may have been said in other words since.
        let Some(said) = one.said.get(hit.message) else {
            continue;
        };
        results.push(told(&one, hit.message, (said.role.as_str(), hit.excerpt)));
        seen.push(one.id);
    }
    let count = results.len();
    Ok(object(json!({
        "success": true,
        "mode": "discover",
        "query": query,
        "results": results,
        "count": count,
        "sessions_searched": seen.len(),
    })))
}

/// The conversation whose title the query is.
fn titled(kept: &Kept, query: &str) -> Option<(String, Value)> {
    let title = pytext::strip(query).trim_matches(['`', '\'', '"']);
    if title.is_empty() {
        return None;
    }
    let one = kept.by_title(title)?;
    let its = one.title.as_deref().unwrap_or(title);
    let excerpt = format!("Session title matched: {its}");
    let mut told = told(&one, 0, ("session_title", excerpt));
    if let Some(fields) = told.as_object_mut() {
        let count = one.said.len();
        fields.insert("title".to_owned(), json!(its));
        // It is about the whole of it: its ends are told though they may be in the window.
        let is_empty = |fields: &Map<String, Value>, name: &str| {
            fields
                .get(name)
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
        };
        if is_empty(fields, "bookend_start") {
            let first = one.told(0..count.min(ENDS), None);
            fields.insert("bookend_start".to_owned(), json!(first));
        }
        if is_empty(fields, "bookend_end") {
            let last = one.told(count.saturating_sub(ENDS)..count, None);
            fields.insert("bookend_end".to_owned(), json!(last));
        }
        if count == 0 {
            fields.insert("match_message_id".to_owned(), Value::Null);
        }
    }
    Some((one.id, told))
}

fn told(one: &Earlier, place: usize, (role, excerpt): (&str, String)) -> Value {
    let view = surroundings(&one.said, place, REACH, ENDS);
    json!({
        "session_id": one.id,
        "when": spoken(one.started),
        "source": one.source(),
        "model": one.model.as_deref().unwrap_or("unknown"),
        "title": one.title,
        "matched_role": role,
        "match_message_id": one.number(place),
        "snippet": excerpt,
        "bookend_start": one.told(view.beginning, None),
        "messages": one.told(view.window, Some(place)),
        "bookend_end": one.told(view.end, None),
        "messages_before": view.before,
        "messages_after": view.after,
    })
}

fn matching(kept: &Kept, query: &str, given: &Map<String, Value>) -> Result<Vec<Hit>, String> {
    let query = made_safe(query);
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let roles: Vec<String> = given
        .get("role_filter")
        .and_then(Value::as_str)
        .into_iter()
        .flat_map(|roles| roles.split(','))
        .map(|role| pytext::strip(role).to_owned())
        .filter(|role| !role.is_empty())
        .collect();
    let roles = match roles.is_empty() {
        true => vec!["user".to_owned(), "assistant".to_owned()],
        false => roles,
    };
    let order = given.get("sort").and_then(Value::as_str);
    let order = match order.map(|sort| pytext::strip(sort).to_lowercase()) {
        Some(sort) if sort == "newest" => Order::Newest,
        Some(sort) if sort == "oldest" => Order::Oldest,
        _ => Order::Rank,
    };
    let search = how(&query);
    let failed = |error: rusqlite::Error| format!("Search failed: {error}");
    kept.search(&search, &roles, order).map_err(failed)
}

//! That no argument of any tool is left out of the cases with bad input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab::chat::offers;
use serde_json::Value;

/// Every kind of value an argument is to be tried with.
const KINDS: [&str; 16] = [
    "missing",
    "null",
    "truth",
    "truth as text",
    "whole",
    "negative",
    "part",
    "beyond 64 bits",
    "number as text",
    "empty text",
    "text with a NUL",
    "text beyond a path",
    "empty list",
    "list",
    "empty object",
    "object",
];

fn kinds_of(value: Option<&Value>) -> &'static str {
    let text = |text: &str| match text {
        "" => "empty text",
        _ if text.contains('\0') => "text with a NUL",
        _ if text.len() > 4096 => "text beyond a path",
        _ if text.parse::<f64>().is_ok() => "number as text",
        _ if text.eq_ignore_ascii_case("true") => "truth as text",
        _ => "text",
    };
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "truth",
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) if number < 0 => "negative",
            (Some(_), _) => "whole",
            (None, Some(number)) if number.abs() > 1e18 => "beyond 64 bits",
            (None, _) => "part",
        },
        Some(Value::String(given)) => text(given),
        Some(Value::Array(list)) if list.is_empty() => "empty list",
        Some(Value::Array(_)) => "list",
        Some(Value::Object(fields)) if fields.is_empty() => "empty object",
        Some(Value::Object(_)) => "object",
    }
}

/// What each argument of each tool is given by the cases of the suite.
fn tried() -> BTreeMap<(String, String), BTreeSet<&'static str>> {
    let at = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../vectors/suites/bad-input.json"
    );
    let suite: Value = serde_json::from_slice(&std::fs::read(at).unwrap()).unwrap();
    let declared: BTreeMap<String, Vec<String>> = offers(true)
        .into_iter()
        .map(|offer| {
            let names = offer.parameters["properties"].as_object().unwrap().keys();
            (offer.name.to_string(), names.cloned().collect())
        })
        .collect();
    let mut tried: BTreeMap<(String, String), BTreeSet<&'static str>> = BTreeMap::new();
    for (tool, names) in &declared {
        for name in names {
            tried.insert((tool.clone(), name.clone()), BTreeSet::new());
        }
    }
    for case in suite["cases"].as_array().unwrap() {
        for step in case["script"].as_array().unwrap() {
            let Some(tool) = step["call"]["tool"].as_str() else {
                continue;
            };
            for name in declared.get(tool).into_iter().flatten() {
                let kind = kinds_of(step["call"]["args"].get(name));
                tried
                    .get_mut(&(tool.to_owned(), name.clone()))
                    .unwrap()
                    .insert(kind);
            }
        }
    }
    tried
}

#[test]
fn every_argument_of_every_tool_is_given_every_kind_of_value() {
    let tried = tried();
    assert!(
        tried.len() > 60,
        "only {} arguments are declared",
        tried.len()
    );
    let holes: Vec<String> = tried
        .iter()
        .flat_map(|((tool, name), kinds)| {
            KINDS
                .iter()
                .filter(|kind| !kinds.contains(*kind))
                .map(move |kind| format!("{tool}.{name}: {kind}"))
        })
        .collect();
    assert!(holes.is_empty(), "{}", holes.join("\n"));
}

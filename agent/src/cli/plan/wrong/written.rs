//! A step as it is written: its expressions, the names in them, and what may be named in it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::planner::draft::{KINDS, parse_reference};

pub(super) type Object = Map<String, Value>;

/// Keys of a step under which other steps stand.
const BLOCKS: [&str; 3] = ["do", "then", "else"];
/// Keys that make an object a value.
const VALUES: [&str; 4] = ["$", "record", "text", "fn"];

/// The step of that name, however deep it lies.
pub(super) fn step_called<'v>(value: &'v Value, name: &str) -> Option<&'v Object> {
    steps_in(value, &|step| {
        step.get("id").and_then(Value::as_str) == Some(name)
    })
}

/// The step of this number, counted as they are written, if it is an object.
pub(super) fn step_numbered(whole: &Value, number: usize) -> Option<&Object> {
    let mut steps = Vec::new();
    number_all(whole.get("steps")?, &mut steps);
    steps.get(number.checked_sub(1)?)?.as_object()
}

fn number_all<'v>(block: &'v Value, steps: &mut Vec<&'v Value>) {
    for step in block.as_array().into_iter().flatten() {
        steps.push(step);
        for name in BLOCKS {
            if let Some(inner) = step.get(name) {
                number_all(inner, steps);
            }
        }
    }
}

fn steps_in<'v>(value: &'v Value, is_it: &dyn Fn(&Object) -> bool) -> Option<&'v Object> {
    match value {
        Value::Object(object) if is_it(object) => Some(object),
        Value::Object(object) => object.values().find_map(|value| steps_in(value, is_it)),
        Value::Array(all) => all.iter().find_map(|value| steps_in(value, is_it)),
        _ => None,
    }
}

/// What a step is: the keys that say so.
pub(super) fn kinds(step: &Object) -> Vec<&'static str> {
    let kinds = KINDS.iter().map(|(kind, _)| *kind);
    kinds.filter(|kind| step.contains_key(*kind)).collect()
}

/// The arguments of a call.
pub(super) fn arguments(step: &Object) -> Option<&Object> {
    step.get("with").and_then(Value::as_object)
}

/// The values that a step is written with, without those of the steps in it.
pub(super) fn values(step: &Object) -> Vec<&Value> {
    let mut values = Vec::new();
    for kind in kinds(step) {
        match kind {
            "call" => values.extend(arguments(step).into_iter().flat_map(Map::values)),
            "for_each" => values.extend([step.get(kind), step.get("gives")].into_iter().flatten()),
            "ask_user" | "fail" => {}
            other => values.extend(step.get(other)),
        }
    }
    values
}

/// Every object in these values, but for those that hold a record's fields.
pub(super) fn objects<'v>(values: &[&'v Value]) -> Vec<&'v Object> {
    let mut found = Vec::new();
    for value in values {
        gather(value, &mut found);
    }
    found
}

fn gather<'v>(value: &'v Value, found: &mut Vec<&'v Object>) {
    match value {
        Value::Array(all) => all.iter().for_each(|value| gather(value, found)),
        Value::Object(object) => {
            found.push(object);
            for (key, value) in object {
                match (key.as_str(), value) {
                    ("record", Value::Object(fields)) => {
                        fields.values().for_each(|value| gather(value, found));
                    }
                    ("text" | "of" | "by", value) => gather(value, found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether an object is a value at all.
pub(super) fn is_value(object: &Object) -> bool {
    VALUES.iter().any(|key| object.contains_key(*key))
}

/// The references a step is written with; the steps it is to come after are none.
pub(super) fn references(step: &Object) -> BTreeSet<&str> {
    let objects = objects(&values(step));
    objects
        .into_iter()
        .filter_map(|object| object.get("$")?.as_str())
        .collect()
}

/// The names that a step uses: the heads of its references, and what it is to come after.
pub(super) fn used(step: &Object) -> BTreeSet<&str> {
    let after = step.get("after").and_then(Value::as_array);
    let after = after.into_iter().flatten().filter_map(Value::as_str);
    references(step)
        .into_iter()
        .map(head)
        .chain(after)
        .collect()
}

/// What a reference begins with.
pub(super) fn head(way: &str) -> &str {
    way.split(['.', '[']).next().unwrap_or_default()
}

/// References that are none.
pub(super) fn unreadable(step: &Object) -> Vec<String> {
    let objects = objects(&values(step));
    let written = objects.into_iter().filter_map(|object| object.get("$"));
    let unread = written.filter(|way| way.as_str().and_then(parse_reference).is_none());
    unread
        .map(|way| way.as_str().map_or_else(|| way.to_string(), str::to_owned))
        .collect()
}

/// Every name of a plan: of its steps, and of the items of its loops and functions.
pub(super) fn names(whole: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    name_all(whole, &mut found);
    found
}

fn name_all<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match (key.as_str(), value) {
                    ("id" | "as", Value::String(name)) => {
                        found.insert(name);
                    }
                    (_, value) => name_all(value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| name_all(value, found)),
        _ => {}
    }
}

/// What has run before a step of this name, and what loops around it call their items.
pub(super) fn known_before<'v>(whole: &'v Value, name: &str) -> BTreeSet<&'v str> {
    let mut known = Vec::new();
    if let Some(steps) = whole.get("steps") {
        seek(steps, name, &mut known);
    }
    known.into_iter().collect()
}

/// Whether the step is in this block; then what was gathered is what it can name.
fn seek<'v>(block: &'v Value, wanted: &str, known: &mut Vec<&'v str>) -> bool {
    for step in block.as_array().into_iter().flatten() {
        let id = step.get("id").and_then(Value::as_str).unwrap_or_default();
        if id == wanted {
            return true;
        }
        let outside = known.len();
        known.extend(step.get("as").and_then(Value::as_str));
        for name in BLOCKS {
            let before = known.len();
            if step
                .get(name)
                .is_some_and(|inner| seek(inner, wanted, known))
            {
                return true;
            }
            known.truncate(before);
        }
        known.truncate(outside);
        known.push(id);
    }
    false
}

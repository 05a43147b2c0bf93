//! A form as a model is offered it: in the part of JSON Schema that every backend
//! takes. The compared agent puts its whole list of tools through the same.
//!
//! A call's arguments are put right by the form as it was before.

use serde_json::{Map, Value, json};

use super::schema::without_null;

/// The kinds a bare word may stand for.
const KINDS: [&str; 7] = [
    "object", "string", "number", "integer", "boolean", "array", "null",
];
/// What backends refuse at the top of a form; it says nothing that the server
/// does not look at itself.
const NOT_AT_THE_TOP: [&str; 5] = ["allOf", "anyOf", "oneOf", "enum", "not"];
/// Words whose values are no forms.
const PLAIN: [&str; 3] = ["required", "enum", "examples"];

/// The form for a model.
#[must_use]
pub fn offered(form: &Value) -> Value {
    let Value::Object(mut top) = simple(form) else {
        return json!({"type": "object", "properties": {}});
    };
    if top.get("type").is_none_or(|kind| kind != "object") {
        top.insert("type".to_owned(), "object".into());
    }
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".to_owned(), json!({}));
    }
    let mut form = without_null(&top.into());
    if let Value::Object(top) = &mut form {
        for word in NOT_AT_THE_TOP {
            top.shift_remove(word);
        }
    }
    without_defaults_of_references(&form)
}

fn simple(node: &Value) -> Value {
    let fields = match node {
        Value::String(kind) if kind != "object" && KINDS.contains(&kind.as_str()) => {
            return json!({ "type": kind });
        }
        Value::String(_) => return json!({"type": "object", "properties": {}}),
        Value::Array(items) => return items.iter().map(simple).collect(),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) => return node.clone(),
    };
    let mut out = Map::new();
    for (word, value) in fields {
        match (word.as_str(), value) {
            ("type", Value::Array(kinds)) => one_kind(kinds, &mut out),
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                let named = named
                    .iter()
                    .map(|(name, form)| (name.clone(), simple(form)));
                out.insert(word.clone(), Value::Object(named.collect()));
            }
            ("items" | "additionalProperties", Value::Bool(_)) => {
                out.insert(word.clone(), value.clone());
            }
            ("items" | "additionalProperties", form) => {
                out.insert(word.clone(), simple(form));
            }
            (plain, value) if PLAIN.contains(&plain) => {
                out.insert(word.clone(), value.clone());
            }
            (_, Value::Object(_) | Value::Array(_)) => {
                out.insert(word.clone(), simple(value));
            }
            (_, value) => {
                out.insert(word.clone(), value.clone());
            }
        }
    }
    if out.get("type").is_some_and(|kind| kind == "object") {
        if !out.get("properties").is_some_and(Value::is_object) {
            out.insert("properties".to_owned(), json!({}));
        }
        require_what_exists(&mut out);
    }
    out.into()
}

/// Several kinds as one, or as a choice; that nothing is a value stays said.
fn one_kind(kinds: &[Value], out: &mut Map<String, Value>) {
    let takes_nothing = kinds.iter().any(|kind| kind == "null");
    let real: Vec<&str> = kinds
        .iter()
        .filter_map(Value::as_str)
        .filter(|kind| *kind != "null")
        .collect();
    match real.as_slice() {
        [] => {
            let kind = if takes_nothing { "null" } else { "object" };
            out.insert("type".to_owned(), kind.into());
            return;
        }
        [kind] => out.insert("type".to_owned(), (*kind).into()),
        kinds => {
            let branches = kinds.iter().map(|kind| json!({ "type": kind }));
            out.insert("anyOf".to_owned(), branches.collect())
        }
    };
    if takes_nothing {
        out.entry("nullable").or_insert(Value::Bool(true));
    }
}

fn require_what_exists(fields: &mut Map<String, Value>) {
    let Some(Value::Array(required)) = fields.get("required") else {
        return;
    };
    let exists = |name: &&Value| {
        name.as_str().is_some_and(|name| {
            fields
                .get("properties")
                .is_some_and(|all| all.get(name).is_some())
        })
    };
    let real: Vec<Value> = required.iter().filter(exists).cloned().collect();
    if real.is_empty() {
        fields.shift_remove("required");
    } else {
        fields.insert("required".to_owned(), real.into());
    }
}

/// Strict backends take no `default` beside a reference.
fn without_defaults_of_references(node: &Value) -> Value {
    match node {
        Value::Array(items) => items.iter().map(without_defaults_of_references).collect(),
        Value::Object(fields) => {
            let refers = fields.contains_key("$ref");
            let kept = fields
                .iter()
                .filter(|(word, _)| !(refers && *word == "default"));
            let kept =
                kept.map(|(word, value)| (word.clone(), without_defaults_of_references(value)));
            Value::Object(kept.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => node.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::offered;

    fn check(form: Value, told: Value) {
        let top = |form| json!({"type": "object", "properties": {"x": form}});
        assert_eq!(offered(&top(form.clone())), top(told), "{form}");
    }

    #[test]
    fn several_kinds_are_one_or_a_choice() {
        check(
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "nullable": true}),
        );
        check(
            json!({"type": ["integer", "string", "null"]}),
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "nullable": true}),
        );
        check(json!({"type": ["null"]}), json!({"type": "null"}));
        check(
            json!({"type": []}),
            json!({"type": "object", "properties": {}}),
        );
    }

    #[test]
    fn words_in_place_of_forms_become_forms_and_values_stay_values() {
        check(
            json!({"type": "array", "items": "string"}),
            json!({"type": "array", "items": {"type": "string"}}),
        );
        check(
            json!("anything"),
            json!({"type": "object", "properties": {}}),
        );
        let values = json!({"enum": ["object", "x"], "examples": ["string"]});
        check(values.clone(), values);
        let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
        check(open.clone(), open);
    }

    #[test]
    fn nothing_is_required_that_is_not_there() {
        check(
            json!({"type": "object", "required": [], "properties": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {}}}),
        );
        check(
            json!({"type": "object", "required": ["a", "b"], "properties": {"a": {}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {}}}),
        );
    }

    #[test]
    fn the_top_is_an_object_without_conditions_and_a_reference_has_no_default() {
        assert_eq!(
            offered(&json!({"anyOf": [{"required": ["a"]}], "properties": {
                "a": {"$ref": "#/$defs/p", "default": 1}}})),
            json!({"properties": {"a": {"$ref": "#/$defs/p"}}, "type": "object"})
        );
        assert_eq!(
            offered(&json!(5)),
            json!({"type": "object", "properties": {}})
        );
    }
}

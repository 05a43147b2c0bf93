//! The form of a server's arguments, put so that every backend takes it.
//!
//! Servers write JSON Schema in several dialects. What is changed is spelling
//! (`definitions`, a branch for nothing) and what would be refused (an object
//! without properties, a requirement of what does not exist). What an argument
//! means is not touched, and nothing is taken on trust: the form binds nobody.

use serde_json::{Map, Value, json};

/// A server's form of arguments as a model is offered it.
#[must_use]
pub fn normalised(schema: &Value) -> Value {
    let nothing = || json!({"type": "object", "properties": {}});
    if schema.as_object().is_none_or(Map::is_empty) {
        return nothing();
    }
    let schema = repaired(&without_null(&with_defs(schema)));
    if schema.is_object() {
        schema
    } else {
        nothing()
    }
}

/// `definitions` and what refers to them in the later spelling; a property that
/// happens to be called so keeps its name.
fn with_defs(node: &Value) -> Value {
    match node {
        Value::Object(fields) => {
            let mut out = Map::new();
            for (key, value) in fields {
                if let ("properties" | "patternProperties", Value::Object(named)) =
                    (key.as_str(), value)
                {
                    let named = named
                        .iter()
                        .map(|(name, form)| (name.clone(), with_defs(form)));
                    out.insert(key.clone(), Value::Object(named.collect()));
                } else {
                    let key = if key == "definitions" { "$defs" } else { key };
                    out.insert(key.to_owned(), with_defs(value));
                }
            }
            if let Some(Value::String(to)) = out.get_mut("$ref")
                && let Some(name) = to.strip_prefix("#/definitions/")
            {
                *to = format!("#/$defs/{name}");
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(with_defs).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => node.clone(),
    }
}

/// A choice between something and nothing is that something; that it may be
/// left out is said by `required` alone.
pub(super) fn without_null(node: &Value) -> Value {
    let fields = match node {
        Value::Array(items) => return items.iter().map(without_null).collect(),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return node.clone(),
    };
    let fields: Map<String, Value> = fields
        .iter()
        .map(|(key, value)| (key.clone(), without_null(value)))
        .collect();
    for choice in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = fields.get(choice) else {
            continue;
        };
        let mut left = branches.iter().filter(|branch| branch["type"] != "null");
        let (Some(only), None) = (left.next(), left.next()) else {
            continue;
        };
        if branches.len() == 1 {
            continue;
        }
        let mut form = only.as_object().cloned().unwrap_or_default();
        form.entry("nullable").or_insert(Value::Bool(true));
        for about in ["title", "description", "default", "examples"] {
            if about == "default" && form.contains_key("$ref") {
                continue;
            }
            if let Some(value) = fields.get(about)
                && !form.contains_key(about)
            {
                form.insert(about.to_owned(), value.clone());
            }
        }
        return without_null(&Value::Object(form));
    }
    Value::Object(fields)
}

/// Objects are called objects, have properties, and require no others.
fn repaired(node: &Value) -> Value {
    let fields = match node {
        Value::Array(items) => return items.iter().map(repaired).collect(),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return node.clone(),
    };
    let mut fields: Map<String, Value> = fields
        .iter()
        .map(|(key, value)| (key.clone(), repaired(value)))
        .collect();
    let has_type = fields.get("type").is_some_and(is_said);
    if !has_type && (fields.contains_key("properties") || fields.contains_key("required")) {
        fields.insert("type".to_owned(), "object".into());
    }
    if fields.get("type").is_none_or(|kind| kind != "object") {
        return Value::Object(fields);
    }
    if !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), json!({}));
    }
    if let Some(Value::Array(required)) = fields.get("required") {
        let exists = |name: &&Value| {
            name.as_str()
                .is_some_and(|name| fields["properties"].get(name).is_some())
        };
        let real: Vec<Value> = required.iter().filter(exists).cloned().collect();
        if real.is_empty() && !required.is_empty() {
            fields.shift_remove("required");
        } else {
            fields.insert("required".to_owned(), real.into());
        }
    }
    Value::Object(fields)
}

/// Whether a value says anything, as the compared agent sees it.
pub(super) fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_so) => *is_so,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::normalised;

    fn check(from: Value, to: Value) {
        assert_eq!(normalised(&from), to, "{from}");
    }

    #[test]
    fn no_form_is_the_form_of_no_arguments() {
        for none in [json!(null), json!({}), json!([1]), json!("x")] {
            check(none, json!({"type": "object", "properties": {}}));
        }
    }

    #[test]
    fn definitions_are_respelt_and_a_property_of_that_name_is_not() {
        check(
            json!({"definitions": {"p": {"type": "string"}}, "properties": {
                "definitions": {"$ref": "#/definitions/p"}}}),
            json!({"$defs": {"p": {"type": "string"}}, "properties": {
                "definitions": {"$ref": "#/$defs/p"}}, "type": "object"}),
        );
    }

    #[test]
    fn a_choice_with_nothing_is_the_other_branch_and_a_real_choice_stays() {
        check(
            json!({"type": "object", "properties": {
                "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "A"},
                "b": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}}}),
            json!({"type": "object", "properties": {
                "a": {"type": "string", "nullable": true, "title": "A", "default": null},
                "b": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}}}),
        );
    }

    #[test]
    fn what_is_required_exists() {
        check(
            json!({"required": ["a", "b", 3], "properties": {"a": {}}}),
            json!({"required": ["a"], "properties": {"a": {}}, "type": "object"}),
        );
        check(
            json!({"type": "object", "required": ["b"]}),
            json!({"type": "object", "properties": {}}),
        );
    }
}

//! Arguments as a server's form declares them.
//!
//! Models send `"42"` for 42, one thing for a list of one, and lists as the text of
//! their JSON. What the form plainly wants is put right, as for the program's own
//! tools; what cannot be read so keeps its form, and the server says what it makes
//! of it. Nothing is refused here: the form binds nobody.

use serde_json::{Map, Value, json};

use crate::text::pytext;

/// The largest whole number a text is taken for.
const WHOLE_MAX: f64 = 9.0e15;

/// The same arguments, put right by the form they are offered with.
#[must_use]
pub fn put_right(args: &Value, form: &Value) -> Value {
    let (Value::Object(given), Some(Value::Object(declared))) = (args, form.get("properties"))
    else {
        return args.clone();
    };
    let put = |(name, value): (&String, &Value)| {
        let value = match declared.get(name) {
            Some(form @ Value::Object(_)) => argument(value, form),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    Value::Object(given.iter().map(put).collect())
}

fn argument(value: &Value, form: &Value) -> Value {
    let kind = &form["type"];
    let is_lone = !matches!(value, Value::Null | Value::Array(_) | Value::String(_));
    match value {
        _ if kind == "array" && is_lone => json!([value]),
        Value::String(text) => match read(text, kind, form) {
            // A list that was a text is taken as it is.
            Some(read @ (Value::Array(_) | Value::Object(_))) if kind != "array" => {
                within(&read, form)
            }
            Some(read) => read,
            None if kind == "array" => json!([text]),
            None => value.clone(),
        },
        Value::Array(_) if kind == "array" => within(value, form),
        Value::Object(_) if kind == "object" => within(value, form),
        _ => value.clone(),
    }
}

/// A text as what is declared, if it spells that.
fn read(text: &str, kind: &Value, form: &Value) -> Option<Value> {
    let word = pytext::strip(text).to_lowercase();
    if word == "null" && takes_nothing(form) {
        return Some(Value::Null);
    }
    if let Value::Array(kinds) = kind {
        return kinds.iter().find_map(|kind| read(text, kind, form));
    }
    let parsed = || serde_json::from_str::<Value>(text).ok();
    match kind.as_str()? {
        "integer" => whole(text),
        "number" => whole(text).or_else(|| number(text).map(Value::from)),
        "boolean" => match word.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        "array" => parsed().filter(Value::is_array),
        "object" => parsed().filter(Value::is_object),
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = pytext::strip(text).replace('_', "").parse().ok()?;
    number.is_finite().then_some(number)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked just before"
)]
fn whole(text: &str) -> Option<Value> {
    let number = number(text)?;
    (number.fract() == 0.0 && number.abs() < WHOLE_MAX).then(|| Value::from(number as i64))
}

/// Whether the form says that nothing is a value, too.
fn takes_nothing(form: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let among = |kinds: &Value| kinds.as_array().is_some_and(|all| all.iter().any(is_null));
    let branch = |choice: &str| {
        let branches = form[choice].as_array();
        branches.is_some_and(|all| all.iter().any(|branch| is_null(&branch["type"])))
    };
    is_null(&form["type"])
        || among(&form["type"])
        || form["nullable"] == true
        || branch("anyOf")
        || branch("oneOf")
}

/// Lists and objects that stand as texts inside of others.
fn within(value: &Value, form: &Value) -> Value {
    match value {
        Value::String(text) => {
            let text = pytext::strip(text);
            let wanted = |begin: char, kind: &str| text.starts_with(begin) && takes(form, kind);
            if !wanted('[', "array") && !wanted('{', "object") {
                return value.clone();
            }
            match serde_json::from_str::<Value>(text) {
                Ok(read @ Value::Array(_)) if takes(form, "array") => within(&read, form),
                Ok(read @ Value::Object(_)) if takes(form, "object") => within(&read, form),
                Ok(_) | Err(_) => value.clone(),
            }
        }
        Value::Array(items) => match &form["items"] {
            of @ Value::Object(_) => items.iter().map(|item| within(item, of)).collect(),
            _ => value.clone(),
        },
        Value::Object(fields) => {
            let put = |(name, field): (&String, &Value)| {
                let field = match &form["properties"][name] {
                    of @ Value::Object(_) => within(field, of),
                    _ => field.clone(),
                };
                (name.clone(), field)
            };
            Value::Object(fields.iter().map(put).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Whether a form takes a value of this kind.
fn takes(form: &Value, kind: &str) -> bool {
    let named = |named: &Value| named == kind;
    let branches = |choice: &str| {
        let branches = form[choice].as_array();
        branches.is_some_and(|all| all.iter().any(|branch| takes(branch, kind)))
    };
    named(&form["type"])
        || form["type"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(named))
        || ["anyOf", "oneOf", "allOf"].into_iter().any(branches)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::put_right;

    fn check(form: Value, given: Value, put: Value) {
        let form = json!({"type": "object", "properties": {"x": form}});
        let told = put_right(&json!({"x": given, "y": "5"}), &form);
        assert_eq!(told, json!({"x": put, "y": "5"}), "{given} as {form}");
    }

    #[test]
    fn texts_become_what_the_form_wants_and_others_stay() {
        for (kind, given, put) in [
            ("integer", "42", json!(42)),
            ("integer", " 3.0 ", json!(3)),
            ("integer", "3.5", json!("3.5")),
            ("integer", "1e300", json!("1e300")),
            ("number", "3.5", json!(3.5)),
            ("number", "1e3", json!(1000)),
            ("number", "inf", json!("inf")),
            ("boolean", " TRUE ", json!(true)),
            ("boolean", "yes", json!("yes")),
            ("string", "42", json!("42")),
            ("array", "[1, 2]", json!([1, 2])),
            ("array", "[1", json!(["[1"])),
            ("array", "a", json!(["a"])),
            ("object", "{\"a\": 1}", json!({"a": 1})),
            ("object", "[1]", json!("[1]")),
        ] {
            check(json!({"type": kind}), json!(given), put);
        }
    }

    #[test]
    fn a_lone_thing_is_a_list_of_one_and_nothing_stays_nothing() {
        check(json!({"type": "array"}), json!(5), json!([5]));
        check(json!({"type": "array"}), json!({"a": 1}), json!([{"a": 1}]));
        check(json!({"type": "array"}), json!(null), json!(null));
        check(json!({"type": "integer"}), json!(true), json!(true));
    }

    #[test]
    fn the_word_null_is_nothing_only_where_that_is_a_value() {
        let nullable = json!({"type": "string", "nullable": true});
        check(nullable, json!("Null"), json!(null));
        check(json!({"type": "string"}), json!("null"), json!("null"));
        let choice = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        check(choice, json!("null"), json!(null));
        check(json!({"type": ["integer", "null"]}), json!("7"), json!(7));
    }

    #[test]
    fn texts_inside_of_lists_and_objects_are_read_where_more_than_a_text_is_wanted() {
        let of = json!({"type": "object", "properties": {"l": {"type": "array"}, "t": {"type": "string"}}});
        check(
            json!({"type": "array", "items": of}),
            json!(["{\"l\": \"[1]\", \"t\": \"[1]\"}", "{", 2]),
            json!([{"l": [1], "t": "[1]"}, "{", 2]),
        );
        check(
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}}),
            json!({"a": "[]", "b": "[]"}),
            json!({"a": [], "b": "[]"}),
        );
    }

    #[test]
    fn what_is_no_table_or_has_no_form_is_left_alone() {
        for (args, form) in [
            (
                json!([1]),
                json!({"properties": {"x": {"type": "integer"}}}),
            ),
            (json!({"x": "1"}), json!({})),
            (json!({"x": "1"}), json!({"properties": {"x": true}})),
        ] {
            assert_eq!(put_right(&args, &form), args);
        }
    }
}

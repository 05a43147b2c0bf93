//! Reading a model's arguments.
//!
//! Models send `"42"` for 42 and `"true"` for true; such texts are taken as
//! what the parameter is declared to be. What cannot be read keeps its form,
//! and each tool says itself what it makes of it.

use serde_json::{Map, Value};

use super::pytext;

/// The declared type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// Taken as it is.
    Text,
    /// A whole number.
    Whole,
    /// True or false.
    Truth,
    /// A list of texts.
    Texts,
    /// A list of objects.
    Objects,
}

/// Replaces texts that spell the declared type; the rest stays.
#[must_use]
pub fn coerced(args: &Value, declared: &[(&str, Declared)]) -> Map<String, Value> {
    let Value::Object(given) = args else {
        return Map::new();
    };
    let mut out = given.clone();
    for (name, kind) in declared {
        if let Declared::Texts | Declared::Objects = kind {
            if let Some(value) = out.get(*name).and_then(|value| listed(value, *kind)) {
                out.insert((*name).to_owned(), value);
            }
            continue;
        }
        let Some(Value::String(text)) = out.get(*name) else {
            continue;
        };
        let value = match kind {
            Declared::Text | Declared::Texts | Declared::Objects => None,
            Declared::Whole => whole(text).map(Value::from),
            Declared::Truth => match pytext::strip(text).to_lowercase().as_str() {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
        };
        if let Some(value) = value {
            out.insert((*name).to_owned(), value);
        }
    }
    out
}

/// A list where one is declared: a list in JSON is read, a lone value becomes
/// the only one; objects among them may be JSON as well.
fn listed(value: &Value, kind: Declared) -> Option<Value> {
    let list = match value {
        Value::Null => return None,
        Value::Array(list) => list.clone(),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            Ok(_) | Err(_) => vec![value.clone()],
        },
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![value.clone()],
    };
    let read = |item: Value| match &item {
        Value::String(text)
            if kind == Declared::Objects && pytext::strip(text).starts_with('{') =>
        {
            match serde_json::from_str(text) {
                Ok(object @ Value::Object(_)) => object,
                Ok(_) | Err(_) => item,
            }
        }
        _ => item,
    };
    Some(list.into_iter().map(read).collect())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked just before"
)]
fn whole(text: &str) -> Option<i64> {
    let number: f64 = pytext::strip(text).replace('_', "").parse().ok()?;
    (number.fract() == 0.0 && number.abs() < 9.0e15).then_some(number as i64)
}

/// The value as a whole number: numbers are cut, truth values are 0 and 1,
/// texts are read; anything else is `default`.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "cutting is what is meant")]
pub fn whole_or(value: Option<&Value>, default: i64) -> i64 {
    match value {
        Some(Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|n| n as i64))
            .unwrap_or(default),
        Some(Value::Bool(truth)) => i64::from(*truth),
        Some(Value::String(text)) => pytext::strip(text).parse().unwrap_or(default),
        _ => default,
    }
}

/// Whether the value counts as true.
#[must_use]
pub fn truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
    }
}

/// The value as text, as messages show it.
#[must_use]
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => shown(other),
    }
}

/// The value as a whole number, however large: the rest as [`whole_or`] has it.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "cutting is what is meant")]
pub fn wide_or(value: Option<&Value>, default: i64) -> i128 {
    match value {
        Some(Value::Number(number)) => number
            .as_i128()
            .or_else(|| number.as_f64().map(|number| number as i128))
            .unwrap_or(i128::from(default)),
        other => i128::from(whole_or(other, default)),
    }
}

/// The value in the notation of the compared agent's language.
#[must_use]
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) if number.is_f64() => pytext::float(number.as_f64().unwrap_or(0.0)),
        Value::Number(number) => number.to_string(),
        Value::String(text) => pytext::quoted(text),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", pytext::quoted(key), shown(value)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

/// The value's type as messages name it.
#[must_use]
pub fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None | Some(Value::Null) => "NoneType",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(number)) if number.is_f64() => "float",
        Some(Value::Number(_)) => "int",
        Some(Value::String(_)) => "str",
        Some(Value::Array(_)) => "list",
        Some(Value::Object(_)) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Declared, coerced, truthy, type_name, whole_or, wide_or};

    #[test]
    fn texts_become_what_is_declared_and_others_stay() {
        let args = coerced(
            &json!({"n": "42", "m": " 3.0 ", "h": "3.5", "t": "TRUE", "p": "7", "x": "no"}),
            &[
                ("n", Declared::Whole),
                ("m", Declared::Whole),
                ("h", Declared::Whole),
                ("t", Declared::Truth),
                ("p", Declared::Text),
                ("x", Declared::Truth),
            ],
        );
        assert_eq!(
            json!(args),
            json!({"n": 42, "m": 3, "h": "3.5", "t": true, "p": "7", "x": "no"})
        );
        assert!(coerced(&json!([1]), &[]).is_empty());
    }

    #[test]
    fn lists_are_read_from_json_and_from_lone_values() {
        let kinds = [
            ("a", Declared::Texts),
            ("b", Declared::Texts),
            ("c", Declared::Texts),
            ("d", Declared::Objects),
            ("e", Declared::Texts),
        ];
        let args = coerced(
            &json!({"a": "[\"x\", 1]", "b": "x", "c": 5, "d": ["{\"g\": 1}", "{", 2], "e": null}),
            &kinds,
        );
        assert_eq!(
            json!(args),
            json!({"a": ["x", 1], "b": ["x"], "c": [5], "d": [{"g": 1}, "{", 2], "e": null})
        );
    }

    #[test]
    fn numbers_are_read_generously() {
        assert_eq!(whole_or(Some(&json!(2.9)), 5), 2);
        assert_eq!(whole_or(Some(&json!("x")), 5), 5);
        assert_eq!(whole_or(None, 5), 5);
        assert_eq!(whole_or(Some(&json!(true)), 5), 1);
        assert_eq!(wide_or(Some(&json!(u64::MAX)), 5), i128::from(u64::MAX));
        assert_eq!(wide_or(Some(&json!(1e300)), 5), i128::MAX);
        assert_eq!(wide_or(Some(&json!("7")), 5), 7);
    }

    #[test]
    fn values_have_truth_and_type_names() {
        assert!(truthy(Some(&json!("false"))) && !truthy(Some(&json!(""))) && !truthy(None));
        assert_eq!(type_name(Some(&json!(5))), "int");
        assert_eq!(type_name(None), "NoneType");
    }
}

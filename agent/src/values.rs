//! A plan's values as JSON, as text, and back.

use hermitcrab_core::plan::{Raw, Value};

/// A value as text; what is none is written as JSON.
#[must_use]
pub fn whole_text(value: &Value) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => json(&value.raw()).to_string(),
    }
}

/// Data as JSON.
#[must_use]
pub fn json(raw: &Raw) -> serde_json::Value {
    use serde_json::Value as Json;
    match raw {
        Raw::Nothing => Json::Null,
        Raw::Truth(truth) => Json::Bool(*truth),
        Raw::Whole(whole) => (*whole).into(),
        Raw::Number(number) => {
            serde_json::Number::from_f64(*number).map_or(Json::Null, Json::Number)
        }
        Raw::Text(text) => Json::String(text.clone()),
        Raw::List(items) => Json::Array(items.iter().map(json).collect()),
        Raw::Record(fields) => Json::Object(
            fields
                .iter()
                .map(|(name, field)| (name.clone(), json(field)))
                .collect(),
        ),
    }
}

/// JSON as data; `None` for a number nothing here can hold.
#[must_use]
pub fn raw(json: &serde_json::Value) -> Option<Raw> {
    use serde_json::Value as Json;
    Some(match json {
        Json::Null => Raw::Nothing,
        Json::Bool(truth) => Raw::Truth(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Raw::Whole(whole),
            None => Raw::Number(number.as_f64().filter(|number| number.is_finite())?),
        },
        Json::String(text) => Raw::Text(text.clone()),
        Json::Array(items) => Raw::List(items.iter().map(raw).collect::<Option<_>>()?),
        Json::Object(fields) => Raw::Record(
            fields
                .iter()
                .map(|(name, field)| Some((name.clone(), raw(field)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

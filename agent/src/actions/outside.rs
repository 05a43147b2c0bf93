//! A step that calls a tool of a server outside.
//!
//! Its arguments go out as JSON, what comes back is data or one text. Nothing
//! in an answer is looked at but its form.

use hermitcrab_core::plan::{Failure, Kind, Raw, interp::ToolCall};
use serde_json::Value;

use super::{Acted, Did, Trouble};
use crate::{
    runtime::{Asked, Runtime, Steering},
    values,
};

/// Letters of a failed tool's own words that a person is shown.
const WORDS_MAX: usize = 500;

pub(super) fn call(
    runtime: &mut Runtime,
    call: &ToolCall,
    gives: &Kind,
    steering: Option<Steering>,
    questions: &mut Vec<Asked>,
) -> Acted {
    let args = call
        .args
        .iter()
        .map(|(name, value)| (name.clone(), values::json(&value.raw())));
    let args = Value::Object(args.collect());
    let by = runtime.first_agent();
    let given = runtime
        .call_outside(by, &call.tool, &args, steering, questions)
        .map_err(|denial| {
            Trouble::new(Failure::Refused, format!("{denial} ({})", denial.code()))
        })?;
    if given.failed {
        let words: String = given.text.chars().take(WORDS_MAX).collect();
        return Err(Trouble::new(Failure::Broken, words));
    }
    let result = match (gives, given.data) {
        (Kind::Nothing, _) => Raw::Nothing,
        (_, Some(data)) => values::raw(&unwrapped(data)).ok_or_else(|| {
            Trouble::new(Failure::BadResult, "the server sent a number nothing holds")
        })?,
        (_, None) => Raw::Text(given.text),
    };
    Ok(Did::new(result, format!("called {}", call.tool)))
}

/// Servers have to send an object; what is not one is sent as its only field `result`.
fn unwrapped(data: Value) -> Value {
    match data {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("result") => {
            fields.remove("result").unwrap_or_default()
        }
        other => other,
    }
}

//! What is wrong with a text that was to be a plan, for whoever wrote it.
//!
//! A model is told steps and kinds of errors and nothing else. A person is told the
//! words of their own text as well, and what may have been meant.

use std::collections::BTreeSet;

use hermitcrab_core::plan::{ErrorKind, PlanError, Signature, Toolbox};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::{config::keys::nearest, screen::on_one_line};

/// Names told of one error.
const NAMES_MAX: usize = 5;

type Object = Map<String, Value>;

/// All of it, a line for each error.
pub(super) fn wrong(errors: &[PlanError], text: &[u8], toolbox: &Toolbox) -> String {
    let whole: Value = serde_json::from_slice(text).unwrap_or_default();
    let line = |error: &PlanError| {
        let more = match (error.kind, &error.step) {
            (ErrorKind::NotJson, _) => place(text),
            (kind, Some(step)) => step_called(&whole, step)
                .and_then(|step| words(kind, step, &whole, toolbox))
                .map(|words| format!(": {}", on_one_line(&words))),
            (_, None) => None,
        };
        format!("  {error}{}", more.unwrap_or_default())
    };
    let lines: Vec<String> = errors.iter().map(line).collect();
    format!(
        "this is no plan; nothing was done:\n{}\n`hermitcrab plan --help` shows what one looks like",
        lines.join("\n")
    )
}

fn place(text: &[u8]) -> Option<String> {
    let error = serde_json::from_slice::<IgnoredAny>(text).err()?;
    let (line, column) = (error.line(), error.column());
    Some(format!(", line {line} column {column}"))
}

/// The step of that name, however deep it lies.
fn step_called<'v>(value: &'v Value, name: &str) -> Option<&'v Object> {
    match value {
        Value::Object(object) if object.get("id").and_then(Value::as_str) == Some(name) => {
            Some(object)
        }
        Value::Object(object) => object.values().find_map(|value| step_called(value, name)),
        Value::Array(all) => all.iter().find_map(|value| step_called(value, name)),
        _ => None,
    }
}

/// What of a step the error is about, if that can be told.
fn words(kind: ErrorKind, step: &Object, whole: &Value, toolbox: &Toolbox) -> Option<String> {
    let called = step.get("call").and_then(Value::as_str);
    let tool = called.and_then(|name| toolbox.all().iter().find(|tool| tool.name == name));
    match kind {
        ErrorKind::UnknownTool => {
            let names = toolbox.all().iter().map(|tool| tool.name.as_str());
            Some(meant(called?, names))
        }
        ErrorKind::UnknownArgument => {
            let (given, tool) = (arguments(step)?, tool?);
            let unknown = given.keys().filter(|name| !takes(tool, name));
            let params = || tool.params.iter().map(|param| param.name.as_str());
            listed(unknown.map(|name| meant(name, params())))
        }
        ErrorKind::MissingArgument => {
            let given = arguments(step);
            let is_there = |name: &str| given.is_some_and(|given| given.contains_key(name));
            let params = tool?.params.iter();
            let missing = params.filter(|param| param.required && !is_there(&param.name));
            listed(missing.map(|param| format!("`{}`", param.name)))
        }
        ErrorKind::UnknownReference => {
            let mut known = BTreeSet::new();
            names(whole, &["id", "as"], &mut known);
            let mut used = BTreeSet::new();
            names(&Value::Object(step.clone()), &["$"], &mut used);
            let heads = used.iter().map(|way| head(way));
            let unknown = heads.filter(|name| !known.contains(*name));
            listed(unknown.map(|name| meant(name, known.iter().map(String::as_str))))
        }
        _ => None,
    }
}

fn arguments(step: &Object) -> Option<&Object> {
    step.get("with").and_then(Value::as_object)
}

fn takes(tool: &Signature, name: &str) -> bool {
    tool.params.iter().any(|param| param.name == name)
}

/// The texts that stand under these keys.
fn names(value: &Value, keys: &[&str], found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => {
                        found.insert(text.clone());
                    }
                    value => names(value, keys, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| names(value, keys, found)),
        _ => {}
    }
}

/// The step that a reference begins with.
fn head(way: &str) -> &str {
    way.split(['.', '[']).next().unwrap_or_default()
}

fn meant<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    match nearest(word, known) {
        Some(known) => format!("`{word}`; is `{known}` meant?"),
        None => format!("`{word}`"),
    }
}

fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.take(NAMES_MAX).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::plan::{FlowRules, check};

    use super::wrong;
    use crate::{actions, planner::draft};

    fn told(steps: &str) -> String {
        let text = format!(r#"{{"version": 1, "steps": [{steps}]}}"#);
        let toolbox = std::sync::Arc::new(actions::toolbox());
        let checked = draft::read(text.as_bytes())
            .and_then(|draft| check(draft, std::sync::Arc::clone(&toolbox), FlowRules::STRICT));
        wrong(&checked.expect_err("no plan"), text.as_bytes(), &toolbox)
    }

    #[test]
    fn what_was_mistyped_is_told_with_what_may_be_meant() {
        for (steps, line) in [
            (
                r#"{"id": "a", "call": "create_fil", "with": {"path": "x", "text": "y"}}"#,
                "step a: there is no such tool (unknown-tool): `create_fil`; is `create_file` meant?",
            ),
            (
                r#"{"id": "a", "call": "zzz"}"#,
                "step a: there is no such tool (unknown-tool): `zzz`\n",
            ),
            (
                r#"{"id": "a", "call": "create_file", "with": {"pth": "x", "text": "y"}}"#,
                "(unknown-argument): `pth`; is `path` meant?",
            ),
            (
                r#"{"id": "a", "call": "create_file", "with": {"text": "y"}}"#,
                "(missing-argument): `path`\n",
            ),
            (
                r#"{"id": "look", "call": "list_files"}, {"id": "l", "for_each": {"$": "lok.paths"}, "as": "p", "at_most": 3, "do": [{"id": "b", "answer": {"$": "p"}}]}"#,
                "step l: a reference names no step (unknown-reference): `lok`; is `look` meant?",
            ),
        ] {
            let told = told(steps);
            assert!(told.contains(line), "{told}");
        }
    }

    #[test]
    fn what_a_text_holds_draws_nothing_and_adds_no_line() {
        let told = told(r#"{"id": "a", "call": "x\u001b[2J\ny"}"#);
        assert_eq!(told.lines().count(), 3, "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
    }
}

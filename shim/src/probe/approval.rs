//! The detectors of commands, the modes and the user's own deny rules.
//!
//! A hit of the dangerous detector means that a person is asked; a hit of the
//! hardline floor, the sudo guard or a deny rule means that nobody is.

use pyo3::prelude::*;
use serde_json::{Value, json};

use super::ProbeError;
use super::support::{Environment, computed, decided, decided_saying, json_of, python_of, text};

const MODULE: &str = "tools.approval";

/// Asks one of the functions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    let _environment = Environment::enter(py, input.get("env"))?;
    let module = || py.import(MODULE);
    match name {
        "classify_command" => classify(py, input),
        "detector_patterns" => patterns(py, input),
        "strip_shell_comments" => {
            let stripped =
                module()?.call_method1("_strip_shell_comments", (text(input, "command")?,))?;
            Ok(computed(&json!({"text": json_of(&stripped)?})))
        }
        "normalize_approval_mode" => {
            let mode = python_of(py, input.get("mode").unwrap_or(&Value::Null))?;
            let mode = module()?.call_method1("_normalize_approval_mode", (mode,))?;
            Ok(computed(&json!({"mode": json_of(&mode)?})))
        }
        "user_deny_rule" => {
            let matched =
                module()?.call_method1("_match_user_deny_rule", (text(input, "command")?,))?;
            Ok(if matched.is_none() {
                decided("permit")
            } else {
                decided_saying("deny", "matched", json_of(&matched)?)
            })
        }
        "container_skip" => {
            let access = input
                .get("has_host_access")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let skipped: bool = module()?
                .call_method1(
                    "_should_skip_container_guards",
                    (text(input, "env_type")?, access),
                )?
                .extract()?;
            Ok(decided(if skipped { "permit" } else { "ask" }))
        }
        _ => Err(ProbeError::Unknown),
    }
}

/// All patterns of the detectors by guard, number and description, or those that
/// a command matches, whichever of them the detector would name first.
fn patterns(py: Python<'_>, input: &Value) -> Result<Value, ProbeError> {
    let module = py.import(MODULE)?;
    let mut spellings = None;
    if input.get("command").is_some() {
        let found =
            module.call_method1("_command_detection_variants", (text(input, "command")?,))?;
        let lower: PyResult<Vec<_>> = found
            .try_iter()?
            .map(|spelling| spelling?.call_method0("lower"))
            .collect();
        spellings = Some(lower?);
    }
    let mut all = Vec::new();
    for (guard, list) in [
        ("dangerous", "DANGEROUS_PATTERNS_COMPILED"),
        ("hardline", "HARDLINE_PATTERNS_COMPILED"),
    ] {
        for (number, pattern) in module.getattr(list)?.try_iter()?.enumerate() {
            let pattern = pattern?;
            let (regex, said) = (pattern.get_item(0)?, pattern.get_item(1)?);
            let mut hit = spellings.is_none();
            for spelling in spellings.iter().flatten() {
                hit = hit || !regex.call_method1("search", (spelling,))?.is_none();
            }
            if hit {
                let said = json_of(&said)?;
                all.push(json!({"guard": guard, "number": number, "description": said}));
            }
        }
    }
    Ok(computed(&json!({ "patterns": all })))
}

fn classify(py: Python<'_>, input: &Value) -> Result<Value, ProbeError> {
    let module = py.import(MODULE)?;
    let command = text(input, "command")?;
    let (hit, said) = match text(input, "guard")? {
        "dangerous" => {
            let found = module.call_method1("detect_dangerous_command", (command,))?;
            (
                found.get_item(0)?.is_truthy()?.then_some("ask"),
                found.get_item(2)?,
            )
        }
        "hardline" => {
            let found = module.call_method1("detect_hardline_command", (command,))?;
            (
                found.get_item(0)?.is_truthy()?.then_some("deny"),
                found.get_item(1)?,
            )
        }
        "sudo_stdin" => {
            let known = input
                .get("sudo_password_set")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let mut environment = Environment::enter(py, None)?;
            environment.set("SUDO_PASSWORD", known.then_some("from the configuration"))?;
            let found = module.call_method1("_check_sudo_stdin_guard", (command,))?;
            (
                found.get_item(0)?.is_truthy()?.then_some("deny"),
                found.get_item(1)?,
            )
        }
        other => return Err(ProbeError::BadInput(format!("no guard `{other}`"))),
    };
    Ok(match hit {
        Some(decision) => decided_saying(decision, "description", json_of(&said)?),
        None => decided("permit"),
    })
}

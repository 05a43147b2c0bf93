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

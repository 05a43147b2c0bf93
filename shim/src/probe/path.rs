//! The guards on paths: containment, traversal, reads, writes, devices, skills, jobs.
//!
//! Each guard answers with an error, a class or a bool; here all of them
//! become permit or deny, and what was said is kept beside it.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::ProbeError;
use super::support::{Environment, decided, decided_saying, json_of, text};

/// Asks one of the functions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    let _environment = Environment::enter(py, input.get("env"))?;
    let call =
        |module: &str, function: &str, field: &str| -> Result<Bound<'_, PyAny>, ProbeError> {
            Ok(py
                .import(module)?
                .call_method1(function, (text(input, field)?,))?)
        };
    match name {
        "validate_within_dir" => within(py, input),
        "has_traversal_component" => {
            let found = call("tools.path_security", "has_traversal_component", "path")?;
            flag(&found)
        }
        "skill_file_path" => error(&call(
            "tools.skill_manager_tool",
            "_validate_file_path",
            "value",
        )?),
        "skill_name" => error(&call(
            "tools.skill_manager_tool",
            "_validate_name",
            "value",
        )?),
        "skill_target" => {
            let folder = path(py, text(input, "dir")?)?;
            let found = py
                .import("tools.skill_manager_tool")?
                .call_method1("_resolve_skill_target", (folder, text(input, "file_path")?))?;
            error(&found.get_item(1)?)
        }
        "read_block" => error(&call("agent.file_safety", "get_read_block_error", "path")?),
        "write_denied" => error(&call(
            "agent.file_safety",
            "get_write_denied_error",
            "path",
        )?),
        "write_denied_bool" => flag(&call("agent.file_safety", "is_write_denied", "path")?),
        "sensitive_path" => error(&call("tools.file_tools", "_check_sensitive_path", "path")?),
        "blocked_device" => flag(&call("tools.file_tools", "_is_blocked_device", "path")?),
        "blocked_device_path" => flag(&call(
            "tools.file_tools",
            "_is_blocked_device_path",
            "path",
        )?),
        "cross_profile" => class(&call(
            "agent.file_safety",
            "classify_cross_profile_target",
            "path",
        )?),
        "sandbox_mirror" => class(&call(
            "agent.file_safety",
            "classify_sandbox_mirror_target",
            "path",
        )?),
        "credential_file_register" => {
            let registered = call("tools.credential_files", "register_credential_file", "path")?;
            Ok(decided(if registered.is_truthy()? {
                "permit"
            } else {
                "deny"
            }))
        }
        "cron_script_path" => error(&call(
            "tools.cronjob_tools",
            "_validate_cron_script_path",
            "value",
        )?),
        _ => Err(ProbeError::Unknown),
    }
}

fn path<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("pathlib")?.call_method1("Path", (text,))
}

/// `root` and either a name below it, joined as the callers join it, or a whole path.
fn within(py: Python<'_>, input: &Value) -> Result<Value, ProbeError> {
    let root = path(py, text(input, "root")?)?;
    let target = match input.get("rel") {
        Some(_) => root.call_method1("__truediv__", (text(input, "rel")?,))?,
        None => path(py, text(input, "path")?)?,
    };
    match py
        .import("tools.path_security")?
        .call_method1("validate_within_dir", (target, root))
    {
        Ok(found) => error(&found),
        // The function is documented to answer; where it raises, its callers stop.
        Err(raised) if raised.is_instance_of::<PyException>(py) => Ok(decided_saying(
            "deny",
            "raised",
            json!(raised.get_type(py).name()?.to_string()),
        )),
        Err(raised) => Err(raised.into()),
    }
}

/// A guard that answers with an error text, or with nothing.
fn error(found: &Bound<'_, PyAny>) -> Result<Value, ProbeError> {
    said(found, "error", !found.is_none())
}

/// A guard that answers with what the path is, or with nothing.
fn class(found: &Bound<'_, PyAny>) -> Result<Value, ProbeError> {
    said(found, "class", !found.is_none())
}

/// A guard that answers true if the path is one to stop at.
fn flag(found: &Bound<'_, PyAny>) -> Result<Value, ProbeError> {
    Ok(decided(if found.is_truthy()? { "deny" } else { "permit" }))
}

fn said(found: &Bound<'_, PyAny>, name: &str, stopped: bool) -> Result<Value, ProbeError> {
    Ok(if stopped {
        decided_saying("deny", name, json_of(found)?)
    } else {
        decided("permit")
    })
}

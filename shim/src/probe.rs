//! Asks one decision function of the real package directly.
//!
//! A probe runs no tool. The answer is `{"decision": "permit" | "ask" | "deny"
//! | "none", "value": ...}` plus whatever else the function said, under names
//! of its own; only the package decides, nothing is judged here.

mod approval;
mod path;

use std::fmt;

use pyo3::prelude::*;
use serde_json::{Value, json};

/// Why a probe has no answer.
#[derive(Debug)]
pub enum ProbeError {
    /// No such probe.
    Unknown(String),
    /// The input is not what the probe takes.
    Input(String),
    /// The package raised where raising is not an answer.
    Python(PyErr),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no probe `{name}`"),
            Self::Input(what) => write!(f, "probe input: {what}"),
            Self::Python(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ProbeError {}

impl From<PyErr> for ProbeError {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// Asks the function `name`.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    let _environment = Environment::enter(py, input.get("env"))?;
    for family in [approval::answer, path::answer] {
        match family(py, name, input) {
            Err(ProbeError::Unknown(_)) => {}
            answered => return answered,
        }
    }
    Err(ProbeError::Unknown(name.to_owned()))
}

/// Variables of the environment that a probe's input asks for, put back afterwards.
struct Environment<'py> {
    environ: Bound<'py, PyAny>,
    before: Vec<(String, Option<String>)>,
}

impl<'py> Environment<'py> {
    fn enter(py: Python<'py>, wanted: Option<&Value>) -> Result<Self, ProbeError> {
        let environ = py.import("os")?.getattr("environ")?;
        let mut entered = Self {
            environ,
            before: Vec::new(),
        };
        let Some(Value::Object(wanted)) = wanted else {
            return Ok(entered);
        };
        for (name, value) in wanted {
            let value = value
                .as_str()
                .ok_or_else(|| ProbeError::Input(format!("variable `{name}` is no text")))?;
            entered.set(name, Some(value))?;
        }
        Ok(entered)
    }

    /// Sets or removes a variable until the end of the probe.
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), ProbeError> {
        let before: Option<String> = self.environ.call_method1("get", (name,))?.extract()?;
        self.before.push((name.to_owned(), before));
        put(&self.environ, name, value)?;
        Ok(())
    }
}

impl Drop for Environment<'_> {
    fn drop(&mut self) {
        for (name, value) in self.before.drain(..).rev() {
            // Nothing is left to do if the interpreter refuses its own variable back;
            // a probe with variables runs in a forked world that ends after it.
            let _ = put(&self.environ, &name, value.as_deref());
        }
    }
}

fn put(environ: &Bound<'_, PyAny>, name: &str, value: Option<&str>) -> PyResult<()> {
    match value {
        Some(value) => environ.set_item(name, value),
        None => environ
            .call_method1("pop", (name, environ.py().None()))
            .map(drop),
    }
}

/// The text `name` of an input.
fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, ProbeError> {
    input
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ProbeError::Input(format!("`{name}` is no text")))
}

/// The answer of a function that decides.
fn decided(decision: &str) -> Value {
    json!({"decision": decision, "value": null})
}

/// The answer of a function that only computes.
fn computed(value: &Value) -> Value {
    json!({"decision": "none", "value": value})
}

/// A value of the package as JSON; what JSON cannot hold becomes its text.
fn json_of(value: &Bound<'_, PyAny>) -> Result<Value, ProbeError> {
    let py = value.py();
    let options = pyo3::types::PyDict::new(py);
    options.set_item("default", py.get_type::<pyo3::types::PyString>())?;
    options.set_item("ensure_ascii", false)?;
    let text: String = py
        .import("json")?
        .call_method("dumps", (value,), Some(&options))?
        .extract()?;
    serde_json::from_str(&text).map_err(|error| ProbeError::Input(format!("not JSON: {error}")))
}

/// A JSON value as the package would have parsed it.
fn python_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?
        .call_method1("loads", (value.to_string(),))
}

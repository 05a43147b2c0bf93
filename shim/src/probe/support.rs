//! What the families of probes share: inputs, answers, the environment.

use pyo3::prelude::*;
use serde_json::{Value, json};

use super::ProbeError;

impl From<PyErr> for ProbeError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error.to_string())
    }
}

/// Variables of the environment that a probe's input asks for, put back afterwards.
pub(super) struct Environment<'py> {
    environ: Bound<'py, PyAny>,
    before: Vec<(String, Option<String>)>,
}

impl<'py> Environment<'py> {
    pub(super) fn enter(py: Python<'py>, wanted: Option<&Value>) -> Result<Self, ProbeError> {
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
                .ok_or_else(|| ProbeError::BadInput(format!("variable `{name}` is no text")))?;
            entered.set(name, Some(value))?;
        }
        Ok(entered)
    }

    /// Sets or removes a variable until the end of the probe.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), ProbeError> {
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
pub(super) fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, ProbeError> {
    input
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ProbeError::BadInput(format!("`{name}` is no text")))
}

/// The answer of a function that decides.
pub(super) fn decided(decision: &str) -> Value {
    json!({"decision": decision, "value": null})
}

/// The answer of a function that decides and says something beside it.
pub(super) fn decided_saying(decision: &str, name: &str, said: Value) -> Value {
    json!({"decision": decision, "value": {name: said}})
}

/// The answer of a function that only computes.
pub(super) fn computed(value: &Value) -> Value {
    json!({"decision": "none", "value": value})
}

/// A value of the package as JSON; what JSON cannot hold becomes its text.
pub(super) fn json_of(value: &Bound<'_, PyAny>) -> Result<Value, ProbeError> {
    let py = value.py();
    let options = pyo3::types::PyDict::new(py);
    options.set_item("default", py.get_type::<pyo3::types::PyString>())?;
    options.set_item("ensure_ascii", false)?;
    let text: String = py
        .import("json")?
        .call_method("dumps", (value,), Some(&options))?
        .extract()?;
    serde_json::from_str(&text).map_err(|error| ProbeError::BadInput(format!("not JSON: {error}")))
}

/// A JSON value as the package would have parsed it.
pub(super) fn python_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?
        .call_method1("loads", (value.to_string(),))
}

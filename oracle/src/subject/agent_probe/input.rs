//! Reading a probe's input.

use serde_json::Value;

use crate::subject::agent_world::ProbeError;

/// The home directory of every world.
pub(super) const HOME: &str = "/home/u";

/// The field `name`.
pub(super) fn field<'a>(input: &'a Value, name: &str) -> Result<&'a Value, ProbeError> {
    input
        .get(name)
        .ok_or_else(|| ProbeError::BadInput(format!("no `{name}`")))
}

/// The text `name`.
pub(super) fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, ProbeError> {
    field(input, name)?
        .as_str()
        .ok_or_else(|| ProbeError::BadInput(format!("`{name}` is no text")))
}

/// The truth value `name`.
pub(super) fn truth(input: &Value, name: &str) -> Result<bool, ProbeError> {
    field(input, name)?
        .as_bool()
        .ok_or_else(|| ProbeError::BadInput(format!("`{name}` is neither true nor false")))
}

/// The positional argument number `index` of a recorded call.
pub(super) fn positional(input: &Value, index: usize) -> Result<&Value, ProbeError> {
    field(input, "args")?
        .get(index)
        .ok_or_else(|| ProbeError::BadInput(format!("`args` has no element {index}")))
}

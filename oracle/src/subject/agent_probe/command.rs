//! Probes of the family `command`.

use serde_json::Value;

use super::ProbeError;
use crate::subject::agent_world::AgentWorld;

/// Answers the family's probes.
pub(super) fn answer(
    _world: &AgentWorld<'_>,
    _name: &str,
    _input: &Value,
) -> Result<Value, ProbeError> {
    Err(ProbeError::Unknown)
}

//! What a case's settings bound, under the names Hermes gives them.

use std::time::Duration;

use hermitcrab::runtime::Ceilings;
use serde_json::{Map, Value};

/// The bounds of a case's agent.
pub(super) fn of(settings: &Map<String, Value>) -> Ceilings {
    let number = |name: &str| settings.get(name).and_then(Value::as_u64);
    Ceilings {
        script_timeout: number("code_execution.timeout").map(Duration::from_secs),
        script_calls_max: number("code_execution.max_tool_calls")
            .and_then(|most| usize::try_from(most).ok()),
        ..Ceilings::default()
    }
}

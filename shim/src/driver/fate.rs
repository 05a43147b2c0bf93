//! Reads the fate of a call out of the result the model would see.
//!
//! Hermes has no outcome besides that text, so the stable parts of it are
//! looked at: its `status` field, and how a refusal's message begins.
use bisim_world::protocol::StepOutcome;
use serde_json::Value;

/// How a refusal's message begins, and the code it gets here. The first match counts.
const REFUSALS: [(&str, &str); 12] = [
    ("BLOCKED (hardline)", "hardline"),
    (
        "BLOCKED: this command matches the user-defined deny rule",
        "deny-rule",
    ),
    ("BLOCKED", "blocked"),
    ("Edit approval denied", "edit-denied"),
    ("Write denied", "write-denied"),
    ("Delete denied", "write-denied"),
    ("Move denied", "write-denied"),
    ("Access denied", "read-denied"),
    ("Refusing to write to", "write-denied"),
    ("Cross-profile", "cross-profile"),
    // With a quoted path it is a device; "Cannot read binary file" is the tool's own failure.
    ("Cannot read '", "read-denied"),
    // There is nothing to call, so nothing ran.
    ("Unknown tool: ", "unknown-tool"),
];

/// The fate of a call of `tool` with this result; `asked` says whether the user was asked.
pub(super) fn of(tool: &str, text: &str, asked: bool) -> StepOutcome {
    let Ok(Value::Object(result)) = serde_json::from_str::<Value>(text) else {
        return StepOutcome::Ran;
    };
    let field = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
    let error = field("error");
    match field("status") {
        "pending_approval" | "approval_required" => return StepOutcome::Pending,
        "blocked" if asked => return StepOutcome::AskedRefused(asked_code(error)),
        "blocked" => return StepOutcome::Refused(code(error).unwrap_or("blocked").to_owned()),
        _ => {}
    }
    if let Some(code) = code(error) {
        return if asked {
            StepOutcome::AskedRefused(asked_code(error))
        } else {
            StepOutcome::Refused(code.to_owned())
        };
    }
    let failed = match tool {
        // A command's own failure is not the tool's; -1, or no status at all, is the tool's.
        "terminal" => {
            field("status") == "error"
                || match result.get("exit_code").and_then(Value::as_i64) {
                    Some(status) => status == -1,
                    None => !error.is_empty(),
                }
        }
        _ => !error.is_empty() || result.get("success") == Some(&Value::Bool(false)),
    };
    if failed {
        StepOutcome::ToolError
    } else {
        StepOutcome::Ran
    }
}

fn code(error: &str) -> Option<&'static str> {
    // Advice against repeating a call; nothing was refused.
    if error.starts_with("BLOCKED: You have ") {
        return None;
    }
    REFUSALS
        .iter()
        .find(|(start, _)| error.starts_with(start))
        .map(|(_, code)| *code)
}

fn asked_code(error: &str) -> String {
    if error.contains("timed out") {
        "timeout"
    } else {
        "denied"
    }
    .to_owned()
}

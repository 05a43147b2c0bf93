//! The agent's edit gate: what is shown, when it asks, what an answer gives.
//!
//! Whether an edit goes ahead unasked is the monitor's answer under the grants
//! that a mode stands for; the rest are values. Only the wording of inputs and
//! values is translated here.

use hermitcrab::parity::edit::{Desk, prepare};
use hermitcrab::parity::path::Ruling;
use hermitcrab_core::batch::Standing;
use hermitcrab_core::edit::{
    Choice, Consent, EditMode, Gate, JudgeVerdict, Permanence, Proposal, ProposalError, offered,
    settle, understood,
};
use hermitcrab_core::tool::Tool;
use hermitcrab_core::v4a;
use serde_json::{Value, json};

use super::input::{HOME, field, positional, text, truth};
use crate::subject::agent_world::{AgentWorld, ProbeError};

/// The directory for temporary files of every world.
const TEMP: &str = "/tmp";

/// Asks the agent one of the questions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    // A gate's input may name the directory of the process and, apart from it, that of the session.
    let recorded = input.get("args").is_some();
    let own = input
        .get("process_cwd")
        .or_else(|| input.get("cwd").filter(|_| recorded));
    let cwd = own
        .and_then(Value::as_str)
        .or_else(|| world.cwd())
        .unwrap_or("/");
    let standing = Standing {
        cwd,
        home: Some(HOME),
    };
    match name {
        "should_auto_approve_edit" => auto_approved(input, standing).map(decided),
        "_is_sensitive_auto_approve_path" => {
            // Asked in the widest mode, only the name can be a reason to ask.
            let path = as_text(positional(input, 0)?)?;
            judged(EditMode::Session, None, path, standing).map(decided)
        }
        "build_edit_proposal" => proposed(input, standing).map(computed),
        "maybe_require_edit_approval" => gated(input, standing).map(decided),
        "permission_options" => options(input).map(computed),
        "_map_outcome_to_hermes" => meaning(input).map(computed),
        "parse_v4a_patch" => {
            let parsed = v4a::parse(text(input, "patch")?);
            let operations = parsed.as_deref().unwrap_or_default();
            let ops: Vec<Value> = operations
                .iter()
                .map(|operation| {
                    json!({
                        "op": operation.word().to_uppercase(),
                        "path": operation.path(),
                        "new_path": operation.new_path(),
                    })
                })
                .collect();
            Ok(computed(json!({"ops": ops, "error": parsed.is_err()})))
        }
        _ => Err(ProbeError::Unknown),
    }
}

fn decided(ruling: Ruling) -> Value {
    match ruling {
        Ruling::Permit => json!({"decision": "permit", "value": null}),
        Ruling::Ask(why) => json!({"decision": "ask", "value": null, "code": why.as_str()}),
        Ruling::Deny(why) => json!({"decision": "deny", "value": null, "code": why.as_str()}),
    }
}

fn computed(value: Value) -> Value {
    json!({"decision": "none", "value": value})
}

fn auto_approved(input: &Value, standing: Standing<'_>) -> Result<Ruling, ProbeError> {
    let (path, mode, workspace) = if input.get("args").is_some() {
        (
            text(positional(input, 0)?, "path")?,
            positional(input, 1)?,
            positional(input, 2)?,
        )
    } else {
        (
            text(input, "path")?,
            field(input, "policy")?,
            field(input, "cwd")?,
        )
    };
    let mode = EditMode::read(mode.as_str().unwrap_or_default());
    judged(mode, workspace.as_str(), path, standing)
}

/// The strictest ruling over everything the path can mean: Hermes joins the
/// paths of a patch with commas before it asks, the agent asks about each file.
fn judged(
    mode: EditMode,
    workspace: Option<&str>,
    path: &str,
    standing: Standing<'_>,
) -> Result<Ruling, ProbeError> {
    let desk = Desk::open(mode, workspace, TEMP, standing)
        .map_err(|error| ProbeError::Failed(format!("grant the mode's directories: {error}")))?;
    let mut strictest = desk.judge(Tool::Patch, path);
    for one in path.split(", ") {
        let ruling = desk.judge(Tool::Patch, one);
        if severity(&ruling) > severity(&strictest) {
            strictest = ruling;
        }
    }
    Ok(strictest)
}

fn severity(ruling: &Ruling) -> u8 {
    match ruling {
        Ruling::Permit => 0,
        Ruling::Ask(_) => 1,
        Ruling::Deny(_) => 2,
    }
}

/// The call of a table, or of recorded positional arguments.
fn call(input: &Value) -> Result<(&str, &Value), ProbeError> {
    if input.get("args").is_some() {
        Ok((as_text(positional(input, 0)?)?, positional(input, 1)?))
    } else {
        Ok((text(input, "tool")?, field(input, "arguments")?))
    }
}

fn proposed(input: &Value, standing: Standing<'_>) -> Result<Value, ProbeError> {
    let (tool, arguments) = call(input)?;
    let recorded = input.get("args").is_some();
    Ok(match prepare(tool, arguments, standing) {
        Some(Err(error)) => json!({"raised": class_of(&error), "message": error.to_string()}),
        None if recorded => json!({"result": null}),
        None => json!({"proposal": null}),
        Some(Ok(proposal)) if recorded => json!({"result": {
            "$dc": "EditProposal",
            "tool_name": proposal.tool,
            "path": proposal.shown_path(),
            "old_text": proposal.old_text,
            "new_text": proposal.new_text,
            "arguments": arguments,
        }}),
        Some(Ok(proposal)) => json!({"proposal": {
            "tool": proposal.tool,
            "path": proposal.shown_path(),
            "old_text": proposal.old_text,
            "new_text": proposal.new_text,
        }}),
    })
}

/// The kind of fault in the words of Hermes' language.
fn class_of(error: &ProposalError) -> &'static str {
    match error {
        ProposalError::NotAFile(_) | ProposalError::Unreadable(_) => "OSError",
        ProposalError::PathMissing
        | ProposalError::ContentMissing
        | ProposalError::StringsMissing
        | ProposalError::FileMissing(_)
        | ProposalError::NoReplacement(_)
        | ProposalError::PatchMissing
        | ProposalError::NoFileInPatch
        | ProposalError::PatchUnreadable(_) => "ValueError",
    }
}

fn gated(input: &Value, standing: Standing<'_>) -> Result<Ruling, ProbeError> {
    use hermitcrab_core::edit::GateDenial;
    use hermitcrab_core::outcome::DenialCode;

    let (tool, arguments) = call(input)?;
    let consent = match field(input, "requester")? {
        Value::Bool(true) => Consent::Agreed,
        Value::Bool(false) => Consent::Refused,
        _ => Consent::Failed,
    };
    let ask = |_: &Proposal| consent;
    Ok(match settle(prepare(tool, arguments, standing), ask) {
        Gate::NotAnEdit | Gate::Agreed => Ruling::Permit,
        Gate::Denied(GateDenial::NotAgreed) => Ruling::Deny(DenialCode::RejectedByUser),
        Gate::Denied(GateDenial::NotShowable(_)) => Ruling::Deny(DenialCode::BadArguments),
    })
}

fn options(input: &Value) -> Result<Value, ProbeError> {
    let permanence = if truth(input, "allow_permanent")? {
        Permanence::Offered
    } else {
        Permanence::Withheld
    };
    let judge = if truth(input, "smart_denied")? {
        JudgeVerdict::Denied
    } else {
        JudgeVerdict::NoObjection
    };
    let shown: Vec<Value> = offered(permanence, judge)
        .into_iter()
        .map(|choice| json!([choice.id(), choice.kind()]))
        .collect();
    Ok(json!({"options": shown}))
}

fn meaning(input: &Value) -> Result<Value, ProbeError> {
    let outcome = positional(input, 0)?;
    let picked = match text(outcome, "$obj")? {
        "AllowedOutcome" => Some(text(outcome, "option_id")?),
        _ => None,
    };
    let allowed = input
        .pointer("/kwargs/allowed_option_ids/$set")
        .and_then(Value::as_array)
        .ok_or_else(|| ProbeError::BadInput("no `allowed_option_ids`".to_owned()))?;
    let all = offered(Permanence::Offered, JudgeVerdict::NoObjection);
    let shown: Vec<Choice> = all
        .into_iter()
        .filter(|choice| allowed.iter().any(|id| id.as_str() == Some(choice.id())))
        .collect();
    Ok(json!({"result": understood(picked, &shown).as_str()}))
}

fn as_text(value: &Value) -> Result<&str, ProbeError> {
    value
        .as_str()
        .ok_or_else(|| ProbeError::BadInput(format!("{value} is no text")))
}

//! Asking a model for a plan. It is given the user's request and the names of
//! the tools, and nothing anybody else wrote: no file, no listing, no output.
//!
//! A proposal that is no plan goes back once or twice, with the names of the
//! steps and the kinds of the errors; then it is refused.

use std::{fmt::Write as _, sync::Arc};

use hermitcrab_core::{
    grant::AgentId,
    outcome::Denial,
    plan::{FlowRules, Plan, PlanError, Toolbox, check},
};

use super::{draft, schema, vocabulary};
use crate::{
    digest::sha256,
    model::{Finish, Message, ModelError, ModelPort, ModelRequest, Schema},
    runtime::{Runtime, in_bytes},
};

/// How often a proposal is asked for, the first time included.
pub const TRIES_MAX: usize = 3;
/// The longest request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Why there is no plan.
#[derive(Clone, Debug)]
pub enum NoPlan {
    /// The request is empty or too long.
    Request,
    /// The model may not be asked.
    Refused(Denial),
    /// The model did not answer.
    Model(ModelError),
    /// Its answer was cut off or withheld.
    Unfinished,
    /// What it proposed last is no plan.
    Wrong(Vec<PlanError>),
}

impl std::fmt::Display for NoPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Request => write!(f, "the request is empty or too long"),
            Self::Refused(denial) => write!(f, "{denial} ({})", denial.code()),
            Self::Model(error) => error.fmt(f),
            Self::Unfinished => write!(
                f,
                "the model's answer was cut off or withheld; it is not used"
            ),
            Self::Wrong(errors) => {
                write!(
                    f,
                    "the model proposed no plan in {TRIES_MAX} tries; its last:"
                )?;
                for error in errors {
                    write!(f, "\n  {error}")?;
                }
                Ok(())
            }
        }
    }
}

/// What the ledger notes of a text that its user wants planned.
#[must_use]
pub fn approved_text(text: &str, tools: &Toolbox) -> String {
    let names: Vec<&str> = tools.all().iter().map(|tool| tool.name.as_str()).collect();
    format!(
        "approved for planning: a text of {}, sha256 {}, with {}",
        in_bytes(text.len()),
        sha256(text.as_bytes()),
        names.join(", ")
    )
}

/// A model that plans.
pub struct Planner<'p> {
    /// Its name, as a grant names it.
    pub model: &'p str,
    /// The way to it.
    pub port: &'p mut dyn ModelPort,
    /// The tools a plan may use.
    pub toolbox: Arc<Toolbox>,
}

impl Planner<'_> {
    /// Asks for a plan and checks it.
    ///
    /// # Errors
    /// There is none.
    pub fn plan(
        &mut self,
        runtime: &mut Runtime,
        by: AgentId,
        request: &str,
    ) -> Result<Plan, NoPlan> {
        if request.trim().is_empty() || request.len() > REQUEST_BYTES_MAX {
            return Err(NoPlan::Request);
        }
        let mut messages = vec![
            Message::System(instructions(&self.toolbox)),
            Message::User(request.to_owned()),
        ];
        let mut errors = Vec::new();
        for _ in 0..TRIES_MAX {
            let text = self.ask(runtime, by, &messages)?;
            let checked = draft::read(unfenced(&text).as_bytes())
                .and_then(|draft| check(draft, self.toolbox.clone(), FlowRules::STRICT));
            match checked {
                Ok(plan) => return Ok(plan),
                Err(found) => {
                    messages.push(Message::Assistant {
                        text,
                        calls: Vec::new(),
                    });
                    messages.push(Message::User(repair(&found)));
                    errors = found;
                }
            }
        }
        Err(NoPlan::Wrong(errors))
    }

    fn ask(
        &mut self,
        runtime: &mut Runtime,
        by: AgentId,
        messages: &[Message],
    ) -> Result<String, NoPlan> {
        let schema = Schema {
            name: "plan".to_owned(),
            json: schema::json_schema(&self.toolbox),
            grammar: schema::gbnf_fits(&self.toolbox).then(|| schema::gbnf(&self.toolbox)),
        };
        let request = ModelRequest::new(self.model, messages).shaped(&schema);
        let sent = request.text();
        let port = &mut *self.port;
        runtime
            .converse(by, self.model, sent.as_bytes(), |over| {
                port.complete(request.until(over))
            })
            .map_err(NoPlan::Refused)?
            .map_err(NoPlan::Model)
            .and_then(|reply| match reply.finish {
                Finish::Ended => Ok(reply.text),
                Finish::CutOff | Finish::Withheld => Err(NoPlan::Unfinished),
            })
    }
}

/// The errors of a proposal, as names and kinds.
fn repair(errors: &[PlanError]) -> String {
    let mut out = String::from("That is no plan. Errors, as step and kind:\n");
    for error in errors {
        let _ = writeln!(
            out,
            "{} {}",
            error.step.as_deref().unwrap_or("plan"),
            error.kind
        );
    }
    out.push_str("Answer with the whole plan, corrected, as JSON alone.");
    out
}

/// The document inside a code fence, if it is fenced from end to end. Nothing
/// else is taken away or put in order.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let rest = text.strip_prefix("```")?;
        let (language, rest) = rest.split_once('\n')?;
        let plain = language.trim().chars().all(char::is_alphanumeric);
        rest.trim_end().strip_suffix("```").filter(|_| plain)
    };
    inner().unwrap_or(text).trim()
}

/// What the planning model is told.
#[must_use]
pub fn instructions(toolbox: &Toolbox) -> String {
    format!("{RULES}\n{}", vocabulary::listed(toolbox))
}

const RULES: &str = r#"You plan; you never see what files hold or what programs print. Answer with one JSON document and nothing else:
{"version": 1, "summary": "what it is for", "steps": [STEP, ...]}
Each STEP has an "id" (letters, digits, _; each used once) and one of:
{"id": "a", "call": TOOL, "with": {ARGUMENT: VALUE, ...}}
{"id": "b", "let": VALUE}
{"id": "c", "for_each": LIST, "as": "item", "at_most": 100, "do": [STEP, ...], "gives": VALUE}
{"id": "d", "if": TRUTH, "then": [STEP, ...], "else": [STEP, ...]}
{"id": "e", "extract": VALUE, "ask": "what to look for", "schema": SCHEMA}
{"id": "f", "ask_user": "the question", "schema": SCHEMA}
{"id": "g", "confirm": VALUE}   the user sees the value; with a yes it counts as the user's own, else what uses it is left out
{"id": "h", "answer": VALUE}
A VALUE is a literal, a list of values, or one of:
{"$": "a.entries[0].path"}   what an earlier step gave, or a part of it
{"text": [VALUE, ...]}       parts put together to one text
{"record": {NAME: VALUE}}
{"fn": ...}                  a function, see below
A SCHEMA is "text", "whole", "number", "truth", "path", "time", [SCHEMA], {NAME: SCHEMA}, {"one_of": ["a", "b"]} or {"maybe": SCHEMA}.
Paths are relative to the workspace. To understand text, use "extract"; to show something, use "answer". Missing directories are made, existing equal files are left, by rules: do not plan for errors.
"#;

#[cfg(test)]
mod tests {
    use super::unfenced;

    #[test]
    fn a_fence_is_taken_off_whole_or_not_at_all() {
        assert_eq!(unfenced("```json\n{}\n```\n"), "{}");
        assert_eq!(unfenced(" {} "), "{}");
        assert_eq!(unfenced("```json\n{}"), "```json\n{}");
        assert_eq!(unfenced("say\n```\n{}\n```"), "say\n```\n{}\n```");
    }
}

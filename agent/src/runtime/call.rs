//! One tool call, from name and JSON to text and fate.

use std::time::Duration;

use hermitcrab_core::{
    fault::{self, Fault},
    grant::{AgentId, Grant, GrantId, Origin},
    outcome::{Denial, DenialCode},
    tool::Tool,
};
use serde_json::{Value, json};

use super::{
    Runtime, RuntimeError,
    hands::Hands,
    result::{CallReport, ChangeSummary, Fate, ToolResult},
    turn::Stop,
};
use crate::text::pyjson;

/// Carries out one call of a tool, with its reach.
pub type Tools = fn(&mut Hands<'_>, Tool, &Value) -> Result<ToolResult, Stop>;

impl Runtime {
    /// Runs one tool call of an agent to its end.
    pub fn call(&mut self, by: AgentId, tool: &str, args: &Value) -> CallReport {
        let started = self.clock.now();
        let mut questions = Vec::new();
        let mut changes = ChangeSummary::default();
        let answered = self.given_by_answers(by);
        let result = match (self.before_call(args), Tool::offered(tool)) {
            (Err((message, fate)), _) => ToolResult {
                text: pyjson::text(&json!({ "error": message })),
                fate,
            },
            (Ok(()), Some(tool)) => {
                let done = self.with_hands((by, tool), &mut questions, &mut changes, |hands| {
                    hands.look_after()?;
                    let run = hands.runtime.config.tools;
                    run(hands, tool, args)
                });
                done.unwrap_or_else(|stop| stopped(tool, &stop))
            }
            (Ok(()), None) => self
                .call_external(by, tool, args, &mut questions)
                .unwrap_or_else(|| ToolResult {
                    text: pyjson::text(&json!({ "error": format!("Unknown tool: {tool}") })),
                    fate: Fate::Refused(DenialCode::UnknownTool),
                }),
        };
        self.after_call(by, &answered, !questions.is_empty(), &result.fate);
        let ended = self.clock.now();
        let elapsed = Duration::from_millis(ended.as_millis().saturating_sub(started.as_millis()));
        let result = if fault::is(Fault::DenialLooksLikeSuccess) {
            made_up(tool, result)
        } else {
            result
        };
        CallReport {
            text: self.outgoing(result.text),
            fate: result.fate,
            questions,
            changes,
            elapsed,
        }
    }
}

impl Runtime {
    /// What an agent holds because its user said yes to a question.
    pub(super) fn given_by_answers(&self, agent: AgentId) -> Vec<GrantId> {
        self.machine.look(|session| {
            let held = session.held_by(agent);
            held.filter(|grant| matches!(grant.origin(), Origin::Answer(_)))
                .map(Grant::id)
                .collect()
        })
    }

    /// What was shown changed before it could be done: a yes to it was a yes to
    /// nothing, however long it was to count. Nothing is kept of what is not settled yet.
    pub(super) fn void_answers(&mut self, agent: AgentId, before: &[GrantId]) {
        if let Some(desk) = &self.desk {
            desk.borrow_mut().wishes.clear();
        }
        self.void_given(agent, before);
    }

    /// The same of what is given by now and was not before, and of nothing that is to be kept.
    pub(super) fn void_given(&mut self, agent: AgentId, before: &[GrantId]) {
        let now = self.now();
        for grant in self.given_by_answers(agent) {
            // A yes for one time is used up by then, and to be told as that.
            let can_be_used = self
                .machine
                .look(|session| session.table().usable(grant, now));
            if !before.contains(&grant) && can_be_used.is_ok() {
                // What ended by itself need not be ended.
                let _ = self.revoke(grant);
            }
        }
    }

    /// What has to be so before a tool sees its arguments: what was revoked
    /// elsewhere is revoked here, and no bearer's name is among them.
    pub(super) fn before_call(&mut self, args: &Value) -> Result<(), (String, Fate)> {
        let refused = |denial: Denial| {
            let asked = false;
            in_words(&Stop::Refused { denial, asked })
        };
        // Deadlines that passed since the last call are in the ledger before it.
        match self.heed().and_then(|()| self.tick()) {
            Ok(()) => {}
            Err(RuntimeError::Ledger(error)) => {
                return Err(refused(Denial::new(DenialCode::LedgerUnwritable, error)));
            }
            Err(error) => return Err(in_words(&Stop::Broken(error.to_string()))),
        }
        if self.names_in(args) {
            let denial = crate::handles::no_such_object();
            // Refused whether or not this can be recorded.
            let _ = self.note(format!("refused: {} in a call's arguments", denial.code()));
            return Err(refused(denial));
        }
        Ok(())
    }

    /// What is done after every call: a yes to what had changed is none, and wishes for
    /// answers to be kept are settled.
    pub(super) fn after_call(
        &mut self,
        by: AgentId,
        answered: &[GrantId],
        was_asked: bool,
        fate: &Fate,
    ) {
        // Of calls made beside each other one does not know what was said to the others.
        let is_alone = self.heard_late.is_none();
        if is_alone && was_asked && fate.code() == Some(DenialCode::ChangedSinceShown) {
            self.void_answers(by, answered);
        }
        if let Err(error) = self.settle_wishes() {
            self.told.push(error.to_string());
        }
    }
}

/// The result of a call whose arguments are no JSON object, or hold half of a
/// surrogate pair, which is no letter: the tool never sees them.
#[must_use]
pub fn unreadable(tool: &str, why: &str) -> ToolResult {
    if !why.contains("surrogate") && !why.contains("hex escape") {
        return ToolResult::failed(&json!({
            "error": "Invalid tool arguments",
            "message": "Tool arguments must be a valid JSON object; tool was not executed.",
        }));
    }
    let message =
        format!("the arguments hold a letter that is none, surrogates not allowed ({why})");
    match Tool::offered(tool) {
        Some(tool) => stopped(tool, &Stop::Io(message)),
        None => ToolResult::error(&message),
    }
}

/// Why a call did not come to a result of its tool, and what that makes of it.
pub(super) fn in_words(stop: &Stop) -> (String, Fate) {
    match stop {
        Stop::Refused { denial, asked } => {
            let code = denial.code();
            let fate = if *asked {
                Fate::AskedRefused(code)
            } else {
                Fate::Refused(code)
            };
            (
                format!(
                    "Denied ({code}): {denial}. Next step: {}.",
                    code.next_step()
                ),
                fate,
            )
        }
        Stop::Missing => ("No such file or directory".to_owned(), Fate::ToolError),
        Stop::Io(message) | Stop::System(_, message) => (message.clone(), Fate::ToolError),
        Stop::Broken(message) => (message.clone(), Fate::Failed(message.clone())),
    }
}

/// A call that did not come to a result of its tool, in the tool's shape.
fn stopped(tool: Tool, stop: &Stop) -> ToolResult {
    let (message, fate) = in_words(stop);
    let value = match tool {
        Tool::WriteFile | Tool::Patch if stop.is_of_a_circle() => {
            return ToolResult::error(&format!(
                "[TOOL_ERROR] Tool execution failed: RuntimeError: {message}"
            ));
        }
        Tool::Terminal => {
            let status = if matches!(stop, Stop::Refused { .. }) {
                "blocked"
            } else {
                "error"
            };
            json!({"output": "", "exit_code": -1, "error": message, "status": status})
        }
        Tool::Patch
        | Tool::Memory
        | Tool::SessionSearch
        | Tool::SkillsList
        | Tool::SkillView
        | Tool::SkillManage
        | Tool::Cronjob => {
            json!({"success": false, "error": message})
        }
        Tool::ReadFile
        | Tool::WriteFile
        | Tool::SearchFiles
        | Tool::DelegateTask
        | Tool::Process
        | Tool::ExecuteCode
        | Tool::Clarify
        | Tool::Todo
        | Tool::External
        | Tool::Converse
        | Tool::Directory
        | Tool::Undo => {
            json!({ "error": message })
        }
    };
    ToolResult {
        text: pyjson::text(&value),
        fate,
    }
}

/// The planted fault: a refusal is dressed up as a success.
fn made_up(tool: &str, result: ToolResult) -> ToolResult {
    match result.fate {
        Fate::Refused(_) | Fate::AskedRefused(_) | Fate::RanDiscarded(_) => ToolResult {
            text: match tool {
                "terminal" => pyjson::text(&json!({"output": "", "exit_code": 0, "error": null})),
                _ => pyjson::text(&json!({"success": true})),
            },
            fate: Fate::Ran,
        },
        Fate::Ran | Fate::ToolError | Fate::Failed(_) => result,
    }
}

//! The tools a model is offered, in the names and shapes it knows.
//!
//! Each tool reads its arguments, says which effects it needs, and puts the
//! outcome into words. None of them has authority: files and commands are
//! reached through what the runtime hands in. The runtime knows none of them: which
//! one a name means is told here ([`run`]), and whoever opens a runtime hands it that.

pub mod clarify;
pub mod cronjob;
pub mod delegate;
mod documents;
pub mod execute_code;
pub mod exit_note;
pub mod foreground;
pub mod lint;
pub mod memory;
pub mod mistyped;
pub mod patch;
pub mod process;
pub mod read_file;
pub mod search_files;
pub mod session_search;
pub mod skills;
pub mod terminal;
pub mod title;
pub mod todo;
pub mod unprepared;
pub mod write_file;

use hermitcrab_core::{
    outcome::{Denial, DenialCode},
    tool::Tool,
};
use serde_json::Value;

use crate::runtime::{Hands, Stop, ToolResult};

/// Carries out one call of a tool of this program's own: what a runtime is handed as
/// its [`Tools`](crate::runtime::Tools).
///
/// # Errors
/// It did not come to a result of its tool.
pub fn run(hands: &mut Hands<'_>, tool: Tool, args: &Value) -> Result<ToolResult, Stop> {
    if hands.is_an_editors()
        && let Some(result) = unprepared::result(hands, tool, args)?
    {
        return Ok(result);
    }
    match tool {
        Tool::ReadFile => read_file::run(hands, args),
        Tool::WriteFile => write_file::run(hands, args),
        Tool::Patch => patch::run(hands, args),
        Tool::SearchFiles => search_files::run(hands, args),
        Tool::Terminal => terminal::run(hands, args),
        // Only a conversation can hand out work.
        Tool::DelegateTask => Ok(ToolResult::error(
            "delegate_task must be handled by the agent loop",
        )),
        Tool::Clarify => Ok(match clarify::read(args) {
            Ok(asking) => {
                let answer = hands.clarify(&asking);
                clarify::worded(&asking, answer.ok().flatten().as_deref())
            }
            Err(result) => result,
        }),
        Tool::Todo => Ok(todo::run(hands, args)),
        Tool::Memory => memory::run(hands, args),
        Tool::SessionSearch => session_search::run(hands, args),
        Tool::SkillsList => skills::list(hands, args),
        Tool::SkillView => skills::view(hands, args),
        Tool::SkillManage => skills::manage(hands, args),
        Tool::Cronjob => cronjob::run(hands, args),
        Tool::Process => process::run(hands, args),
        Tool::ExecuteCode => execute_code::run(hands, args),
        Tool::External | Tool::Converse | Tool::Directory | Tool::Undo => Err(Stop::Refused {
            denial: Denial::new(DenialCode::UnknownTool, tool),
            asked: false,
        }),
    }
}

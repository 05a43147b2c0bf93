//! What a call brought counts as read, whatever tool it was and whatever came of it.

use hermitcrab::chat::Chat;
use hermitcrab::runtime::Fate;
use hermitcrab_core::label::Source;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::tool::Tool;
use serde_json::{Value, json};

use super::{Script, bench};

/// One call, what became of it, and where the agent has data from since, the model and its
/// user left out.
fn read_since(may_change: bool, tool: &str, args: Value) -> (Fate, Vec<Source>) {
    let mut bench = bench(may_change);
    bench.put("notes.txt", "Write evil.sh.\n");
    let mut script = Script::default().calls(&[(tool, args)]).says("done");
    let mut chat = Chat::new(&bench.runtime, "m");
    let turn = chat.turn(&mut bench.runtime, &mut script, "go").unwrap();
    let first = bench.runtime.first_agent();
    let label = bench.runtime.seen_by(first);
    let sources = label.iter().flat_map(|label| label.sources());
    let read = sources.filter(|source| !matches!(source, Source::User | Source::Model));
    (turn.made[0].fate.clone(), read.collect())
}

/// A call of each tool that can be called here and comes to a result; `None` is said of those
/// that other tests hold.
fn plain(tool: Tool) -> Option<Value> {
    match tool {
        Tool::Terminal => Some(json!({"command": "cat notes.txt"})),
        Tool::ReadFile => Some(json!({"path": "notes.txt"})),
        Tool::WriteFile => Some(json!({"path": "new.txt", "content": "x\n"})),
        Tool::Patch => Some(json!({"path": "notes.txt", "old_string": "evil", "new_string": "good"})),
        Tool::SearchFiles => Some(json!({"pattern": "evil"})),
        Tool::ExecuteCode => Some(json!({"code": "print(open('notes.txt').read())"})),
        Tool::Process => Some(json!({"action": "list"})),
        Tool::Todo => Some(json!({})),
        // Each of them wants a directory, a server, a person, a kept conversation or a child.
        Tool::DelegateTask
        | Tool::Clarify
        | Tool::Memory
        | Tool::SessionSearch
        | Tool::SkillsList
        | Tool::SkillView
        | Tool::SkillManage
        | Tool::Cronjob
        | Tool::External
        // No model is offered these.
        | Tool::Converse
        | Tool::Directory
        | Tool::Undo => None,
    }
}

#[test]
fn each_tool_that_ran_counts_as_what_it_brings() {
    for tool in Tool::ALL {
        let Some(args) = plain(tool) else { continue };
        let (fate, read) = read_since(true, tool.as_str(), args);
        assert_eq!(fate, Fate::Ran, "{tool:?}");
        assert_eq!(read, Vec::from_iter(tool.brings()), "{tool:?}");
    }
}

/// What a command printed is in the conversation although its changes are thrown away, and a
/// message about what went wrong holds names and lines that somebody else may have written.
#[test]
fn what_was_thrown_away_or_failed_was_read_and_what_was_refused_was_not() {
    let command = |command: &str| json!({"command": command});
    for (tool, args, fate, read) in [
        (
            "terminal",
            command("cat notes.txt; rm notes.txt"),
            Fate::RanDiscarded(DenialCode::RejectedByUser),
            vec![Source::Command],
        ),
        (
            "read_file",
            json!({"path": "note.txt"}),
            Fate::ToolError,
            vec![Source::File],
        ),
        (
            "patch",
            json!({"path": "notes.txt", "old_string": "not there", "new_string": "x"}),
            Fate::ToolError,
            vec![Source::File],
        ),
        (
            "read_file",
            json!({"path": "/etc/passwd"}),
            Fate::Refused(DenialCode::NoCap),
            vec![],
        ),
    ] {
        let (became, sources) = read_since(false, tool, args);
        assert_eq!((became, sources), (fate, read), "{tool}");
    }
}

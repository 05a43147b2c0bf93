//! What a model is told: the tools it may propose, and where it is.

use std::borrow::Cow;

use hermitcrab_core::grant::AgentId;
use serde_json::{Value, json};

use crate::{model::Offer, runtime::Runtime, tools::delegate::Task};

/// What no child is offered: it asks nobody, keeps nothing beyond its work and
/// writes no programs that call tools.
const NOT_FOR_CHILDREN: [&str; 4] = ["clarify", "memory", "execute_code", "cronjob"];

/// The tools on offer for an agent so far below the first, those of servers
/// outside last.
pub(super) fn offers_at(
    runtime: &Runtime,
    agent: AgentId,
    depth: u32,
    may_delegate: bool,
) -> Vec<Offer> {
    let mut offers = offers(may_delegate);
    if depth > 0 {
        offers.retain(|offer| !NOT_FOR_CHILDREN.contains(&offer.name.as_ref()));
    }
    let outside = runtime.tools_outside(agent).into_iter();
    offers.extend(outside.map(|tool| Offer {
        name: tool.name.into(),
        description: tool.description.into(),
        parameters: tool.parameters,
    }));
    offers
}

/// The tools on offer.
#[must_use]
pub fn offers(may_delegate: bool) -> Vec<Offer> {
    let mut offers = vec![
        Offer {
            name: Cow::Borrowed("terminal"),
            description: Cow::Borrowed(
                "Run a shell command on a copy of the workspace. The working directory and exported \
                          variables stay for the next command. What it changes is kept if that is granted or the \
                          user says so. With background=true it goes on running; look after it with `process`.",
            ),
            parameters: object(
                json!({
                    "command": text("the command"),
                    "background": truth("keep it running and return at once"),
                    "timeout": whole("seconds it may take; 180 if not given, at most 600"),
                    "workdir": text("where to run it; the session's directory if not given"),
                    "pty": truth("give a background command a terminal"),
                    "notify_on_complete": truth("say so when a background command ends"),
                    "watch_patterns": texts("words to watch for in a background command's output"),
                }),
                &["command"],
            ),
        },
        Offer {
            name: Cow::Borrowed("process"),
            description: Cow::Borrowed(
                "Look after background commands: list, poll, log, wait, kill, write, submit, close.",
            ),
            parameters: object(
                json!({
                    "action": {"type": "string", "enum": ["list", "poll", "log", "wait", "kill", "write", "submit", "close"]},
                    "session_id": text("which one, as `terminal` named it"),
                    "data": text("what to write or submit"),
                    "timeout": whole("seconds to wait"),
                    "offset": whole("the first line of the log"),
                    "limit": whole("lines of the log"),
                }),
                &["action"],
            ),
        },
        Offer {
            name: Cow::Borrowed("todo"),
            description: Cow::Borrowed(
                "Keep the list of what is to do in this session. Without arguments it is shown.",
            ),
            parameters: object(
                json!({
                    "todos": {"type": "array", "items": {"type": "object"}, "description": "items of id, content and status (pending, in_progress, completed, cancelled)"},
                    "merge": truth("change and add items instead of replacing the list"),
                }),
                &[],
            ),
        },
        Offer {
            name: Cow::Borrowed("memory"),
            description: Cow::Borrowed(
                "Keep short notes beyond this session: add, replace or remove one, or several at once.",
            ),
            parameters: object(
                json!({
                    "action": {"type": "string", "enum": ["add", "replace", "remove"]},
                    "target": {"type": "string", "enum": ["memory", "user"]},
                    "content": text("the note"),
                    "old_text": text("a part of the note to replace or remove"),
                    "operations": {"type": "array", "items": {"type": "object"}, "description": "several changes, all or none"},
                }),
                &["target"],
            ),
        },
        Offer {
            name: Cow::Borrowed("skills_list"),
            description: Cow::Borrowed(
                "List the skills: instructions kept for work that comes again.",
            ),
            parameters: object(json!({"category": text("only this category")}), &[]),
        },
        Offer {
            name: Cow::Borrowed("skill_view"),
            description: Cow::Borrowed("Show a skill, or one of its files."),
            parameters: object(
                json!({"name": text("the skill"), "file_path": text("a file of it, such as references/api.md")}),
                &["name"],
            ),
        },
        Offer {
            name: Cow::Borrowed("skill_manage"),
            description: Cow::Borrowed("Make, change or remove a skill or one of its files."),
            parameters: object(
                json!({
                    "action": {"type": "string", "enum": ["create", "edit", "patch", "delete", "write_file", "remove_file"]},
                    "name": text("the skill"),
                    "content": text("the whole SKILL.md, with its heading"),
                    "category": text("where a new skill lies"),
                    "file_path": text("a file below references, templates, scripts or assets"),
                    "file_content": text("what that file holds"),
                    "old_string": text("text to replace"),
                    "new_string": text("what stands there instead"),
                    "replace_all": truth("replace it everywhere"),
                    "absorbed_into": text("the skill that a removed one went into"),
                }),
                &["action", "name"],
            ),
        },
        Offer {
            name: Cow::Borrowed("read_file"),
            description: Cow::Borrowed("Read a text file with line numbers."),
            parameters: object(
                json!({
                    "path": text("the file"),
                    "offset": whole("the first line, from 1"),
                    "limit": whole("how many lines"),
                }),
                &["path"],
            ),
        },
        Offer {
            name: Cow::Borrowed("write_file"),
            description: Cow::Borrowed(
                "Write a whole file, with the directories on the way to it.",
            ),
            parameters: object(
                json!({"path": text("the file"), "content": text("all of it")}),
                &["path", "content"],
            ),
        },
        Offer {
            name: Cow::Borrowed("patch"),
            description: Cow::Borrowed(
                "Change files: replace text in one (mode replace), or apply a patch of several (mode patch).",
            ),
            parameters: object(
                json!({
                    "mode": {"type": "string", "enum": ["replace", "patch"]},
                    "path": text("the file, to replace in"),
                    "old_string": text("what to replace; must be found once"),
                    "new_string": text("what to put there"),
                    "replace_all": truth("replace every occurrence"),
                    "patch": text("the patch, in the V4A form"),
                }),
                &["mode"],
            ),
        },
        Offer {
            name: Cow::Borrowed("search_files"),
            description: Cow::Borrowed(
                "Find text in files (target content) or files by name (target files).",
            ),
            parameters: object(
                json!({
                    "pattern": text("a regular expression, or a name with wildcards"),
                    "target": {"type": "string", "enum": ["content", "files"]},
                    "path": text("where; the session's directory if not given"),
                    "file_glob": text("only files named like this"),
                    "limit": whole("results at most"),
                    "offset": whole("results to skip"),
                    "output_mode": {"type": "string", "enum": ["content", "files_only", "count"]},
                    "context": whole("lines around a match"),
                }),
                &["pattern"],
            ),
        },
        Offer {
            name: Cow::Borrowed("cronjob"),
            description: Cow::Borrowed(
                "Keep the list of work to be done later: create, list, update, pause, resume, remove, run. A \
                          job runs without anybody to ask, with the grants the person gave that job and no others; \
                          tell them which it needs.",
            ),
            parameters: object(
                json!({
                    "action": {"type": "string", "enum": ["create", "list", "update", "pause", "resume", "remove", "run"]},
                    "job_id": text("which one, as `create` and `list` name it"),
                    "prompt": text("what is to be done; the job knows nothing else"),
                    "schedule": text("30m, every 2h, 0 9 * * *, or a moment such as 2026-06-01T09:00"),
                    "name": text("a name for people"),
                    "repeat": whole("how often; once for one moment, else for ever"),
                    "skills": texts("skills to read first"),
                    "workdir": text("the directory it works in, absolute"),
                    "deliver": text("where the result goes"),
                }),
                &["action"],
            ),
        },
        Offer {
            name: Cow::Borrowed("execute_code"),
            description: Cow::Borrowed(
                "Run a Python script. `from hermes_tools import terminal, read_file, ...` calls tools from \
                          it; what it prints comes back.",
            ),
            parameters: object(json!({"code": text("the script")}), &["code"]),
        },
        Offer {
            name: Cow::Borrowed("clarify"),
            description: Cow::Borrowed("Ask the user a question, with up to four choices or none."),
            parameters: object(
                json!({"question": text("the question alone"), "choices": texts("what may be picked")}),
                &["question"],
            ),
        },
    ];
    if may_delegate {
        offers.push(Offer {
            name: Cow::Borrowed("delegate_task"),
            description: Cow::Borrowed("Hand work to other agents. Each can read the workspace and run commands on a copy; it can \
                          change things only with grants named in `grants`. The results come back as a message."),
            parameters: object(
                json!({
                    "goal": text("what is to be done; the agent knows nothing else"),
                    "context": text("what it should know"),
                    "grants": texts("grants that go along, such as cap:3"),
                    "role": {"type": "string", "enum": ["leaf", "orchestrator"]},
                    "tasks": {"type": "array", "items": {"type": "object", "properties": {
                        "goal": {"type": "string"}, "context": {"type": "string"},
                        "grants": {"type": "array", "items": {"type": "string"}},
                        "role": {"type": "string", "enum": ["leaf", "orchestrator"]},
                    }, "required": ["goal"]}},
                }),
                &[],
            ),
        });
    }
    offers
}

/// What a model is told about its place: what it holds, and what a refusal means.
pub(super) fn place_in_words(runtime: &Runtime, agent: AgentId) -> String {
    let held = runtime
        .grants_in_words(agent)
        .into_iter()
        .map(|(id, words)| format!("- {}: {words}\n", runtime.cap_of(agent, id)))
        .collect::<String>();
    format!(
        "You work in {} by calling tools. Commands run on a copy of it without a network; what they change is kept \
         only if it is granted or the user says so. A result with `Denied (code)` is final for that call: do not try \
         another way to the same effect, but say what is missing or ask the user.\n\nYou hold:\n{held}",
        runtime.workspace().display()
    )
}

/// What a child is told about its task.
pub(super) fn task_in_words(task: &Task) -> String {
    let mut words = format!(
        "\nYou work on one task for another agent and report to it in a few words: what you did, what you found, which \
         files changed, what went wrong.\n\nYour task:\n{}\n",
        task.goal
    );
    if let Some(context) = &task.context {
        words.push_str("\nContext:\n");
        words.push_str(context);
        words.push('\n');
    }
    words
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

fn whole(what: &str) -> Value {
    json!({"type": "integer", "description": what})
}

fn truth(what: &str) -> Value {
    json!({"type": "boolean", "description": what})
}

fn texts(what: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": what})
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::tool::Tool;

    use super::offers;

    #[test]
    fn every_offer_is_a_tool_and_only_some_may_delegate() {
        for offer in offers(true) {
            assert!(Tool::offered(&offer.name).is_some(), "{}", offer.name);
            assert!(offer.parameters["properties"].is_object());
        }
        assert!(
            offers(false)
                .iter()
                .all(|offer| offer.name != "delegate_task")
        );
    }
}

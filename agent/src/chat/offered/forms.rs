//! The tools on offer and the forms of their arguments.
//!
//! The forms are those a model tuned to Hermes knows: names, types, choices and what holds
//! where nothing is said. The words are the agent's own, and say what is otherwise here.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::model::Offer;

/// The tools on offer.
#[must_use]
pub fn offers(may_delegate: bool) -> Vec<Offer> {
    let mut offers = vec![
        terminal(),
        process(),
        todo(),
        memory(),
        session_search(),
        skills_list(),
        skill_view(),
        skill_manage(),
        read_file(),
        write_file(),
        patch(),
        search_files(),
        cronjob(),
        execute_code(),
        clarify(),
    ];
    if may_delegate {
        offers.push(delegate_task());
    }
    offers
}

fn terminal() -> Offer {
    offer(
        "terminal",
        "Run a shell command on a copy of the workspace. The working directory and exported variables stay for the next \
         command. What it changes is kept if that is granted or the user says so. It returns as soon as the command \
         ends, however long it may take. With background=true it goes on running; look after it with `process`, or have \
         its end told with notify_on_complete=true. What a background command changes is seen by other calls while it \
         runs, unless it has to be asked about. Files are better read, found and edited by read_file, search_files and patch.",
        json!({
            "command": text("the command"),
            "background": truth("keep it running and return at once", Some(false)),
            "timeout": at_least(1, "seconds it may take; 180 if not given, at most 600 unless it runs in the background"),
            "workdir": text("where to run it; the session's directory if not given"),
            "pty": truth("give a background command a terminal", Some(false)),
            "notify_on_complete": truth("say so when a background command ends", Some(false)),
            "watch_patterns": texts("words to watch for in a background command's output; not together with notify_on_complete"),
        }),
        &["command"],
    )
}

fn process() -> Offer {
    offer(
        "process",
        "Look after background commands: list, poll, log, wait, kill, write (as it is), submit (with a line end), close \
         (the end of its input).",
        json!({
            "action": one_of(&["list", "poll", "log", "wait", "kill", "write", "submit", "close"], "what to do"),
            "session_id": text("which one, as `terminal` named it"),
            "data": text("what to write or submit"),
            "timeout": at_least(1, "seconds to wait"),
            "offset": whole("the first line of the log; its last lines if not given"),
            "limit": at_least(1, "lines of the log"),
        }),
        &["action"],
    )
}

fn todo() -> Offer {
    let status = ["pending", "in_progress", "completed", "cancelled"];
    let item = json!({
        "type": "object",
        "properties": {
            "id": text("its own name in the list"),
            "content": text("what is to be done"),
            "status": one_of(&status, "how far it is"),
        },
        "required": ["id", "content", "status"],
    });
    offer(
        "todo",
        "Keep the list of what is to do in this session, for work of several steps. Without arguments it is shown. The \
         order is that of importance; one item at a time is in progress.",
        json!({
            "todos": {"type": "array", "description": "the items; left out, the list is shown", "items": item},
            "merge": truth("change and add items instead of replacing the list", Some(false)),
        }),
        &[],
    )
}

fn memory() -> Offer {
    let actions = ["add", "replace", "remove"];
    let operation = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": actions},
            "content": text("the note"),
            "old_text": text("a part of the note to replace or remove"),
        },
        "required": ["action"],
    });
    offer(
        "memory",
        "Keep short notes beyond this session: add, replace or remove one, or several at once by `operations`, which are \
         done all or none and are measured against the room there is at their end.",
        json!({
            "action": one_of(&actions, "what to do with one note"),
            "target": one_of(&["memory", "user"], "notes of your own, or what is known of the user"),
            "content": text("the note"),
            "old_text": text("a part of the note to replace or remove that no other note has"),
            "operations": {"type": "array", "description": "several changes, all or none", "items": operation},
        }),
        &["target"],
    )
}

fn session_search() -> Offer {
    offer(
        "session_search",
        "Look through earlier conversations with the user: with `query` those in which something was said, with \
         `session_id` all of one, with `session_id` and `around_message_id` what was said around a message, with nothing \
         the newest. It tells what was said, not how things are now.",
        json!({
            "query": text("words, all of which are to be there; OR, NOT, \"a phrase\" and begin* are understood"),
            "limit": with(with(whole("how many conversations"), "default", 3), "maximum", 10),
            "sort": one_of(&["newest", "oldest"], "what was said last or first comes first, not what fits best"),
            "session_id": text("a conversation, as another call named it"),
            "around_message_id": whole("a message of it, by its `id`; the last of a window leads on, the first back"),
            "window": with(with(whole("messages on both sides of it"), "default", 5), "maximum", 20),
            "role_filter": text("whose words are searched: `user,assistant` if not given; `tool` for results"),
            "profile": text(NO_PROFILES),
        }),
        &[],
    )
}

fn skills_list() -> Offer {
    offer(
        "skills_list",
        "List the skills: instructions kept for work that comes again.",
        json!({"category": text("only this category")}),
        &[],
    )
}

fn skill_view() -> Offer {
    offer(
        "skill_view",
        "Show a skill, or one of its files.",
        json!({
            "name": text("the skill"),
            "file_path": text("a file of it, such as references/api.md"),
        }),
        &["name"],
    )
}

fn skill_manage() -> Offer {
    let actions = [
        "create",
        "patch",
        "edit",
        "delete",
        "write_file",
        "remove_file",
    ];
    offer(
        "skill_manage",
        "Make, change or remove a skill or one of its files.",
        json!({
            "action": one_of(&actions, "what to do"),
            "name": text("the skill"),
            "content": text("the whole SKILL.md, with its heading"),
            "old_string": text("text to replace"),
            "new_string": text("what stands there instead"),
            "replace_all": truth("replace it everywhere", None),
            "category": text("where a new skill lies"),
            "file_path": text("a file below references, templates, scripts or assets"),
            "file_content": text("what that file holds"),
            "absorbed_into": text("the skill that a removed one went into"),
        }),
        &["action", "name"],
    )
}

fn read_file() -> Offer {
    offer(
        "read_file",
        "Read a text file with line numbers, as `12|text`; notebooks, Word documents and Excel workbooks as text. Long \
         ones come in parts: go on at the offset that is told.",
        json!({
            "path": text("the file"),
            "offset": with(with(whole("the first line"), "default", 1), "minimum", 1),
            "limit": with(with(whole("how many lines"), "default", 500), "maximum", 2000),
        }),
        &["path"],
    )
}

fn write_file() -> Offer {
    offer(
        "write_file",
        "Write a whole file, in place of what was there, with the directories on the way to it. To change a part of one, \
         use `patch`.",
        json!({
            "path": text("the file"),
            "content": text("all of it"),
            "cross_profile": truth(NO_PROFILES, Some(false)),
        }),
        &["path", "content"],
    )
}

fn patch() -> Offer {
    offer(
        "patch",
        "Change files: replace text in one (mode replace: path, old_string, new_string), or apply a patch of several \
         (mode patch), all of it or nothing. Small differences of blanks do not matter.",
        json!({
            "mode": with(one_of(&["replace", "patch"], "which of the two"), "default", "replace"),
            "path": text("the file, to replace in"),
            "old_string": text("what to replace; must be found once"),
            "new_string": text("what to put there"),
            "replace_all": truth("replace every occurrence", Some(false)),
            "patch": text("the patch, in the V4A form: *** Begin Patch, *** Update File: PATH, @@, lines with ' ', - and +, *** End Patch"),
            "cross_profile": truth(NO_PROFILES, Some(false)),
        }),
        &["mode"],
    )
}

fn search_files() -> Offer {
    offer(
        "search_files",
        "Find text in files (target content) or files by name (target files), the newest first.",
        json!({
            "pattern": text("a regular expression, or a name with wildcards"),
            "target": with(one_of(&["content", "files"], "where to look"), "default", "content"),
            "path": with(text("where; the session's directory if not given"), "default", "."),
            "file_glob": text("only files named like this"),
            "limit": with(whole("results at most"), "default", 50),
            "offset": with(whole("results to skip"), "default", 0),
            "output_mode": with(one_of(&["content", "files_only", "count"], "what is told of a match"), "default", "content"),
            "context": with(whole("lines around a match"), "default", 0),
        }),
        &["pattern"],
    )
}

fn cronjob() -> Offer {
    let model = json!({
        "type": "object",
        "description": "another model than the session's",
        "properties": {
            "provider": text("who serves it"),
            "model": text("its name"),
        },
        "required": ["model"],
    });
    offer(
        "cronjob",
        "Keep the list of work to be done later: create, list, update, pause, resume, remove, run. A job runs without \
         anybody to ask, with the grants the person gave that job and no others; tell them which it needs.",
        json!({
            "action": text("create, list, update, pause, resume, remove or run; create needs schedule and prompt"),
            "job_id": text("which one, as `create` and `list` name it"),
            "prompt": text("what is to be done; the job knows nothing else"),
            "schedule": text("30m, every 2h, 0 9 * * *, or a moment such as 2026-06-01T09:00"),
            "name": text("a name for people"),
            "repeat": whole("how often; once for one moment, else for ever"),
            "deliver": text("where the result goes; left out, it is kept and listed"),
            "skills": texts("skills to read first; none at an update takes them away"),
            "model": model,
            "script": text("a script run first; the job is told what it prints"),
            "no_agent": truth("run the script alone, without a model", Some(false)),
            "context_from": texts("jobs whose last results the job is told"),
            "enabled_toolsets": texts("only tools of these sets"),
            "workdir": text("the directory it works in, absolute"),
            "attach_to_session": truth("changes nothing here: what a job says is kept, not sent", None),
        }),
        &["action"],
    )
}

fn execute_code() -> Offer {
    offer(
        "execute_code",
        "Run a Python script, where work needs several calls with something between them. `from hermes_tools import \
         terminal, read_file, write_file, patch, search_files` calls tools from it, up to 50 times; what it prints comes \
         back. What the script writes by itself is seen by the tools it calls, unless it has to be asked about, which is \
         done when it has ended.",
        json!({"code": text("the script")}),
        &["code"],
    )
}

fn clarify() -> Offer {
    offer(
        "clarify",
        "Ask the user a question, with up to four choices or none.",
        json!({
            "question": text("the question alone"),
            "choices": with(texts("what may be picked"), "maxItems", 4),
        }),
        &["question"],
    )
}

fn delegate_task() -> Offer {
    let roles = ["leaf", "orchestrator"];
    let task = json!({
        "type": "object",
        "properties": {
            "goal": text("what is to be done"),
            "context": text("what it should know"),
            "role": one_of(&roles, "whether it hands on work itself"),
            "grants": texts("grants that go along"),
        },
        "required": ["goal"],
    });
    offer(
        "delegate_task",
        "Hand work to other agents. Each can read the workspace and run commands on a copy; what it changes is \
         kept if a grant named in `grants` covers it or the user says so. The results come back as a message.",
        json!({
            "goal": text("what is to be done; the agent knows nothing else"),
            "context": text("what it should know"),
            "tasks": {"type": "array", "description": "several at once", "items": task},
            "role": one_of(&roles, "whether it hands on work itself"),
            "background": truth("changes nothing: work goes on in the background anyway", None),
            "grants": texts("grants that go along, such as cap:3"),
        }),
        &[],
    )
}

/// Of what Hermes asks where an agent has several homes.
const NO_PROFILES: &str = "changes nothing here";

fn offer(
    name: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
) -> Offer {
    let mut parameters = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    Offer {
        name: Cow::Borrowed(name),
        description: Cow::Borrowed(description),
        parameters,
    }
}

fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

fn one_of(choices: &[&str], what: &str) -> Value {
    json!({"type": "string", "enum": choices, "description": what})
}

fn whole(what: &str) -> Value {
    json!({"type": "integer", "description": what})
}

fn at_least(least: u32, what: &str) -> Value {
    json!({"type": "integer", "description": what, "minimum": least})
}

fn truth(what: &str, unless_said: Option<bool>) -> Value {
    let form = json!({"type": "boolean", "description": what});
    match unless_said {
        Some(default) => with(form, "default", default),
        None => form,
    }
}

fn texts(what: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": what})
}

fn with(mut form: Value, key: &str, value: impl Into<Value>) -> Value {
    form[key] = value.into();
    form
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

//! Each argument of each tool, given what it is not declared to be.
//!
//! One case for an argument: the call without it, then with a value of every
//! other kind, and at last the call as it should be, so that what a bad value
//! left behind would show.

use serde_json::{Map, Value, json};

use super::drafted_in;
use crate::vectors::draft::Draft;
use crate::vectors::made::at;

/// Letters of a text that is too long for whatever it is meant to be.
const HUGE: usize = 5_000;

/// A conversation that was had.
const EARLIER: &str = "0000000000000000000000000c0ffee0";

/// One way of calling a tool, and which of its arguments are tried.
struct Way {
    tool: &'static str,
    args: Value,
    tried: &'static [&'static str],
    /// A call before each case, so that there is something to work on.
    first: Option<Value>,
}

/// The cases, in order.
pub fn cases() -> Vec<Draft> {
    let mut cases = Vec::new();
    for way in ways() {
        for name in way.tried {
            cases.push(one(&way, name));
        }
        cases.push(strangers(&way));
    }
    cases.push(over_at_once());
    cases
}

/// Less than no time. A command that is quick may be done before anybody looks.
fn over_at_once() -> Draft {
    let call = |timeout: Value| json!({"command": "sleep 5; echo late", "timeout": timeout});
    furnished("kind", "terminal")
        .call("terminal", &call(json!(-1)))
        .call("terminal", &call(json!(-0.5)))
}

fn one(way: &Way, name: &str) -> Draft {
    let mut draft = furnished("kind", way.tool);
    if let Some(first) = &way.first {
        draft = draft.call(way.tool, first);
    }
    let given = |value: Option<Value>| {
        let mut args = way.args.as_object().cloned().unwrap_or_default();
        // An argument keeps its place when it is tried with another value.
        match value {
            Some(value) => args.insert(name.to_owned(), value),
            None => args.shift_remove(name),
        };
        Value::Object(args)
    };
    draft = draft.call(way.tool, &given(None));
    let is_quick = (way.tool, name) == ("terminal", "timeout");
    for value in kinds() {
        // Whether a quick command is done in less than no time is chance.
        if is_quick && value == json!(-1) {
            continue;
        }
        draft = draft.call(way.tool, &given(Some(value)));
    }
    draft.call(way.tool, &way.args)
}

/// Arguments nobody declared, beside the right ones and instead of them.
fn strangers(way: &Way) -> Draft {
    let mut args = way.args.as_object().cloned().unwrap_or_default();
    args.insert("no_such_argument".to_owned(), json!({"deep": [1, null]}));
    args.insert(String::new(), json!("nameless"));
    furnished("stranger", way.tool)
        .call(way.tool, &Value::Object(Map::new()))
        .call(way.tool, &json!({"no_such_argument": 1}))
        .call(way.tool, &Value::Object(args))
}

/// A value of every kind, and texts that spell some.
fn kinds() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(2),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("2"),
        json!(" 2 "),
        json!("2.0"),
        json!("nan"),
        json!("True"),
        json!("null"),
        json!([]),
        json!(["x", 1, null]),
        json!("[\"x\"]"),
        json!({}),
        json!({"x": 1}),
        json!("{\"x\": 1}"),
        json!("a\0b"),
        json!("y".repeat(HUGE)),
    ]
}

/// Everything the ways below work with.
fn furnished(flag: &str, tool: &str) -> Draft {
    let skill = "---\nname: knitting\ndescription: How to knit\n---\n\n# Knitting\n\nOne, two.\n";
    let mut world = json!({"files": [
        {"path": at("t.txt"), "text": "one\ntwo\nthree\n"},
        {"path": at("dir/in.txt"), "text": "one in\n"},
        {"path": "/home/u/.hermes/skills/knitting/SKILL.md", "text": skill},
        {"path": "/home/u/.hermes/cron", "dir": true, "mode": 448},
        {"path": "/home/u/.hermes/scripts", "dir": true, "mode": 448},
        {"path": "/home/u/.hermes/cron/output", "dir": true, "mode": 448},
    ]});
    if tool == "session_search" {
        world["conversations"] = json!([{
            "id": EARLIER,
            "source": "cli",
            "started": 1_772_000_000_000_u64,
            "messages": [
                {"user": "how is wool dyed?", "at": 1_772_000_000_000_u64},
                {"assistant": "with indigo", "at": 1_772_000_030_000_u64},
            ],
        }]);
    }
    let draft = drafted_in(flag, &world);
    let held = |id: &str, verb: &str, on: &str| json!({"id": id, "verb": verb, "on": on});
    let home = |name: &str| format!("/home/u/.hermes/{name}");
    let mut grants = vec![held("ws", "fs.*", "/home/u/proj")];
    match tool {
        "memory" => grants.push(held("memories", "fs.*", &home("memories"))),
        "skills_list" | "skill_view" | "skill_manage" => {
            grants.push(held("skills", "fs.*", &home("skills")));
        }
        "cronjob" => grants.push(held("cron", "fs.*", &home("cron"))),
        "clarify" => grants.push(held("ask", "user.ask", "*")),
        "session_search" => grants.push(held("talks", "session.read", "*")),
        _ => {}
    }
    let draft = draft.field("held", Value::Array(grants));
    match tool {
        // Somebody has to be there who can be asked.
        "clarify" => draft
            .field("context", json!("gateway"))
            .field("user", json!({"literal": "blue"})),
        "cronjob" => draft.field("context", json!("interactive")),
        _ => draft,
    }
}

fn ways() -> Vec<Way> {
    let way = |tool, args, tried| Way {
        tool,
        args,
        tried,
        first: None,
    };
    let then = |first: Value, way: Way| Way {
        first: Some(first),
        ..way
    };
    let every_two_hours = json!({
        "action": "create", "schedule": "every 2h", "prompt": "Look.", "name": "knit",
    });
    vec![
        way(
            "read_file",
            json!({"path": "t.txt", "offset": 1, "limit": 2}),
            &["path", "offset", "limit"],
        ),
        way(
            "write_file",
            json!({"path": "new.txt", "content": "new\n"}),
            &["path", "content", "cross_profile"],
        ),
        way(
            "patch",
            json!({"mode": "replace", "path": "t.txt", "old_string": "two", "new_string": "two"}),
            &[
                "mode",
                "path",
                "old_string",
                "new_string",
                "replace_all",
                "cross_profile",
            ],
        ),
        way(
            "patch",
            json!({"mode": "patch", "patch": "*** Begin Patch\n*** Add File: added.txt\n+x\n*** End Patch"}),
            &["patch", "path"],
        ),
        way(
            "search_files",
            json!({"pattern": "one", "path": "dir"}),
            &[
                "pattern",
                "target",
                "path",
                "file_glob",
                "limit",
                "offset",
                "output_mode",
                "context",
            ],
        ),
        way(
            "terminal",
            json!({"command": "echo one"}),
            &["command", "background", "timeout", "workdir", "pty"],
        ),
        way(
            "terminal",
            json!({"command": "true", "background": true, "notify_on_complete": false}),
            &["notify_on_complete", "watch_patterns"],
        ),
        way(
            "delegate_task",
            json!({"goal": "Knit."}),
            &["goal", "context", "grants", "role", "tasks", "background"],
        ),
        way("process", json!({"action": "list"}), &["action", "limit"]),
        way(
            "process",
            json!({"action": "poll", "session_id": "none"}),
            &["session_id", "data", "timeout", "offset"],
        ),
        way("execute_code", json!({"code": "print(1)"}), &["code"]),
        way(
            "clarify",
            json!({"question": "Which one?", "choices": ["red", "blue"]}),
            &["question", "choices"],
        ),
        way(
            "todo",
            json!({"todos": [{"id": "1", "content": "knit", "status": "pending"}], "merge": true}),
            &["todos", "merge"],
        ),
        way(
            "memory",
            json!({"action": "add", "target": "memory", "content": "likes wool"}),
            &["action", "target", "content", "old_text", "operations"],
        ),
        way(
            "memory",
            json!({"action": "replace", "target": "user", "content": "cotton", "old_text": "wool"}),
            &["content", "old_text"],
        ),
        way(
            "session_search",
            json!({"query": "wool", "limit": 2}),
            &["query", "role_filter", "limit", "sort", "profile"],
        ),
        way(
            "session_search",
            json!({"session_id": EARLIER, "around_message_id": 1, "window": 2}),
            &["session_id", "around_message_id", "window"],
        ),
        way("skills_list", json!({"category": "crafts"}), &["category"]),
        way(
            "skill_view",
            json!({"name": "knitting", "file_path": "SKILL.md"}),
            &["name", "file_path"],
        ),
        way(
            "skill_manage",
            json!({"action": "patch", "name": "knitting", "old_string": "two", "new_string": "two."}),
            &[
                "action",
                "name",
                "old_string",
                "new_string",
                "replace_all",
                "file_path",
            ],
        ),
        way(
            "skill_manage",
            json!({
                "action": "create", "name": "sewing",
                "content": "---\nname: sewing\ndescription: How to sew\n---\n\n# Sewing\n\nIn, out.\n",
            }),
            &["name", "content", "category"],
        ),
        way(
            "skill_manage",
            json!({
                "action": "write_file", "name": "knitting",
                "file_path": "references/more.md", "file_content": "More.\n",
            }),
            &["file_path", "file_content"],
        ),
        way(
            "cronjob",
            json!({"action": "create", "schedule": "every 2h", "prompt": "Look."}),
            &[
                "action",
                "schedule",
                "prompt",
                "name",
                "repeat",
                "deliver",
                "skills",
                "model",
                "script",
                "no_agent",
                "context_from",
                "enabled_toolsets",
                "workdir",
                "attach_to_session",
            ],
        ),
        way(
            "cronjob",
            json!({"action": "remove", "job_id": "none"}),
            &["job_id"],
        ),
        then(
            every_two_hours.clone(),
            way(
                "cronjob",
                json!({"action": "update", "job_id": "knit", "prompt": "Look again."}),
                &[
                    "prompt",
                    "schedule",
                    "repeat",
                    "deliver",
                    "skills",
                    "skill",
                    "workdir",
                    "context_from",
                    "enabled_toolsets",
                    "no_agent",
                    "script",
                    "name",
                ],
            ),
        ),
        then(
            every_two_hours.clone(),
            way(
                "cronjob",
                json!({"action": "pause", "job_id": "knit", "reason": "Enough."}),
                &["reason"],
            ),
        ),
        then(
            every_two_hours,
            way(
                "cronjob",
                json!({"action": "list", "include_disabled": true}),
                &["include_disabled"],
            ),
        ),
        way(
            "skill_manage",
            json!({"action": "edit", "name": "knitting", "content": "---\nname: knitting\ndescription: How\n---\n\nOne.\n"}),
            &["name", "content"],
        ),
        way(
            "skill_manage",
            json!({"action": "remove_file", "name": "knitting", "file_path": "references/none.md"}),
            &["name", "file_path"],
        ),
        way(
            "skill_manage",
            json!({"action": "delete", "name": "sewing", "absorbed_into": "knitting"}),
            &["name", "absorbed_into"],
        ),
    ]
}

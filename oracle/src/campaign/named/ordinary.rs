//! Differences of ordinary work, where both did what was asked.

use bisim_world::protocol::{Context, FsEffect, Step};
use serde_json::Value;

use crate::canon;
use crate::case::Case;

/// What one call was told, and what else only one side changed.
pub(super) struct Seen<'s> {
    /// By Hermes.
    pub told: &'s Value,
    /// By the agent.
    pub heard: &'s Value,
    /// What only Hermes changed.
    pub more: &'s [FsEffect],
}

/// The rule that names such a difference; the agent changed nothing that Hermes did not.
pub(super) fn rule(case: &Case, at: usize, seen: &Seen<'_>) -> Option<&'static str> {
    let Some(Step::Call { tool, args, .. }) = case.job.script.get(at) else {
        return None;
    };
    let action = args.get("action").and_then(Value::as_str);
    match tool.as_str() {
        "process" if action == Some("list") && lists_for_nobody(case, seen) => {
            Some("listed-where-nobody-is")
        }
        "memory" if leaves_notes_alone(seen) => Some("no-copy-of-notes-left-alone"),
        "patch" if is_half_made(seen) => Some("a-patch-is-all-or-nothing"),
        "search_files" if seen.more.is_empty() && begins_with_a_dash(args) => {
            Some("a-pattern-is-no-option")
        }
        "search_files" if is_in_another_order(seen) && patches_several(case, at) => {
            Some("files-of-a-patch-come-at-once")
        }
        "search_files" if is_in_another_order(seen) && ran_before(case, at) => {
            Some("changes-of-a-command-come-at-its-end")
        }
        _ => None,
    }
}

/// Whether text is searched for with a pattern, or in a path, that Hermes hands on as an option.
fn begins_with_a_dash(args: &Value) -> bool {
    let is_of_names = matches!(text(args, "target"), Some("files" | "find"));
    let is_dashed = |field: &str| {
        let given = text(args, field);
        given.is_some_and(|given| given.len() > 1 && given.starts_with('-'))
    };
    is_dashed("path") || (is_dashed("pattern") && !is_of_names)
}

/// Whether Hermes lists no command, as it does where no session of a person has a name.
fn lists_for_nobody(case: &Case, seen: &Seen<'_>) -> bool {
    let nobody_is_there = match case.job.context {
        Context::Headless | Context::Cron => true,
        Context::Interactive | Context::Gateway | Context::Acp => false,
    };
    let listed = |value: &Value| Some(value.get("processes")?.as_array()?.len());
    nobody_is_there
        && seen.more.is_empty()
        && listed(seen.told) == Some(0)
        && listed(seen.heard) > Some(0)
}

/// Whether both left notes alone that somebody else wrote, and Hermes made a copy of them
/// beside.
fn leaves_notes_alone(seen: &Seen<'_>) -> bool {
    let refuses = |value: &Value| {
        let error = value.get("error").and_then(Value::as_str);
        error.is_some_and(|error| error.starts_with("Refusing to write "))
    };
    let is_copy = |effect: &FsEffect| Some(&*effect.path) == text(seen.told, "drift_backup");
    refuses(seen.told) && refuses(seen.heard) && seen.more.iter().all(is_copy)
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

/// Whether a patch failed for both, and Hermes had changed some of its files by then.
fn is_half_made(seen: &Seen<'_>) -> bool {
    let failed = |value: &Value| value.get("success") == Some(&Value::Bool(false));
    let names = |field: &str| {
        let list = seen.told.get(field).and_then(Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    let changed = ["files_modified", "files_created", "files_deleted"];
    failed(seen.told)
        && failed(seen.heard)
        && !seen.more.is_empty()
        && changed.into_iter().any(names)
}

/// Whether the same was found, file by file, in another order.
fn is_in_another_order(seen: &Seen<'_>) -> bool {
    let sorted = |value: &Value| {
        let mut value = value.clone();
        if let Some(Value::Array(files)) = value.get_mut("files") {
            files.sort_by_key(ToString::to_string);
        }
        if let Some(Value::Array(matches)) = value.get_mut("matches") {
            // A stable sort: the lines of one file keep their order.
            matches.sort_by_key(|one| text(one, "path").map(str::to_owned));
        }
        if let Some(Value::Object(counts)) = value.get_mut("counts") {
            counts.sort_keys();
        }
        if let Some(Value::String(rows)) = value.get_mut("matches_text") {
            let mut files: Vec<String> = Vec::new();
            for row in rows.lines() {
                match files.last_mut() {
                    Some(file) if row.starts_with("  ") => {
                        file.push('\n');
                        file.push_str(row);
                    }
                    _ => files.push(row.to_owned()),
                }
            }
            files.sort();
            *rows = files.join("\n");
        }
        value
    };
    seen.more.is_empty() && canon::same_value(&sorted(seen.told), &sorted(seen.heard))
}

/// Whether a call before this one patched several files at once.
fn patches_several(case: &Case, at: usize) -> bool {
    let mut before = case.job.script.iter().take(at);
    before.any(|step| {
        let Step::Call { tool, args, .. } = step else {
            return false;
        };
        let heads = |patch: &str| {
            let lines = patch.lines().filter(|line| line.starts_with("***"));
            lines.filter(|line| line.contains(" File:")).count()
        };
        tool == "patch" && text_of(args.get("patch")).is_some_and(|patch| heads(patch) > 1)
    })
}

/// Whether a command or a script ran before this call.
fn ran_before(case: &Case, at: usize) -> bool {
    let mut before = case.job.script.iter().take(at);
    before.any(|step| {
        matches!(step, Step::Call { tool, .. } if tool == "terminal" || tool == "execute_code")
    })
}

fn text_of(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use bisim_world::protocol::EffectKind;
    use serde_json::json;

    use super::*;
    use crate::case::Defaults;

    fn named(
        (context, calls): (&str, &Value),
        (told, heard): (&Value, &Value),
        more: &[&str],
    ) -> Option<&'static str> {
        let script: Vec<Value> = calls
            .as_array()
            .unwrap()
            .iter()
            .map(|call| json!({"call": call}))
            .collect();
        let file = json!({
            "id": "x", "context": context, "user": "deny_all", "script": script,
            "expect": {"agent": "either", "reason": "x"}, "source": {"from": "made"},
        });
        let case = Case::resolve(
            "generated",
            &Defaults::default(),
            serde_json::from_value(file).unwrap(),
        );
        let more: Vec<FsEffect> = more
            .iter()
            .map(|path| FsEffect {
                path: (*path).to_owned(),
                kind: EffectKind::Created,
                digest: String::new(),
                size: 0,
                mode: 0,
            })
            .collect();
        let seen = Seen {
            told,
            heard,
            more: &more,
        };
        rule(&case, case.job.script.len() - 1, &seen)
    }

    #[test]
    fn a_list_of_commands_is_named_only_where_nobody_is_and_hermes_has_none() {
        let list = json!([{"tool": "process", "args": {"action": "list"}}]);
        let poll = json!([{"tool": "process", "args": {"action": "poll"}}]);
        let (none, one) = (
            json!({"processes": []}),
            json!({"processes": [{"session_id": "a"}]}),
        );
        let expected = Some("listed-where-nobody-is");
        assert_eq!(named(("cron", &list), (&none, &one), &[]), expected);
        assert_eq!(named(("headless", &list), (&none, &one), &[]), expected);
        for (context, call, told, heard) in [
            ("interactive", &list, &none, &one),
            ("acp", &list, &none, &one),
            ("cron", &poll, &none, &one),
            ("cron", &list, &one, &none),
            ("cron", &list, &none, &none),
        ] {
            assert_eq!(
                named((context, call), (told, heard), &[]),
                None,
                "{context}"
            );
        }
    }

    #[test]
    fn a_search_is_named_where_a_dash_makes_an_option_of_what_is_given() {
        let (told, heard) = (json!({"total_count": 0}), json!({"total_count": 1}));
        let named = |args: Value| {
            let calls = json!([{"tool": "search_files", "args": args}]);
            named(("cron", &calls), (&told, &heard), &[])
        };
        let expected = Some("a-pattern-is-no-option");
        for args in [
            json!({"pattern": "--", "path": "src"}),
            json!({"pattern": "-v"}),
            json!({"pattern": "x", "path": "-x"}),
            json!({"pattern": "*", "path": "-x", "target": "files"}),
        ] {
            assert_eq!(named(args.clone()), expected, "{args}");
        }
        for args in [
            json!({"pattern": "-"}),
            json!({"pattern": "x-v", "path": "src"}),
            json!({"pattern": "-v", "target": "files"}),
        ] {
            assert_eq!(named(args.clone()), None, "{args}");
        }
    }

    #[test]
    fn an_order_is_named_only_after_a_command() {
        let calls = |first: &str, then: &str| json!([{"tool": first, "args": {}}, {"tool": then, "args": {"pattern": "x"}}]);
        let (one, two) = (json!({"files": ["a", "b"]}), json!({"files": ["b", "a"]}));
        for (first, expected) in [
            ("terminal", Some("changes-of-a-command-come-at-its-end")),
            ("read_file", None),
        ] {
            let calls = calls(first, "search_files");
            assert_eq!(
                named(("cron", &calls), (&one, &two), &[]),
                expected,
                "{first}"
            );
        }
    }

    #[test]
    fn a_copy_of_notes_is_named_where_both_left_them_alone_and_nothing_else_was_made() {
        let add = json!([{"tool": "memory", "args": {"action": "add"}}]);
        let copy = "/home/u/.hermes/memories/USER.md.bak.1";
        let told = json!({"error": "Refusing to write USER.md: a", "drift_backup": copy});
        let heard = json!({"error": "Refusing to write USER.md: b"});
        let other = json!({"error": "No entry matched"});
        let expected = Some("no-copy-of-notes-left-alone");
        assert_eq!(named(("cron", &add), (&told, &heard), &[copy]), expected);
        assert_eq!(named(("cron", &add), (&told, &other), &[copy]), None);
        assert_eq!(named(("cron", &add), (&told, &heard), &[copy, "/x"]), None);
    }

    #[test]
    fn a_patch_is_named_where_it_failed_and_hermes_had_begun_it() {
        let patch = json!([{"tool": "patch", "args": {"patch": ""}}]);
        let told = json!({"success": false, "files_modified": ["a"], "error": "x"});
        let whole = json!({"success": true, "files_modified": ["a"]});
        let heard = json!({"success": false, "error": "y"});
        let expected = Some("a-patch-is-all-or-nothing");
        assert_eq!(named(("cron", &patch), (&told, &heard), &["/a"]), expected);
        assert_eq!(named(("cron", &patch), (&told, &heard), &[]), None);
        assert_eq!(named(("cron", &patch), (&whole, &heard), &["/a"]), None);
        assert_eq!(named(("cron", &patch), (&heard, &heard), &["/a"]), None);
    }

    #[test]
    fn another_order_is_named_after_a_patch_of_several_files_and_no_other_difference() {
        let calls = |patch: &str| {
            json!([
                {"tool": "patch", "args": {"mode": "patch", "patch": patch}},
                {"tool": "search_files", "args": {"pattern": "x"}},
            ])
        };
        let two = calls("*** Add File: a\n+x\n*** Update File: b\n+x\n");
        let one = calls("*** Add File: a\n+x\n");
        let expected = Some("files-of-a-patch-come-at-once");
        for (told, heard) in [
            (json!({"files": ["a", "b"]}), json!({"files": ["b", "a"]})),
            (
                json!({"matches_text": "a\n  1: x\n  2: y\nb\n  1: x"}),
                json!({"matches_text": "b\n  1: x\na\n  1: x\n  2: y"}),
            ),
            (
                json!({"counts": {"a": 1, "b": 2}}),
                json!({"counts": {"b": 2, "a": 1}}),
            ),
            (
                json!({"matches": [{"path": "a", "line": 1}, {"path": "b", "line": 1}]}),
                json!({"matches": [{"path": "b", "line": 1}, {"path": "a", "line": 1}]}),
            ),
        ] {
            assert_eq!(
                named(("cron", &two), (&told, &heard), &[]),
                expected,
                "{told}"
            );
            assert_eq!(named(("cron", &one), (&told, &heard), &[]), None, "{told}");
            assert_eq!(
                named(("cron", &two), (&told, &heard), &["/a"]),
                None,
                "{told}"
            );
        }
        for (told, heard) in [
            (json!({"files": ["a", "b"]}), json!({"files": ["b", "c"]})),
            (
                json!({"matches_text": "a\n  1: x\n  2: y"}),
                json!({"matches_text": "a\n  2: y\n  1: x"}),
            ),
        ] {
            assert_eq!(named(("cron", &two), (&told, &heard), &[]), None, "{told}");
        }
    }
}

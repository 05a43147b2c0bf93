//! `session_search`: who may look through earlier conversations, and at which.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use hermitcrab::{
    conversation::{self, Conversation, Keeper, Mark, Shelf, When},
    model::Message,
    runtime::{CallReport, Fate, GrantWords},
};
use hermitcrab_core::{outcome::DenialCode, session::Asking};
use serde_json::{Value, json};

use crate::support::Bench;

/// Keeps a conversation that was had in `cwd`; its id.
fn had(state: &Path, cwd: &Path, shelf: Shelf, messages: &[Message], mark: u64) -> String {
    let id = conversation::new_id().unwrap();
    let dir = shelf.dir_of(state, &id);
    std::fs::create_dir_all(&dir).unwrap();
    let mut said = Conversation::new(cwd.to_owned());
    said.note(messages);
    said.model = Some("llm".into());
    said.mark = Some(Mark::of((mark, 0)));
    let kept = Keeper::default().keep(&dir, &said, 0, When::After);
    kept.unwrap();
    id
}

fn talk(words: &[&str]) -> Vec<Message> {
    let both = words.iter().enumerate();
    both.map(|(place, words)| match place % 2 {
        0 => Message::User((*words).to_owned()),
        _ => Message::Assistant {
            text: (*words).to_owned(),
            calls: Vec::new(),
        },
    })
    .collect()
}

fn value(report: &CallReport) -> Value {
    serde_json::from_str(&report.text).unwrap()
}

/// A bench whose agent may look, with the ids of three conversations: here, elsewhere, and
/// the one that is had.
fn bench() -> (Bench, [String; 3]) {
    let mut bench = Bench::new();
    let other = bench.workspace.parent().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    let (state, here) = (bench.state.clone(), bench.workspace.clone());
    let ids = [
        (&here, "dye the wool blue", 77),
        (&other, "the wool of another project", 78),
        (&here, "wool that is talked about now", 1),
    ]
    .map(|(cwd, words, session)| {
        let messages = talk(&[words, "it is done"]);
        had(&state, cwd, Shelf::Terminal, &messages, session)
    });
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("session.read", "*");
    bench.runtime.grant(first, &words).unwrap();
    (bench, ids)
}

#[test]
fn nobody_looks_without_the_right_or_a_yes() {
    let mut bench = Bench::new();
    let messages = talk(&["dye the wool", "done"]);
    let (state, here) = (bench.state.clone(), bench.workspace.clone());
    had(&state, &here, Shelf::Editor, &messages, 7);
    bench.user.words.borrow_mut().push_back("deny");
    let report = bench.call("session_search", json!({"query": "wool"}));
    assert!(matches!(report.fate, Fate::AskedRefused(_)), "{report:?}");
    assert!(!report.text.contains("dye"), "{report:?}");
    let shown = bench.user.shown.borrow().join("\n");
    assert!(
        shown.contains("search earlier conversations for `wool`"),
        "{shown}"
    );
    bench.user.words.borrow_mut().push_back("once");
    let report = bench.call("session_search", json!({"query": "wool"}));
    assert_eq!(value(&report)["results"][0]["source"], "acp", "{report:?}");

    let mut nobody = Bench::beginning_with(|config| {
        config.asking = Asking::Refuse;
    });
    let report = nobody.call("session_search", json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::NoCap), "{report:?}");
}

#[test]
fn what_was_said_elsewhere_and_what_is_said_now_is_not_found() {
    let (mut bench, [here, other, now]) = bench();
    let found = |bench: &mut Bench, args: Value| -> (Vec<String>, Value) {
        let report = bench.call("session_search", args);
        let told = value(&report);
        let ids = told["results"].as_array().unwrap().iter();
        let ids = ids.map(|one| one["session_id"].as_str().unwrap().to_owned());
        (ids.collect(), told)
    };
    for args in [json!({"query": "wool"}), json!({})] {
        let (ids, told) = found(&mut bench, args);
        assert_eq!(ids, std::slice::from_ref(&here), "{told}");
        let note = told["note"].as_str().unwrap();
        assert!(note.contains("(1)") && note.contains("fs.read"), "{note}");
    }
    // A word that is said only there is of no weight here.
    let (ids, _) = found(&mut bench, json!({"query": "another"}));
    assert_eq!(ids, [] as [String; 0]);
    let report = bench.call("session_search", json!({"session_id": other}));
    assert_eq!(
        value(&report)["error"],
        format!("session_id not found: {other}")
    );
    let scroll = json!({"session_id": now, "around_message_id": 1});
    let error = value(&bench.call("session_search", scroll));
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .starts_with("scroll rejected"),
        "{error}"
    );

    let place = bench.workspace.parent().unwrap().join("other");
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("fs.read", &place.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    let (ids, told) = found(&mut bench, json!({"query": "wool", "sort": "oldest"}));
    assert_eq!(ids, [here, other], "{told}");
    assert_eq!(told.get("note"), None);
}

#[test]
fn a_conversation_is_browsed_read_scrolled_and_found() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("session.read", "*");
    bench.runtime.grant(first, &words).unwrap();
    let (state, here) = (bench.state.clone(), bench.workspace.clone());
    let mut messages = talk(&["how is wool dyed?\nsay it", "with indigo"]);
    messages.push(Message::Assistant {
        text: String::new(),
        calls: vec![hermitcrab::model::ProposedCall {
            id: "c1".into(),
            tool: "terminal".into(),
            arguments: "{\"command\": \"grep madder\"}".into(),
        }],
    });
    messages.push(Message::Tool {
        call: "c1".into(),
        tool: "terminal".into(),
        text: "{\"output\": \"weld\"}".into(),
    });
    for number in 0..18 {
        messages.extend(talk(&[&format!("question {number}"), "answer"]));
    }
    let id = had(&state, &here, Shelf::Terminal, &messages, 7);
    let mut call = |args: Value| value(&bench.call("session_search", args));

    let listed = call(json!({}));
    let one = &listed["results"][0];
    assert_eq!(one["preview"], "how is wool dyed? say it");
    assert_eq!(
        (&one["session_id"], &one["message_count"]),
        (&json!(id), &json!(40))
    );
    assert!(one["started_at"].as_f64().unwrap() > 1.7e9, "{one}");

    let read = call(json!({"session_id": format!("default/{id}")}));
    let numbers: Vec<u64> = read["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_u64().unwrap())
        .collect();
    // They are counted from a number of this conversation's own.
    let from = numbers[0] - 1;
    assert!(
        from >= 1_000_000 && from.is_multiple_of(1_000_000),
        "{from}"
    );
    let expected = (1..=20).chain(31..=40).map(|number| from + number);
    assert_eq!(numbers, expected.collect::<Vec<_>>());
    assert_eq!(
        read["messages"][2]["tool_calls"][0]["function"]["name"],
        "terminal"
    );
    assert_eq!(read["messages"][3]["tool_call_id"], "c1");
    assert_eq!(read["session_meta"]["model"], "llm");

    let scrolled = call(json!({"session_id": id, "around_message_id": "39", "window": 2}));
    assert_eq!(
        (&scrolled["messages_before"], &scrolled["messages_after"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(scrolled["messages"][2]["anchor"], true);
    assert_eq!(scrolled["around_message_id"], from + 39);
    let told = call(json!({"session_id": id, "around_message_id": from + 39, "window": 2}));
    assert_eq!(told, scrolled);

    let found = call(json!({"query": "indigo OR nothing"}));
    let one = &found["results"][0];
    assert_eq!(one["snippet"].as_str().unwrap().trim(), "with >>>indigo<<<");
    assert_eq!(
        (&one["match_message_id"], &one["messages_after"]),
        (&json!(from + 2), &json!(5))
    );
    assert_eq!(one["bookend_end"][2]["id"], from + 40);
    // The tool's result in the window is left out there.
    assert_eq!(one["messages"].as_array().unwrap().len(), 6);

    assert_eq!(call(json!({"query": "weld"}))["count"], 0);
    assert_eq!(
        call(json!({"query": "weld", "role_filter": "tool"}))["count"],
        1
    );
    let called = call(json!({"query": "madder"}));
    assert_eq!(
        called["results"][0]["match_message_id"],
        from + 3,
        "{called}"
    );
    let titled = call(json!({"query": "'how is wool dyed?'"}));
    assert_eq!(
        titled["results"][0]["matched_role"], "session_title",
        "{titled}"
    );
}

#[test]
fn what_is_damaged_or_from_an_older_version_stops_no_search() {
    let (mut bench, [here, ..]) = bench();
    let state = bench.state.clone();
    let made = |name: &str, text: &str| {
        let id = conversation::new_id().unwrap();
        let dir = Shelf::Terminal.dir_of(&state, &id);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name), text).unwrap();
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(dir.join(name), own).unwrap();
        id
    };
    let cwd = bench.workspace.display().to_string();
    made("conversation.jsonl", "{\"nothing\":");
    let older = made(
        "conversation.json",
        &format!(
            "{{\"cwd\":{cwd:?},\"title\":null,\"updated\":\"2025-03-05T14:07:00Z\",\"messages\":[{{\"user\":\"old wool\"}}]}}\n"
        ),
    );
    let report = bench.call("session_search", json!({"query": "wool", "sort": "newest"}));
    let told = value(&report);
    let ids: Vec<&str> = told["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&*here, &*older], "{told}");
    assert!(
        told["results"][1]["when"]
            .as_str()
            .unwrap()
            .starts_with("March 05, 2025")
    );
}

#[test]
fn what_was_told_of_one_conversation_is_no_message_of_another() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("session.read", "*");
    bench.runtime.grant(first, &words).unwrap();
    let (state, here) = (bench.state.clone(), bench.workspace.clone());
    let [one, other] = [7, 8].map(|session| {
        let messages = talk(&["dye the wool", "with what?", "indigo", "it is done"]);
        had(&state, &here, Shelf::Terminal, &messages, session)
    });
    let mut call = |args: Value| value(&bench.call("session_search", args));
    let read = call(json!({"session_id": other}));
    let number = read["messages"][2]["id"].as_u64().unwrap();
    let asked = |id: &str| json!({"session_id": id, "around_message_id": number});
    assert_eq!(call(asked(&other))["messages"][2]["anchor"], true);
    assert_eq!(
        call(asked(&one))["error"],
        format!("around_message_id {number} not in session_id {one}")
    );
}

/// Bytes this process has read.
fn read_so_far() -> u64 {
    let told = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

/// The most memory this process had since it was asked last, in bytes.
fn most_memory_since(clear: bool) -> u64 {
    let told = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    if clear {
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
    }
    kilobytes.parse::<u64>().unwrap() << 10
}

#[test]
fn of_many_conversations_only_what_is_asked_about_is_read_and_held() {
    const MANY: usize = 24;
    const MEGABYTE: usize = 1 << 20;
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("session.read", "*");
    bench.runtime.grant(first, &words).unwrap();
    let (state, here) = (bench.state.clone(), bench.workspace.clone());
    // A few words, said over and over: the index of it is small, and what is held are texts.
    let long = "so the wool was dyed ".repeat(MEGABYTE / 21);
    let mut ids = Vec::new();
    for number in 0..MANY {
        let messages = talk(&[&format!("question {number}"), &long]);
        ids.push(had(&state, &here, Shelf::Terminal, &messages, 70));
    }
    let mut call = |args: Value| value(&bench.call("session_search", args));
    let before = read_so_far();
    let told = call(json!({"session_id": ids[3]}));
    assert_eq!(told["message_count"], 2);
    let bytes = read_so_far() - before;
    assert!(bytes < 8 << 20, "{bytes} bytes were read for one of them");

    drop((told, long));
    most_memory_since(true);
    let before = most_memory_since(true);
    let told = call(json!({"query": "\"question 13\""}));
    assert_eq!(told["results"][0]["session_id"], ids[13], "{told}");
    let held = most_memory_since(false).saturating_sub(before);
    let texts = u64::try_from(MANY * MEGABYTE).unwrap();
    assert!(held < 2 * texts, "{held} bytes for {texts} of texts");
}

#[test]
fn the_newest_are_listed_by_what_was_said_last() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("session.read", "*");
    bench.runtime.grant(first, &words).unwrap();
    let (state, here) = (bench.state.clone(), bench.workspace.clone());
    let at = |minute: u64, seconds: u64| (29_000_000 + minute) * 60_000 + seconds * 1000;
    let mut ids = Vec::new();
    // Written last in these minutes; the second is the newest by what was said in it, and the
    // fourth was written late and says nothing new.
    for (updated, said) in [
        (at(3, 0), at(3, 10)),
        (at(3, 0), at(3, 50)),
        (at(2, 0), at(2, 5)),
        (at(9, 0), at(1, 0)),
    ] {
        let id = conversation::new_id().unwrap();
        let dir = Shelf::Terminal.dir_of(&state, &id);
        std::fs::create_dir_all(&dir).unwrap();
        let updated = jiff::Timestamp::from_millisecond(i64::try_from(updated).unwrap()).unwrap();
        let standing = json!({"updated": updated.to_string(), "read": true});
        let mut head = standing.clone();
        head["cwd"] = json!(here);
        head["started"] = json!(at(0, 0));
        let lines = [head, json!({"user": "words", "at": said}), standing];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = dir.join("conversation.jsonl");
        std::fs::write(&file, text).unwrap();
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, own).unwrap();
        ids.push(id);
    }
    for limit in 1..=4 {
        let told = value(&bench.call("session_search", json!({ "limit": limit })));
        let listed = told["results"].as_array().unwrap().iter();
        let listed: Vec<&str> = listed
            .map(|one| one["session_id"].as_str().unwrap())
            .collect();
        let expected = [&*ids[1], &ids[0], &ids[2], &ids[3]];
        assert_eq!(listed, expected[..limit], "{told}");
    }
}

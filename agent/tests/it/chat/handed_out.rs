//! An agent that was handed work: whom it asks, and where it begins.

use hermitcrab::{
    chat::Chat,
    runtime::{Fate, WorkLimits},
};
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use super::{Bench, Script, bench, talk};

/// Work is handed out by an agent that has done this before.
fn handed_out(before: &[(&'static str, Value)], childs: &[(&'static str, Value)]) -> Script {
    let mut script = Script::default();
    for call in before {
        script = script.calls(std::slice::from_ref(call));
    }
    script = script
        .calls(&[("delegate_task", json!({"goal": "look after the files"}))])
        .says("handed out");
    for call in childs {
        script = script.calls(std::slice::from_ref(call));
    }
    script.says("looked after")
}

#[test]
fn what_a_child_changes_is_asked_about_in_its_name_and_stands_with_a_yes_only() {
    let changes = [
        (
            "write_file",
            json!({"path": "a.txt", "content": "two\n"}),
            Fate::AskedRefused(DenialCode::RejectedByUser),
        ),
        (
            "terminal",
            json!({"command": "echo two > a.txt"}),
            Fate::RanDiscarded(DenialCode::RejectedByUser),
        ),
    ];
    for (tool, args, refused) in changes {
        for (word, fate, text) in [("once", Fate::Ran, "two\n"), ("deny", refused, "one\n")] {
            let mut bench = bench(false);
            bench.put("a.txt", "one\n");
            bench.user.words.borrow_mut().push_back(word);
            let before = [("read_file", json!({"path": "a.txt"}))];
            let mut script = handed_out(&before, &[(tool, args.clone())]).says("all done");
            let turn = talk(&mut bench, &mut script, "go").unwrap();
            assert_eq!(turn.made[2].fate, fate, "{tool} {word}");
            assert_eq!(bench.text("a.txt").as_deref(), Some(text), "{tool} {word}");
            let shown = bench.user.shown.borrow();
            assert_eq!(shown.len(), 1, "{shown:?}");
            let named = format!(
                "{} asks, which {} has handed work to\n",
                turn.made[2].agent, turn.made[0].agent
            );
            assert!(shown[0].starts_with(&named), "{}", shown[0]);
        }
    }
}

#[test]
fn a_child_begins_where_its_parent_stands_with_what_it_exported_and_goes_its_own_way() {
    let mut bench = bench(false);
    bench.put("d/c.txt", "four\n");
    bench.put("e/c.txt", "five\n");
    let says = "echo $KIND; basename $PWD";
    let mut script = handed_out(
        &[("terminal", json!({"command": "cd d; export KIND=blue"}))],
        &[
            ("terminal", json!({"command": says})),
            ("read_file", json!({"path": "c.txt"})),
            ("terminal", json!({"command": "cd ../e; export KIND=red"})),
            ("terminal", json!({"command": says})),
            ("read_file", json!({"path": "c.txt"})),
        ],
    )
    .calls(&[("terminal", json!({"command": says}))])
    .calls(&[("read_file", json!({"path": "c.txt"}))])
    .says("all done");
    talk(&mut bench, &mut script, "go").unwrap();
    // What each was told of, in order: of the words of a command, or of a file.
    let told: Vec<&str> = script
        .seen
        .iter()
        .filter_map(|(_, last)| {
            ["blue\\nd", "red\\ne", "four", "five"]
                .into_iter()
                .find(|words| {
                    last.contains(&format!("\"{words}\"")) || last.contains(&format!("1|{words}"))
                })
        })
        .collect();
    assert_eq!(
        told,
        ["blue\\nd", "four", "red\\ne", "five", "blue\\nd", "four"],
        "{:?}",
        script.seen
    );
}

#[test]
fn a_child_answers_as_often_as_is_configured_and_no_more() {
    let mut bench = bench(false);
    let limits = WorkLimits {
        rounds_max: 2,
        ..WorkLimits::default()
    };
    let look = ("todo", json!({}));
    // It would go on for ever; it is asked for a summary instead.
    let mut script = handed_out(&[], &[look.clone(), look])
        .says("all done")
        .says("never asked for");
    let mut chat = Chat::new(&bench.runtime, "m").with_limits(limits);
    let turn = chat.turn(&mut bench.runtime, &mut script, "go").unwrap();
    assert_eq!(turn.text, "all done");
    let report = &script.seen.last().unwrap().1;
    assert!(
        report.contains("api_calls=2, ") && report.contains("looked after"),
        "{report}"
    );
    let of_child: Vec<&str> = turn.made[1..]
        .iter()
        .map(|made| made.tool.as_str())
        .collect();
    assert_eq!(of_child, ["todo", "todo"]);
}

#[test]
fn what_a_child_has_read_counts_as_read_by_whoever_is_told_of_it() {
    let write = ("write_file", json!({"path": "out/b.txt", "content": "x\n"}));
    let read = ("read_file", json!({"path": "a.txt"}));
    for (childs, asked) in [(vec![], 0), (vec![read], 1)] {
        let mut bench = bench(false);
        bench.put("a.txt", "one\n");
        bench.put("out/a.txt", "one\n");
        // What is held from before anything was read stands for none of it.
        bench.grant("fs.*", "out");
        let mut script = handed_out(&[], &childs)
            .calls(std::slice::from_ref(&write))
            .says("all done");
        let turn = talk(&mut bench, &mut script, "go").unwrap();
        assert!(turn.text.starts_with("all done"), "{}", turn.text);
        assert_eq!(turn.made.last().unwrap().questions, asked);
        assert_eq!(bench.text("out/b.txt").is_some(), asked == 0);
    }
}

#[test]
fn a_grant_that_ended_is_neither_named_nor_in_the_way_of_work_that_is_handed_out() {
    let mut bench = bench(false);
    let first = bench.runtime.first_agent();
    let grant = bench.grant("fs.read", "notes");
    let is_named = |bench: &Bench| {
        let named = bench.runtime.grants_in_words(first);
        named.iter().any(|(id, _)| *id == grant)
    };
    assert!(is_named(&bench));
    bench.runtime.revoke(grant).unwrap();
    assert!(!is_named(&bench));
    let mut script = handed_out(&[], &[]).says("all done");
    let turn = talk(&mut bench, &mut script, "go").unwrap();
    assert_eq!(turn.made[0].fate, Fate::Ran, "{:?}", script.seen);
}

#[test]
fn of_tasks_that_cannot_all_be_begun_none_is() {
    let mut bench = bench(false);
    let tasks = json!({"tasks": [
        {"goal": "look"},
        {"goal": "write", "grants": ["grant77"]},
    ]});
    let mut script = Script::default()
        .calls(&[("delegate_task", tasks)])
        .says("not handed out");
    let turn = talk(&mut bench, &mut script, "go").unwrap();
    assert_eq!(turn.made[0].fate, Fate::ToolError);
    assert_eq!(turn.text, "not handed out");
    let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
    let count = |kind: &str| ledger.matches(&format!("\"kind\":\"{kind}\"")).count();
    assert_eq!(
        (count("spawned"), count("agents-ended")),
        (1, 1),
        "{ledger}"
    );
}

/// What is forwarded is what may be used: one who may not hand on holds no right to, whatever
/// it was called.
#[test]
fn the_right_to_hand_on_goes_along_only_where_the_depth_lets_it_be_used() {
    let forwarded = |depth_max: u32, role: &str| {
        let mut bench = bench(false);
        let limits = WorkLimits {
            depth_max,
            ..WorkLimits::default()
        };
        let mut chat = Chat::new(&bench.runtime, "m").with_limits(limits);
        let mut script = Script::default()
            .calls(&[("delegate_task", json!({"goal": "manage", "role": role}))])
            .says("handed out")
            .says("managed")
            .says("all done");
        let turn = chat.turn(&mut bench.runtime, &mut script, "go").unwrap();
        assert_eq!(turn.text, "all done");
        let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
        let mut begun = ledger
            .lines()
            .filter(|line| line.contains("\"kind\":\"spawned\""));
        let record: Value = serde_json::from_str(begun.next().unwrap()).unwrap();
        assert_eq!(begun.next(), None, "one was handed work");
        let text = record["text"].as_str().unwrap().to_owned();
        let grants = text.matches("grant").count();
        assert!(grants > 0, "{text}");
        grants
    };
    let leaf = forwarded(2, "leaf");
    assert_eq!(forwarded(2, "orchestrator"), leaf + 1);
    assert_eq!(forwarded(1, "orchestrator"), leaf);
}

//! An agent that was handed work: whom it asks, and where it begins.

use hermitcrab::runtime::Fate;
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use super::{Script, bench, talk};

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

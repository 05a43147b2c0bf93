//! A model that ends on code it did not check.

use hermitcrab::{
    chat::{Chat, TurnEnd},
    runtime::Reminder,
};
use serde_json::json;

use super::{Script, bench, talk};

#[test]
fn a_model_that_ends_on_unchecked_code_is_reminded_twice_and_prose_or_no_wish_is_let_go() {
    let reminder = |is_wanted| Reminder {
        is_wanted,
        advises: false,
    };
    for (file, is_wanted, rounds) in [("m.py", true, 4), ("m.py", false, 2), ("m.md", true, 2)] {
        let mut bench = bench(true);
        bench.put("Makefile", "test:\n\ttrue\n");
        let mut script = Script::default()
            .calls(&[("write_file", json!({"path": file, "content": "x = 1\n"}))])
            .says("one")
            .says("two")
            .says("three")
            .says("in the next turn");
        let mut chat = Chat::new(&bench.runtime, "m").reminding(reminder(is_wanted));
        let turn = chat.turn(&mut bench.runtime, &mut script, "go").unwrap();
        assert_eq!(
            (turn.rounds, turn.end),
            (rounds, TurnEnd::Answered),
            "{file}"
        );
        let told = script
            .seen
            .iter()
            .filter(|(_, last)| last.contains("(`make test`)"));
        assert_eq!(told.count(), usize::from(rounds == 4) * 2, "{file}");
        // What it is reminded of was found in files, which nobody vouches for.
        let first = bench.runtime.first_agent();
        assert_eq!(bench.runtime.has_read(first), rounds == 4, "{file}");
        // What reminded it, and what it said before, are gone with the turn: what
        // is left is the place, the wish, the call, its result and the last words.
        assert_eq!(chat.messages().len(), 5, "{:?}", chat.messages());
    }
}

#[test]
fn what_may_not_be_looked_at_makes_no_project_and_asks_nobody() {
    for (holds_more, rounds) in [(false, 2), (true, 4)] {
        let mut bench = bench(false);
        bench.put("Makefile", "test:\n\ttrue\n");
        bench.put("sub/a.py", "x = 1\n");
        let first = bench.runtime.first_agent();
        for (id, words) in bench.runtime.grants_in_words(first) {
            if words.contains("fs.") {
                bench.runtime.revoke(id).unwrap();
            }
        }
        let below = if holds_more { "" } else { "sub" };
        for verb in ["fs.list", "fs.read", "fs.create", "fs.modify"] {
            bench.grant(verb, below);
        }
        let mut script = Script::default()
            .calls(&[(
                "write_file",
                json!({"path": "sub/n.py", "content": "x = 1\n"}),
            )])
            .says("one")
            .says("two")
            .says("three");
        let turn = talk(&mut bench, &mut script, "go").unwrap();
        assert_eq!((turn.rounds, turn.end), (rounds, TurnEnd::Answered));
        assert!(turn.made.iter().all(|made| made.questions == 0));
        assert_eq!(bench.text("sub/n.py").as_deref(), Some("x = 1\n"));
    }
}

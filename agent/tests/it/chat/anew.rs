//! What a turn begins without, whatever the one before it came to, and what bounds it.

use hermitcrab::{
    chat::{Chat, Then, TurnEnd, Watch},
    model::ProposedCall,
    runtime::ToolResult,
};
use hermitcrab_core::grant::AgentId;
use serde_json::{Value, json};

use super::{Script, bench, talk};

#[test]
fn notes_tried_in_vain_in_one_turn_can_be_tried_again_in_the_next() {
    let mut bench = bench(false);
    let home = bench.workspace.parent().unwrap().join(".hermes");
    std::fs::create_dir(&home).unwrap();
    let first = bench.runtime.first_agent();
    let words = hermitcrab::runtime::GrantWords::new("fs.*", &home.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    // Each time other words: who repeats a call is told something else.
    let fails = |words: &str| ("memory", json!({"action": "remove", "old_text": words}));
    let mut script = Script::default();
    for words in ["tea", "milk", "bread"] {
        script = script.calls(&[fails(words)]);
    }
    script = script
        .says("I cannot note it")
        .calls(&[fails("butter")])
        .says("nor this");
    let mut chat = Chat::new(&bench.runtime, "m");
    for words in ["note it", "and that"] {
        chat.turn(&mut bench.runtime, &mut script, words).unwrap();
    }
    let told: Vec<&String> = script.seen.iter().map(|(_, last)| last).collect();
    assert_eq!(told.len(), 6);
    for told in [told[1], told[3], told[5]] {
        assert!(told.contains("No entry matched"), "{told}");
    }
}

#[test]
fn of_an_answer_with_more_calls_than_are_run_the_first_are() {
    let mut bench = bench(false);
    let calls: Vec<(&str, Value)> = (0..129)
        .map(|number| ("read_file", json!({"path": format!("{number}.txt")})))
        .collect();
    let mut script = Script::default().calls(&calls).says("over");
    let turn = talk(&mut bench, &mut script, "read them").unwrap();
    assert_eq!((turn.made.len(), turn.left_out), (128, 1));
}

/// One who wants no more once a call has ended.
#[derive(Default)]
struct Satisfied(bool);

impl Watch for Satisfied {
    fn ended(&mut self, _: AgentId, _: &ProposedCall, _: &mut ToolResult) -> Then {
        self.0 = true;
        Then::Done
    }

    fn goes_on(&mut self) -> bool {
        !self.0
    }
}

#[test]
fn who_stops_a_turn_between_two_calls_of_an_answer_stops_the_second() {
    let mut bench = bench(true);
    let run = |command: &str| ("terminal", json!({ "command": command }));
    let mut script = Script::default()
        .calls(&[run("echo 1 > a.txt"), run("echo 2 > b.txt")])
        .says("never asked for");
    let mut chat = Chat::new(&bench.runtime, "m");
    let mut watch = Satisfied::default();
    let turn = chat.turn_watched(&mut bench.runtime, &mut script, "go", &mut watch);
    let turn = turn.unwrap();
    assert_eq!((turn.end, turn.made.len()), (TurnEnd::Stopped, 1));
    assert_eq!(bench.text("a.txt").as_deref(), Some("1\n"));
    assert_eq!(bench.text("b.txt"), None);
}

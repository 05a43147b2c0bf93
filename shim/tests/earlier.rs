//! What was said before a case begins, in Hermes' own database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod common;

use bisim_world::launch::{Answer, Worker};
use bisim_world::protocol::{Context, Conversation, Job, Step, StepOutcome, UserModel};
use common::{call, in_turn, job, parts, run, terminal, told};
use serde_json::{Value, json};

fn with(conversations: &Value, script: Vec<Step>) -> Job {
    let mut job = job(Context::Headless, UserModel::DenyAll, script);
    let read: Vec<Conversation> = serde_json::from_value(conversations.clone()).unwrap();
    job.world.as_mut().unwrap().conversations = read;
    job
}

fn two() -> Value {
    json!([
        {"id": "a".repeat(32), "source": "cli", "title": "first", "started": 1_772_000_000_000_u64,
         "messages": [{"user": "one heron", "at": 1_772_000_000_500_u64}]},
        {"id": "b".repeat(32), "source": "acp", "model": "m", "started": 1_772_000_060_000_u64,
         "messages": [
            {"assistant": "", "calls": [["c", "terminal", "{\"command\": \"ls\"}"]], "at": 1_772_000_061_000_u64},
            {"tool": "terminal", "call": "c", "text": "two herons", "at": 1_772_000_062_000_u64}]},
    ])
}

#[test]
fn what_was_said_before_is_part_of_a_world() {
    in_turn(parts![
        what_was_said_before_is_found_under_numbers_that_say_where_it_stands,
        a_case_without_earlier_conversations_has_no_database_of_them,
        a_conversation_hermes_would_keep_as_another_is_the_harness_own_failure,
    ]);
}

fn what_was_said_before_is_found_under_numbers_that_say_where_it_stands(worker: &mut Worker) {
    let look = |args| call("session_search", args);
    let script = vec![
        look(json!({"session_id": "b".repeat(32)})),
        look(json!({"query": "heron"})),
        look(json!({})),
    ];
    let trace = run(worker, with(&two(), script));
    assert_eq!(told(&trace.effects), Vec::<String>::new());
    let results: Vec<Value> = trace
        .steps
        .iter()
        .map(|step| serde_json::from_str(&step.text).expect("JSON"))
        .collect();
    let calls = json!([{"id": "c", "type": "function",
        "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]);
    assert_eq!(
        results[0]["messages"],
        json!([
            {"id": 1_000_001, "role": "assistant", "content": "", "timestamp": 1_772_000_061.0, "tool_calls": calls},
            {"id": 1_000_002, "role": "tool", "content": "two herons", "timestamp": 1_772_000_062.0,
             "tool_name": "terminal", "tool_call_id": "c"},
        ])
    );
    assert_eq!(results[1]["results"][0]["match_message_id"], 1);
    assert_eq!(results[1]["results"][0]["title"], "first");
    assert_eq!(results[2]["results"][0]["started_at"], 1_772_000_060.0);
    assert_eq!(results[2]["count"], 2);
}

fn a_case_without_earlier_conversations_has_no_database_of_them(worker: &mut Worker) {
    let seen = "ls -A ~/.hermes | grep -c state.db";
    let trace = run(worker, with(&json!([]), vec![terminal(seen)]));
    assert!(
        trace.steps[0].text.contains("\"0\""),
        "{}",
        trace.steps[0].text
    );
    let trace = run(worker, with(&two(), vec![terminal(seen)]));
    assert!(
        !trace.steps[0].text.contains("\"0\""),
        "{}",
        trace.steps[0].text
    );
    // Whoever looks where there is none makes one, which is its own.
    let looks = vec![call("session_search", json!({}))];
    let trace = run(worker, with(&json!([]), looks));
    assert_eq!(trace.steps[0].outcome, StepOutcome::Ran);
    assert_eq!(told(&trace.effects), Vec::<String>::new());
}

fn a_conversation_hermes_would_keep_as_another_is_the_harness_own_failure(worker: &mut Worker) {
    let mut changed = two();
    changed[0]["title"] = json!("a  title   with room");
    match worker.run(with(&changed, vec![terminal("true")])) {
        Answer::Failed(error) => {
            assert_eq!(error.stage, "enter the case's conversations");
            assert!(error.message.contains("is kept with"), "{}", error.message);
        }
        other => panic!("{other:?}"),
    }
}

//! Agents that write what other agents of the session wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::Bench;

fn write(text: &str) -> Value {
    json!({"path": "a.txt", "content": text})
}

fn warning(text: &str) -> Option<String> {
    let result: Value = serde_json::from_str(text).unwrap();
    assert!(result.get("error").is_none(), "{text}");
    Some(result.get("_warning")?.as_str()?.to_owned())
}

#[test]
fn who_writes_over_another_agents_file_unread_is_told_whose_it_is() {
    let mut bench = Bench::new();
    let grant = bench.grant("fs.*", ".");
    let first = bench.runtime.first_agent();
    let child = bench.runtime.spawn(first, &[grant]).unwrap();
    let theirs = bench.runtime.call(child, "write_file", &write("one\n"));
    assert_eq!(warning(&theirs.text), None);
    let told = warning(&bench.call("write_file", write("two\n")).text).unwrap();
    assert!(
        told.contains(&format!(
            "sibling subagent '{child}' but this agent never read it"
        )),
        "{told}"
    );
    assert_eq!(
        warning(&bench.call("write_file", write("three\n")).text),
        None
    );
    let told = bench.runtime.call(child, "write_file", &write("four\n"));
    let told = warning(&told.text).unwrap();
    assert!(
        told.contains(&format!("sibling subagent '{first}' at "))
            && told.contains("after this agent's last read at "),
        "{told}"
    );
}

#[test]
fn who_read_it_since_is_told_nothing_and_a_new_session_knows_of_nobody() {
    let mut bench = Bench::new();
    let grant = bench.grant("fs.*", ".");
    let first = bench.runtime.first_agent();
    let child = bench.runtime.spawn(first, &[grant]).unwrap();
    bench.runtime.call(child, "write_file", &write("one\n"));
    let read = json!([{"path": "a.txt"}]);
    // Two at once: what calls beside others read is known as well.
    let reports = bench.runtime.call_together(
        first,
        &[
            ("read_file", &read[0]),
            ("search_files", &json!({"pattern": "one"})),
        ],
    );
    assert_eq!(reports.len(), 2);
    assert_eq!(
        warning(&bench.call("write_file", write("two\n")).text),
        None
    );

    let last = bench.runtime.call(child, "write_file", &write("three\n"));
    assert!(warning(&last.text).is_some());
    bench.runtime.end_session().unwrap();
    bench.runtime.begin_session().unwrap();
    bench.grant("fs.*", ".");
    assert_eq!(
        warning(&bench.call("write_file", write("four\n")).text),
        None
    );
}

#[test]
fn what_one_agent_runs_in_the_background_no_other_sees_ends_or_is_told_of() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let forward = bench.runtime.harmless_grants(first);
    let child = bench.runtime.spawn(first, &forward).unwrap();
    let command = json!({"command": "echo server ready; sleep 1000", "background": true, "watch_patterns": ["ready"]});
    let started = bench.call("terminal", command).text;
    let started: Value = serde_json::from_str(&started).unwrap();
    let id = started["session_id"].as_str().unwrap();
    let process = |action: &str| json!({"action": action, "session_id": id});
    let mut by = |agent, action| bench.runtime.call(agent, "process", &process(action)).text;
    for (agent, is_its_own) in [(child, false), (first, true)] {
        let listed = by(agent, "list");
        assert_eq!(listed.contains(id), is_its_own, "{listed}");
    }
    for action in ["poll", "log", "kill", "close"] {
        let told = by(child, action);
        assert!(told.contains(&format!("No process with ID {id}")), "{told}");
    }
    let polled = by(first, "poll");
    assert!(polled.contains(r#""status": "running""#), "{polled}");
    // It says a word that its own agent waits for.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        assert_eq!(bench.runtime.take_notices(child).len(), 0);
        if !bench.runtime.take_notices(first).is_empty() {
            break;
        }
        assert!(std::time::Instant::now() < until, "nothing was said");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(bench.runtime.has_running_jobs());
}

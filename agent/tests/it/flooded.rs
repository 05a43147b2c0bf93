//! What a script asks for without end, and what is typed into commands that reach somebody.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::Read as _,
    net::TcpListener,
    sync::mpsc,
    time::{Duration, Instant},
};

use hermitcrab::{
    ports::ProgressPort,
    runtime::{Fate, GrantWords},
};
use hermitcrab_core::{grant::AgentId, label::Source};
use serde_json::{Value, json};

use crate::support::Bench;

/// Whoever waits wants no more after a while.
struct Patient(Instant);

impl ProgressPort for Patient {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        self.0.elapsed() < Duration::from_secs(2)
    }
}

#[test]
fn a_script_that_asks_without_end_can_be_called_off() {
    let mut bench = Bench::new();
    bench
        .runtime
        .show_progress(Box::new(Patient(Instant::now())));
    let code = "
import os, threading
line = int(os.environ['HERMITCRAB_RPC'])
def take():
    while True:
        os.read(line, 1 << 16)
threading.Thread(target=take, daemon=True).start()
while True:
    os.write(line, b'x\\n' * 4096)
";
    let report = bench.call("execute_code", json!({"code": code}));
    assert_ne!(report.fate, Fate::Ran, "{}", report.text);
    assert!(
        report.text.contains("the script was stopped"),
        "{}",
        report.text
    );
}

/// A peer that tells what it is told.
fn listener() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if tell.send(text).is_err() {
                return;
            }
        }
    });
    (port, told)
}

#[test]
fn what_is_typed_into_a_command_that_reaches_a_peer_is_sent_there_only_as_anything_is() {
    let mut bench = Bench::new();
    let (port, told) = listener();
    let first = bench.runtime.first_agent();
    let peer = GrantWords::new("net.connect", &format!("127.0.0.1:{port}"));
    bench.runtime.grant(first, &peer).unwrap();
    let line = format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n' >&3 && read -r a <&3 && cat >&3"
    );
    let started = bench.call(
        "terminal",
        json!({"command": line, "background": true, "pty": true}),
    );
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let id = started["session_id"].as_str().unwrap().to_owned();
    // Then its model is given what anybody may have written, be the peer reached by then or not.
    bench.runtime.hear(first, Source::File).unwrap();
    let submit = |bench: &mut Bench, data: &str| {
        bench.call(
            "process",
            json!({"action": "submit", "session_id": id, "data": data}),
        )
    };
    let report = submit(&mut bench, "the numbers");
    assert!(
        matches!(report.fate, Fate::AskedRefused(_)),
        "{}",
        report.text
    );
    let shown = bench.user.shown.borrow().last().cloned().unwrap();
    assert!(
        shown.contains(&format!("which reaches 127.0.0.1:{port}")),
        "{shown}"
    );
    assert!(shown.contains("the numbers"), "{shown}");
    assert!(shown.contains("has read data since"), "{shown}");
    bench.user.words.borrow_mut().push_back("once");
    let report = submit(&mut bench, "hello there");
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let mut all = String::new();
    while !all.contains("hello there") {
        all += &told.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    assert!(!all.contains("the numbers"), "{all}");
}

#[test]
fn what_is_typed_into_a_command_that_reaches_nobody_asks_nobody() {
    let mut bench = Bench::new();
    let started = bench.call(
        "terminal",
        json!({"command": "cat", "background": true, "pty": true}),
    );
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let id = started["session_id"].as_str().unwrap();
    let args = json!({"action": "submit", "session_id": id, "data": "hello"});
    let report = bench.call("process", args);
    assert_eq!((report.fate, report.questions.len()), (Fate::Ran, 0));
}

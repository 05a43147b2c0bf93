//! Plans and models that mean harm, through the real program: each comes to a
//! clear line and an exit code, within bounded time and memory, and nothing of
//! it is carried out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{io::Read as _, net::TcpStream, process::Command};

use serde_json::{Value, json};

use crate::support::{
    backend::{self, send},
    home::{Home, Ran},
};

/// Address space the program may have, in KiB: what it needs and some more.
const MEMORY_KIB: &str = "3000000";
/// How long it may take before it is killed, in seconds: the test fails then.
const SECONDS: &str = "120";

/// The program, with nobody to ask, within these bounds.
fn run(home: &Home, arguments: &[&str]) -> Ran {
    let output = Command::new("setsid")
        .args(["--wait", "timeout", "-s", "KILL", SECONDS])
        .args(["sh", "-c", "ulimit -v \"$0\"; exec \"$@\"", MEMORY_KIB])
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The step that must not happen.
fn harm() -> Value {
    json!({"id": "harm", "call": "create_file", "with": {"path": "pwned", "text": "x"}})
}

fn with_harm(mut steps: Vec<Value>) -> Vec<u8> {
    steps.insert(0, harm());
    json!({"version": 1, "summary": "", "steps": steps})
        .to_string()
        .into_bytes()
}

fn nested(depth: usize, inner: &str, left: &str, right: &str) -> Vec<u8> {
    let harm = harm();
    let deep = format!("{}{inner}{}", left.repeat(depth), right.repeat(depth));
    format!(r#"{{"version":1,"steps":[{harm},{deep}]}}"#).into_bytes()
}

fn reads(id: &str, from: &str) -> Value {
    json!({"id": id, "call": "read_file", "with": {"path": {"$": from}}})
}

#[test]
fn a_hostile_plan_is_refused_whole_with_its_kind() {
    let home = Home::new();
    let many = |count: usize| {
        let steps = (0..count).map(
            |n| json!({"id": format!("s{n}"), "call": "read_file", "with": {"path": "a.txt"}}),
        );
        with_harm(steps.collect())
    };
    let long = "x".repeat(70 << 10);
    let loops = json!({"id": "a", "for_each": ["x"], "as": "i", "at_most": 1000, "do": [
        {"id": "b", "for_each": ["x"], "as": "j", "at_most": 1000, "do": [
            {"id": "c", "call": "read_file", "with": {"path": "a.txt"}}]}]});
    let say = |n: usize, text: &str| json!({"id": format!("s{n}"), "answer": text});
    for (plan, kind) in [
        // Cycles: of one step, of two, through `after`, and from inside a loop.
        (with_harm(vec![reads("a", "a.text")]), "forward-reference"),
        (
            with_harm(vec![reads("a", "b.text"), reads("b", "a.text")]),
            "forward-reference",
        ),
        (
            with_harm(vec![json!({"id": "a", "after": ["a"], "answer": "x"})]),
            "forward-reference",
        ),
        (
            with_harm(vec![
                json!({"id": "a", "for_each": {"$": "a"}, "as": "i", "do": []}),
            ]),
            "forward-reference",
        ),
        // Too many: of steps, and of calls.
        (many(10_000), "too-many-steps"),
        (with_harm(vec![loops]), "too-many-calls"),
        // Too deep: blocks, values, and JSON itself.
        (
            nested(9, "", r#"{"id":"d","if":true,"then":["#, "]}"),
            "too-deep",
        ),
        (
            nested(
                1,
                &format!(
                    "{}\"x\"{}",
                    r#"{"fn":"trim","of":["#.repeat(40),
                    "]}".repeat(40)
                ),
                r#"{"id":"d","let":"#,
                "}",
            ),
            "too-deep",
        ),
        (nested(100_000, "", "[", "]"), "too-deep"),
        // Tools and arguments nobody knows.
        (
            with_harm(vec![json!({"id": "a", "call": "format_disk"})]),
            "unknown-tool",
        ),
        (
            with_harm(vec![
                json!({"id": "a", "call": "read_file", "with": {"path": "a.txt", "mode": "w"}}),
            ]),
            "unknown-argument",
        ),
        // Texts without measure: one, as a name, and the document itself.
        (with_harm(vec![say(1, &long)]), "too-long"),
        (
            with_harm(vec![json!({"id": long, "answer": "x"})]),
            "bad-name",
        ),
        (
            with_harm((0..100).map(|n| say(n, &long[..60 << 10])).collect()),
            "too-long",
        ),
        (vec![b' '; 64 << 20], "too-long"),
        // What is no JSON, or not quite.
        (with_harm(vec![])[..40].to_vec(), "not-json"),
        (
            b"{\"version\":1,\"summary\":\"\xff\xfe\",\"steps\":[]}".to_vec(),
            "not-json",
        ),
        (Vec::new(), "not-json"),
        (b"[]".to_vec(), "not-a-plan"),
        (b"{\"version\":1,\"steps\":{}}".to_vec(), "not-a-plan"),
    ] {
        let start = String::from_utf8_lossy(&plan[..plan.len().min(200)]).into_owned();
        std::fs::write(home.path().join("plan.json"), plan).unwrap();
        let ran = run(
            &home,
            &[
                "run",
                "--plan",
                "../plan.json",
                "--yes-low",
                "--grant",
                "fs.*=.",
            ],
        );
        assert_eq!(ran.code, Some(64), "{kind}: {start}: {}", ran.err);
        assert!(ran.err.contains("nothing was done"), "{}", ran.err);
        assert!(
            ran.err.contains(&format!("({kind})")),
            "{kind}: {start}: {}",
            ran.err
        );
        // A bounded number of short lines, whatever was in it.
        assert!(ran.err.len() < 4096, "{kind}: {} bytes", ran.err.len());
        assert!(!home.project().join("pwned").exists(), "{kind}: {start}");
    }
    // And the step alone is one that would have been carried out.
    std::fs::write(home.path().join("plan.json"), with_harm(vec![])).unwrap();
    let ran = run(
        &home,
        &[
            "run",
            "--plan",
            "../plan.json",
            "--yes-low",
            "--grant",
            "fs.*=.",
        ],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.project().join("pwned").exists());
}

/// The same bytes until nobody takes them any more; ends with the client.
fn send_for_ever(stream: &mut TcpStream, bytes: &[u8]) {
    while send(stream, bytes) {}
}

fn answer(text: &str) -> String {
    json!({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]})
        .to_string()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

fn whole(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{OK}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// A backend that does this with every request.
fn backend(each: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    backend::backend(move |_, stream, _| each(stream))
}

/// A backend that answers everything with this.
fn answering(body: &str) -> String {
    let body = whole(body);
    backend(move |stream| {
        send(stream, &body);
    })
}

type Misbehaviour = Box<dyn Fn(&mut TcpStream) + Send>;

/// What a model, or the endpoint before it, can do, and what is said of it.
/// `good` is an answer that would have been used.
fn misbehaviours(good: &str) -> Vec<(&'static str, Misbehaviour, &'static str)> {
    let good = answer(good);
    let sends = |bytes: Vec<u8>| -> Misbehaviour {
        Box::new(move |stream| {
            send(stream, &bytes);
        })
    };
    // The client leaves long before that.
    let hangs = |bytes: Vec<u8>| -> Misbehaviour {
        Box::new(move |stream| {
            send(stream, &bytes);
            let mut rest = Vec::new();
            let _gone = stream.read_to_end(&mut rest);
        })
    };
    let for_ever = |head: &'static str, piece: Vec<u8>| -> Misbehaviour {
        Box::new(move |stream| {
            send(stream, head.as_bytes());
            send_for_ever(stream, &piece);
        })
    };
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let (half, _) = good.split_at(good.len() / 2);
    let mut bytes = answer("@").into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'@').unwrap();
    bytes[at] = 0xff;
    let not_utf8 = [
        format!(
            "{OK}content-length: {}\r\nconnection: close\r\n\r\n",
            bytes.len()
        )
        .into_bytes(),
        bytes,
    ]
    .concat();
    let circle = "and so on and so forth, ".repeat(2000);
    vec![
        ("hangs before it answers", hangs(Vec::new()), LATE),
        (
            "hangs in the middle",
            hangs([OK, "content-length: 500\r\n\r\n{"].concat().into_bytes()),
            LATE,
        ),
        ("hangs up", sends(Vec::new()), "cannot be reached"),
        ("speaks no HTTP", sends(b"220 ready\r\n".to_vec()), "not HTTP"),
        (
            "promises more than it sends",
            sends(format!("{OK}content-length: {}\r\nconnection: close\r\n\r\n{good}", good.len() + 100).into_bytes()),
            "breaks off",
        ),
        (
            "sends more than it promises",
            sends(format!("{OK}content-length: {}\r\nconnection: close\r\n\r\n{good}", good.len() / 2).into_bytes()),
            "cannot be read",
        ),
        (
            "promises more than anybody has",
            hangs(format!("{OK}content-length: 99999999999999999\r\n\r\n{half}").into_bytes()),
            LATE,
        ),
        (
            "says two lengths",
            sends(format!("{OK}content-length: 5\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{good}", good.len()).into_bytes()),
            "conflicting content-length",
        ),
        (
            "sends pieces without end",
            for_ever(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                chunk(&" ".repeat(4000)),
            ),
            "longer than 200000 bytes",
        ),
        (
            "sends a piece that is longer than it says",
            sends([OK.as_bytes(), b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n", good.as_bytes()].concat()),
            "cannot be read",
        ),
        (
            "sends headers without end",
            for_ever("HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n".repeat(50)),
            "too many headers",
        ),
        (
            "sends a line without end",
            for_ever("HTTP/1.1 200 OK\r\nx-long: ", vec![b'x'; 4000]),
            "header is too big",
        ),
        (
            "streams without end",
            for_ever(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
                b": ping\n\n".repeat(500),
            ),
            "longer than 200000 bytes",
        ),
        ("goes round in a circle", sends(whole(&answer(&circle))), "repeats itself without end"),
        ("says half an answer", sends(whole(half)), "cannot be read"),
        ("says what is no UTF-8", sends(not_utf8), "not UTF-8"),
        (
            "says another form",
            sends(whole(&json!({"choices": "all of them"}).to_string())),
            "cannot be read",
        ),
        (
            "is cut off",
            sends(whole(
                &json!({"choices": [{"finish_reason": "length", "message": {"content": "{"}}]}).to_string(),
            )),
            "limit of its length",
        ),
    ]
}

/// What is said of a model that is waited for in vain.
const LATE: &str = "no whole answer within";

/// The planner's configuration. Only one that is waited for in vain is given
/// little time, so that no other is late on a busy machine.
fn configured(base: &str, said: &str) -> String {
    let seconds = if said == LATE { 2 } else { 90 };
    format!(
        "[models.planner]\nmodel = \"m\"\nbase_url = \"{base}\"\nretries = 0\ntimeout_seconds = {seconds}\nreply_bytes_max = 200000\n"
    )
}

fn plan_of(steps: &Value) -> String {
    json!({"version": 1, "summary": "", "steps": steps}).to_string()
}

#[test]
fn a_planning_model_that_misbehaves_has_nothing_done() {
    let good = plan_of(&json!([harm()]));
    let request = ["run", "make a file", "--yes-low", "--grant", "fs.*=."];
    for (name, behaviour, said) in misbehaviours(&good) {
        let home = Home::new();
        home.configure(&configured(&backend(behaviour), said));
        let ran = run(&home, &request);
        assert_eq!(ran.code, Some(69), "{name}: {} {}", ran.out, ran.err);
        assert!(
            ran.err.contains("nothing was done") && ran.err.contains(said),
            "{name}: {}",
            ran.err
        );
        assert!(ran.err.len() < 2000, "{name}: {}", ran.err);
        assert!(!home.project().join("pwned").exists(), "{name}");
    }
    // What is an answer and no plan is asked for three times, and then given up on.
    for (text, kind) in [
        (good[..good.len() / 2].to_owned(), "not-json"),
        (good.replace("create_file", "format_disk"), "unknown-tool"),
        (
            "{\"version\":1,\"commands\":[\"touch pwned\"]}".to_owned(),
            "unknown-key",
        ),
        (
            plan_of(&json!([{"id": "a", "let": {"$": "a"}}, harm()])),
            "forward-reference",
        ),
        ("touch pwned".to_owned(), "not-json"),
        (
            plan_of(&(0..10_000).map(|_| harm()).collect::<Value>()),
            "longer than 200000 bytes",
        ),
    ] {
        let home = Home::new();
        home.configure(&configured(&answering(&answer(&text)), kind));
        let ran = run(&home, &request);
        assert!(matches!(ran.code, Some(1 | 69)), "{kind}: {}", ran.err);
        assert!(
            ran.err.contains("nothing was done") && ran.err.contains(kind),
            "{kind}: {}",
            ran.err
        );
        assert!(!home.project().join("pwned").exists(), "{kind}");
    }
    // And the good answer is one that would have been carried out.
    let home = Home::new();
    home.configure(&configured(&answering(&answer(&good)), ""));
    let ran = run(&home, &request);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.project().join("pwned").exists());
}

#[test]
fn a_reading_model_that_misbehaves_fails_its_step_and_says_why() {
    let good = json!({"enough": true, "data": "words"}).to_string();
    let plan = plan_of(&json!([
        {"id": "r", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "what it says", "schema": "text"},
        {"id": "w", "call": "create_file", "with": {"path": "pwned", "text": {"$": "x"}}},
        {"id": "say", "answer": "the rest goes on"},
    ]));
    let arguments = [
        "run",
        "--plan",
        "../plan.json",
        "--yes-low",
        "--grant",
        "fs.*=.",
    ];
    for (name, behaviour, said) in misbehaviours(&good) {
        let home = Home::new();
        std::fs::write(home.path().join("plan.json"), &plan).unwrap();
        home.configure(&configured(&backend(behaviour), said));
        let ran = run(&home, &arguments);
        assert_eq!(ran.code, Some(1), "{name}: {} {}", ran.out, ran.err);
        let line = ran.out.lines().find(|line| line.starts_with("! x: "));
        assert!(
            line.is_some_and(|line| line.contains(said)),
            "{name}: {}",
            ran.out
        );
        assert!(ran.out.contains("the rest goes on"), "{name}: {}", ran.out);
        assert!(!home.project().join("pwned").exists(), "{name}");
    }
    let home = Home::new();
    std::fs::write(home.path().join("plan.json"), &plan).unwrap();
    home.configure(&configured(&answering(&answer(&good)), ""));
    let ran = run(&home, &arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.project().join("pwned").exists());
}

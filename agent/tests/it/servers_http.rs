//! Servers that speak HTTP: the official SDK's own, and one that is told how to
//! misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hermitcrab::{
    ports::ProgressPort,
    runtime::{ExternalServer, Fate, GrantWords, Key, Web},
};
use hermitcrab_core::grant::AgentId;
use serde_json::{Value, json};

use crate::{
    external::reply,
    support::{Bench, peers::Peers},
};

/// How a server answers what it is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As JSON.
    Plain,
    /// As events, after one that says nothing and before one nobody asked for.
    Events,
    /// With the address of another place.
    Elsewhere,
    /// With more than anybody takes.
    Flood,
    /// Not at all.
    Silence,
    /// That it does not know who is asking.
    Stranger,
    /// The same, with the key it was sent.
    Mirror,
    /// As JSON, with the key it was sent in each word and description.
    Parrot,
    /// With tools that are none, and the key it was sent in all that is told of them.
    Misshapen,
    /// With a page for a person.
    Page,
    /// In another protocol.
    Gibberish,
    /// As events, after so many requests of its own.
    Requests(usize),
}

/// What came: the first line, the key, the session.
type Heard = Arc<Mutex<Vec<(String, Option<String>, Option<String>)>>>;

struct Server {
    port: u16,
    heard: Heard,
}

fn server(manner: Manner) -> Server {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Heard::default();
    let told = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let told = Arc::clone(&told);
            std::thread::spawn(move || serve(&stream, manner, &told));
        }
    });
    Server { port, heard }
}

fn serve(stream: &TcpStream, manner: Manner, heard: &Heard) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let header = |name: &str| {
            lines.iter().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name)
                    .then(|| value.trim().to_owned())
            })
        };
        let length = header("content-length").map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let seen = (
            lines[0].clone(),
            header("authorization"),
            header("mcp-session-id"),
        );
        heard.lock().unwrap().push(seen);
        let answer = serde_json::from_slice(&body)
            .ok()
            .and_then(|message: Value| reply(&message));
        let key = header("authorization").unwrap_or_default();
        answered(stream, manner, answer, &key).ok()?;
    }
}

fn answered(
    mut stream: &TcpStream,
    manner: Manner,
    answer: Option<Value>,
    key: &str,
) -> std::io::Result<()> {
    let mut tell = |status: &str, headers: &str, body: &str| {
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    const JSON: &str = "content-type: application/json\r\nmcp-session-id: s1\r\n";
    match (manner, answer) {
        (Manner::Silence, _) => {
            std::thread::sleep(Duration::from_secs(30));
            Ok(())
        }
        (Manner::Elsewhere, _) => tell("307 Temporary Redirect", "location: /other\r\n", ""),
        (Manner::Stranger, _) => tell("401 Unauthorized", "www-authenticate: Bearer\r\n", "who"),
        (Manner::Mirror, _) => {
            let key = key.trim_start_matches("Bearer ");
            tell("401 Unauthorized", "", &format!("who is {key}?"))
        }
        (Manner::Parrot, Some(answer)) => {
            let key = key.trim_start_matches("Bearer ");
            let parts = [
                ("get-x {", "KEY {"),
                (r#""description":"x""#, r#""description":"x KEY""#),
            ];
            let said = parts.iter().fold(answer.to_string(), |said, (old, new)| {
                said.replace(old, &new.replace("KEY", key))
            });
            tell("200 OK", JSON, &said)
        }
        (Manner::Misshapen, Some(mut answer)) => {
            let key = key.trim_start_matches("Bearer ");
            if let Some(tools) = answer["result"].get_mut("tools") {
                // The last one is cut off in the midst of the key.
                let long = format!("{}{key}", "x".repeat(156));
                *tools = json!([
                    {"name": format!("of {key}")},
                    {"name": "odd", "inputSchema": key},
                    {"name": long},
                ]);
            }
            tell("200 OK", JSON, &answer.to_string())
        }
        (Manner::Requests(count), Some(answer)) => {
            let mut body = String::new();
            let is_result = answer["result"]["content"].is_array();
            for id in 0..if is_result { count } else { 0 } {
                let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
                body.push_str(&format!("data: {ping}\n\n"));
            }
            body.push_str(&format!("data: {answer}\n\n"));
            tell("200 OK", "content-type: text/event-stream\r\n", &body)
        }
        (Manner::Gibberish, _) => stream.write_all(b"220 do as I say\r\n\r\n"),
        (Manner::Page, _) => tell("200 OK", "content-type: text/html\r\n", "<p>hello</p>"),
        (Manner::Flood, _) => {
            let start = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 99999999\r\n\r\n");
            stream.write_all(start.as_bytes())?;
            loop {
                stream.write_all(&[b' '; 1 << 16])?;
            }
        }
        (_, None) => tell("202 Accepted", "", ""),
        (Manner::Plain, Some(answer)) => tell("200 OK", JSON, &answer.to_string()),
        (Manner::Events, Some(answer)) => {
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "meanwhile"}});
            let body = format!(
                ": nothing\n\nevent: message\ndata: {notice}\n\nevent: message\ndata: {answer}\n\n"
            );
            tell("200 OK", "content-type: text/event-stream\r\n", &body)
        }
    }
}

fn declared(port: u16, key: Option<&str>, seconds: u64) -> (Bench, ExternalServer) {
    let mut bench = Bench::new();
    let server = ExternalServer::at_url("echo", &format!("http://127.0.0.1:{port}/mcp")).unwrap();
    let web = server.web.clone().map(|web| Web {
        key: key.map(|key| Key::new(key).unwrap()),
        ..web
    });
    let server = ExternalServer {
        web,
        call_time: Duration::from_secs(seconds),
        ..server
    };
    bench.runtime.declare_external(server.clone()).unwrap();
    let agent = bench.runtime.first_agent();
    let on = format!("127.0.0.1:{port}");
    bench
        .runtime
        .grant(agent, &GrantWords::new("net.connect", &on))
        .unwrap();
    (bench, server)
}

fn called(port: u16, key: Option<&str>, seconds: u64) -> (Fate, String) {
    let (mut bench, _) = declared(port, key, seconds);
    let result = bench.call("mcp__echo__get-x", json!({"a": 1}));
    (result.fate, result.text)
}

#[test]
fn an_answer_is_taken_as_json_and_as_events_and_the_session_is_ended() {
    for manner in [Manner::Plain, Manner::Events] {
        let server = server(manner);
        let (fate, text) = called(server.port, Some("secret-7"), 20);
        assert_eq!(fate, Fate::Ran, "{text}");
        assert!(text.contains(r#"get-x {\"a\":1}"#), "{text}");
        let heard = server.heard.lock().unwrap().clone();
        assert!(
            heard
                .iter()
                .all(|(_, key, _)| key.as_deref() == Some("Bearer secret-7"))
        );
        assert!(
            heard
                .iter()
                .any(|(line, ..)| line.starts_with("POST /mcp "))
        );
        if manner == Manner::Plain {
            let of_session = |(_, _, session): &&(_, _, Option<String>)| session.is_some();
            assert!(heard.iter().filter(of_session).count() >= 2, "{heard:?}");
        }
    }
}

#[test]
fn a_server_that_repeats_its_key_tells_it_nobody() {
    let (fate, text) = called(server(Manner::Mirror).port, Some("word-4711"), 20);
    assert_eq!(fate, Fate::ToolError, "{text}");
    assert!(text.contains("who is [the key]?"), "{text}");
    let parrot = server(Manner::Parrot);
    let (fate, text) = called(parrot.port, Some("word-4711"), 20);
    assert_eq!(fate, Fate::Ran, "{text}");
    assert!(text.contains("[the key] {"), "{text}");
    let (mut bench, declared) = declared(parrot.port, Some("word-4711"), 20);
    let agent = bench.runtime.first_agent();
    let listing = bench.runtime.listing(agent, &declared).unwrap().unwrap();
    let said = format!("{listing:?}");
    assert!(said.contains("x [the key]"), "{said}");
    // What is not the key is told as it was said.
    let (fate, text) = called(parrot.port, Some("other"), 20);
    assert_eq!(fate, Fate::Ran, "{text}");
    assert!(text.contains("other {"), "{text}");
}

#[test]
fn nor_is_its_key_in_what_is_told_of_tools_that_are_none() {
    let server = server(Manner::Misshapen);
    let (mut bench, declared) = declared(server.port, Some("word-4711"), 20);
    let agent = bench.runtime.first_agent();
    let listing = bench.runtime.listing(agent, &declared).unwrap().unwrap();
    let [named, odd, long] = &listing.left_out[..] else {
        panic!("{listing:?}");
    };
    assert!(named.contains("the tool `of [the key]` of"), "{named}");
    assert!(
        odd.contains("the tool `odd` of") && odd.contains("[the key]"),
        "{odd}"
    );
    assert!(long.contains("xx[the"), "{long}");
    for told in [named, odd, long] {
        assert!(!told.contains("word"), "{told}");
    }
}

#[test]
fn what_is_no_answer_is_told_with_its_reason() {
    for (manner, why) in [
        (Manner::Elsewhere, "307"),
        (Manner::Stranger, "401"),
        (Manner::Page, "not the protocol"),
        (Manner::Flood, "longer than"),
    ] {
        let server = server(manner);
        let (fate, text) = called(server.port, None, 20);
        assert_eq!(fate, Fate::ToolError, "{text}");
        // In words, and not in the types of what carries them.
        assert!(!text.contains("::"), "{text}");
        assert!(
            text.contains("not connected") && text.contains(why),
            "{text}"
        );
        let heard = server.heard.lock().unwrap().clone();
        assert!(heard.iter().all(|(line, ..)| !line.contains("/other")));
    }
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_longer_than_said() {
    let server = server(Manner::Silence);
    let (fate, text) = called(server.port, None, 1);
    assert_eq!(fate, Fate::ToolError);
    assert!(text.contains("timed out after 1.0s"), "{text}");
}

/// Wants nothing any more once it was asked a few times.
struct Gone(u32);

impl ProgressPort for Gone {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

#[test]
fn whoever_waits_for_a_server_that_says_nothing_can_call_it_off() {
    let server = server(Manner::Silence);
    let (mut bench, _) = declared(server.port, None, 25);
    let agent = bench.runtime.first_agent();
    let begun = Instant::now();
    bench.runtime.show_progress(Box::new(Gone(4)));
    bench.runtime.list_outside(agent);
    let told = bench.runtime.take_told().join("\n");
    assert!(told.contains("`echo` was not heard out"), "{told}");
    assert_eq!(bench.runtime.servers_to_ask(), ["echo"]);
    bench.runtime.show_progress(Box::new(Gone(4)));
    let report = bench.call("mcp__echo__get-x", json!({"a": 1}));
    assert_eq!(
        report.text,
        r#"{"error": "MCP call interrupted: user sent a new message"}"#
    );
    assert!(begun.elapsed() < Duration::from_secs(15), "{begun:?}");
}

#[test]
fn a_server_that_is_not_there_is_not_connected() {
    let port = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (fate, text) = called(port, None, 20);
    assert_eq!(fate, Fate::ToolError);
    assert!(text.contains("not connected"), "{text}");
}

#[test]
fn a_server_may_ask_things_of_its_own_before_it_answers_but_not_without_end() {
    for (count, fate) in [(20, Fate::Ran), (20_000, Fate::ToolError)] {
        let server = server(Manner::Requests(count));
        let (came, text) = called(server.port, None, 60);
        assert_eq!(came, fate, "{count}: {text}");
    }
}

#[test]
fn whoever_answers_with_anything_was_heard_and_who_is_not_there_was_not() {
    let nobody = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().port()
    };
    for (port, questions) in [(server(Manner::Gibberish).port, 1), (nobody, 0)] {
        let (mut bench, _) = declared(port, None, 20);
        let agent = bench.runtime.first_agent();
        let workspace = bench.workspace.to_string_lossy().into_owned();
        let words = GrantWords::new("fs.create", &workspace);
        bench.runtime.grant(agent, &words).unwrap();
        let result = bench.call("mcp__echo__get-x", json!({}));
        assert_eq!(result.fate, Fate::ToolError, "{}", result.text);
        let write = json!({"path": "a.txt", "content": "x"});
        let report = bench.runtime.call(agent, "write_file", &write);
        assert_eq!(report.questions.len(), questions, "{}", report.text);
    }
}

/// The official SDK's server; it ends with the test.
pub struct Peer(Child, u16);

impl Peer {
    pub fn start(peers: &Peers, options: &[&str]) -> Self {
        // A port that was free may be somebody else's before it is the server's.
        let started = (0..5).find_map(|_| Self::start_once(peers, options));
        started.expect("a server")
    }

    pub fn port(&self) -> u16 {
        self.1
    }

    fn start_once(peers: &Peers, options: &[&str]) -> Option<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new(peers.python())
            .arg(peers.script("tools.py"))
            .arg(port.to_string())
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "no server");
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Self(child, port))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_official_server_is_listed_and_called_in_each_of_its_ways() {
    let Some(peers) = Peers::ready() else { return };
    for options in [&[][..], &["--json"], &["--stateless"]] {
        let peer = Peer::start(&peers, options);
        let mut bench = Bench::new();
        let server =
            ExternalServer::at_url("peer", &format!("http://127.0.0.1:{}/mcp", peer.1)).unwrap();
        bench.runtime.declare_external(server.clone()).unwrap();
        let agent = bench.runtime.first_agent();
        bench
            .runtime
            .grant(
                agent,
                &GrantWords::new("net.connect", &format!("127.0.0.1:{}", peer.1)),
            )
            .unwrap();
        let listing = bench.runtime.listing(agent, &server).unwrap().unwrap();
        let names: Vec<&str> = listing.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            names,
            [
                "mcp__peer__add",
                "mcp__peer__say",
                "mcp__peer__fail",
                "mcp__peer__list_resources",
                "mcp__peer__read_resource",
                "mcp__peer__list_prompts",
                "mcp__peer__get_prompt",
            ]
        );
        // What was heard of the server is new to the grant.
        bench.user.words.borrow_mut().push_back("session");
        let sum = bench.call("mcp__peer__add", json!({"a": 2, "b": 40}));
        assert_eq!(sum.fate, Fate::Ran, "{options:?}: {}", sum.text);
        assert!(sum.text.contains("42"), "{}", sum.text);
        let words = bench.call("mcp__peer__say", json!({"words": "grüße 🦀"}));
        assert!(words.text.contains("grüße 🦀"), "{}", words.text);
        let failed = bench.call("mcp__peer__fail", json!({}));
        assert_eq!(failed.fate, Fate::ToolError);
        assert!(
            failed.text.contains("Error executing tool fail"),
            "{}",
            failed.text
        );
        let wrong = bench.call("mcp__peer__add", json!({"a": "x"}));
        assert_eq!(wrong.fate, Fate::ToolError, "{}", wrong.text);
        crate::servers_command::has_resources_and_prompts(&mut bench);
    }
}

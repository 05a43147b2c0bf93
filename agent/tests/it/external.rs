//! Tools of a server outside, spoken to over the loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};

use hermitcrab::runtime::{ExternalServer, Fate, GrantWords};
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};
use support::Bench;

/// What a server says to one message; nothing to a notice.
pub fn reply(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "web_search", "description": "looks on the web", "inputSchema": {"required": ["query"],
                "properties": {"query": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}},
            {"name": "get-x", "description": "x", "inputSchema": {"type": "object"}},
            {"name": "fail", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call"
            if params["name"] == "web_search" && params["arguments"]["query"] == "nothing" =>
        {
            let error = json!({"code": -32000, "message": "no such page, token=abc"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        "tools/call" => {
            let text = format!(
                "{} {}",
                params["name"].as_str().unwrap(),
                params["arguments"]
            );
            json!({"content": [{"type": "text", "text": text}], "isError": params["name"] == "fail"})
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// A server of the protocol, a message a line, that repeats what its tools are
/// given; its port. One connection after the other until the test is over.
pub fn serve() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                if let Some(reply) = reply(&message) {
                    let _sent = writeln!(stream, "{reply}");
                }
            }
        }
    });
    port
}

fn bench() -> (Bench, u16) {
    let mut bench = Bench::new();
    let port = serve();
    bench
        .runtime
        .declare_external(ExternalServer {
            tools: vec!["web_search".into()],
            ..ExternalServer::at("echo", "127.0.0.1", port)
        })
        .unwrap();
    (bench, port)
}

#[test]
fn a_tool_outside_is_reached_only_with_a_capability_on_its_server() {
    let (mut bench, port) = bench();
    let agent = bench.runtime.first_agent();
    let args = json!({"query": "shells"});

    // Known, and not held: shown in full, and the answer is no.
    let report = bench.runtime.call(agent, "web_search", &args);
    assert_eq!(
        report.fate,
        Fate::AskedRefused(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    assert!(bench.user.shown.borrow()[0].contains("shells"));

    // Another port is another peer.
    let elsewhere = format!("127.0.0.1:{}", port.wrapping_add(1));
    bench
        .runtime
        .grant(agent, &GrantWords::new("net.connect", &elsewhere))
        .unwrap();
    let report = bench.runtime.call(agent, "web_search", &args);
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));

    let here = format!("127.0.0.1:{port}");
    bench
        .runtime
        .grant(agent, &GrantWords::new("net.connect", &here))
        .unwrap();
    let report = bench.runtime.call(agent, "web_search", &args);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(
        report.text,
        r#"{"result": "web_search {\"query\":\"shells\"}"}"#
    );
}

#[test]
fn any_tool_of_a_server_has_a_name_here_and_its_failures_are_told() {
    let (mut bench, port) = bench();
    let agent = bench.runtime.first_agent();
    let here = format!("127.0.0.1:{port}");
    let grant = GrantWords {
        uses: Some(1),
        ..GrantWords::new("net.connect", &here)
    };
    bench.runtime.grant(agent, &grant).unwrap();
    let report = bench.runtime.call(agent, "mcp__echo__fail", &json!({}));
    assert_eq!(report.fate, Fate::ToolError, "{}", report.text);
    assert_eq!(report.text, r#"{"error": "fail {}"}"#);

    // The one use is spent.
    let report = bench.runtime.call(agent, "mcp__echo__fail", &json!({}));
    assert!(
        matches!(report.fate, Fate::Refused(_) | Fate::AskedRefused(_)),
        "{}",
        report.text
    );
}

/// A server that answers like any other until it is asked this; what it says
/// then has no end.
fn endless(method: &'static str, mut more: impl FnMut(u64) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut said = 0;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["method"] != method {
                    if let Some(reply) = reply(&message) {
                        let _sent = writeln!(stream, "{reply}");
                    }
                    continue;
                }
                said += 1;
                // A gigabyte is as good as no end, and this ends with its reader.
                let words = more(said).replace("\"ID\"", &message["id"].to_string());
                let times = if words.ends_with('\n') { 1 } else { 1024 };
                for _ in 0..times {
                    if stream.write_all(words.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        }
    });
    port
}

#[test]
fn no_name_that_is_asked_about_draws_or_has_lines_of_its_own() {
    let (mut bench, _) = bench();
    let agent = bench.runtime.first_agent();
    let bad = "x\u{1b}[2J\nfs.read good\u{202e}\u{9b}";
    let server_tool = format!("mcp__echo__{bad}");
    for dir in [bad, "plain name"] {
        // A name that is asked about wherever it lies.
        std::fs::create_dir(bench.workspace.join(dir)).unwrap();
        std::fs::write(bench.workspace.join(dir).join(".env"), "x").unwrap();
    }
    for (tool, args) in [
        ("read_file", json!({ "path": format!("{bad}/.env") })),
        (&*server_tool, json!({ "words": bad })),
        ("read_file", json!({"path": "plain name/.env"})),
    ] {
        let report = bench.runtime.call(agent, tool, &args);
        let asked = report.questions.first();
        let shown = &asked
            .unwrap_or_else(|| panic!("{tool}: {}", report.text))
            .shown;
        let draws = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
        assert!(!shown.contains(draws), "{tool}: {shown:?}");
        let own_lines = shown
            .lines()
            .filter(|line| line.starts_with("fs.read good"));
        assert_eq!(own_lines.count(), 0, "{tool}: {shown}");
        assert!(
            shown.contains("\\u{1b}") || shown.contains("\\u001b") || shown.contains("plain name"),
            "{tool}: {shown}"
        );
    }
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let port = endless("tools/call", |_| "x".repeat(1 << 20));
    let mut bench = Bench::new();
    let server = ExternalServer::at("echo", "127.0.0.1", port);
    bench.runtime.declare_external(server).unwrap();
    let agent = bench.runtime.first_agent();
    let words = GrantWords::new("net.connect", &format!("127.0.0.1:{port}"));
    bench.runtime.grant(agent, &words).unwrap();
    let result = bench.call("mcp__echo__get-x", json!({}));
    assert_eq!(result.fate, Fate::ToolError);
    // Not by its time, which is minutes.
    assert!(!result.text.contains("timed out"), "{}", result.text);
}

/// How many tools the server at this port lists, to who may reach it.
fn tools_at(port: u16) -> Result<usize, String> {
    let mut bench = Bench::new();
    let server = ExternalServer::at("echo", "127.0.0.1", port);
    bench.runtime.declare_external(server.clone()).unwrap();
    let agent = bench.runtime.first_agent();
    let words = GrantWords::new("net.connect", &format!("127.0.0.1:{port}"));
    bench.runtime.grant(agent, &words).unwrap();
    let listing = bench.runtime.listing(agent, &server).unwrap();
    listing.map(|listing| listing.tools.len())
}

#[test]
fn a_list_of_tools_ends_where_too_much_was_said_however_it_is_cut() {
    let port = endless("tools/list", |said| {
        let tool = json!({"name": format!("t{said}"), "description": "x".repeat(300_000),
            "inputSchema": {"type": "object"}});
        let result = json!({"tools": [tool], "nextCursor": "more"});
        let answer = json!({"jsonrpc": "2.0", "id": "ID", "result": result});
        format!("{answer}\n")
    });
    let why = tools_at(port).unwrap_err();
    assert!(why.contains("more than 4194304 bytes"), "{why}");
}

#[test]
fn a_long_list_of_tools_is_taken_in_fifty_parts_and_one_of_too_many_tools_is_not() {
    let listed = |in_a_part: u64| {
        let port = endless("tools/list", move |part| {
            let tools: Vec<Value> = (0..in_a_part)
                .map(|n| {
                    // The first of each part is the last of the one before.
                    let number = part * (in_a_part - 1) + n;
                    json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}})
                })
                .collect();
            let result = json!({"tools": tools, "nextCursor": part.to_string()});
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "id": "ID", "result": result})
            )
        });
        tools_at(port)
    };
    assert_eq!(listed(18), Ok(50 * 17 + 1));
    let why = listed(200).unwrap_err();
    assert!(why.contains("more than 4096 tools"), "{why}");
}

#[test]
fn tools_without_a_server_are_refused_with_the_next_step() {
    let mut bench = Bench::new();
    let agent = bench.runtime.first_agent();
    for tool in ["browser_navigate", "mcp__nobody__x", "vision_analyze"] {
        let report = bench.runtime.call(agent, tool, &json!({}));
        assert_eq!(
            report.fate,
            Fate::Refused(DenialCode::UnknownTool),
            "{tool}"
        );
    }
    let report = bench.runtime.call(agent, "browser_navigate", &json!({}));
    assert!(report.text.contains("Next step"), "{}", report.text);
}

#[test]
fn what_came_from_outside_turns_grants_made_before_into_questions() {
    let (mut bench, port) = bench();
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    for (verb, on) in [
        ("net.connect", format!("127.0.0.1:{port}")),
        ("fs.create", workspace),
    ] {
        bench
            .runtime
            .grant(agent, &GrantWords::new(verb, &on))
            .unwrap();
    }
    let write = json!({"path": "a.txt", "content": "x"});
    assert_eq!(
        bench.runtime.call(agent, "write_file", &write).fate,
        Fate::Ran
    );

    assert_eq!(
        bench.runtime.call(agent, "web_search", &json!({})).fate,
        Fate::Ran
    );
    let write = json!({"path": "b.txt", "content": "x"});
    let report = bench.runtime.call(agent, "write_file", &write);
    assert_eq!(report.questions.len(), 1, "{}", report.text);
    assert!(!bench.workspace.join("b.txt").exists());
}

/// The same, and whoever is asked says yes: what a server said makes its next call a question.
fn willing() -> Bench {
    let (bench, _) = bench();
    bench.user.words.borrow_mut().extend(["once"; 8]);
    bench
}

#[test]
fn only_failures_in_a_row_are_a_reason_to_leave_a_server_alone() {
    let mut bench = willing();
    for (tool, fate) in [
        ("mcp__echo__fail", Fate::ToolError),
        ("mcp__echo__fail", Fate::ToolError),
        ("mcp__echo__web_search", Fate::Ran),
        ("mcp__echo__fail", Fate::ToolError),
        ("mcp__echo__web_search", Fate::Ran),
    ] {
        let report = bench.call(tool, json!({"query": "x"}));
        assert_eq!(report.fate, fate, "{tool}: {}", report.text);
    }
}

#[test]
fn a_session_knows_so_many_servers_and_one_name_leads_to_one_of_them() {
    let mut bench = Bench::new();
    let runtime = &mut bench.runtime;
    for number in 0..64 {
        let name = format!("s{number}");
        let server = ExternalServer::at(&name, "127.0.0.1", 1);
        runtime.declare_external(server).unwrap();
    }
    let one_more = ExternalServer::at("echo", "127.0.0.1", 1);
    let refused = runtime.declare_external(one_more).unwrap_err();
    assert_eq!(refused.code(), DenialCode::LimitReached);
    assert!(refused.to_string().contains("64 servers"), "{refused}");
    // One that is known is another from here on.
    let port = serve();
    runtime
        .declare_external(ExternalServer::at("s7", "127.0.0.1", port))
        .unwrap();
    let agent = runtime.first_agent();
    let here = GrantWords::new("net.connect", &format!("127.0.0.1:{port}"));
    runtime.grant(agent, &here).unwrap();
    let report = bench.call("mcp__s7__web_search", json!({"query": "x"}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
}

#[test]
fn many_small_things_of_an_answer_are_not_taken_where_they_are_long_together() {
    for (numbers, fate) in [(300_000, Fate::Ran), (400_000, Fate::ToolError)] {
        // Each is three bytes in a model's words, and none of them a text to be cut.
        let port = endless("tools/call", move |_| {
            let result = json!({"content": [], "structuredContent": {"rows": vec![0; numbers]}});
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "id": "ID", "result": result})
            )
        });
        let mut bench = Bench::new();
        let server = ExternalServer::at("echo", "127.0.0.1", port);
        bench.runtime.declare_external(server).unwrap();
        bench.user.words.borrow_mut().push_back("once");
        let report = bench.call("mcp__echo__get-x", json!({}));
        assert_eq!(report.fate, fate, "{:.200}", report.text);
        let why = "longer than 1048576 bytes and was not taken";
        let is_refused = report.text.contains(why);
        assert_eq!(is_refused, fate != Fate::Ran, "{:.200}", report.text);
    }
}

#[test]
fn a_plan_holds_no_answer_that_is_longer_than_four_mebibytes() {
    let (mut bench, port) = bench();
    let agent = bench.runtime.first_agent();
    let on = format!("127.0.0.1:{port}");
    let words = GrantWords::new("net.connect", &on);
    bench.runtime.grant(agent, &words).unwrap();
    let mut given = |bytes: usize| {
        let args = json!({"query": "x".repeat(bytes)});
        let runtime = &mut bench.runtime;
        runtime.call_outside(agent, "echo.web_search", &args, None, &mut Vec::new())
    };
    // What stands around it is the server's.
    let around = given(1).unwrap().text.len() - 1;
    let most = 4 << 20;
    assert_eq!(given(most - around).unwrap().text.len(), most);
    let denial = given(most - around + 1).unwrap_err();
    assert_eq!(denial.code(), DenialCode::LimitReached, "{denial}");
}

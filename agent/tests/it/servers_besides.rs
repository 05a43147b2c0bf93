//! What servers have besides their tools: resources and prompts, offered in this
//! program's words, asked for through the gate, and bounded whatever a server says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    time::Duration,
};

use hermitcrab::runtime::{ExternalServer, Fate, GrantWords};
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use crate::{
    servers::{Model, grant, hermitcrab, talk},
    support::Bench,
};

/// What a server says of a request; `Err` is an error of the protocol.
pub type Said = Result<Value, &'static str>;

/// A server that says these capabilities and answers like this; its port.
pub fn serve(
    announced: Value,
    mut answer: impl FnMut(&str, &Value) -> Said + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                let (Some(id), params) = (message.get("id"), &message["params"]) else {
                    continue;
                };
                let said = match message["method"].as_str().unwrap() {
                    "initialize" => Ok(json!({
                        "protocolVersion": params["protocolVersion"], "capabilities": announced,
                        "serverInfo": {"name": "shelf", "version": "1"},
                    })),
                    method => answer(method, params),
                };
                let mut reply = json!({"jsonrpc": "2.0", "id": id});
                match said {
                    Ok(result) => reply["result"] = result,
                    Err(why) => reply["error"] = json!({"code": -32603, "message": why}),
                }
                // In one piece: formatting writes each letter that is escaped by itself.
                let _sent = stream.write_all(format!("{reply}\n").as_bytes());
            }
        }
    });
    port
}

/// Two resources and a prompt.
fn shelf(method: &str, params: &Value) -> Said {
    match method {
        "tools/list" => {
            Ok(json!({"tools": [{"name": "own", "description": "obey", "inputSchema": {}}]}))
        }
        "resources/list" => Ok(json!({"resources": [{"uri": "shelf:1", "name": "one"}]})),
        "resources/read" => {
            let text = format!("asked for {}", params["uri"].as_str().unwrap());
            Ok(json!({"contents": [{"uri": params["uri"], "text": text}]}))
        }
        "prompts/get" => Ok(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "now write a file"}}]})),
        _ => Err("no such method"),
    }
}

/// A bench whose agent knows a server that answers like this, and may reach it.
fn bench(announced: Value, answer: impl FnMut(&str, &Value) -> Said + Send + 'static) -> Bench {
    let port = serve(announced, answer);
    let mut bench = Bench::with_files();
    bench
        .runtime
        .declare_external(ExternalServer {
            call_time: Duration::from_secs(60),
            ..ExternalServer::at("shelf", "127.0.0.1", port)
        })
        .unwrap();
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{port}"));
    bench
}

const READ: &str = "mcp__shelf__read_resource";
const LIST: &str = "mcp__shelf__list_resources";
const GET: &str = "mcp__shelf__get_prompt";

fn all() -> Value {
    json!({"resources": {}, "prompts": {}})
}

fn names(model: &Model) -> Vec<&str> {
    let offers = model.offered.iter().map(|offer| offer.name.as_ref());
    offers.filter(|name| name.starts_with("mcp__")).collect()
}

#[test]
fn a_server_with_nothing_but_resources_and_prompts_is_offered_and_its_offer_taints_nobody() {
    let mut bench = bench(all(), shelf);
    grant(&mut bench, "model.send", "m");
    let workspace = bench.workspace.to_string_lossy().into_owned();
    grant(&mut bench, "fs.create", &workspace);
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
    let mut model = Model::calling(&[
        write("before.txt"),
        (READ, json!({"uri": "shelf:1"})),
        write("after.txt"),
    ]);
    let turn = talk(&mut bench, &mut model);
    assert_eq!(names(&model), [GET, "mcp__shelf__list_prompts", LIST, READ],);
    // Its words are heard by calling, and then what was granted earlier asks again.
    let questions: Vec<usize> = turn.made.iter().map(|made| made.questions).collect();
    assert_eq!(questions, [0, 0, 1], "{:?}", turn.made);
    assert!(bench.workspace.join("before.txt").exists());
    assert!(!bench.workspace.join("after.txt").exists());
    assert_eq!(bench.runtime.take_told(), Vec::<String>::new());
}

#[test]
fn tools_in_a_servers_own_words_beside_them_still_count_as_heard() {
    let announced = json!({"tools": {}, "resources": {}});
    let mut bench = bench(announced, shelf);
    grant(&mut bench, "model.send", "m");
    let workspace = bench.workspace.to_string_lossy().into_owned();
    grant(&mut bench, "fs.create", &workspace);
    let mut model = Model::calling(&[("write_file", json!({"path": "a.txt", "content": "x"}))]);
    let turn = talk(&mut bench, &mut model);
    assert_eq!(names(&model), [LIST, "mcp__shelf__own", READ]);
    assert_eq!(turn.made[0].questions, 1);
    let told = bench.runtime.take_told().join("\n");
    assert!(told.contains("the 1 tools of the server `shelf`"), "{told}");
}

#[test]
fn each_request_is_an_action_of_its_own_and_shown_whole() {
    let port = serve(all(), shelf);
    let mut bench = Bench::new();
    bench
        .runtime
        .declare_external(ExternalServer::at("shelf", "127.0.0.1", port))
        .unwrap();
    for (tool, args, shown) in [
        (
            READ,
            json!({"uri": "shelf:\u{1b}[2J"}),
            "ask for `resources/read` of the server `shelf`",
        ),
        (
            READ,
            json!({"uri": "shelf:\u{1b}[2J"}),
            r#"{"uri":"shelf:\u001b[2J"}"#,
        ),
        (
            LIST,
            json!({"x": 1}),
            r#"{"method":"resources/list","params":{}}"#,
        ),
        (
            GET,
            json!({"name": "p", "arguments": {"a": "b"}}),
            r#"{"name":"p","arguments":{"a":"b"}}"#,
        ),
    ] {
        let report = bench.call(tool, args);
        assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
        assert!(
            report.questions[0].shown.contains(shown),
            "{}",
            report.questions[0].shown
        );
    }
    // What is not even a request is not asked about.
    for (tool, args) in [
        (READ, json!({})),
        (READ, json!({"uri": 5})),
        (GET, json!({"name": ""})),
    ] {
        let report = bench.call(tool, args);
        assert_eq!(
            (report.fate, report.questions.len()),
            (Fate::ToolError, 0),
            "{}",
            report.text
        );
    }
    // One use is one request.
    let agent = bench.runtime.first_agent();
    let once = GrantWords {
        uses: Some(1),
        ..GrantWords::new("net.connect", &format!("127.0.0.1:{port}"))
    };
    bench.runtime.grant(agent, &once).unwrap();
    assert_eq!(
        bench.call(READ, json!({"uri": "shelf:1"})).text,
        r#"{"result": "asked for shelf:1"}"#
    );
    assert_ne!(bench.call(READ, json!({"uri": "shelf:1"})).fate, Fate::Ran);
}

#[test]
fn what_is_switched_off_is_not_there_for_a_model_or_a_call() {
    let port = serve(all(), shelf);
    let mut bench = Bench::with_files();
    bench
        .runtime
        .declare_external(ExternalServer {
            resources: false,
            ..ExternalServer::at("shelf", "127.0.0.1", port)
        })
        .unwrap();
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{port}"));
    grant(&mut bench, "model.send", "m");
    let mut model = Model::default();
    talk(&mut bench, &mut model);
    assert_eq!(names(&model), [GET, "mcp__shelf__list_prompts"]);
    let report = bench.call(READ, json!({"uri": "shelf:1"}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
}

#[test]
fn a_list_without_an_end_is_taken_as_far_as_its_parts_go_and_one_of_giants_is_not() {
    let mut bench = self::bench(all(), |_, params| {
        let cursor = params["cursor"].as_str().unwrap_or("0");
        let next: u32 = cursor.parse::<u32>().unwrap() + 1;
        Ok(
            json!({"resources": [{"uri": "shelf:1", "name": cursor}], "nextCursor": next.to_string()}),
        )
    });
    let report = bench.call(LIST, json!({}));
    let told: Value = serde_json::from_str(&report.text).unwrap();
    assert_eq!(told["resources"].as_array().unwrap().len(), 50);

    let mut bench = self::bench(all(), |_, _| {
        let words = "x".repeat(300_000);
        Ok(
            json!({"resources": [{"uri": "shelf:1", "name": "a", "description": words}], "nextCursor": "on"}),
        )
    });
    let report = bench.call(LIST, json!({}));
    assert_eq!(report.fate, Fate::ToolError);
    assert!(
        report
            .text
            .contains("more than 1048576 bytes about its resources"),
        "{}",
        report.text
    );

    let mut bench = self::bench(all(), |_, _| {
        let entry = |n: u32| json!({"name": n.to_string(), "description": "x".repeat(500)});
        Ok(json!({"prompts": (0..1000).map(entry).collect::<Value>()}))
    });
    let report = bench.call("mcp__shelf__list_prompts", json!({}));
    assert!(report.text.len() < 110_000, "{}", report.text.len());
    let told: Value = serde_json::from_str(&report.text).unwrap();
    let shown = told["prompts"].as_array().unwrap().len();
    assert_eq!(told["cut"], format!("{shown} of 1,000 are shown"));
}

#[test]
fn what_a_server_says_without_measure_is_an_error_or_cut_and_never_more() {
    let text = |letters: usize| json!({"contents": [{"uri": "shelf:1", "text": "\u{0}\u{202e}x".repeat(letters / 3)}]});
    let blob =
        |letters: usize| json!({"contents": [{"uri": "shelf:1", "blob": "%".repeat(letters)}]});
    let messages = json!({"messages": (0..3000)
        .map(|_| json!({"role": "user", "content": {"type": "text", "text": "word ".repeat(20)}}))
        .collect::<Value>()});
    for (tool, said, fate, part) in [
        (
            READ,
            text(300_000),
            Fate::Ran,
            "[cut: 100,000 of 300,000 letters are shown]",
        ),
        // Beyond what is taken of a server the connection is at its end.
        (READ, blob(33 << 20), Fate::ToolError, "Connection closed"),
        (
            READ,
            blob(1 << 20),
            Fate::Ran,
            "could not be cached: shelf:1",
        ),
        (
            READ,
            json!({"contents": [{"uri": "shelf:1"}]}),
            Fate::ToolError,
            "MCP call failed",
        ),
        (
            READ,
            json!({"contents": []}),
            Fate::Ran,
            r#"{"result": ""}"#,
        ),
        (GET, messages, Fate::Ran, "of 3,000 are shown"),
        (
            GET,
            json!({"messages": "x"}),
            Fate::ToolError,
            "MCP call failed",
        ),
    ] {
        let mut bench = bench(all(), move |_, _| Ok(said.clone()));
        let report = bench.call(tool, json!({"uri": "shelf:1", "name": "p"}));
        assert_eq!(report.fate, fate, "{part}");
        assert!(report.text.contains(part), "{part}: {:.300}", report.text);
        assert!(report.text.len() < 1 << 20, "{part}");
    }
}

#[test]
fn failures_of_these_are_told_without_keys_and_are_no_reason_to_leave_a_server_alone() {
    let mut bench = bench(all(), |method, params| match method {
        "resources/read" if params["uri"] == "shelf:1" => shelf(method, params),
        _ => Err("no way in, token=abc"),
    });
    // What was heard of the server is new to the grant.
    bench.user.words.borrow_mut().push_back("session");
    for _ in 0..4 {
        let report = bench.call(READ, json!({"uri": "shelf:2"}));
        assert_eq!(
            (report.fate, report.text.as_str()),
            (
                Fate::ToolError,
                r#"{"error": "MCP call failed: McpError: no way in, [REDACTED]"}"#
            )
        );
    }
    assert_eq!(bench.call(READ, json!({"uri": "shelf:1"})).fate, Fate::Ran);
}

#[test]
fn the_command_line_shows_what_a_server_has_besides_and_says_nothing_is_to_be_read() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("proj")).unwrap();
    let config = home.path().join(".config/hermitcrab");
    fs::create_dir_all(&config).unwrap();
    let port = serve(all(), shelf);
    let write = |more: &str| {
        let text = format!("[servers.shelf]\nhost = \"127.0.0.1\"\nport = {port}\n{more}");
        fs::write(config.join("config.toml"), text).unwrap();
    };
    write("");
    let (code, said, told) = hermitcrab(home.path(), &["servers", "shelf"]);
    assert_eq!(code, 0, "{told}");
    let shown = "mcp__shelf__read_resource\n    Read a resource by URI from MCP server 'shelf'\n";
    assert!(said.contains(shown), "{said}");
    assert!(said.contains("mcp__shelf__list_prompts\n"), "{said}");
    assert!(said.contains("in this program's own words"), "{said}");
    assert!(!said.contains("listing ="), "{said}");
    write("prompts = false\n");
    let (code, said, told) = hermitcrab(home.path(), &["servers", "shelf", "--json"]);
    assert_eq!(code, 0, "{told}");
    let told: Value = serde_json::from_str(&said).unwrap();
    let names: Vec<&str> = told["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [LIST, READ]);
}

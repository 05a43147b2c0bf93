//! Servers that are programs: the official SDK's own, and one that is told how to
//! misbehave. They run in the sandbox, with what the agent holds and no more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, net::TcpListener, path::Path, time::Duration};

use hermitcrab::{
    ports::ProgressPort,
    runtime::{ExternalServer, Fate, GrantWords, Program},
};
use hermitcrab_core::{grant::AgentId, outcome::DenialCode};
use serde_json::json;

use crate::support::{Bench, home::put_program, peers::Peers};

/// A server without anybody's SDK. Its first argument says how it behaves; its
/// tools read, write and connect.
pub const SERVER: &str = r#"
import json, os, socket, sys, time

manner = sys.argv[1]
print("a word for nobody", file=sys.stderr)
if manner == "leaves":
    sys.exit(3)
if manner == "talks":
    print("this is no message", flush=True)
if manner == "floods":
    while True:
        sys.stdout.write("x" * 65536)


def tool(name, args):
    if name == "read":
        return open(args["path"]).read()
    if name == "write":
        with open(args["path"], "w") as file:
            file.write("written")
        return "done"
    if name == "connect":
        socket.create_connection(("127.0.0.1", args["port"]), 2).close()
        return "connected"
    if name == "die":
        os._exit(3)
    if name == "ask":
        for number in range(args.pop("times", 1)):
            asked = {"jsonrpc": "2.0", "id": f"q{number}", "method": "elicitation/create", "params": args}
            print(json.dumps(asked), flush=True)
            back = json.loads(sys.stdin.readline())
        return json.dumps(back.get("result", back.get("error")), sort_keys=True)
    if name == "can":
        return json.dumps(can)
    if name == "env":
        return os.environ.get("WORD", "nothing") + " " + os.getcwd()
    return json.dumps(args)


can = None
for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    if "id" not in message or manner == "silent":
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        can = message["params"]["capabilities"]
        answer["result"] = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
    elif message["method"] == "tools/list":
        form = {"type": "object", "required": [], "properties": {"n": {"type": ["integer", "null"]}}}
        names = ["env", "echo"]
        answer["result"] = {"tools": [{"name": n, "inputSchema": form} for n in names]}
    elif message["method"] == "tools/call":
        params = message["params"]
        try:
            text, wrong = tool(params["name"], params["arguments"]), False
        except Exception as error:
            text, wrong = type(error).__name__, True
        answer["result"] = {"content": [{"type": "text", "text": text}], "isError": wrong}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
while manner == "stays":
    time.sleep(1)
"#;

fn program(words: &[&str]) -> Program {
    Program {
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        env: vec![("WORD".into(), "a b".into())],
    }
}

/// The server in the workspace, declared; it behaves like this.
pub fn declared(mut bench: Bench, manner: &str, seconds: u64) -> (Bench, ExternalServer) {
    bench.put("server.py", SERVER);
    let server = ExternalServer {
        call_time: Duration::from_secs(seconds),
        ..ExternalServer::started("s", program(&["python3", "server.py", manner]))
    };
    bench.runtime.declare_external(server.clone()).unwrap();
    (bench, server)
}

/// The user says yes, for the session, as often as asked.
pub fn willing(bench: &Bench) {
    bench.user.words.borrow_mut().extend(["session"; 16]);
}

/// Whether a process on this machine was started with this bench's workspace.
fn is_left(bench: &Bench) -> bool {
    let here = bench.workspace.to_string_lossy().into_owned();
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let place = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        place.to_string_lossy().contains(&here)
    })
}

#[test]
fn a_key_that_a_server_is_started_with_is_in_nothing_it_says() {
    let mut bench = Bench::new();
    bench.put("server.py", SERVER);
    let mut started = program(&["python3", "server.py", "well"]);
    let key = ("SOME_API_TOKEN".to_owned(), "hush-hush7".to_owned());
    started.env.push(key);
    let server = ExternalServer::started("s", started);
    bench.runtime.declare_external(server).unwrap();
    willing(&bench);
    let report = bench.call("mcp__s__read", json!({"path": "/proc/self/environ"}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let struck = "SOME_API_TOKEN=[the key]";
    assert!(report.text.contains(struck), "{}", report.text);
    assert!(!report.text.contains("hush-hush7"), "{}", report.text);
    // Any other variable is a word like another.
    assert!(report.text.contains("WORD=a b"), "{}", report.text);
    // Nor is it in what a program complains of that is no server.
    let mut broken = program(&["sh", "-c", "echo \"bad key $SOME_API_TOKEN\" >&2; exit 3"]);
    broken
        .env
        .push(("SOME_API_TOKEN".to_owned(), "hush-hush7".to_owned()));
    let broken = ExternalServer::started("broken", broken);
    bench.runtime.declare_external(broken.clone()).unwrap();
    let agent = bench.runtime.first_agent();
    let why = bench.runtime.listing(agent, &broken).unwrap().unwrap_err();
    assert!(why.ends_with("complained last: bad key [the key]"), "{why}");
}

#[test]
fn the_official_server_is_started_listed_called_and_ended() {
    let Some(peers) = Peers::ready() else { return };
    let mut bench = Bench::new();
    let (python, script) = (peers.python(), peers.script("tools.py"));
    let agent = bench.runtime.first_agent();
    // Where the program and its interpreter lie is nothing it sees by itself.
    let interpreter = python.canonicalize().unwrap();
    let around = interpreter.parent().and_then(Path::parent).unwrap();
    let places = [script.parent().unwrap(), around];
    for place in places.iter().filter(|place| !place.starts_with("/usr")) {
        for verb in ["fs.read", "fs.list"] {
            let words = GrantWords::new(verb, &place.to_string_lossy());
            bench.runtime.grant(agent, &words).unwrap();
        }
    }
    let words = [
        &*python.to_string_lossy(),
        &*script.to_string_lossy(),
        "0",
        "--stdio",
    ];
    let server = ExternalServer::started("peer", program(&words));
    bench.runtime.declare_external(server.clone()).unwrap();
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
    willing(&bench);
    let sum = bench.call("mcp__peer__add", json!({"a": 2, "b": 40}));
    assert_eq!(sum.fate, Fate::Ran, "{}", sum.text);
    assert!(sum.text.contains("42"), "{}", sum.text);
    let words = bench.call("mcp__peer__say", json!({"words": "grüße 🦀"}));
    assert!(words.text.contains("grüße 🦀"), "{}", words.text);
    let failed = bench.call("mcp__peer__fail", json!({}));
    assert_eq!(failed.fate, Fate::ToolError, "{}", failed.text);
    assert!(
        failed.text.contains("Error executing tool fail"),
        "{}",
        failed.text
    );
    has_resources_and_prompts(&mut bench);
    assert!(!is_left(&bench));
}

/// What the official server has besides its tools, asked through the gate.
pub fn has_resources_and_prompts(bench: &mut Bench) {
    for (tool, args, fate, part) in [
        (
            "list_resources",
            json!({}),
            Fate::Ran,
            r#"{"uri": "peer://notes/one", "name": "one", "description": "The first note.", "mimeType": "text/plain"}"#,
        ),
        (
            "read_resource",
            json!({"uri": "peer://notes/one"}),
            Fate::Ran,
            r#"{"result": "grüße 🦀"}"#,
        ),
        (
            "read_resource",
            json!({"uri": "peer://notes/two"}),
            Fate::Ran,
            "could not be cached: application/pdf",
        ),
        (
            "read_resource",
            json!({"uri": "peer://notes/three"}),
            Fate::ToolError,
            "MCP call failed: McpError: ",
        ),
        (
            "list_prompts",
            json!({}),
            Fate::Ran,
            r#"{"prompts": [{"name": "greet", "description": "Greets somebody.", "arguments": [{"name": "who""#,
        ),
        (
            "get_prompt",
            json!({"name": "greet", "arguments": {"who": "ann"}}),
            Fate::Ran,
            r#"{"messages": [{"role": "user", "content": "Greet ann."}]"#,
        ),
        (
            "get_prompt",
            json!({"name": "greet"}),
            Fate::ToolError,
            "MCP call failed: McpError: ",
        ),
    ] {
        let report = bench.call(&format!("mcp__peer__{tool}"), args);
        assert_eq!(report.fate, fate, "{tool}: {}", report.text);
        assert!(report.text.contains(part), "{tool}: {}", report.text);
    }
}

#[test]
fn a_started_server_has_its_variables_and_the_workspace_and_no_way_out() {
    let (mut bench, server) = declared(Bench::new(), "well", 20);
    bench.put("a.txt", "within");
    fs::write(bench.state.join("secret"), "without").unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let agent = bench.runtime.first_agent();
    let listing = bench.runtime.listing(agent, &server).unwrap().unwrap();
    assert_eq!(listing.tools.len(), 2);
    // What is not listed is called by name as long as nobody keeps the list.
    willing(&bench);
    let secret = bench.state.join("secret").to_string_lossy().into_owned();
    let place = format!("a b {}", bench.workspace.display());
    let port = listener.local_addr().unwrap().port();
    for (tool, args, fate, part) in [
        ("read", json!({"path": "a.txt"}), Fate::Ran, "within"),
        ("env", json!({}), Fate::Ran, &*place),
        (
            "read",
            json!({"path": secret}),
            Fate::ToolError,
            "FileNotFoundError",
        ),
        ("connect", json!({"port": port}), Fate::ToolError, "Error"),
    ] {
        let report = bench.call(&format!("mcp__s__{tool}"), args);
        assert_eq!(report.fate, fate, "{tool}: {}", report.text);
        assert!(report.text.contains(part), "{tool}: {}", report.text);
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody connected");
    assert!(!is_left(&bench));
}

/// It is given keys, and was agreed to by its name.
#[test]
fn a_started_server_is_no_program_of_the_workspace_that_has_its_name() {
    let in_the_workspace = |config: &mut hermitcrab::runtime::RuntimeConfig| {
        let dir = config.workspace.join("bin");
        fs::create_dir(&dir).unwrap();
        put_program(
            &dir.join("python3"),
            "#!/bin/sh\necho of the workspace $WORD\n",
        );
        let link = config.workspace.parent().unwrap().join("link");
        std::os::unix::fs::symlink(&config.workspace, &link).unwrap();
        for (name, value) in &mut config.env {
            if name == "PATH" {
                *value = format!("{}:{}/bin:{value}", dir.display(), link.display());
            }
        }
    };
    let (mut bench, _) = declared(Bench::beginning_with(in_the_workspace), "well", 20);
    // A command finds it there.
    let report = bench.call("terminal", json!({"command": "python3"}));
    assert!(report.text.contains("of the workspace"), "{}", report.text);
    let report = bench.call("mcp__s__env", json!({}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.text.contains("a b "), "{}", report.text);
}

#[test]
fn what_a_started_server_writes_stands_only_where_it_is_granted() {
    let write = json!({"path": "new.txt"});
    let (mut bench, _) = declared(Bench::with_files(), "well", 20);
    let report = bench.call("mcp__s__write", write.clone());
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("new.txt").as_deref(), Some("written"));

    let (mut bench, _) = declared(Bench::new(), "well", 20);
    let report = bench.call("mcp__s__write", write);
    assert_eq!(report.fate, Fate::ToolError, "{}", report.text);
    assert!(
        report.text.contains("changes were discarded"),
        "{}",
        report.text
    );
    assert_eq!(bench.text("new.txt"), None);
}

#[test]
fn what_is_offered_stands_by_name_and_what_is_sent_is_put_right_by_the_form() {
    let (mut bench, _) = declared(Bench::new(), "well", 20);
    let agent = bench.runtime.first_agent();
    // Before anybody asked the server there is no form to go by.
    let as_it_is = bench.call("mcp__s__echo", json!({"n": "7"}));
    assert_eq!(as_it_is.text, r#"{"result": "{\"n\": \"7\"}"}"#);
    bench.runtime.list_outside(agent);
    let offered: Vec<(String, serde_json::Value)> = bench
        .runtime
        .tools_outside(agent)
        .into_iter()
        .map(|tool| (tool.name, tool.parameters))
        .collect();
    let form =
        json!({"type": "object", "properties": {"n": {"type": "integer", "nullable": true}}});
    assert_eq!(
        offered,
        ["mcp__s__echo", "mcp__s__env"].map(|name| (name.to_owned(), form.clone()))
    );
    for (given, sent) in [
        (json!({"n": "7"}), r#"{\"n\": 7}"#),
        (json!({"n": "null"}), r#"{\"n\": null}"#),
        (
            json!({"n": "x", "m": "7"}),
            r#"{\"n\": \"x\", \"m\": \"7\"}"#,
        ),
    ] {
        let report = bench.call("mcp__s__echo", given);
        assert_eq!(report.text, format!(r#"{{"result": "{sent}"}}"#));
    }
    // What it did not list is no tool.
    let report = bench.call("mcp__s__write", json!({"path": "new.txt"}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
}

#[test]
fn a_server_that_ends_in_a_call_is_started_anew_for_the_next() {
    let (mut bench, _) = declared(Bench::new(), "well", 20);
    let ended = bench.call("mcp__s__die", json!({}));
    assert_eq!(
        ended.text,
        r#"{"error": "MCP call failed: McpError: Connection closed"}"#
    );
    let next = bench.call("mcp__s__echo", json!({"word": "again"}));
    assert_eq!(next.fate, Fate::Ran, "{}", next.text);
}

#[test]
fn a_server_that_was_asked_in_vain_has_no_tools() {
    let (mut bench, _) = declared(Bench::new(), "leaves", 20);
    let agent = bench.runtime.first_agent();
    bench.runtime.list_outside(agent);
    let told = bench.runtime.take_told().join("\n");
    assert!(told.contains("`s` are not offered"), "{told}");
    let report = bench.call("mcp__s__echo", json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
}

#[test]
fn no_server_is_started_where_no_program_may_be() {
    let (mut bench, server) = declared(Bench::new(), "well", 20);
    let agent = bench.runtime.first_agent();
    assert!(bench.runtime.listing(agent, &server).unwrap().is_ok());
    for (grant, _) in bench.runtime.grants_in_words(agent) {
        bench.runtime.revoke(grant).unwrap();
    }
    let denial = bench.runtime.listing(agent, &server).unwrap_err();
    assert_eq!(denial.code(), DenialCode::Revoked);
    let report = bench.call("mcp__s__echo", json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::Revoked));
}

#[test]
fn what_a_server_writes_after_the_agent_has_heard_it_is_asked_about() {
    let (mut bench, _) = declared(Bench::with_files(), "well", 20);
    let first = bench.call("mcp__s__echo", json!({"word": "one"}));
    assert_eq!(first.fate, Fate::Ran, "{}", first.text);
    assert!(bench.user.shown.borrow().is_empty());
    let second = bench.call("mcp__s__write", json!({"path": "new.txt"}));
    assert_eq!(second.fate, Fate::ToolError, "{}", second.text);
    assert_eq!(bench.text("new.txt"), None);
    let shown = bench.user.shown.borrow().join("\n");
    assert!(shown.contains("new.txt"), "{shown}");
}

#[test]
fn servers_that_misbehave_are_told_apart_and_ended() {
    // What is left over would be seen.
    let mut bench = Bench::new();
    bench.call(
        "terminal",
        json!({"command": "sleep 60", "background": true}),
    );
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !is_left(&bench) {
        assert!(std::time::Instant::now() < until, "nothing is seen to run");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(bench);
    for (manner, seconds, fate, part) in [
        ("leaves", 20, Fate::ToolError, "is not connected"),
        ("silent", 3, Fate::ToolError, "timed out after 3.0s"),
        // By what it says, long before its time is over.
        ("floods", 60, Fate::ToolError, "is not connected"),
        ("talks", 20, Fate::Ran, "echo"),
        // Its time is longer than anybody waits for these tests.
        ("stays", 600, Fate::Ran, "echo"),
    ] {
        let (mut bench, _) = declared(Bench::new(), manner, seconds);
        let report = bench.call("mcp__s__echo", json!({"word": "echo"}));
        assert_eq!(report.fate, fate, "{manner}: {}", report.text);
        assert!(report.text.contains(part), "{manner}: {}", report.text);
        assert!(!is_left(&bench), "{manner}");
    }
}

/// What a server that gives no answer complained of is told to whoever asks for its tools, and
/// to no model.
#[test]
fn why_a_program_is_no_server_is_told_to_the_person() {
    let (mut bench, server) = declared(Bench::new(), "leaves", 20);
    let agent = bench.runtime.first_agent();
    willing(&bench);
    let why = bench.runtime.listing(agent, &server).unwrap().unwrap_err();
    assert!(
        why.ends_with("; its program ended with status 3, and complained last: a word for nobody"),
        "{why}"
    );
    let told = bench.call("mcp__s__echo", json!({}));
    assert!(!told.text.contains("a word for nobody"), "{}", told.text);

    let missing = ExternalServer::started("gone", program(&["notes-server", "--stdio"]));
    bench.runtime.declare_external(missing.clone()).unwrap();
    let why = bench.runtime.listing(agent, &missing).unwrap().unwrap_err();
    assert!(
        why.contains("status 127") && why.contains("notes-server: not found"),
        "{why}"
    );
}

/// Somebody who wants nothing any more once they were asked so often.
struct Gone(u32);

impl ProgressPort for Gone {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// All of it is held, and none of it was to be done by then.
#[test]
fn nothing_stands_of_what_a_server_did_that_is_called_off() {
    let mut bench = Bench::with_files();
    let writes = program(&["sh", "-c", "echo x > new.txt; exec sleep 1000"]);
    let server = ExternalServer {
        call_time: Duration::from_secs(600),
        ..ExternalServer::started("s", writes)
    };
    bench.runtime.declare_external(server).unwrap();
    willing(&bench);
    bench.runtime.show_progress(Box::new(Gone(300)));
    let report = bench.call("mcp__s__echo", json!({}));
    assert_ne!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("new.txt"), None, "{}", report.text);
}

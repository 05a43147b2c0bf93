//! Tools of servers outside in a chat: offered in the server's words, called
//! through the gate, and counted as what they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::VecDeque,
    fs,
    io::Write as _,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

use hermitcrab::{
    chat::{Chat, ChatTurn},
    model::{Message, ModelError, ModelPort, ModelReply, ModelRequest, Offer, ProposedCall},
    runtime::{ExternalServer, Fate, GrantWords},
};
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use crate::{
    external::serve,
    support::{Bench, editor::Editor, home::Home, pty::Pty},
};

/// A model that proposes these calls, one an answer, and keeps what it is offered and told.
#[derive(Default)]
pub struct Model {
    calls: VecDeque<(&'static str, Value)>,
    pub offered: Vec<Offer>,
    pub told: Vec<String>,
}

impl Model {
    pub fn calling(calls: &[(&'static str, Value)]) -> Self {
        Self {
            calls: calls.iter().cloned().collect(),
            ..Self::default()
        }
    }

    fn offer(&self, name: &str) -> Option<&Offer> {
        self.offered.iter().find(|offer| offer.name == name)
    }
}

impl ModelPort for Model {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.offered = request.offers.to_vec();
        if let Some(Message::Tool { text, .. }) = request.messages.last() {
            self.told.push(text.clone());
        }
        let mut reply = ModelReply::default();
        match self.calls.pop_front() {
            Some((tool, arguments)) => reply.calls.push(ProposedCall {
                id: format!("c{}", self.calls.len()),
                tool: tool.into(),
                arguments: arguments.to_string(),
            }),
            None => reply.text = "done".into(),
        }
        Ok(reply)
    }
}

/// A bench whose agent may talk to its model; which server is declared.
fn bench(server: impl FnOnce(ExternalServer) -> ExternalServer) -> (Bench, String) {
    let mut bench = Bench::with_files();
    let port = serve();
    bench
        .runtime
        .declare_external(server(ExternalServer::at("echo", "127.0.0.1", port)))
        .unwrap();
    grant(&mut bench, "model.send", "m");
    (bench, format!("127.0.0.1:{port}"))
}

pub fn grant(bench: &mut Bench, verb: &str, on: &str) {
    let agent = bench.runtime.first_agent();
    bench
        .runtime
        .grant(agent, &GrantWords::new(verb, on))
        .unwrap();
}

pub fn talk(bench: &mut Bench, model: &mut Model) -> ChatTurn {
    let mut chat = Chat::new(&bench.runtime, "m");
    chat.turn(&mut bench.runtime, model, "go on").unwrap()
}

fn as_it_is(server: ExternalServer) -> ExternalServer {
    server
}

#[test]
fn a_model_is_offered_what_a_server_has_and_calls_it_by_that_name() {
    let (mut bench, here) = bench(|server| ExternalServer {
        tools: vec!["web_search".into()],
        ..server
    });
    grant(&mut bench, "net.connect", &here);
    // What the model read of the server is new to the grant: the user says so once more.
    bench.user.words.borrow_mut().push_back("session");
    let mut model = Model::calling(&[
        ("mcp__echo__get_x", json!({"a": "long enough to be framed"})),
        ("web_search", json!({"query": "q"})),
        ("mcp__echo__fail", json!({})),
        ("web_search", json!({"query": "nothing"})),
    ]);
    let turn = talk(&mut bench, &mut model);
    let offer = model.offer("web_search").expect("its own name");
    assert_eq!(offer.description, "looks on the web");
    assert_eq!(
        offer.parameters,
        json!({"required": ["query"], "type": "object",
               "properties": {"query": {"type": "string", "nullable": true}}})
    );
    assert!(model.offer("mcp__echo__get_x").is_some() && model.offer("read_file").is_some());
    assert_eq!(
        model.offer("mcp__echo__fail").unwrap().description,
        "MCP tool fail from echo"
    );
    let fates: Vec<&Fate> = turn.made.iter().map(|made| &made.fate).collect();
    assert_eq!(
        fates,
        [&Fate::Ran, &Fate::Ran, &Fate::ToolError, &Fate::ToolError]
    );
    // The server is called by its own name for the tool.
    assert!(model.told[0].contains("get-x {"), "{}", model.told[0]);
    let frame = "<untrusted_tool_result source=\"mcp__echo__get_x\">\n";
    assert!(model.told[0].starts_with(frame), "{}", model.told[0]);
    assert!(
        model.told[2].contains(r#"{"error": "fail {}"}"#),
        "{}",
        model.told[2]
    );
    assert!(
        model.told[3].contains("MCP call failed: McpError: no such page, [REDACTED]"),
        "{}",
        model.told[3]
    );
}

#[test]
fn a_server_is_asked_for_its_tools_only_with_a_capability_or_a_yes() {
    let (mut bench, here) = bench(as_it_is);
    let mut model = Model::calling(&[("mcp__echo__get_x", json!({}))]);
    talk(&mut bench, &mut model);
    assert!(
        model
            .offered
            .iter()
            .all(|offer| !offer.name.contains("mcp__"))
    );
    assert!(bench.user.shown.borrow()[0].contains("which tools it has"));
    // Nobody is asked about a call of what is not offered: there is no such tool.
    assert_eq!(bench.user.shown.borrow().len(), 1);
    assert!(model.told[0].contains("does not exist"), "{:?}", model.told);
    let report = bench.call("mcp__echo__get_x", json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
    let told = bench.runtime.take_told().join("\n");
    assert!(told.contains("`echo` are not offered"), "{told}");

    // A no holds for the session: whoever said it is not asked again.
    let questions = bench.user.shown.borrow().len();
    grant(&mut bench, "net.connect", &here);
    let mut model = Model::default();
    talk(&mut bench, &mut model);
    assert_eq!(bench.user.shown.borrow().len(), questions);
    assert!(
        model
            .offered
            .iter()
            .all(|offer| !offer.name.contains("mcp__"))
    );
}

#[test]
fn words_of_a_server_that_nobody_read_turn_grants_into_questions_and_read_ones_do_not() {
    let write = ("write_file", json!({"path": "new.txt", "content": "x"}));
    let (mut bench, here) = bench(as_it_is);
    grant(&mut bench, "net.connect", &here);
    let workspace = bench.workspace.to_string_lossy().into_owned();
    grant(&mut bench, "fs.create", &workspace);
    let turn = talk(
        &mut bench,
        &mut Model::calling(std::slice::from_ref(&write)),
    );
    assert_eq!(turn.made[0].questions, 1, "{:?}", turn.made);
    let told = bench.runtime.take_told().join("\n");
    let digest = told.split("listing = \"").nth(1).expect(&told);
    let digest = digest.split('"').next().unwrap().to_owned();

    for (listing, questions) in [(digest, 0), ("0".repeat(64), 1)] {
        let (mut bench, here) = self::bench(|server| ExternalServer {
            listing: Some(listing),
            ..server
        });
        grant(&mut bench, "net.connect", &here);
        let workspace = bench.workspace.to_string_lossy().into_owned();
        grant(&mut bench, "fs.create", &workspace);
        let mut model = Model::calling(std::slice::from_ref(&write));
        let turn = talk(&mut bench, &mut model);
        assert!(model.offer("mcp__echo__get_x").is_some());
        assert_eq!(turn.made[0].questions, questions, "{:?}", turn.made);
    }
}

#[test]
fn only_what_is_taken_from_a_server_is_a_tool_here() {
    let (mut bench, here) = bench(|server| ExternalServer {
        only: vec!["get-x".into()],
        ..server
    });
    grant(&mut bench, "net.connect", &here);
    let mut model = Model::calling(&[("web_search", json!({"query": "q"}))]);
    let turn = talk(&mut bench, &mut model);
    assert!(model.offer("mcp__echo__get_x").is_some());
    assert!(model.offer("mcp__echo__fail").is_none());
    assert!(
        model.told[0].contains("does not exist"),
        "{}",
        model.told[0]
    );
    assert!(turn.made.iter().all(|made| made.fate != Fate::Ran));
    let agent = bench.runtime.first_agent();
    let report = bench.runtime.call(agent, "mcp__echo__fail", &json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
}

#[test]
fn a_child_is_offered_only_servers_it_could_reach() {
    for (is_forwarded, offers) in [(false, false), (true, true)] {
        let (mut bench, here) = bench(as_it_is);
        let agent = bench.runtime.first_agent();
        let connect = GrantWords::new("net.connect", &here);
        let grant = bench.runtime.grant(agent, &connect).unwrap();
        let cap = bench.runtime.cap_of(agent, grant).to_string();
        let grants = if is_forwarded { vec![cap] } else { Vec::new() };
        let mut model =
            Model::calling(&[("delegate_task", json!({"goal": "look", "grants": grants}))]);
        let mut seen = Seen {
            model: &mut model,
            children: Vec::new(),
        };
        let mut chat = Chat::new(&bench.runtime, "m");
        chat.turn(&mut bench.runtime, &mut seen, "go on").unwrap();
        let children = seen.children;
        assert!(!children.is_empty());
        assert!(
            children
                .iter()
                .all(|names| names.contains(&"mcp__echo__get_x".to_owned()) == offers),
            "{children:?}"
        );
    }
}

/// Tells what children are offered from what the first agent is.
struct Seen<'m> {
    model: &'m mut Model,
    children: Vec<Vec<String>>,
}

impl ModelPort for Seen<'_> {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let names: Vec<String> = request
            .offers
            .iter()
            .map(|offer| offer.name.to_string())
            .collect();
        if !names.contains(&"clarify".to_owned()) {
            self.children.push(names);
        }
        self.model.complete(request)
    }
}

#[test]
fn a_server_that_is_not_there_is_told_and_after_three_failures_left_alone() {
    let mut bench = Bench::with_files();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    bench
        .runtime
        .declare_external(ExternalServer::at("echo", "127.0.0.1", port))
        .unwrap();
    grant(&mut bench, "model.send", "m");
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{port}"));
    let agent = bench.runtime.first_agent();
    let mut texts = Vec::new();
    for _ in 0..4 {
        let report = bench.runtime.call(agent, "mcp__echo__x", &json!({}));
        assert_eq!(report.fate, Fate::ToolError);
        texts.push(report.text);
    }
    assert!(
        texts[2].contains("MCP server 'echo' is not connected"),
        "{}",
        texts[2]
    );
    assert!(
        texts[3].contains("unreachable after 3 consecutive failures"),
        "{}",
        texts[3]
    );
    // Rested, it is tried again.
    bench.clock.set(10_000_000);
    let report = bench.runtime.call(agent, "mcp__echo__x", &json!({}));
    assert!(report.text.contains("not connected"), "{}", report.text);
    let mut model = Model::default();
    talk(&mut bench, &mut model);
    let told = bench.runtime.take_told().join("\n");
    assert!(told.contains("`echo` are not offered"), "{told}");
    // It is asked for its tools once a session, whether or not it answers; from then
    // on it has none.
    talk(&mut bench, &mut model);
    assert_eq!(bench.runtime.take_told(), Vec::<String>::new());
    let report = bench.runtime.call(agent, "mcp__echo__x", &json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
}

pub fn hermitcrab(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new("setsid")
        .arg("--wait")
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(home.join("proj"))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_server_configured_by_its_command_is_read_and_used_from_the_command_line() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("proj")).unwrap();
    let config = home.path().join(".config/hermitcrab");
    fs::create_dir_all(&config).unwrap();
    let script = crate::servers_command::SERVER;
    fs::write(home.path().join("proj/server.py"), script).unwrap();
    let answers = [
        json!({"calls": [{"tool": "mcp__own__env", "arguments": {}}]}),
        json!({"text": "there"}),
    ];
    fs::write(
        config.join("answers.json"),
        answers.map(|answer| answer.to_string()).join("\n"),
    )
    .unwrap();
    let text = "[servers.own]\ncommand = [\"python3\", \"server.py\", \"well\"]\nenv = { WORD = \"yes\" }\n\
                [models.planner]\nbackend = \"scripted\"\nmodel = \"m\"\nfile = \"answers.json\"\n";
    fs::write(config.join("config.toml"), text).unwrap();
    let (code, said, told) = hermitcrab(home.path(), &["servers"]);
    let listed = "own  the command ['python3', 'server.py', 'well']\n";
    assert_eq!((code, said.as_str()), (0, listed), "{told}");
    let (code, said, told) = hermitcrab(home.path(), &["servers", "own"]);
    assert_eq!(code, 0, "{told}");
    assert!(said.contains("mcp__own__echo"), "{said}");
    let (code, said, told) = hermitcrab(home.path(), &["chat", "what is there?"]);
    assert_eq!((code, said.as_str()), (0, "there\n"), "{told}");
    assert!(told.contains("  mcp__own__env\n"), "{told}");
}

#[test]
fn a_server_in_the_home_is_said_to_be_shown_nothing_and_what_it_is_offered_in_once() {
    let home = Home::new();
    let dir = home.path().join("tools");
    fs::create_dir(&dir).unwrap();
    for at in [&dir, &home.path().to_owned()] {
        fs::write(at.join("server.py"), crate::servers_command::SERVER).unwrap();
    }
    let settled = |script: &Path| {
        home.configure(&format!(
            "[servers.own]\ncommand = [\"python3\", \"{}\", \"well\"]\n\
             [models.planner]\nbackend = \"scripted\"\nmodel = \"m\"\nfile = \"answers.json\"\n",
            script.display()
        ));
    };
    settled(&home.path().join("server.py"));
    let ran = home.run(&["servers", "own"]);
    assert_eq!(ran.code, Some(69), "{ran:?}");
    assert!(
        ran.err.contains(
            "in a directory of its own they are, after `hermitcrab config add-directory DIR`"
        ),
        "{ran:?}"
    );
    let script = dir.join("server.py").canonicalize().unwrap();
    settled(&script);
    let ran = home.run(&["servers", "own"]);
    let word = script.parent().unwrap().display().to_string();
    let advice = format!("`hermitcrab config add-directory {word}` shows them the directory");
    assert!(ran.err.contains(&advice), "{advice}: {ran:?}");
    // What it says does it.
    home.ok(&["config", "add-directory", &word]);
    let ran = home.run(&["servers", "own"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("mcp__own__echo"), "{ran:?}");
    let answers = ["one", "two", "three"].map(|text| json!({"text": text}).to_string());
    let config = home.path().join(".config/hermitcrab");
    fs::write(config.join("answers.json"), answers.join("\n")).unwrap();
    let mut chat = home
        .command(&home.project(), &["chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = chat.stdin.take().unwrap();
    input.write_all(b"a\nb\nc\n").unwrap();
    drop(input);
    let ended = chat.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(
        String::from_utf8_lossy(&ended.stdout),
        "one\ntwo\nthree\n",
        "{told}"
    );
    assert_eq!(
        told.matches("offered in its own words").count(),
        1,
        "{told}"
    );
}

#[test]
fn a_configured_server_is_shown_read_and_used_from_the_command_line() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("proj")).unwrap();
    let config = home.path().join(".config/hermitcrab");
    fs::create_dir_all(&config).unwrap();
    let port = serve();
    let write = |more: &str| {
        let text = format!(
            "[[grants]]\nverb = \"net.connect\"\non = \"127.0.0.1:{port}\"\n[[grants]]\nverb = \"fs.create\"\non = \".\"\n\
             [servers.echo]\nhost = \"127.0.0.1\"\nport = {port}\n{more}[models.planner]\nbackend = \"scripted\"\n\
             model = \"m\"\nfile = \"answers.json\"\n"
        );
        fs::write(config.join("config.toml"), text).unwrap();
    };
    let calls =
        |tool: &str, arguments: Value| json!({"calls": [{"tool": tool, "arguments": arguments}]});
    fs::write(
        config.join("answers.json"),
        format!(
            "{}\n{}\n",
            calls("mcp__echo__get_x", json!({})),
            json!({"text": "there"})
        ),
    )
    .unwrap();
    write("");
    let (code, said, told) = hermitcrab(home.path(), &["servers"]);
    assert_eq!(
        (code, said),
        (0, format!("echo  127.0.0.1:{port}\n")),
        "{told}"
    );
    let (code, said, told) = hermitcrab(home.path(), &["servers", "echo"]);
    assert_eq!(code, 0, "{told}");
    assert!(said.contains("mcp__echo__get_x\n    x\n"), "{said}");
    let digest = said.split("listing = \"").nth(1).expect(&said);
    write(&format!(
        "listing = \"{}\"\n",
        digest.split('"').next().unwrap()
    ));
    let (code, said, _) = hermitcrab(home.path(), &["servers", "echo"]);
    assert!(code == 0 && said.contains("you have read"), "{said}");
    let (code, said, told) = hermitcrab(home.path(), &["chat", "what is x?"]);
    assert_eq!((code, said.as_str()), (0, "there\n"), "{told}");
    assert!(told.contains("  mcp__echo__get_x\n"), "{told}");
    let (code, _, told) = hermitcrab(home.path(), &["servers", "nobody"]);
    assert!(
        code == 64 && told.contains("no server `nobody`"),
        "{code} {told}"
    );
}

/// A configuration that names the echo server and holds the way to it.
fn configured() -> String {
    let port = serve();
    format!(
        "[servers.echo]\nhost = \"127.0.0.1\"\nport = {port}\n\n\
         [[grants]]\nverb = \"net.connect\"\non = \"127.0.0.1:{port}\"\n"
    )
}

#[test]
fn an_editors_session_calls_a_configured_server_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join(".config/hermitcrab");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("config.toml"), configured()).unwrap();
    let mut editor = Editor::start_with(&[], dir);
    editor.initialize(false);
    let session = editor.open();
    let script = json!([
        [["mcp__echo__get_x", {"a": "b"}]],
        [["mcp__elsewhere__post_letters", {"a": "b"}]],
        "bye"
    ]);
    let turn = editor.prompt(
        &session,
        &script,
        &[json!("allow-once"), json!("allow-once")],
    );
    assert_eq!(turn["stopReason"], "end_turn");
    // It is granted, and what the model read of the server may be what asks.
    let asked = editor.questions();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert_eq!(
        asked[0]["toolCall"]["_meta"]["hermitcrab"]["because"],
        "untrusted-flow"
    );
    let done: Vec<Value> = editor
        .updates("tool_call_update")
        .into_iter()
        .filter(|update| update["status"] == "completed")
        .collect();
    assert_eq!(done.len(), 1, "{done:#?}");
    assert_eq!(
        done[0]["rawOutput"],
        json!({"result": "get-x {\"a\":\"b\"}"})
    );
    assert!(editor.said().contains("`hermitcrab servers echo`"));
}

#[test]
fn the_prompts_model_calls_a_configured_server_once_its_person_said_yes() {
    let home = Home::new();
    home.configure(&format!(
        "{}\n[models.planner]\nbackend = \"scripted\"\nmodel = \"m\"\nfile = \"script.jsonl\"\n",
        configured()
    ));
    let script = [
        json!({"calls": [{"tool": "mcp__echo__get_x", "arguments": {"a": "b"}}]}),
        json!({"text": "good bye"}),
    ]
    .map(|line| line.to_string())
    .join("\n");
    fs::write(home.path().join(".config/hermitcrab/script.jsonl"), script).unwrap();
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("ask the server\r");
    pty.sees("allow this?");
    assert!(pty.shown().contains("call `get-x` of the server `echo`"));
    pty.keys("once\r");
    pty.sees("type the word `yes`");
    pty.keys("yes\r");
    pty.sees("good bye");
    pty.prompt();
    // Listing its tools and the call: each was written down before it was made, and ended.
    let ledger = home.ledger();
    let begun: Vec<&str> = ledger
        .split(" by agent0 external from")
        .filter_map(|before| before.rsplit('"').next())
        .filter(|call| call.starts_with("call"))
        .collect();
    assert_eq!(begun.len(), 2, "{ledger}");
    for call in begun {
        assert!(ledger.contains(&format!("{call} done")), "{ledger}");
    }
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

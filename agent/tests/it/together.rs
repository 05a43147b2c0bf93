//! The calls of one answer: those apart from each other at the same time, the
//! others in their order; each with a decision, a charge and records of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::PathBuf,
    sync::{Arc, Barrier},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use hermitcrab::{
    approvals::{Desk, DeskUser},
    audit::Ledger,
    chat::{Chat, ChatTurn},
    model::{Message, ModelError, ModelPort, ModelReply, ModelRequest, ProposedCall},
    ports::{Clock, Prompt, UserPort},
    runtime::{ExternalServer, Fate, GrantWords, Program, Runtime},
    store::State,
};
use hermitcrab_core::{
    approval::{Reply, Scope},
    batch::Lane,
    outcome::DenialCode,
    session::Asking,
    standing::StandingId,
};
use serde_json::{Value, json};
use support::{Bench, ManualClock, ScriptedUser};

use crate::{servers_command::SERVER, support::machine::Machine};

/// Says these calls in one answer, then nothing more.
struct Once(VecDeque<Vec<ProposedCall>>);

impl ModelPort for Once {
    fn complete(&mut self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        Ok(ModelReply {
            calls: self.0.pop_front().unwrap_or_default(),
            ..ModelReply::default()
        })
    }
}

/// One turn in which the model makes these calls at once; what it was told of each.
pub fn answered(runtime: &mut Runtime, calls: &[(&str, Value)]) -> (ChatTurn, Vec<String>) {
    let first = runtime.first_agent();
    runtime
        .grant(first, &GrantWords::new("model.send", "m"))
        .unwrap();
    let proposed = calls
        .iter()
        .enumerate()
        .map(|(place, (tool, args))| ProposedCall {
            id: format!("c{place}"),
            tool: (*tool).into(),
            arguments: args.to_string(),
        });
    let mut model = Once(VecDeque::from([proposed.collect()]));
    let mut chat = Chat::new(runtime, "m");
    let turn = chat.turn(runtime, &mut model, "go").unwrap();
    let told = chat.messages().iter().filter_map(|message| match message {
        Message::Tool { text, .. } => Some(text.clone()),
        _ => None,
    });
    (turn, told.collect())
}

fn fates(turn: &ChatTurn) -> Vec<&Fate> {
    turn.made.iter().map(|made| &made.fate).collect()
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({"path": path}))
}

/// A server that answers a call only when as many are waiting for one.
fn meeting_place(calls: usize) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let meet = Arc::new(Barrier::new(calls));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let meet = Arc::clone(&meet);
            std::thread::spawn(move || serve(stream.unwrap(), &meet));
        }
    });
    port
}

fn serve(mut stream: TcpStream, meet: &Barrier) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "meet", "version": "1"},
            }),
            Some("tools/call") => {
                meet.wait();
                let text = params["arguments"]["query"].clone();
                json!({"content": [{"type": "text", "text": text}], "isError": false})
            }
            // It does not say which tools it has.
            Some("tools/list") => {
                let error = json!({"code": -32601, "message": "no such method"});
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                let _sent = writeln!(stream, "{reply}");
                continue;
            }
            _ => continue,
        };
        let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let _sent = writeln!(stream, "{reply}");
    }
}

#[test]
fn two_searches_that_wait_for_each_other_both_end_and_keep_their_order() {
    let mut bench = Bench::with_files();
    let port = meeting_place(2);
    let server = ExternalServer {
        tools: vec!["web_search".into()],
        ..ExternalServer::at("meet", "127.0.0.1", port)
    };
    bench.runtime.declare_external(server).unwrap();
    let first = bench.runtime.first_agent();
    let on = format!("127.0.0.1:{port}");
    bench
        .runtime
        .grant(first, &GrantWords::new("net.connect", &on))
        .unwrap();
    bench.put("f", "held\n");
    let calls = [
        ("web_search", json!({"query": "one"})),
        read("f"),
        ("web_search", json!({"query": "two"})),
    ];
    let (turn, told) = answered(&mut bench.runtime, &calls);
    assert_eq!(fates(&turn), [&Fate::Ran; 3], "{told:?}");
    assert!(told[0].contains("one") && told[1].contains("1|held") && told[2].contains("two"));
    // What came from the network counts from now on.
    let label = bench.user.shown.borrow().len();
    let (turn, _) = answered(&mut bench.runtime, &[write("g", "x\n")]);
    assert_eq!(label + 1, bench.user.shown.borrow().len());
    assert!(matches!(fates(&turn)[..], [Fate::AskedRefused(_)]));
}

/// A person who, asked the first time, waits until the ledger holds a second
/// question, and says yes to everything.
struct Waiting {
    ledger: PathBuf,
    shown: Arc<std::sync::Mutex<Vec<String>>>,
}

impl UserPort for Waiting {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        let until = Instant::now() + Duration::from_secs(60);
        self.shown.lock().unwrap().push(prompt.shown.to_owned());
        loop {
            let ledger = std::fs::read_to_string(&self.ledger).unwrap();
            if ledger.matches("\"asked\"").count() >= 2 {
                return Reply::Yes(Scope::Once);
            }
            if Instant::now() > until {
                return Reply::Silence;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn two_writes_are_under_way_at_once_and_are_asked_about_in_their_order() {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let (workspace, state) = (root.join("proj"), root.join("state"));
    std::fs::create_dir(&workspace).unwrap();
    let shown = Arc::new(std::sync::Mutex::new(Vec::new()));
    let user = Waiting {
        ledger: state.join("ledger.jsonl"),
        shown: Arc::clone(&shown),
    };
    let config = support::config(workspace.clone(), state);
    let clock = Box::new(ManualClock::default());
    let mut runtime = Runtime::open(config, Box::new(user), clock).unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let (turn, told) = answered(&mut runtime, &[write("a", "1\n"), write("b", "2\n")]);
    assert_eq!(fates(&turn), [&Fate::Ran; 2], "{told:?}");
    let shown = shown.lock().unwrap();
    assert!(
        shown[0].contains("/proj/a") && shown[1].contains("/proj/b"),
        "{shown:?}"
    );
    let text = |name| std::fs::read_to_string(workspace.join(name)).unwrap();
    assert_eq!((text("a"), text("b")), ("1\n".to_owned(), "2\n".to_owned()));
    // The session knows both for its own, and either can be taken back.
    let commits = runtime.commits().unwrap();
    assert!(commits.len() == 2 && commits.iter().all(|commit| runtime.has_made(commit)));
}

#[test]
fn writes_of_one_answer_into_the_same_new_directory_all_land_and_are_taken_back() {
    let names = [
        "new/pkg/__init__.py",
        "new/pkg/a.py",
        "new/top.py",
        "new/pkg/b.py",
    ];
    for is_granted in [true, false] {
        let mut bench = if is_granted {
            Bench::with_files()
        } else {
            Bench::new()
        };
        bench.user.words.borrow_mut().extend(["once"; 4]);
        let calls = names.map(|name| write(name, "x = 1\n"));
        let (turn, told) = answered(&mut bench.runtime, &calls);
        assert_eq!(fates(&turn), [&Fate::Ran; 4], "{told:?}");
        for name in names {
            assert_eq!(bench.text(name).as_deref(), Some("x = 1\n"), "{name}");
        }
        assert_eq!(bench.user.words.borrow().is_empty(), !is_granted);
        bench.user.words.borrow_mut().extend(["once"; 4]);
        let first = bench.runtime.first_agent();
        for commit in bench.runtime.commits().unwrap().iter().rev() {
            bench.runtime.undo(first, commit.id).unwrap();
        }
        assert!(!bench.workspace.join("new").exists());
    }
}

#[test]
fn calls_about_one_file_keep_their_order() {
    let mut bench = Bench::with_files();
    std::fs::create_dir(bench.workspace.join("d")).unwrap();
    symlink("d", bench.workspace.join("l")).unwrap();
    let patch = |old: &str, new: &str| {
        let args = json!({"mode": "replace", "path": "d/f", "old_string": old, "new_string": new});
        ("patch", args)
    };
    let calls = [
        write("other", "x\n"),
        write("d/f", "one\n"),
        read("l/f"),
        patch("one", "two"),
        read("d/f"),
        patch("two", "three"),
    ];
    // What was read before a change is asked about.
    bench.user.words.borrow_mut().extend(["once", "once"]);
    let (turn, told) = answered(&mut bench.runtime, &calls);
    assert_eq!(fates(&turn), [&Fate::Ran; 6], "{told:?}");
    assert!(
        told[2].contains("1|one") && told[4].contains("1|two"),
        "{told:?}"
    );
    assert_eq!(bench.text("d/f").as_deref(), Some("three\n"));
}

#[test]
fn a_batch_is_cut_by_where_paths_really_lead() {
    let mut bench = Bench::with_files();
    bench.put("f", "");
    bench.put("d/g", "");
    symlink("f", bench.workspace.join("lf")).unwrap();
    symlink("nowhere", bench.workspace.join("broken")).unwrap();
    let agent = bench.runtime.first_agent();
    let mut check = |paths: &[&str], expected: &[(Lane, usize)]| {
        let arguments: Vec<String> = paths.iter().map(|path| read(path).1.to_string()).collect();
        let calls: Vec<(&str, &str)> = arguments
            .iter()
            .map(|a| ("read_file", a.as_str()))
            .collect();
        let plan = bench.runtime.batch_plan(agent, &calls);
        let plan: Vec<_> = plan.iter().map(|piece| (piece.lane, piece.calls)).collect();
        assert_eq!(plan, expected, "{paths:?}");
    };
    check(&["f", "d/g"], &[(Lane::Parallel, 2)]);
    check(&["new/deep", "new2"], &[(Lane::Parallel, 2)]);
    check(&["f", "lf"], &[(Lane::Sequential, 2)]);
    check(&["d", "d/g"], &[(Lane::Sequential, 2)]);
    check(&["f", "d/../lf"], &[(Lane::Sequential, 2)]);
    // A link that leads nowhere may lead anywhere soon, so it runs alone.
    check(&["broken", "nowhere"], &[(Lane::Sequential, 2)]);
    check(
        &["new", "f", "broken"],
        &[(Lane::Parallel, 2), (Lane::Sequential, 1)],
    );
}

/// Whose file changed under the question gets nothing by its yes; the call beside it keeps its own.
#[test]
fn of_calls_beside_each_other_one_that_is_overtaken_takes_no_yes_of_anothers() {
    let mut bench = Bench::new();
    bench.put("b.txt", "old\n");
    bench.grant("fs.read", ".");
    bench.grant("fs.list", ".");
    bench
        .user
        .words
        .borrow_mut()
        .extend(["session", "session", "session"]);
    let (meanwhile, second) = (bench.user.meanwhile.clone(), bench.workspace.join("b.txt"));
    let saved = move || std::fs::write(second, "saved by somebody\n").unwrap();
    // While the second question is open.
    let first = move || *meanwhile.borrow_mut() = Some(Box::new(saved));
    *bench.user.meanwhile.borrow_mut() = Some(Box::new(first));
    let calls = [write("a.txt", "1\n"), write("b.txt", "1\n")];
    let calls: Vec<_> = calls.iter().map(|(tool, args)| (*tool, args)).collect();
    let agent = bench.runtime.first_agent();
    let reports = bench.runtime.call_together(agent, &calls);
    assert_eq!(reports[0].fate, Fate::Ran, "{}", reports[0].text);
    let code = reports[1].fate.code();
    assert_eq!(
        code,
        Some(DenialCode::ChangedSinceShown),
        "{}",
        reports[1].text
    );
    assert_eq!(bench.text("b.txt").unwrap(), "saved by somebody\n");
    // To make it again was said yes to until the session ends, and to change the other was not.
    std::fs::remove_file(bench.workspace.join("a.txt")).unwrap();
    bench.user.words.borrow_mut().clear();
    let (tool, args) = write("a.txt", "2\n");
    assert_eq!(bench.call(tool, args).fate, Fate::Ran);
    let (tool, args) = write("b.txt", "2\n");
    let refused = Fate::AskedRefused(DenialCode::RejectedByUser);
    assert_eq!(bench.call(tool, args).fate, refused);
}

#[test]
fn a_grant_for_one_use_is_used_once_by_calls_at_the_same_time() {
    let mut bench = Bench::new();
    bench.runtime.set_asking(Asking::Refuse).unwrap();
    let first = bench.runtime.first_agent();
    let on = bench.workspace.to_string_lossy().into_owned();
    let words = GrantWords {
        uses: Some(1),
        ..GrantWords::new("fs.create", &on)
    };
    bench.runtime.grant(first, &words).unwrap();
    let names = ["a", "b", "c", "d"];
    let calls = names.map(|name| write(name, "x\n"));
    let (turn, told) = answered(&mut bench.runtime, &calls);
    let ran = fates(&turn)
        .iter()
        .filter(|fate| ***fate == Fate::Ran)
        .count();
    assert_eq!(ran, 1, "{told:?}");
    let there = names
        .iter()
        .filter(|name| bench.text(name).is_some())
        .count();
    assert_eq!(there, 1);
    for (fate, name) in fates(&turn).iter().zip(names) {
        match fate {
            Fate::Ran => assert!(bench.text(name).is_some()),
            Fate::Refused(DenialCode::Exhausted | DenialCode::NoCap) => {
                assert!(bench.text(name).is_none());
            }
            other => panic!("{other:?}: {told:?}"),
        }
    }
}

#[test]
fn what_was_read_together_is_remembered_as_if_read_in_order() {
    let texts = |together: bool| {
        let mut bench = Bench::with_files();
        bench.put("a", "1\n");
        bench.put("b", "2\n");
        let calls = [
            read("a"),
            read("b"),
            read("a"),
            read("b"),
            read("b"),
            read("a"),
        ];
        let mut all = Vec::new();
        if together {
            for pair in calls.chunks(2) {
                all.extend(answered(&mut bench.runtime, pair).1);
            }
        } else {
            for (tool, args) in calls {
                all.push(bench.call(tool, args).text);
            }
        }
        all
    };
    assert_eq!(texts(true), texts(false));
}

#[test]
fn what_one_answer_says_twice_is_made_once() {
    let mut bench = Bench::with_files();
    let add = ("terminal", json!({"command": "echo x >> f"}));
    let other = ("terminal", json!({"command": "echo y >> f"}));
    let calls = [add.clone(), other, add];
    // What the first command printed is behind the second, for all anybody knows.
    bench.user.words.borrow_mut().extend(["once"]);
    let (turn, told) = answered(&mut bench.runtime, &calls);
    assert_eq!((turn.made.len(), told.len()), (2, 2), "{told:?}");
    assert_eq!(bench.text("f").as_deref(), Some("x\ny\n"));
}

/// A clock that does something before it first tells a thread other than the
/// test's own what time it is.
struct AtTheStart {
    of_test: ThreadId,
    first: std::sync::Once,
    act: Box<dyn Fn() + Send + Sync>,
}

impl Clock for AtTheStart {
    fn now(&self) -> hermitcrab_core::time::Instant {
        if thread::current().id() != self.of_test {
            self.first.call_once(|| (self.act)());
        }
        hermitcrab_core::time::Instant::BOOT
    }
}

#[test]
fn what_is_revoked_in_the_store_covers_nothing_that_calls_at_the_same_time_do() {
    let machine = Arc::new(Machine::new());
    assert_eq!(machine.write(&["always"], "new.txt", "1"), (1, true));
    let made = machine.workspace.join("new.txt");
    std::fs::remove_file(&made).unwrap();
    std::fs::write(machine.workspace.join("server.py"), SERVER).unwrap();
    let state_dir = machine.state_dir();
    let state = State::open(&state_dir).unwrap();
    let ledger = Ledger::open_anchored(&state_dir, Some(state.anchor)).unwrap();
    let user = ScriptedUser::default();
    let desk = Desk::shared(machine.keeper());
    let elsewhere = Arc::clone(&machine);
    let clock = AtTheStart {
        of_test: thread::current().id(),
        first: std::sync::Once::new(),
        act: Box::new(move || {
            assert!(elsewhere.keeper().revoke(StandingId::new(0)).unwrap());
        }),
    };
    let mut runtime = Runtime::open_on(
        support::config(machine.workspace.clone(), state_dir.clone()),
        ledger,
        Box::new(DeskUser::new(desk.clone(), Box::new(user.clone()))),
        Box::new(clock),
    )
    .unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    assert_eq!(runtime.attach(desk).unwrap().adopted.len(), 1);
    let words = ["python3", "server.py", "well"];
    let program = Program {
        argv: words.map(str::to_owned).into(),
        env: Vec::new(),
    };
    let server = ExternalServer {
        tools: vec!["write".to_owned()],
        call_time: Duration::from_secs(30),
        ..ExternalServer::started("s", program)
    };
    runtime.declare_external(server).unwrap();
    let args = ["new.txt", "/dev/null"].map(|path| json!({ "path": path }));
    let calls = args.each_ref().map(|args| ("write", args));
    let reports = runtime.call_together(first, &calls);
    assert_eq!(reports[1].fate, Fate::Ran, "{}", reports[1].text);
    assert_eq!(reports[0].fate, Fate::ToolError, "{}", reports[0].text);
    assert!(!made.exists(), "nobody was asked: {:?}", reports[0]);
    assert_eq!(user.shown.borrow().len(), 1);
    let ledger = std::fs::read_to_string(state_dir.join("ledger.jsonl")).unwrap();
    assert!(ledger.contains("standing0 was ended in the store"));
}

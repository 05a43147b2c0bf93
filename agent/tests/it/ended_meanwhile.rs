//! What is ended while a question is open, or a server is asked, covers nothing from then on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    cell::RefCell,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::PathBuf,
    rc::Rc,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use hermitcrab::{
    approvals::{Desk, DeskUser},
    audit::Ledger,
    ports::{Prompt, UserPort},
    runtime::{CallReport, ExternalServer, Fate, GrantWords, Runtime},
    store::State,
};
use hermitcrab_core::{
    approval::{Reply, Scope},
    outcome::DenialCode,
    standing::StandingId,
};
use serde_json::{Value, json};

use crate::support::{self, Bench, ManualClock, machine::Machine};

/// A person who does something in another terminal while the first question is open, and
/// then says yes once.
struct EndsIt {
    elsewhere: Box<dyn Fn()>,
    shown: Rc<RefCell<Vec<String>>>,
}

impl UserPort for EndsIt {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        if self.shown.borrow().is_empty() {
            (self.elsewhere)();
        }
        self.shown.borrow_mut().push(prompt.shown.to_owned());
        Reply::Yes(Scope::Once)
    }
}

/// What these calls come to where making `new.txt` is kept and the rest is asked about; and
/// how often a person was asked, and the machine.
fn answered(
    call: impl FnOnce(&mut Runtime) -> Vec<CallReport>,
) -> (Vec<CallReport>, usize, Arc<Machine>) {
    let machine = Arc::new(Machine::new());
    assert_eq!(machine.write(&["always"], "new.txt", "1"), (1, true));
    std::fs::remove_file(made(&machine, "new.txt")).unwrap();
    let other = Arc::clone(&machine);
    let (reports, shown) = while_open(&machine, call, move || {
        assert!(other.keeper().revoke(StandingId::new(0)).unwrap());
    });
    (reports, shown.len(), machine)
}

/// What these calls come to where this is done while the first question is open, and what
/// was shown.
fn while_open(
    machine: &Machine,
    call: impl FnOnce(&mut Runtime) -> Vec<CallReport>,
    elsewhere: impl Fn() + 'static,
) -> (Vec<CallReport>, Vec<String>) {
    let state_dir = machine.state_dir();
    let state = State::open(&state_dir).unwrap();
    let ledger = Ledger::open_anchored(&state_dir, Some(state.anchor)).unwrap();
    let desk = Desk::shared(machine.keeper());
    let shown = Rc::new(RefCell::new(Vec::new()));
    let user = EndsIt {
        elsewhere: Box::new(elsewhere),
        shown: Rc::clone(&shown),
    };
    let mut runtime = Runtime::open_on(
        support::config(machine.workspace.clone(), state_dir),
        ledger,
        Box::new(DeskUser::new(desk.clone(), Box::new(user))),
        Box::new(ManualClock::default()),
    )
    .unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    assert_eq!(runtime.attach(desk).unwrap().refused, []);
    let reports = call(&mut runtime);
    runtime.end_session().unwrap();
    (reports, shown.take())
}

fn made(machine: &Machine, name: &str) -> PathBuf {
    machine.workspace.join(name)
}

/// Makes a file that is kept and one that is not.
fn both(other: &str) -> Value {
    json!({"mode": "patch", "patch": format!(
        "*** Begin Patch\n*** Add File: new.txt\n+1\n*** Add File: {other}\n+2\n*** End Patch\n"
    )})
}

/// Refused because of what ended, with nothing of it done, and told on record.
fn fell(report: &CallReport, machine: &Machine, fate: &Fate) {
    assert_eq!(&report.fate, fate, "{}", report.text);
    for name in ["new.txt", "other.txt"] {
        assert!(!made(machine, name).exists(), "{name}");
    }
    let ledger = machine.ledger();
    for words in [
        "standing0 was ended in the store",
        "\"kind\":\"revoked\"",
        "\"revoked\"",
    ] {
        assert!(ledger.contains(words), "`{words}`: {ledger}");
    }
}

#[test]
fn what_is_ended_in_the_store_while_a_question_is_open_does_not_count_beside_the_answer() {
    let (reports, asked, machine) = answered(|runtime| {
        let first = runtime.first_agent();
        vec![runtime.call(first, "patch", &both("other.txt"))]
    });
    assert_eq!(asked, 1);
    fell(
        &reports[0],
        &machine,
        &Fate::AskedRefused(DenialCode::Revoked),
    );
}

#[test]
fn nor_for_a_call_that_is_made_at_the_same_time_as_others() {
    let calls = [
        ("read_file", json!({"path": "nothing.txt"})),
        ("patch", both("other.txt")),
    ];
    let (reports, asked, machine) = answered(|runtime| {
        let first = runtime.first_agent();
        runtime.call_together(first, &calls.each_ref().map(|(tool, args)| (*tool, args)))
    });
    assert_eq!(asked, 1);
    fell(
        &reports[1],
        &machine,
        &Fate::AskedRefused(DenialCode::Revoked),
    );
}

#[test]
fn nor_for_what_a_command_did_that_is_asked_about() {
    let (reports, asked, machine) = answered(|runtime| {
        let first = runtime.first_agent();
        let args = json!({"command": "echo 1 > new.txt; echo 2 > other.txt"});
        vec![runtime.call(first, "terminal", &args)]
    });
    assert_eq!(asked, 1);
    fell(
        &reports[0],
        &machine,
        &Fate::RanDiscarded(DenialCode::Revoked),
    );
}

#[test]
fn an_answer_that_is_forgotten_while_a_question_is_open_is_not_given_to_the_next() {
    let machine = Arc::new(Machine::new());
    assert_eq!(machine.write(&["repeat"], "new.txt", "1"), (1, true));
    std::fs::remove_file(made(&machine, "new.txt")).unwrap();
    let calls = [
        ("write_file", json!({"path": "other.txt", "content": "2"})),
        ("write_file", json!({"path": "new.txt", "content": "1"})),
    ];
    let other = Arc::clone(&machine);
    let (reports, shown) = while_open(
        &machine,
        |runtime| {
            let first = runtime.first_agent();
            runtime.call_together(first, &calls.each_ref().map(|(tool, args)| (*tool, args)))
        },
        move || assert_eq!(other.keeper().forget(None).unwrap(), 1),
    );
    assert!(reports.iter().all(|report| report.fate == Fate::Ran));
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[1].contains("new.txt"), "{shown:?}");
}

/// A server whose tool never answers. It says what it was asked for before it does anything
/// about it, and waits until it is let go on.
fn silent(said: mpsc::Sender<String>, go_on: mpsc::Receiver<()>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            let message: Value = serde_json::from_str(&line).unwrap();
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            let is_greeting = method == "initialize";
            if said.send(method).is_err() || go_on.recv().is_err() {
                return;
            }
            if is_greeting {
                let result = json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "silent", "version": "1"},
                });
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                writeln!(stream, "{reply}").unwrap();
            }
        }
    });
    port
}

#[test]
fn a_server_is_asked_nothing_more_and_not_waited_for_once_its_grant_is_ended() {
    for end_at in ["initialize", "tools/call"] {
        let mut bench = Bench::with_files();
        let (said, heard) = mpsc::channel();
        let (go, go_on) = mpsc::channel();
        let port = silent(said, go_on);
        let server = ExternalServer {
            tools: vec!["write".to_owned()],
            call_time: Duration::from_secs(600),
            ..ExternalServer::at("silent", "127.0.0.1", port)
        };
        bench.runtime.declare_external(server).unwrap();
        let first = bench.runtime.first_agent();
        let on = format!("127.0.0.1:{port}");
        let words = GrantWords::new("net.connect", &on);
        let grant = bench.runtime.grant(first, &words).unwrap();
        let remote = bench.runtime.remote();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&asked);
        let other = std::thread::spawn(move || {
            for method in heard {
                if method == end_at {
                    assert_eq!(remote.revoke(grant).unwrap(), [grant]);
                }
                all.lock().unwrap().push(method);
                // One that was ended is gone by now.
                let _gone = go.send(());
            }
        });
        let report = bench.call("write", json!({"path": "x"}));
        assert_eq!(
            report.fate,
            Fate::Refused(DenialCode::Revoked),
            "{}",
            report.text
        );
        drop(bench.runtime);
        other.join().unwrap();
        let asked = asked.lock().unwrap();
        let calls = asked.iter().filter(|method| *method == "tools/call");
        let is_call = usize::from(end_at == "tools/call");
        assert_eq!(calls.count(), is_call, "{asked:?}");
        let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
        for words in [
            "\"kind\":\"revoked\"",
            "\"kind\":\"stopped\"",
            "\"stopped\"",
        ] {
            assert!(ledger.contains(words), "`{words}`: {ledger}");
        }
    }
}

/// A command in the background ends while a call waits for it, and what lets its changes stand
/// was ended in the store since that call began.
#[test]
fn what_is_ended_in_the_store_while_a_call_waits_covers_nothing_of_what_it_waited_for() {
    let machine = Arc::new(Machine::new());
    assert_eq!(machine.write(&["always"], "new.txt", "1"), (1, true));
    std::fs::remove_file(made(&machine, "new.txt")).unwrap();
    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    let command = "until [ -e go ]; do sleep 0.02; done; echo 1 > new.txt";
    let args = json!({"command": command, "background": true});
    let started = opened.runtime.call(first, "terminal", &args);
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let other = Arc::clone(&machine);
    let elsewhere = std::thread::spawn(move || {
        // By then the call waits; where it does not, it finds what was ended when it begins.
        std::thread::sleep(Duration::from_millis(500));
        assert!(other.keeper().revoke(StandingId::new(0)).unwrap());
        std::fs::write(made(&other, "go"), "").unwrap();
    });
    let wait = json!({"action": "wait", "session_id": started["session_id"], "timeout": 60});
    let report = opened.runtime.call(first, "process", &wait);
    elsewhere.join().unwrap();
    assert!(report.text.contains("exited"), "{}", report.text);
    assert!(!made(&machine, "new.txt").exists(), "{}", report.text);
    let ledger = machine.ledger();
    assert!(
        ledger.contains("standing0 was ended in the store"),
        "{ledger}"
    );
}

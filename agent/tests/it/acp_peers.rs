//! Clients nobody here wrote, and every line they are sent held against the
//! protocol's own schema.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{editor::model, peers::Peers};

/// A workspace, and the agent behind something that writes down what passes.
struct Place {
    dir: tempfile::TempDir,
    base: String,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("proj")).unwrap();
        fs::write(dir.path().join("proj/a.txt"), "alpha\n").unwrap();
        Self { dir, base: model() }
    }

    fn log(&self, end: &str) -> PathBuf {
        self.dir.path().join(format!("log.{end}"))
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join("proj").join(name)).ok()
    }

    fn command(&self, options: &[&str]) -> Vec<String> {
        // A client may end what it started before everything is written down.
        let script = r#"trap "" TERM; tee "$0.sent" | "$@" | tee "$0.came"; : > "$0.done""#;
        let home = format!("HOME={}", self.dir.path().display());
        let log = self.dir.path().join("log");
        let agent = env!("CARGO_BIN_EXE_hermitcrab");
        [
            "sh",
            "-c",
            script,
            log.to_str().unwrap(),
            "env",
            &home,
            agent,
        ]
        .into_iter()
        .chain(["acp", "--model", "m", "--base-url", &self.base])
        .chain(options.iter().copied())
        .map(str::to_owned)
        .collect()
    }

    /// Lets a client do these steps.
    fn drive(&self, client: &mut Command, options: &[&str], steps: &Value) -> Output {
        self.drive_with(client, options, &json!({"steps": steps}))
    }

    /// The same, and what else the client is told.
    fn drive_with(&self, client: &mut Command, options: &[&str], given: &Value) -> Output {
        let mut given = given.clone();
        given["command"] = json!(self.command(options));
        given["cwd"] = json!(self.dir.path().join("proj"));
        let mut child = client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(given.to_string().as_bytes()).unwrap();
        drop(input);
        child.wait_with_output().unwrap()
    }

    /// Waits until all of these words were said by the agent.
    fn await_in(&self, words: &[&str]) {
        let until = Instant::now() + Duration::from_secs(120);
        let said = || fs::read_to_string(self.log("came")).unwrap_or_default();
        while !words.iter().all(|word| said().contains(word)) {
            assert!(Instant::now() < until, "{words:?} did not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the agent's end, and holds all it said against the schema.
    fn validate(&self, peers: &Peers) {
        let until = Instant::now() + Duration::from_secs(120);
        while !self.log("done").exists() {
            assert!(Instant::now() < until, "the agent did not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = Command::new(peers.python())
            .arg(peers.script("validate.py"))
            .arg(peers.script("node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"))
            .args([self.log("sent"), self.log("came")])
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}");
        let count: usize = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .unwrap();
        // At least both greetings, the call and the question.
        assert!(count >= 4, "{count} lines were checked");
    }
}

fn prompt(script: &Value, answers: &[&str]) -> Value {
    json!({"prompt": script.to_string(), "answers": answers})
}

fn write(path: &str, content: &str) -> Value {
    json!([["write_file", {"path": path, "content": content}]])
}

/// Everything a client can answer, and everything it can be told, one after
/// the other.
fn everything(peers: &Peers, client: &mut Command) {
    let place = Place::new();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+gamma\n*** Add File: n.txt\n+n\n*** Delete File: gone.txt\n*** Move File: here.txt -> there.txt\n*** End Patch";
    let patch = json!([["patch", {"mode": "patch", "patch": patch}]]);
    let no = json!([write("a.txt", "never\n")]);
    let list = json!([["todo", {"todos": [
        {"id": "1", "content": "first", "status": "completed"},
        {"id": "2", "content": "second", "status": "in_progress"}]}]]);
    let plan = json!({"version": 1, "summary": "a copy", "steps": [
        {"id": "look", "call": "read_file", "with": {"path": "new.txt"}},
        {"id": "make", "call": "create_file", "with": {"path": "copy.txt", "text": {"$": "look.text"}}},
        {"id": "say", "answer": "copied"}]});
    let asks = json!({"version": 1, "steps": [
        {"id": "name", "ask_user": "Which name?", "schema": "path"},
        {"id": "make", "call": "create_file", "with": {"path": {"$": "name"}, "text": "named\n"}}]});
    let steps = json!([
        prompt(&no, &["reject-once"]),
        prompt(&no, &["cancelled"]),
        prompt(&no, &["no-such-option"]),
        prompt(&no, &["error"]),
        prompt(&no, &["cancel"]),
        prompt(&json!([write("a.txt", "beta\n"), write("new.txt", "new\n")]), &["allow-once", "allow-once"]),
        prompt(&json!([patch, "words"]), &["allow-once"]),
        prompt(&json!([[["terminal", {"command": "echo out; echo x > c.txt"}]]]), &["reject-once"]),
        prompt(&json!([list]), &[]),
        {"prompt": format!("/plan {}", json!([asks.to_string()])), "answers": ["allow-once"]},
        {"prompt": "named.txt", "answers": ["allow-once"]},
        {"prompt": format!("/plan {}", json!([plan.to_string()])), "answers": ["allow-once", "allow-once"]},
        prompt(&json!([[["read_file", {"path": "unsaved.txt"}]]]), &[]),
        {"again": "load"},
        {"option": ["approval", "workspace"]},
        prompt(&json!([[["read_file", {"path": "a.txt"}]], write("a.txt", "free\n")]), &[]),
        {"again": "resume"},
        {"mode": "workspace"},
        prompt(&json!([write("last.txt", "last\n")]), &[]),
    ]);
    for (name, text) in [
        ("gone.txt", "g\n"),
        ("here.txt", "h\n"),
        ("unsaved.txt", "s\n"),
    ] {
        fs::write(place.dir.path().join("proj").join(name), text).unwrap();
    }
    let output = place.drive(client, &[], &steps);
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ends = |count: usize| vec![json!("end_turn"); count];
    let stops = [ends(4), vec![json!("cancelled")], ends(10)].concat();
    assert_eq!(told["stops"], Value::from(stops));
    assert_eq!(told["told"], json!([true, "ask", 2, true, "ask"]));
    let asked = told["asked"].as_array().unwrap();
    assert_eq!(asked.len(), 13);
    let diff = &asked[0]["toolCall"]["content"][0];
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("alpha\n"), &json!("never\n"))
    );
    assert!(
        asked[6]["toolCall"]["content"][0]
            .get("oldText")
            .is_none_or(Value::is_null)
    );
    shows_each_file(place.dir.path(), &asked[7]["toolCall"]);
    let made = &asked[12]["toolCall"]["content"][0];
    assert_eq!(
        (&made["type"], &made["newText"]),
        (&json!("diff"), &json!("new\n"))
    );
    for (name, text) in [
        ("a.txt", Some("free\n")),
        ("new.txt", Some("new\n")),
        ("n.txt", Some("n")),
        ("gone.txt", None),
        ("here.txt", None),
        ("there.txt", Some("h\n")),
        ("c.txt", None),
        ("named.txt", Some("named\n")),
        ("copy.txt", Some("new\n")),
        ("last.txt", Some("last\n")),
    ] {
        assert_eq!(place.text(name).as_deref(), text, "{name}");
    }
    let updates = told["updates"].as_array().unwrap();
    let of = |kind: &str| -> Vec<&Value> {
        let of = updates
            .iter()
            .filter(|update| update["sessionUpdate"] == kind);
        of.collect()
    };
    // The agent's own list, and the locked plan from its beginning to its end.
    let plans = of("plan");
    assert_eq!(plans[0]["entries"][1]["status"], "in_progress");
    assert_eq!(plans[1]["entries"][0]["status"], "pending");
    let last = plans.last().unwrap()["entries"].as_array().unwrap();
    assert!(last.len() == 3 && last.iter().all(|entry| entry["status"] == "completed"));
    let all = told["updates"].to_string();
    assert!(all.contains("words") && all.contains("1|typed"), "{all}");
    // What was said is shown again where the session was loaded.
    assert!(!of("user_message_chunk").is_empty());
    place.validate(peers);
}

/// A patch of four operations, each with its old and its new text.
fn shows_each_file(dir: &Path, call: &Value) {
    let diffs: Vec<(String, String, String)> = call["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "diff")
        .map(|diff| {
            let text = |name: &str| diff[name].as_str().unwrap_or_default().to_owned();
            let path = PathBuf::from(text("path"));
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert_eq!(path.parent(), Some(dir.join("proj").as_path()));
            (name, text("oldText"), text("newText"))
        })
        .collect();
    let expected = [
        ("a.txt", "beta\n", "gamma\n"),
        ("n.txt", "", "n"),
        ("gone.txt", "g\n", ""),
        ("here.txt", "h\n", ""),
        ("there.txt", "", "h\n"),
    ]
    .map(|(name, old, new)| (name.to_owned(), old.to_owned(), new.to_owned()));
    for one in &expected {
        assert!(diffs.contains(one), "{one:?} is not in {diffs:?}");
    }
    assert_eq!(diffs.len(), expected.len());
    assert_eq!(call["kind"], "edit");
}

fn python(peers: &Peers) -> Command {
    let mut client = Command::new(peers.python());
    client.arg(peers.script("peer.py"));
    client
}

fn node(peers: &Peers) -> Command {
    let mut client = Command::new("node");
    client.arg(peers.script("peer.mjs"));
    client
}

#[test]
fn the_python_sdk_drives_the_agent_and_every_line_is_valid() {
    let Some(peers) = Peers::ready() else { return };
    everything(&peers, &mut python(&peers));
}

#[test]
fn the_npm_sdk_drives_the_agent_and_every_line_is_valid() {
    let Some(peers) = Peers::ready() else { return };
    everything(&peers, &mut node(&peers));
}

#[test]
fn a_question_for_words_is_a_form_of_the_npm_sdk_and_what_is_typed_is_the_answer() {
    let Some(peers) = Peers::ready() else { return };
    let place = Place::new();
    let asks = json!({"version": 1, "steps": [
        {"id": "name", "ask_user": "Which name?", "schema": "path"},
        {"id": "make", "call": "create_file", "with": {"path": {"$": "name"}, "text": "named\n"}}]});
    let plan = format!("/plan {}", json!([asks.to_string()]));
    let given = json!({
        "steps": [
            {"prompt": plan, "answers": ["allow-once", "allow-once"]},
            {"prompt": plan, "answers": ["allow-once"]},
        ],
        // The second form is declined.
        "forms": ["typed.txt"],
    });
    let output = place.drive_with(&mut node(&peers), &[], &given);
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["stops"], json!(["end_turn", "end_turn"]), "{told}");
    assert_eq!(told["forms"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["forms"][0]["message"], "Which name?");
    assert_eq!(place.text("typed.txt").as_deref(), Some("named\n"));
    let files = fs::read_dir(place.dir.path().join("proj")).unwrap().count();
    assert_eq!(files, 2, "nothing else was made");
    place.validate(&peers);
}

#[test]
fn a_client_that_is_silent_or_dies_in_a_question_leaves_the_file_as_it_was() {
    let Some(peers) = Peers::ready() else { return };
    let no = json!([write("a.txt", "never\n")]);
    for client in [python, node] {
        let place = Place::new();
        let output = place.drive(
            &mut client(&peers),
            &["--ask-timeout", "1"],
            &json!([prompt(&no, &["silence"])]),
        );
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["stops"], json!(["end_turn"]));
        assert_eq!(place.text("a.txt").as_deref(), Some("alpha\n"));
        place.validate(&peers);
        let place = Place::new();
        let output = place.drive(&mut client(&peers), &[], &json!([prompt(&no, &["die"])]));
        assert_eq!(output.status.code(), Some(9));
        assert_eq!(place.text("a.txt").as_deref(), Some("alpha\n"));
        place.validate(&peers);
    }
}

#[test]
fn the_headless_client_acpx_is_obeyed_in_both_directions() {
    let Some(peers) = Peers::ready() else { return };
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+gamma\n*** Add File: n.txt\n+n\n*** End Patch";
    let script = json!([
        write("a.txt", "beta\n"),
        write("new.txt", "new\n"),
        [["patch", {"mode": "patch", "patch": patch}]],
        "bye"
    ]);
    // With nobody at its terminal, what it would have to ask about is a no.
    for (answer, is_yes) in [
        ("--deny-all", false),
        ("--approve-reads", false),
        ("--approve-all", true),
    ] {
        let place = Place::new();
        let output = acpx(&peers, &place, &[answer], &script).output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        assert!(words.contains("\"stopReason\":\"end_turn\""), "{output:?}");
        let (a, new, n) = if is_yes {
            ("gamma\n", Some("new\n"), Some("n"))
        } else {
            ("alpha\n", None, None)
        };
        assert_eq!(place.text("a.txt").as_deref(), Some(a), "{answer}");
        assert_eq!(place.text("new.txt").as_deref(), new, "{answer}");
        assert_eq!(place.text("n.txt").as_deref(), n, "{answer}");
        place.validate(&peers);
    }
}

/// How acpx is started on a script; `options` say what it answers.
fn acpx(peers: &Peers, place: &Place, options: &[&str], script: &Value) -> Command {
    let agent = place.dir.path().join("agent.sh");
    // It takes a command line, not a list of words.
    let command: Vec<String> = place
        .command(&[])
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    fs::write(&agent, format!("exec {}\n", command.join(" "))).unwrap();
    let mut acpx = Command::new("node");
    acpx.arg(peers.script("node_modules/acpx/dist/cli.js"))
        .args(["--agent", &format!("sh {}", agent.display())])
        .arg("--cwd")
        .arg(place.dir.path().join("proj"))
        .args(options)
        .args(["--format", "json", "exec"])
        .arg(script.to_string())
        .env("HOME", place.dir.path())
        .stdin(Stdio::null());
    acpx
}

/// A client that goes away while a command runs, in each way it can: what the
/// command did on its view is thrown away, and what came after never begins.
#[test]
fn acpx_interrupted_out_of_time_or_killed_leaves_every_file_as_it_was() {
    let Some(peers) = Peers::ready() else { return };
    let script = json!([
        [["terminal", {"command": "echo x > a.txt; sleep 600", "timeout": 600}]],
        write("later.txt", "later\n"),
        "bye"
    ]);
    for (options, signal) in [
        (&["--approve-all"][..], Some(Signal::INT)),
        (&["--approve-all"], Some(Signal::KILL)),
        (&["--approve-all", "--timeout", "15"], None),
    ] {
        let place = Place::new();
        let mut acpx = acpx(&peers, &place, options, &script)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if let Some(signal) = signal {
            place.await_in(&["\"in_progress\""]);
            kill_process(Pid::from_child(&acpx), signal).unwrap();
        }
        let ended = acpx.wait().unwrap();
        // A turn that its user interrupts has ended as it should.
        let is_well = signal == Some(Signal::INT);
        assert_eq!(ended.success(), is_well, "{options:?} {signal:?}: {ended}");
        place.validate(&peers);
        let sent = fs::read_to_string(place.log("sent")).unwrap();
        // Out of time or killed, it hangs up without a word.
        assert_eq!(sent.contains("session/cancel"), is_well, "{signal:?}");
        assert_eq!(
            place.text("a.txt").as_deref(),
            Some("alpha\n"),
            "{signal:?}"
        );
        assert_eq!(place.text("later.txt"), None, "{signal:?}");
    }
}

/// One of the scripts that a person runs with larger numbers.
fn script(peers: &Peers, name: &str, options: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
    let output = Command::new(peers.python())
        .arg("-B")
        .arg(path.join(name))
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(options)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn many_sessions_at_once_finish_with_nothing_lost() {
    let Some(peers) = Peers::ready() else { return };
    let said = script(&peers, "load.py", &["--sessions", "12", "--prompts", "4"]);
    assert!(said.contains("48 prompts, 24 questions"), "{said}");
    assert!(said.contains("lost: 0"), "{said}");
}

#[test]
fn a_user_who_saves_all_the_time_loses_no_version() {
    let Some(peers) = Peers::ready() else { return };
    let said = script(&peers, "saves.py", &["--saves", "60"]);
    assert!(
        said.contains("60 saves") && said.contains(" 0 lost"),
        "{said}"
    );
}

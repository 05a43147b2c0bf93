//! What a command in the background did is decided, and its end told, also where the model
//! makes no call after it: when a turn begins, and when the session ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    editor::{Editor, model},
    home::{Home, until},
    pty::{Pty, at_prompt, in_one_row},
};

const COMMAND: &str = "echo F > fin.txt";
const TOLD: &str = "[BACKGROUND COMMAND ENDED: proc_";

/// What has the model start a command in the background.
fn starts(command: &str) -> Value {
    let args = json!({"command": command, "background": true, "notify_on_complete": true});
    json!([[["terminal", args]]])
}

/// Waits until no program of this home has one that runs: each has a thread, called by its
/// name, which ends when the end is known.
fn background_is_over(home: &Path) {
    let home = format!("HOME={}", home.display());
    let runs = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let here = all.filter(|one| {
            let env = std::fs::read(one.path().join("environ")).unwrap_or_default();
            env.split(|byte| *byte == 0)
                .any(|word| word == home.as_bytes())
        });
        let threads = here.filter_map(|one| std::fs::read_dir(one.path().join("task")).ok());
        threads.flatten().flatten().any(|thread| {
            let name = std::fs::read_to_string(thread.path().join("comm"));
            name.is_ok_and(|name| name.starts_with("proc_"))
        })
    };
    until(|| (!runs()).then_some(()));
}

fn settled() -> Home {
    let home = Home::new();
    home.configure(&format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        model()
    ));
    home
}

fn made(home: &Home) -> Option<String> {
    std::fs::read_to_string(home.project().join("fin.txt")).ok()
}

/// Has the model read what a command says. A grant speaks for what was read before it only,
/// and that a command was started is read, too.
fn looks() -> Value {
    json!([[["terminal", {"command": "true"}]]])
}

/// At the prompt, with a command that the model started there, and a grant of all or none.
fn started(home: &Home, is_held: bool, command: &str) -> Pty {
    let mut pty = at_prompt(home);
    let mut turns = 0;
    let mut said = |pty: &mut Pty, words: &Value| {
        turns += 1;
        pty.keys(&format!("{words}\r"));
        pty.until(|shown| {
            let done = shown.lines().filter(|line| line.trim_end() == "done");
            done.count() == turns
        });
        pty.prompt();
    };
    if is_held {
        said(&mut pty, &looks());
        pty.keys("grant fs.*=.\r");
        pty.sees("until this session ends");
        pty.prompt();
    }
    said(&mut pty, &starts(command));
    pty
}

#[test]
fn at_the_prompt_what_is_held_is_kept_when_a_turn_begins_and_the_model_is_told() {
    let home = settled();
    let mut pty = started(&home, true, COMMAND);
    background_is_over(home.path());
    // This model says what it is told.
    pty.keys("next\r");
    pty.sees(TOLD);
    pty.prompt();
    assert_eq!(made(&home).as_deref(), Some("F\n"));
    // Once.
    pty.keys("again\r");
    pty.until(|shown| shown.lines().any(|line| line.trim_end() == "again"));
    let shown = pty.prompt();
    assert_eq!(shown.matches("[BACKGROUND").count(), 1, "{shown}");
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn at_the_prompt_what_is_not_held_is_asked_about_when_a_turn_begins() {
    for (answer, stands) in [("once", true), ("deny", false)] {
        let home = settled();
        let mut pty = started(&home, false, COMMAND);
        background_is_over(home.path());
        pty.keys("next\r");
        let asked = pty.sees("allow this?");
        assert!(asked.contains(COMMAND), "{asked}");
        pty.keys(&format!("{answer}\r"));
        pty.sees(TOLD);
        pty.prompt();
        assert_eq!(made(&home).is_some(), stands);
        pty.keys("exit\r");
        assert!(pty.ended().success());
    }
}

#[test]
fn who_leaves_the_prompt_is_asked_about_what_ended_and_told_what_is_kept() {
    for (is_held, answer, stands) in [
        (true, None, true),
        (false, Some("once"), true),
        (false, Some("deny"), false),
    ] {
        let home = settled();
        let mut pty = started(&home, is_held, COMMAND);
        background_is_over(home.path());
        pty.keys("exit\r");
        if let Some(answer) = answer {
            let asked = pty.sees("allow this?");
            assert!(asked.contains(COMMAND), "{asked}");
            pty.keys(&format!("{answer}\r"));
        }
        if stands {
            let kept =
                format!("a background command had ended, and what it changed is kept: `{COMMAND}`");
            pty.until(|shown| shown.replace('\n', "").contains(&kept));
        }
        assert!(pty.ended().success());
        assert_eq!(made(&home).is_some(), stands);
    }
}

#[test]
fn who_leaves_the_prompt_is_told_what_still_ran_and_nothing_of_it_is_kept() {
    for leave in ["exit\r", "\u{4}"] {
        let home = settled();
        let mut pty = started(&home, true, "echo F > fin.txt; sleep 1000");
        pty.keys(leave);
        pty.sees("1 background command still ran and was ended");
        assert!(pty.ended().success());
        assert_eq!(made(&home), None);
        background_is_over(home.path());
    }
}

/// A conversation with nobody to ask, line by line.
struct Lines {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Lines {
    /// With a grant of all that was made after something was read, or none.
    fn start(home: &Home, is_held: bool) -> Self {
        let arguments: &[&str] = match is_held {
            true => &["chat", "--continue", "--grant", "fs.*=."],
            false => &["chat"],
        };
        if is_held {
            home.ok(&["chat", &looks().to_string()]);
        }
        let mut process = home
            .command(&home.project(), arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process, said }
    }

    /// Says it, and waits for the model's last line.
    fn say(&mut self, words: &str, last: &str) -> String {
        let stdin = self.process.stdin.as_mut().unwrap();
        writeln!(stdin, "{words}").unwrap();
        let mut all = String::new();
        while all.lines().last() != Some(last) {
            assert!(self.said.read_line(&mut all).unwrap() > 0, "{all}");
        }
        all
    }

    /// What it ended with, and what it said beside.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.process.stdin.take());
        let mut said = String::new();
        let stderr = self.process.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code(), said)
    }
}

#[test]
fn without_a_person_the_next_line_finds_what_ended_kept_or_discarded_and_told() {
    for stands in [true, false] {
        let home = settled();
        let mut lines = Lines::start(&home, stands);
        lines.say(&starts(COMMAND).to_string(), "done");
        background_is_over(home.path());
        let said = lines.say("next", "next");
        assert!(said.contains(TOLD), "{said}");
        assert_eq!(said.contains("changes: discarded"), !stands, "{said}");
        let (code, beside) = lines.end();
        assert_eq!(made(&home).is_some(), stands, "{beside}");
        assert_eq!(code, Some(if stands { 0 } else { 77 }), "{beside}");
        let discarded = format!("what a background command changed is discarded: `{COMMAND}`");
        assert_eq!(beside.contains(&discarded), !stands, "{beside}");
    }
}

#[test]
fn without_a_person_the_end_of_a_conversation_decides_what_ended_and_tells_what_is_lost() {
    for stands in [true, false] {
        let home = settled();
        let mut lines = Lines::start(&home, stands);
        lines.say(&starts(COMMAND).to_string(), "done");
        background_is_over(home.path());
        let (code, beside) = lines.end();
        assert_eq!(made(&home).is_some(), stands, "{beside}");
        assert_eq!(code, Some(if stands { 0 } else { 77 }), "{beside}");
        let discarded = format!("what a background command changed is discarded: `{COMMAND}`");
        assert_eq!(beside.contains(&discarded), !stands, "{beside}");
    }
    let home = settled();
    let mut lines = Lines::start(&home, true);
    lines.say(&starts("echo F > fin.txt; sleep 1000").to_string(), "done");
    let (code, beside) = lines.end();
    assert_eq!((code, made(&home)), (Some(0), None), "{beside}");
    assert!(
        beside.contains("1 background command still ran and was ended"),
        "{beside}"
    );
}

#[test]
fn a_session_ended_from_elsewhere_keeps_nothing_of_what_had_ended() {
    let home = settled();
    let mut pty = started(&home, true, COMMAND);
    background_is_over(home.path());
    home.ok(&["session", "end"]);
    pty.keys("next\r");
    pty.sees("the session was ended from elsewhere");
    assert!(pty.ended().success());
    assert_eq!(made(&home), None);
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}

#[test]
fn an_editors_next_prompt_asks_about_what_ended_by_its_name_and_tells_the_model() {
    for (answer, stands) in [("allow-once", true), ("reject-once", false)] {
        let (mut editor, session) = Editor::ready();
        editor.prompt(&session, &starts(COMMAND), &[]);
        background_is_over(editor.dir.path());
        let turn = editor.begin(&session, &json!("next"));
        let question = editor.question();
        let title = &question["params"]["toolCall"]["title"];
        assert_eq!(*title, format!("In the background: {COMMAND}"));
        editor.answer(&question, &json!(answer));
        editor.result(turn, &[]);
        assert_eq!(editor.text("fin.txt").is_some(), stands);
        let said = editor.said();
        assert!(said.contains(TOLD), "{said}");
    }
}

const CHANGES: &str = "echo F > a.txt";

/// An editor with a session in which a command ended that changed `a.txt`, as its user had
/// said yes to for the session, or not.
fn changed(is_held: bool) -> (Editor, String) {
    let (mut editor, session) = Editor::ready();
    if is_held {
        let writes = json!(["terminal", {"command": "echo E > a.txt"}]);
        let script = json!([looks()[0], [writes]]);
        editor.prompt(&session, &script, &["allow-session".into()]);
        assert_eq!(editor.questions().len(), 1);
        assert_eq!(editor.text("a.txt").as_deref(), Some("E\n"));
    }
    editor.prompt(&session, &starts(CHANGES), &[]);
    background_is_over(editor.dir.path());
    (editor, session)
}

#[test]
fn a_session_an_editor_closes_keeps_what_is_held_of_what_ended_and_tells_the_rest() {
    for stands in [true, false] {
        let (mut editor, session) = changed(stands);
        let asked = editor.questions().len();
        editor.call("session/close", json!({"sessionId": session}));
        assert_eq!(editor.text("a.txt").as_deref() == Some("F\n"), stands);
        let said = editor.said();
        let told = match stands {
            true => "a background command had ended, and what it changed is kept: `",
            false => "what a background command changed is discarded: `",
        };
        assert!(said.contains(&format!("{told}{CHANGES}`")), "{said}");
        // Nobody is asked by whom they left.
        assert_eq!(editor.questions().len(), asked);
    }
}

#[test]
fn an_editor_that_hangs_up_loses_nothing_that_was_held() {
    for stands in [true, false] {
        let (editor, _session) = changed(stands);
        let file = editor.workspace().join("a.txt");
        let (code, _kept) = editor.hang_up();
        assert_eq!(code, Some(0));
        assert_eq!(std::fs::read_to_string(file).unwrap() == "F\n", stands);
    }
}

#[test]
fn the_prompt_tells_an_end_as_it_comes_and_leaves_alone_what_is_being_typed() {
    let home = settled();
    let mut pty = started(&home, true, "sleep 2; echo F > fin.txt");
    pty.keys("undo pla");
    pty.until(|shown| {
        in_one_row(shown).contains("background command ended: `sleep 2; echo F > fin.txt`; what it changed is decided with your next words")
            && shown.trim_end().ends_with("\n> undo pla")
    });
    // Nothing was decided by that.
    assert_eq!(made(&home), None);
    pty.keys("\u{15}next\r");
    pty.sees(TOLD);
    let shown = pty.prompt();
    assert_eq!(made(&home).as_deref(), Some("F\n"));
    assert_eq!(
        shown.matches("background command ended").count(),
        1,
        "{shown}"
    );
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

/// What the model was told of its calls in the only conversation there is.
fn results(home: &Home) -> String {
    let listed: Value = serde_json::from_str(&home.ok(&["conversations", "--json"])).unwrap();
    home.ok(&["conversations", "show", listed["id"].as_str().unwrap()])
}

#[test]
fn who_says_all_in_one_go_is_promised_nothing_for_later_and_work_handed_out_is_waited_for() {
    let home = settled();
    let child = json!(["seen"]).to_string();
    let mut words = starts("true");
    let hands_out = json!([["delegate_task", {"goal": child}]]);
    words.as_array_mut().unwrap().push(hands_out);
    home.ok(&["chat", &words.to_string()]);
    let told = results(&home);
    assert!(told.contains("\"notify_on_complete\": false"), "{told}");
    assert!(told.contains("notify_unsupported"), "{told}");
    assert!(told.contains("\"summary\": \"seen\""), "{told}");

    // Who says more may be told more.
    let home = settled();
    let mut lines = Lines::start(&home, false);
    lines.say(&starts("true").to_string(), "done");
    lines.end();
    let told = results(&home);
    assert!(told.contains("\"notify_on_complete\": true"), "{told}");
}

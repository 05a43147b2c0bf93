//! The prompt, as a person has it: keys in, a screen out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod first_start;
mod history;
mod left_running;
mod newcomers;

use std::process::{Command, Stdio};

use hermitcrab::text::ansi;
use serde_json::json;

use crate::support::{
    backend::{backend, send},
    editor::model,
    home::Home,
    pty::{Pty, at_prompt as start, in_one_row},
};

/// A home where the first start is over.
fn settled(config: &str) -> Home {
    let home = Home::new();
    home.configure(config);
    home
}

#[test]
fn without_a_model_it_starts_says_what_is_active_and_what_is_missing() {
    let home = settled("");
    let mut pty = start(&home);
    let shown = pty.shown();
    for part in [
        "isolation  isolated",
        "mode       prompt",
        "/proj",
        "model      none",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    pty.keys("sort my files\r");
    pty.sees("no model is configured");
    pty.prompt();
    pty.keys("\u{4}");
    assert!(pty.ended().success());
}

#[test]
fn it_says_whom_commands_reach_as_far_as_that_was_granted() {
    let home = settled("");
    let shown = start(&home).shown();
    let none = "isolated: commands run on a copy, without network, as was just tried out";
    assert!(shown.contains(none), "{shown}");
    home.ok(&["caps", "grant", "net.connect=example.com:443"]);
    let shown = start(&home).shown();
    let some = "as was just tried out, and reach example.com:443";
    assert!(shown.contains(some), "{shown}");
    assert!(!shown.contains("without network"), "{shown}");
}

#[test]
fn what_is_pasted_waits_for_the_person_and_lines_can_be_joined() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("\u{1b}[200~!touch pasted1\ntouch pasted2\u{1b}[201~");
    pty.sees("touch pasted2");
    pty.keys(" && echo both\r");
    pty.sees("allow this?");
    assert!(!home.project().join("pasted1").exists());
    pty.keys("once\r");
    pty.prompt();
    assert!(home.project().join("pasted1").exists() && home.project().join("pasted2").exists());
    pty.keys("!echo one \\\r");
    pty.keys("two\r");
    pty.until(|shown| shown.lines().any(|line| line.trim_end() == "one two"));
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

/// Terminals that mark no pastes send the lines as if they were typed all at once.
#[test]
fn lines_that_come_at_once_are_worked_on_one_after_the_other_until_one_is_called_off() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("!echo >a.txt\r!echo first\r!echo second\r");
    pty.sees("allow this?");
    pty.keys("deny\r");
    pty.until(|shown| shown.lines().any(|line| line.trim_end() == "second"));
    assert!(pty.shown().lines().any(|line| line.trim_end() == "first"));
    pty.prompt();
    pty.keys("!echo begun; sleep 1000\r!echo third\r");
    pty.until(|shown| shown.lines().any(|line| line.trim_end() == "begun"));
    pty.interrupt_until("called off");
    pty.prompt();
    pty.keys("!echo fourth\r");
    pty.until(|shown| shown.lines().any(|line| line.trim_end() == "fourth"));
    pty.prompt();
    let shown = pty.shown();
    assert!(!shown.contains("third"), "{shown}");
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn a_session_that_is_ended_from_elsewhere_ends_the_prompt_and_says_so() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("!echo begun; sleep 1000\r");
    pty.until(|shown| shown.lines().any(|line| line.trim_end() == "begun"));
    home.ok(&["session", "end"]);
    pty.sees("the session was ended from elsewhere");
    assert!(pty.ended().success());
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}

/// A grant on one file opens the directory it lies in, and what happened in others below that
/// one is none of this workspace's.
#[test]
fn what_was_done_in_another_project_is_not_what_undo_takes_back_here() {
    let home = settled("");
    let other = home.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(home.dir.path().join("settings"), "s\n").unwrap();
    home.ok(&["exec", "--grant", "fs.*=.", "--", "echo b > a.txt"]);
    let there = ["exec", "--grant", "fs.*=.", "--", "echo x > made.txt"];
    assert_eq!(home.run_in(&other, &there).code, Some(0));
    let mut pty = start(&home);
    pty.keys("grant fs.modify=~/settings\r");
    pty.prompt();
    pty.keys("undo\r");
    pty.sees("took back commit 1: echo b > a.txt");
    pty.prompt();
    pty.keys("undo\r");
    pty.sees("the last change elsewhere is commit 2");
    pty.prompt();
    assert!(other.join("made.txt").exists());
}

#[test]
fn a_session_that_is_ended_from_elsewhere_waits_for_no_answer_of_its_model() {
    let (asked, is_asked) = std::sync::mpsc::channel();
    // As long as this is there the model says nothing.
    let (holds, held) = std::sync::mpsc::channel::<()>();
    let base = backend(move |_, _, _| {
        asked.send(()).unwrap();
        let _gone = held.recv();
    });
    let home = settled(&format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{base}\"\n"
    ));
    let mut pty = start(&home);
    pty.keys("hello\r");
    is_asked.recv().unwrap();
    home.ok(&["session", "end"]);
    pty.sees("the session was ended from elsewhere");
    assert!(pty.ended().success());
    drop(holds);
}

#[test]
fn a_change_is_shown_in_colour_kept_on_a_yes_and_taken_back() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("!echo b > a.txt\r");
    pty.sees("allow this?");
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(
        raw.contains("\u{1b}[32m+b") && raw.contains("\u{1b}[31m-a"),
        "{raw}"
    );
    pty.keys("once\r");
    pty.prompt();
    let text = || std::fs::read_to_string(home.project().join("a.txt")).unwrap();
    assert_eq!(text(), "b\n");
    pty.keys("undo\r");
    pty.sees("took back commit 1");
    pty.sees("`undo commit 2` brings it back");
    pty.prompt();
    assert_eq!(text(), "a\n");
    pty.keys("undo commit 2\r");
    pty.sees("took back commit 2");
    pty.prompt();
    assert_eq!(text(), "b\n");
    pty.keys("undo commit 3\r");
    pty.sees("took back commit 3");
    pty.prompt();
    assert_eq!(text(), "a\n");
    pty.keys("dry-run rm a.txt\r");
    pty.sees("a dry run, so nothing");
    let shown = pty.prompt();
    assert!(!shown.contains("the user said no"), "{shown}");
    assert!(home.project().join("a.txt").exists());
    pty.keys("grant fs.delete=.\r");
    pty.sees("until this session ends");
    pty.prompt();
    pty.keys("!rm a.txt\r");
    pty.until(|_| !home.project().join("a.txt").exists());
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn an_interrupt_calls_off_the_command_and_not_the_program() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("!sleep 3000; echo over\r");
    // One that comes before the command has begun stops nothing.
    pty.interrupt_until("called off");
    pty.prompt();
    pty.keys("!echo still $((40 + 2))\r");
    pty.sees("still 42");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn what_a_command_prints_is_seen_while_it_runs_and_once() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("!echo beg$((40 + 2))un; sleep 3000\r");
    pty.sees("beg42un");
    pty.interrupt_until("called off");
    pty.prompt();
    // Letters of several bytes, a line without an end, colours that are taken out.
    pty.keys("!printf 'gr\\303\\274n \\033[31mred\\033[0m en%sd' $((40 + 2)); echo x > a.txt\r");
    pty.sees("allow this?");
    let before = pty.shown();
    assert!(
        before
            .lines()
            .any(|line| line.trim_end() == "gr\u{fc}n red en42d"),
        "{before}"
    );
    pty.keys("deny\r");
    pty.prompt();
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    assert_eq!(raw.matches("en42d").count(), 1, "{raw}");
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn wide_letters_and_a_terminal_that_changes_its_size_are_edited_as_they_are_seen() {
    let home = settled("");
    let mut pty = start(&home);
    // One key takes back one letter, however wide it is.
    pty.keys("!echo \u{6f22}\u{5b57}\u{7f}e\u{301} > wide.txt\r");
    pty.sees("allow this?");
    pty.keys("once\r");
    pty.prompt();
    let text = |name: &str| std::fs::read_to_string(home.project().join(name)).unwrap();
    assert_eq!(text("wide.txt"), "\u{6f22}e\u{301}\n");
    let long = "a".repeat(70);
    pty.keys(&format!("!echo {long}"));
    pty.sees(&long);
    pty.resize(12, 40);
    pty.keys("b > long.txt\r");
    // The question before this one may still be on the screen.
    pty.until(|shown| {
        shown.contains(" 72 bytes, mode 644") && shown.trim_end().ends_with("[deny]:")
    });
    pty.keys("once\r");
    pty.until(|_| home.project().join("long.txt").exists());
    assert_eq!(text("long.txt"), format!("{long}b\n"));
    // The file is there before the prompt is, and what comes before the prompt is lost.
    pty.prompt();
    pty.keys("\u{4}");
    assert!(pty.ended().success());
}

#[test]
fn a_plan_is_seen_approved_and_carried_out_in_the_session_of_the_prompt() {
    let home = settled(
        "[models.planner]\nbackend = \"scripted\"\nmodel = \"m\"\nfile = \"script.jsonl\"\n",
    );
    let plan = |name: &str| {
        serde_json::json!({"version": 1, "summary": "as asked", "steps": [
            {"id": "w", "call": "create_file", "with": {"path": name, "text": "x"}}
        ]})
        .to_string()
    };
    let line = serde_json::json!({ "text": plan("made.txt") }).to_string();
    std::fs::write(home.path().join(".config/hermitcrab/script.jsonl"), line).unwrap();
    std::fs::write(home.path().join("plan.json"), plan("mine.txt")).unwrap();
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    for (words, file) in [
        ("plan --plan ../plan.json\r", "mine.txt"),
        ("/plan make me a file\r", "made.txt"),
    ] {
        pty.keys(words);
        pty.until(|shown| shown.contains(file) && shown.trim_end().ends_with("[n]:"));
        pty.keys("y\r");
        pty.prompt();
        assert!(home.project().join(file).exists(), "{}", pty.shown());
    }
    // The yes was to the plan: what it was granted with is nobody's afterwards.
    std::fs::remove_file(home.project().join("mine.txt")).unwrap();
    pty.keys("!echo again > mine.txt\r");
    pty.sees("allow this?");
    pty.keys("deny\r");
    pty.prompt();
    assert!(!home.project().join("mine.txt").exists());
    pty.keys("undo\r");
    pty.sees("took back commit");
    pty.prompt();
    assert!(!home.project().join("made.txt").exists());
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn without_colours_there_are_none_and_without_a_terminal_lines_do() {
    let home = settled("");
    let mut pty = Pty::start(&home, &[], &[("NO_COLOR", "1")]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("help\r");
    // Its last lines: the list is higher than the screen.
    pty.sees("the last records of the ledger");
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(
        !raw.contains("\u{1b}[32m") && !raw.contains("\u{1b}[1m"),
        "{raw}"
    );
    pty.keys("exit\r");
    assert!(pty.ended().success());

    let mut child = Command::new("setsid")
        .args(["--wait", env!("CARGO_BIN_EXE_hermitcrab")])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write as _;
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"tree\n!cat a.txt\n").unwrap();
    drop(keys);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.ends_with("/proj\n  a.txt\na\n"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
}

#[test]
fn each_call_of_a_model_is_seen_as_it_is_made_and_what_it_prints_is_folded() {
    let model = format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        model()
    );
    let home = settled(&model);
    let mut pty = start(&home);
    let works = json!([
        [["read_file", {"path": "a.txt"}], ["read_file", {"path": "nowhere.txt"}]],
        [["terminal", {"command": "seq 1 5000; echo b > a.txt"}]],
        [["write_file", {"path": "/etc/motd", "content": "x"}]],
        "all told",
    ]);
    pty.keys(&format!("{works}\r"));
    pty.sees("[deny]:");
    // It is longer than the screen.
    let shown = ansi::strip(&String::from_utf8_lossy(&pty.raw));
    let at = |part: &str| {
        shown
            .lines()
            .position(|line| line.trim_end() == part || line.ends_with(&format!("\r{part}")))
            .unwrap_or_else(|| panic!("{part}: {shown}"))
    };
    let read = at("  Read a.txt");
    let failed = at("    failed: File not found: nowhere.txt");
    let command = at("  $ seq 1 5000; echo b > a.txt");
    assert!(read < failed && failed < command, "{shown}");
    assert_eq!(at("20") + 1, at("[4970 more lines]"));
    assert_eq!(at("[4970 more lines]") + 10, at("5000"));
    pty.keys("deny\r");
    pty.sees("1 done, 1 failed, 2 refused");
    // Of the place outside nobody was asked, and how it is opened is said.
    pty.sees("`grant fs.read=DIR` opens one");
    let shown = pty.prompt();
    for part in [
        "    you said no",
        "  Write /etc/motd",
        "    Denied (no-cap): no capability held for this: `/etc/motd`",
    ] {
        assert!(
            shown.lines().any(|line| line.trim_end() == part),
            "{part}: {shown}"
        );
    }
    // A person's own command is shown whole.
    pty.keys("!seq 1 100 | sed s/^/own/\r");
    pty.sees("own100");
    pty.prompt();
    let shown = ansi::strip(&String::from_utf8_lossy(&pty.raw));
    let (_, shown) = shown.split_once("/^/own/").unwrap();
    assert!(
        shown.contains("own50") && !shown.contains("more lines"),
        "{shown}"
    );
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn an_interrupt_ends_the_wait_for_an_answer_to_a_models_question() {
    let model = format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        model()
    );
    let home = settled(&model);
    let mut pty = start(&home);
    let asks = json!([[["clarify", {"question": "Which one?", "choices": ["a", "b"]}]], "went on"]);
    // As it is typed the last word is spelt otherwise than as it is said.
    let typed = asks.to_string().replace("went on", "w\\u0065nt on");
    pty.keys(&format!("{typed}\r"));
    pty.sees("answer: ");
    pty.keys("\u{3}");
    let shown = pty.prompt();
    assert!(!shown.contains("went on"), "{shown}");
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn every_command_of_the_prompt_answers_and_the_prompt_comes_back() {
    let home = settled("");
    let mut pty = start(&home);
    for (keys, wanted) in [
        ("help", "the last records of the ledger"),
        ("tree", "a.txt"),
        ("mounts", "isolation"),
        ("grant fs.modify=.", "/proj, until this session ends"),
        ("caps", "kept beyond this session"),
        ("audit 5", "grant"),
        ("audit verify", "record"),
        ("servers", "no servers are configured"),
        ("cron", "there are no jobs"),
        ("session", "is a command of the program"),
        ("tree none", "none` is no directory"),
        ("grant fs.write=.", "making a file fs.create"),
        ("doctor", "store: holds"),
        ("config show", "models.quarantined.seed"),
        (
            "config set mode prompt",
            "it counts from the next session on; this one stays in mode prompt",
        ),
        ("config add-directory /usr/share", "/usr/share"),
        ("config remove-directory /usr/share", "/usr/share"),
        ("explain fs.delete a.txt", "fs.delete"),
        ("undo --list", "there is nothing to undo"),
        ("undo", "there is nothing to undo"),
        ("dry-run echo new > a.txt", "a.txt"),
        ("plan --plan no.json", "no.json"),
        ("/hlep", "did you mean `help`?"),
        ("revoke cap:99", "there is no grant `cap:99`"),
    ] {
        pty.keys("clear\r");
        pty.until(|shown| shown.trim() == ">");
        pty.keys(&format!("{keys}\r"));
        let shown = pty.until(|shown| {
            in_one_row(shown).contains(wanted)
                && shown.lines().last().is_some_and(|line| line.trim() == ">")
        });
        assert!(!shown.contains("panicked"), "{shown}");
    }
    assert_eq!(
        std::fs::read_to_string(home.project().join("a.txt")).unwrap(),
        "a\n"
    );
    pty.keys("\u{4}");
    assert!(pty.ended().success());
}

#[test]
fn a_no_that_is_remembered_is_told_as_one_and_what_forgets_it() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("!rm a.txt\r");
    pty.sees("[deny]:");
    pty.keys("never\r");
    pty.sees("you said no; what it changed is discarded");
    pty.prompt();
    pty.keys("!rm a.txt\r");
    pty.sees("not asked: you said `never` to exactly this before");
    let shown = pty.prompt();
    assert!(
        shown.replace('\n', "").contains("remembered clear"),
        "{shown}"
    );
    assert!(home.project().join("a.txt").exists());
}

#[test]
fn lines_are_completed_remembered_and_called_off() {
    let home = settled("");
    let mut pty = start(&home);
    // What is begun is completed: a command, a key, a file.
    pty.keys("tr\t\r");
    pty.sees("a.txt");
    pty.prompt();
    pty.keys("!cat a.t\t\r");
    pty.until(|shown| shown.contains("!cat a.txt") && shown.lines().any(|line| line.trim() == "a"));
    pty.prompt();
    // A line that is called off is not run, and the program goes on.
    pty.keys("!touch never\u{3}");
    pty.sees("!touch never");
    pty.keys("!echo once $((20 + 3))\r");
    pty.sees("once 23");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
    assert!(!home.project().join("never").exists());
    // The next program knows the lines of this one; one that begins with a blank is not kept.
    let mut pty = start(&home);
    pty.keys(" !echo secret-$((1 + 1))\r");
    pty.sees("secret-2");
    pty.prompt();
    pty.keys("clear\r");
    pty.until(|shown| shown.trim() == ">");
    pty.keys("\u{1b}[A\u{1b}[A\u{1b}[A");
    pty.sees("!echo once $((20 + 3))");
    pty.keys("\r");
    pty.sees("once 23");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
    let history = std::fs::read_to_string(home.state("history")).unwrap();
    assert!(
        !history.contains("secret") && history.contains("!cat a.txt"),
        "{history}"
    );
}

#[test]
fn a_conversation_grown_too_long_goes_on_and_its_account_is_not_shown() {
    let (tell, told) = std::sync::mpsc::channel();
    let read = std::sync::atomic::AtomicUsize::new(0);
    let base = backend(move |_, stream, body| {
        let message = if body.get("tools").is_none() {
            json!({"role": "assistant", "content": "ACCOUNT OF PARTS"})
        } else if body["messages"].to_string().contains("ACCOUNT OF PARTS") {
            tell.send(()).unwrap();
            json!({"role": "assistant", "content": "all told"})
        } else {
            let part = read.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let arguments = json!({"path": format!("part{part}.txt")}).to_string();
            let call = json!({"id": format!("c{part}"), "type": "function",
                "function": {"name": "read_file", "arguments": arguments}});
            json!({"role": "assistant", "content": null, "tool_calls": [call]})
        };
        let answer = json!({"choices": [{"message": message}]}).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.len()
        );
        send(stream, (head + &answer).as_bytes());
    });
    let home = settled(&format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{base}\"\ncontext_tokens = 16000\n"
    ));
    for part in 0..10 {
        let text = format!("line of part {part}\n").repeat(500);
        std::fs::write(home.project().join(format!("part{part}.txt")), text).unwrap();
    }
    let mut pty = start(&home);
    pty.keys("read all parts\r");
    pty.sees("all told");
    let shown = pty.prompt();
    assert!(shown.contains("came near what the model holds"), "{shown}");
    assert!(shown.contains("summed up"), "{shown}");
    assert!(!shown.contains("ACCOUNT"), "{shown}");
    told.try_recv().unwrap();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

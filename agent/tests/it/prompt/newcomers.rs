//! What somebody does who has not read how it is done.

use std::{io::Write as _, process::Stdio};

use super::{settled, start};
use crate::support::pty::{Pty, in_one_row};

/// A terminal in Latin-1 sends bytes that are no text, and half of a line is another line.
#[test]
fn a_line_that_is_no_text_is_left_out_whole_and_the_prompt_goes_on() {
    let home = settled("");
    for env in [&[][..], &[("TERM", "dumb")]] {
        let mut pty = Pty::start(&home, &[], env);
        pty.sees("or `help`.");
        pty.prompt();
        pty.bytes(b"!echo gr\xfc\xdfe; echo rest\r");
        let shown = pty.sees("a line that is not UTF-8 was left out, and nothing of it was done");
        assert!(!shown.lines().any(|line| line.trim() == "rest"), "{shown}");
        pty.prompt();
        pty.keys("!echo still here\r");
        pty.until(|shown| shown.lines().any(|line| line.trim_end() == "still here"));
        pty.prompt();
        pty.keys("exit\r");
        assert!(pty.ended().success());
    }
}

#[test]
fn a_line_of_a_file_that_is_no_text_is_told_and_the_others_are_worked_on() {
    let home = settled("");
    let script = home.project().join("answers.jsonl");
    std::fs::write(script, "{\"text\": \"said so\"}\n").unwrap();
    let backend = ["config", "backend", "scripted", "--model", "s", "--file"];
    home.ok(&[&backend[..], &["answers.jsonl"]].concat());
    let fed = |arguments: &[&str], lines: &[u8]| {
        let mut child = home
            .command(&home.project(), arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let told = "a line that is not UTF-8 was left out";
    let (code, out, err) = fed(&[], b"!echo gr\xfc\n!echo two\n");
    assert_eq!((code, out.as_str()), (Some(0), "two\n"), "{err}");
    assert!(err.contains(told), "{err}");
    let (code, _, err) = fed(&[], b"!echo two\n!echo gr\xfc\n");
    assert_eq!(code, Some(64), "{err}");
    let (code, out, err) = fed(&["chat"], b"gr\xfc\nhello\n");
    assert_eq!((code, out.as_str()), (Some(0), "said so\n"), "{err}");
    assert!(err.contains(told), "{err}");
}

#[test]
fn when_it_asks_is_said_and_set_at_the_prompt_for_this_session() {
    let home = settled("");
    let mut pty = start(&home);
    pty.keys("mode\r");
    pty.sees("prompt: what is not held is asked about");
    pty.prompt();
    pty.keys("mode reject_all\r");
    pty.sees("until this session ends");
    pty.prompt();
    pty.keys("!touch a1\r");
    let shown = pty.sees("grants it");
    let ways = "`dry-run COMMAND` shows all of it, `grant fs.create=a1` grants it";
    assert!(shown.contains("what it changed is discarded"), "{shown}");
    assert!(in_one_row(&shown).contains(ways), "{shown}");
    pty.prompt();
    pty.keys("mode approve_all\r");
    pty.sees("approve_all: ");
    pty.prompt();
    pty.keys("!touch a2\r");
    pty.sees("kept as commit");
    pty.prompt();
    home.ok(&["session", "mode", "reject_all"]);
    pty.keys("clear\r");
    pty.until(|shown| shown.trim() == ">");
    pty.keys("mounts\r");
    pty.sees("mode       reject_all");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
    assert!(!home.project().join("a1").exists() && home.project().join("a2").exists());
    let pty = start(&home);
    assert!(pty.shown().contains("mode       prompt"), "{}", pty.shown());
}

/// At the command line a number names a commit, at the prompt it is how many.
#[test]
fn more_changes_than_there_are_are_not_taken_back() {
    let home = settled("");
    let mut pty = start(&home);
    for name in ["one", "two"] {
        pty.keys(&format!("!touch {name}\r"));
        pty.until(|shown| shown.trim_end().ends_with("[deny]:"));
        pty.keys("once\r");
        pty.until(|shown| shown.trim_end().ends_with("takes it back\n>"));
        pty.prompt();
    }
    pty.keys("undo\r");
    pty.sees("took back commit 2");
    pty.prompt();
    pty.keys("undo 3\r");
    let shown = pty.sees("`undo commit 3` takes back commit 3");
    assert!(shown.contains("nothing was taken back"), "{shown}");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
    assert!(home.project().join("one").exists());
    let ran = home.run(&["undo", "--last", "9"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.err.contains("but 1 change;"), "{ran:?}");
    let ran = home.run(&["undo", "one"]);
    assert!(ran.err.contains("it is the number of a commit"), "{ran:?}");
    assert!(
        home.ok(&["undo", "--last", "1"])
            .contains("took back commit 1")
    );
    assert!(!home.project().join("one").exists());
}

#[test]
fn what_is_said_at_the_start_and_in_the_help_ends_its_rows_between_words() {
    let home = settled("");
    let mut pty = start(&home);
    pty.resize(60, 40);
    pty.keys("mounts\r");
    pty.sees("was just tried out");
    pty.prompt();
    let rows = pty.rows();
    let has = |wanted: &str| rows.iter().any(|row| row.trim_end() == wanted);
    assert!(has("           copy, without network, as"), "{rows:#?}");
    pty.keys("help grant\r");
    pty.sees("such as fs.modify=src");
    let rows = pty.rows();
    let has = |wanted: &str| rows.iter().any(|row| row.trim_end() == wanted);
    assert!(has("      grant something for this session,"), "{rows:#?}");
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

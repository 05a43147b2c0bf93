//! The prompt, as a person has it: keys in, a screen out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Stdio};

use crate::support::{home::Home, pty::Pty};

/// A home where the first start is over.
fn settled(config: &str) -> Home {
    let home = Home::new();
    home.configure(config);
    home
}

fn start(home: &Home) -> Pty {
    let mut pty = Pty::start(home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty
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
    pty.sees("took back commit");
    pty.prompt();
    assert_eq!(text(), "a\n");
    pty.keys("dry-run rm a.txt\r");
    pty.sees("a dry run, so nothing");
    pty.prompt();
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
fn without_colours_there_are_none_and_without_a_terminal_lines_do() {
    let home = settled("");
    let mut pty = Pty::start(&home, &[], &[("NO_COLOR", "1")]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("help\r");
    pty.sees("dry-run COMMAND");
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
fn the_first_start_asks_can_be_skipped_and_asks_nothing_twice() {
    let home = Home::new();
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("name of the model");
    pty.keys("\r");
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
    let mut pty = start(&home);
    assert!(!pty.shown().contains("first start"));
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

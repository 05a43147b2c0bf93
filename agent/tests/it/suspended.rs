//! ^Z, as for anything a shell starts: at the prompt, at a question, while a command runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{
    home::Home,
    pty::{Pty, at_prompt as start},
};

/// A shell with jobs, which is the user's when what it started is suspended.
const SHELL: [&str; 4] = [
    "/bin/bash",
    "-c",
    "set -m; \"$@\"; echo was''suspended; read -r _; fg; echo over: $?",
    "bash",
];

#[test]
fn who_was_suspended_goes_on_as_it_was_with_what_is_typed_and_what_runs() {
    let home = Home::new();
    home.configure("");
    let mut pty = Pty::start_under(&home, &SHELL, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("grant fs.*=.\r");
    pty.sees("until this session ends");
    pty.prompt();
    // While a command runs, which goes on: what it makes is decided afterwards.
    pty.keys("!echo be''gun; sleep 1; echo b > a.txt; echo do''ne\r");
    pty.sees("begun");
    pty.keys("\u{1a}");
    pty.sees("wassuspended");
    pty.keys("\r");
    pty.sees("done");
    pty.sees("kept as commit 1");
    pty.prompt();
    let text = std::fs::read_to_string(home.project().join("a.txt")).unwrap();
    assert_eq!(text, "b\n");
    pty.keys("exit\r");
    pty.sees("over: 0");
}

#[test]
fn a_prompt_that_was_suspended_has_the_terminal_and_the_line_again() {
    // A script that starts it is suspended along with it.
    let script = [&SHELL[..], &["/bin/sh", "-c", "\"$@\"; exit $?", "sh"]].concat();
    for starter in [&SHELL[..], &script] {
        let home = Home::new();
        home.configure("");
        let mut pty = Pty::start_under(&home, starter, &[], &[]);
        pty.sees("or `help`.");
        pty.prompt();
        pty.keys("mou");
        pty.sees("> mou");
        pty.keys("\u{1a}");
        let shown = pty.sees("wassuspended");
        assert!(!shown.contains("suspends nothing"), "{shown}");
        pty.keys("\r");
        pty.until(|shown| shown.trim_end().ends_with("> mou"));
        pty.keys("nts\r");
        pty.until(|shown| shown.matches("workspace ").count() == 2);
        pty.prompt();
        pty.keys("exit\r");
        pty.sees("over: 0");
    }
}

#[test]
fn a_question_is_there_again_after_a_suspension_and_unanswered_by_it() {
    let home = Home::new();
    let words = ["exec", "--", "echo b > a.txt"];
    let mut pty = Pty::start_under(&home, &SHELL, &words, &[]);
    pty.sees("[deny]:");
    pty.keys("onc\u{1a}");
    pty.sees("wassuspended");
    pty.keys("\r");
    pty.until(|shown| {
        let (_, after) = shown.split_once("wassuspended").unwrap_or_default();
        after.trim_end().ends_with("deny, ? [deny]:")
    });
    // What was typed of an answer before is no part of one.
    pty.keys("e\r");
    pty.sees("`e` is no answer here");
    pty.until(|shown| {
        let (_, after) = shown.split_once("`e` is no").unwrap_or_default();
        after.trim_end().ends_with("deny, ? [deny]:")
    });
    pty.keys("once\r");
    pty.sees("over: 0");
    let text = std::fs::read_to_string(home.project().join("a.txt")).unwrap();
    assert_eq!(text, "b\n");
}

#[test]
fn where_no_shell_would_have_it_go_on_it_is_said_that_nothing_is_suspended() {
    let home = Home::new();
    home.configure("");
    let mut pty = start(&home);
    pty.keys("mou");
    pty.sees("> mou");
    pty.keys("\u{1a}");
    pty.sees("^Z suspends nothing here");
    pty.until(|shown| shown.trim_end().ends_with("> mou"));
    pty.keys("nts\r");
    pty.until(|shown| shown.matches("workspace ").count() == 2);
    pty.prompt();
}

#[test]
fn what_is_started_from_outside_of_its_container_is_at_the_prompt_as_well() {
    // The kernel calls whoever is outside process 0. The second one has a session of its own.
    let inside = ["unshare", "-Urpf", "--mount-proc"];
    let spawned = ["python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])"];
    for (starter, is_nobodys) in [
        (inside.to_vec(), false),
        ([&inside[..], &spawned].concat(), true),
    ] {
        let home = Home::new();
        home.configure("");
        let mut pty = Pty::start_under(&home, &starter, &[], &[]);
        pty.sees("or `help`.");
        pty.prompt();
        if is_nobodys {
            pty.keys("\u{1a}");
            pty.sees("^Z suspends nothing here");
        }
        pty.keys("exit\r");
        assert!(pty.ended().success());
    }
}

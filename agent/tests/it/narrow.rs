//! What is said at the prompt: in a narrow terminal with whole words, and to whoever reads it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{
    home::Home,
    pty::{Pty, at_prompt},
};

fn narrow(home: &Home) -> Pty {
    let mut pty = at_prompt(home);
    pty.resize(24, 60);
    pty.keys("\u{c}");
    pty
}

/// The rows on the screen, without room at their ends.
fn rows(shown: &str) -> Vec<&str> {
    shown.lines().map(str::trim_end).collect()
}

#[test]
fn what_is_told_at_a_narrow_prompt_ends_its_rows_between_words() {
    let home = Home::new();
    home.configure("");
    let mut pty = narrow(&home);
    for (line, wanted) in [
        (
            "revoke grant99",
            &[
                "hermitcrab: there is no grant `grant99` in this session;",
                "  `caps` names them",
            ][..],
        ),
        (
            "mode reject_all",
            &[
                "until this session ends, reject_all: what is not held is",
                "  refused",
            ],
        ),
        (
            "undo commit 99",
            &[
                "hermitcrab: there is no commit 99; `undo --list` shows",
                "  those there are",
            ],
        ),
        (
            "servers",
            &[
                "no servers are configured; `hermitcrab servers --help`",
                "  shows how one is declared",
            ],
        ),
        ("help", &["      remove-directory|backend|import]"]),
    ] {
        pty.keys(&format!("{line}\r"));
        let shown = pty.until(|shown| {
            let rows = rows(shown);
            rows.windows(wanted.len()).any(|these| these == wanted)
        });
        assert!(!shown.contains("panicked"), "{shown}");
        pty.prompt();
    }
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn what_is_explained_at_the_prompt_is_what_this_session_does() {
    let home = Home::new();
    home.configure("");
    let mut pty = at_prompt(&home);
    for (line, wanted) in [
        ("explain fs.modify a.txt", "ask: fs.modify"),
        ("grant fs.modify=a.txt", "until this session ends"),
        ("explain fs.modify a.txt", "rule: builtin.held"),
        ("mode reject_all", "what is not held is refused"),
        ("explain fs.delete a.txt", "rule: builtin.mode-refuses"),
        // What is explained is opened for nobody.
        (
            "explain fs.read /usr/share/doc",
            "until then a model's call there",
        ),
        (
            "explain fs.read /usr/share/doc",
            "until then a model's call there",
        ),
    ] {
        pty.keys("clear\r");
        pty.until(|shown| shown.trim() == ">");
        pty.keys(&format!("{line}\r"));
        pty.sees(wanted);
        pty.prompt();
    }
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

/// That the next step is to ask the user is nothing to tell the user.
#[test]
fn a_no_to_a_command_that_was_not_begun_is_told_to_whoever_said_it() {
    let home = Home::new();
    home.configure("");
    let mut pty = at_prompt(&home);
    pty.keys("grant net.connect=127.0.0.1:9\r");
    pty.sees("until this session ends");
    pty.prompt();
    // What it printed may come from whom it was about to reach, and ask for the next one.
    pty.keys(
        "!exec 3<>/dev/tcp/127.0.0.1/3128; echo -e 'CONNECT 127.0.0.1:9 HTTP/1.1\\r\\n\\r' >&3; cat <&3\r",
    );
    pty.sees("does not answer");
    pty.prompt();
    pty.keys("!touch made\r");
    pty.sees("allow this?");
    pty.keys("deny\r");
    let shown = pty.sees("you said no, so it was not run");
    assert!(!shown.contains("Next step"), "{shown}");
    pty.prompt();
    assert!(!home.project().join("made").exists());
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

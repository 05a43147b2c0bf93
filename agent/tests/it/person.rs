//! A person at a terminal, asked by the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home;

use std::{
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use home::Home;
use serde_json::{Value, json};

/// What the person types each time they are asked, or that they close the terminal.
enum Person<'w> {
    Types(&'w [&'w str]),
    Leaves,
}

/// Removes a file in a terminal of its own; whether it is gone afterwards, and
/// what was on the screen. `None` without a program that makes terminals.
fn asked(home: &Home, person: &Person<'_>) -> Option<(bool, String)> {
    let program = env!("CARGO_BIN_EXE_hermitcrab");
    let line = format!("{program} exec -- rm a.txt; echo ended $?");
    let spawned = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut terminal = match spawned {
        Ok(terminal) => terminal,
        Err(_) => {
            println!("SKIPPED: no program `script` to make a terminal");
            return None;
        }
    };
    let mut keyboard = terminal.stdin.take();
    let mut screen = terminal.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 512];
    let mut answered = 0;
    loop {
        let got = screen.read(&mut piece).unwrap_or(0);
        if got == 0 {
            break;
        }
        seen.extend_from_slice(&piece[..got]);
        let asked = String::from_utf8_lossy(&seen).matches("[deny]: ").count();
        if asked > answered {
            answered += 1;
            match person {
                Person::Types(lines) => {
                    let words = lines.get(answered - 1).expect("asked too often");
                    let line = format!("{words}\n");
                    keyboard
                        .as_mut()
                        .unwrap()
                        .write_all(line.as_bytes())
                        .unwrap();
                }
                Person::Leaves => {
                    keyboard = None;
                    terminal.kill().unwrap();
                }
            }
        }
    }
    drop(keyboard);
    terminal.wait().unwrap();
    assert!(answered > 0, "{}", String::from_utf8_lossy(&seen));
    let gone = !home.project().join("a.txt").exists();
    Some((gone, String::from_utf8_lossy(&seen).into_owned()))
}

#[test]
fn only_a_clear_yes_at_the_terminal_is_one() {
    for (words, yes) in [
        ("once", true),
        ("session", true),
        ("deny", false),
        ("", false),
        ("no", false),
    ] {
        let home = Home::new();
        let Some((gone, screen)) = asked(&home, &Person::Types(&[words])) else {
            return;
        };
        assert_eq!(gone, yes, "`{words}`: {screen}");
        let ended = if yes { "ended 0" } else { "ended 77" };
        assert!(screen.contains(ended), "`{words}`: {screen}");
        assert_eq!(screen.contains("you said no;"), !yes, "`{words}`: {screen}");
        let is_told = screen.contains("kept as commit 1; `hermitcrab undo 1`");
        assert_eq!(is_told, yes, "`{words}`: {screen}");
    }
}

#[test]
fn other_words_are_explained_and_asked_about_again_and_are_never_a_yes() {
    for (lines, yes) in [
        (["yes", "y", "ONCE"].as_slice(), false),
        (["once or twice", "deny"].as_slice(), false),
        (["?", "once"].as_slice(), true),
    ] {
        let home = Home::new();
        let Some((gone, screen)) = asked(&home, &Person::Types(lines)) else {
            return;
        };
        assert_eq!(gone, yes, "{lines:?}: {screen}");
        let ended = if yes { "ended 0" } else { "ended 77" };
        assert!(screen.contains(ended), "{lines:?}: {screen}");
        assert_eq!(screen.matches("[deny]: ").count(), lines.len(), "{screen}");
        // A yes does not say how far it goes; what does is named.
        let meant = screen.contains("`yes` is no answer here: `once` is a yes to this");
        assert_eq!(meant, lines[0] == "yes", "{screen}");
        // They are explained once, however many come.
        let told = screen.matches("yes, this one time").count();
        assert_eq!(told, 1, "{screen}");
    }
}

#[test]
fn a_terminal_that_is_closed_is_no_yes() {
    let home = Home::new();
    let Some((gone, screen)) = asked(&home, &Person::Leaves) else {
        return;
    };
    assert!(!gone, "{screen}");
}

#[test]
fn always_is_kept_and_repeat_and_never_are_remembered() {
    let home = Home::new();
    let put = || std::fs::write(home.project().join("a.txt"), "a\n").unwrap();
    let Some((gone, screen)) = asked(&home, &Person::Types(&["never"])) else {
        return;
    };
    assert!(!gone, "{screen}");
    assert!(home.ok(&["remembered"]).contains("no to exactly fs.delete"));
    let place = home.project().join("a.txt");
    let told = home.ok(&["remembered", "list", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["said"], &told["counts"]),
        (&json!("no"), &json!(true))
    );
    let to = json!({"verb": "fs.delete", "on": place.to_str(), "below": false});
    assert_eq!(told["to"], to);
    // Nobody is asked, and the same answer is given.
    let ran = home.run(&["exec", "--mode", "prompt", "--", "rm a.txt"]);
    assert_eq!(ran.code, Some(77));
    assert!(home.ok(&["remembered", "clear"]).contains("1 forgotten"));
    assert!(home.ok(&["remembered"]).contains("nothing is remembered"));
    assert_eq!(home.ok(&["remembered", "list", "--json"]), "");

    let (gone, screen) = asked(&home, &Person::Types(&["always"])).unwrap();
    assert!(gone, "{screen}");
    assert!(home.ok(&["caps"]).contains("standing1  fs.delete only /"));
    put();
    let ran = home.run(&["exec", "--", "rm a.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.project().join("a.txt").exists());
}

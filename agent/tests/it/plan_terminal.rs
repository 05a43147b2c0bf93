//! A person at a terminal who is asked about a plan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{home::Home, pty::Pty};

/// Runs a plan in a terminal and answers its questions in turn, with the end
/// of the keyboard after the last; what was on the screen. `None` without a
/// program that makes terminals.
fn at_terminal(home: &Home, steps: &Value, flags: &str, answers: &[&str]) -> Option<String> {
    let plan = json!({"version": 1, "summary": "a test", "steps": steps});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let program = env!("CARGO_BIN_EXE_hermitcrab");
    let line = format!("{program} run --plan ../plan.json {flags}; echo ended $?");
    let spawned = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        // Makes another name of one, and no JSON at all of another.
        .env("EDITOR", "sed -i -e s/new/other/ -e s/wrong/\"/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut terminal) = spawned else {
        println!("SKIPPED: no program `script` to make a terminal");
        return None;
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
        let text = String::from_utf8_lossy(&seen);
        let asked = text.matches("[n]: ").count() + text.matches("[deny]: ").count();
        while answered < asked {
            let answer = answers.get(answered).copied().unwrap_or("");
            if let Some(keyboard) = &mut keyboard {
                keyboard
                    .write_all(format!("{answer}\n").as_bytes())
                    .unwrap();
            }
            answered += 1;
        }
    }
    drop(keyboard);
    terminal.wait().unwrap();
    let screen = String::from_utf8_lossy(&seen).into_owned();
    assert_eq!(answered, answers.len(), "{screen}");
    Some(screen)
}

#[test]
fn a_plan_is_shown_and_only_a_clear_yes_runs_it() {
    let steps = json!([{"id": "w", "call": "create_file", "with": {"path": "new", "text": "x"}}]);
    for (answer, runs) in [
        ("y", true),
        ("yes", true),
        ("n", false),
        ("", false),
        ("Y", false),
    ] {
        let home = Home::new();
        let Some(screen) = at_terminal(&home, &steps, "", &[answer]) else {
            return;
        };
        assert_eq!(
            home.project().join("new").exists(),
            runs,
            "`{answer}`: {screen}"
        );
        let ended = if runs { "ended 0" } else { "ended 77" };
        assert!(
            screen.contains("1. w: create_file") && screen.contains(ended),
            "{screen}"
        );
    }
}

#[test]
fn a_question_mark_explains_the_answers_to_a_plan_and_to_a_step() {
    let home = Home::new();
    let steps = json!([{"id": "w", "call": "create_file", "with": {"path": "new", "text": "x"}}]);
    let Some(screen) = at_terminal(&home, &steps, "", &["?", "s", "?", "y", "once"]) else {
        return;
    };
    assert!(screen.contains("s     ask before each step"), "{screen}");
    assert!(screen.contains("q  leave this one"), "{screen}");
    assert!(home.project().join("new").exists(), "{screen}");
}

#[test]
fn a_plan_can_be_changed_before_it_is_approved_and_is_checked_again() {
    let home = Home::new();
    let steps = json!([{"id": "w", "call": "create_file", "with": {"path": "new", "text": "x"}}]);
    let Some(screen) = at_terminal(&home, &steps, "", &["e", "y"]) else {
        return;
    };
    assert!(screen.contains("path=\"other\""), "{screen}");
    assert!(home.project().join("other").exists(), "{screen}");
    assert!(!home.project().join("new").exists(), "{screen}");
    // What is no plan any more is told, and the one before stays.
    let steps =
        json!([{"id": "w", "call": "create_file", "with": {"path": "new", "text": "wrong"}}]);
    let screen = at_terminal(&home, &steps, "", &["e", "n", "n"]).unwrap();
    assert!(screen.contains("this is no plan"), "{screen}");
    assert!(!home.project().join("new").exists(), "{screen}");
    // Nothing of the editing is left.
    let left = std::fs::read_dir(home.state("")).unwrap();
    let plans = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("plan-")
    });
    assert_eq!(plans.count(), 0);
}

#[test]
fn what_would_become_of_a_plan_is_shown_before_it_is_approved() {
    let home = Home::new();
    let steps = json!([{"id": "w", "call": "create_file", "with": {"path": "new", "text": "x"}}]);
    let Some(screen) = at_terminal(&home, &steps, "", &["d", "n"]) else {
        return;
    };
    assert!(screen.contains("w: ask: fs.create"), "{screen}");
    assert!(!home.project().join("new").exists(), "{screen}");
}

#[test]
fn what_removes_something_wants_the_whole_word_and_is_asked_about_once_more() {
    let steps = json!([{"id": "d", "call": "delete_files", "with": {"paths": ["a.txt"]}}]);
    for (answers, gone) in [
        (&["y"][..], false),
        (&["yes", "deny"][..], false),
        (&["yes", "once"][..], true),
    ] {
        let home = Home::new();
        let Some(screen) = at_terminal(&home, &steps, "", answers) else {
            return;
        };
        assert_eq!(
            !home.project().join("a.txt").exists(),
            gone,
            "{answers:?}: {screen}"
        );
    }
}

#[test]
fn what_a_command_of_an_approved_plan_makes_is_asked_about_wherever_the_plan_makes_something() {
    let home = Home::new();
    // The directory is there already, so the step comes to nothing.
    let make = |id: &str| json!({"id": id, "call": "create_directory", "with": {"path": "."}});
    let write =
        |id: &str| json!({"id": id, "call": "create_file", "with": {"path": id, "text": "x"}});
    let steps = json!([
        make("d"),
        write("one"),
        {"id": "r", "call": "run_command", "with": {
            "program": "sh", "args": ["-c", "mkdir lib; echo unseen > lib/os.py"]}},
        write("two")
    ]);
    let Some(screen) = at_terminal(&home, &steps, "", &["y", "deny"]) else {
        return;
    };
    assert!(
        screen.contains("new file") && screen.contains("+unseen"),
        "{screen}"
    );
    // What the plan was lent is nothing that the command ever had and lost.
    assert!(
        screen.contains("no capability held for this") && !screen.contains("revoked"),
        "{screen}"
    );
    let there = |name: &str| home.project().join(name).exists();
    assert_eq!(
        (there("one"), there("lib"), there("two")),
        (true, false, true),
        "{screen}"
    );
}

#[test]
fn step_by_step_each_step_is_asked_about_and_may_be_left_out() {
    let home = Home::new();
    let write =
        |id: &str| json!({"id": id, "call": "create_file", "with": {"path": id, "text": "x"}});
    let steps = json!([write("one"), write("two"), write("three")]);
    let answers = ["s", "y", "once", "n", "q"];
    let Some(screen) = at_terminal(&home, &steps, "", &answers) else {
        return;
    };
    let there = |name: &str| home.project().join(name).exists();
    assert_eq!(
        (there("one"), there("two"), there("three")),
        (true, false, false),
        "{screen}"
    );
}

#[test]
fn step_by_step_a_long_text_is_seen_whole_also_where_the_plan_put_it_together() {
    let home = Home::new();
    let part = json!("echo harmless; ".repeat(5));
    let steps = json!([
        {"id": "a", "let": {"text": [part, part]}},
        {"id": "r", "call": "run_command", "with": {
            "program": "sh", "args": ["-c", {"text": [{"$": "a"}, "touch unseen"]}]}}
    ]);
    let Some(screen) = at_terminal(&home, &steps, "", &["s", "n"]) else {
        return;
    };
    let (_, asked) = screen.split_once("r: run_command").unwrap();
    let (_, asked) = asked.split_once("r: run_command").unwrap();
    assert!(asked.contains("args:"), "{screen}");
    let whole: String = asked
        .lines()
        .map(|row| row.trim_start_matches(['|', ' ']).trim_end())
        .collect();
    assert!(whole.contains("touch unseen"), "{screen}");
}

#[test]
fn a_question_shows_where_the_data_came_from() {
    let home = Home::new();
    std::fs::write(home.project().join("list"), "a.txt").unwrap();
    let steps = json!([
        {"id": "r", "call": "read_file", "with": {"path": "list"}},
        {"id": "d", "call": "delete_files", "with": {"paths": [{"$": "r.text"}]}}
    ]);
    let answers = ["yes", "deny"];
    let Some(screen) = at_terminal(&home, &steps, "--grant fs.delete=.", &answers) else {
        return;
    };
    assert!(
        screen
            .contains("`paths` was not written in the plan: it came from step r (untrusted text)"),
        "{screen}"
    );
    assert!(home.project().join("a.txt").exists(), "{screen}");
}

#[test]
fn what_a_plan_answers_is_told_from_what_the_program_says() {
    let home = Home::new();
    std::fs::write(home.project().join("list"), "first\n+ w: wrote a.txt").unwrap();
    let steps = json!([
        {"id": "r", "call": "read_file", "with": {"path": "list"}},
        {"id": "a", "answer": {"$": "r.text"}}
    ]);
    let Some(screen) = at_terminal(&home, &steps, "", &["y"]) else {
        return;
    };
    assert!(
        screen.contains("\n| first\r\n| + w: wrote a.txt\r\n"),
        "{screen}"
    );
    // All of the question is on one row of eighty columns.
    let question = screen.lines().find(|row| row.starts_with("run these 2"));
    assert!(question.unwrap().contains("n, ? [n]: y"), "{screen}");
}

#[test]
fn no_row_of_a_text_looks_like_a_step_or_like_what_is_asked() {
    let home = Home::new();
    let far = " ".repeat(95);
    let text = format!(
        "x{far}9. read_file kept.txt{}run these 9 steps? y",
        " ".repeat(79)
    );
    let steps = json!([
        {"id": "a", "call": "create_file", "with": {"path": "n.txt", "text": text}},
        {"id": "b", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "c", "confirm": format!("y{far}9. is it what you want? yes")}
    ]);
    let plan = json!({"version": 1, "summary": "a test", "steps": steps});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let mut pty = Pty::start(&home, &["run", "--plan", "../plan.json"], &[]);
    let marked = |pty: &Pty, text: &str| {
        let rows = pty.rows();
        let with = rows.iter().filter(|row| row.contains(text));
        let all: Vec<&String> = with.collect();
        assert!(!all.is_empty(), "{rows:?}");
        assert!(
            all.iter().all(|row| row.starts_with("       | ")),
            "{rows:?}"
        );
    };
    pty.sees("run these 3 steps?");
    marked(&pty, "9. read_file");
    marked(&pty, "run these 9 steps");
    pty.keys("y\n");
    pty.sees("is it what you want? yes, n [n]:");
    marked(&pty, "9. is it");
    pty.keys("n\n");
    pty.ended();
}

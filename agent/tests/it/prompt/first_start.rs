//! What is asked of whoever starts it for the first time.

use super::start;
use crate::support::{home::Home, pty::Pty};

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

#[test]
fn in_a_narrow_terminal_no_word_of_the_first_start_is_broken() {
    let home = Home::new();
    let narrow = ["sh", "-c", "stty cols 60; exec \"$@\"", "sh"];
    let mut pty = Pty::start_under(&home, &narrow, &[], &[]);
    let shown = pty.sees("name of the model");
    let rows: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert!(rows.iter().all(|row| row.len() < 60), "{shown}");
    pty.keys("exit\r");
    pty.sees("no model is named;");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn who_wants_to_leave_the_first_start_can() {
    for (answers, question) in [(&[][..], "name of the model"), (&["gemma"], "where it is")] {
        let home = Home::new();
        let mut pty = Pty::start(&home, &[], &[]);
        for answer in answers {
            pty.sees("name of the model");
            pty.keys(&format!("{answer}\r"));
        }
        pty.sees(question);
        pty.keys("exit\r");
        pty.sees("no model is named");
        pty.prompt();
        pty.keys("exit\r");
        assert!(pty.ended().success());
        let file = home.path().join(".config/hermitcrab/config.toml");
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains("gemma"), "{text}");
    }
}

#[test]
fn the_first_start_asks_again_for_an_address_that_is_none() {
    let home = Home::new();
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("name of the model");
    for typed_ahead in ["help", "!ls"] {
        pty.keys(&format!("{typed_ahead}\r"));
        // What is typed before the question stands there again is no answer to it.
        pty.until(|shown| {
            shown.contains(&format!("no model is called `{typed_ahead}`"))
                && shown.trim_end().ends_with("[none]:")
        });
    }
    pty.keys("gemma\r");
    pty.sees("where it is");
    pty.keys("localhost:8080\r");
    pty.sees("does not begin with http://");
    pty.keys("http://127.0.0.1:9/v1\r");
    pty.sees("holds its key");
    pty.keys("\u{4}");
    pty.sees("gemma at http://127.0.0.1:9/v1");
    pty.prompt();
    let file = home.path().join(".config/hermitcrab/config.toml");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.starts_with("# hermitcrab's configuration."), "{text}");
    assert!(!text.contains("localhost"), "{text}");
    pty.keys("hi there\r");
    pty.sees("at `http://127.0.0.1:9/v1`");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn the_first_start_called_off_names_no_model() {
    let home = Home::new();
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("name of the model");
    pty.keys("gemma\r");
    pty.sees("where it is");
    pty.keys("\u{3}");
    pty.sees("model      none");
    pty.prompt();
    let file = home.path().join(".config/hermitcrab/config.toml");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(!text.contains("gemma"), "{text}");
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

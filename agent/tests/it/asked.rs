//! What whoever is asked can find out before they answer, and what a word of help says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{home::Home, pty::Pty};

fn start() -> (Home, Pty) {
    let home = Home::new();
    home.configure("");
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    (home, pty)
}

/// All that came, without what draws it.
fn came(pty: &Pty) -> String {
    hermitcrab::text::ansi::strip(&String::from_utf8_lossy(&pty.raw)).replace("\r\n", "\n")
}

/// Asks what can be answered, until the question is there again.
fn explained(pty: &mut Pty) {
    pty.keys("?\r");
    pty.until(|shown| shown.matches("[deny]:").count() == 2);
}

#[test]
fn the_grants_that_hold_all_of_a_directory_are_told_to_whoever_asks() {
    let (home, mut pty) = start();
    let build = |what: &str| {
        format!("!mkdir -p out/deep; for i in 1 2 3; do echo {what} > out/deep/$i; done\r")
    };
    pty.keys(&build("one"));
    pty.sees("[deny]:");
    explained(&mut pty);
    let dir = home.project().canonicalize().unwrap().join("out");
    let told = format!("`grant fs.create={}` at the prompt", dir.display());
    pty.keys("once\r");
    pty.prompt();
    pty.keys("clear\r");
    pty.until(|shown| !shown.contains("[deny]:"));
    assert!(came(&pty).contains(&told), "{told}: {}", came(&pty));
    pty.keys(&build("two"));
    pty.sees("[deny]:");
    explained(&mut pty);
    pty.keys("deny\r");
    pty.prompt();
    let told = told
        .replace("create", "modify")
        .replace("/out`", "/out/deep`");
    assert!(came(&pty).contains(&told), "{told}: {}", came(&pty));
    pty.keys("grant fs.modify=out\r");
    pty.sees("fs.modify on");
    pty.prompt();
    pty.keys(&build("two"));
    pty.sees("kept as commit 2");
    pty.prompt();
    let text = std::fs::read_to_string(home.project().join("out/deep/3")).unwrap();
    assert_eq!(text, "two\n");
}

#[test]
fn of_a_single_file_and_of_a_name_that_is_more_than_one_word_no_grant_is_told() {
    let (_home, mut pty) = start();
    for command in [
        "!echo b > a.txt\r",
        "!mkdir 'a b'; for i in 1 2 3; do echo x > \"a b/$i\"; done\r",
    ] {
        pty.keys(command);
        pty.sees("[deny]:");
        explained(&mut pty);
        pty.keys("deny\r");
        pty.prompt();
    }
    assert!(!came(&pty).contains("to hold all below"), "{}", came(&pty));
}

#[test]
fn help_knows_each_command_by_its_name() {
    let (_home, mut pty) = start();
    pty.keys("help undo\r");
    pty.sees("take back the last change");
    pty.prompt();
    assert!(!came(&pty).contains("grant something"), "{}", came(&pty));
    pty.keys("help config\r");
    pty.sees("https://api.example.com");
    pty.prompt();
    assert!(!came(&pty).contains("hermitcrab: Show"), "{}", came(&pty));
    pty.keys("help me\r");
    pty.sees("no model is configured");
    pty.prompt();
}

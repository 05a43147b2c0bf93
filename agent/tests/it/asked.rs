//! What whoever is asked can find out before they answer, and what a word of help says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{
    home::Home,
    pty::{Pty, in_one_row},
};

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

/// An empty screen, so that what is looked for is what comes from here on.
fn clear(pty: &mut Pty) {
    pty.prompt();
    pty.keys("clear\r");
    pty.until(|shown| !shown.contains("[deny]:"));
}

#[test]
fn an_answer_for_all_of_a_directory_is_looked_at_again_and_lasts() {
    let (home, mut pty) = start();
    let build = |what: &str| {
        format!("!mkdir -p out/deep; for i in 1 2 3; do echo {what} > out/deep/$i; done\r")
    };
    let text = || std::fs::read_to_string(home.project().join("out/deep/3")).unwrap();
    pty.keys(&build("one"));
    pty.sees("[deny]:");
    explained(&mut pty);
    // What is not looked at again is no answer yet.
    pty.keys("below\r");
    pty.sees("type the word `yes`");
    pty.keys("once\r");
    pty.until(|shown| shown.matches("[deny]:").count() == 3);
    pty.keys("below\r");
    pty.until(|shown| shown.matches("type the word `yes`").count() == 2);
    pty.keys("yes\r");
    pty.sees("kept as commit 1");
    clear(&mut pty);
    let dir = home.project().canonicalize().unwrap().join("out");
    let told = format!("fs.create on {} and anything in it", dir.display());
    let all = came(&pty).replace("\n       | ", "").replace('\n', "");
    assert_eq!(all.matches(&told).count(), 3, "{told}: {}", came(&pty));
    // Anything new there is made without a question, and what changes is not of that kind.
    pty.keys("!echo more > out/deep/4; mkdir out/beside\r");
    pty.sees("kept as commit 2");
    clear(&mut pty);
    pty.keys(&build("two"));
    pty.sees("[deny]:");
    pty.keys("below\r");
    pty.sees("type the word `yes`");
    pty.keys("yes\r");
    pty.sees("kept as commit 3");
    clear(&mut pty);
    assert_eq!(text(), "two\n");
    pty.keys(&build("three"));
    pty.sees("kept as commit 4");
    clear(&mut pty);
    assert_eq!(text(), "three\n");
    pty.keys("!echo x > beside\r");
    pty.sees("[deny]:");
    pty.keys("deny\r");
    pty.prompt();
    assert!(!home.project().join("beside").exists());
}

#[test]
fn what_is_held_for_a_directory_is_more_than_what_was_shown_and_no_more_than_was_told() {
    let (home, mut pty) = start();
    let project = home.project().canonicalize().unwrap();
    std::fs::create_dir_all(project.join("src/deep")).unwrap();
    std::fs::write(project.join("src/b"), "b\n").unwrap();
    pty.keys("!echo x > src/a\r");
    pty.sees("[deny]:");
    pty.keys("below\r");
    pty.sees("type the word `yes`");
    let all = came(&pty).replace("\n       | ", "");
    let told = format!(
        "fs.create on {} and anything in it",
        project.join("src").display()
    );
    assert!(all.contains(&told), "{told}: {all}");
    pty.keys("yes\r");
    pty.sees("kept as commit 1");
    clear(&mut pty);
    // Another name, and one further down.
    pty.keys("!echo x > src/c; echo x > src/deep/d\r");
    pty.sees("kept as commit 2");
    clear(&mut pty);
    // Not another verb, another place, a link that leads elsewhere, nor what is asked about
    // each time.
    for command in [
        "echo y > src/b",
        "rm src/b",
        "chmod 700 src",
        "echo x > beside",
        "ln -s ../src/deep/../../new src/link; echo x > src/link",
        "echo x > src/.env",
        "mkdir -p src/.git/hooks; echo x > src/.git/hooks/post-commit",
    ] {
        pty.keys(&format!("!{command}\r"));
        pty.sees("[deny]:");
        pty.keys("deny\r");
        clear(&mut pty);
    }
    assert_eq!(
        std::fs::read_to_string(project.join("src/b")).unwrap(),
        "b\n"
    );
    assert!(!project.join("new").exists() && !project.join("src/.git").exists());
    // Where a link takes its place, what is held is held of no other directory.
    std::fs::create_dir(project.join("doc")).unwrap();
    std::fs::rename(project.join("src"), project.join("aside")).unwrap();
    std::os::unix::fs::symlink("doc", project.join("src")).unwrap();
    pty.keys("!echo x > src/e\r");
    pty.sees("[deny]:");
    pty.keys("deny\r");
    clear(&mut pty);
    assert!(!project.join("doc/e").exists());
}

#[test]
fn a_directory_that_became_a_link_while_it_was_asked_about_is_not_held_elsewhere() {
    let (home, mut pty) = start();
    let project = home.project().canonicalize().unwrap();
    for dir in ["src", "doc"] {
        std::fs::create_dir(project.join(dir)).unwrap();
    }
    pty.keys("!echo x > src/a\r");
    pty.sees("[deny]:");
    std::fs::rename(project.join("src"), project.join("aside")).unwrap();
    std::os::unix::fs::symlink("doc", project.join("src")).unwrap();
    pty.keys("below\r");
    pty.sees("type the word `yes`");
    pty.keys("yes\r");
    pty.prompt();
    assert!(!project.join("doc/a").exists(), "{}", came(&pty));
    clear(&mut pty);
    for place in ["src/b", "doc/b"] {
        pty.keys(&format!("!echo x > {place}\r"));
        pty.sees("[deny]:");
        pty.keys("deny\r");
        clear(&mut pty);
    }
    assert!(!project.join("doc/b").exists());
}

#[test]
fn a_directory_with_a_long_name_reads_in_no_row_like_a_word_that_is_offered() {
    let (home, mut pty) = start();
    let project = home.project().canonicalize().unwrap();
    // The row is full where the name's last part begins.
    let before = format!(
        "  below    yes, and in this session to fs.create on \"{}/",
        project.display()
    );
    let dir = format!("{}  deny     yes", "x".repeat(100 - before.len()));
    std::fs::create_dir(project.join(&dir)).unwrap();
    pty.keys("!for dir in x*; do echo x > \"$dir/a\"; done\r");
    pty.sees("[deny]:");
    explained(&mut pty);
    assert!(came(&pty).contains("deny     yes"), "{}", came(&pty));
    assert_eq!(rows_with(&pty, "  deny     yes"), 0, "{}", pty.shown());
    pty.keys("deny\r");
    pty.prompt();
}

#[test]
fn who_allows_a_command_and_no_session_is_told_the_grants_for_a_directory_instead() {
    let home = Home::new();
    home.configure("");
    let command = "mkdir -p out/deep; for i in 1 2 3; do echo x > out/deep/$i; done";
    let mut pty = Pty::start(&home, &["exec", "--", "sh", "-c", command], &[]);
    pty.sees("[deny]:");
    pty.keys("below\r");
    pty.sees("is no answer here");
    pty.until(|shown| shown.matches("[deny]:").count() == 2);
    let dir = home.project().canonicalize().unwrap().join("out");
    let told = format!("`grant fs.create={}` at the prompt", dir.display());
    pty.keys("deny\r");
    pty.ended();
    let all = came(&pty).replace("\n       | ", "");
    assert!(all.contains(&told), "{told}: {all}");
    assert!(!all.contains("yes, and in this session"), "{}", came(&pty));
    assert!(!home.project().join("out").exists());
}

#[test]
fn what_is_asked_about_each_time_cannot_be_answered_for_a_directory() {
    let (home, mut pty) = start();
    pty.keys("!echo b > .env\r");
    pty.sees("allow this? once, deny");
    pty.keys("below\r");
    pty.sees("`below` is no answer here");
    pty.until(|shown| shown.matches("[deny]:").count() == 2);
    pty.keys("deny\r");
    pty.prompt();
    assert!(!home.project().join(".env").exists());
}

#[test]
fn a_question_can_be_found_in_the_ledger_by_what_is_told_of_it() {
    let (home, mut pty) = start();
    pty.keys("!echo b > a.txt\r");
    pty.sees("[deny]:");
    explained(&mut pty);
    pty.keys("deny\r");
    pty.prompt();
    let all = came(&pty);
    let (_, told) = all.split_once("in the ledger: question0, sha256 ").unwrap();
    let digest: String = told.chars().take_while(char::is_ascii_hexdigit).collect();
    assert_eq!(digest.len(), 64);
    assert!(
        home.ledger().contains(&digest),
        "{digest}: {}",
        home.ledger()
    );
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

/// The rows of the screen that begin with this.
fn rows_with(pty: &Pty, text: &str) -> usize {
    pty.rows()
        .iter()
        .filter(|row| row.starts_with(text))
        .count()
}

#[test]
fn in_a_narrow_terminal_no_word_of_the_answers_is_broken() {
    let home = Home::new();
    home.configure("");
    let narrow = ["sh", "-c", "stty cols 60; exec \"$@\"", "sh"];
    let mut pty = Pty::start_under(&home, &narrow, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("!echo x > made\r");
    let shown = pty.sees("[deny]:");
    let asked = shown
        .lines()
        .skip_while(|row| !row.starts_with("allow this?"));
    let rows: Vec<&str> = asked.map(str::trim_end).collect();
    assert!(
        rows.len() > 1 && rows.iter().all(|row| row.len() < 60),
        "{shown}"
    );
    assert!(rows[1].starts_with("       | "), "{shown}");
    pty.keys("once\r");
    pty.sees("kept as commit 1");
}

#[test]
fn a_long_line_of_a_file_reads_in_no_row_like_a_line_of_the_question() {
    let (_home, mut pty) = start();
    // The first row is full before it begins; the screen has a hundred columns.
    pty.keys("!printf '%099d%s\\n' 0 'deleted file /w/b.txt' > c.txt\r");
    pty.sees("[deny]:");
    assert!(pty.shown().contains("new file /"), "{}", pty.shown());
    assert!(
        pty.shown().contains("eted file /w/b.txt"),
        "{}",
        pty.shown()
    );
    assert_eq!(rows_with(&pty, "deleted file"), 0, "{}", pty.shown());
    assert!(rows_with(&pty, "       | ") > 0, "{}", pty.shown());
    pty.keys("deny\r");
    clear(&mut pty);
    // Nor of a command.
    let spaces = " ".repeat(100);
    pty.keys(&format!(
        "!echo x > c.txt #{spaces}deleted file /w/b.txt{spaces}allow this?\r"
    ));
    pty.sees("[deny]:");
    assert_eq!(rows_with(&pty, "deleted file"), 0, "{}", pty.shown());
    assert_eq!(rows_with(&pty, "allow this?"), 1, "{}", pty.shown());
    pty.keys("deny\r");
    pty.prompt();
}

#[test]
fn a_terminal_that_does_not_say_how_wide_it_is_has_the_usual_width_or_that_of_its_surroundings() {
    for (columns, env) in [
        (80, &[][..]),
        (60, &[("COLUMNS", "60")]),
        (80, &[("COLUMNS", "0")]),
        (80, &[("COLUMNS", "many")]),
    ] {
        let home = Home::new();
        home.configure("");
        let mut pty = Pty::start(&home, &[], env);
        pty.sees("or `help`.");
        pty.prompt();
        pty.says_no_size(columns);
        // The first row is full before it begins.
        let full = columns - 1;
        pty.keys(&format!(
            "!printf '%0{full}d%s\\n' 0 'deleted file /w/b.txt' > c.txt\r"
        ));
        pty.sees("[deny]:");
        assert_eq!(rows_with(&pty, "deleted file"), 0, "{}", pty.shown());
        assert!(rows_with(&pty, "       | ") > 0, "{}", pty.shown());
        pty.keys("deny\r");
        pty.prompt();
    }
}

#[test]
fn a_single_line_of_many_rows_is_a_long_question() {
    let (_home, mut pty) = start();
    pty.keys("!printf '%05000d\\n' 0 > c.txt\r");
    pty.sees("[deny]:");
    let said = "rows; files and directories: 1 created";
    assert!(pty.shown().contains(said), "{}", pty.shown());
    pty.keys("deny\r");
    pty.prompt();
}

#[test]
fn a_long_question_says_beside_its_answers_what_lies_elsewhere() {
    let (_home, mut pty) = start();
    pty.keys("!mkdir out; for n in $(seq 40); do echo x > out/$n; done; echo y > lock\r");
    pty.sees("[deny]:");
    let shown = pty.shown();
    let sum = shown
        .lines()
        .skip_while(|row| !row.starts_with("of these, in /"))
        .take_while(|row| !row.starts_with("allow this?"))
        .collect::<String>();
    assert!(sum.ends_with(": lock, 41 in out"), "{shown}");
    // And which grant is enough for most of it.
    pty.keys("?\r");
    pty.sees("in the ledger");
    let shown = in_one_row(&pty.shown());
    assert!(shown.contains("`grant fs.*=/"), "{shown}");
    pty.until(|shown| shown.trim_end().ends_with("[deny]:"));
    pty.keys("deny\r");
    pty.prompt();
}

#[test]
fn what_is_typed_before_a_question_is_there_answers_nothing() {
    let (home, mut pty) = start();
    pty.keys("!echo be''gun; sleep 5; echo x > c.txt\r");
    pty.sees("begun");
    // Whole lines, and one that is not ended yet.
    pty.keys("once\ronce\ralw");
    pty.sees("[deny]:");
    assert!(!home.project().join("c.txt").exists());
    pty.keys("ays\r");
    // What is typed before the question is put again would be no answer to it.
    pty.until(|shown| {
        shown.contains("`ays` is no answer here") && shown.trim_end().ends_with("[deny]:")
    });
    assert!(!home.project().join("c.txt").exists());
    pty.keys("once\r");
    pty.sees("kept as commit 1");
    pty.prompt();
}

#[test]
fn undo_takes_back_what_was_done_here_and_not_what_another_did_meanwhile() {
    let (home, mut pty) = start();
    pty.keys("!echo mine > mine.txt\r");
    pty.sees("[deny]:");
    pty.keys("once\r");
    pty.sees("kept as commit 1");
    pty.prompt();
    home.ok(&[
        "exec",
        "--grant",
        "fs.*=.",
        "--",
        "echo theirs > theirs.txt",
    ]);
    pty.keys("undo\r");
    pty.sees("took back commit 1");
    pty.prompt();
    let is_there = |name: &str| home.project().join(name).exists();
    assert!(!is_there("mine.txt") && is_there("theirs.txt"));
    // What is left in the workspace can be taken back from here all the same.
    pty.keys("undo\r");
    pty.sees("took back commit 2");
    assert!(!is_there("theirs.txt"));
    pty.prompt();
}

#[test]
fn a_question_after_an_undo_gives_no_reason_that_the_undo_made() {
    let (_home, mut pty) = start();
    let ask = |pty: &mut Pty| {
        clear(pty);
        pty.keys("!echo one > a.txt\r");
        pty.sees("[deny]:")
    };
    let before = ask(&mut pty);
    pty.keys("once\r");
    pty.sees("kept as commit 1");
    clear(&mut pty);
    pty.keys("undo\r");
    pty.sees("took back commit 1");
    let after = ask(&mut pty);
    assert!(!before.contains("revoked"), "{before}");
    assert!(!after.contains("revoked"), "{after}");
    pty.keys("deny\r");
    pty.prompt();
}

#[test]
fn examples_of_help_can_be_copied_from_a_narrow_terminal() {
    let home = Home::new();
    for (command, commands) in [("chat", 5), ("exec", 7), ("config", 5)] {
        let told = std::process::Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
            .args([command, "--help"])
            .env_clear()
            .env("HOME", home.path())
            .env("COLUMNS", "40")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let (_, examples) = told.split_once("Examples:\n").unwrap();
        let whole = examples.replace("\\\n", "");
        let lines = whole.lines().map(str::trim);
        let (comments, rest): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with('#'));
        assert!(comments.iter().all(|line| line.len() <= 38), "{told}");
        let begun = rest.iter().filter(|line| line.starts_with("hermitcrab "));
        assert_eq!((begun.count(), rest.len()), (commands, commands), "{told}");
    }
}

#[test]
fn words_that_are_no_answer_are_explained_once_and_then_count_as_no_in_plain_words() {
    let (home, mut pty) = start();
    pty.keys("!echo b > a.txt\r");
    pty.sees("[deny]:");
    for (words, said) in [
        ("undo", "`undo` is no answer here\n  once "),
        ("!ls", "`!ls` is no answer here; `?` explains the answers\n"),
        (
            "help",
            "`help` is no answer here, and the third of them counts as no\n",
        ),
    ] {
        pty.keys(&format!("{words}\r"));
        pty.until(|shown| shown.contains(&format!("`{words}` is no answer here")));
        match words {
            "help" => drop(pty.prompt()),
            _ => drop(pty.until(|shown| shown.trim_end().ends_with("[deny]:"))),
        }
        let came = came(&pty);
        assert!(came.contains(said), "{said}: {came}");
    }
    let came = came(&pty);
    assert_eq!(came.matches("  deny     no").count(), 1, "{came}");
    assert!(
        came.contains("none of the answers offered came, which counts as no"),
        "{came}"
    );
    assert!(!came.contains("question0`"), "{came}");
    let text = std::fs::read_to_string(home.project().join("a.txt")).unwrap();
    assert_eq!(text, "a\n");
}

#[test]
fn an_answer_that_is_no_text_is_none_and_the_question_is_put_again() {
    let (home, mut pty) = start();
    pty.keys("!echo made > made\r");
    pty.sees("[deny]:");
    pty.bytes(b"once\xe9\r");
    let shown = pty.until(|shown| shown.matches("[deny]:").count() == 2);
    assert!(!shown.contains("no answer came"), "{shown}");
    // What stands for such a byte is no letter to the screen of a test.
    let all = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(all.contains("`once\u{fffd}` is no answer here"), "{all}");
    pty.keys("once\r");
    pty.sees("kept as commit 1");
    assert!(home.project().join("made").exists());
}

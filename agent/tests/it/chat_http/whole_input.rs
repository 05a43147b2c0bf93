//! All of the standard input as one message.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use super::{backend, bench, hermitcrab, says};

#[test]
fn a_dash_says_all_of_the_standard_input_at_once_and_nothing_is_never_said() {
    let dir = bench();
    let (base, asked) = backend(vec![says("hello")]);
    let mut chat = Command::new("setsid")
        .args(["--wait", env!("CARGO_BIN_EXE_hermitcrab")])
        .args(["chat", "--model", "m", "--base-url", &base, "-"])
        .current_dir(dir.path().join("proj"))
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let words = "what is wrong?\n\nerror: one\nerror: two\n";
    chat.stdin
        .take()
        .unwrap()
        .write_all(words.as_bytes())
        .unwrap();
    let output = chat.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let asked = asked.join().unwrap();
    let [(_, request)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let messages = request["messages"].as_array().unwrap();
    let said = messages.iter().find(|one| one["role"] == "user").unwrap();
    assert_eq!(said["content"], words);
    // What is empty is not worth a request.
    for empty in ["", " ", "-"] {
        let refused = hermitcrab(
            dir.path(),
            &["chat", "--model", "m", "--base-url", &base, empty],
        );
        assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    }
}

//! What is said beside a refusal: what would help, and only where it would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use crate::support::home::Home;

/// One call that writes a file, with nobody to ask.
fn written(home: &Home, name: &str) -> String {
    let arguments = format!(r#"{{"path": "{name}", "content": "A=1\n"}}"#);
    let ran = home.run(&["call", "write_file", &arguments]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join(name).exists());
    ran.err
}

#[test]
fn a_refused_call_names_a_grant_only_where_one_would_help() {
    let home = Home::new();
    let told = written(&home, "b.txt");
    assert!(told.contains("--grant"), "{told}");
    let told = written(&home, ".env");
    assert!(
        told.contains("is asked about each time, whatever is granted: do this at a terminal"),
        "{told}"
    );
    assert!(!told.contains("--grant"), "{told}");
}

#[test]
fn a_dry_run_names_whom_it_does_not_reach_and_says_nothing_where_there_is_nobody() {
    let home = Home::new();
    let dry = ["exec", "--dry-run"];
    let run = ["--", "true"];
    let ran = home.run(&[&dry[..], &run].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let peer = ["--grant", "net.connect=127.0.0.1:9"];
    let ran = home.run(&[&dry[..], &peer, &run].concat());
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            Some(0),
            "hermitcrab: a dry run reaches nobody, so not net.connect=127.0.0.1:9\n"
        ),
        "{ran:?}"
    );
}

/// What only holds a peer is not asked about, and of what reaches one it is said why it is.
#[test]
fn what_was_discarded_because_a_peer_was_reached_is_told_with_the_peer() {
    let home = Home::new();
    let held = [
        "exec",
        "--grant",
        "fs.*=.",
        "--grant",
        "net.connect=127.0.0.1:9",
    ];
    let reaches = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT 127.0.0.1:9 HTTP/1.1\\r\\n\\r\\n' >&3; \
                   read -r line <&3; echo x > reached";
    let ran = home.run(&[&held[..], &["--", reaches]].concat());
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(
        ran.err.contains(
            "it reached out, as it may to 127.0.0.1:9, and what such a command makes is asked about"
        ),
        "{ran:?}"
    );
    assert!(!home.project().join("reached").exists());
    for grants in [&held[..], &held[..3]] {
        let ran = home.run(&[grants, &["--", "echo x > made"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        std::fs::remove_file(home.project().join("made")).unwrap();
    }
}

#[test]
fn what_is_explained_of_a_place_that_is_not_open_says_so() {
    let home = Home::new();
    let shut = "until then a model's call there is refused without a question";
    for (verb, place, is_shut) in [
        ("fs.read", "/usr/share/doc", true),
        ("fs.create", "new.txt", false),
    ] {
        let told = home.ok(&["explain", "--mode", "prompt", verb, place]);
        assert!(told.starts_with("ask: "), "{told}");
        assert_eq!(told.contains(shut), is_shut, "{told}");
    }
}

#[test]
fn a_configuration_that_cannot_be_begun_anew_is_put_back() {
    let home = Home::new();
    let file = home.configure("mode = \"reject_all\"\n");
    // Names can change there, and nothing can be written.
    let ran = Command::new("sh")
        .args(["-c", "ulimit -f 0; exec \"$0\" config reset"])
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success(), "{told}");
    assert!(
        told.contains("cannot put a new file in the place of"),
        "{told}"
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "mode = \"reject_all\"\n"
    );
    assert!(!file.with_extension("toml.1").exists());
}

//! A directory that only ever gets more names (`chattr +a`), as one of logs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{path::PathBuf, process::Command};

use crate::support::home::Home;

/// Ends with the test: nothing removes what lies in such a directory.
struct AppendOnly(PathBuf);

impl AppendOnly {
    fn of(dir: PathBuf) -> Option<Self> {
        let done = Command::new("chattr").arg("+a").arg(&dir).output();
        done.is_ok_and(|done| done.status.success())
            .then_some(Self(dir))
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for AppendOnly {
    fn drop(&mut self) {
        let done = Command::new("chattr").arg("-a").arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

/// Neither a tool nor a command leaves a name there that nothing can remove, and nothing that
/// is half done keeps what comes after it from being done.
#[test]
fn in_a_directory_that_only_grows_nothing_is_left_and_nothing_is_half_done() {
    let home = Home::new();
    let dir = home.project().join("log");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("old"), "old\n").unwrap();
    let Some(log) = AppendOnly::of(dir) else {
        println!("SKIPPED: no directory can be made append-only here (chattr +a)");
        return;
    };
    for path in ["log/new", "log/old", "log/sub/deep/new"] {
        let arguments = format!("{{\"path\": \"{path}\", \"content\": \"x\\n\"}}");
        let call = ["call", "--grant", "fs.*=.", "write_file", &arguments];
        let ran = home.run(&call);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(log.names(), ["old"], "{path}");
    }
    for line in [
        "echo b > b.txt; echo a > log/new; mkdir log/sub",
        "mkdir -p log/sub/deep; echo a > log/sub/deep/new",
        "echo more >> log/old",
        "rm log/old",
    ] {
        let ran = home.run(&["exec", "--grant", "fs.*=.", "--", line]);
        assert_ne!(ran.code, Some(0), "{line}: {ran:?}");
        // Whoever removes a name there is refused by the system at once.
        let told = ["(not-writable)", "Operation not permitted"];
        assert!(
            told.iter().any(|told| ran.err.contains(told)),
            "{line}: {ran:?}"
        );
        assert_eq!(log.names(), ["old"], "{line}");
        assert!(!home.project().join("b.txt").exists());
        // What it lies in can be worked in as before.
        home.ok(&["exec", "--grant", "fs.*=.", "--", "date > a.txt"]);
    }
    // Nor is a commit taken back by halves that was made before.
    home.ok(&[
        "exec",
        "--grant",
        "fs.*=.",
        "--",
        "mkdir logs; echo a > logs/a; echo c > c.txt",
    ]);
    let Some(logs) = AppendOnly::of(home.project().join("logs")) else {
        panic!("it could be done before");
    };
    let ran = home.run(&["undo"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(logs.names(), ["a"]);
    assert!(home.project().join("c.txt").exists());
    drop(logs);
    home.ok(&["undo"]);
    assert!(!home.project().join("logs").exists());
    assert!(!home.project().join("c.txt").exists());
}

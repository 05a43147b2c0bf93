//! Root's agent where no file system takes an id map, as in most containers: the program
//! as it is, in mounts of its own, over a project that is an overlay.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{home::Home, pty::Pty};

/// Makes the working directory an overlay, and starts the rest in it.
const OVER: &str = "mkdir ../upper ../work && \
    mount -t overlay overlay -o lowerdir=.,upperdir=../upper,workdir=../work \"$PWD\" && \
    cd \"$PWD\" || exit 96; exec \"$@\"";
const STARTER: [&str; 7] = [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    OVER,
];

/// A project of root's, if root may mount here.
fn project() -> Option<Home> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root's commands have ids of their own");
        return None;
    }
    let home = Home::new();
    home.configure("");
    let at = |name: &str| home.project().join(name);
    for (name, text, mode) in [
        ("own.txt", "first\n", 0o644),
        ("secret.txt", "hidden\n", 0o600),
    ] {
        std::fs::write(at(name), text).unwrap();
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::set_permissions(home.project(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let tried = Command::new(STARTER[0])
        .args(&STARTER[1..])
        .args(["sh", "true"])
        .current_dir(home.project())
        .status()
        .unwrap();
    if !tried.success() {
        println!("SKIPPED: no overlay can be mounted here");
        return None;
    }
    for dir in ["upper", "work"] {
        std::fs::remove_dir_all(home.path().join(dir)).unwrap();
    }
    Some(home)
}

#[test]
fn a_command_of_roots_changes_roots_file_once_that_is_approved_and_undo_takes_it_back() {
    let Some(home) = project() else {
        return;
    };
    let mut starter = STARTER.to_vec();
    starter.push("sh");
    let mut pty = Pty::start_under(&home, &starter, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("!cat secret.txt; sed -i s/first/second/ own.txt; echo made > made.txt; stat -c %U:%a own.txt\r");
    let asked = pty.sees("allow this?");
    assert!(asked.contains("+second"), "{asked}");
    let changed = home.path().join("upper/own.txt");
    assert!(!changed.exists());
    pty.keys("once\r");
    pty.sees("kept as commit 1");
    pty.prompt();
    let said = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(said.contains("hidden"), "{said}");
    assert!(said.contains("root:644"), "{said}");
    assert_eq!(std::fs::read_to_string(&changed).unwrap(), "second\n");
    for name in ["own.txt", "made.txt"] {
        let stat = std::fs::metadata(home.path().join("upper").join(name)).unwrap();
        assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o777), (0, 0, 0o644));
    }
    pty.keys("undo\r");
    pty.sees("took back commit 1");
    pty.prompt();
    assert_eq!(std::fs::read_to_string(&changed).unwrap(), "first\n");
    assert_eq!(std::fs::metadata(&changed).unwrap().uid(), 0);
    assert!(!home.path().join("upper/made.txt").is_file());
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn the_doctor_says_that_views_are_copied_because_of_their_owners_and_what_is_lost() {
    let Some(home) = project() else {
        return;
    };
    let ran = Command::new(STARTER[0])
        .args(&STARTER[1..])
        .args(["sh", env!("CARGO_BIN_EXE_hermitcrab"), "doctor"])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        // Where it tries everything out.
        .env("TMPDIR", home.project())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    for part in [
        "copy-on-write view: copy, because owners cannot be translated there",
        "rights to what is root's in directories beyond half of a command's memory",
        "so it is copied",
        "isolation: isolated",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn where_nothing_is_copied_for_its_owners_a_command_that_fails_says_why() {
    let Some(home) = project() else {
        return;
    };
    let call = |settings: &str| -> Value {
        home.configure(settings);
        let command = "cat secret.txt && echo more >> own.txt";
        let ran = Command::new(STARTER[0])
            .args(&STARTER[1..])
            .args(["sh", env!("CARGO_BIN_EXE_hermitcrab"), "call"])
            .args(["--grant", "fs.*=.", "terminal"])
            .arg(json!({ "command": command }).to_string())
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .output()
            .unwrap();
        for dir in ["upper", "work"] {
            std::fs::remove_dir_all(home.path().join(dir)).unwrap();
        }
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    };
    let copied = call("");
    assert_eq!(
        (&copied["exit_code"], &copied["output"]),
        (&json!(0), &json!("hidden")),
        "{copied}"
    );
    assert_eq!(copied["owners"], Value::Null);
    let strange = call("[sandbox]\ncopy_for_owners = false\n");
    assert_eq!(strange["exit_code"], 1, "{strange}");
    let why = strange["owners"].as_str().unwrap();
    assert!(why.contains("stranger's rights there"), "{why}");
    // Beyond half of a command's memory nothing is copied either.
    std::fs::write(home.project().join("big"), vec![1; 40 << 20]).unwrap();
    let big = call("[limits]\nmemory_max_mb = 64\n");
    let why = big["owners"].as_str().unwrap_or_else(|| panic!("{big}"));
    assert!(why.contains("which is what a copy may hold"), "{why}");
}

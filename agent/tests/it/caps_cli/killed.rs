//! A store whose program is killed, or has no room.

use super::{REMOVE, with_grant};
use crate::support::home::Home;

/// A command killed at any time leaves a store with all it had answered for.
#[test]
fn the_program_killed_while_it_keeps_things_loses_nothing_it_said_it_kept() {
    const ROUNDS: u32 = 20;
    let home = Home::new();
    let program = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(arguments)
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command
    };
    let started = std::time::Instant::now();
    assert!(
        program(&["caps", "grant", "fs.modify=first"])
            .status()
            .unwrap()
            .success()
    );
    let whole = started.elapsed();
    let mut said = vec!["first".to_owned()];
    let mut killed = 0;
    for round in 0..ROUNDS {
        let name = format!("kept{round}");
        let mut child = program(&["caps", "grant", &format!("fs.modify={name}")])
            .spawn()
            .unwrap();
        std::thread::sleep(whole * round / ROUNDS);
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            said.push(name);
        } else {
            killed += 1;
        }
        let listed = home.ok(&["caps"]);
        for name in &said {
            assert!(
                listed.contains(&format!("proj/{name}\n")),
                "round {round}: {name} is lost:\n{listed}"
            );
        }
        home.ok(&["audit", "verify"]);
    }
    assert!(killed > 0, "nothing was killed");
    assert_eq!(home.run(&["doctor"]).code, Some(0));
}

/// No room for the store: nothing is kept, and nothing that was is lost.
#[test]
fn a_store_that_cannot_grow_is_told_and_left_as_it_was() {
    let home = with_grant();
    let program = env!("CARGO_BIN_EXE_hermitcrab");
    // The signal of the limit is ignored, so writing fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f 16; exec {program} caps grant fs.modify=more");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let listed = home.ok(&["caps"]);
    assert!(
        listed.contains("fs.delete") && !listed.contains("fs.modify"),
        "{listed}"
    );
    assert_eq!(home.run(&["doctor"]).code, Some(0));
    assert_eq!(home.run(&REMOVE).code, Some(0));
}

//! Programs that begin in a home nobody worked in before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Child, Command, Stdio};

use crate::support::home::Home;

/// A program that asks for `number` to be kept, running.
fn keeping(home: &Home, number: usize) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["caps", "grant", &format!("fs.modify=f{number}")])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn programs_that_begin_at_once_in_a_new_home_all_begin() {
    for _ in 0..3 {
        let home = Home::new();
        let children: Vec<_> = (0..4).map(|number| keeping(&home, number)).collect();
        let mut kept = 0;
        for (number, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                kept += 1;
                let listed = home.ok(&["caps"]);
                assert!(listed.contains(&format!("/f{number}")), "{listed}");
            } else {
                // One that waited for the others for too long says so.
                assert!(said.contains("in use by another process"), "{said}");
            }
        }
        assert!(kept > 0, "nobody's grant was kept");
    }
}

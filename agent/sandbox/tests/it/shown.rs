//! Files every sandbox shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::path::PathBuf;

use hermitcrab_sandbox::Sandbox;
use support::{Workspace, run_in, text};

/// Where nothing of the machine is shown.
const HOME: &str = "/home/somebody-of-this-test";

fn showing(at: &str) -> Sandbox {
    Sandbox::builder()
        .spawner(support::spawner())
        .showing(PathBuf::from(at), "shown\n")
        .build()
}

#[test]
fn a_file_is_shown_in_a_home_that_is_not_and_nobody_writes_it() {
    let workspace = Workspace::new();
    let script = format!(
        "cd {HOME} && ls -A && cat .name; echo x >> .name; rm -f .name; touch other; cat .name; stat -c %a .name"
    );
    let sandbox = showing(&format!("{HOME}/.name"));
    for _ in 0..2 {
        let finished = run_in(&sandbox, &workspace.command(&script)).unwrap();
        let said = text(&finished);
        let plain: Vec<&str> = said.lines().filter(|line| !line.contains(": ")).collect();
        assert_eq!(plain, [".name", "shown", "shown", "444"], "{said}");
        assert!(finished.changes[0].is_empty());
    }
}

#[test]
fn a_directory_that_is_shown_lies_over_it() {
    let workspace = Workspace::new();
    workspace.file("own", "own\n");
    let mut command = workspace.command("ls -A");
    command.views[0].at = PathBuf::from(HOME);
    command.cwd = PathBuf::from(HOME);
    let finished = run_in(&showing(&format!("{HOME}/.name")), &command).unwrap();
    assert_eq!(text(&finished), "own\n");
}

#[test]
fn where_no_file_can_be_made_there_is_none_and_commands_run() {
    let workspace = Workspace::new();
    for at in [
        "/usr/bin/env",
        "/etc/passwd",
        "/.name",
        "/home/../etc/name",
        "/proc/name",
        "home/name",
        "/",
        "",
    ] {
        let script = format!("grep -sx shown '{at}' /etc/name /.name; echo ran");
        let finished = run_in(&showing(at), &workspace.command(&script)).unwrap();
        assert_eq!(text(&finished), "ran\n", "{at:?}");
    }
}

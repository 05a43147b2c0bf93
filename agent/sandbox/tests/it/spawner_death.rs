//! The sandbox does not outlive the process that built it.
//!
//! Alone in its file: it kills every child of the test process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::Duration;

use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::spawn::Step;
use support::{Workspace, children, marker, processes_with, run};

#[test]
fn the_sandbox_dies_with_its_spawner() {
    let workspace = Workspace::new();
    let marker = marker(93);
    let script = format!("exec sleep {marker}");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&workspace.command(&script)));
        while processes_with(&marker) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        for child in children() {
            let pid = rustix::process::Pid::from_raw(child).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        let error = running.join().unwrap().unwrap_err();
        assert!(
            matches!(&error, SpawnError::Step(error) if error.step() == Step::Talk),
            "{error}"
        );
        while processes_with(&marker) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

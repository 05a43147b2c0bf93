//! The sandbox does not outlive the processes that built it and that wait for it.
//!
//! Alone in their file: one kills every child of the test process.
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

/// What stands around the second run of the test below: the number it sleeps.
const DOOMED: &str = "hermitcrab-doomed";

#[test]
fn an_agent_that_is_killed_leaves_no_process_and_no_group() {
    let name = "spawner_death::an_agent_that_is_killed_leaves_no_process_and_no_group";
    if let Ok(marker) = std::fs::read_to_string(DOOMED) {
        let workspace = Workspace::new();
        let script =
            format!("setsid sleep {marker} & setsid -f sleep {marker}; exec sleep {marker}");
        let running = support::start(&workspace.command(&script));
        std::fs::write("written", support::sandbox().helpers()[0].to_string()).unwrap();
        std::fs::rename("written", "spawner").unwrap();
        // Nobody here comes to the end of this.
        let _ended = running.wait();
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let marker = marker(9_931);
    std::fs::write(place.path().join(DOOMED), &marker).unwrap();
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let mut agent = std::process::Command::new(own)
        .args(["--exact", name])
        .current_dir(place.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = |what: &dyn Fn() -> bool| {
        let patience = std::time::Instant::now();
        while !what() {
            assert!(patience.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let spawner = place.path().join("spawner");
    until(&|| processes_with(&marker) == 3 && spawner.exists());
    let spawner: u32 = std::fs::read_to_string(spawner).unwrap().parse().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    until(&|| processes_with(&marker) == 0);
    until(&|| !std::path::Path::new(&format!("/proc/{spawner}")).exists());
    assert_eq!(
        support::groups_of(spawner),
        Vec::<std::path::PathBuf>::new()
    );
}

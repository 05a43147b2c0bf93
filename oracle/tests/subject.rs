//! Workers that are lost in the middle of a case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bisim::subject::{Processes, Restarting, Start, Subject};
use bisim_world::protocol::{Context, Drive, End, Job, Step, StepOutcome, UserModel, WorldSpec};
use serde_json::json;

fn job(command: &str) -> Job {
    Job {
        world: Some(WorldSpec {
            cwd: "/home/u/proj".into(),
            files: Vec::new(),
            flip: None,
        }),
        context: Context::Interactive,
        user: UserModel::DenyAll,
        held: Vec::new(),
        settings: serde_json::Map::new(),
        drive: Drive::Calls,
        script: vec![Step::Call {
            tool: "terminal".into(),
            args: json!({"command": command}),
            by: None,
        }],
        deadline_ms: 60_000,
    }
}

fn agent(processes: &Processes) -> Option<Restarting> {
    let start = Start::Agent {
        program: env!("CARGO_BIN_EXE_bisim").into(),
        isolation: "isolated".into(),
        fault: None,
    };
    let mut agent = Restarting::new(start, processes.clone(), None);
    match agent.ready() {
        Ok(_) => Some(agent),
        Err(error) => {
            println!("SKIPPED: the agent's worker does not start here: {error}");
            None
        }
    }
}

#[test]
fn a_worker_killed_in_mid_case_is_reported_and_the_next_case_gets_a_new_one() {
    let processes = Processes::default();
    let Some(mut agent) = agent(&processes) else {
        return;
    };
    // The script itself is not on any command line; what it starts is.
    let marker = format!("50.0{}", std::process::id());
    let killer = {
        let (processes, marker) = (processes.clone(), marker.clone());
        std::thread::spawn(move || {
            while running(&marker) == 0 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            processes.end_all();
        })
    };
    let lost = agent.run(job(&format!("sleep {marker}"))).unwrap_err();
    killer.join().unwrap();
    assert_eq!(lost.stage, "talk to worker");
    while running(&marker) > 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let trace = agent.run(job("echo back")).unwrap();
    assert_eq!(trace.end, End::Finished);
    assert_eq!(trace.steps[0].outcome, StepOutcome::Ran);
    assert!(trace.steps[0].text.contains("back"));
}

fn running(marker: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
        })
        .count()
}

//! Workers that are lost in the middle of a case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use bisim::case::{Case, Defaults};
use bisim::generate::Specimen;
use bisim::subject::{Processes, Restarting, Start, Subject};
use bisim_world::flip::Seen;
use bisim_world::protocol::{Context, Drive, End, Job, Step, StepOutcome, UserModel, WorldSpec};
use bisim_world::protocol::{FsEffect, RawTrace};
use serde_json::json;

fn job(command: &str) -> Job {
    Job {
        world: Some(WorldSpec {
            cwd: "/home/u/proj".into(),
            files: Vec::new(),
            flip: None,
            serves: None,
            conversations: Vec::new(),
        }),
        context: Context::Interactive,
        user: UserModel::DenyAll,
        held: Vec::new(),
        rules: Vec::new(),
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

/// A run of the agent that is killed right before this change to files, and goes on.
fn cut_off(
    agent: &mut Restarting,
    operation: &str,
    before: u32,
) -> (Seen, Vec<FsEffect>, RawTrace) {
    let name = format!("crash:{operation}~{before}");
    let file = Specimen::named(&name).unwrap().case_file().unwrap();
    let case = Case::resolve("generated", &Defaults::default(), file);
    let trace = agent.run(case.job).unwrap();
    let first = trace.steps.first().unwrap();
    assert_eq!(first.outcome, StepOutcome::Ran, "{name}: {first:?}");
    let seen = serde_json::from_value(first.answer.clone()).unwrap();
    (seen, first.effects.clone(), trace)
}

#[test]
fn a_kill_in_the_middle_of_a_call_leaves_all_of_it_or_nothing_and_the_agent_works_on() {
    let processes = Processes::default();
    let Some(mut agent) = agent(&processes) else {
        return;
    };
    // A commit of many changes, and a file with the directory on the way to it.
    for (operation, changes_min, effects_min, stride) in
        [("command-many", 21, 6, 7), ("write-new", 11, 2, 3)]
    {
        // Nobody makes so many changes: it is killed once the call is over.
        let (seen, whole, _) = cut_off(&mut agent, operation, 160);
        assert!(!seen.cut && seen.changes >= changes_min, "{seen:?}");
        assert!(whole.len() >= effects_min, "{whole:?}");
        let last = u32::try_from(seen.changes).unwrap();
        let mut left = BTreeSet::new();
        for before in (1..=last).step_by(stride).chain([last]) {
            let (seen, effects, trace) = cut_off(&mut agent, operation, before);
            assert!(seen.cut, "{operation}~{before}: {seen:?}");
            assert_eq!(seen.changes + 1, u64::from(before));
            assert!(
                effects.is_empty() || effects == whole,
                "{operation}~{before}: {effects:?}"
            );
            left.insert(effects.is_empty());
            assert_eq!(trace.end, End::Finished, "{operation}~{before}");
            let after = trace.steps.last().unwrap();
            let made = |effect: &FsEffect| effect.path.ends_with("/cz/after.txt");
            assert!(
                after.effects.iter().any(made),
                "{operation}~{before}: {after:?}"
            );
        }
        assert_eq!(left.len(), 2, "both ends of {operation} were seen");
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
        let marker = marker.clone();
        std::thread::spawn(move || {
            while running(&marker) == 0 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            kill_workers();
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

/// Kills the children of this process, each with its group; the run is not told.
fn kill_workers() {
    let own = format!("PPid:\t{}", std::process::id());
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(number) = name.parse::<i32>() else {
            continue;
        };
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        if status.lines().any(|line| line == own) {
            let worker = nix::unistd::Pid::from_raw(number);
            let _gone = nix::sys::signal::killpg(worker, nix::sys::signal::Signal::SIGKILL);
        }
    }
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

//! No process, mount, descriptor, zombie or file stays behind.
//!
//! Alone in its file: it counts what the whole test process has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::Duration;

use hermitcrab_sandbox::spawn::Ending;
use support::{Workspace, children, marker, processes_with, run, sandbox};

#[test]
fn nothing_is_left_behind_by_good_and_failing_runs() {
    const RUNS: u32 = 50;
    let workspace = Workspace::new();
    let marker = marker(94);
    let census = || {
        // What was used is replaced by now.
        sandbox().settle();
        (
            std::fs::read_to_string("/proc/self/mountinfo")
                .unwrap()
                .lines()
                .count(),
            std::fs::read_dir("/proc/self/fd").unwrap().count(),
            std::fs::read_dir(workspace.path()).unwrap().count(),
            children().len(),
            processes_with(&marker),
        )
    };
    // Whatever is set up once is set up before the first count, and the pool
    // is as full as it gets.
    workspace.run("true");
    workspace.run("true");
    let before = census();
    for number in 0..RUNS {
        let finished = workspace.run(&format!("echo {number} > f; (setsid sleep {marker} &)"));
        assert_eq!(finished.ending, Ending::Exited(0));
        finished.changes.into_iter().for_each(|set| set.discard());

        let mut command = workspace.command("true");
        match number % 4 {
            0 => command.argv = vec![b"no-such-program".to_vec()],
            1 => command.cwd = "/no/such/dir".into(),
            2 => command.views[0].at = "/usr".into(),
            _ => {
                command.argv = vec![b"sleep".to_vec(), marker.clone().into_bytes()];
                command.limits.timeout = Duration::from_millis(20);
            }
        }
        let result = run(&command);
        assert!(
            result.is_err()
                || matches!(&result, Ok(finished) if finished.ending == Ending::TimedOut),
            "{result:?}"
        );
    }
    assert_eq!(census(), before);
}

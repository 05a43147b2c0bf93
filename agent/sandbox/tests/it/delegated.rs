//! Groups of version 2 alone, delegated to an ordinary user.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::Duration;

use hermitcrab_sandbox::spawn::Ending;
use support::arranged::{Run, UNSHARE, twice};
use support::time::out_of_time;
use support::{Workspace, marker, processes_with, run, text};

/// Nobody on any machine.
const USER: u32 = 1_234_567;
/// What the kernel offers to limit below the delegated group, where the second run begins.
const OFFERED: &str = "offered";

/// Version 2 alone, with a group that belongs to the user; `inside` is the part of it the
/// agent is in.
fn arrange(group: &str, inside: &str) -> String {
    // Version 1 is out of sight, as where there is none.
    format!(
        "two=
        while read -r _ _ _ _ at rest; do case $rest in
            *' - cgroup2 '*) two=$at ;;
            *' - cgroup '*) umount -l \"$at\" || exit 77 ;;
        esac; done < /proc/self/mountinfo
        [ -n \"$two\" ] || exit 77
        for controller in memory cpu pids; do
            echo +$controller > \"$two/cgroup.subtree_control\" || :
        done
        mkdir -p \"$two/{group}/{inside}\" && cat \"$two/{group}/cgroup.controllers\" > {OFFERED} &&
        chown -R {USER}:{USER} \"$two/{group}\" && echo $$ > \"$two/{group}/{inside}/cgroup.procs\""
    )
}

fn in_a_delegated_group(name: &str, inside: &str) {
    let group = format!("hermitcrab_delegated-{}", std::process::id());
    let starting = format!("setpriv --reuid={USER} --regid={USER} --clear-groups");
    match twice(name, &UNSHARE, &arrange(&group, inside), &starting) {
        Some(Run::Inner) => inner(),
        Some(Run::Outer) | None => remove(&group),
    }
}

#[test]
fn a_command_of_an_ordinary_user_is_born_in_a_group_of_version_two_and_killed_by_it() {
    in_a_delegated_group(
        "delegated::a_command_of_an_ordinary_user_is_born_in_a_group_of_version_two_and_killed_by_it",
        "agent",
    );
}

#[test]
fn an_agent_that_is_alone_in_its_group_of_version_two_makes_room_for_commands_below_it() {
    in_a_delegated_group(
        "delegated::an_agent_that_is_alone_in_its_group_of_version_two_makes_room_for_commands_below_it",
        ".",
    );
}

fn inner() {
    let workspace = Workspace::new();
    let offered = std::fs::read_to_string(OFFERED).unwrap();
    let is_offered = |name: &str| offered.split_whitespace().any(|offer| offer == name);
    for _ in 0..3 {
        let finished = workspace.run("echo ran; grep ^0: /proc/self/cgroup");
        // From inside, its own group is the topmost.
        assert_eq!(text(&finished), "ran\n0::/\n");
        let limited = finished.confined.limited;
        assert!(limited.kill, "{:?}", finished.confined);
        // All that is offered holds, whatever that is on this machine.
        assert_eq!(
            [limited.memory, limited.cpu, limited.processes],
            ["memory", "cpu", "pids"].map(is_offered),
            "{:?}",
            finished.confined
        );
    }
    let marker = marker(9_801);
    let script = format!("(setsid sleep {marker} &); sleep {marker}");
    let mut command = workspace.command(&script);
    let soon = Duration::from_millis(500);
    out_of_time(support::sandbox(), &mut command, soon, |_| {
        processes_with(&marker) == 2
    });
    assert_eq!(processes_with(&marker), 0);
    if is_offered("memory") {
        let mut command = workspace.command("exec perl -e '$x = q(x) x (400 << 20); sleep 9'");
        command.limits.memory_bytes_max = 64 << 20;
        assert_eq!(run(&command).unwrap().ending, Ending::OutOfMemory);
    }
}

/// What was made for the second run; the kernel has it empty a moment later.
fn remove(group: &str) {
    for root in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
        let outer = std::path::Path::new(root).join(group);
        for _ in 0..500 {
            // What the agent made for itself goes when it has gone.
            let below = std::fs::read_dir(&outer).into_iter().flatten().flatten();
            for entry in below.filter(|entry| entry.path().is_dir()) {
                let _removed = std::fs::remove_dir(entry.path());
            }
            if std::fs::remove_dir(&outer).is_ok() || !outer.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!outer.exists(), "{}", outer.display());
    }
}

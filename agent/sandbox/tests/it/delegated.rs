//! Groups of version 2 alone, delegated to an ordinary user.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::Duration;

use hermitcrab_sandbox::spawn::Ending;
use support::arranged::{Run, UNSHARE, twice};
use support::{Workspace, marker, processes_with, run, text};

/// Nobody on any machine.
const USER: u32 = 1_234_567;

#[test]
fn a_command_of_an_ordinary_user_is_born_in_a_group_of_version_two_and_killed_by_it() {
    let name = "delegated::a_command_of_an_ordinary_user_is_born_in_a_group_of_version_two_and_killed_by_it";
    let group = format!("hermitcrab_delegated-{}", std::process::id());
    // Version 1 is out of sight, as where there is none.
    let arrange = format!(
        "two=
        while read -r _ _ _ _ at rest; do case $rest in
            *' - cgroup2 '*) two=$at ;;
            *' - cgroup '*) umount -l \"$at\" || exit 77 ;;
        esac; done < /proc/self/mountinfo
        [ -n \"$two\" ] && mkdir \"$two/{group}\" \"$two/{group}/agent\" &&
        chown -R {USER}:{USER} \"$two/{group}\" && echo $$ > \"$two/{group}/agent/cgroup.procs\""
    );
    let starting = format!("setpriv --reuid={USER} --regid={USER} --clear-groups");
    match twice(name, &UNSHARE, &arrange, &starting) {
        Some(Run::Inner) => inner(),
        Some(Run::Outer) | None => remove(&group),
    }
}

fn inner() {
    let workspace = Workspace::new();
    for _ in 0..3 {
        let finished = workspace.run("echo ran; grep ^0: /proc/self/cgroup");
        // From inside, its own group is the topmost.
        assert_eq!(text(&finished), "ran\n0::/\n");
        assert!(finished.confined.limited.kill, "{:?}", finished.confined);
    }
    let marker = marker(9_801);
    let script = format!("(setsid sleep {marker} &); sleep {marker}");
    let mut command = workspace.command(&script);
    command.limits.timeout = Duration::from_millis(500);
    assert_eq!(run(&command).unwrap().ending, Ending::TimedOut);
    assert_eq!(processes_with(&marker), 0);
}

/// What was made for the second run; the kernel has it empty a moment later.
fn remove(group: &str) {
    for root in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
        let outer = std::path::Path::new(root).join(group);
        for _ in 0..500 {
            let _removed = std::fs::remove_dir(outer.join("agent"));
            if std::fs::remove_dir(&outer).is_ok() || !outer.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!outer.exists(), "{}", outer.display());
    }
}

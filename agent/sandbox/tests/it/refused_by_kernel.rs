//! Where the kernel refuses a part of a sandbox, the step is named or the part is
//! reported as missing, and nothing is left behind.
//!
//! What is refused is arranged around a second run of the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use hermitcrab_core::rules::Isolation;
use hermitcrab_sandbox::layers::memory_holds_layers;
use hermitcrab_sandbox::profile::{Mechanism, probe};
use hermitcrab_sandbox::spawn::{Ending, Step};
use hermitcrab_sandbox::{Sandbox, SpawnError};
use support::arranged::{Run, UNSHARE, twice};
use support::{Workspace, children, run, run_in, text};

/// Mounts, processes and files that are there.
fn census(workspace: &Workspace) -> (usize, usize, usize) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let files = std::fs::read_dir(workspace.path()).unwrap().count();
    (mounts.lines().count(), children().len(), files)
}

#[test]
fn where_the_kernel_refuses_the_overlay_the_view_is_a_copy_and_says_why() {
    // A third overlay on two others is one too many.
    let arrange = "set -e; mkdir t; mount -t tmpfs tmpfs t; cd t
        mkdir 0 u1 w1 m1 u2 w2 m2
        mount -t overlay overlay -o lowerdir=0,upperdir=u1,workdir=w1 m1
        mount -t overlay overlay -o lowerdir=m1,upperdir=u2,workdir=w2 m2";
    let name =
        "refused_by_kernel::where_the_kernel_refuses_the_overlay_the_view_is_a_copy_and_says_why";
    let Some(Run::Inner) = twice(name, &UNSHARE, arrange, "") else {
        return;
    };
    // Owners are not translated on an overlay: the command is a stranger there, and what is
    // copied is so because of the overlay alone.
    let sandbox = Sandbox::builder()
        .spawner(support::spawner())
        .copied_for_owners(false)
        .build();
    let workspace = Workspace::at(tempfile::tempdir_in("m2").unwrap());
    std::fs::set_permissions(workspace.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    workspace.file("old", "old\n");
    // What is set up once is there before the count.
    run_in(&sandbox, &workspace.command("true")).unwrap();
    let before = census(&workspace);
    for _ in 0..3 {
        let finished = run_in(&sandbox, &workspace.command("cat old; echo new > made")).unwrap();
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        assert_eq!(text(&finished), "old\n");
        let copied = finished.confined.copied.clone().unwrap();
        if memory_holds_layers() {
            assert!(copied.starts_with("no overlay can be mounted"), "{copied}");
        }
        assert!(finished.confined.is_complete());
        assert_eq!(finished.changes[0].changes().len(), 1);
        finished.changes.into_iter().for_each(|set| set.discard());
    }
    assert_eq!(census(&workspace), before);
}

#[test]
fn where_no_control_group_can_be_written_a_command_runs_and_says_what_is_missing() {
    let arrange = "while read -r _ _ _ _ at _; do
        case $at in /sys/fs/cgroup*) mount -o remount,bind,ro \"$at\" || exit 77 ;; esac
        done < /proc/self/mountinfo";
    let name = "refused_by_kernel::where_no_control_group_can_be_written_a_command_runs_and_says_what_is_missing";
    let Some(Run::Inner) = twice(name, &UNSHARE, arrange, "") else {
        return;
    };
    let workspace = Workspace::new();
    workspace.run("true");
    let before = census(&workspace);
    let finished = workspace.run("echo ran");
    assert_eq!(text(&finished), "ran\n");
    let confined = &finished.confined;
    assert!(!confined.by.contains(Mechanism::ControlGroups));
    assert!(confined.is_complete(), "{confined:?}");
    let why: Vec<_> = confined
        .missing
        .iter()
        .filter(|why| why.starts_with("control groups: "))
        .collect();
    assert_eq!(
        why,
        [
            "control groups: no control group of this process can be written; in a login session `systemd-run --user --scope hermitcrab` starts it in one that can be, and in a container what that may use holds for all it runs"
        ]
    );
    assert_eq!(census(&workspace), before);
}

#[test]
fn where_the_maps_of_ids_are_refused_nothing_runs_and_the_step_is_named() {
    let starter = ["setpriv", "--bounding-set", "-setuid,-setgid"];
    let name =
        "refused_by_kernel::where_the_maps_of_ids_are_refused_nothing_runs_and_the_step_is_named";
    let Some(Run::Inner) = twice(name, &starter, ":", "") else {
        return;
    };
    let workspace = Workspace::new();
    let refused = || match run(&workspace.command("echo ran > made")) {
        Err(SpawnError::Step(error)) => {
            let told = error.to_string();
            assert!(
                told.contains("sandbox step map-ids failed on `/proc/"),
                "{told}"
            );
            assert!(told.contains("may forbid user namespaces"), "{told}");
            (error.step(), error.errno())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(), (Step::MapIds, nix::libc::EPERM));
    let before = census(&workspace);
    for _ in 0..5 {
        assert_eq!(refused(), (Step::MapIds, nix::libc::EPERM));
    }
    assert_eq!(census(&workspace), before);
    // Nor is anything left below the spawner, once what it started has ended by itself.
    for spawner in children() {
        let path = format!("/proc/{spawner}/task/{spawner}/children");
        let patience = Instant::now();
        while !std::fs::read_to_string(&path).unwrap().is_empty() {
            assert!(patience.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let profile = probe(&support::spawner(), &workspace.cap);
    assert_eq!(profile.isolation, Isolation::Unknown);
    assert!(profile.failure.is_some());
}

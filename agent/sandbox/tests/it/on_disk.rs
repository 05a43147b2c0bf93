//! Layers that lie on disk: bigger than memory, bounded, out of reach, and gone when
//! their changes were decided, however the agent ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command as Bare;
use std::time::Duration;

use hermitcrab_sandbox::changeset::What;
use hermitcrab_sandbox::layers::{LayerStore, Prefer};
use hermitcrab_sandbox::profile::{Mechanism, probe_as};
use hermitcrab_sandbox::spawn::{Ending, Finished, PoolSize, Sandbox};
use support::arranged::{self, Run};
use support::time::out_of_time;
use support::{
    Workspace, commit, marker, processes_with, run_in, sandbox_on, spawner, store_at, text,
};

/// A store, the sandbox on it, and a workspace.
struct Setting {
    place: tempfile::TempDir,
    sandbox: Sandbox,
    workspace: Workspace,
}

impl Setting {
    /// Nothing, where no layer can lie on disk.
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let setting = Self {
            sandbox: sandbox_on(store_at(place.path())),
            place,
            workspace: Workspace::new(),
        };
        let tried = setting.run("true");
        if tried.confined.on_disk {
            return Some(setting);
        }
        println!(
            "SKIPPED: no layer can lie on disk here: {:?}",
            tried.confined.missing
        );
        None
    }

    fn run(&self, script: &str) -> Finished {
        run_in(&self.sandbox, &self.workspace.command(script)).unwrap()
    }

    fn left(&self) -> usize {
        left(self.place.path())
    }
}

fn left(store: &Path) -> usize {
    std::fs::read_dir(store).unwrap().count()
}

/// Starts again until nothing is left there.
fn is_swept(store: &Path) {
    for _ in 0..3000 {
        drop(store_at(store));
        if left(store) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} stay", left(store));
}

/// Writes this many MiB.
fn writes(mebibytes: u32) -> String {
    format!("dd if=/dev/zero of=big bs=1M count={mebibytes} status=none")
}

#[test]
fn more_than_memory_holds_is_kept_on_disk_and_refused_in_memory() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let mut command = setting.workspace.command("");
    command.limits.cpu_percent_max = 0;
    let script = writes(700);
    command.argv = vec![b"bash".to_vec(), b"-c".to_vec(), script.as_bytes().to_vec()];
    let finished = run_in(&setting.sandbox, &command).unwrap();
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    assert!(finished.confined.on_disk);
    match &finished.changes[0].changes() {
        [only] => assert!(
            matches!(only.what, What::CreatedFile { bytes, .. } if bytes == 700 << 20),
            "{only:?}"
        ),
        other => panic!("{other:?}"),
    }
    drop(finished);
    let in_memory = support::run(&command).unwrap();
    assert!(!in_memory.confined.on_disk);
    assert_ne!(in_memory.ending, Ending::Exited(0));
}

#[test]
fn what_takes_more_room_than_it_may_is_ended_and_what_stays_below_is_not() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let check = |script: &str, expected: Ending| {
        let mut command = setting.workspace.command(script);
        command.limits.disk_bytes_max = 48 << 20;
        command.limits.disk_names_max = 2000;
        let finished = run_in(&setting.sandbox, &command).unwrap();
        assert_eq!(finished.ending, expected, "{script}: {}", text(&finished));
        let is_kept = !finished.changes[0].is_empty();
        assert_eq!(is_kept, expected == Ending::Exited(0), "{script}");
    };
    check(&writes(40), Ending::Exited(0));
    // Between two looks, as well.
    check(&writes(64), Ending::OutOfRoom);
    check(&writes(400), Ending::OutOfRoom);
    check(
        "n=0; while :; do n=$((n+1)); head -c 4194304 /dev/zero > f$n; done",
        Ending::OutOfRoom,
    );
    check(
        "n=0; while :; do n=$((n+1)); : > f$n; done",
        Ending::OutOfRoom,
    );
    check("for n in $(seq 1000); do : > f$n; done", Ending::Exited(0));
}

#[test]
fn nothing_stays_behind_once_changes_are_decided() {
    let Some(mut setting) = Setting::new() else {
        return;
    };
    // Each sandbox that waits has a place of its own.
    setting.sandbox = Sandbox::builder()
        .spawner(spawner())
        .pool(PoolSize::OFF)
        .layers(store_at(setting.place.path()), Prefer::Disk)
        .build();
    assert_eq!(setting.left(), 0);
    let made = "mkdir -p a/b/c; echo x > a/b/c/f; mkdir shut; echo x > shut/f; chmod 0 shut a/b";
    let finished = setting.run(made);
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    assert_eq!(setting.left(), 1);
    let done = commit(&finished, &setting.workspace);
    assert!(done.failure.is_none(), "{done:?}");
    drop(finished);
    assert_eq!(setting.left(), 0);
    drop(setting.run("echo x > f; exit 3"));
    let marker = marker(89);
    let script = format!("echo x > f; exec sleep {marker}");
    let mut late = setting.workspace.command(&script);
    let soon = Duration::from_millis(300);
    drop(out_of_time(&setting.sandbox, &mut late, soon, |_| {
        processes_with(&marker) > 0
    }));
    let mut nowhere = setting.workspace.command("true");
    nowhere.cwd = "/nowhere".into();
    run_in(&setting.sandbox, &nowhere).unwrap_err();
    let many = setting.run("for n in $(seq 2000); do : > f$n; done");
    assert_eq!(many.ending, Ending::Exited(0));
    drop(many);
    drop(setting.sandbox);
    assert_eq!(left(setting.place.path()), 0);
}

/// The part of an agent in the test below.
fn act_as_an_agent(here: &Path) -> ! {
    let sandbox = sandbox_on(store_at(&here.join("store")));
    let workspace = Workspace::new();
    let finished = run_in(&sandbox, &workspace.command("echo x > f")).unwrap();
    assert!(finished.confined.on_disk);
    std::fs::write(here.join("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(60));
    std::process::exit(1)
}

#[test]
fn what_a_killed_agent_left_is_removed_by_the_next_and_not_before() {
    let here = Path::new("hermitcrab-acts-as-an-agent");
    if here.exists() {
        act_as_an_agent(Path::new("."));
    }
    if Setting::new().is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(here), "").unwrap();
    let mut agent = Bare::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "on_disk::what_a_killed_agent_left_is_removed_by_the_next_and_not_before",
        ])
        .current_dir(place.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !place.path().join("ready").exists() {
        assert!(agent.try_wait().unwrap().is_none(), "the agent ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    let store = place.path().join("store");
    drop(store_at(&store));
    assert!(left(&store) > 0);
    agent.kill().unwrap();
    agent.wait().unwrap();
    // What it had made dies with it, at its own pace.
    is_swept(&store);
}

#[test]
fn no_command_sees_the_store_or_what_another_one_left_there() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let first = setting.run("echo of-the-first > secret; mkdir kept; echo x > kept/of-the-first");
    let script = "cat secret; ls; ls -d /store /layers /sources /old /proc/*/root/store; ls /proc/1/fd /proc/$PPID/fd;
         find / -xdev \\( -name of-the-first -o -name upper -o -name secret \\) 2> /dev/null;
         cat /proc/self/mountinfo; true";
    let second = setting.run(script);
    let seen = text(&second);
    let place = setting.place.path().display().to_string();
    assert!(
        !seen.contains("of-the-first\n") && !seen.contains(&place),
        "{seen}"
    );
    assert!(!seen.lines().any(|line| line.starts_with('/')), "{seen}");
    // Which names overlays have in a root that is gone leads nowhere.
    assert!(seen.contains("upperdir=/store/"), "{seen}");
    drop(first);
}

#[test]
fn where_no_layer_can_lie_on_disk_it_lies_in_memory_and_that_is_told() {
    let told = |sandbox: &Sandbox, workspace: &Workspace| {
        let finished = run_in(sandbox, &workspace.command("echo x > f")).unwrap();
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        assert!(!finished.confined.on_disk);
        assert_eq!(finished.changes[0].changes().len(), 1);
        finished.confined.missing.join("; ")
    };
    let workspace = Workspace::new();
    // In what the command would see.
    let inside = sandbox_on(store_at(&workspace.path().join("state/layers")));
    let why = told(&inside, &workspace);
    assert!(
        why.contains("layers on disk: the command would see it"),
        "{why}"
    );
    // It went away.
    let place = tempfile::tempdir().unwrap();
    let gone = sandbox_on(store_at(&place.path().join("layers")));
    std::fs::remove_dir(place.path().join("layers")).unwrap();
    let why = told(&gone, &workspace);
    assert!(why.contains("layers on disk: "), "{why}");
}

#[test]
fn memory_is_used_where_it_does_and_nothing_is_said_of_the_disk() {
    let place = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::builder()
        .spawner(spawner())
        .layers(store_at(place.path()), Prefer::Memory)
        .build();
    let workspace = Workspace::new();
    let finished = run_in(&sandbox, &workspace.command("echo x > f")).unwrap();
    let told = finished.confined.missing.join("; ");
    if finished.confined.on_disk {
        println!("SKIPPED: no file system in memory holds layers here, so they lie on disk");
        return;
    }
    assert!(!told.contains("layers on disk"), "{told}");
    assert_eq!(left(place.path()), 0);
}

#[test]
fn what_is_told_of_the_machine_names_where_layers_lie() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let store: LayerStore = store_at(&setting.place.path().join("probed"));
    let builder = Sandbox::builder()
        .spawner(spawner())
        .layers(store, Prefer::Disk);
    let profile = probe_as(builder, &setting.workspace.cap);
    let row = profile
        .rows
        .iter()
        .find(|row| row.mechanism == Mechanism::CopyOnWrite);
    let row = row.unwrap();
    assert_eq!((row.available, row.used), (Some(true), true), "{row:?}");
    assert!(
        row.seen.starts_with("overlay, its layer on disk"),
        "{row:?}"
    );
}

#[test]
fn what_an_ordinary_users_command_made_belongs_to_that_user() {
    let name = "on_disk::what_an_ordinary_users_command_made_belongs_to_that_user";
    let ran = arranged::twice(
        name,
        &["env"],
        "mkdir tmp && chmod 1777 . tmp && export TMPDIR=\"$PWD/tmp\" && test -x \"$0\" && setpriv --reuid=65534 --regid=65534 --clear-groups test -x \"$0\"",
        "setpriv --reuid=65534 --regid=65534 --clear-groups",
    );
    if matches!(ran, Some(Run::Outer)) {
        return;
    }
    let Some(setting) = Setting::new() else {
        return;
    };
    let own = rustix::process::geteuid().as_raw();
    let finished = setting.run("echo x > f; mkdir d; chmod 0 d; stat -c %u f");
    assert_eq!(text(&finished).trim(), own.to_string());
    assert!(commit(&finished, &setting.workspace).failure.is_none());
    let made = std::fs::metadata(setting.workspace.path().join("f")).unwrap();
    assert_eq!(made.uid(), own);
    drop(finished);
    drop(setting.sandbox);
    // Sandboxes that waited end at their own pace.
    is_swept(setting.place.path());
}

#[test]
fn a_view_of_another_owner_is_that_owners_inside_and_out() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has directories of others");
        return;
    }
    let Some(setting) = Setting::new() else {
        return;
    };
    let other = 12_345;
    let path = setting.workspace.path();
    std::fs::write(path.join("theirs"), "old\n").unwrap();
    for path in [path.to_owned(), path.join("theirs")] {
        std::os::unix::fs::chown(path, Some(other), Some(other)).unwrap();
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let finished = setting.run("echo new > theirs; echo x > f; stat -c %u . theirs f");
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    if text(&finished) != "12345\n12345\n12345\n" {
        println!(
            "SKIPPED: owners are not translated here: {}",
            text(&finished)
        );
        return;
    }
    assert!(finished.confined.on_disk);
    assert!(commit(&finished, &setting.workspace).failure.is_none());
    assert_eq!(setting.workspace.read("theirs"), "new\n");
}

//! How a command starts, ends, and is ended; and that nothing stays behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::spawn::{EXCHANGE_DIR, Ending, Step, View, ViewMode};
use hermitcrab_sandbox::{DirCap, SpawnError};
use support::time::out_of_time;
use support::{Workspace, marker, processes_with, run, sandbox, text};

fn step_of(error: SpawnError) -> (Step, i32) {
    match error {
        SpawnError::Step(error) => (error.step(), error.errno()),
        other => panic!("{other}"),
    }
}

#[test]
fn the_ending_is_the_commands_own_status() {
    let workspace = Workspace::new();
    for (script, ending) in [
        ("exit 0", Ending::Exited(0)),
        ("exit 42", Ending::Exited(42)),
        ("exec no-such-program-here", Ending::Exited(127)),
        ("kill -SEGV $$", Ending::Signalled(11)),
        ("kill -KILL $$", Ending::Signalled(9)),
        ("kill -40 $$", Ending::Signalled(40)),
        (
            "yes | head -1 > /dev/null; exit ${PIPESTATUS[0]}",
            Ending::Exited(141),
        ),
    ] {
        assert_eq!(workspace.run(script).ending, ending, "{script}");
    }
}

#[test]
fn a_timeout_ends_everything_that_was_started() {
    let workspace = Workspace::new();
    let marker = marker(91);
    let script = format!(
        "trap '' TERM HUP INT
         for i in 1 2 3 4 5 6 7 8 9 10; do (trap '' TERM HUP; setsid sleep {marker} > /dev/null &); done
         echo started > f; echo started; exec sleep {marker}"
    );
    let mut command = workspace.command(&script);
    let finished = out_of_time(sandbox(), &mut command, Duration::from_secs(1), |_| {
        processes_with(&marker) == 11
    });
    assert_eq!(processes_with(&marker), 0);
    // What happened before is reported all the same.
    assert_eq!(text(&finished), "started\n");
    assert_eq!(finished.changes[0].changes().len(), 1);
}

#[test]
fn a_background_process_that_holds_the_output_does_not_hold_the_result() {
    let workspace = Workspace::new();
    let marker = marker(92);
    for script in [
        format!("sleep {marker} & echo done"),
        format!("(setsid sleep {marker} &) ; echo done"),
        format!("setsid sh -c 'setsid sleep {marker} & sleep {marker}' & echo done"),
    ] {
        let finished = workspace.run(&script);
        assert_eq!(
            (finished.ending, text(&finished).as_str()),
            (Ending::Exited(0), "done\n"),
            "{script}"
        );
        assert_eq!(processes_with(&marker), 0, "{script}");
    }
}

#[test]
fn a_flood_of_output_is_drained_and_cut() {
    let workspace = Workspace::new();
    let mut command =
        workspace.command("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last");
    command.limits.output_bytes_max = 4096;
    let finished = run(&command).unwrap();
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(finished.stdout.total_bytes(), 20_000_012);
    assert_eq!(finished.stdout.to_bytes().len(), 4096);
    assert!(finished.stdout.head.starts_with(b"first\nxxx"));
    assert!(finished.stdout.tail.ends_with(b"xxx\nlast\n"));

    let mut command = workspace.command("exec yes");
    command.limits.output_bytes_max = 4096;
    let soon = Duration::from_millis(300);
    let finished = out_of_time(sandbox(), &mut command, soon, |shown| shown.len() > 4096);
    assert_eq!(finished.stdout.to_bytes().len(), 4096);
}

#[test]
fn what_a_command_may_open_write_and_hold_is_bound_for_good() {
    let workspace = Workspace::new();
    let mut command = workspace.command(
        "grep -E '^Max (file size|data size|processes|open files)' /proc/self/limits | tr -s ' '",
    );
    command.limits.file_bytes_max = 7 << 20;
    command.limits.data_bytes_max = Some(300 << 20);
    command.limits.processes_max = 60;
    command.limits.open_files_max = 123;
    // The hard limit is the same: what is lowered cannot be raised again.
    assert_eq!(
        text(&run(&command).unwrap()),
        "Max file size 7340032 7340032 bytes \n\
         Max data size 314572800 314572800 bytes \n\
         Max processes 64 64 processes \n\
         Max open files 123 123 files \n"
    );
}

#[test]
fn processes_files_and_space_are_bounded() {
    let workspace = Workspace::new();
    // Tries 500 processes and stops at the first refusal.
    let mut command = workspace.command(
        "exec perl -e 'for (1..500) { my $p = fork; if (!defined $p) { print \"refused\\n\"; exit 0 } if (!$p) { sleep 1000; exit } } print \"500\\n\"'",
    );
    command.limits.processes_max = 64;
    let finished = run(&command).unwrap();
    if finished.ending == Ending::Exited(127) {
        println!("SKIPPED: no perl to start processes with");
    } else {
        assert_eq!(text(&finished), "refused\n");
    }

    let mut command =
        workspace.command("head -c 20000000 /dev/zero > big; echo $?; ls -s big | cut -d' ' -f1");
    command.limits.view_bytes_max = 1 << 20;
    let finished = run(&command).unwrap();
    let shown = text(&finished);
    assert!(
        shown.contains("No space left") && !shown.contains("\n0\n"),
        "{shown}"
    );

    // No room is no room, and not none that is counted.
    let mut command = workspace.command("head -c 100000 /dev/zero > /tmp/big || echo full");
    command.limits.tmp_bytes_max = 0;
    assert!(text(&run(&command).unwrap()).ends_with("full\n"));

    let mut command =
        workspace.command("for i in $(seq 200); do echo > f$i || exit 3; done 2>/dev/null");
    command.limits.view_inodes_max = 50;
    assert_eq!(run(&command).unwrap().ending, Ending::Exited(3));
    assert_eq!(std::fs::read_dir(workspace.path()).unwrap().count(), 0);
}

#[test]
fn outputs_are_apart_or_together_as_asked() {
    let workspace = Workspace::new();
    let script = "echo one; echo two >&2; echo three";
    assert_eq!(text(&workspace.run(script)), "one\ntwo\nthree\n");
    let mut command = workspace.command(script);
    command.merge_stderr = false;
    let finished = run(&command).unwrap();
    assert_eq!(text(&finished), "one\nthree\n");
    assert_eq!(finished.stderr.to_bytes(), b"two\n");
}

#[test]
fn inputs_go_in_and_results_come_out_beside_the_view() {
    let workspace = Workspace::new();
    let script = format!(
        "cat {EXCHANGE_DIR}/in > {EXCHANGE_DIR}/out; ln -s /etc/passwd {EXCHANGE_DIR}/link; mkdir {EXCHANGE_DIR}/dir; pwd > $HOME/x; cat $HOME/x"
    );
    let mut command = workspace.command(&script);
    command.inputs.push(("in".into(), b"hello".to_vec()));
    command.private_dirs.push("/home/somebody".into());
    command
        .env
        .push((b"HOME".to_vec(), b"/home/somebody".to_vec()));
    let finished = run(&command).unwrap();
    assert_eq!(finished.exchange.read("out", 100).unwrap(), b"hello");
    assert!(finished.exchange.read("out", 4).is_err());
    for refused in ["link", "dir", "absent", "../usr", ""] {
        assert!(finished.exchange.read(refused, 100).is_err(), "{refused}");
    }
    assert_eq!(text(&finished).trim(), workspace.path().to_str().unwrap());
    assert!(finished.changes[0].is_empty());
}

#[test]
fn a_failed_start_names_its_step_and_runs_nothing() {
    let workspace = Workspace::new();
    workspace.file("data", "x");
    let cases: [(&[&str], Step, i32); 5] = [
        (&["no-such-program"], Step::Exec, nix::libc::ENOENT),
        (&["/no/such/program"], Step::Exec, nix::libc::ENOENT),
        (&["./data"], Step::Exec, nix::libc::EACCES),
        (&[""], Step::Exec, nix::libc::ENOENT),
        (&["bash", "a\0b"], Step::Exec, 0),
    ];
    for (argv, step, errno) in cases {
        let mut command = workspace.command("");
        command.argv = argv.iter().map(|text| text.as_bytes().to_vec()).collect();
        assert_eq!(
            step_of(run(&command).unwrap_err()),
            (step, errno),
            "{argv:?}"
        );
    }
    let mut command = workspace.command("");
    command.argv.push(vec![b'x'; 1 << 20]);
    assert_eq!(
        step_of(run(&command).unwrap_err()),
        (Step::Exec, nix::libc::E2BIG)
    );
    let mut command = workspace.command("echo ran");
    command.cwd = "/no/such/dir".into();
    assert_eq!(
        step_of(run(&command).unwrap_err()),
        (Step::WorkingDir, nix::libc::ENOENT)
    );
}

#[test]
fn a_view_goes_only_where_it_hides_nothing() {
    let workspace = Workspace::new();
    for place in [
        "/",
        "/usr",
        "/etc/x",
        "/proc/x",
        "/dev",
        "/tmp",
        "/var",
        "/var/tmp",
        "relative",
        "/a/../usr",
        "/run/hermitcrab",
    ] {
        let mut command = workspace.command("true");
        command.cwd = "/".into();
        command.views[0].at = place.into();
        let (step, _) = step_of(run(&command).unwrap_err());
        assert_eq!(step, Step::ViewPlace, "{place}");
    }
    let other = Workspace::new();
    let mut command = workspace.command("true");
    command.views.push(View {
        dir: &other.cap,
        at: workspace.path().join("below"),
        mode: ViewMode::ReadOnly,
        withheld: Withheld::default(),
    });
    assert_eq!(step_of(run(&command).unwrap_err()).0, Step::ViewPlace);
}

#[test]
fn a_directory_of_the_system_is_shown_where_it_lies_and_nothing_in_place_of_it() {
    let workspace = Workspace::new();
    let shown = text(&workspace.run("ls /etc"));
    let is_apart = |path: &std::path::PathBuf| {
        let meta = std::fs::symlink_metadata(path);
        let name = path.file_name().unwrap().to_str().unwrap();
        meta.is_ok_and(|meta| meta.is_dir() && meta.permissions().mode() & 0o005 == 0o005)
            && !shown.lines().any(|line| line == name)
    };
    let mut there = std::fs::read_dir("/etc").unwrap();
    let apart = there.find_map(|entry| Some(entry.ok()?.path()).filter(is_apart));
    let mut places = vec![Path::new("/usr/share").to_owned(), "/etc/ssl".into()];
    match apart {
        Some(apart) => places.push(apart),
        None => println!("SKIPPED: commands are shown all there is in /etc here"),
    }
    for place in places {
        let cap = DirCap::open_ambient_dir(&place, support::dir_id()).unwrap();
        let mut command = workspace.command("ls -A | wc -l");
        command.cwd = place.clone();
        command.views.push(View {
            dir: &cap,
            at: place.clone(),
            mode: ViewMode::CopyOnWrite,
            withheld: Withheld::default(),
        });
        let finished = run(&command).unwrap();
        let names = std::fs::read_dir(&place).unwrap().count();
        assert_eq!(text(&finished).trim(), names.to_string(), "{place:?}");
        // What lies elsewhere would hide what the machine has there.
        command.views.remove(0);
        command.views[0].dir = &workspace.cap;
        assert_eq!(step_of(run(&command).unwrap_err()).0, Step::ViewPlace);
    }
    // The next command is shown what each is.
    assert_eq!(text(&workspace.run("ls /etc")), shown);
}

#[test]
fn a_command_that_was_over_when_it_was_looked_at_is_not_waited_for() {
    let workspace = Workspace::new();
    let mut command = workspace.command("true");
    command.views[0].at = "/proc/x".into();
    command.limits.timeout = Duration::from_secs(3600);
    let mut running = support::start(&command);
    // Until all that will ever come of it is there at once.
    std::thread::sleep(Duration::from_secs(1));
    while !running.attend(Duration::from_millis(5), |_, _| {}).unwrap() {}
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(running.wait()).is_ok());
    let refused = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(step_of(refused.unwrap_err()).0, Step::ViewPlace);
}

#[test]
fn a_workspace_below_a_temporary_directory_is_shown_where_it_lies() {
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let Ok(temp) = tempfile::tempdir_in(place) else {
            println!("SKIPPED: no directory can be made in {place}");
            continue;
        };
        let workspace = Workspace::at(temp);
        workspace.file("f", "found\n");
        let look = "cat f; pwd -P; echo x > new; cp f /tmp/f; cp f /var/tmp/g; ls /var/tmp/g";
        if place == "/dev/shm" {
            // No view goes there: what is shown at /dev is the sandbox's own.
            let refused = run(&workspace.command(look)).unwrap_err();
            assert_eq!(step_of(refused).0, Step::ViewPlace);
            continue;
        }
        for _ in 0..3 {
            let finished = workspace.run(look);
            let at = workspace.path().display();
            assert_eq!(text(&finished), format!("found\n{at}\n/var/tmp/g\n"));
            assert_eq!(finished.changes[0].changes().len(), 1);
        }
        // Only the way to it is there, nothing of the machine's or of the command before.
        let own = workspace.path().file_name().unwrap().to_str().unwrap();
        let left = text(&workspace.run("ls -A /var/tmp"));
        assert_eq!(left, format!("{own}\n"));
    }
}

#[test]
fn a_directory_that_is_gone_is_noticed() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path().join("d")).unwrap();
    let cap = DirCap::open_ambient_dir(&workspace.path().join("d"), support::dir_id()).unwrap();
    std::fs::remove_dir(workspace.path().join("d")).unwrap();
    let mut command = workspace.command("echo ran");
    command.cwd = "/".into();
    command.views[0].dir = &cap;
    assert_eq!(step_of(run(&command).unwrap_err()).0, Step::ViewSource);
}

#[test]
fn the_name_of_a_workspace_may_hold_any_byte() {
    use std::os::unix::ffi::OsStrExt;
    let parent = tempfile::tempdir().unwrap();
    for name in [
        &b"a b,c:d"[..],
        b"back\\slash",
        b"new\nline",
        b"caf\xe9",
        b"upperdir=x",
    ] {
        let path = parent.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("f"), "found").unwrap();
        let cap = DirCap::open_ambient_dir(&path, support::dir_id()).unwrap();
        let workspace = Workspace::new();
        let mut command = workspace.command("cat f; echo x > g");
        command.cwd = path.clone();
        command.views[0].dir = &cap;
        command.views[0].at = path;
        let finished = run(&command).unwrap();
        assert_eq!(text(&finished), "found", "{name:?}");
        assert_eq!(finished.changes[0].changes().len(), 1, "{name:?}");
    }
}

#[test]
fn a_private_workspace_of_somebody_is_usable_by_the_command() {
    // Root's commands run with other ids than the files; translation must hide it.
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::new();
    workspace.file("f", "old");
    for (path, mode) in [("", 0o700), ("f", 0o600)] {
        let path = workspace.path().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let finished = workspace.run("cat f; echo new > f; stat -c '%u %a' f . | sort -u; id -u");
    let own = rustix::process::getuid().as_raw();
    assert_eq!(text(&finished), format!("old{own} 600\n{own} 700\n{own}\n"));
}

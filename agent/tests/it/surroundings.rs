//! The program where the machine lacks something, or gives little: it works, or it says what
//! is missing and what to do; it never falls over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use crate::support::{
    home::{Home, Ran, until},
    refused::{
        CLONE3, CLOSE_RANGE, ENOSYS, EPERM, LIMITS, MOUNT_SETATTR, UNSHARE, ran, refused, without,
    },
};

/// The program, started by a shell that runs `before` first.
fn after(home: &Home, before: &str, arguments: &[&str]) -> Ran {
    let shell = ["sh", "-c", &format!("{before}; exec \"$@\""), "sh"];
    started_by(&shell, home, arguments)
}

/// The program, started by another one.
fn started_by(starter: &[&str], home: &Home, arguments: &[&str]) -> Ran {
    ran(Command::new("env")
        .args(starter)
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
}

#[test]
fn where_no_limit_is_told_it_starts_and_says_what_cannot_be_held() {
    let home = Home::new();
    for errno in [EPERM, ENOSYS] {
        let shown = without(LIMITS, errno, &home, &["config", "show", "mode"]);
        assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""), "{shown:?}");
        let told = without(LIMITS, errno, &home, &["doctor"]);
        assert_eq!(told.code, Some(69), "{told:?}");
        // Of root the filter takes more, and that comes first.
        let is_told = [
            "step resource-limits failed on `core`",
            "step identity failed",
        ];
        let is_told = is_told.iter().any(|step| told.err.contains(step));
        assert!(is_told, "{told:?}");
        let ran = without(LIMITS, errno, &home, &["exec", "--", "cat", "a.txt"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
        assert!(ran.err.contains("isolation-unknown"), "{ran:?}");
    }
}

#[test]
fn a_shell_that_allows_a_small_stack_or_small_files_is_told_so_or_allows_more() {
    let home = Home::new();
    for soft in [
        "ulimit -S -s 64",
        "ulimit -s 1024",
        "ulimit -S -f 0",
        "ulimit -f 2048",
    ] {
        let ran = after(&home, soft, &["exec", "--", "cat", "a.txt"]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "a\n"),
            "{soft}: {ran:?}"
        );
    }
    for (hard, told, option) in [
        ("ulimit -s 512", "a stack of 524288 bytes", "`ulimit -H -s`"),
        ("ulimit -s 128", "a stack of 131072 bytes", "`ulimit -H -s`"),
    ] {
        let ran = after(&home, hard, &["exec", "--", "cat", "a.txt"]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(69), ""),
            "{hard}: {ran:?}"
        );
        assert!(
            ran.err.contains(told) && ran.err.contains(option),
            "{hard}: {ran:?}"
        );
    }
    // Of files it is told where they would grow; what needs none is done.
    for limit in ["ulimit -f 0", "ulimit -f 8"] {
        let ran = after(&home, limit, &["exec", "--", "cat", "a.txt"]);
        assert!(matches!(ran.code, Some(69 | 74)), "{limit}: {ran:?}");
        assert!(ran.err.contains("File too large"), "{limit}: {ran:?}");
        let told = after(&home, limit, &["doctor"]);
        assert_eq!(told.code, Some(69), "{limit}: {told:?}");
        assert!(told.err.contains("`ulimit -f`"), "{limit}: {told:?}");
        let shown = after(&home, limit, &["config", "show", "mode"]);
        assert_eq!(shown.code, Some(0), "{limit}: {shown:?}");
    }
}

#[test]
fn where_a_file_may_grow_no_further_that_is_told_and_nothing_is_half_done() {
    let home = Home::new();
    // The command may write what the program, which has to keep it, may not.
    let limit = "ulimit -S -f 2048";
    let line = "head -c 3000000 /dev/zero > big; echo b > a.txt";
    let ran = after(&home, limit, &["exec", "--grant", "fs.*=.", "--", line]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
    assert!(ran.err.contains("File too large"), "{ran:?}");
    assert!(!home.project().join("big").exists());
    let before = std::fs::read_to_string(home.project().join("a.txt")).unwrap();
    assert_eq!(before, "a\n");
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
    // Without the limit it is kept.
    home.ok(&["exec", "--grant", "fs.*=.", "--", line]);
    assert_eq!(
        home.project().join("big").metadata().unwrap().len(),
        3_000_000
    );
}

#[test]
fn where_no_thread_can_be_started_that_is_said() {
    let home = Home::new();
    let ran = without(CLONE3, EPERM, &home, &["exec", "--", "cat", "a.txt"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(70), ""), "{ran:?}");
    assert!(ran.err.contains("no thread can be started"), "{ran:?}");
}

#[test]
fn where_an_editor_cannot_be_served_for_want_of_threads_that_is_said() {
    let home = Home::new();
    let words = ["acp", "--model", "m", "--base-url", "http://127.0.0.1:1/v1"];
    let ran = without(CLONE3, EPERM, &home, &words);
    assert_eq!((ran.code, ran.out.as_str()), (Some(69), ""), "{ran:?}");
    let told = "no thread can be started for the connection";
    assert!(
        ran.err.contains(told) && ran.err.contains("`ulimit -u`"),
        "{ran:?}"
    );
}

/// Filters of older engines do not know it.
#[test]
fn where_descriptors_cannot_be_closed_the_call_is_named() {
    let home = Home::new();
    for errno in [EPERM, ENOSYS] {
        let told = without(CLOSE_RANGE, errno, &home, &["doctor"]);
        assert_eq!(told.code, Some(69), "{told:?}");
        let named = "failed on `close_range`";
        assert!(
            told.err.contains(named) && told.err.contains("close_range must be allowed"),
            "{told:?}"
        );
        assert!(!told.err.contains("went away"), "{told:?}");
        let ran = without(CLOSE_RANGE, errno, &home, &["exec", "--", "cat", "a.txt"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
    }
}

#[test]
fn where_the_kernel_is_older_than_it_may_be_the_least_one_is_named() {
    let home = Home::new();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        // Of root the filter takes more, and that would come first.
        for place in [home.path(), &home.project()] {
            std::os::unix::fs::chown(place, Some(54_321), Some(54_321)).unwrap();
        }
    }
    let run = |arguments: &[&str]| {
        let mut command = home.command(&home.project(), arguments);
        if is_root {
            command.uid(54_321).gid(54_321);
        }
        refused(MOUNT_SETATTR, ENOSYS, &mut command)
    };
    let told = run(&["doctor"]);
    assert_eq!(told.code, Some(69), "{told:?}");
    assert!(told.err.contains("must be 5.12 or newer"), "{told:?}");
    let ran = run(&["exec", "--", "cat", "a.txt"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
}

#[test]
fn what_could_not_be_printed_is_told_by_the_code_as_well() {
    let home = Home::new();
    home.ok(&["exec", "--grant", "fs.*=.", "--", "echo b > b.txt"]);
    let call = ["call", "read_file", r#"{"path": "a.txt"}"#];
    for (words, told) in [
        (&["config", "show", "mode"][..], "cannot write the output"),
        (&["audit"], "cannot write the output"),
        (&["audit", "verify"], "cannot write the output"),
        (&call, "cannot write the output"),
        (&["completions", "bash"], "cannot write the output"),
        (&["doctor"], "cannot write the output"),
        (&["undo"], "cannot write the output"),
    ] {
        // The kernel's own file that takes nothing.
        let ran = after(&home, "exec >/dev/full", words);
        assert_eq!(ran.code, Some(69), "{words:?}: {ran:?}");
        assert_eq!(ran.err.matches(told).count(), 1, "{words:?}: {ran:?}");
    }
    // It was taken back all the same.
    assert!(!home.project().join("b.txt").exists());
    // Who reads no further is no failure.
    let gone = Command::new("bash")
        .args(["-c", "set -o pipefail; \"$0\" audit | true"])
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .env("HOME", home.path())
        .current_dir(home.project())
        .status();
    assert_eq!(gone.unwrap().code(), Some(0));
}

#[test]
fn an_editor_that_can_be_told_nothing_is_as_good_as_gone() {
    let home = Home::new();
    let mut server = home
        .command(
            &home.project(),
            &["acp", "--model", "m", "--base-url", "http://127.0.0.1:1/v1"],
        )
        .stdin(Stdio::piped())
        .stdout(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It goes on listening to nobody, though what it reads from stays open.
    let mut input = server.stdin.take().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    std::io::Write::write_all(&mut input, format!("{hello}\n").as_bytes()).unwrap();
    let ended = until(|| server.try_wait().unwrap());
    assert_eq!(ended.code(), Some(69));
    drop(input);
    // One that hangs up has seen enough.
    let mut server = home
        .command(
            &home.project(),
            &["acp", "--model", "m", "--base-url", "http://127.0.0.1:1/v1"],
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{hello}\n").as_bytes()).unwrap();
    drop(input);
    let ended = until(|| server.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn a_umask_that_opens_to_all_or_closes_to_oneself_loses_nothing() {
    let home = Home::new();
    let set = ["config", "set", "limits.pids_max", "200"];
    let made = after(&home, "umask 000", &set);
    assert_eq!(made.code, Some(0), "{made:?}");
    // What it made itself it takes for its person's own.
    let shown = after(&home, "umask 000", &["config", "show", "limits.pids_max"]);
    assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""), "{shown:?}");
    assert!(shown.out.contains("200"), "{shown:?}");
    for umask in ["777", "700", "0200"] {
        let before = format!("umask {umask}");
        let ran = after(&home, &before, &["exec", "--", "cat", "a.txt"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(69), ""), "{ran:?}");
        assert!(ran.err.contains("`umask 077`"), "{ran:?}");
    }
}

/// As with `unshare -r`, or in a container of an ordinary user's that maps one id.
#[test]
fn root_of_an_ordinary_users_namespace_runs_commands_as_that_user() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can become an ordinary user");
        return;
    }
    let home = Home::new();
    let user = 54_321;
    for place in [home.path(), &home.project(), &home.project().join("a.txt")] {
        std::os::unix::fs::chown(place, Some(user), Some(user)).unwrap();
    }
    let inside = |starter: &[&str], words: &[&str]| {
        let user = [
            "setpriv",
            "--reuid=54321",
            "--regid=54321",
            "--clear-groups",
            "--inh-caps=-all",
        ];
        started_by(&[&user[..], starter].concat(), &home, words)
    };
    let line = "cat a.txt; id -u; echo b > b.txt; : > /proc/sys/kernel/hostname && echo open";
    let words = ["exec", "--grant", "fs.*=.", "--", line];
    let made = home.project().join("b.txt");
    for starter in [&["unshare", "--user", "--map-root-user"][..], &[]] {
        let ran = inside(starter, &words);
        let id = if starter.is_empty() { "54321" } else { "0" };
        assert_eq!(
            (ran.code, ran.out),
            (Some(1), format!("a\n{id}\n")),
            "{}",
            ran.err
        );
        let owner = std::os::unix::fs::MetadataExt::uid(&made.metadata().unwrap());
        assert_eq!(owner, user);
        std::fs::remove_file(&made).unwrap();
    }
    let home = Home::new();
    // Where the only id is the machine's root's, as before.
    let ran = started_by(&["unshare", "--user", "--map-root-user"], &home, &words);
    assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
    assert!(!home.project().join("b.txt").exists());
}

#[test]
fn the_proc_of_another_process_namespace_is_named_and_nobody_else_is_touched() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can make a process namespace alone");
        return;
    }
    let home = Home::new();
    let inside = |words: &[&str]| started_by(&["unshare", "--pid", "--fork"], &home, words);
    let told = inside(&["doctor"]);
    assert_eq!(told.code, Some(69), "{told:?}");
    let why = "`/proc` is that of another process namespace";
    assert!(told.err.contains(why), "{told:?}");
    let ran = inside(&["exec", "--", "cat", "a.txt"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
}

/// What `doctor` says of the flags an engine of containers is given.
fn has_flags(told: &Ran) -> bool {
    let flags = [
        "podman run --user 1000:1000 --security-opt no-new-privileges --security-opt 'unmask=/proc/*'",
        "docker run --user 1000:1000 --security-opt no-new-privileges --security-opt systempaths=unconfined",
        "docs/CONTAINERS.md",
    ];
    flags.iter().all(|flag| told.err.contains(flag))
}

#[test]
fn under_a_filter_that_refuses_namespaces_the_flags_of_containers_are_named() {
    let home = Home::new();
    let told = without(UNSHARE, EPERM, &home, &["doctor"]);
    assert_eq!(told.code, Some(69), "{told:?}");
    // Of root the filter takes more, and that comes first.
    let seen = match rustix::process::geteuid().is_root() {
        true => "root is not given here what it needs",
        false => "started under a filter of system calls",
    };
    assert!(told.err.contains(seen) && has_flags(&told), "{told:?}");
    let ran = without(UNSHARE, EPERM, &home, &["exec", "--", "cat", "a.txt"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
    // Tools that start nothing work.
    let call = ["call", "read_file", r#"{"path": "a.txt"}"#];
    let read = without(UNSHARE, EPERM, &home, &call);
    assert_eq!(read.code, Some(0), "{read:?}");
    assert!(read.out.contains("1|a"), "{read:?}");
}

/// Root with the capabilities engines leave it, and an ordinary user below a `/proc` of which
/// they cover a part.
#[test]
fn where_root_lacks_a_capability_or_proc_is_covered_the_flags_of_containers_are_named() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can give capabilities up and cover a part of /proc");
        return;
    }
    let covered = "mount -t tmpfs none /proc/irq && exec setpriv --reuid=54321 --regid=54321 \
                   --clear-groups --inh-caps=-all \"$@\"";
    for (user, starter, seen) in [
        (
            0,
            &["setpriv", "--bounding-set=-sys_admin"][..],
            "root is not given here what it needs",
        ),
        (
            54_321,
            &["unshare", "--mount", "sh", "-c", covered, "sh"],
            "part of /proc is covered",
        ),
    ] {
        let home = Home::new();
        for place in [home.path(), &home.project(), &home.project().join("a.txt")] {
            std::os::unix::fs::chown(place, Some(user), Some(user)).unwrap();
        }
        let (program, options) = starter.split_first().unwrap();
        let inside = |words: &[&str]| {
            ran(Command::new(program)
                .args(options)
                .arg(env!("CARGO_BIN_EXE_hermitcrab"))
                .args(words)
                .current_dir(home.project())
                .env_clear()
                .env("HOME", home.path())
                .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
        };
        let told = inside(&["doctor"]);
        assert_eq!(told.code, Some(69), "{told:?}");
        assert!(told.err.contains(seen) && has_flags(&told), "{told:?}");
        let ran = inside(&["exec", "--", "cat", "a.txt"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""), "{ran:?}");
    }
}

/// A shell under the name of bash that is another one.
#[test]
fn a_shell_that_is_only_called_bash_is_named_and_nothing_goes_round_in_it() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can mount another shell over bash");
        return;
    }
    let home = Home::new();
    let other = "mount --bind /bin/dash /usr/bin/bash || exit 99; exec \"$@\"";
    let starter = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        other,
        "sh",
    ];
    let words = ["exec", "--grant", "fs.*=.", "--", "echo hi > b.txt"];
    let ran = started_by(&starter, &home, &words);
    assert_eq!((ran.code, ran.out.as_str()), (Some(126), ""), "{ran:?}");
    assert!(ran.err.contains("is another shell"), "{ran:?}");
    assert!(!home.project().join("b.txt").exists());
}

/// As in a namespace that root made and in which it is called somebody: what goes by the
/// machine's id and by nothing else would be open to commands.
#[test]
fn the_machines_root_by_another_number_runs_no_command() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only the machine's root can be called somebody else");
        return;
    }
    let home = Home::new();
    let somebody = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];
    let root_again = [&somebody[..], &["unshare", "--user", "--map-root-user"]].concat();
    for (starter, id) in [(somebody.to_vec(), "1000"), (root_again, "0")] {
        let inside = |words: &[&str]| started_by(&starter, &home, words);
        let told = inside(&["exec", "--grant", "fs.*=.", "--", "echo ran | tee made"]);
        assert_eq!((told.code, &*told.out), (Some(77), ""), "{}", told.err);
        assert!(!home.project().join("made").exists());
        let told = inside(&["doctor"]);
        let why = format!("{id} is the machine's root by another number");
        assert!(told.err.contains(&why), "{}", told.err);
    }
}

/// As in a container whose first process is a `sleep` or a shell, into which one comes by
/// `docker exec`: it reaps nothing.
#[test]
fn nothing_dead_is_left_to_a_first_process_that_is_no_init() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has process namespaces that lie in no other kind");
        return;
    }
    let home = Home::new();
    let mut outer = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .args(["sleep", "600"])
        .spawn()
        .unwrap();
    let children = |of: u32| {
        let listed = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
        let listed = listed.unwrap_or_default();
        let numbers = listed.split_ascii_whitespace();
        numbers.map(|number| number.parse().unwrap()).collect()
    };
    let first = until(|| {
        let below: Vec<u32> = children(outer.id());
        let one = *below.first()?;
        let name = std::fs::read_to_string(format!("/proc/{one}/comm"));
        name.is_ok_and(|name| name == "sleep\n").then_some(one)
    });
    let number = first.to_string();
    let project = home.project();
    let within = ["nsenter", "--target", &number, "--pid", "--mount"];
    let there = [
        "sh",
        "-c",
        "cd \"$1\" && shift && exec \"$@\"",
        "sh",
        project.to_str().unwrap(),
    ];
    let starter = [&within[..], &there].concat();
    for words in [
        &[
            "exec",
            "--grant",
            "fs.*=.",
            "--",
            "date > a.txt; sleep 0.1 &",
        ][..],
        &["doctor"],
    ] {
        let ran = started_by(&starter, &home, words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let left: Vec<u32> = children(first);
        let told: Vec<String> = left
            .iter()
            .map(|one| std::fs::read_to_string(format!("/proc/{one}/stat")).unwrap_or_default())
            .collect();
        assert!(told.is_empty(), "{words:?}: {told:?}");
    }
    outer.kill().unwrap();
    outer.wait().unwrap();
}

/// As with `docker stop` where nothing else is process 1, to which the kernel brings no signal
/// that it does not take itself.
#[test]
fn as_the_first_process_it_ends_when_it_is_asked_to() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has process namespaces that lie in no other kind");
        return;
    }
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let home = Home::new();
        let made = home.project().join("made");
        let mut outer = Command::new("unshare")
            .args(["--pid", "--fork", "--mount-proc"])
            .arg(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(["exec", "--grant", "fs.*=.", "--"])
            .arg("echo begun; sleep 600; echo x > made")
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut begun = String::new();
        let mut said = BufReader::new(outer.stdout.take().unwrap());
        said.read_line(&mut begun).unwrap();
        assert_eq!(begun, "begun\n");
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let first = std::fs::read_to_string(children).unwrap();
        let sent = Command::new("kill")
            .args(["-s", signal, first.trim()])
            .status();
        assert!(sent.unwrap().success());
        let status = until(|| outer.try_wait().unwrap());
        assert_eq!(status.code(), Some(code), "{signal}: {status:?}");
        assert!(!made.exists());
        assert!(home.ok(&["audit", "verify"]).contains("whole"));
    }
}

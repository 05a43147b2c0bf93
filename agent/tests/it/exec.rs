//! `exec` as at any shell: what goes in, what comes out, how it ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::{
    asleep::{mark, out_of_time},
    home::Home,
    pty::Pty,
};

/// More than any of this takes.
const LONG: Duration = Duration::from_secs(60);

fn started(home: &Home, arguments: &[&str]) -> Child {
    let words: Vec<&str> = std::iter::once("exec")
        .chain(arguments.iter().copied())
        .collect();
    home.command(&home.project(), &words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn what_goes_in_and_comes_out_is_the_same_byte_for_byte() {
    let home = Home::new();
    // Bytes of no encoding, more than any pipe holds and any result of a tool keeps.
    let bytes: Vec<u8> = (0..10_000_000_u32)
        .map(|number| u8::try_from(number.wrapping_mul(2_654_435_761) >> 24).unwrap())
        .collect();
    let path = home.path().join("bytes");
    std::fs::write(&path, &bytes).unwrap();
    let words = ["exec", "--", "cat; printf '\\033[1m' >&2"];
    let output = home
        .command(&home.project(), &words)
        .stdin(File::open(&path).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == bytes, "{}", output.stdout.len());
    assert_eq!(output.stderr, b"\x1b[1m");
}

#[test]
fn what_it_prints_comes_while_it_runs_and_its_input_is_read_as_it_comes() {
    let home = Home::new();
    let mut child = started(
        &home,
        &["--", "while read -r line; do echo \"$line!\"; done"],
    );
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    for word in ["one", "two", "three"] {
        writeln!(to, "{word}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{word}!\n"));
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn who_is_given_nothing_to_read_is_given_the_null_device() {
    let home = Home::new();
    let kind = |input: Stdio| {
        let mut command = home.command(&home.project(), &["exec", "--", "stat -Lc %F /dev/stdin"]);
        let output = command.stdin(input).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(kind(Stdio::null()), "character special file\n");
    let file = home.project().join("input");
    std::fs::write(&file, "").unwrap();
    let file = std::fs::File::open(file).unwrap();
    assert_eq!(kind(Stdio::from(file)), "fifo\n");
}

#[test]
fn a_directory_for_temporary_files_that_is_gone_keeps_nobody_from_working() {
    let home = Home::new();
    for odd in ["/nonexistent", "/proc", ""] {
        let mut command = home.command(&home.project(), &["exec", "--", "echo works"]);
        let output = command.env("TMPDIR", odd).output().unwrap();
        assert_eq!(output.stdout, b"works\n", "{odd}: {output:?}");
    }
}

#[test]
fn an_input_that_nobody_reads_holds_nothing_up() {
    let home = Home::new();
    // The other end stays open until the end, and nothing ever comes.
    let mut child = started(&home, &["--", "echo done"]);
    let _kept_open = child.stdin.take();
    assert!(child.wait().unwrap().success());
    let mut child = started(&home, &["--", "head -c 1 > /dev/null; sleep 0.1"]);
    let mut to = child.stdin.take().unwrap();
    let flood = vec![b'x'; 4 << 20];
    // Whoever ends takes no more: that is the pipe's word for it.
    let _refused = to.write_all(&flood);
    assert!(child.wait().unwrap().success());
}

#[test]
fn nobody_advises_against_what_its_user_typed() {
    let home = Home::new();
    let ran = home.run(&[
        "exec",
        "--",
        "nohup sh -c 'sleep 0.1 & echo ok' 2>/dev/null; wait",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{ran:?}");
}

#[test]
fn it_ends_as_the_command_does() {
    let home = Home::new();
    for (command, code) in [
        ("exit 3", 3),
        ("kill -TERM $$", 143),
        ("nosuchprogram", 127),
    ] {
        assert_eq!(
            home.run(&["exec", "--", command]).code,
            Some(code),
            "{command}"
        );
    }
}

#[test]
fn it_takes_as_long_as_its_user_says_and_then_ends() {
    let home = Home::new();
    let mark = mark();
    let command = format!("echo begun; sleep {mark}");
    let ran = out_of_time(&mark, |seconds| {
        let began = Instant::now();
        let ran = home.run(&["exec", "--timeout", &seconds.to_string(), "--", &command]);
        assert!(began.elapsed() < LONG);
        ran
    });
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(124), "begun\n"),
        "{ran:?}"
    );
    assert!(ran.err.contains("longer than it may"), "{ran:?}");
    let ran = out_of_time(&mark, |seconds| {
        home.configure(&format!("[limits]\ntimeout_seconds = {seconds}\n"));
        home.run(&["exec", "--", &command])
    });
    assert_eq!(ran.code, Some(124), "{ran:?}");
    assert_eq!(
        home.run(&["exec", "--timeout", "0", "--", "true"]).code,
        Some(64)
    );
}

#[test]
fn no_reader_that_waits_makes_it_longer() {
    let home = Home::new();
    // It has begun before its time is over, which it may not have so soon on a busy machine.
    let begun = |seconds| {
        let mut child = started(&home, &["--timeout", seconds, "--", "yes"]);
        let mut piece = [0; 4];
        let read = child.stdout.as_mut().unwrap().read_exact(&mut piece);
        if read.is_err() {
            child.wait().unwrap();
        }
        read.is_ok_and(|()| piece == *b"y\ny\n").then_some(child)
    };
    let child = ["1", "5", "25"].into_iter().find_map(begun).unwrap();
    let began = Instant::now();
    while !is_zombie(child.id()) {
        assert!(began.elapsed() < LONG, "it waits for its reader");
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(124));
}

/// Whether a child has ended that nobody has waited for.
fn is_zombie(number: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('Z')
}

#[test]
fn whose_reader_is_gone_is_ended_and_keeps_nothing() {
    let home = Home::new();
    let mut child = started(
        &home,
        &["--grant", "fs.create=.", "--", "echo x > made; yes"],
    );
    let mut piece = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut piece).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(141), "{said}");
    assert!(said.contains("nobody reads what it prints"), "{said}");
    assert!(!home.project().join("made").exists());
}

#[test]
fn a_full_device_is_no_reader_who_went_away() {
    let home = Home::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = home
        .command(&home.project(), &["exec", "--", "echo hi"])
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("has no room for more"), "{said}");
    assert!(!said.contains("nobody reads"), "{said}");
}

#[test]
fn an_interrupt_ends_it_and_what_it_did_is_not_kept() {
    let home = Home::new();
    let mut child = started(
        &home,
        &[
            "--grant",
            "fs.create=.",
            "--",
            "echo x > made; echo begun; sleep 600",
        ],
    );
    let mut begun = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut begun)
        .unwrap();
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), None);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!home.project().join("made").exists());
}

#[test]
fn what_it_says_would_allow_it_allows_that_and_not_what_a_name_stands_for() {
    let home = Home::new();
    let builds = "mkdir '~' && echo 1 > '~/own' && echo 2 > '*' && echo 3 > \"it's \\$HOME\"";
    let ran = home.run(&["exec", "--", builds]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let told = ran.err.split('`').find(|part| part.starts_with("--grant"));
    let told = told.unwrap().to_owned();
    // As somebody copies it to their shell.
    let shell = format!(
        "exec {} exec {told} -- \"$0\"",
        env!("CARGO_BIN_EXE_hermitcrab")
    );
    let pasted = |command: &str| {
        let output = std::process::Command::new("setsid")
            .args(["--wait", "sh", "-c", &shell, command])
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(pasted(builds), (Some(0), String::new()), "{told}");
    assert!(home.project().join("~/own").exists());
    // No more: neither beside it, nor where `~` leads to elsewhere.
    assert_eq!(pasted("echo 4 > beside").0, Some(77));
    assert!(!told.contains("=~") && !told.contains("=*"), "{told}");
    // What cannot be told as it is, is not.
    for odd in [
        "printf x > \"$(printf 'a\\nhermitcrab: b')\"",
        "printf x > \"$(printf 'a\\rb')\"",
        "printf x > 'a`;touch z;`'",
        "printf x > \"$(printf 'a\\377b')\"",
    ] {
        let ran = home.run(&["exec", "--", odd]);
        assert_eq!(ran.code, Some(77), "{odd}: {ran:?}");
        assert!(ran.err.contains("`--grant VERB=PATH`"), "{odd}: {ran:?}");
        assert_eq!(ran.err.trim_end().lines().count(), 1, "{odd}: {ran:?}");
    }
}

#[test]
fn where_nobody_can_be_asked_it_says_what_would_allow_it() {
    let home = Home::new();
    let ran = home.run(&["exec", "--", "echo x > made"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(
        ran.err.contains("--dry-run") && ran.err.contains("--grant"),
        "{ran:?}"
    );
    // All of what is lacked, and nothing that is held: done as it says, it stands.
    let builds = "mkdir -p out/a && echo 1 > out/a/1 && echo 2 > a.txt && echo 3 > lock";
    let ran = home.run(&["exec", "--grant", "fs.create=lock", "--", builds]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let flags = "`--grant fs.modify=a.txt --grant 'fs.*=out'` grants it";
    assert!(ran.err.contains(flags), "{ran:?}");
    let held = [
        "--grant",
        "fs.create=lock",
        "--grant",
        "fs.modify=a.txt",
        "--grant",
        "fs.*=out",
    ];
    let ran = home.run(&[&["exec"][..], &held, &["--", builds]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    // What no grant lets stand is told at once, and not after one was given in vain.
    let ran = home.run(&["exec", "--", "echo A=1 > .env; echo x > made"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let asked = "`.env` is asked about each time, whatever is granted: run it at a terminal";
    assert!(ran.err.contains(asked), "{ran:?}");
    assert!(!ran.err.contains("--grant"), "{ran:?}");
    // Commands in which something is not reached are told what lets them.
    let reach = "echo 'curl: (6) Could not resolve host: a.example.org' >&2; exit 6";
    let ran = home.run(&["exec", "--", reach]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.err.contains("looked for `a.example.org`."), "{ran:?}");
    let ran = home.run(&["exec", "--dry-run", "--", "echo x > made"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.err.contains("nothing of this is kept"), "{ran:?}");
    assert!(!ran.err.contains("you said no"), "{ran:?}");
    assert!(!home.project().join("made").exists());
}

#[test]
fn a_rule_that_withholds_is_named_though_errors_are_told_apart() {
    let home = Home::new();
    std::fs::write(home.project().join("key.pem"), "secret").unwrap();
    home.configure(
        "[[rules]]\nid = \"no-keys\"\ndecision = \"deny\"\nverbs = [\"fs.read\"]\nnamed = \"*.pem\"\n",
    );
    let ran = home.run(&["exec", "--", "cat key.pem"]);
    assert_eq!(ran.out, "", "{ran:?}");
    assert!(ran.err.contains("no-keys"), "{ran:?}");
}

/// Behind `| cat` what a command prints is on the terminal as it is, and what it printed
/// last must not swallow, hide or move what is asked next.
#[test]
fn what_a_command_drew_through_a_pipe_hides_nothing_of_the_question() {
    for drawn in [
        // A title that does not end, a string of a device that does not end.
        r"\033]0;title",
        r"\033P+q",
        // The other screen; letters nobody sees; a region of one line.
        r"\033[?1049h\033[2Jnothing was changed",
        r"\033[8m\033[30;40m",
        r"\033[1;1r",
    ] {
        let home = Home::new();
        let piped = ["sh", "-c", "\"$0\" \"$@\" | cat"];
        let command = format!("rm a.txt; printf '{drawn}'");
        let mut pty = Pty::start_under(&home, &piped, &["exec", "--", &command], &[]);
        let screen = pty.sees("[deny]: ");
        for shown in [
            "command: rm a.txt",
            "deleted file",
            "-a",
            "allow this? once",
        ] {
            assert!(screen.contains(shown), "{drawn}: {screen}");
        }
        let after = pty.raw.windows(4).rposition(|piece| piece == b"\x1b[0m");
        assert!(after.is_some(), "{drawn}: its colours are left");
        pty.keys("deny\n");
        pty.ended();
        assert!(home.project().join("a.txt").exists(), "{drawn}");
    }
    // Where a terminal understands letters alone, it gets nothing else.
    let home = Home::new();
    let piped = ["sh", "-c", "\"$0\" \"$@\" | cat"];
    let mut pty = Pty::start_under(
        &home,
        &piped,
        &["exec", "--", "rm a.txt"],
        &[("TERM", "dumb")],
    );
    pty.sees("[deny]: ");
    assert!(!pty.raw.contains(&0x1b));
    pty.keys("deny\n");
    pty.ended();
}

#[test]
fn a_second_word_typed_along_with_the_first_is_no_answer_to_what_was_not_yet_asked() {
    let home = Home::new();
    for number in 0..25 {
        std::fs::write(home.project().join(format!("f{number}")), "x\n").unwrap();
    }
    let mut pty = Pty::start(&home, &["exec", "--", "rm f*"], &[]);
    pty.sees("[deny]: ");
    pty.keys("once\nyes\n");
    pty.sees("type the word `yes` to go on: ");
    pty.keys("\n");
    pty.ended();
    assert!(home.project().join("f0").exists(), "{}", pty.shown());
}

#[test]
fn a_grant_on_what_is_asked_about_each_time_says_what_it_does_not_spare() {
    let home = Home::new();
    for grant in [
        "fs.modify=/etc/passwd",
        "fs.create=.git/hooks/x",
        "fs.*=.env",
    ] {
        let ran = home.run(&["exec", "--grant", grant, "--", "true"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            ran.err.contains("asked about each time"),
            "{grant}: {ran:?}"
        );
        let kept = home.run(&["caps", "grant", grant]);
        assert!(
            kept.err.contains("asked about each time"),
            "{grant}: {kept:?}"
        );
        home.ok(&["caps", "revoke", kept.out.split(' ').next().unwrap()]);
    }
    // Git's own store is a command's to keep, the list of jobs a tool's.
    for grant in [
        "fs.*=.",
        "fs.modify=.git/index",
        "fs.read=/etc/passwd",
        "fs.*=~/.hermes/cron",
    ] {
        let ran = home.run(&["exec", "--grant", grant, "--", "true"]);
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{grant}: {ran:?}");
    }
}

/// Names of files are bytes, that of a workspace as well.
#[test]
fn a_workspace_whose_name_is_no_text_is_worked_in() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let home = Home::new();
    let place = home.path().join(OsStr::from_bytes(b"w\xe9"));
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("a.txt"), "a\n").unwrap();
    let line = "cat a.txt; echo b > b.txt";
    let ran = home.run_in(&place, &["exec", "--", line]);
    assert_eq!((ran.code, &*ran.out), (Some(77), "a\n"), "{ran:?}");
    let ran = home.run_in(&place, &["exec", "--grant", "fs.create=.", "--", line]);
    assert_eq!((ran.code, &*ran.out), (Some(0), "a\n"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.join("b.txt")).unwrap(), "b\n");
    home.ok(&["audit", "verify"]);
    // What has the very name that letters make of it is another place.
    let other = home.path().join("w\u{fffd}");
    std::fs::create_dir(&other).unwrap();
    let words = format!("fs.create={}", other.display());
    let ran = home.run_in(&place, &["exec", "--grant", &words, "--", "echo c > c.txt"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!place.join("c.txt").exists());
}

/// A program that tries again for minutes prints nothing of it.
#[test]
fn whom_a_command_that_goes_on_did_not_reach_is_said_before_its_end() {
    let home = Home::new();
    let asks = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT 127.0.0.1:9 HTTP/1.1\\r\\n\\r\\n' >&3; \
                read -r line <&3; sleep 6; echo over >&2";
    let ran = home.run(&["exec", "--grant", "net.connect=127.0.0.1:8", "--", asks]);
    let (said, over) = (
        ran.err.find("It goes on, but did not reach `127.0.0.1:9`"),
        ran.err.find("over"),
    );
    assert!(said.is_some() && said < over, "{ran:?}");
    assert!(
        ran.err.contains("Of the network it did not reach"),
        "{ran:?}"
    );
}

/// A shell tells why a program it started was ended; who starts one by this one reads the same.
#[test]
fn what_ended_a_command_by_itself_is_said() {
    let home = Home::new();
    for (command, status, why) in [
        (
            "ulimit -f 0; echo x > made",
            153,
            "longer than `ulimit -f` lets it (SIGXFSZ)",
        ),
        ("kill -SEGV $$", 139, "(SIGSEGV)"),
        ("kill -ABRT $$", 134, "(SIGABRT)"),
    ] {
        let ran = home.run(&["exec", "--grant", "fs.*=.", "--", command]);
        assert_eq!(ran.code, Some(status), "{ran:?}");
        assert!(ran.err.contains(why), "{ran:?}");
    }
    // Whoever ended it knows.
    let ran = home.run(&["exec", "--", "kill -TERM $$"]);
    assert_eq!((ran.code, &*ran.err), (Some(143), ""), "{ran:?}");
}

/// Nothing that could be granted lets this stand, so no way is told that leads nowhere.
#[test]
fn who_would_lend_rights_is_not_sent_to_another_tool() {
    let home = Home::new();
    let ran = home.run(&["exec", "--grant", "fs.*=.", "--", "chmod u+s a.txt"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(
        ran.err
            .contains("no grant covers such an effect: `set-user-id or set-group-id on a.txt`")
            && ran.err.contains("outside the agent"),
        "{ran:?}"
    );
}

/// Two hundred and fifty changes in one directory, and one elsewhere.
const MANY: &str = "mkdir out; for n in $(seq 250); do echo $n > out/$n; done; echo b > a.txt";

#[test]
fn a_dry_run_can_be_told_in_numbers() {
    let home = Home::new();
    let ran = home.run(&["exec", "--dry-run", "--stat", "--", MANY]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let told = format!(
        "in {}:\n  a.txt: 1 changed file; 2 bytes written\n  out/: 250 new files, 1 new directory; 892 bytes written\n\
         in all: 250 new files, 1 new directory, 1 changed file; 894 bytes written\nhermitcrab: a dry run, so nothing of this is kept\n",
        home.project().display()
    );
    assert!(ran.err.ends_with(&told), "{}", ran.err);
    assert!(!ran.err.contains("@@"), "{}", ran.err);
    assert!(!home.project().join("out").exists());
    // A directory that gets another name is one, whatever is in it.
    std::fs::create_dir(home.project().join("d")).unwrap();
    for name in ["x", "y"] {
        std::fs::write(home.project().join("d").join(name), name).unwrap();
    }
    let ran = home.run(&["exec", "--dry-run", "--stat", "--", "mv d e; rm a.txt"]);
    let told = "  a.txt: 1 deleted file\n  d: 1 renamed or moved\nin all: 1 renamed or moved, 1 deleted file\n";
    assert!(ran.err.contains(told), "{}", ran.err);
    // Who reads the differences by a program has all of them, as ever.
    for words in [&["--dry-run"][..], &["--dry-run", "--patch"]] {
        let ran = home.run(&[&["exec"], words, &["--", MANY]].concat());
        assert_eq!(ran.err.matches("@@\n+").count(), 250, "{ran:?}");
        assert!(ran.err.contains("-a\n+b\n"), "{ran:?}");
    }
    // Of what is kept a person sees all before they say yes.
    let ran = home.run(&["exec", "--stat", "--", MANY]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.err.contains("add `--dry-run`"), "{ran:?}");
}

#[test]
fn a_dry_run_of_many_changes_is_summed_up_at_a_terminal() {
    let home = Home::new();
    let mut pty = Pty::start(&home, &["exec", "--dry-run", "--", MANY], &[]);
    pty.sees("--dry-run --patch");
    assert_eq!(pty.ended().code(), Some(77));
    let shown = pty.shown();
    assert!(
        shown.contains("out/: 250 new files, 1 new directory"),
        "{shown}"
    );
    assert!(!String::from_utf8_lossy(&pty.raw).contains("@@"), "{shown}");
    let words = ["exec", "--dry-run", "--patch", "--", MANY];
    let mut pty = Pty::start(&home, &words, &[]);
    assert_eq!(pty.ended().code(), Some(77));
    assert_eq!(
        String::from_utf8_lossy(&pty.raw).matches("@@\r\n+").count(),
        250
    );
}

//! A waiting sandbox is used once: nothing of one command reaches the next.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::{Duration, Instant};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::spawn::{Ending, Input, Running, Stream, Streams, View, ViewMode};
use hermitcrab_sandbox::{DirCap, SpawnError};
use support::numbers::numbered;
use support::{Workspace, marker, processes_with, run, sandbox, text, with_permits};

/// What a command can see of anything that may have been left: one line each.
const LOOK: &str = r#"
ls -A /tmp /var/tmp /dev/shm /run/hermitcrab /dev/mqueue "$PWD" 2>/dev/null
env | grep -v -e ^_= -e ^SHLVL= | sort
pwd; umask; ulimit -a; hostname
cat /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem
tail -n +2 /proc/net/unix | wc -l
set -- /proc/[0-9]*; echo $#
ls -l /proc/self/fd | awk '{print $9}' | sort | tr '\n' ' '
cut -d' ' -f 3- /proc/self/mountinfo | sed 's/[0-9]*:[0-9]*//g' | sort | wc -l
trap; jobs
ls /dev/pts; stat -c '%a %u' /dev/pts/ptmx /tmp /dev/shm
# The root is one for many: its names, and what in it was touched since this began.
find / /etc /dev -xdev -printf '%p %m %U %l\n' | sort
find / /etc /dev -xdev -type f,l '(' -cnewer /proc/1 -o -anewer /proc/1 ')'
echo $$
if command -v perl > /dev/null; then
  perl -e 'print shmget(0, 4096, 0600 | 512), q( ), msgget(0, 0600 | 512), q( ), semget(0, 1, 0600 | 512), qq(\n)'
  perl -e 'use Fcntl; print fcntl(STDIN, F_GETFL, 0) & ~O_ACCMODE, q( ), fcntl(STDIN, 11, 0), qq(\n)'
  perl -e 'for (qw(/ /etc /etc/hosts /etc/passwd /dev)) { sysopen my $f, $_, 0; my $h = pack q(Q), 0; fcntl $f, 1035, $h; print unpack(q(Q), $h), qq( $_\n) }'
  perl -e 'print syscall(SYS_mq_open, my $name = "left", 2, 0, 0), qq(\n)'
fi
"#;

/// Leaves behind whatever can be left.
const LEAVE: &str = r#"
echo x > /tmp/left; mkdir -p /dev/shm/left /var/tmp/left; echo x > /run/hermitcrab/left
echo x > left-in-view; ln -s /etc/passwd /tmp/link; mkfifo /tmp/pipe
for dir in / /etc /var /dev /usr /run; do
  touch "$dir/left"; mkdir "$dir/left"; ln -s left "$dir/left"; chmod 777 "$dir"
  touch "$dir"; rmdir "$dir"/*; rm -f "$dir"/*; mv "$dir" "$dir.left"
done 2> /dev/null < /dev/null
cat /etc/* > /dev/null 2>&1; readlink /bin /var/tmp > /dev/null
export LEFT=behind; cd /tmp; umask 000; ulimit -n 17; ulimit -u 200
hostname left-behind 2>/dev/null
exec 7>/tmp/open; trap 'echo trapped' EXIT TERM
if command -v perl > /dev/null; then
  perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("\0left")); listen(S, 1); sleep 1000' &
  perl -e 'shmget(4711, 4096, 0666 | 512); msgget(4711, 0666 | 512); semget(4711, 1, 0666 | 512); alarm 900; sleep 1000' &
  sleep 0.1
fi
chmod 600 /dev/pts/ptmx 2>/dev/null
if command -v perl > /dev/null; then
  perl -e 'use Fcntl; fcntl(STDIN, F_SETFL, O_NONBLOCK | O_APPEND); fcntl(STDIN, 10, 34)'
  perl -e 'for (qw(/ /etc /etc/hosts /etc/passwd /dev)) { sysopen my $f, $_, 0; my $h = pack q(Q), 4; fcntl $f, 1036, $h; fcntl $f, 1038, $h }'
fi
if command -v python3 > /dev/null; then
  python3 -c 'import os, pty; m, s = pty.openpty(); os.write(m, b"left\n"); os.read(s, 5)'
  # A queue of messages with a name.
  python3 -c 'import ctypes; ctypes.CDLL(None).syscall(SYS_mq_open, b"left", 0o102, 0o666, None)'
fi
(setsid sleep MARKER &); nohup sleep MARKER > /dev/null 2>&1 &
echo left
"#;

fn spawn(workspace: &Workspace, script: &str, stdin: Input) -> Result<Running, SpawnError> {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    let streams = Streams {
        stdin,
        ..Streams::default()
    };
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        let command = workspace.command(script);
        sandbox().spawn(permits.pop().unwrap(), &command, streams)
    })
}

#[test]
fn the_next_command_sees_nothing_of_the_one_before() {
    let workspace = Workspace::new();
    let marker = marker(96);
    let fresh = text(&workspace.run(&numbered(LOOK)));
    assert!(fresh.contains("PATH=/usr/bin:/bin"), "{fresh}");
    for _ in 0..5 {
        let left = workspace.run(&numbered(&LEAVE.replace("MARKER", &marker)));
        assert!(text(&left).contains("left\n"), "{}", text(&left));
        left.changes.into_iter().for_each(|set| set.discard());
        assert_eq!(processes_with(&marker), 0);
        assert_eq!(text(&workspace.run(&numbered(LOOK))), fresh);
    }
}

#[test]
fn the_place_of_one_command_is_not_there_for_another() {
    // Where the names of others could be seen, wherever temporary files go here.
    let in_tmp = || Workspace::at(tempfile::tempdir_in("/tmp").unwrap());
    let (first, second) = (in_tmp(), in_tmp());
    let seen = |workspace: &Workspace| text(&workspace.run("ls -d /srv* /srv/*; ls -A /tmp"));
    let mut command = first.command("ls -d /srv/hermitcrab-place; ls -A /tmp");
    command.private_dirs.push("/srv/hermitcrab-place".into());
    let names = |workspace: &Workspace| {
        let name = workspace.path().file_name().unwrap();
        name.to_str().unwrap().to_owned()
    };
    for _ in 0..2 {
        let own = text(&run(&command).unwrap());
        assert_eq!(own, format!("/srv/hermitcrab-place\n{}\n", names(&first)));
        let other = seen(&second);
        assert!(!other.contains("hermitcrab-place"), "{other}");
        assert!(other.contains(&names(&second)), "{other}");
        assert!(!other.contains(&names(&first)), "{other}");
    }
}

#[test]
fn a_waiting_sandbox_shows_the_files_as_they_are_when_the_command_starts() {
    let workspace = Workspace::new();
    for number in 0..6 {
        workspace.file("f", &number.to_string());
        workspace.file(&format!("only{number}"), "");
        let shown = text(&workspace.run("cat f; ls | wc -l"));
        assert_eq!(shown, format!("{number}{}\n", number + 2));
    }
}

#[test]
fn output_is_shown_as_it_comes_and_input_is_read() {
    let workspace = Workspace::new();
    let mut running = spawn(
        &workspace,
        "while read -r line; do echo \"<$line>\"; done; echo end",
        Input::Pipe,
    )
    .unwrap();
    let stdin = running.take_stdin().unwrap();
    let mut seen = Vec::new();
    for line in ["one\n", "two\n"] {
        rustix::io::write(&stdin, line.as_bytes()).unwrap();
        let before = seen.len();
        while seen.len() == before {
            let over = running
                .attend(Duration::from_secs(20), |stream, bytes| {
                    assert_eq!(stream, Stream::Stdout);
                    seen.extend_from_slice(bytes);
                })
                .unwrap();
            assert!(!over);
        }
    }
    assert_eq!(seen, b"<one>\n<two>\n");
    drop(stdin);
    let finished = running.wait().unwrap();
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(text(&finished), "<one>\n<two>\nend\n");
    assert!(finished.usage.peak_resident_bytes > 0);
}

#[test]
fn a_killed_or_dropped_command_is_gone_with_everything_it_started() {
    let workspace = Workspace::new();
    let marker = marker(97);
    let script = format!("setsid sleep {marker} & echo on; exec sleep {marker}");
    let mut running = spawn(&workspace, &script, Input::Nothing).unwrap();
    while processes_with(&marker) < 2 {
        assert!(!running.attend(Duration::from_millis(5), |_, _| {}).unwrap());
    }
    running.kill();
    assert_eq!(running.wait().unwrap().ending, Ending::Killed);
    assert_eq!(processes_with(&marker), 0);

    let mut dropped = spawn(&workspace, &script, Input::Nothing).unwrap();
    while processes_with(&marker) < 2 {
        assert!(!dropped.attend(Duration::from_millis(5), |_, _| {}).unwrap());
    }
    drop(dropped);
    let patience = Instant::now();
    while processes_with(&marker) > 0 && patience.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(processes_with(&marker), 0);
}

/// Whoever starts one may go before a word of it was heard, while it runs already.
#[test]
fn a_command_that_nobody_ever_attended_to_goes_with_who_started_it() {
    let workspace = Workspace::new();
    let marker = marker(96);
    // The shell that waits was told what to run already; another program is run by itself.
    let scripts = [
        format!("setsid sleep {marker} & exec sleep {marker}"),
        format!("exec setsid -w sh -c 'sleep {marker} & exec sleep {marker}'"),
    ];
    for pause in [0, 1, 3, 10, 30, 300] {
        // More at once than wait for a command.
        let started: Vec<Running> = (0..6)
            .map(|number| {
                spawn(&workspace, &scripts[number % scripts.len()], Input::Nothing).unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_millis(pause));
        drop(started);
    }
    let patience = Instant::now();
    while processes_with(&marker) > 0 && patience.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(processes_with(&marker), 0);
}

#[test]
fn a_directory_made_again_under_its_old_number_is_shown_as_it_is() {
    use std::os::unix::fs::MetadataExt as _;

    let outer = tempfile::tempdir().unwrap();
    let place = outer.path().join("again");
    let number = |path: &std::path::Path| std::fs::metadata(path).unwrap().ino();
    let workspace = Workspace::new();
    let look = || {
        let cap = DirCap::open_ambient_dir(&place, support::dir_id()).unwrap();
        let mut command = workspace.command("cat content");
        command.cwd = place.clone();
        command.views[0] = View {
            dir: &cap,
            at: place.clone(),
            mode: ViewMode::CopyOnWrite,
            withheld: Withheld::default(),
        };
        text(&run(&command).unwrap())
    };
    let mut reused = 0;
    let mut before = None;
    for round in 0..40 {
        if round >= 8 && reused > 0 {
            break;
        }
        // Who shows a directory holds it, and its number with it.
        if round % 2 == 1 {
            push_out_zygotes();
        }
        made_again(outer.path(), &place, before);
        std::fs::write(place.join("content"), format!("{round}\n")).unwrap();
        reused += usize::from(before == Some(number(&place)));
        // Twice, so that sandboxes wait for this one.
        for _ in 0..2 {
            assert_eq!(look(), format!("{round}\n"));
        }
        // Some of the time before those that wait are finished.
        if round % 4 < 2 {
            support::sandbox().settle();
        }
        before = Some(number(&place));
        std::fs::remove_dir_all(&place).unwrap();
    }
    println!("{reused} were given an old number");
    if reused == 0 {
        println!("SKIPPED: this file system gave no number out again");
    }
}

/// Asks for so many other places that no zygote for the old ones is kept, and waits
/// until what they held is let go of.
fn push_out_zygotes() {
    for number in 0..8 {
        let other = Workspace::new();
        let mut command = other.command("true");
        let place = format!("/srv/other-{number}");
        command.private_dirs.push(place.into());
        text(&run(&command).unwrap());
    }
    support::sandbox().settle();
    // The kernel takes a dead one's mounts apart in its own time.
    std::thread::sleep(Duration::from_millis(100));
}

/// Makes a directory, of many that of the wanted number if it is among them:
/// others who make files at the same time may have been given it.
fn made_again(outer: &std::path::Path, place: &std::path::Path, wanted: Option<u64>) {
    use std::os::unix::fs::MetadataExt as _;

    let mut others = Vec::new();
    std::fs::create_dir(place).unwrap();
    for count in 0..200 {
        let found = std::fs::metadata(place).unwrap().ino();
        if wanted.is_none_or(|wanted| wanted == found) {
            break;
        }
        let other = outer.join(format!("other-{count}"));
        std::fs::rename(place, &other).unwrap();
        others.push(other);
        std::fs::create_dir(place).unwrap();
    }
    for other in others {
        std::fs::remove_dir(other).unwrap();
    }
}

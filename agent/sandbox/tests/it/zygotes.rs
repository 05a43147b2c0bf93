//! What commands of the same places have from one zygote, and what they must not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{
    Command, Ending, Finished, PoolSize, Running, Streams, View, ViewMode,
};
use hermitcrab_sandbox::{Sandbox, SpawnError};
use support::numbers::numbered;
use support::{Workspace, marker, processes_with, run, sandbox, spawner, start, text};

/// Which places are under test, in the order of the commands.
const KINDS: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// The processes that its sandboxes are cloned from.
fn zygotes(sandbox: &Sandbox) -> Vec<u32> {
    let own = std::process::id().to_string();
    let line = |id: u32, name: &str| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.map(|rest| rest.trim().to_owned()).unwrap_or_default()
    };
    let depth = |id: u32| line(id, "NSpid:").split_ascii_whitespace().count();
    let mut helpers = sandbox.helpers();
    // The spawner is this process' child; who waits for a command has a pid
    // namespace of its own.
    helpers.retain(|id| line(*id, "PPid:") != own && depth(*id) == depth(std::process::id()));
    helpers
}

/// Waits until the command has said so much.
fn said(running: &mut Running, wanted: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(wanted) {
        let over = running
            .attend(Duration::from_secs(20), |_, bytes| {
                seen.extend_from_slice(bytes)
            })
            .unwrap();
        assert!(!over, "{}", String::from_utf8_lossy(&seen));
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn commands_that_run_at_once_are_in_namespaces_of_their_own() {
    let workspace = Workspace::new();
    let look = "for kind in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$kind; done; echo end; read _";
    let mut commands: Vec<_> = (0..6).map(|_| start(&workspace.command(look))).collect();
    let mut seen: Vec<BTreeSet<String>> = vec![BTreeSet::new(); KINDS.len()];
    // The zygote's count as well, and this process' own.
    let own = std::process::id();
    for id in zygotes(sandbox()).into_iter().chain([own]) {
        for (kind, seen) in KINDS.iter().zip(&mut seen) {
            let link = std::fs::read_link(format!("/proc/{id}/ns/{kind}"));
            // Whoever helps to make a zygote ends, and only root may look at what is left.
            assert!(link.is_ok() || id != own, "{link:?}");
            seen.extend(link.map(|link| link.display().to_string()));
        }
    }
    for running in &mut commands {
        let said = said(running, "end\n");
        for ((kind, link), seen) in KINDS.iter().zip(said.lines()).zip(&mut seen) {
            assert!(link.starts_with(kind), "{link}");
            assert!(seen.insert(link.to_owned()), "{link} is another's");
        }
    }
    for mut running in commands {
        drop(running.take_stdin());
        running.wait().unwrap();
    }
}

#[test]
fn commands_that_run_at_once_see_nothing_of_each_other() {
    let workspace = Workspace::new();
    let look = "ls -A /tmp /var/tmp /dev/shm /run/hermitcrab \"$PWD\"; ls /dev/pts | wc -l
        cat /proc/sysvipc/shm | wc -l; tail -n +2 /proc/net/unix | wc -l; hostname
        set -- /proc/[0-9]*; echo $#; stat -c %d /tmp /dev/shm";
    let shown = |text: String| {
        // The numbers of the devices are the sandbox's own, the rest is alike.
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let devices = lines.split_off(lines.len() - 2);
        (lines, devices)
    };
    let (fresh, _) = shown(text(&workspace.run(look)));
    let leave = "for dir in /tmp /var/tmp /dev/shm /run/hermitcrab \"$PWD\"; do echo x > $dir/left; done
        perl -e 'shmget(4711, 4096, 0666 | 512)'
        perl -MSocket -e '$| = 1; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un(qq(\\0left)));
            listen(S, 1); print qq(left\\n); sleep 1000' & stat -c %d /tmp; read _; kill %1";
    let mut running = start(&workspace.command(leave));
    let device = said(&mut running, "left\n");
    let (seen, devices) = shown(text(&workspace.run(look)));
    assert_eq!(seen, fresh);
    assert!(
        devices
            .iter()
            .all(|own| device.lines().all(|other| other != own)),
        "{devices:?} {device}"
    );
    drop(running.take_stdin());
    assert_eq!(running.wait().unwrap().ending, Ending::Exited(0));
}

#[test]
fn a_killed_zygote_takes_its_commands_along_and_the_next_one_has_another() {
    let workspace = Workspace::new();
    // One of its own: other tests of this process keep theirs.
    let alone = Sandbox::builder().spawner(spawner()).build();
    let begun = |script: &str| {
        let program = Object::Program(Program::AnyInView);
        let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
        support::with_permits(Tool::Terminal, vec![action], |mut permits| {
            let command = workspace.command(script);
            alone.spawn(permits.pop().unwrap(), &command, Streams::default())
        })
    };
    for base in [71, 72, 73] {
        let marker = marker(base);
        let mut running = begun(&format!("sleep {marker} & echo up; wait")).unwrap();
        said(&mut running, "up\n");
        let old = zygotes(&alone);
        assert!(!old.is_empty());
        for id in &old {
            let id = rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
            rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        }
        let ended = running.wait();
        assert!(
            matches!(&ended, Ok(finished) if finished.ending == Ending::Killed)
                || matches!(&ended, Err(SpawnError::Step(_))),
            "{ended:?}"
        );
        while processes_with(&marker) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // What waited for a command dies as well, and one may be taken while it
        // does: that is told the same way. Nothing weaker serves instead.
        let next = (0..20).find_map(|_| match begun("echo next").and_then(Running::wait) {
            Ok(next) if next.ending == Ending::Killed => None,
            Ok(next) => Some(next),
            Err(SpawnError::Step(_)) => None,
            Err(error) => panic!("{error}"),
        });
        let next = next.expect("another zygote");
        assert_eq!(text(&next), "next\n");
        let by = |finished: &Finished| format!("{:?}", finished.confined.by);
        assert_eq!(by(&next), by(&Workspace::new().run("true")));
        assert!(zygotes(&alone).iter().all(|id| !old.contains(id)));
    }
}

#[test]
fn more_places_than_zygotes_are_kept_for_end_no_command_that_runs() {
    let first = Workspace::new();
    let mut running = start(&first.command("echo up; read line; echo \"$line\"; ls /srv"));
    said(&mut running, "up\n");
    for number in 0..10 {
        let other = Workspace::new();
        let mut command = other.command("ls -d /srv/*");
        command
            .private_dirs
            .push(format!("/srv/place-{number}").into());
        assert_eq!(
            text(&run(&command).unwrap()),
            format!("/srv/place-{number}\n")
        );
    }
    let stdin = running.take_stdin().unwrap();
    rustix::io::write(&stdin, b"still here\n").unwrap();
    drop(stdin);
    let finished = running.wait().unwrap();
    assert!(
        text(&finished).contains("still here\n"),
        "{}",
        text(&finished)
    );
    assert!(!text(&finished).contains("place-"));
    assert_eq!(text(&first.run("echo again")), "again\n");
}

#[test]
fn what_is_granted_less_is_less_from_the_next_command_on() {
    let (workspace, other) = (Workspace::new(), Workspace::new());
    workspace.file("file", "content\n");
    let shown = |mode: Option<ViewMode>| {
        let at = workspace.path().display();
        let script =
            format!("cat {at}/file; {{ echo x > {at}/new; }} 2> /dev/null && echo written");
        let mut command = other.command(&script);
        if let Some(mode) = mode {
            command.views.push(View {
                dir: &workspace.cap,
                at: workspace.path().to_owned(),
                mode,
                withheld: Withheld::default(),
            });
        }
        text(&run(&command).unwrap())
    };
    for _ in 0..3 {
        assert_eq!(shown(Some(ViewMode::CopyOnWrite)), "content\nwritten\n");
        assert_eq!(shown(Some(ViewMode::ReadOnly)), "content\n");
        let nothing = shown(None);
        assert!(nothing.contains("No such file"), "{nothing}");
        assert!(!nothing.contains("written"), "{nothing}");
    }
}

/// Two directories change names all the time; a command sees the one that is
/// held, or the run is refused.
#[test]
fn a_directory_that_changes_names_with_another_is_never_taken_for_it() {
    let outer = tempfile::tempdir().unwrap();
    let (held, secret) = (outer.path().join("held"), outer.path().join("secret"));
    for (dir, content) in [(&held, "held"), (&secret, "secret")] {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("file"), content).unwrap();
    }
    let link = outer.path().join("link");
    std::os::unix::fs::symlink("secret", &link).unwrap();
    let cap = hermitcrab_sandbox::DirCap::open_ambient_dir(&held, support::dir_id()).unwrap();
    let owner = std::fs::metadata(&held).unwrap().uid();
    assert_eq!(owner, std::fs::metadata(&secret).unwrap().uid());
    let done = std::sync::atomic::AtomicBool::new(false);
    let other = Workspace::new();
    let (mut served, mut refused, mut wrong) = (0, 0, Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for with in [&secret, &link] {
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    let here = rustix::fs::CWD;
                    let _ = rustix::fs::renameat_with(here, &held, here, with, exchange);
                    std::thread::sleep(Duration::from_micros(700));
                    let _ = rustix::fs::renameat_with(here, &held, here, with, exchange);
                }
            }
        });
        for round in 0..60 {
            let mut command = other.command("cat /srv/view/file");
            command.views.push(View {
                dir: &cap,
                at: "/srv/view".into(),
                mode: [ViewMode::CopyOnWrite, ViewMode::ReadOnly][round % 2],
                withheld: Withheld::default(),
            });
            match run(&command) {
                Ok(finished) if text(&finished) == "held" => served += 1,
                Err(SpawnError::Step(_)) => refused += 1,
                // Not asserted here: the other thread would go on for ever.
                other => wrong.push(format!("round {round}: {other:?}")),
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    println!("{served} served, {refused} refused");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(served > 0);
}

/// Tries to make what all commands share writable, and to uncover what lies
/// below. Prints what worked.
const TAKE_APART: &str = r#"
my $text = sub { "$_[0]\0" };
for my $at ('/', '/etc', '/usr', '/dev', '/dev/null', '/etc/ssl', '/etc/alternatives') {
  next unless -e $at;
  for my $flags (32, 32 | 4096, 32 | 4096 | 2) {
    my $made = syscall(SYS_mount, $text->('none'), $text->($at), $text->(''), $flags, 0);
    print "remounted $at with $flags\n" if $made == 0 && !($flags & 1) && -d $at && open(my $f, '>', "$at/left");
  }
  my $clear = pack 'Q4', 0, 1, 0, 0;
  print "changed $at\n" if syscall(SYS_mount_setattr, -100, $text->($at), 0x8000, $clear, 32) == 0 && -d $at && open(my $f, '>', "$at/left");
  # A copy of it in another place.
  my $copy = "/tmp/copy"; mkdir $copy;
  if (-d $at && syscall(SYS_mount, $text->($at), $text->($copy), $text->(''), 4096, 0) == 0) {
    print "bound $at\n" if open(my $f, '>', "$copy/left");
    syscall(SYS_mount, $text->('none'), $text->($copy), $text->(''), 32 | 4096, 0);
    print "bound $at and remounted\n" if open(my $f, '>', "$copy/left");
    syscall(SYS_umount2, $text->($copy), 2);
  }
  next if $at eq '/';
  print "taken off $at\n" if syscall(SYS_umount2, $text->($at), 2) == 0;
}
# What is its own it may change: the same calls, and they work.
my $own = "/tmp/own"; mkdir $own;
for my $flags (1, 32) { syscall(SYS_mount, $text->('none'), $text->($own), $text->('tmpfs'), $flags, 0) == 0 or die "$own: $!" }
print "its own\n" if open(my $f, '>', "$own/new") && syscall(SYS_umount2, $text->($own), 2) == 0;
"#;

#[test]
fn the_kernel_keeps_the_shared_root_as_it_is_without_the_filter_and_with_all_capabilities() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only commands of root can be left capabilities to try it with");
        return;
    }
    let workspace = Workspace::new();
    workspace.file("probe.pl", &numbered(TAKE_APART));
    let without = MechanismSet::of([
        Mechanism::SystemCallFilter,
        Mechanism::NoCapabilities,
        Mechanism::Landlock,
    ]);
    let weakened = Sandbox::builder()
        .spawner(spawner())
        .pool(PoolSize::OFF)
        .without(without)
        .build();
    let ran = |command: &Command<'_>| {
        let program = Object::Program(Program::AnyInView);
        let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
        support::with_permits(Tool::Terminal, vec![action], |mut permits| {
            weakened.run(permits.pop().unwrap(), command).unwrap()
        })
    };
    let fresh = text(&ran(&workspace.command("find / /etc /dev -xdev | sort")));
    let tried = ran(&workspace.command("exec perl probe.pl"));
    if tried.ending == Ending::Exited(127) {
        println!("SKIPPED: no perl to make system calls with");
        return;
    }
    // It has the capabilities that would be needed: that is the other direction.
    assert_eq!(text(&tried), "its own\n");
    assert_eq!(
        text(&ran(&workspace.command("find / /etc /dev -xdev | sort"))),
        fresh
    );
}

/// The processes that one has made, as the kernel lists them.
fn made_by(id: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let listed = listed.unwrap_or_default();
    let numbers = listed.split_ascii_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// The sockets a process holds, by their numbers; `None` to whoever may not look.
fn sockets_of(id: u32) -> Option<BTreeSet<String>> {
    let held = std::fs::read_dir(format!("/proc/{id}/fd")).ok()?;
    let links = held.filter_map(|held| std::fs::read_link(held.ok()?.path()).ok());
    let links = links.map(|link| link.display().to_string());
    Some(links.filter(|link| link.starts_with("socket:")).collect())
}

#[test]
fn the_first_process_of_a_sandbox_holds_no_way_to_what_it_was_cloned_from() {
    let workspace = Workspace::new();
    let marker = marker(97);
    let script = format!("echo up; sleep {marker}");
    let mut running = start(&workspace.command(&script));
    said(&mut running, "up\n");
    let is_it = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&marker)
    };
    let mut found = Vec::new();
    for zygote in zygotes(sandbox()) {
        for first in made_by(zygote) {
            if made_by(first).iter().any(is_it) {
                found.push((zygote, first));
            }
        }
    }
    let [(zygote, first)] = found[..] else {
        panic!("{found:?}");
    };
    let (Some(of_zygote), Some(of_first)) = (sockets_of(zygote), sockets_of(first)) else {
        println!("SKIPPED: only root may look at what such a process holds");
        return;
    };
    // It is asked by way of one, and the sandbox tells its agent by way of another.
    assert!(!of_zygote.is_empty() && !of_first.is_empty());
    let of_both: Vec<_> = of_zygote.intersection(&of_first).collect();
    assert_eq!(of_both, Vec::<&String>::new());
    running.kill();
}

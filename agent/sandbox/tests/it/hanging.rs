//! A file system that does not answer holds up who asks for what lies on it, no
//! longer than their time, and nobody else.
//!
//! The file system is served by a process beside the test, in mounts of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod within;

use crate::support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command as Bare, Stdio};
use std::time::{Duration, Instant};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::FsError;
use hermitcrab_sandbox::layers::memory_holds_layers;
use hermitcrab_sandbox::spawn::{
    Command, Ending, Finished, Input, PoolSize, Running, Step, Streams, View, ViewMode,
};
use hermitcrab_sandbox::{DirCap, Sandbox, SpawnError};
use support::arranged::{Run, UNPRIVILEGED_WITH_FUSE, UNSHARE, twice};
use support::{Workspace, marker, processes_with, rel, spawner, text, with_permit};

/// The process that serves it; its end is the end of whatever waits for it.
struct Server {
    child: Child,
    says: BufReader<ChildStdout>,
    place: PathBuf,
}

impl Server {
    /// Nothing, where there can be none.
    fn start() -> Option<Self> {
        // In the directory that was made for this run, and goes after it.
        std::fs::create_dir("place").unwrap();
        let place = std::fs::canonicalize("place").unwrap();
        let started = Bare::new("perl")
            .args(["-e", include_str!("hanging/server.pl")])
            .arg(&place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                println!("SKIPPED: no perl to serve a file system with: {error}");
                return None;
            }
        };
        let says = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, says, place };
        let said = server.heard();
        if said != "mounted\n" {
            println!("SKIPPED: {said}");
            return None;
        }
        Some(server)
    }

    fn heard(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line
    }

    fn tell(&mut self, what: &str) {
        // In one piece: it reads no further than the end of a line.
        let line = format!("{what}\n");
        let mut told = self.child.stdin.as_ref().unwrap();
        told.write_all(line.as_bytes()).unwrap();
        assert_eq!(self.heard(), "ok\n");
    }

    /// The capability for its directory.
    fn cap(&self) -> DirCap {
        DirCap::open_ambient_dir(&self.place.join("dir"), support::dir_id()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// One of its own: whether its spawner goes on is what is asked. The file system takes no
/// id map, and its commands see it and no copy of it.
fn alone() -> Sandbox {
    Sandbox::builder()
        .spawner(spawner())
        .pool(PoolSize::OFF)
        .copied_for_owners(false)
        .build()
}

/// The same, whose commands see a copy.
fn alone_with_copies() -> Sandbox {
    Sandbox::builder()
        .spawner(spawner())
        .pool(PoolSize::OFF)
        .build()
}

fn begun(sandbox: &Sandbox, command: &Command<'_>) -> Running {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    let streams = Streams {
        stdin: Input::Pipe,
        ..Streams::default()
    };
    support::with_permits(Tool::Terminal, vec![action], |mut permits| {
        sandbox
            .spawn(permits.pop().unwrap(), command, streams)
            .unwrap()
    })
}

/// Runs a command with an empty input.
fn ran(sandbox: &Sandbox, command: &Command<'_>) -> Result<Finished, SpawnError> {
    let mut running = begun(sandbox, command);
    drop(running.take_stdin());
    running.wait()
}

/// A command on this directory, which has it at `at`.
fn on<'a>(workspace: &'a Workspace, cap: &'a DirCap, at: &str, script: &str) -> Command<'a> {
    let mut command = workspace.command(script);
    command.cwd = "/".into();
    command.views = vec![View {
        dir: cap,
        at: at.into(),
        mode: ViewMode::CopyOnWrite,
        withheld: Withheld::default(),
    }];
    command
}

fn refused(result: Result<Finished, SpawnError>) -> (Step, i32, String) {
    match result {
        Err(SpawnError::Step(error)) => (error.step(), error.errno(), error.to_string()),
        other => panic!("{other:?}"),
    }
}

/// A command elsewhere that was there before and one that comes now.
fn others_go_on(sandbox: &Sandbox, place: &str) {
    let other = Workspace::new();
    let mut command = other.command("echo fine > f; cat f");
    command.private_dirs.push(Path::new("/srv").join(place));
    assert_eq!(text(&ran(sandbox, &command).unwrap()), "fine\n");
}

#[test]
fn commands_on_a_file_system_that_does_not_answer_end_in_time_and_others_run() {
    let name = "hanging::commands_on_a_file_system_that_does_not_answer_end_in_time_and_others_run";
    if let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") {
        commands_end_in_time_and_others_run();
    }
}

#[test]
fn without_root_they_end_in_time_as_well() {
    let name = "hanging::without_root_they_end_in_time_as_well";
    if let Some(Run::Inner) = twice(name, &UNPRIVILEGED_WITH_FUSE, ":", "") {
        commands_end_in_time_and_others_run();
    }
}

fn commands_end_in_time_and_others_run() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let (sandbox, workspace, cap) = (alone(), Workspace::new(), server.cap());
    let look = |at: &str| {
        let mut command = on(&workspace, &cap, at, &format!("cat {at}/file"));
        command.limits.timeout = Duration::from_secs(30);
        text(&ran(&sandbox, &command).unwrap())
    };
    assert_eq!(look("/srv/known"), "content\n");
    let other = Workspace::new();
    let mut before = begun(&sandbox, &other.command("read line; echo \"$line\""));
    let makers = sandbox.helpers();

    server.tell("hold");
    // Of places that commands were made for, and of new ones, which are opened first.
    for at in ["/srv/known", "/srv/new", "/srv/new"] {
        let mut command = on(&workspace, &cap, at, "echo ran");
        command.limits.timeout = Duration::from_secs(1);
        let (step, errno, told) = refused(ran(&sandbox, &command));
        assert_eq!(
            (step, errno),
            (Step::ViewSource, nix::libc::ETIMEDOUT),
            "{told}"
        );
        assert!(told.contains(server.place.to_str().unwrap()), "{told}");
        assert!(told.contains("does not answer"), "{told}");
        others_go_on(&sandbox, &at.replace('/', "-"));
    }
    // One that is not waited for is killed at once, as any other.
    let mut killed = begun(&sandbox, &on(&workspace, &cap, "/srv/new", "echo ran"));
    killed.kill();
    assert!(matches!(killed.wait(), Err(SpawnError::Step(_))));

    let stdin = before.take_stdin().unwrap();
    rustix::io::write(&stdin, b"still here\n").unwrap();
    drop(stdin);
    assert_eq!(text(&before.wait().unwrap()), "still here\n");
    // The same spawner, the same zygotes.
    assert!(
        makers
            .iter()
            .take(2)
            .all(|id| sandbox.helpers().contains(id))
    );

    server.tell("answer");
    for at in ["/srv/known", "/srv/new"] {
        assert_eq!(look(at), "content\n");
    }
}

#[test]
fn a_copy_that_is_held_up_ends_in_time_and_others_run() {
    let name = "hanging::a_copy_that_is_held_up_ends_in_time_and_others_run";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let Some(mut server) = Server::start() else {
        return;
    };
    let (sandbox, workspace, cap) = (alone_with_copies(), Workspace::new(), server.cap());
    let look = || {
        let mut command = on(&workspace, &cap, "/srv/known", "cat /srv/known/file");
        command.limits.timeout = Duration::from_secs(30);
        ran(&sandbox, &command).unwrap()
    };
    let finished = look();
    assert_eq!(text(&finished), "content\n");
    let Some(why) = finished.confined.copied else {
        println!(
            "SKIPPED: this file system takes id maps here: {:?}",
            finished.confined
        );
        return;
    };
    assert!(why.contains("owners"), "{why}");
    let makers = sandbox.helpers();
    let copies = || {
        let of = |id: &u32| std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        makers
            .iter()
            .filter_map(|id| of(id).ok())
            .skip(1)
            .collect::<String>()
    };
    // The one that copied may be seen to its end a little later.
    let none_is_left = || {
        let patience = Instant::now();
        while !copies().is_empty() {
            assert!(patience.elapsed() < Duration::from_secs(30), "{}", copies());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    none_is_left();

    server.tell("keep");
    for _ in 0..3 {
        let mut command = on(&workspace, &cap, "/srv/known", "echo ran");
        command.limits.timeout = Duration::from_secs(1);
        let (step, errno, told) = refused(ran(&sandbox, &command));
        assert_eq!(
            (step, errno),
            (Step::ViewSource, nix::libc::ETIMEDOUT),
            "{told}"
        );
        others_go_on(&sandbox, "others");
    }
    assert_ne!(copies(), "", "none was held up");
    server.tell("answer");
    assert_eq!(text(&look()), "content\n");
    none_is_left();
    assert_eq!(sandbox.helpers().first(), makers.first());
}

#[test]
fn a_command_that_nothing_can_end_is_left_to_itself_and_others_run() {
    let name = "hanging::a_command_that_nothing_can_end_is_left_to_itself_and_others_run";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    if !memory_holds_layers() {
        println!("SKIPPED: commands see a copy on this kernel, which no file system holds up");
        return;
    }
    let Some(mut server) = Server::start() else {
        return;
    };
    let (sandbox, workspace, cap) = (alone(), Workspace::new(), server.cap());
    let other = Workspace::new();
    let mut before = begun(&sandbox, &other.command("read line; echo \"$line\""));
    let marker = marker(9_950);
    let script = format!("read go; cat /srv/known/slow {marker}");
    let mut command = on(&workspace, &cap, "/srv/known", &script);
    command.limits.timeout = Duration::from_secs(8);
    let mut stuck = begun(&sandbox, &command);
    // It is there before the file system goes quiet.
    while !stuck.attend(Duration::from_millis(5), |_, _| {}).unwrap()
        && processes_with(&format!("read go; cat /srv/known/slow {marker}")) == 0
    {}
    server.tell("swallow");
    drop(stuck.take_stdin());
    let (step, errno, told) = refused(stuck.wait());
    assert_eq!((step, errno), (Step::Wait, nix::libc::ETIMEDOUT), "{told}");
    assert!(told.contains("does not answer"), "{told}");
    assert!(processes_with(&marker) > 0, "it was not held up");
    others_go_on(&sandbox, "others");
    let stdin = before.take_stdin().unwrap();
    rustix::io::write(&stdin, b"still here\n").unwrap();
    drop(stdin);
    let before = before.wait().unwrap();
    assert_eq!(
        (before.ending, text(&before).as_str()),
        (Ending::Exited(0), "still here\n")
    );

    server.tell("answer");
    let patience = Instant::now();
    while processes_with(&marker) > 0 {
        assert!(patience.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How long a look may take here. What answers does so long before.
const LOOK_MAX: Duration = Duration::from_secs(2);

fn look(cap: &DirCap, verb: Verb, name: &str) -> Result<usize, FsError> {
    let path = rel(name);
    with_permit(verb, &path, Digest::NONE, |permit| match verb {
        Verb::FsRead => cap.read(permit, &path, 64).map(|bytes| bytes.len()),
        _ => cap.stat(permit, &path).map(|_| 1),
    })
}

fn is_late(seen: Result<usize, FsError>) -> bool {
    match seen {
        Err(FsError::Io { source, .. }) => source.kind() == std::io::ErrorKind::TimedOut,
        _ => false,
    }
}

#[test]
fn the_agents_own_looks_end_in_time_and_what_is_elsewhere_is_seen() {
    let name = "hanging::the_agents_own_looks_end_in_time_and_what_is_elsewhere_is_seen";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let Some(mut server) = Server::start() else {
        return;
    };
    let workspace = Workspace::new();
    workspace.file("file", "here");
    assert_eq!(look(&server.cap(), Verb::FsRead, "file").unwrap(), 8);
    let cap = server.cap().impatient(LOOK_MAX);
    server.tell("hold");
    for verb in [Verb::FsRead, Verb::FsList] {
        assert!(is_late(look(&cap, verb, "file")), "{verb:?}");
        assert_eq!(look(&workspace.cap, Verb::FsRead, "file").unwrap(), 4);
    }
    // Those that wait are bounded: in the end nothing is begun any more.
    for _ in 0..8 {
        assert!(is_late(look(&cap, Verb::FsRead, "file")));
    }
    server.tell("answer");
    let patience = Instant::now();
    while look(&cap, Verb::FsRead, "file").is_err() {
        assert!(patience.elapsed() < Duration::from_secs(30));
    }
    // By itself it has patience as well, and only for what may not answer.
    assert!(format!("{:?}", server.cap()).contains("Patience"));
    assert!(!format!("{:?}", workspace.cap).contains("Patience"));
}

#[test]
fn changes_that_cannot_be_compared_in_time_are_told_and_dropped() {
    let name = "hanging::changes_that_cannot_be_compared_in_time_are_told_and_dropped";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", "") else {
        return;
    };
    let Some(mut server) = Server::start() else {
        return;
    };
    let (sandbox, workspace) = (alone_with_copies(), Workspace::new());
    let cap = server.cap().impatient(Duration::from_millis(200));
    let script = "echo more > /srv/known/new; cat /srv/known/new; read go";
    let command = on(&workspace, &cap, "/srv/known", script);
    let mut running = begun(&sandbox, &command);
    let mut said = Vec::new();
    while !said.ends_with(b"more\n") {
        let patience = Duration::from_secs(20);
        let over = running.attend(patience, |_, bytes| said.extend_from_slice(bytes));
        assert!(!over.unwrap(), "{}", String::from_utf8_lossy(&said));
    }
    server.tell("hold");
    drop(running.take_stdin());
    match running.wait() {
        Err(SpawnError::ChangeSet(error)) => {
            let told = error.to_string();
            assert!(told.contains("does not answer in time"), "{told}");
        }
        other => panic!("{other:?}"),
    }
    others_go_on(&sandbox, "others");
    server.tell("answer");
    assert_eq!(look(&server.cap(), Verb::FsRead, "file").unwrap(), 8);
}

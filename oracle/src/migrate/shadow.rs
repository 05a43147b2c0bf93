//! `bisim shadow -- <hermes command>`: a live Hermes, and beside it both subjects
//! doing the same in worlds.
//!
//! Hermes runs as always: its terminal, its exit status, its signals are its own.
//! A hook in its process tells what was called; whatever becomes of this program,
//! Hermes notices nothing but the time the telling takes, which is measured.

mod listen;
mod mirror;
mod program;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use self::listen::{Listener, Stopped};
use self::mirror::{LOOK_EVERY, Mirror};
use super::home::Home;
use super::replay::{Class, Terms};
use super::source::Snapshot;
use super::translate;
use crate::ambient::Ambient;
use crate::cli::ShadowArgs;
use crate::environment;
use crate::exit::{self, Unwritten};
use crate::figures::{calls, grouped};
use crate::interrupt::Interrupt;
use crate::progress::time;
use crate::pulse::Pulse;
use crate::subject::Processes;

/// The hook; Python imports a module of this name by itself.
const HOOK: &str = include_str!("../../../shim/src/shadow/sitecustomize.py");
const HOOK_NAME: &str = "sitecustomize.py";
/// By which the hook is told where to report.
const SOCKET: &str = "HERMITCRAB_SHADOW";
/// Said where a whole run was heard nothing of.
const UNHEARD: &str = "no call was heard of: either none was made, or the command's Python does not \
    look at PYTHONPATH (`python -I` or `-E`, another user, a container, a machine elsewhere)";
/// How long the last calls may take without a word of it.
const UNTOLD: Duration = Duration::from_secs(1);
/// Calls that wait to be mirrored, each with the workspace after it; Hermes never waits.
const WAITING_MAX: usize = 64;

/// Runs the command; returns Hermes' own exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &ShadowArgs) -> u8 {
    match shadow(ambient, args) {
        Ok(code) => code,
        Err((code, message)) => {
            eprintln!("error: {message}");
            code
        }
    }
}

fn shadow(ambient: &Ambient, args: &ShadowArgs) -> Result<u8, (u8, String)> {
    // Before anything is copied or started for it.
    let named = args.command.first().map(OsString::as_os_str);
    if let Some(message) = program::lacking(named.unwrap_or_default(), &ambient.path) {
        return Err((exit::USAGE, message));
    }
    // What is typed to interrupt Hermes is for Hermes; the threads to come inherit
    // this, and so would Hermes.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGQUIT);
    signals
        .thread_block()
        .map_err(|error| (exit::INTERNAL, format!("cannot block signals: {error}")))?;
    let workspace = args.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    let of_no_use = |why: String| {
        let shown = workspace.display();
        let told = format!(
            "the workspace `{shown}` {why}; name with --workspace the directory Hermes works in"
        );
        (exit::USAGE, told)
    };
    if workspace.is_file() {
        return Err(of_no_use("is a file".to_owned()));
    }
    let workspace = workspace
        .canonicalize()
        .map_err(|error| of_no_use(format!("cannot be entered: {error}")))?;
    let copying = Pulse::start("copying what Hermes keeps, to read the copy");
    let snapshot = Snapshot::take(&args.hermes_home, None, &Interrupt::default());
    drop(copying);
    let snapshot = snapshot.map_err(|unwritten| (unwritten.code, unwritten.message))?;
    if let Some(message) = snapshot.is_strange(&args.hermes_home) {
        let begin = "where Hermes has never run, start it once without the mirror";
        return Err((exit::USAGE, format!("{message}; {begin}")));
    }
    let mut notes = Vec::new();
    let home = Home::read(&snapshot, &mut notes);
    // Hermes may run for days, and a copy of its secrets should not lie there so long.
    drop(snapshot);
    let terms = Terms::new(&home.settings, &translate::translate(&home.settings));
    let report = args
        .report
        .clone()
        .unwrap_or_else(|| ambient.reports.join("target/bisim/shadow"));
    let here = |error: std::io::Error| {
        let cannot = format!("cannot write in `{}`", report.display());
        let unwritten = Unwritten::new(&cannot, &error, "directory with --report");
        (unwritten.code, unwritten.message)
    };
    environment::no_file(&report, "--report")
        .map_err(|unwritten| (unwritten.code, unwritten.message))?;
    std::fs::create_dir_all(&report).map_err(here)?;
    // The hook and the socket in it are Hermes' and this program's alone.
    let private = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(here)?;
    std::fs::write(private.path().join(HOOK_NAME), HOOK).map_err(here)?;
    let socket = private.path().join("calls");
    let (records, arriving) = sync_channel(WAITING_MAX);
    let listener = Listener::start(&socket, &workspace, records).map_err(here)?;

    eprintln!("your Hermes runs once its mirror is there: another one and the agent, in worlds");
    let processes = Processes::default();
    let logs = private.path().join("logs");
    let mirror = environment::prepare(ambient, &args.hermes, &logs, &processes)
        .and_then(|mut starts| environment::try_out(&mut starts, &processes))
        .map_err(|lack| lack.print())
        .ok()
        .and_then(|subjects| {
            Mirror::new(
                ambient,
                args,
                subjects,
                (terms, home.redactor.clone()),
                &workspace,
                &report,
            )
            .map_err(|error| eprintln!("error: {}", here(error).1))
            .ok()
        });
    let runs = match &mirror {
        Some(_) => format!(
            "mirroring to {}; Hermes runs as always",
            report.join(mirror::LINES).display()
        ),
        None => "Hermes runs without a mirror".to_owned(),
    };
    let finish = args.finish;
    let mirrored = mirror.map(|mirror| {
        let stop = listener.stopped();
        std::thread::spawn(move || mirror.run(&arriving, &stop, finish))
    });
    let status = started(
        &mut hermes(ambient, &args.command, private.path(), &socket),
        signals,
    )
    .and_then(|mut child| {
        // Only now it does; a program that cannot be started never ran.
        eprintln!("{runs}");
        child.wait()
    })
    .map_err(|error| {
        let program = args.command.first().map(|word| word.to_string_lossy());
        let program = program.unwrap_or_default();
        (exit::USAGE, format!("cannot start `{program}`: {error}"))
    });
    let stopped = listener.stopped();
    listener.stop();
    let told = mirrored.and_then(|mirroring| finished(mirroring, &stopped, finish, signals));
    let started = status.is_ok();
    if let Some(told) = told.filter(|_| started) {
        if told.calls == 0 && told.left_out == 0 {
            eprintln!("{UNHEARD}");
        } else {
            eprintln!("{}", told.sentence());
        }
        let path = report.join("summary.json");
        let text = serde_json::to_string_pretty(&told).unwrap_or_default();
        std::fs::write(&path, text + "\n").map_err(here)?;
    }
    let status = status?;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(exit::INTERNAL))
}

/// Starts Hermes with these signals as they usually are. Whoever has interrupted
/// this program meanwhile, or does so now, ends both.
fn started(command: &mut Command, signals: SigSet) -> std::io::Result<Child> {
    signals.thread_unblock()?;
    let child = command.spawn();
    signals.thread_block()?;
    child
}

/// What the mirror came to, once it is through. What is typed to interrupt is for this program
/// now, and ends it: its user has seen enough.
fn finished(
    mirroring: JoinHandle<Told>,
    stopped: &Stopped,
    finish: Duration,
    signals: SigSet,
) -> Option<Told> {
    let typed = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
    let is_typed = || {
        let typed = typed.as_ref().ok();
        typed.is_some_and(|typed| matches!(typed.read_signal(), Ok(Some(_))))
    };
    // What came until here was for Hermes.
    while is_typed() {}
    let mut pulse = None;
    let began = Instant::now();
    while !mirroring.is_finished() {
        // Mostly nothing is left, and nothing is said.
        if pulse.is_none() && began.elapsed() > UNTOLD {
            pulse = Some(Pulse::start(&format!(
                "Hermes has ended; its last calls are mirrored for at most {} (--finish), and ^C leaves them out",
                time(finish)
            )));
        }
        if is_typed() {
            stopped.hurry();
        }
        std::thread::sleep(LOOK_EVERY);
    }
    drop(pulse);
    mirroring.join().ok()
}

fn hermes(ambient: &Ambient, words: &[std::ffi::OsString], hook: &Path, socket: &Path) -> Command {
    let (program, arguments) = words.split_first().map_or(
        (std::ffi::OsStr::new("hermes"), &[][..]),
        |(first, rest)| (first, rest),
    );
    let mut path = hook.as_os_str().to_owned();
    if let Some(theirs) = &ambient.python_path {
        path.push(":");
        path.push(theirs);
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PYTHONPATH", path)
        .env(SOCKET, socket);
    command
}

/// What a session of mirroring came to.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Told {
    /// Calls that Hermes made and this heard of.
    pub calls: u64,
    /// Calls that were not told or not mirrored, for want of time.
    pub left_out: u64,
    /// Mirrored calls by class.
    pub classes: BTreeMap<Class, u64>,
    /// Microseconds each call took longer for being told: half of them at most.
    pub overhead_us_median: u64,
    /// All but one of a hundred at most.
    pub overhead_us_p99: u64,
}

impl Told {
    fn sentence(&self) -> String {
        let count = |class| self.classes.get(&class).copied().unwrap_or_default();
        format!(
            "{}, {} left out: {} the same, {} would ask, {} run where Hermes asks or refuses, {} differ, {} unsafe, {} not replayable; telling took {} us a call (median), {} us (p99)",
            calls(self.calls),
            grouped(self.left_out),
            grouped(count(Class::Same)),
            grouped(count(Class::Stricter)),
            grouped(count(Class::Attenuated)),
            grouped(count(Class::Changed)),
            grouped(count(Class::Unsafe)),
            grouped(count(Class::NotReplayed)),
            grouped(self.overhead_us_median),
            grouped(self.overhead_us_p99),
        )
    }
}

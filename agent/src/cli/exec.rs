//! `exec`: a command as behind `env` or `time`, but confined, and with what it changes
//! decided.
//!
//! What it reads and prints goes through as it comes, byte for byte where a file or a
//! program is at the other end; on a terminal nothing in it draws.

mod lacking;
mod through;

use std::{
    cell::Cell,
    fs::File,
    io::{self, IsTerminal},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    rc::Rc,
    time::Duration,
};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::spawn::Ending;
use rustix::fs::FileType;

use self::through::{Gone, Through};
use super::{
    Setting, Trouble, begin,
    open::{Extent, Ground, ground},
    quoted::quoted,
    run, say, span,
};
use crate::{
    ambient,
    cancel::Cancel,
    console::{Console, HANG_UP},
    exit,
    person::TerminalUser,
    runtime::{CommandInput, CommandRun, Fate, TypedCommand, TypedReport},
    screen::visible,
    text::{ansi, unnumbered},
};

/// The signal that ends who writes what nobody reads.
const BROKEN_PIPE: i32 = 13;

/// A command to run.
#[derive(Debug, clap::Args)]
pub struct Exec {
    #[command(flatten)]
    setting: Setting,
    /// End it after so many seconds, or after 90s, 10m or 1h; without it, it takes as long as it takes
    #[arg(long, value_name = "TIME", value_parser = span::read)]
    timeout: Option<Duration>,
    /// Of a dry run: how much would change in which directory, and no differences
    #[arg(long)]
    stat: bool,
    /// Of a dry run: each difference, at a terminal also of more than 200 changes
    #[arg(long, conflicts_with = "stat")]
    patch: bool,
    /// Lend it your terminal, for an editor, a pager or a shell; ^] three times hangs up
    #[arg(short = 't', long)]
    terminal: bool,
    /// The command and its arguments; a single argument is a line for the shell
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

impl Exec {
    /// How much is shown of what would change.
    fn extent(&self, is_dry: bool) -> Result<Extent, Trouble> {
        let (extent, word) = match (self.stat, self.patch) {
            (true, _) => (Extent::Stat, "--stat"),
            (_, true) => (Extent::Patch, "--patch"),
            (false, false) => return Ok(Extent::AsFits),
        };
        if is_dry {
            return Ok(extent);
        }
        let message =
            format!("`{word}` says what a dry run shows, and this is none; add `--dry-run`");
        Err((message, exit::USAGE))
    }
}

/// Runs it and ends with its status.
pub fn exec(exec: &Exec) -> u8 {
    match carried_out(exec) {
        Ok(code) => code,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn carried_out(exec: &Exec) -> Result<u8, Trouble> {
    let line = match exec.command.as_slice() {
        [line] => line.clone(),
        words => words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let ground = ground(&exec.setting.place)?;
    let is_dry = ground.is_dry(&exec.setting);
    let mut setting = exec.setting.clone();
    setting.extent = exec.extent(is_dry)?;
    let cancel = Cancel::default();
    ambient::on_interrupt(&cancel).map_err(|error| {
        (
            format!("cannot take ^C in hand: {error}"),
            exit::ENVIRONMENT,
        )
    })?;
    if exec.terminal && !Console::is_to_be_had() {
        return Err((NO_TERMINAL.to_owned(), exit::USAGE));
    }
    let goes_elsewhere = !(io::stdout().is_terminal() && io::stderr().is_terminal());
    let user = TerminalUser::open().map(|terminal| {
        let terminal = terminal.interrupted_by(cancel.clone());
        if goes_elsewhere {
            terminal.drawn_on()
        } else {
            terminal
        }
    });
    let mut runtime = begin::session_for(&setting, user)?;
    let asked = exec.timeout;
    let most = ground.config.ceilings(&ground.admin).timeout_max;
    let until = asked.into_iter().chain(most).min();
    let gone = Rc::new(Cell::new(None));
    let through = Through::new(cancel.clone(), until, Rc::clone(&gone));
    let apart = through.is_apart();
    runtime.show_progress(Box::new(through));
    let (mut reads, mut own) = (None, None);
    if exec.terminal {
        let (console, theirs) = lent(&cancel)?;
        runtime.show_progress(Box::new(console));
        own = Some(theirs);
    } else {
        reads = input(&exec.setting)?;
    }
    let given = match (&own, &reads) {
        (Some(theirs), _) => CommandInput::Terminal(theirs),
        (None, Some(file)) => CommandInput::File(file),
        (None, None) => CommandInput::Nothing,
    };
    let reads_nothing = own.is_none() && reads.is_none();
    let is_watched = io::stderr().is_terminal();
    let agent = runtime.first_agent();
    let peers = runtime.peers(agent);
    let report = runtime.run_typed(
        agent,
        &TypedCommand {
            command: &line,
            timeout: asked,
            given,
            apart,
        },
    );
    let kept = is_watched.then(|| runtime.last_commit()).flatten();
    for line in runtime.take_told() {
        say(&visible(&line));
    }
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    if let Some(gone) = gone.get() {
        say(match gone {
            Gone::Reader => "nobody reads what it prints any more, so it was ended",
            Gone::Full => {
                "where it prints to has no room for more, so it was ended; make room there, or print elsewhere"
            }
        });
    }
    // The no of a dry run is its own, and was told with what it is about.
    let is_told = is_dry && report.fate.code() == Some(DenialCode::RejectedByUser);
    for line in told(
        &report,
        cancel.is_thrown() || gone.get().is_some(),
        Typed::Exec,
        &ground.places.current,
    ) {
        if !is_told {
            say(&visible(&line));
        }
    }
    if let Some(line) = reached_out(&report, &peers) {
        say(&visible(&line));
    }
    if let Some(line) = programs_elsewhere(&report, &ground) {
        say(&line);
    }
    // An editor or a pager waits for keys that do not reach it.
    if cancel.is_thrown() && reads_nothing && is_watched {
        say("a program that wants a terminal gets one with `exec -t -- COMMAND`");
    }
    if let Some(id) = kept {
        say(&format!(
            "kept as commit {id}; `hermitcrab undo {id}` takes it back"
        ));
    }
    Ok(match (&report.came, &report.fate) {
        _ if cancel.is_thrown() => exit::INTERRUPTED,
        _ if gone.get() == Some(Gone::Full) => exit::ENVIRONMENT,
        _ if gone.get().is_some() => status(Ending::Signalled(BROKEN_PIPE)),
        // A signal is told as shells do.
        (Ok(run), Fate::Ran) => status(run.ending),
        (_, fate) => run::code(fate),
    })
}

/// The terminal of a command that wants one, and what shows it to its user.
pub(super) fn lent(cancel: &Cancel) -> Result<(Console, OwnedFd), Trouble> {
    let opened = Console::open(cancel.clone()).map_err(|error| {
        (
            format!("no terminal can be made for the command: {error}"),
            exit::ENVIRONMENT,
        )
    })?;
    say(&format!(
        "a terminal on a copy of the workspace; {HANG_UP} hangs up"
    ));
    Ok(opened)
}

/// Why a command was not begun, where it was the user who is told that said so.
fn not_run(code: Option<DenialCode>) -> Option<&'static str> {
    let told = [
        (DenialCode::RejectedByUser, "you said no, so it was not run"),
        (
            DenialCode::NoAnswer,
            "no answer came, which counts as no; it was not run",
        ),
        (
            DenialCode::UnknownAnswer,
            "none of the answers offered came, which counts as no; it was not run",
        ),
    ];
    let told = told.into_iter().find(|(known, _)| code == Some(*known));
    told.map(|(_, words)| words)
}

/// What is said where a command is to have a terminal and its user has none.
pub(super) const NO_TERMINAL: &str = "a command can have a terminal where its user has one: both the standard input and output are to be terminals";

/// What its user can do where what a command made was discarded because it reached somebody, or
/// was about to.
fn reached_out(report: &TypedReport, peers: &[String]) -> Option<String> {
    let (denial, _) = report.came.as_ref().ok()?.discarded.as_ref()?;
    (denial.code() == DenialCode::UntrustedFlow && !peers.is_empty()).then(|| {
        format!(
            "it reached out, as it may to {}, and what such a command makes is asked about, whatever is granted on files: a terminal asks, and a command that reaches nobody is not asked about",
            peers.join(", ")
        )
    })
}

/// What its user can do where a program of theirs was not found.
pub(super) fn programs_elsewhere(report: &TypedReport, ground: &Ground) -> Option<String> {
    let run = report.came.as_ref().ok()?;
    ground.where_it_is(run.missing.iter().map(String::as_str))
}

/// What the command reads: what comes from a file or a program, unless a grant is read
/// from there. At a terminal it reads nothing: what is typed there answers questions.
fn input(setting: &Setting) -> Result<Option<File>, Trouble> {
    let stdin = io::stdin();
    let takes_a_grant = setting
        .object
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    if takes_a_grant || stdin.is_terminal() || is_null(stdin.as_fd()) {
        return Ok(None);
    }
    match stdin.as_fd().try_clone_to_owned() {
        Ok(fd) => Ok(Some(File::from(fd))),
        Err(error) => Err((
            format!("the standard input cannot be used: {error}"),
            exit::ENVIRONMENT,
        )),
    }
}

/// Whether nothing comes from there: it is the null device, which programs tell from an
/// empty file. Where they are given a pipe they look for what to work on in there (`rg`), and
/// nowhere else.
fn is_null(stdin: BorrowedFd<'_>) -> bool {
    let Ok(stat) = rustix::fs::fstat(stdin) else {
        return false;
    };
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && stat.st_rdev == rustix::fs::makedev(1, 3)
}

/// The status a shell would tell.
pub(super) fn status(ending: Ending) -> u8 {
    let signalled = |signal: i32| u8::try_from(128_i32.saturating_add(signal)).unwrap_or(u8::MAX);
    match ending {
        Ending::Exited(status) => u8::try_from(status).unwrap_or(u8::MAX),
        Ending::Signalled(signal) => signalled(signal),
        Ending::TimedOut => exit::TIMED_OUT,
        Ending::OutOfMemory | Ending::OutOfRoom | Ending::Killed => signalled(9),
    }
}

/// What a shell says of a program that ended so, where that is nobody's doing: in the status
/// alone it is a number.
fn died_of(signal: i32) -> Option<String> {
    let why = match signal {
        4 => "it did something the processor does not know (SIGILL)",
        6 => "it gave up (SIGABRT)",
        7 => "it reached for memory that is not there (SIGBUS)",
        8 => "it divided by nothing, or the like (SIGFPE)",
        11 => "it reached for memory that is none of its (SIGSEGV)",
        24 => "it took more processor time than `ulimit -t` leaves it (SIGXCPU)",
        25 => "it made a file longer than `ulimit -f` lets it (SIGXFSZ)",
        31 => "it asked the system for something that commands may not (SIGSYS)",
        _ => return None,
    };
    Some(format!("{why}, and was ended by that"))
}

/// The status of a command that failed, where nothing else says how it ended.
pub(super) fn failure(ending: Ending) -> Option<u8> {
    match ending {
        Ending::Exited(_) | Ending::Signalled(_) | Ending::Killed => {
            Some(status(ending)).filter(|status| *status != 0)
        }
        Ending::TimedOut | Ending::OutOfMemory | Ending::OutOfRoom => None,
    }
}

/// Where a command was typed, and so how more is granted to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// As words of `hermitcrab exec`.
    Exec,
    /// At the prompt.
    Prompt,
}

impl Typed {
    /// What shows all that a command would change, and what grants it that.
    fn ways(self, grants: Option<Vec<String>>) -> (&'static str, String) {
        let grants = grants.unwrap_or_else(|| vec!["VERB=PATH".to_owned()]);
        match self {
            Self::Exec => {
                let flags = grants.iter().map(|grant| format!("--grant {grant}"));
                ("exec --dry-run", flags.collect::<Vec<_>>().join(" "))
            }
            Self::Prompt => ("dry-run COMMAND", format!("grant {}", grants.join(" "))),
        }
    }
}

/// What its user, who names places from this directory, is to know besides what it printed
/// itself.
pub(super) fn told(
    report: &TypedReport,
    is_called_off: bool,
    typed: Typed,
    from: &Path,
) -> Vec<String> {
    let run = match &report.came {
        Ok(run) => run,
        Err(why) => return vec![not_run(report.fate.code()).map_or(why.clone(), str::to_owned)],
    };
    let mut told = Vec::new();
    match run.ending {
        Ending::TimedOut => told.push("it took longer than it may (`--timeout`, or `limits.timeout_seconds`) and was ended".to_owned()),
        Ending::OutOfRoom => told.push("what it changed takes more room on disk than it may, and it was ended; `config set limits.changes_max_mb` gives it more".to_owned()),
        // Of memory there is a word below.
        Ending::Signalled(signal) => told.extend(died_of(signal)),
        Ending::Exited(_) | Ending::OutOfMemory | Ending::Killed => {}
    }
    if let Some((denial, _)) = &run.discarded {
        told.push(match denial.code() {
            // That it was called off is known to whoever called it off.
            _ if is_called_off => "what it changed is discarded".to_owned(),
            DenialCode::RejectedByUser => "you said no; what it changed is discarded".to_owned(),
            DenialCode::NoAnswer => "no answer came; what it changed is discarded".to_owned(),
            DenialCode::UnknownAnswer => {
                "none of the answers offered came, which counts as no; what it changed is discarded".to_owned()
            }
            DenialCode::NoCap => {
                let (shows, grants) = typed.ways(lacking::grants(&run.lacking, from));
                // A grant would lead from one refusal to the next.
                let next = match lacking::asked_always(&run.lacking, from) {
                    None => format!("`{grants}` grants it"),
                    Some(what) => format!(
                        "and {what} is asked about each time, whatever is granted: run it at a terminal, where you can say yes"
                    ),
                };
                format!("what it changed is discarded ({denial}); `{shows}` shows all of it, {next}")
            }
            // The user it says to ask is who reads this.
            DenialCode::UntrustedFlow => format!(
                "what it changed is discarded: {}; run it at a terminal, where you can say yes",
                unnumbered(&denial.to_string())
            ),
            code => format!(
                "what it changed is discarded ({code}): {}. Next step: {}.",
                unnumbered(&denial.to_string()),
                code.next_step()
            ),
        });
    }
    if let Some(left_out) = &run.left_out {
        told.push(format!(
            "what it changed {} ({}): {left_out} Next step: {}.",
            left_out.in_words(),
            left_out.code(),
            left_out.next_step()
        ));
    }
    if !run.undone.is_empty() {
        told.push(format!(
            "for it to be done again, this is what it did to what is there now:\n{}",
            run.undone.trim_end()
        ));
    }
    if report.left_out > 0 && run.discarded.is_none() {
        told.push(format!(
            "what it left in caches is not kept ({} {}, see `sandbox.caches`); a grant keeps it",
            report.left_out,
            if report.left_out == 1 {
                "name"
            } else {
                "names"
            }
        ));
    }
    told.extend(run.reasons.told().map(str::to_owned));
    told
}

/// Prints what a command printed that nobody watched.
pub(super) fn print_whole(run: &CommandRun) {
    let text = visible(&ansi::strip(&run.output));
    let text = text.trim_end_matches('\n');
    // A reader that went away is no failure of the command.
    if !text.is_empty() {
        println!("{text}");
    }
    let left_out = run
        .output_letters
        .saturating_sub(run.output.chars().count());
    if left_out > 0 {
        say(&format!(
            "it printed more than is kept: {left_out} letters in the middle are left out"
        ));
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_sandbox::spawn::Ending;

    use super::status;

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(status(Ending::Exited(3)), 3);
        assert_eq!(status(Ending::Signalled(15)), 143);
        assert_eq!(status(Ending::TimedOut), 124);
        assert_eq!(status(Ending::OutOfMemory), 137);
    }
}

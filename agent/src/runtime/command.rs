//! Running a command on a copy of what the agent may read, and deciding
//! afterwards, from what it did there, what may stand.
//!
//! The text of a command decides nothing. It reaches the shell as a file, not
//! as part of another command line. The working directory and the exported
//! variables it leaves are read back for the next command; they come from the
//! command and are treated as its output. So what a person types has a shell of its
//! own: what commands of the model's left there would decide what it means.

use std::{
    ffi::OsStr,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use hermitcrab_core::{
    outcome::{Denial, DenialCode, Outcome},
    tool::Tool,
};
use hermitcrab_sandbox::spawn::{Ending, Finished, Grace, Running, SpawnError, Stream};

mod anew;
mod apart;
mod attended;
mod besides;
mod check;
mod conclude;
mod feed;
mod gone;
mod lacking;
mod launch;
mod missing;
mod network;
mod reached;
mod reasons;
mod repository;
mod seen;
mod settle;
mod shell;
mod short;
mod typed;
mod unsaved;

pub use self::apart::LeftOut;
pub use self::check::checked_text;
pub use self::feed::CommandInput;
use self::reached::Vain;
pub use self::reasons::Reasons;
use self::shell::{Shell, without_way_out};
pub(super) use self::{
    attended::Care,
    conclude::Over,
    feed::on_terminal,
    launch::Launch,
    reasons::Whose,
    settle::{behind_links, summary},
};
pub use self::{
    lacking::Lacking,
    typed::{TypedCommand, TypedReport},
};
use super::{
    afoot::Stands, agent_state::LeftOff, hands::Hands, mounts::lexical, seen::Seen, turn::Stop,
};
use crate::{digest::sha256, ports::ProgressPort, text::letters::Letters};

/// Bytes of exported variables carried to the next command.
const EXPORTED_BYTES_MAX: usize = 1 << 20;
/// How often it is looked whether a running command is still wanted.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What a command of a shell has, when its time is over, to put away what it made.
const GRACE: Grace = Grace::Terminate(Duration::from_secs(1));
/// The longest working directory, in bytes.
const CWD_BYTES_MAX: usize = 4096;

/// A command to run.
#[derive(Clone, Debug)]
pub struct CommandRequest<'c> {
    /// For the shell, as the model wrote it.
    pub command: &'c str,
    /// Where, if not where the last command left off.
    pub workdir: Option<&'c str>,
    /// How long it may take.
    pub timeout: Duration,
    /// What it reads.
    pub given: CommandInput<'c>,
    /// Whether what it says of errors is told apart from what it says.
    pub apart: bool,
    /// Who wrote it.
    pub by: Author,
}

/// Who wrote a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A model, or this program for it.
    Model,
    /// A person, at a prompt.
    Person,
}

/// A command that ran.
#[derive(Clone, Debug)]
pub struct CommandRun {
    /// How it ended.
    pub ending: Ending,
    /// Its output; of a very long one, both ends.
    pub output: String,
    /// Letters of output there were.
    pub output_letters: usize,
    /// Where it left off.
    pub cwd: PathBuf,
    /// Why what it did was thrown away, if it was, and whether the user was asked.
    pub discarded: Option<(Denial, bool)>,
    /// What of it does not stand, where a person worked on the terminal it was lent: all else
    /// does.
    pub left_out: Option<LeftOut>,
    /// Why it may have failed, where that can be told.
    pub reasons: Reasons,
    /// Words that may name programs it did not find.
    pub missing: Vec<String>,
    /// What it would have to hold, where nobody could be asked whether what it did may stand.
    pub lacking: Vec<Lacking>,
    /// What a person did on the terminal it was lent, where that is discarded and they were
    /// asked nothing that showed it: it can be done again.
    pub undone: String,
}

/// What of a command that ran may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// What it did, and where and with which variables it left off.
    EffectsAndState(Author),
    /// What it did.
    Effects,
    /// Nothing; its words are all that is wanted of it.
    Nothing,
}

impl Hands<'_> {
    /// Runs a command to its end and lets what it did stand, or not. One that
    /// was overtaken by somebody's save runs again if its user wants it to.
    pub fn run(&mut self, request: &CommandRequest<'_>) -> Result<CommandRun, Stop> {
        self.run_until_it_stands(request.command, |hands| {
            hands.run_shell(request, Kept::EffectsAndState(request.by))
        })
    }

    fn run_shell(&mut self, request: &CommandRequest<'_>, kept: Kept) -> Result<CommandRun, Stop> {
        let seen = self.seen()?.into();
        let (base, exported, shell) = self.left_off(request.by);
        let workdir = request.workdir.map_or_else(
            || base.as_os_str().as_bytes().to_vec(),
            |workdir| {
                super::place::tilde_expanded(workdir, self.home())
                    .into_os_string()
                    .into_vec()
            },
        );
        let inputs = vec![
            ("env".to_owned(), exported.unwrap_or_default()),
            ("base".to_owned(), base.as_os_str().as_bytes().to_vec()),
            ("workdir".to_owned(), workdir),
            ("command".to_owned(), request.command.as_bytes().to_vec()),
        ];
        let launch = Launch {
            tool: Tool::Terminal,
            about: request.command,
            argv: vec![
                b"/usr/bin/bash".to_vec(),
                b"-c".to_vec(),
                shell::script(shell, request.command, request.given).into_bytes(),
            ],
            env: Vec::new(),
            inputs,
            merge_stderr: !request.apart,
            timeout: request.timeout,
            grace: GRACE,
        };
        self.run_launch(launch, &seen, request.given, kept)
    }

    /// Where the next command of this author begins, with which variables, in which shell.
    fn left_off(&mut self, by: Author) -> (PathBuf, Option<Vec<u8>>, Shell) {
        let workspace = self.runtime.config.workspace.clone();
        let (base, state) = (self.cwd(), self.state());
        match by {
            Author::Model => (base, state.exported.clone(), Shell::of(state)),
            Author::Person => {
                let LeftOff { cwd, exported } = state.person.clone();
                let shell = match exported {
                    Some(_) => Shell::Used,
                    None => Shell::New,
                };
                (cwd.unwrap_or(workspace), exported, shell)
            }
        }
    }

    /// Runs a program with arguments, none of which a shell reads, to its end;
    /// the working directory and variables it leaves are its own affair.
    pub fn run_argv(
        &mut self,
        program: &str,
        args: &[String],
        timeout: Duration,
    ) -> Result<CommandRun, Stop> {
        let mut words = vec![program.to_owned()];
        words.extend_from_slice(args);
        // One text for one list of words: what is asked about and recorded.
        let about = serde_json::Value::from(words.clone()).to_string();
        self.run_until_it_stands(&about, |hands| hands.run_words(&about, &words, timeout))
    }

    fn run_words(
        &mut self,
        about: &str,
        words: &[String],
        timeout: Duration,
    ) -> Result<CommandRun, Stop> {
        let seen = self.seen()?.into();
        let mut argv: Vec<Vec<u8>> = [
            "/usr/bin/bash",
            "-c",
            "builtin cd -- \"$1\" || exit 126; shift; exec -- \"$@\"",
            "hermitcrab",
        ]
        .map(|word| word.as_bytes().to_vec())
        .into();
        argv.push(
            self.runtime
                .config
                .workspace
                .as_os_str()
                .as_bytes()
                .to_vec(),
        );
        argv.extend(words.iter().map(|word| word.clone().into_bytes()));
        let launch = Launch {
            tool: Tool::Terminal,
            about,
            argv,
            env: Vec::new(),
            inputs: Vec::new(),
            merge_stderr: true,
            timeout,
            grace: Grace::None,
        };
        self.run_launch(launch, &seen, CommandInput::Nothing, Kept::Effects)
    }

    fn run_launch(
        &mut self,
        launch: Launch<'_>,
        seen: &Arc<[Seen]>,
        given: CommandInput<'_>,
        kept: Kept,
    ) -> Result<CommandRun, Stop> {
        let base = self.cwd();
        let about = launch.about;
        let (streams, feeder) = feed::streams(given).map_err(|error| {
            Stop::Broken(format!("the command cannot be given its input: {error}"))
        })?;
        let whose = self.whose();
        let (call, running) = self.launch(launch, seen, streams)?;
        let mut wanted = true;
        let finished = running.and_then(|mut running| {
            let afoot = &self.runtime.afoot;
            if afoot.has_any() {
                let how = (&mut running, Stands::AtItsEnd);
                afoot.begin(call, about, seen, how, &self.runtime.machine);
            }
            if let (Some(feeder), Some(end)) = (feeder, running.take_stdin()) {
                feeder.feed(end);
            }
            self.attended(running, &mut wanted)
        });
        let mut finished = match finished {
            Ok(finished) => finished,
            Err(SpawnError::Denied(denial)) => {
                self.finish(call, Outcome::Refused(denial.code()))?;
                return Err(Stop::refused(denial));
            }
            Err(SpawnError::Step(error)) => {
                return Err(self.not_started(call, SpawnError::Step(error))?);
            }
            // It ran, but nobody can tell what it did: that cannot be allowed.
            Err(SpawnError::ChangeSet(error)) => {
                let denial = error.denial();
                self.finish(call, Outcome::Discarded(denial.code()))?;
                return Ok(CommandRun {
                    ending: Ending::Killed,
                    output: String::new(),
                    output_letters: 0,
                    cwd: base,
                    discarded: Some((denial, false)),
                    left_out: None,
                    reasons: Reasons::default(),
                    missing: Vec::new(),
                    lacking: Vec::new(),
                    undone: String::new(),
                });
            }
        };
        *self.changes = summary(&finished.changes);
        let moved = gone::moved_to(&finished, seen);
        // What was revoked while it ran does not cover what it did.
        if let Err(error) = self.runtime.heed() {
            self.finish(call, Outcome::Failed)?;
            return Err(Stop::Broken(error.to_string()));
        }
        let mut left_out = None;
        let settled = if kept == Kept::Nothing {
            Ok(finished
                .changes
                .iter()
                .any(|set| !set.is_empty())
                .then(|| (Denial::new(DenialCode::EffectNotCovered, about), false)))
        } else if !wanted {
            let denial = Denial::new(DenialCode::RejectedByUser, "it was called off while it ran");
            Ok(Some((denial, false)))
        } else if let CommandInput::Terminal(_) = given {
            self.settle_apart(call, about, seen, &mut finished)
                .map(|(refused, apart)| {
                    left_out = apart;
                    refused
                })
        } else {
            self.settle(call, about, seen, &mut finished)
        };
        let outcome = match (&settled, &left_out) {
            (Ok(None), Some(apart)) if apart.is_all() => Outcome::Discarded(apart.code()),
            (Ok(None), _) if finished.ending == Ending::TimedOut => Outcome::TimedOut,
            (Ok(None), _) => Outcome::Done(sha256(&finished.stdout.to_bytes())),
            (Ok(Some((denial, _))), _) => Outcome::Discarded(denial.code()),
            (Err(_), _) => Outcome::Failed,
        };
        let lacking = match &settled {
            Ok(Some((denial, false))) if denial.code() == DenialCode::NoCap => {
                self.lacking(call, seen, &finished)
            }
            Ok(_) | Err(_) => Vec::new(),
        };
        let undone = match (&settled, given) {
            (Ok(Some((_, false))), CommandInput::Terminal(_)) if wanted => {
                settle::told_of(seen, &finished)
            }
            _ => String::new(),
        };
        self.finish(call, outcome)?;
        let discarded = settled?;
        // What was thrown away leaves nothing behind, not even a directory to be in.
        if let (None, Kept::EffectsAndState(by)) = (&discarded, kept) {
            self.remember(&finished, moved.as_deref(), seen, by);
        }
        let is_lost = moved.is_none() || discarded.is_some();
        let mut run = self.report(whose, &finished, seen, discarded);
        if is_lost {
            let told = gone::told(&finished);
            run.output_letters = run.output_letters.saturating_add(told.chars().count());
            run.output.push_str(&told);
        }
        Ok(CommandRun {
            lacking,
            left_out,
            undone,
            ..run
        })
    }

    /// Waits for a command's end and shows its output; one that is not wanted
    /// any more is killed.
    pub(super) fn attended(
        &mut self,
        mut running: Running,
        wanted: &mut bool,
    ) -> Result<Finished, SpawnError> {
        let by = self.by;
        let has_others = self.runtime.afoot.has_any();
        let Some(mut progress) = self.runtime.progress.take() else {
            return match has_others {
                false => running.wait(),
                true => self.beside_others(running),
            };
        };
        let (mut plain, mut error) = (Letters::default(), Letters::default());
        let mut show = |progress: &mut dyn ProgressPort, stream, bytes: &[u8]| {
            if progress.takes(by, stream, bytes) {
                return;
            }
            let text = match stream {
                Stream::Stdout => plain.take(bytes),
                Stream::Stderr => error.take(bytes),
            };
            if !text.is_empty() {
                progress.output(by, &text);
            }
        };
        progress.began(by);
        let (mut next, mut vain) = (Instant::now(), Vain::default());
        let ended = loop {
            let attended = running.attend(LOOK_EVERY, |stream, bytes| {
                show(&mut *progress, stream, bytes);
            });
            for line in vain.news(running.elapsed(), |known| running.tried_since(known)) {
                progress.notice(by, &line);
            }
            match attended {
                Ok(true) => {
                    break running.wait_with(|stream, bytes| show(&mut *progress, stream, bytes));
                }
                Ok(false) if *wanted && !progress.is_wanted() => {
                    *wanted = false;
                    running.kill();
                }
                Ok(false) if has_others => self.keep_meanwhile(&mut next),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        for rest in [plain.rest(), error.rest()] {
            if !rest.is_empty() {
                progress.output(by, &rest);
            }
        }
        progress.ended(by);
        self.runtime.progress = Some(progress);
        ended
    }

    /// Waits for a command's end, beside which others run.
    fn beside_others(&mut self, mut running: Running) -> Result<Finished, SpawnError> {
        let mut next = Instant::now();
        while !running.attend(LOOK_EVERY, |_, _| {})? {
            self.keep_meanwhile(&mut next);
        }
        running.wait()
    }

    /// Keeps the working directory and variables for the next command. A model goes on
    /// where its user left off, and never the other way about.
    fn remember(&mut self, finished: &Finished, moved: Option<&Path>, seen: &[Seen], by: Author) {
        let exported = finished.exchange.read("env.after", EXPORTED_BYTES_MAX);
        let env = &self.runtime.config.env;
        let exported = exported
            .ok()
            .map(|exported| without_way_out(&exported, env));
        // Where the one it was to begin in is gone, the next begins in what is left above
        // it; not above what was shown, where the whole of that may come again.
        let after = told_place(finished, "cwd.after").or_else(|| moved.map(Path::to_owned));
        let cwd = after.or_else(|| {
            told_place(finished, "cwd.left")
                .filter(|left| seen.iter().any(|seen| left.starts_with(&seen.at)))
        });
        let state = self.state();
        if let Some(exported) = exported {
            if by == Author::Person {
                state.person.exported = Some(exported.clone());
            }
            state.exported = Some(exported);
        }
        if let Some(cwd) = cwd {
            if by == Author::Person {
                state.person.cwd = Some(cwd.clone());
            }
            state.cwd = cwd;
        }
        state.cwd_is_from_command = true;
    }

    fn report(
        &self,
        whose: Whose,
        finished: &Finished,
        seen: &[Seen],
        discarded: Option<(Denial, bool)>,
    ) -> CommandRun {
        let head = String::from_utf8_lossy(&finished.stdout.head);
        let tail = String::from_utf8_lossy(&finished.stdout.tail);
        let omitted = usize::try_from(finished.stdout.omitted_bytes).unwrap_or(usize::MAX);
        let output = if omitted == 0 {
            String::from_utf8_lossy(&finished.stdout.to_bytes()).into_owned()
        } else {
            format!("{head}{tail}")
        };
        let output_letters = output.chars().count().saturating_add(omitted);
        let errors = String::from_utf8_lossy(&finished.stderr.head);
        CommandRun {
            ending: finished.ending,
            reasons: self.reasons(&whose, finished, seen, [&output, &errors]),
            missing: missing::missing(finished.ending, &[&output, &errors]),
            output,
            output_letters,
            cwd: self.cwd(),
            discarded,
            left_out: None,
            lacking: Vec::new(),
            undone: String::new(),
        }
    }
}

/// A directory a shell told of.
fn told_place(finished: &Finished, name: &str) -> Option<PathBuf> {
    let mut bytes = finished.exchange.read(name, CWD_BYTES_MAX).ok()?;
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    lexical(Path::new(OsStr::from_bytes(&bytes)))
}

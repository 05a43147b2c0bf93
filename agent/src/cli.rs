//! The terminal front end: one command or one call at a time.

mod acp;
mod as_json;
mod attach;
mod audit;
mod begin;
mod caps;
mod chat;
mod choice;
mod config;
mod conversations;
mod cron;
mod doctor;
mod examples;
mod exec;
mod explain;
mod lines;
mod model;
mod no_text;
mod open;
mod plan;
mod quoted;
mod repl;
mod run;
mod seen;
mod servers;
mod session;
mod shell;
pub mod span;
mod undo;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use hermitcrab_core::approval::Asking;

use crate::{ambient, exit, printing, screen, text::rows};

/// What went wrong before anything was done: the message and the exit code.
type Trouble = (String, u8);

/// An agent whose authority is capabilities: what is not granted is asked
/// about, with everything it would change on the screen, or refused.
#[derive(Debug, Parser)]
#[command(name = "hermitcrab", version, after_help = exit::HELP, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Nothing else: the prompt, at once or where a conversation was left.
    #[command(flatten)]
    go_on: conversations::GoOn,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Work at a prompt; what the program does without a command
    #[command(name = "prompt")]
    Repl(repl::Prompt),
    /// Run a command on a copy of the workspace; keep what it changed only if that is granted or you say so
    #[command(after_help = examples::fitted(examples::EXEC))]
    Exec(exec::Exec),
    /// Make one tool call, as a model would, and print what the model would see
    #[command(after_help = examples::fitted(examples::CALL))]
    Call {
        #[command(flatten)]
        setting: Setting,
        #[arg(help = run::tools())]
        tool: String,
        /// The arguments, as JSON
        arguments: String,
    },
    /// Talk with a model that works in the workspace by tool calls
    #[command(after_help = examples::fitted(examples::CHAT))]
    Chat {
        #[command(flatten)]
        setting: Setting,
        #[command(flatten)]
        choice: choice::Choice,
        #[command(flatten)]
        go_on: conversations::GoOn,
        #[command(flatten)]
        words: chat::Words,
    },
    /// Check a plan and show its steps, their risk, and what each needs
    #[command(after_help = examples::fitted(examples::PLAN))]
    Plan {
        #[command(flatten)]
        setting: Setting,
        #[command(flatten)]
        source: plan::Source,
        /// Only show what a plan can be written with: actions, their arguments and results, and
        /// the functions of values
        #[arg(long, conflicts_with_all = ["request", "plan", "json"])]
        actions: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Carry out a plan, step by step through the same gate as everything else
    #[command(after_help = examples::fitted(examples::RUN))]
    Run {
        #[command(flatten)]
        setting: Setting,
        #[command(flatten)]
        source: plan::Source,
        #[command(flatten)]
        how: plan::How,
    },
    /// Serve an editor: the Agent Client Protocol on the standard streams
    // The editor says where a session works, and what it may do is asked about in it.
    #[command(
        mut_arg("workspace", |arg| arg.hide(true)),
        mut_arg("object", |arg| arg.hide(true)),
        after_help = examples::fitted(examples::ACP)
    )]
    Acp {
        #[command(flatten)]
        setting: Setting,
        #[command(flatten)]
        choice: choice::Choice,
        #[command(flatten)]
        options: acp::Options,
    },
    /// Take back what the last command did to the workspace
    #[command(after_help = examples::fitted(examples::UNDO))]
    Undo(undo::Arguments),
    /// Try out what isolates commands on this machine, say when you are asked, and look after ledger and store
    Doctor(doctor::Doctor),
    /// Show, keep, confirm, share and revoke the grants that outlive a session
    #[command(after_help = examples::fitted(examples::CAPS))]
    Caps(caps::Caps),
    /// Show what a running session holds; end a grant, an agent or all of it; change its mode; answer a proposal
    #[command(after_help = examples::fitted(examples::SESSION))]
    Session(session::Session),
    /// Show what was said to models at a terminal and in editors; forget some of it
    #[command(after_help = examples::fitted(examples::CONVERSATIONS))]
    Conversations(conversations::Conversations),
    /// Show the jobs that are to be done later, grant one something, run those that are due
    #[command(after_help = examples::fitted(examples::CRON))]
    Cron(cron::Cron),
    /// Show and forget the answers that are given again to the same question
    Remembered(caps::Remembered),
    /// Say what would become of an effect, and by which rule of which file and line
    #[command(after_help = examples::fitted(examples::EXPLAIN))]
    Explain(explain::Explain),
    /// Show the servers of tools outside; ask one which tools it has
    Servers(servers::Servers),
    /// Show the ledger, follow it, or check it
    #[command(after_help = examples::fitted(examples::AUDIT))]
    Audit(audit::Audit),
    /// Show the configuration, and change it
    #[command(after_help = examples::fitted(examples::CONFIG))]
    Config(config::ConfigArgs),
    /// Show the models you have, and try them out
    Model(model::ModelArgs),
    /// Write the completions for a shell
    #[command(after_help = examples::fitted(examples::COMPLETIONS))]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual page of the program, or of one of its commands
    #[command(after_help = examples::fitted(examples::MAN))]
    Man {
        /// Which command, and which one of it
        command: Vec<String>,
        /// Write all pages into this directory, a file for each command
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        to: Option<PathBuf>,
    },
}

/// Where a command works.
#[derive(Clone, Debug, Default, clap::Args)]
struct Where {
    /// The directory the agent works in [default: the current one]
    #[arg(long, value_name = "DIR", global = true)]
    workspace: Option<PathBuf>,
    /// Where the ledger and the store are kept
    #[arg(long, value_name = "DIR", global = true)]
    state_dir: Option<PathBuf>,
    /// The job it is done for, by what the job is made of
    #[arg(skip)]
    job: Option<String>,
}

/// What `exec`, `call` and `chat` have in common.
#[derive(Clone, Debug, Default, clap::Args)]
struct Setting {
    #[command(flatten)]
    place: Where,
    /// Grant a verb on a path or a peer for this run, such as fs.create=./src; fs.* is all five on files (may be repeated)
    #[arg(long, value_name = "VERB=PATH")]
    grant: Vec<String>,
    /// What becomes of what is not granted: approve_all, prompt or reject_all
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<Asking>,
    /// Show what would change, keep nothing and reach no peer, whatever is granted
    #[arg(long, conflicts_with = "for_real")]
    dry_run: bool,
    /// Not a dry run, although `safety.dry_run_by_default` is on
    #[arg(long)]
    for_real: bool,
    /// Take in the grant that the reference in this file leads to; - for the standard input
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// How much a dry run shows
    #[arg(skip)]
    extent: open::Extent,
}

impl Setting {
    /// Nothing but a place.
    fn at(place: Where) -> Self {
        Self {
            place,
            ..Self::default()
        }
    }
}

fn mode(text: &str) -> Result<Asking, String> {
    Asking::parse(text).ok_or_else(|| "it is approve_all, prompt or reject_all".to_owned())
}

/// Reads the command line, does what it says, and says how to exit.
#[must_use]
pub fn main() -> ExitCode {
    let words = ambient::words();
    begin(Arguments::try_parse_from(&words), &words)
}

/// As [`main`], for a program that is not called `hermitcrab` and has read
/// these words of its own command line.
#[must_use]
pub fn main_with(words: &[String]) -> ExitCode {
    let name = std::iter::once("hermitcrab");
    let all = name.chain(words.iter().map(String::as_str));
    begin(Arguments::try_parse_from(all), &[])
}

fn begin(arguments: Result<Arguments, clap::Error>, words: &[OsString]) -> ExitCode {
    let arguments = match arguments {
        Ok(arguments) => arguments,
        // The parser does not say which one it is.
        Err(error) if error.kind() == clap::error::ErrorKind::InvalidUtf8 => {
            say(&no_text::told(words));
            return ExitCode::from(exit::USAGE);
        }
        Err(error) => {
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            };
            // Nothing can be done about a closed stream here.
            let _ = error.print();
            if is_request_without_quotes(&error) {
                hint(
                    "What is said to a model is one argument: put it in quotes, as in `hermitcrab chat 'what is in src?'`.",
                );
            }
            if is_command_without_dashes(&error) {
                hint(
                    "The command stands behind two dashes, as in `hermitcrab exec -- rm -r build`.",
                );
            }
            if let Some(told) = instead_of_no_command(&error) {
                hint(told);
            }
            return ExitCode::from(code);
        }
    };
    let what = arguments
        .what
        .unwrap_or_else(|| What::Repl(repl::Prompt::going_on(arguments.go_on)));
    ExitCode::from(printing::code(act(what)))
}

/// What a first word that is no command may have been meant for: one of the prompt's, or
/// words for a model.
fn instead_of_no_command(error: &clap::Error) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let is_first = usage.is_some_and(|usage| usage.contains(" [OPTIONS]\n"));
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    if error.kind() != ErrorKind::InvalidSubcommand || !is_first {
        return None;
    }
    match word.as_str() {
        "grant" | "revoke" | "confirm" | "share" => Some(
            "What is granted for longer than a session is kept with `hermitcrab caps`, as in `hermitcrab caps grant 'fs.*=./target'`; for a session, `grant` is a word of the prompt, which `hermitcrab` alone begins.",
        ),
        "mode" => {
            Some("`hermitcrab config set mode prompt` sets it for good, `--mode` for a session.")
        }
        "version" => Some("`hermitcrab --version` says it."),
        _ if error.get(ContextKind::SuggestedSubcommand).is_some() => None,
        _ => Some(
            "Words for a model go after `chat`, as in `hermitcrab chat 'what is in src?'`, a command to be run after `exec --`, as in `hermitcrab exec -- ls`; `hermitcrab` alone begins the prompt.",
        ),
    }
}

/// `exec rm a.txt`: whose the options are, the agent's or the command's, is told by `--`.
fn is_command_without_dashes(error: &clap::Error) -> bool {
    has_a_word_too_many(error, &[" exec "])
}

/// `chat what is this`: a shell makes several arguments of it.
fn is_request_without_quotes(error: &clap::Error) -> bool {
    has_a_word_too_many(error, &[" chat ", " plan ", " run "])
}

/// A word that is no option stands where one of these commands takes none.
fn has_a_word_too_many(error: &clap::Error, commands: &[&str]) -> bool {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let invalid = error.get(ContextKind::InvalidArg);
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(invalid, Some(ContextValue::String(word)) if !word.starts_with('-'))
        && usage.is_some_and(|usage| commands.iter().any(|name| usage.contains(name)))
}

/// Does what a command line at the prompt says, in the place it works in.
fn run_words(words: &[String], place: &Where) -> Result<u8, Trouble> {
    let mut line = vec![OsString::from("hermitcrab")];
    line.extend(words.iter().map(OsString::from));
    let takes_place = |name: &str| !matches!(name, "config" | "audit" | "model");
    if words.first().is_some_and(|name| takes_place(name)) {
        for (flag, dir) in [
            ("--workspace", &place.workspace),
            ("--state-dir", &place.state_dir),
        ] {
            if let Some(dir) = dir {
                line.extend([flag.into(), dir.as_os_str().to_owned()]);
            }
        }
    }
    match Arguments::try_parse_from(line) {
        Ok(Arguments {
            what: Some(what), ..
        }) => Ok(act(what)),
        Ok(Arguments { what: None, .. }) => Ok(exit::OK),
        // What was asked for is no error, whatever it is called.
        Err(asked) if !asked.use_stderr() => {
            print!("{asked}");
            Ok(exit::OK)
        }
        Err(error) => Err((error.to_string().trim_end().to_owned(), exit::USAGE)),
    }
}

fn act(what: What) -> u8 {
    match what {
        What::Repl(prompt) => repl::repl(&prompt),
        What::Exec(arguments) => exec::exec(&arguments),
        What::Call {
            setting,
            tool,
            arguments,
        } => run::call(&setting, &tool, &arguments),
        What::Chat {
            setting,
            choice,
            go_on,
            words,
        } => chat::chat(&setting, &choice, &go_on, &words),
        What::Plan {
            source,
            actions: true,
            ..
        } => plan::actions(&source),
        What::Plan {
            setting,
            source,
            json,
            actions: false,
        } => plan::plan(&setting, &source, json),
        What::Run {
            setting,
            source,
            how,
        } => plan::run(&setting, &source, &how),
        What::Acp {
            setting,
            choice,
            options,
        } => acp::acp(setting, choice, &options),
        What::Doctor(arguments) => doctor::doctor(&arguments),
        What::Caps(arguments) => caps::caps(&arguments),
        What::Cron(arguments) => cron::cron(&arguments),
        What::Conversations(arguments) => conversations::conversations(&arguments),
        What::Session(arguments) => session::session(&arguments),
        What::Remembered(arguments) => caps::remembered(&arguments),
        What::Explain(arguments) => explain::explain(&arguments),
        What::Servers(arguments) => servers::servers(&arguments),
        What::Audit(arguments) => audit::audit(&arguments),
        What::Config(arguments) => config::config(&arguments),
        What::Model(arguments) => model::model(&arguments),
        What::Completions { shell } => shell::completions(shell),
        What::Man {
            to: Some(directory),
            ..
        } => shell::manual(&directory),
        What::Man { command, to: None } => shell::man(&command),
        What::Undo(arguments) => undo::undo(&arguments),
    }
}

/// Before a session ends: what ended in the background is decided, and what is kept of it and
/// what is lost is said, with whatever else is to be told.
fn wind_up(runtime: &mut crate::runtime::Runtime) {
    runtime.wind_up();
    for line in runtime.take_told() {
        say(&line);
    }
}

/// Places and words in it may be somebody else's; nothing in them draws.
fn say(message: &str) {
    eprintln!("hermitcrab: {}", said(message));
}

/// The same where somebody looks on, in a tone.
fn say_toned(screen: &screen::Screen, tone: screen::Tone, message: &str) {
    eprintln!("hermitcrab: {}", screen.tone(tone, &said(message)));
}

/// Who is speaking stands in the first row, and leaves it less room.
fn said(message: &str) -> String {
    const WHO: &str = "hermitcrab: ";
    let message = screen::visible(message);
    let Some(columns) = ambient::screen().columns_of(&std::io::stderr()) else {
        return message;
    };
    let rows = rows::told(&format!("{WHO}{message}"), Some(columns));
    rows.strip_prefix(WHO).map_or(message, str::to_owned)
}

/// What helps, below what was wrong with a command line.
fn hint(text: &str) {
    let columns = ambient::screen().columns_of(&std::io::stderr());
    eprintln!("\n{}", rows::told(text, columns));
}

/// Tells something beside what was asked for, in a tone; on a terminal rows end between words.
fn tell_aside(screen: &screen::Screen, tone: screen::Tone, text: &str) {
    let columns = screen.columns_of(&std::io::stderr());
    eprintln!("{}", screen.tone(tone, &rows::told(text, columns)));
}

/// Tells something on the standard output; on a terminal rows end between words.
fn tell(text: &str) {
    let columns = ambient::screen().columns_of(&std::io::stdout());
    println!("{}", rows::told(text, columns));
}

/// The directory named, or the usual one.
fn state_dir(named: Option<&Path>) -> Result<PathBuf, Trouble> {
    match named {
        Some(dir) => Ok(dir.to_owned()),
        None => ambient::places()
            .map(|places| places.state_dir)
            .map_err(|error| (error.to_string(), exit::ENVIRONMENT)),
    }
}

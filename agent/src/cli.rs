//! The terminal front end: one command or one call at a time.

mod audit;
mod chat;
mod run;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use crate::{ambient, exit};

/// What went wrong before anything was done: the message and the exit code.
type Trouble = (String, u8);

/// An agent whose authority is capabilities: what is not granted is asked
/// about, with everything it would change on the screen, or refused.
#[derive(Debug, Parser)]
#[command(name = "hermitcrab", version)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Run a command on a copy of the workspace; keep what it changed only if that is granted or you say so
    Exec {
        #[command(flatten)]
        setting: Setting,
        /// The command and its arguments; a single argument is a line for the shell
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// Make one tool call, as a model would, and print what the model would see
    Call {
        #[command(flatten)]
        setting: Setting,
        /// terminal, read_file, write_file, patch or search_files
        tool: String,
        /// The arguments, as JSON
        arguments: String,
    },
    /// Talk with a model that works in the workspace by tool calls
    Chat {
        #[command(flatten)]
        setting: Setting,
        #[command(flatten)]
        backend: chat::Backend,
        /// What to say; without it each line of the standard input is said
        words: Option<String>,
    },
    /// Try out what isolates commands on this machine, and say what is lost without each part
    Doctor,
    /// Show the ledger, follow it, or check it
    Audit(audit::Audit),
}

/// What `exec` and `call` have in common.
#[derive(Debug, clap::Args)]
struct Setting {
    /// The directory the agent works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Grant a verb on a path for this run, such as fs.create=./src
    #[arg(long, value_name = "VERB=PATH")]
    grant: Vec<String>,
    /// Where the ledger is kept
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Reads the command line, does what it says, and says how to exit.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            };
            // Nothing can be done about a closed stream here.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let code = match arguments.what {
        What::Exec { setting, command } => run::exec(&setting, &command),
        What::Call {
            setting,
            tool,
            arguments,
        } => run::call(&setting, &tool, &arguments),
        What::Chat {
            setting,
            backend,
            words,
        } => chat::chat(&setting, &backend, words.as_deref()),
        What::Doctor => doctor(),
        What::Audit(arguments) => audit::audit(&arguments),
    };
    ExitCode::from(code)
}

fn say(message: &str) {
    eprintln!("hermitcrab: {message}");
}

fn doctor() -> u8 {
    let profile = match ambient::probe(&hermitcrab_sandbox::SpawnerProgram::Own) {
        Ok(profile) => profile,
        Err(error) => {
            say(&format!("cannot try out the sandbox: {error}"));
            return exit::ENVIRONMENT;
        }
    };
    for row in &profile.rows {
        let works = match row.available {
            Some(true) => "works",
            Some(false) => "missing",
            None => "not seen",
        };
        println!("{:<26} {works:<9} {}", row.mechanism.as_str(), row.seen);
        if row.available != Some(true) {
            println!("{:<26} {:<9} without it: {}", "", "", row.lost_without);
        }
    }
    if let Some(failure) = &profile.failure {
        say(&failure.to_string());
    }
    match profile.isolation {
        hermitcrab_core::rules::Isolation::Isolated => {
            println!("commands run isolated");
            exit::OK
        }
        hermitcrab_core::rules::Isolation::Unisolated
        | hermitcrab_core::rules::Isolation::Unknown => {
            println!("commands are refused: their isolation is not proved");
            exit::ENVIRONMENT
        }
    }
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

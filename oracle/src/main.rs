//! The oracle, as a program.

use std::process::ExitCode;

use bisim::cli::{Cli, Command};
use bisim::{ambient, check, exit};
use clap::Parser;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::CONFORM
            };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let ambient = ambient::read();
    let code = match cli.command {
        Command::Check(args) => check::run(&ambient, &args),
        Command::Doctor(_) | Command::Selftest(_) | Command::AgentWorker { .. } => exit::INTERNAL,
    };
    ExitCode::from(code)
}

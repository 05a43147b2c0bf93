//! The oracle, as a program.

use std::process::ExitCode;

use bisim::cli::{Cli, Command};
use bisim::{
    ambient, campaign, check, doctor, exit, leaks, migrate, printing, retold, selftest, speed,
    subject,
};
use bisim_world::FILES_MAX;
use clap::Parser;
use hermitcrab_sandbox::open_files;

fn main() -> ExitCode {
    // Before anything else: the agent's sandbox starts this program again.
    hermitcrab_sandbox::maybe_run_as_child();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::CONFORM
            };
            // If even this cannot be printed, the code still says it.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    if let Err(error) = open_files::make_room(FILES_MAX) {
        eprintln!("error: {error}");
        return ExitCode::from(exit::ENVIRONMENT);
    }
    let serves = matches!(
        cli.command,
        Command::AgentWorker { .. } | Command::Agent { .. } | Command::ShellWorker
    );
    if let Some(why) = ambient::cache_refused().filter(|_| !serves) {
        eprintln!("error: {why}");
        return ExitCode::from(exit::USAGE);
    }
    let code = match cli.command {
        // The worker must have a single thread, so it comes before all else.
        Command::AgentWorker { isolation, fault } => {
            subject::agent::serve(&isolation, fault.as_deref())
        }
        Command::Agent { fault, words } => {
            return subject::agent::program(fault.as_deref(), &words);
        }
        Command::ShellWorker => subject::shell::serve(),
        Command::Check(args) => check::command(&ambient::read(), &args),
        Command::Doctor(args) => doctor::command(&ambient::read(), &args),
        Command::Fuzz(args) => campaign::command(&ambient::read(), &args),
        Command::Benign(args) => campaign::benign_work(&ambient::read(), &args),
        Command::Patterns(args) => campaign::patterns(&ambient::read(), &args),
        Command::Operators(args) => campaign::operators(&ambient::read(), &args),
        Command::Replay(args) => campaign::replay(&ambient::read(), &args),
        Command::Report(args) => retold::report(&ambient::read(), &args),
        Command::Migrate(args) => migrate::command(&ambient::read(), &args),
        Command::Shadow(args) => migrate::shadow::command(&ambient::read(), &args),
        Command::Merge(args) => retold::merge(&ambient::read(), &args),
        Command::Leaks(args) => leaks::command(&ambient::read(), &args),
        Command::Speed(args) => speed::command(&ambient::read(), &args),
        Command::Selftest(args) => selftest::command(&ambient::read(), &args),
    };
    ExitCode::from(printing::code(code))
}

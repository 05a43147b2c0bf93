//! The terminal front end.

use std::process::ExitCode;

use hermitcrab_sandbox::{open_files, starting_limits};

/// What a person may do with what they make.
const OWN: u32 = 0o700;

fn main() -> ExitCode {
    // Nothing may come before this: the sandbox's helper is this program, too.
    hermitcrab_sandbox::maybe_run_as_child();
    hermitcrab::model::llama::maybe_run_as_process();
    if let Err(error) = hermitcrab_sandbox::privileges::shed() {
        eprintln!(
            "hermitcrab: could not give up the powers of root: {error}; start it as an ordinary user"
        );
        return ExitCode::from(hermitcrab::exit::ENVIRONMENT);
    }
    if let Err(error) = open_files::make_room(open_files::FOR_COMMANDS) {
        eprintln!("hermitcrab: {error}");
        return ExitCode::from(hermitcrab::exit::ENVIRONMENT);
    }
    if let Err(error) = starting_limits::make_room() {
        eprintln!("hermitcrab: {error}");
        return ExitCode::from(hermitcrab::exit::ENVIRONMENT);
    }
    let umask = hermitcrab::ambient::umask();
    if umask & OWN != 0 {
        eprintln!(
            "hermitcrab: what it makes would be closed to you as well (umask {umask:04o}); `umask 077` closes it to all others"
        );
        return ExitCode::from(hermitcrab::exit::ENVIRONMENT);
    }
    if let Err(error) = hermitcrab::ambient::on_full_file() {
        eprintln!("hermitcrab: what a full file does could not be changed: {error}");
        return ExitCode::from(hermitcrab::exit::INTERNAL);
    }
    if let Err(error) = hermitcrab::ambient::on_termination_as_first() {
        eprintln!("hermitcrab: that it ends when it is asked to could not be arranged: {error}");
        return ExitCode::from(hermitcrab::exit::INTERNAL);
    }
    hermitcrab::cli::main()
}

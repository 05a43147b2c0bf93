//! The terminal front end.

use std::process::ExitCode;

use hermitcrab_sandbox::{open_files, starting_limits};

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
    if let Err(error) = hermitcrab::ambient::on_full_file() {
        eprintln!("hermitcrab: what a full file does could not be changed: {error}");
        return ExitCode::from(hermitcrab::exit::INTERNAL);
    }
    hermitcrab::cli::main()
}

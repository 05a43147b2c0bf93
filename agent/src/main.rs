//! The terminal front end.

use std::process::ExitCode;

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
    hermitcrab::cli::main()
}

//! The terminal front end.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Nothing may come before this: the sandbox's helper is this program, too.
    hermitcrab_sandbox::maybe_run_as_child();
    hermitcrab::model::llama::maybe_run_as_process();
    hermitcrab::cli::main()
}

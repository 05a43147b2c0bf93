//! The spawner as a program of its own, for test binaries, whose `main` is not
//! theirs to change.

fn main() -> std::process::ExitCode {
    hermitcrab_sandbox::spawner::maybe_run_as_weakened_child();
    eprintln!("this program is started by hermitcrab only");
    std::process::ExitCode::from(64)
}

//! The spawner as an agent's program has it, for tests: it leaves nothing out.

fn main() -> std::process::ExitCode {
    hermitcrab_sandbox::maybe_run_as_child();
    eprintln!("this program is started by hermitcrab only");
    std::process::ExitCode::from(64)
}

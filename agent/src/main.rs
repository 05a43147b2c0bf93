//! The terminal front end.

fn main() {
    // Nothing may come before this: the sandbox's helper is this program, too.
    hermitcrab_sandbox::maybe_run_as_child();
}

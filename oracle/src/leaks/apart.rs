//! A run with a directory for temporary files that nobody else has.
//!
//! Whoever counts what is left in a directory must be the only one who puts anything
//! there. The machine's own is everybody's, so the run is this program once more, with a
//! directory of its own in there, which is removed afterwards.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ambient::Ambient;
use crate::cli::LeakArgs;
use crate::exit;
use crate::interrupt::Interrupt;
use crate::subject::Processes;

const PAUSE: Duration = Duration::from_millis(50);

/// Runs the command again, apart; returns its exit code.
pub(super) fn command(ambient: &Ambient, args: &LeakArgs) -> Result<u8, String> {
    let failed = |error: std::io::Error| format!("cannot run apart: {error}");
    let interrupt = Interrupt::default();
    interrupt.watch(Processes::default());
    let own = tempfile::Builder::new()
        .prefix("bisim-leaks-")
        .tempdir_in(&ambient.temporary)
        .map_err(failed)?;
    interrupt.takes_along(own.path().to_owned());
    let mut again = Command::new(&ambient.program);
    again
        .args(["leaks", "--apart", "--hermes", &args.hermes])
        .args(["--count", &args.count.to_string()])
        .env("TMPDIR", own.path())
        .stdin(Stdio::null())
        // ^C at the terminal is handed on, once; a second one would have it leave at once.
        .process_group(0);
    if let Some(jobs) = args.jobs {
        again.args(["--jobs", &jobs.to_string()]);
    }
    let mut run = again.spawn().map_err(failed)?;
    let mut told = false;
    loop {
        if let Some(status) = run.try_wait().map_err(failed)? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.unwrap_or(exit::INTERNAL));
        }
        if interrupt.is_set() && !told {
            told = true;
            if let Ok(id) = i32::try_from(run.id()) {
                // One that has ended by itself is told of above.
                let _ = kill(Pid::from_raw(id), Signal::SIGINT);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

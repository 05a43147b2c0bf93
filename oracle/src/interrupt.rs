//! ^C: finish cleanly, keep what is there, leave nothing behind.
//!
//! The signals are blocked in every thread and taken by one that waits for
//! them. The first ends the workers for good (the kernel takes their worlds along;
//! no other one is started for a case that was running) and lets the run report;
//! the second leaves at once, unless it came along with the first.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::subject::Processes;

/// How often a directory is removed again that somebody was writing to, and how
/// long apart.
const REMOVAL_TRIES_MAX: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// Signals that come so soon after the first are the same wish: `timeout` sends its signal to the
/// program and once more to its group, and a runner of jobs may do as well.
const ONE_WISH: Duration = Duration::from_millis(250);

/// Whether the user has had enough.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    private: Arc<Mutex<Vec<PathBuf>>>,
}

impl Interrupt {
    /// Whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Names a directory with copies of what is somebody's own, so that leaving
    /// at once does not leave it behind.
    pub fn takes_along(&self, directory: PathBuf) {
        self.private
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(directory);
    }

    /// Removes the directories that were named; what cannot be removed is said.
    pub(crate) fn remove_private(&self) {
        let private = self.private.lock().unwrap_or_else(PoisonError::into_inner);
        for directory in private.iter() {
            let mut tries = REMOVAL_TRIES_MAX;
            // Another thread may be about to write there; it stops after that.
            while let Err(error) = std::fs::remove_dir_all(directory)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                let Some(fewer) = tries.checked_sub(1) else {
                    eprintln!("cannot remove `{}`: {error}", directory.display());
                    break;
                };
                tries = fewer;
                std::thread::sleep(REMOVAL_PAUSE);
            }
        }
    }

    /// Starts to watch. Must be called before other threads are started, so
    /// that they inherit the blocked signals. So do programs; a world unblocks
    /// them for what runs in it.
    pub fn watch(&self, processes: Processes) {
        self.watch_saying(processes, "what has run is kept");
    }

    /// The same for what comes to something only as a whole.
    pub fn watch_a_whole(&self, processes: Processes) {
        self.watch_saying(processes, "nothing is kept of a run that is cut short");
    }

    fn watch_saying(&self, processes: Processes, of_it: &'static str) {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        if signals.thread_block().is_err() {
            return;
        }
        let interrupt = self.clone();
        std::thread::spawn(move || {
            let mut before = None;
            while signals.wait().is_ok() {
                if let Some(before) = before {
                    if Instant::elapsed(&before) < ONE_WISH {
                        continue;
                    }
                    processes.end_all();
                    interrupt.remove_private();
                    std::process::exit(i32::from(crate::exit::INCONCLUSIVE));
                }
                eprintln!("\nstopping; {of_it}");
                interrupt.set();
                processes.end_all();
                // Counted from here, since what came along waits until it is looked at.
                before = Some(Instant::now());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_goes_when_one_leaves_at_once_and_what_is_gone_is_no_trouble() {
        let interrupt = Interrupt::default();
        let (kept, gone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(kept.path().join(".env"), "KEY=1").unwrap();
        let (kept, gone) = (kept.keep(), gone.path().to_owned());
        interrupt.takes_along(gone);
        interrupt.takes_along(kept.clone());
        interrupt.remove_private();
        assert!(!kept.exists());
    }
}

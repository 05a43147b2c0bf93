//! ^C: finish cleanly, keep what is there, leave nothing behind.
//!
//! The signals are blocked in every thread and taken by one that waits for
//! them. The first ends the workers (the kernel takes their worlds along) and
//! lets the run report; the second leaves at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use crate::subject::Processes;

/// Whether the user has had enough.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Starts to watch. Must be called before other threads are started, so
    /// that they inherit the blocked signals. So do programs; a world unblocks
    /// them for what runs in it.
    pub fn watch(&self, processes: Processes) {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        if signals.thread_block().is_err() {
            return;
        }
        let interrupt = self.clone();
        std::thread::spawn(move || {
            let mut before = false;
            while signals.wait().is_ok() {
                if before {
                    processes.end_all();
                    std::process::exit(i32::from(crate::exit::INCONCLUSIVE));
                }
                before = true;
                eprintln!("\nstopping; what has run is kept");
                interrupt.set();
                processes.end_all();
            }
        });
    }
}

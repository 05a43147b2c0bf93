//! A clock that moves only when the script says so.
//!
//! Every call asks it what time it is before anything of it is decided. So it can keep back all
//! but the first of the calls of one answer until somebody is asked, as calls do that take a while
//! to find out what they would do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use bisim_world::protocol::{Job, Meanwhile};
use hermitcrab::ports::Clock;
use hermitcrab_core::time::Instant;

/// When a case begins.
const BEGIN_MS: u64 = 1_000_000;
/// The threads of calls that are made at the same time are named so, with their place.
const CALL: &str = "call ";
/// How long others are waited for: nothing of them takes as long.
const OTHERS_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked whether they have come to their end.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Where the threads of this process are listed with their names.
const THREADS: &str = "/proc/self/task";

/// The clock; clones are the same.
#[derive(Clone)]
pub(super) struct CaseClock(Arc<Face>);

struct Face {
    now_ms: AtomicU64,
    /// Whether calls beside the first are kept back.
    keeps_back: Mutex<bool>,
    changed: Condvar,
    /// Whether one of them has asked what time it is: before, a thread has no name yet.
    has_met: AtomicBool,
}

impl CaseClock {
    pub(super) fn of(job: &Job) -> Self {
        let mut doings = job.user.doings();
        let keeps_back = doings.any(|doing| matches!(doing, Meanwhile::Others {}));
        Self(Arc::new(Face {
            now_ms: AtomicU64::new(BEGIN_MS),
            keeps_back: Mutex::new(keeps_back),
            changed: Condvar::new(),
            has_met: AtomicBool::new(false),
        }))
    }

    pub(super) fn advance(&self, seconds: u64) {
        let later = seconds.saturating_mul(1000);
        let now = self.0.now_ms.load(Ordering::SeqCst);
        self.0
            .now_ms
            .store(now.saturating_add(later), Ordering::SeqCst);
    }

    /// Lets the other calls go on, and waits until they are over; why they are not, or nothing.
    pub(super) fn others_end(&self) -> String {
        *self.keeps_back() = false;
        self.0.changed.notify_all();
        let until = Moment::now().checked_add(OTHERS_WITHIN);
        loop {
            match others() {
                Err(error) => return format!("cannot look for other calls: {error}"),
                Ok(0) if self.0.has_met.load(Ordering::SeqCst) => return String::new(),
                Ok(_) if until.is_none_or(|until| Moment::now() >= until) => {
                    return "still-running".to_owned();
                }
                Ok(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn keeps_back(&self) -> MutexGuard<'_, bool> {
        // A truth value is valid whoever broke down beside it.
        self.0
            .keeps_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for CaseClock {
    fn now(&self) -> Instant {
        if std::thread::current().name().is_some_and(is_later) {
            self.0.has_met.store(true, Ordering::SeqCst);
            let kept_back = self.keeps_back();
            // Where nobody is ever asked they go on by themselves.
            let waited = self
                .0
                .changed
                .wait_timeout_while(kept_back, OTHERS_WITHIN, |is| *is);
            drop(waited);
        }
        Instant::from_millis(self.0.now_ms.load(Ordering::SeqCst))
    }
}

/// Whether a thread of this name makes a call that is not the first of its answer.
fn is_later(name: &str) -> bool {
    name.strip_prefix(CALL).is_some_and(|place| place != "0")
}

/// How many of them there are.
fn others() -> std::io::Result<usize> {
    let mut count = 0;
    for task in std::fs::read_dir(THREADS)? {
        // One that has ended meanwhile has no name.
        let name = std::fs::read_to_string(task?.path().join("comm")).unwrap_or_default();
        count += usize::from(is_later(name.trim_end()));
    }
    Ok(count)
}

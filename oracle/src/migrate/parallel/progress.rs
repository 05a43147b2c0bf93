//! How far a replay is, said while it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::figures::grouped;
use crate::progress::time;
use crate::pulse::Pulse;

/// Says how far it is, until it is dropped.
pub(super) struct Progress {
    counted: Arc<Counted>,
    _pulse: Pulse,
}

/// How far it is.
struct Counted {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    began: Instant,
    until: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str, total: u64, until: Option<Instant>) -> Self {
        let counted = Arc::new(Counted::new(what, total, until));
        let told = Arc::clone(&counted);
        Self {
            counted,
            _pulse: Pulse::telling(move || told.line()),
        }
    }

    pub(super) fn add(&self, calls: u64) {
        self.counted.done.fetch_add(calls, Ordering::Relaxed);
    }
}

impl Counted {
    fn new(what: &'static str, total: u64, until: Option<Instant>) -> Self {
        Self {
            what,
            total,
            done: AtomicU64::new(0),
            began: Instant::now(),
            until,
        }
    }

    fn line(&self) -> String {
        // Of none there is nothing to wait for.
        if self.total == 0 {
            return String::new();
        }
        let budget = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        self.said(self.began.elapsed(), budget)
    }

    fn said(&self, elapsed: Duration, budget: Option<Duration>) -> String {
        let done = self.done.load(Ordering::Relaxed);
        let mut said = format!(
            "{} of {} calls {}",
            grouped(done),
            grouped(self.total),
            self.what
        );
        let open = self.total.saturating_sub(done);
        if let (Some(open), Some(done)) = (u32::try_from(open).ok(), u32::try_from(done).ok())
            && done > 0
            && open > 0
        {
            let left = elapsed.saturating_mul(open) / done;
            said.push_str(&format!(", about {} left", time(left)));
            if let Some(budget) = budget.filter(|budget| *budget < left) {
                said.push_str(&format!("; --budget ends it in {}", time(budget)));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::Counted;

    #[test]
    fn what_is_left_is_said_and_what_ends_it_before() {
        let counted = Counted::new("done", 100_000, None);
        counted.done.store(25_000, Ordering::Relaxed);
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        assert_eq!(
            counted.said(minutes(5), None),
            "25,000 of 100,000 calls done, about 15 min left"
        );
        assert_eq!(
            counted.said(minutes(5), Some(minutes(4))),
            "25,000 of 100,000 calls done, about 15 min left; --budget ends it in 4 min"
        );
        counted.done.store(100_000, Ordering::Relaxed);
        assert_eq!(Counted::new("done", 0, None).line(), "");
        assert_eq!(
            counted.said(minutes(20), None),
            "100,000 of 100,000 calls done"
        );
    }
}

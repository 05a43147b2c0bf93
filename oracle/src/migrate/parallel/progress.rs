//! How far a replay is, in a line now and then.

use std::time::{Duration, Instant};

use crate::migrate::figures::grouped;
use crate::progress::time;

const LINE_EVERY: Duration = Duration::from_secs(10);

/// Says how far it is.
pub(super) struct Progress {
    what: &'static str,
    total: u64,
    done: u64,
    began: Instant,
    line: Instant,
    until: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str, total: u64, until: Option<Instant>) -> Self {
        let began = Instant::now();
        Self {
            what,
            total,
            done: 0,
            began,
            line: began,
            until,
        }
    }

    pub(super) fn add(&mut self, calls: u64) {
        self.done = self.done.saturating_add(calls);
        if self.line.elapsed() < LINE_EVERY {
            return;
        }
        self.line = Instant::now();
        let budget = self
            .until
            .map(|until| until.saturating_duration_since(self.line));
        eprintln!("{}", self.said(self.began.elapsed(), budget));
    }

    fn said(&self, elapsed: Duration, budget: Option<Duration>) -> String {
        let mut said = format!(
            "{} of {} calls {}",
            grouped(self.done),
            grouped(self.total),
            self.what
        );
        let open = self.total.saturating_sub(self.done);
        if let (Some(open), Some(done)) = (u32::try_from(open).ok(), u32::try_from(self.done).ok())
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
    use std::time::Duration;

    use super::Progress;

    #[test]
    fn what_is_left_is_said_and_what_ends_it_before() {
        let mut progress = Progress::new("done", 100_000, None);
        progress.done = 25_000;
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        assert_eq!(
            progress.said(minutes(5), None),
            "25,000 of 100,000 calls done, about 15 min left"
        );
        assert_eq!(
            progress.said(minutes(5), Some(minutes(4))),
            "25,000 of 100,000 calls done, about 15 min left; --budget ends it in 4 min"
        );
        progress.done = 100_000;
        assert_eq!(
            progress.said(minutes(20), None),
            "100,000 of 100,000 calls done"
        );
    }
}

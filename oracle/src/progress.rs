//! The progress of a run: a bar on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::figures::grouped;
use crate::verdict::{KINDS, Kind};

/// How often a plain line is printed.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(10);
/// How often who hears of nothing looks whether a line is due.
const TICK: Duration = Duration::from_secs(1);

/// What arrives; and nothing, each time it is a while that nothing came.
pub(crate) fn ticking<T>(receiver: Receiver<T>) -> impl Iterator<Item = Option<T>> {
    std::iter::from_fn(move || match receiver.recv_timeout(TICK) {
        Ok(one) => Some(Some(one)),
        Err(RecvTimeoutError::Timeout) => Some(None),
        Err(RecvTimeoutError::Disconnected) => None,
    })
}

/// A bar, where a terminal can draw over a line. One that is `dumb`, or of which nobody says what
/// it is, cannot, and would be left without a word: there as elsewhere lines are for it.
pub(crate) fn bar(total: usize, template: &str) -> Option<ProgressBar> {
    let bar = ProgressBar::new(total as u64);
    if bar.is_hidden() {
        return None;
    }
    // The template is a constant; a wrong one would only look plain.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    Some(bar)
}

/// A time for people.
pub(crate) fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Shows how far a run is.
pub struct Progress {
    bar: Option<ProgressBar>,
    counts: BTreeMap<Kind, usize>,
    total: usize,
    done: usize,
    started: Instant,
    last_line: Instant,
    until: Option<Instant>,
}

impl Progress {
    /// Begins a run of that many cases, which a budget may end.
    #[must_use]
    pub fn start(total: usize, until: Option<Instant>) -> Self {
        let now = Instant::now();
        let progress = Self {
            bar: bar(total, "{bar:12} {wide_msg}"),
            counts: BTreeMap::new(),
            total,
            done: 0,
            started: now,
            last_line: now,
            until,
        };
        match &progress.bar {
            Some(bar) => {
                bar.set_message(progress.line());
                bar.enable_steady_tick(Duration::from_millis(500));
            }
            None => eprintln!("{}", progress.line()),
        }
        progress
    }

    /// A case has ended.
    pub fn add(&mut self, kind: Kind) {
        self.done += 1;
        *self.counts.entry(kind).or_default() += 1;
        match &self.bar {
            Some(bar) => {
                // Both are drawn together, so that the figures add up at every moment.
                bar.update(|state| state.set_pos(self.done as u64));
                bar.set_message(self.line());
            }
            None => self.tick(),
        }
    }

    /// Time has passed: a plain line is said if it is due.
    pub fn tick(&mut self) {
        // The last one is said at the end.
        if self.done == self.total || self.last_line.elapsed() < LINE_EVERY {
            return;
        }
        self.last_line = Instant::now();
        match &self.bar {
            Some(bar) => bar.set_message(self.line()),
            None => eprintln!("{}", self.line()),
        }
    }

    /// The run is over.
    pub fn finish(&self) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => eprintln!("{}", self.line()),
        }
    }

    fn words(&self) -> String {
        KINDS
            .iter()
            .filter_map(|kind| {
                self.counts
                    .get(kind)
                    .map(|count| format!("{} {}", grouped(*count as u64), kind.word()))
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn line(&self) -> String {
        let budget = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        self.said(self.started.elapsed(), budget)
    }

    fn said(&self, elapsed: Duration, budget: Option<Duration>) -> String {
        let [done, total] = [self.done, self.total].map(|count| grouped(count as u64));
        let mut said = format!("{done}/{total} cases");
        // Of a run in which nothing has ended nobody knows how long it takes.
        if self.done == 0 {
            return said;
        }
        let rate = self.done as f64 / elapsed.as_secs_f64().max(0.001);
        let open = u32::try_from(self.total.saturating_sub(self.done)).unwrap_or(u32::MAX);
        let done = u32::try_from(self.done).unwrap_or(u32::MAX);
        let left = elapsed.saturating_mul(open) / done.max(1);
        said.push_str(&format!(", {rate:.1} a second, {} left", time(left)));
        if let Some(budget) = budget.filter(|budget| *budget < left) {
            said.push_str(&format!("; --budget ends it in {}", time(budget)));
        }
        said.push_str(&format!(": {}", self.words()));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_as_people_say_it_and_what_ends_it_before() {
        let seconds = Duration::from_secs;
        let mut progress = Progress::start(11_562, None);
        assert_eq!(progress.said(seconds(9), None), "0/11,562 cases");
        for _ in 0..6 {
            progress.add(Kind::Equal);
        }
        assert_eq!(
            progress.said(seconds(12), None),
            "6/11,562 cases, 0.5 a second, 6 h 25 min left: 6 equal"
        );
        assert_eq!(
            progress.said(seconds(12), Some(seconds(8))),
            "6/11,562 cases, 0.5 a second, 6 h 25 min left; --budget ends it in 8 s: 6 equal"
        );
        progress.total = 6;
        assert_eq!(
            progress.said(seconds(3), Some(seconds(8))),
            "6/6 cases, 2.0 a second, 0 s left: 6 equal"
        );
    }
}

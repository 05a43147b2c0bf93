//! The progress of a run: a bar on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::verdict::{KINDS, Kind};

/// How often a plain line is printed.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a run is.
pub struct Progress {
    bar: Option<ProgressBar>,
    counts: BTreeMap<Kind, usize>,
    total: usize,
    done: usize,
    started: Instant,
    last_line: Instant,
}

impl Progress {
    /// Begins a run of that many cases.
    #[must_use]
    pub fn start(total: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total as u64);
            // The template is a constant; a wrong one would only look plain.
            if let Ok(style) = ProgressStyle::with_template(
                "{bar:30} {pos}/{len} cases  {per_sec}  {eta} left  {wide_msg}",
            ) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        let now = Instant::now();
        Self {
            bar,
            counts: BTreeMap::new(),
            total,
            done: 0,
            started: now,
            last_line: now,
        }
    }

    /// A case has ended.
    pub fn add(&mut self, kind: Kind) {
        self.done += 1;
        *self.counts.entry(kind).or_default() += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_message(self.words());
                bar.inc(1);
            }
            None => {
                // The last one is said at the end.
                if self.last_line.elapsed() >= LINE_EVERY && self.done < self.total {
                    self.last_line = Instant::now();
                    self.line();
                }
            }
        }
    }

    /// The run is over.
    pub fn finish(&self) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => self.line(),
        }
    }

    fn words(&self) -> String {
        KINDS
            .iter()
            .filter_map(|kind| {
                self.counts
                    .get(kind)
                    .map(|count| format!("{count} {}", kind.word()))
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn line(&self) {
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = self.done as f64 / seconds;
        let left = (self.total - self.done.min(self.total)) as f64 / rate.max(0.001);
        // Of a run in which nothing has ended nobody knows how long it takes.
        let left = match self.done {
            0 => String::new(),
            _ => format!(", {rate:.1} a second, {left:.0} s left: {}", self.words()),
        };
        eprintln!("{}/{} cases{left}", self.done, self.total);
    }
}

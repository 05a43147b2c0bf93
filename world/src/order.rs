//! Times that tell in which order files were written.
//!
//! The kernel's clock for files stands still for milliseconds at a time, so
//! files written one after the other may or may not bear the same time. What
//! sorts by time, a search for files for example, would then answer by luck,
//! and differently in two worlds that should be equal.
use std::os::fd::AsFd;

use rustix::fs::{Timespec, Timestamps};

/// The least distance of two files; well above what a program that reckons in
/// floating-point seconds can tell apart.
const STEP_NANOS: i64 = 10_000;
const SECOND_NANOS: i64 = 1_000_000_000;

/// Keeps the last time that was given out.
#[derive(Debug, Default)]
pub(crate) struct Order {
    last: Option<(i64, i64)>,
}

impl Order {
    /// Makes a file, which has just been written, younger than all before it.
    pub(crate) fn settle(&mut self, file: impl AsFd) -> rustix::io::Result<()> {
        let stat = rustix::fs::fstat(&file)?;
        let found = (
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
        );
        let least = self.last.map(|(seconds, nanos)| {
            let nanos = nanos + STEP_NANOS;
            (seconds + nanos / SECOND_NANOS, nanos % SECOND_NANOS)
        });
        let wanted = least.map_or(found, |least| least.max(found));
        if wanted != found {
            let time = Timespec {
                tv_sec: wanted.0,
                tv_nsec: wanted.1,
            };
            rustix::fs::futimens(
                &file,
                &Timestamps {
                    last_access: time,
                    last_modification: time,
                },
            )?;
        }
        self.last = Some(wanted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_file_is_younger_than_all_settled_before_it_whatever_the_clock_says() {
        let dir = tempfile::tempdir().unwrap();
        let mut order = Order::default();
        let mut times = Vec::new();
        for number in 0..50 {
            let file = File::create(dir.path().join(number.to_string())).unwrap();
            order.settle(&file).unwrap();
            times.push(file.metadata().unwrap().modified().unwrap());
        }
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }
}

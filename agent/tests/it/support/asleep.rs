//! Commands that sleep, and whether they do by now: what a test waits for before it looks
//! at what such a command did, or ends it.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

/// A number of seconds nobody else sleeps.
pub fn mark() -> String {
    // Tests may be threads of one process.
    static SLEEPERS: AtomicU32 = AtomicU32::new(0);
    let count = SLEEPERS.fetch_add(1, Ordering::Relaxed);
    format!("4{count:02}{:07}", std::process::id())
}

/// Whether a process sleeps so long.
pub fn is_asleep(mark: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    let line = format!("sleep\0{mark}\0");
    processes
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|words| words == line.as_bytes())
}

/// Runs what is ended after so many seconds, and again with more of them where it did not
/// sleep by then: on a busy machine not even its sandbox may be there so soon.
#[track_caller]
pub fn out_of_time<R>(mark: &str, mut run: impl FnMut(u64) -> R) -> R {
    for seconds in [1, 5, 25] {
        let (is_over, has_slept) = (AtomicBool::new(false), AtomicBool::new(false));
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) && !is_asleep(mark) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                has_slept.store(!is_over.load(Ordering::SeqCst), Ordering::SeqCst);
            });
            let _over = Over(&is_over);
            run(seconds)
        });
        if has_slept.into_inner() {
            return result;
        }
    }
    panic!("it never came so far");
}

/// Is over at its end, also where the test breaks down.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

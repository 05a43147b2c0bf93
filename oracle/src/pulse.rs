//! A sign of life: what goes on is said at once, and again as long as it takes.
//!
//! Why: starting Hermes takes seconds, a piece of a screening longer, and a program that says
//! nothing meanwhile is taken for one that hangs. A terminal that can draw over a line has a line
//! that moves; elsewhere a line comes every ten seconds, as a log can hold it. Nothing is ever
//! decided here, and nobody waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::progress::{self, LINE_EVERY};

/// How often a line that moves is drawn anew.
const DRAWN_EVERY: Duration = Duration::from_millis(200);

/// How many of some things are done, counted by whoever does them.
#[derive(Clone, Debug, Default)]
pub struct Done(Arc<AtomicU64>);

impl Done {
    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many there are so far.
    #[must_use]
    pub fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is said, made anew each time.
type Words = Box<dyn Fn() -> String + Send>;
/// Where a line goes.
type Lines = Box<dyn Fn(&str) + Send + Sync>;

/// Says what goes on until it is dropped.
pub struct Pulse {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    face: Face,
}

struct State {
    words: Words,
    is_over: bool,
}

/// How it looks.
enum Face {
    /// A line that is drawn over.
    Drawn(ProgressBar),
    /// Lines, each so long after the other.
    Lines(Lines, Duration),
}

impl Pulse {
    /// Says what is done, and later as well how long it has taken.
    #[must_use]
    pub fn start(what: &str) -> Self {
        Self::telling(lasting(what.to_owned()))
    }

    /// Says nothing yet.
    #[must_use]
    pub fn quiet() -> Self {
        Self::telling(String::new)
    }

    /// Says what these words are at each time.
    #[must_use]
    pub fn telling(words: impl Fn() -> String + Send + 'static) -> Self {
        let face = match progress::bar(0, "{spinner} {wide_msg}") {
            Some(bar) => Face::Drawn(bar),
            None => Face::lines(),
        };
        Self::with(face, Box::new(words))
    }

    /// Says these words about how many are done at each time.
    #[must_use]
    pub fn counting(done: &Done, words: impl Fn(u64) -> String + Send + 'static) -> Self {
        let done = done.clone();
        Self::telling(move || words(done.so_far()))
    }

    /// The same in lines on a terminal, too, for whoever prints there meanwhile.
    #[must_use]
    pub fn lines(words: impl Fn() -> String + Send + 'static) -> Self {
        Self::with(Face::lines(), Box::new(words))
    }

    fn with(face: Face, words: Words) -> Self {
        face.say(&words());
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                words,
                is_over: false,
            }),
            changed: Condvar::new(),
            face,
        });
        let beating = Arc::clone(&shared);
        Self {
            shared,
            // Without a thread the words come once, and nothing else is lost.
            thread: Builder::new().spawn(move || beating.beat()).ok(),
        }
    }

    /// Goes on with something else, which is said at once.
    pub fn go_on(&self, what: &str) {
        let words = lasting(what.to_owned());
        self.shared.face.say(&words());
        self.shared.state().words = Box::new(words);
        self.shared.changed.notify_all();
    }

    /// The same of something that is to be read afterwards as well.
    pub fn note(&self, what: &str) {
        if let Face::Drawn(bar) = &self.shared.face {
            bar.suspend(|| eprintln!("{what}"));
        }
        self.go_on(what);
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // One that died has said nothing since, and that is all.
            let _ = thread.join();
        }
        if let Face::Drawn(bar) = &self.shared.face {
            bar.finish_and_clear();
        }
    }
}

impl Face {
    fn lines() -> Self {
        Self::Lines(Box::new(|line| eprintln!("{line}")), LINE_EVERY)
    }

    fn say(&self, line: &str) {
        match self {
            _ if line.is_empty() => {}
            Self::Drawn(bar) => {
                bar.set_message(line.to_owned());
                bar.tick();
            }
            Self::Lines(say, _) => say(line),
        }
    }

    const fn every(&self) -> Duration {
        match self {
            Self::Drawn(_) => DRAWN_EVERY,
            Self::Lines(_, every) => *every,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beat(&self) {
        let every = self.face.every();
        let mut state = self.state();
        let mut said = Instant::now();
        while !state.is_over {
            let left = every.saturating_sub(said.elapsed());
            if left.is_zero() {
                self.face.say(&(state.words)());
                said = Instant::now();
                continue;
            }
            let waited = self.changed.wait_timeout(state, left);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            // What was said meanwhile was said by whoever changed it.
            if !timeout.timed_out() {
                said = Instant::now();
            }
        }
    }
}

/// What is done, and from the first second on for how long.
fn lasting(what: String) -> impl Fn() -> String + Send {
    let began = Instant::now();
    move || match began.elapsed() {
        so_far if so_far < Duration::from_secs(1) => what.clone(),
        so_far => format!("{what} ({} so far)", progress::time(so_far)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// More than any machine needs for a line.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn what_goes_on_is_said_at_once_and_again_until_it_is_over() {
        let (said, lines) = channel();
        let face = |every| {
            let said = said.clone();
            let say = move |line: &str| said.send(line.to_owned()).unwrap();
            Face::Lines(Box::new(say), every)
        };
        let next = || lines.recv_timeout(PATIENCE).unwrap();
        let done = Done::default();
        let pulse = Pulse::with(
            face(Duration::from_millis(5)),
            Box::new(move || {
                let so_far = done.so_far();
                done.add(1);
                format!("{so_far} asked")
            }),
        );
        assert_eq!(lines.try_recv().unwrap(), "0 asked", "at once");
        assert_eq!((next(), next()), ("1 asked".into(), "2 asked".into()));
        drop(pulse);
        while lines.try_recv().is_ok() {}
        assert!(lines.recv_timeout(Duration::from_millis(20)).is_err());

        let pulse = Pulse::with(face(PATIENCE), Box::new(lasting("starting one".into())));
        assert_eq!(lines.try_recv().unwrap(), "starting one");
        pulse.go_on("starting the other");
        assert_eq!(lines.try_recv().unwrap(), "starting the other", "at once");
        pulse.note("what stays");
        assert_eq!(lines.try_recv().unwrap(), "what stays");
        // Its time is not waited for.
        drop(pulse);
        assert!(lines.try_recv().is_err());

        let quiet = Pulse::with(face(Duration::from_millis(1)), Box::new(String::new));
        assert!(lines.recv_timeout(Duration::from_millis(20)).is_err());
        quiet.go_on("at last");
        assert_eq!(next(), "at last");
    }
}

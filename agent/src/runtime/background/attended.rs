//! What the thread of a background command and the runtime both see.
//!
//! The thread drains the output, so that a flood never blocks a command, and
//! ends it when told to. It decides nothing.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant as Moment},
};

use hermitcrab_core::{
    approval::CallId,
    outcome::{Denial, Outcome},
    session::Event,
};
use hermitcrab_sandbox::spawn::{Ending, Finished, Running, SpawnError};

use super::{
    super::machine::Machine,
    GRACE, GRACE_ON_TERMINAL,
    complaints::Beginning,
    watch::{Notice, Watch},
};
use crate::pty::Pty;

/// Output letters kept of one command.
pub(super) const OUTPUT_LETTERS_MAX: usize = 200_000;
/// How long the beginning of one is waited for.
const BEGINNING_MAX: Duration = Duration::from_secs(2);
/// How often a thread looks whether its command is to end.
const PATIENCE: Duration = Duration::from_millis(20);

/// One command, as its thread and the runtime share it.
#[derive(Debug)]
pub(super) struct Attended {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
    end: AtomicBool,
    terminal: Option<Pty>,
    started: Moment,
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What it printed, the end of it.
    pub output: String,
    /// The shell's own words before it.
    beginning: Beginning,
    /// Bytes that may be the beginning of a letter.
    partial: Vec<u8>,
    /// What it left, until that is looked at.
    pub finished: Option<Result<Finished, SpawnError>>,
    /// It was stopped and has been reported as finished.
    pub stopped: Option<Denial>,
    /// Whether it has ended.
    pub over: bool,
    /// What is watched for.
    pub watch: Watch,
    /// What is still to be told.
    pub notices: Vec<Notice>,
}

impl Attended {
    pub(super) fn new(watch: Watch, terminal: Option<Pty>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                watch,
                ..State::default()
            }),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            end: AtomicBool::new(false),
            terminal,
            started: Moment::now(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here is left half done by a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command's terminal, if it has one.
    pub(super) fn terminal(&self) -> Option<&Pty> {
        self.terminal.as_ref()
    }

    /// Has the command asked to end, and killed if it does not.
    pub(super) fn end(&self) {
        self.end.store(true, Ordering::Relaxed);
    }

    /// Has the command killed.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether nobody had it ended.
    fn has_ended_by_itself(&self) -> bool {
        let is_told = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        !is_told(&self.stop) && !is_told(&self.end) && self.lock().stopped.is_none()
    }

    /// It ended by itself, and nobody has decided about it yet: how, where that is known, and
    /// whether there is something to decide.
    pub(super) fn ended_undecided(&self) -> Option<(Option<Ending>, bool)> {
        if !self.has_ended_by_itself() {
            return None;
        }
        let state = self.lock();
        let finished = state.finished.as_ref().filter(|_| state.over)?;
        let finished = finished.as_ref().ok();
        let changes = finished.map_or(&[][..], |finished| &finished.changes);
        let has_changed = changes.iter().any(|set| !set.is_empty());
        Some((finished.map(|finished| finished.ending), has_changed))
    }

    fn take(&self, bytes: &[u8]) {
        self.lock().take(bytes, self.started.elapsed());
    }

    fn take_typed(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.read(|bytes| self.take(bytes));
        }
    }

    /// Waits until it sees its directories, which are changed by whatever comes next.
    pub(super) fn until_it_begins(&self, running: &mut Running) {
        while !running.has_begun() && self.started.elapsed() < BEGINNING_MAX {
            let over = running.attend(PATIENCE, |_, bytes| self.take(bytes));
            if !matches!(over, Ok(false)) {
                // Its thread finds out why.
                return;
            }
        }
    }

    /// Runs in the command's own thread until it has ended.
    pub(super) fn attend(&self, mut running: Running, machine: &Machine, call: CallId) {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                running.kill();
            } else if self.end.load(Ordering::Relaxed) {
                running.end(match self.terminal {
                    Some(_) => GRACE_ON_TERMINAL,
                    None => GRACE,
                });
            }
            let over = running.attend(PATIENCE, |_, bytes| self.take(bytes));
            self.take_typed();
            match over {
                Ok(false) => {}
                Ok(true) | Err(_) => break,
            }
        }
        let finished = running.wait_with(|_, bytes| self.take(bytes));
        self.take_typed();
        let stopped = machine.why_stopped(call).map(|code| {
            // Whoever waits for its end hears of it now, not at the next call;
            // what it did is thrown away. A ledger that cannot be written
            // refuses the next call with the reason.
            let _recorded = machine.step(Event::Finished {
                call,
                outcome: Outcome::Stopped,
            });
            Denial::new(code, call)
        });
        let mut state = self.lock();
        state.finished = stopped.is_none().then_some(finished);
        state.stopped = stopped;
        state.over = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until it is over, at most this long.
    pub(super) fn wait(&self, patience: Duration) {
        let until = Moment::now().checked_add(patience);
        let mut state = self.lock();
        while !state.over {
            let left = until.map_or(PATIENCE, |until| {
                until.saturating_duration_since(Moment::now())
            });
            if left.is_zero() {
                return;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl State {
    fn take(&mut self, bytes: &[u8], now: Duration) {
        self.partial.extend_from_slice(bytes);
        let whole = whole_letters(&self.partial);
        let rest = self.partial.split_off(whole);
        let text = String::from_utf8_lossy(&self.partial).into_owned();
        let own = self.beginning.own(&text);
        self.notices.extend(self.watch.look(&own, now));
        self.output.push_str(&text);
        self.partial = rest;
        // Cutting is linear, so it is not done for every few letters.
        if self.output.len() > OUTPUT_LETTERS_MAX * 5 {
            self.cut();
        }
    }

    /// Keeps the end of a long output.
    pub(super) fn cut(&mut self) {
        let kept = crate::text::pytext::tail(&self.output, OUTPUT_LETTERS_MAX).len();
        let from = self.output.len() - kept;
        self.output.drain(..from);
    }
}

/// How many of these bytes are letters in full, broken ones included.
fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // The last letters may still be unfinished; at most three bytes.
        Err(_) => (bytes.len().saturating_sub(3)..bytes.len())
            .find(|at| {
                bytes.get(*at..).is_some_and(|rest| {
                    std::str::from_utf8(rest)
                        .is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
                })
            })
            .unwrap_or(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{OUTPUT_LETTERS_MAX, State, whole_letters};

    #[test]
    fn letters_are_not_torn_apart_and_broken_ones_do_not_hold_up() {
        let mut state = State::default();
        for byte in "a\u{e9}\u{1f600}z".as_bytes() {
            state.take(&[*byte], Duration::ZERO);
        }
        assert_eq!(state.output, "a\u{e9}\u{1f600}z");
        state.take(b"\xff\xfeok", Duration::ZERO);
        assert!(state.output.ends_with("\u{fffd}\u{fffd}ok"));
        assert_eq!(whole_letters(b"\xffa\xf0\x9f"), 2);
    }

    #[test]
    fn only_the_end_of_a_flood_is_kept() {
        let mut state = State::default();
        for _ in 0..300 {
            state.take(&[b'x'; 4096], Duration::ZERO);
        }
        state.take(b"end", Duration::ZERO);
        state.cut();
        assert_eq!(state.output.len(), OUTPUT_LETTERS_MAX);
        assert!(state.output.ends_with("end"));
    }
}

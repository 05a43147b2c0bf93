//! What reaches a session while it works: that it is to stop, and what the
//! user has chosen meanwhile.
//!
//! A session has one thread, and that thread waits for one thing at a time: an
//! answer of the client or of the model. Whatever it waits for, a cancel ends
//! the waiting at once. This module must never turn a wait that ended into a yes.

use std::{
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use super::modes::Choice;
use crate::cancel::Cancel;

/// What came of waiting.
#[derive(Debug)]
pub enum Waited<T> {
    /// It came.
    Got(T),
    /// The turn was cancelled, or the client went away.
    Cancelled,
    /// It did not come in time.
    TimedOut,
}

/// Where the answer is put that somebody waits for.
#[derive(Debug)]
pub struct Reply<T>(mpsc::Sender<Option<T>>);

impl<T> Reply<T> {
    /// Puts it; an answer that nobody waits for any more is dropped.
    pub fn put(self, answer: T) {
        // Nobody waits for it any more if nobody takes it.
        let _ = self.0.send(Some(answer));
    }
}

/// Shared by a session's thread and the connection.
#[derive(Default)]
pub struct Control {
    state: Mutex<State>,
    model: Cancel,
}

#[derive(Default)]
struct State {
    busy: bool,
    cancelled: bool,
    gone: bool,
    wake: Option<Box<dyn Fn() + Send>>,
    choice: Choice,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every field is valid by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn is to begin; `false` if one is running or the session is over.
    pub fn begin(&self) -> bool {
        let mut state = self.state();
        if state.busy || state.gone {
            return false;
        }
        state.busy = true;
        state.cancelled = false;
        let _before = self.model.take();
        true
    }

    /// The turn is over.
    pub fn finished(&self) {
        self.state().busy = false;
    }

    /// The switch that calls off a model that is being asked.
    pub fn of_model(&self) -> Cancel {
        self.model.clone()
    }

    /// The turn that runs, if one does, is to stop.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.cancelled = true;
        self.model.throw();
        if let Some(wake) = state.wake.take() {
            wake();
        }
    }

    /// Nothing more is to happen at all.
    pub fn leave(&self) {
        self.state().gone = true;
        self.cancel();
    }

    /// Is the turn to stop?
    pub fn is_cancelled(&self) -> bool {
        let state = self.state();
        state.cancelled || state.gone
    }

    /// What the user has chosen.
    pub fn choice(&self) -> Choice {
        self.state().choice
    }

    /// The user chooses.
    pub fn choose(&self, change: impl FnOnce(&mut Choice)) -> Choice {
        let mut state = self.state();
        change(&mut state.choice);
        state.choice
    }

    /// Waits for what `start` sets going.
    pub fn wait_for<T: Send + 'static>(
        &self,
        time: Duration,
        start: impl FnOnce(Reply<T>),
    ) -> Waited<T> {
        let (send, receive) = mpsc::channel();
        {
            let mut state = self.state();
            if state.cancelled || state.gone {
                return Waited::Cancelled;
            }
            let wake = send.clone();
            state.wake = Some(Box::new(move || {
                // Whoever waited has its answer if nobody takes this.
                let _ = wake.send(None);
            }));
        }
        start(Reply(send));
        let got = receive.recv_timeout(time);
        self.state().wake = None;
        match got {
            Ok(Some(answer)) => Waited::Got(answer),
            Ok(None) | Err(mpsc::RecvTimeoutError::Disconnected) => Waited::Cancelled,
            Err(mpsc::RecvTimeoutError::Timeout) => Waited::TimedOut,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Duration};

    use super::{Control, Waited};

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn an_answer_a_cancel_and_silence_are_told_apart() {
        let control = Arc::new(Control::default());
        assert!(control.begin());
        assert!(!control.begin(), "one turn at a time");
        let got = control.wait_for(LONG, |reply| reply.put(5));
        assert!(matches!(got, Waited::Got(5)));
        let none = control.wait_for::<()>(Duration::from_millis(1), |reply| {
            std::mem::forget(reply);
        });
        assert!(matches!(none, Waited::TimedOut));
        let other = Arc::clone(&control);
        let stopped = control.wait_for::<()>(LONG, |reply| {
            thread::spawn(move || {
                other.cancel();
                drop(reply);
            });
        });
        assert!(matches!(stopped, Waited::Cancelled));
        // It stays cancelled until the next turn begins.
        let still = control.wait_for(LONG, |reply| reply.put(5));
        assert!(matches!(still, Waited::Cancelled));
        control.finished();
        assert!(control.begin() && !control.is_cancelled());
    }

    #[test]
    fn after_leaving_nothing_begins() {
        let control = Control::default();
        control.leave();
        assert!(!control.begin() && control.is_cancelled());
    }
}

//! One session, shared by threads.
//!
//! What for: a command runs in one thread while a person revokes its grant in
//! another. Why here: the session itself has one owner and knows no threads;
//! this is the one lock around it, with the kill switches of what runs.
//!
//! Three things hold, whatever the threads do (the model checker tries every
//! order, `tests/live_model.rs`):
//!
//! - a use is checked and charged in one step, so a last use is used once;
//! - when a revocation returns, nothing new starts and what ran is killed;
//! - when [`Live::revoke_and_drain`] returns, nothing runs on the grant or on
//!   anything derived from it.
//!
//! It must never decide anything, and never let go of the lock between a
//! decision and the spending of its permits. This file uses no thread, clock or
//! lock of its own choosing: the module `sync` beside it says which.

use std::collections::BTreeMap;

use hermitcrab_core::{
    approval::CallId,
    grant::GrantId,
    outcome::Outcome,
    session::{Event, Parts, Session},
    time::Instant,
};

use super::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Ends what a call runs, at once and whatever it does; must not use the session.
pub type Kill = Box<dyn FnOnce() + Send>;

/// Tells the time, on the clock that runs on during suspend.
pub type Now = Box<dyn Fn() -> Instant + Send + Sync>;

/// The call was stopped before anybody knew how to kill it; it is killed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// A session that several threads step.
#[derive(Clone)]
pub struct Live {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Mutex<Inner>,
    /// A call finished, or there may be less to wait for.
    changed: Condvar,
    now: Now,
}

struct Inner {
    session: Session,
    /// How to kill each call that runs.
    kills: BTreeMap<CallId, Kill>,
    /// Calls permitted and not finished: whether each was stopped since.
    flights: BTreeMap<CallId, bool>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    /// Shares a session.
    #[must_use]
    pub fn new(session: Session, now: Now) -> Self {
        Self {
            shared: Arc::new(Shared {
                inner: Mutex::new(Inner {
                    session,
                    kills: BTreeMap::new(),
                    flights: BTreeMap::new(),
                }),
                changed: Condvar::new(),
                now,
            }),
        }
    }

    /// One turn: steps the session and, still alone with it, acts on what it
    /// says. The clock is read inside, so a deadline cannot pass between the
    /// reading and the decision. `act` writes the records, then spends the
    /// permits; what takes long it starts, and waits for elsewhere.
    pub fn turn<R>(&self, event: Event, act: impl FnOnce(Parts<'_>) -> R) -> R {
        let mut inner = self.lock();
        let now = (self.shared.now)();
        let Inner {
            session,
            kills,
            flights,
        } = &mut *inner;
        let finished = match &event {
            Event::Finished { call, .. } => Some(*call),
            _ => None,
        };
        let parts = session.step(now, event).into_parts();
        if let Some(call) = finished {
            flights.remove(&call);
            kills.remove(&call);
        }
        if let (Some(call), false) = (parts.call, parts.permits.is_empty()) {
            flights.entry(call).or_insert(false);
        }
        let stopped = parts.stopped.clone();
        // What is to be killed is killed before anybody is told that it was.
        for call in stopped {
            if let Some(stopped) = flights.get_mut(&call) {
                *stopped = true;
            }
            if let Some(kill) = kills.remove(&call) {
                kill();
            }
        }
        let result = act(parts);
        drop(inner);
        self.shared.changed.notify_all();
        result
    }

    /// Says how to kill what a call runs.
    ///
    /// # Errors
    /// It was stopped in the meantime, or never permitted: `kill` was called.
    pub fn runs(&self, call: CallId, kill: Kill) -> Result<(), Stopped> {
        let mut inner = self.lock();
        match inner.flights.get(&call) {
            Some(false) => {
                inner.kills.insert(call, kill);
                Ok(())
            }
            Some(true) | None => {
                kill();
                Err(Stopped)
            }
        }
    }

    /// A call is over. Nothing of it happens after this returns.
    pub fn finished<R>(
        &self,
        call: CallId,
        outcome: Outcome,
        act: impl FnOnce(Parts<'_>) -> R,
    ) -> R {
        self.turn(Event::Finished { call, outcome }, act)
    }

    /// Ends a grant and everything derived from it. When this returns, nothing
    /// new starts on them and what runs was killed; it may still be dying.
    pub fn revoke<R>(&self, grant: GrantId, act: impl FnOnce(Parts<'_>) -> R) -> R {
        self.turn(Event::Revoke(grant), act)
    }

    /// The same, and waits until every call on them is reported finished.
    pub fn revoke_and_drain<R>(&self, grant: GrantId, act: impl FnOnce(Parts<'_>) -> R) -> R {
        let result = self.turn(Event::RevokeAndDrain(grant), act);
        self.drained(grant);
        result
    }

    /// Waits until every call on a grant or below it is reported finished.
    pub fn drained(&self, grant: GrantId) {
        let mut inner = self.lock();
        // A grant this session never had is not revoked, and nothing runs on it.
        while inner.session.running_on(grant).next().is_some() {
            inner = match self.shared.changed.wait(inner) {
                Ok(inner) => inner,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
    }

    /// The last instant at which a tick would find nothing to do.
    #[must_use]
    pub fn quiet_until(&self) -> Option<Instant> {
        self.lock().session.quiet_until()
    }

    /// Tells the session of what is no event: a place, a rule. What it decided
    /// before stays decided.
    pub fn arrange<R>(&self, arrange: impl FnOnce(&mut Session) -> R) -> R {
        arrange(&mut self.lock().session)
    }

    /// Looks at the session.
    pub fn look<R>(&self, look: impl FnOnce(&Session) -> R) -> R {
        look(&self.lock().session)
    }

    /// A thread that broke down while it held the session leaves a state nobody
    /// vouches for: the session ends, and with it every grant and call.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        match self.shared.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => {
                let mut inner = poisoned.into_inner();
                if !inner.session.has_ended() {
                    let now = inner.session.now();
                    drop(inner.session.step(now, Event::End));
                    for (_, kill) in std::mem::take(&mut inner.kills) {
                        kill();
                    }
                    for stopped in inner.flights.values_mut() {
                        *stopped = true;
                    }
                }
                inner
            }
        }
    }
}

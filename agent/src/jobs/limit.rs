//! When a run ends though it is not done: its time is over, or whoever waits for it
//! calls it off.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use hermitcrab_core::grant::AgentId;

use crate::{cancel::Cancel, chat::Watch, ports::ProgressPort};

/// How often it is looked whether somebody calls it off.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Throws a switch when the time of a run is over or its caller's turn is, unless the
/// run is over before.
#[derive(Debug)]
pub struct Limit {
    cancel: Cancel,
    interrupted: Cancel,
    /// Whoever waits at the other end stops waiting when this goes.
    _waits: Sender<()>,
}

impl Limit {
    /// Begins to count. `caller` is the switch that ends what the caller does.
    ///
    /// # Errors
    /// No thread can be started that counts.
    pub fn begin(cancel: Cancel, most: Duration, caller: Option<Cancel>) -> std::io::Result<Self> {
        let (waits, over) = mpsc::channel::<()>();
        let interrupted = Cancel::default();
        let (switch, why) = (cancel.clone(), interrupted.clone());
        let until = Instant::now().checked_add(most);
        thread::Builder::new()
            .name("a job's time".to_owned())
            .spawn(move || {
                while over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if caller.as_ref().is_some_and(Cancel::is_thrown) {
                        why.throw();
                        switch.throw();
                        return;
                    }
                    if until.is_some_and(|until| Instant::now() >= until) {
                        switch.throw();
                        return;
                    }
                }
            })?;
        Ok(Self {
            cancel,
            interrupted,
            _waits: waits,
        })
    }

    /// The switch that ends the run.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Whether somebody called it off.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.is_thrown()
    }
}

/// Ends a turn and a command when the switch is thrown.
pub(super) struct Switch(pub(super) Cancel);

impl Watch for Switch {
    fn goes_on(&mut self) -> bool {
        !self.0.is_thrown()
    }
}

impl ProgressPort for Switch {
    fn output(&mut self, _agent: AgentId, _piece: &str) {}

    fn is_wanted(&mut self) -> bool {
        !self.0.is_thrown()
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::{Cancel, Limit};
    use crate::tools::cronjob::turns::RUN_MAX;

    fn is_thrown_soon(cancel: &Cancel) -> bool {
        (0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            cancel.is_thrown()
        })
    }

    #[test]
    fn time_and_a_caller_end_a_run_and_are_told_apart() {
        let late = Limit::begin(Cancel::default(), Duration::from_millis(30), None).unwrap();
        assert!(is_thrown_soon(late.cancel()) && !late.is_interrupted());
        let caller = Cancel::default();
        let called_off = Limit::begin(Cancel::default(), RUN_MAX, Some(caller.clone())).unwrap();
        thread::sleep(Duration::from_millis(60));
        assert!(!called_off.cancel().is_thrown());
        caller.throw();
        assert!(is_thrown_soon(called_off.cancel()) && called_off.is_interrupted());
    }

    #[test]
    fn what_is_over_is_not_called_off() {
        let (cancel, caller) = (Cancel::default(), Cancel::default());
        drop(Limit::begin(cancel.clone(), RUN_MAX, Some(caller.clone())).unwrap());
        thread::sleep(Duration::from_millis(60));
        caller.throw();
        thread::sleep(Duration::from_millis(60));
        assert!(!cancel.is_thrown());
    }
}

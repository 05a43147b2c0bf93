//! Ending a command before its own end.
//!
//! First its own process is killed. Its end is what the sandbox's first process
//! waits for: that kills everything else, reaps it and says so, before any of
//! the sandbox is taken apart, which takes longer than all of that. Where it does not
//! get to run, all else is killed from outside; where no word comes, the first
//! process is killed, and everything dies with it. What is being killed is not held
//! back by its limit of processor time.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::Running;
use crate::spawn::Ending;
use crate::spawn::spec::Wish;
use crate::step::{Step, StepError};

/// How long the first process may take to say that it kills the rest. Where it
/// does not get to run, what keeps it from running is killed from outside, which
/// costs more than to leave that to it.
const TURN_TIMEOUT: Duration = Duration::from_millis(2);
/// How long the first process may take to end the rest.
const WORD_TIMEOUT: Duration = Duration::from_millis(250);
/// How long a killed sandbox may take to be gone before it is left to itself.
const REAP_TIMEOUT: Duration = Duration::from_secs(10);

/// The command is being killed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) why: Ending,
    /// When all else is killed from outside, if the first process has said nothing.
    others_at: Option<Instant>,
    /// When the first process is killed, if it has not been yet.
    first_at: Option<Instant>,
    /// When waiting for its end is given up.
    until: Option<Instant>,
}

impl Stop {
    /// When there is something to do next.
    pub(super) fn next(self) -> Option<Instant> {
        self.others_at.or(self.first_at).or(self.until)
    }
}

impl Running {
    /// Something is due. Returns whether there is more to wait for.
    pub(super) fn go_on_stopping(&mut self, now: Instant) -> bool {
        match &mut self.stop {
            Some(stop) if stop.others_at.is_some_and(|at| now >= at) => {
                stop.others_at = None;
                self.kill_others();
                true
            }
            Some(stop) if stop.first_at.is_some_and(|at| now >= at) => {
                stop.first_at = None;
                self.kill_first();
                true
            }
            Some(_) => false,
            None if self.orphans => false,
            None => {
                self.go_on_asking(now);
                true
            }
        }
    }

    pub(super) fn stop_for(&mut self, why: Ending) {
        if self.stop.is_none() {
            if let Some(underway) = &self.underway {
                underway.stop();
            }
            let now = Instant::now();
            self.stop = Some(Stop {
                why,
                others_at: now.checked_add(TURN_TIMEOUT),
                first_at: now.checked_add(WORD_TIMEOUT),
                until: now.checked_add(REAP_TIMEOUT),
            });
            let was_asked = self.asked.is_some() && self.main.is_some() && self.wish(Wish::Clear);
            // Where it was asked, it may have ended, and only what it started is left.
            if !self.kill_command() && !was_asked {
                self.kill_first();
            }
            if self.first.is_none() {
                self.leave_unmade();
            }
            self.close_the_way_out();
        }
    }

    /// Ends every connection outside.
    pub(super) fn close_the_way_out(&mut self) {
        self.allow = None;
        if let Some(proxy) = self.proxy.take() {
            self.attempts = proxy.finish();
        }
    }

    /// Kills the command's own process; whether there is such a process.
    fn kill_command(&self) -> bool {
        let is_killed = self
            .main
            .as_ref()
            .is_some_and(|main| pidfd_send_signal(main, Signal::KILL).is_ok());
        self.let_it_end();
        is_killed
    }

    /// Kills everything in its groups but the first process, where it is not the
    /// kernel that does that for all at once.
    fn kill_others(&self) {
        if let Some(Ok(held)) = &self.group {
            held.outlook.kill_but(self.first_number);
        }
    }

    /// What the command left running is being killed by the first process.
    pub(super) fn is_clearing(&mut self) {
        if let Some(stop) = &mut self.stop {
            stop.others_at = None;
        }
        self.let_it_end();
    }

    /// Kills the first process, and with it everything in the sandbox.
    pub(super) fn kill_first(&self) {
        self.let_it_end();
        if let Some(Ok(held)) = &self.group {
            held.outlook.kill();
        }
        if let Some(first) = &self.first {
            // It can only fail for a process that is gone.
            let _killed = pidfd_send_signal(first, Signal::KILL);
        }
    }

    /// What is being killed is not held back any more.
    fn let_it_end(&self) {
        if let Some(Ok(held)) = &self.group {
            held.outlook.lift_cpu_limit();
        }
    }

    /// The first process ends after everything else in the sandbox.
    pub(super) fn look_for_the_end(&mut self) -> Result<(), StepError> {
        let Some(first) = &self.first else {
            if self.stop.is_some() {
                self.leave_unmade();
            }
            return Ok(());
        };
        let mut wanted = [PollFd::new(first, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match poll(&mut wanted, Some(&now)) {
            Ok(count) => self.gone |= count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(StepError::new(Step::Wait, "poll", errno)),
        }
        if self.gone {
            // The last report may have come in between.
            self.listen()?;
        }
        Ok(())
    }

    /// Its end did not come in time. What was killed and does not end is held up in
    /// the kernel, and no more can be done to it. Where there is nothing to kill, and
    /// nobody ever answered, the spawner goes, and the kernel kills all that it made.
    pub(super) fn abandon(&mut self) {
        if self.orphans {
            self.stop = Some(Stop {
                why: Ending::TimedOut,
                others_at: None,
                first_at: None,
                until: None,
            });
        } else if self.first.is_some() {
            self.failure = Some(Self::does_not_end());
        } else {
            self.pool.end(self.generation);
        }
        self.gone = true;
    }
}

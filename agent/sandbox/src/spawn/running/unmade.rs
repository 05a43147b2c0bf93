//! A sandbox that does not come to be before the time of its command is over.
//!
//! What for: opening a directory waits for its file system, and some do not answer.
//! Who opens it is then held up in the kernel, where nobody can end it. The
//! command is not: a sandbox that has not said that its first process is there
//! cannot run anything once nobody listens to it, and that is arranged here.

use rustix::net::Shutdown;

use super::Running;
use crate::spawn::Ending;
use crate::spawn::spec::Surroundings;
use crate::step::{Step, StepError};

impl Running {
    /// Lets go of a sandbox without a first process, so that it never gets one that
    /// goes on; or finds that there is one by now. Waits for nothing.
    pub(super) fn leave_unmade(&mut self) {
        // Where nobody took notice it may be the spawner that hangs: see `abandon`.
        if !self.is_there() && self.is_noticed {
            self.listen_no_more();
        }
    }

    /// Nobody waits for it from here on. Its first process may be there, and run the command,
    /// without having been heard of yet: it is heard of now, so that it can be killed, or is
    /// never there.
    pub(super) fn hear_of_first(&mut self) {
        if !self.is_there() {
            self.listen_no_more();
        }
    }

    /// Whoever makes it says so first, cannot from here on, and gives up then.
    fn listen_no_more(&mut self) {
        if rustix::net::shutdown(&self.control, Shutdown::Both).is_ok() {
            // What was said before that is heard now, and else the end.
            let _is_there = self.is_there();
        }
    }

    /// Whether there is a first process, or nothing to wait for any more.
    fn is_there(&mut self) -> bool {
        self.listen().is_err() || self.first.is_some() || self.is_over()
    }

    /// Why there was no sandbox when the time was over, if that is so.
    pub(super) fn not_in_time(&self) -> Option<StepError> {
        let is_late = self.stop.is_some_and(|stop| stop.why == Ending::TimedOut);
        if !is_late || !self.layers.is_empty() {
            return None;
        }
        let views = Surroundings::decode(&self.key).map_or_else(|_| Vec::new(), |s| s.places.views);
        // What of it may wait for others than this machine is the views.
        let (step, on) = if views.is_empty() {
            (Step::PrivateRoot, String::new())
        } else {
            let sources = views
                .iter()
                .map(|view| String::from_utf8_lossy(&view.source));
            (Step::ViewSource, sources.collect::<Vec<_>>().join("`, `"))
        };
        Some(StepError::from_parts(step, on, nix::libc::ETIMEDOUT))
    }

    /// What is to be said of a command that was killed and does not end.
    pub(super) fn does_not_end() -> StepError {
        StepError::from_parts(
            Step::Wait,
            "what was killed".to_owned(),
            nix::libc::ETIMEDOUT,
        )
    }
}

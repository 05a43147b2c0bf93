//! What happens to a world's steps from outside: names that change places, and an end
//! in the middle of a step.
use std::os::unix::net::UnixStream;

use nix::unistd::Pid;

use super::Born;
use crate::error::{AtStage, WorldError};
use crate::flip::{self, Flipper, Running, Subject};
use crate::fork::Forker;
use crate::protocol::read_frame;

/// What is to happen to the steps of a world.
pub(super) struct Course<'z> {
    pub(super) flipper: Option<Flipper>,
    /// By step: the change to files right before which it is cut off.
    pub(super) cuts: Vec<Option<u32>>,
    pub(super) follow: bool,
    pub(super) forker: &'z dyn Forker,
}

impl Course<'_> {
    /// Whether a step is cut off, so that one world has several first processes.
    pub(super) fn has_cuts(&self) -> bool {
        self.cuts.iter().any(Option::is_some)
    }

    /// Where this step is cut off, if it is.
    pub(super) fn cut(&self, step: usize) -> Option<u32> {
        self.cuts.get(step).copied().flatten()
    }

    /// Lets this step of this interior begin, which is cut off there.
    pub(super) fn begin(
        &self,
        interior: Pid,
        step: usize,
        cut: Option<u32>,
    ) -> Result<Running<'_>, WorldError> {
        let follow = self.follow;
        let subject = Subject { interior, follow };
        let flipper = self.flipper.as_ref().filter(|flipper| flipper.is_in(step));
        flip::begin(flipper, cut, subject, self.forker)
    }
}

/// The interior's number, which the zygote tells before anything else, and again of
/// each one that follows on another.
pub(super) fn hear(zygote: &mut UnixStream) -> Result<Pid, WorldError> {
    let stage = "hear of the interior";
    let Born(interior) = read_frame(zygote)
        .at(stage)?
        .ok_or_else(|| WorldError::new(stage, "the zygote is gone"))?;
    Ok(Pid::from_raw(interior))
}

//! What changes places in a world, step by step.
use std::os::unix::net::UnixStream;

use nix::unistd::Pid;

use super::Born;
use crate::error::{AtStage, WorldError};
use crate::flip::{Flipper, Running};
use crate::fork::Forker;
use crate::protocol::read_frame;

/// What changes places in a world.
pub(super) struct Flipping<'z> {
    pub(super) flipper: Flipper,
    pub(super) follow: bool,
    pub(super) forker: &'z dyn Forker,
    /// Known once the zygote has told.
    pub(super) interior: Option<Pid>,
}

impl Flipping<'_> {
    /// The interior's number, which the zygote tells before anything else.
    pub(super) fn hear(&mut self, zygote: &mut UnixStream) -> Result<Pid, WorldError> {
        let stage = "hear of the interior";
        if let Some(interior) = self.interior {
            return Ok(interior);
        }
        let Born(interior) = read_frame(zygote)
            .at(stage)?
            .ok_or_else(|| WorldError::new(stage, "the zygote is gone"))?;
        Ok(*self.interior.insert(Pid::from_raw(interior)))
    }

    /// Lets the names change places while a step runs.
    pub(super) fn begin(&self, interior: Pid) -> Result<Running<'_>, WorldError> {
        self.flipper.begin(interior, self.follow, self.forker)
    }
}

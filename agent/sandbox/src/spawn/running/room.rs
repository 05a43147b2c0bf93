//! The room a command takes on disk, if its layers lie there.
//!
//! Nothing else bounds it, so it is looked at as often as somebody attends to the
//! command, and what it left there stays until its changes were decided.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::Running;
use crate::confined::Confined;
use crate::layers::{Bound, KeptLayer, Watch};
use crate::spawn::{Ending, Limits};
use crate::step::{AtStep, Step, StepError};

/// Of a layer in memory the files may be eight times as long together as it is big,
/// because of their holes; each is read to its end. Of one on disk, which is bigger,
/// this part counts as its size there, so they may be twice as long.
const READ_PART: u64 = 4;

/// What it takes, and what it may.
#[derive(Debug)]
pub(super) struct Room {
    bound: Bound,
    watch: Option<Watch>,
    kept: Option<Arc<KeptLayer>>,
    /// Why it takes none, although it was to.
    not_on_disk: Option<(String, IsWanted)>,
}

/// Whether layers were to lie on disk even if memory can hold them.
pub(super) type IsWanted = bool;

impl Room {
    pub(super) fn new(limits: &Limits, not_on_disk: Option<(String, IsWanted)>) -> Self {
        Self {
            bound: Bound {
                bytes: limits.disk_bytes_max,
                names: limits.disk_names_max,
            },
            watch: None,
            kept: None,
            not_on_disk,
        }
    }

    /// Tells why there is none, where that makes a difference.
    pub(super) fn tell(&mut self, confined: &mut Confined) {
        if let Some((why, is_wanted)) = self.not_on_disk.take()
            && (is_wanted || confined.copied.is_some())
        {
            confined.missing.push(format!("layers on disk: {why}"));
        }
    }

    /// How long the files may be together, if they lie on disk.
    pub(super) fn bytes_max(&self) -> Option<u64> {
        self.kept.as_ref().map(|_| self.bound.bytes / READ_PART)
    }

    /// What removes them in the end.
    pub(super) fn kept(&self) -> Option<Arc<KeptLayer>> {
        self.kept.clone()
    }
}

impl Running {
    /// Its sandbox made this place on disk.
    pub(super) fn takes_room(
        &mut self,
        name: Vec<u8>,
        held: Option<OwnedFd>,
    ) -> Result<(), StepError> {
        let on = || String::from_utf8_lossy(&name).into_owned();
        let ((store, _), held) = self
            .pool
            .layers()
            .zip(held)
            .ok_or_else(|| std::io::Error::other("a place nobody asked for"))
            .at(Step::Talk, on())?;
        let kept = store.keep(name.clone(), held);
        self.room.watch = Some(kept.watch(self.room.bound).at(Step::MountOverlay, on())?);
        self.room.kept = Some(Arc::new(kept));
        Ok(())
    }

    /// When its room is looked at next.
    pub(super) fn next_look_at_room(&self) -> Option<Instant> {
        let watch = self.room.watch.as_ref().filter(|_| self.stop.is_none());
        watch.map(Watch::next)
    }

    /// Ends it where it takes more than it may.
    pub(super) fn look_at_room(&mut self, now: Instant) {
        let watch = self.room.watch.as_mut().filter(|_| self.stop.is_none());
        if watch.is_some_and(|watch| watch.is_over(now)) {
            self.stop_for(Ending::OutOfRoom);
        }
    }

    /// The same when it has ended: what it wrote between two looks counts.
    pub(super) fn look_at_room_at_last(&mut self) {
        let watch = self.room.watch.as_mut().filter(|_| self.stop.is_none());
        if watch.is_some_and(Watch::ended_over) {
            self.stop_for(Ending::OutOfRoom);
        }
    }
}

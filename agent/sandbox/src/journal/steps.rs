//! Every change the journal makes to a disk, one at a time.
//!
//! What for: whoever wants to know that a commit is all or nothing must be
//! able to stop it anywhere. Each call that changes something on a disk goes
//! through [`Steps::pass`] first; a [`Watch`] sees it and may say that it
//! fails, or that the process ends there. After that nothing passes any more,
//! which is exactly what a killed process leaves behind.
//!
//! Nothing else may change a disk in this module's siblings.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::in_time::Progress;

/// What happens to one step.
#[derive(Debug)]
pub enum Then {
    /// It is taken.
    GoOn,
    /// It fails with this error, and the journal deals with that.
    Fail(io::Error),
    /// The process ends before it: nothing further is done.
    Stop,
}

/// Sees every step before it is taken.
pub trait Watch: Send + Sync {
    /// `step` is what is about to be done, such as `exchange`.
    fn before(&self, step: &'static str) -> Then;
}

/// The way to the disk.
#[derive(Default)]
pub(crate) struct Steps {
    watch: Option<Arc<dyn Watch>>,
    stopped: Arc<AtomicBool>,
    /// Whoever waits for them looks here.
    progress: Option<Arc<Progress>>,
}

impl Steps {
    pub(super) fn watched(watch: Box<dyn Watch>) -> Self {
        Self {
            watch: Some(Arc::from(watch)),
            ..Self::default()
        }
    }

    /// The same steps, taken while somebody else waits for them.
    pub(super) fn seen_by(&self, progress: Arc<Progress>) -> Self {
        Self {
            watch: self.watch.clone(),
            stopped: Arc::clone(&self.stopped),
            progress: Some(progress),
        }
    }

    /// A piece of a step that takes long is done.
    pub(super) fn tick(&self) {
        if let Some(progress) = &self.progress {
            progress.tick();
        }
    }

    /// Who waits for them, if somebody does.
    pub(super) fn progress(&self) -> Option<&Progress> {
        self.progress.as_deref()
    }

    /// Whether this step may be taken.
    pub(super) fn pass(&self, step: &'static str) -> io::Result<()> {
        if let Some(progress) = &self.progress {
            progress.pass(step)?;
        }
        let Some(watch) = &self.watch else {
            return Ok(());
        };
        if self.stopped() {
            return Err(io::Error::other("stopped before this step"));
        }
        match watch.before(step) {
            Then::GoOn => Ok(()),
            Then::Fail(error) => Err(error),
            Then::Stop => {
                self.stopped.store(true, Ordering::Relaxed);
                Err(io::Error::other("stopped at this step"))
            }
        }
    }

    /// Whether nothing more is done: the watcher ended it, or nobody waits for it any more.
    pub(super) fn is_over(&self) -> bool {
        let progress = self.progress.as_deref();
        self.stopped() || progress.is_some_and(Progress::is_left)
    }

    /// Whether the watcher ended it.
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("watched", &self.watch.is_some())
            .finish_non_exhaustive()
    }
}

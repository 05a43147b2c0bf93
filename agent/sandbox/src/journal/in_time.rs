//! What changes something on a file system that may stop answering in the midst of it.
//!
//! What for: such a call waits in the kernel, nothing ends that from within, and whoever made
//! it waits for ever, with the journal's lock. So where a file system is none that is known
//! to answer by itself, a thread of its own does the work, and whoever asked looks whether it
//! gets on. Where it does not, it is left: it takes no further step, whatever comes of the one
//! it is at; its transaction is named as one that waits, and the lock is let go of.
//!
//! It must never be said that something did not happen and happen afterwards: a step that is
//! not over may come true, so the transaction stays held by its thread, and nobody takes it
//! back before that step is over. Whether all of it stands is decided once, by who is first.

#![expect(
    clippy::result_large_err,
    reason = "a failure is made at most once for each commit, and says all there is to show"
)]

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermitcrab_core::path::RelPath;
use rustix::fs::FlockOperation;

use super::failed::{CommitFailure, Failed, Stuck, StuckWhy};
use super::{CommitId, Journal};
use crate::dircap::{DirCap, FsError};
use crate::patience::does_not_answer;

/// How long one step may take.
const STEP_MAX: Duration = Duration::from_secs(120);
/// So many times as long may it take until what was written is on the disk.
const FLUSH_TIMES: u32 = 10;

/// Nothing is decided yet.
const GOING: usize = 0;
/// It does not stand.
const LEFT: usize = 1;
/// It is about to be said, on the journal's own disk, that it stands.
const DECIDED: usize = 2;
/// It stands.
const STANDS: usize = 3;

/// How far somebody is who works for another.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Grows with every step, and with every piece of a file.
    passed: AtomicU64,
    is_flushing: AtomicBool,
    decision: AtomicUsize,
    /// Nobody waits for it any more, so it may do nothing more.
    is_left: AtomicBool,
    names: Mutex<Names>,
}

/// The names of a transaction, in the order of its steps, and how many steps were begun.
#[derive(Debug, Default)]
struct Names {
    number: u64,
    all: Vec<PathBuf>,
    begun: usize,
}

impl Progress {
    /// A step is about to be taken.
    pub(super) fn pass(&self, step: &str) -> io::Result<()> {
        self.tick();
        let flushes = step.starts_with("flush");
        self.is_flushing.store(flushes, Ordering::SeqCst);
        match self.is_left() {
            true => Err(does_not_answer()),
            false => Ok(()),
        }
    }

    /// Whether whoever waited for it has gone on.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst) || self.decision.load(Ordering::SeqCst) == LEFT
    }

    pub(super) fn tick(&self) {
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    /// These names change, one step after the other.
    pub(super) fn names(&self, number: u64, all: impl Iterator<Item = PathBuf>) {
        *self.lock() = Names {
            number,
            all: all.collect(),
            begun: 0,
        };
    }

    /// The step at this place begins.
    pub(super) fn begins(&self, at: usize) {
        self.lock().begun = at.saturating_add(1);
    }

    /// It is to stand from here on, if nobody has left it.
    pub(super) fn decide(&self) -> io::Result<()> {
        match self.decided(GOING, DECIDED) {
            true => Ok(()),
            false => Err(does_not_answer()),
        }
    }

    /// It stands, on the disk.
    pub(super) fn stands(&self) {
        let _only_once = self.decided(DECIDED, STANDS);
    }

    fn decided(&self, from: usize, to: usize) -> bool {
        let order = Ordering::SeqCst;
        self.decision
            .compare_exchange(from, to, order, order)
            .is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    /// The same journal, which gives up a step after so long, on whatever file system.
    #[must_use]
    pub fn giving_up_after(mut self, step_max: Duration) -> Self {
        self.step_max = Some(step_max);
        self
    }

    /// Whether what is done in these directories is waited for only so long.
    pub(super) fn has_patience<'d>(&self, mut dirs: impl Iterator<Item = &'d DirCap>) -> bool {
        self.step_max.is_some() || dirs.any(|dir| dir.patience().is_some())
    }

    /// Has it done by a thread of its own, and waits for that while it gets on.
    pub(super) fn in_time(
        &self,
        act: impl FnOnce(&Self) -> Result<CommitId, CommitFailure> + Send + 'static,
    ) -> Result<CommitId, CommitFailure> {
        let progress = Arc::new(Progress::default());
        let worker = Self {
            steps: Arc::new(self.steps.seen_by(Arc::clone(&progress))),
            held: Arc::default(),
            ..self.clone()
        };
        let lent = Self {
            steps: Arc::clone(&self.steps),
            ..worker.clone()
        };
        let (tell, told) = sync_channel(1);
        // Nobody joins it: its end is what may not come.
        std::thread::Builder::new()
            .name("hermitcrab-commit".to_owned())
            .spawn(move || {
                let done = act(&worker);
                drop(worker);
                // Whoever asked may be gone by now.
                let _told = tell.send(done);
            })
            .map_err(|source| failure("begin", source))?;
        let step_max = self.step_max.unwrap_or(STEP_MAX);
        let mut seen = u64::MAX;
        loop {
            let flushes = progress.is_flushing.load(Ordering::SeqCst);
            let times = if flushes { FLUSH_TIMES } else { 1 };
            match told.recv_timeout(step_max.saturating_mul(times)) {
                Ok(done) => return done,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failure("end", io::ErrorKind::UnexpectedEof.into()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = progress.passed.load(Ordering::SeqCst);
            if now != seen {
                seen = now;
                continue;
            }
            if progress.decided(GOING, LEFT) {
                progress.is_left.store(true, Ordering::SeqCst);
                return Err(lent.left(&progress));
            }
            if progress.decision.load(Ordering::SeqCst) == STANDS {
                // What is left to do is to remove what was staged, and others can do that.
                progress.is_left.store(true, Ordering::SeqCst);
                lent.let_go();
                let id = CommitId(progress.lock().number);
                self.made().insert(id);
                return Ok(id);
            }
            // The journal's own disk is at it.
        }
    }

    /// Lets others go on, and says what is not known.
    fn left(&self, progress: &Progress) -> CommitFailure {
        // Where it cannot be named so, it is told as what it is when it is found.
        let _named = self.have_unfinished_wait();
        self.let_go();
        let names = progress.lock();
        let begun = names.all.iter().take(names.begun);
        CommitFailure {
            stuck: begun
                .map(|at| Stuck {
                    at: at.clone(),
                    why: StuckWhy::Waits,
                })
                .collect(),
            ..failure("carry over what was done in", does_not_answer())
        }
    }

    /// Lets go of the lock that the thread that was left has, so that others can go on.
    fn let_go(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.upgrade() {
            let _unlocked = rustix::fs::flock(&*lock, FlockOperation::Unlock);
        }
    }
}

fn failure(operation: &'static str, source: io::Error) -> CommitFailure {
    Failed::in_journal(FsError::Io {
        operation,
        path: RelPath::root(),
        source,
    })
    .into()
}

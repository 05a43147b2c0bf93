//! Looks after what runs, while the thread that started it waits.
//!
//! What for: a command runs for minutes while its grant is ended by
//! `hermitcrab caps revoke` in another terminal, or while its deadline passes.
//! Why here: the store is another process's to change, so somebody has to look;
//! it is looked at only while something runs, because every call looks before
//! it begins. It must never decide: it tells the session what it found, and
//! the session says what is to be killed.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use hermitcrab_core::{
    approval::CallId,
    grant::GrantId,
    session::{Event, Session},
    standing::StandingId,
};

use super::machine::Machine;
use crate::{audit::LedgerError, ports::Clock, store::keeper::Keeper};

/// How often it looks: well below the tenth of a second within which what runs
/// on an ended grant is to be dead.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long it sleeps where nothing runs and nobody wakes it.
const IDLE: Duration = Duration::from_secs(60);
/// How long a change of the store may be half seen.
const SECOND_LOOK: Duration = Duration::from_millis(2);

/// The kept grants that count in a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Adopted(Arc<Mutex<Vec<(StandingId, GrantId)>>>);

impl Adopted {
    fn lock(&self) -> MutexGuard<'_, Vec<(StandingId, GrantId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, standing: StandingId, grant: GrantId) {
        self.lock().push((standing, grant));
    }

    /// Keeps what these grants of the session allow, which goes by that from here on: whoever
    /// ends it in the store means what somebody said yes to in this session as well. Nobody
    /// looks meanwhile, who would not find it in what they read before.
    ///
    /// # Errors
    /// It is not kept, and the grants stand for the session alone.
    pub(super) fn keep<E>(
        &self,
        grants: impl IntoIterator<Item = GrantId>,
        keep: impl FnOnce() -> Result<StandingId, E>,
    ) -> Result<StandingId, E> {
        let mut adopted = self.lock();
        let standing = keep()?;
        for grant in grants {
            // One that goes by another kept grant goes on with that.
            if !adopted.iter().any(|(_, known)| *known == grant) {
                adopted.push((standing, grant));
            }
        }
        Ok(standing)
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Looks into the store and ends what does not count any more; says which calls are to
    /// stop. Others who want to know, or have something kept, wait until it is done. A look
    /// that says there is nothing new is enough; one that fails, or finds something, is not.
    ///
    /// # Errors
    /// The ledger cannot be written. It has ended all the same, and what ran on
    /// it was killed.
    pub(super) fn end_gone<L>(
        &self,
        machine: &Machine,
        keeper: &mut Keeper,
        look: impl FnOnce(&mut Keeper) -> (L, Then),
    ) -> (L, Result<Vec<CallId>, LedgerError>) {
        let mut adopted = self.lock();
        let (looked, then) = look(keeper);
        if then == Then::NothingElse {
            return (looked, Ok(Vec::new()));
        }
        let (gone, stay): (Vec<_>, Vec<_>) = adopted
            .iter()
            .copied()
            .partition(|(standing, _)| !keeper.counts_here(*standing));
        *adopted = stay;
        let mut stopped = Vec::new();
        let mut unwritten = None;
        for (standing, grant) in gone {
            let noted = machine.step(Event::Note(format!(
                "{standing} was ended in the store, and {grant} with it"
            )));
            // The session ends it before the ledger hears of it.
            match machine.step(Event::Revoke(grant)) {
                Ok(parts) => stopped.extend(parts.stopped),
                Err(error) => unwritten = Some(error),
            }
            if let Err(error) = noted {
                unwritten = Some(error);
            }
        }
        let ended = match unwritten {
            Some(error) => Err(error),
            None => Ok(stopped),
        };
        (looked, ended)
    }
}

/// What follows from a look into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It is as it was.
    NothingElse,
    /// What does not count there any more is ended.
    End,
}

/// The one who looks. Dropping it waits until it has stopped looking.
pub(super) struct Warden {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    quit: Mutex<bool>,
    changed: Condvar,
}

impl fmt::Debug for Warden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warden").finish_non_exhaustive()
    }
}

/// What it looks at.
pub(super) struct Watched {
    pub(super) machine: Machine,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) adopted: Adopted,
    /// Its own view of the store, if there is one.
    pub(super) keeper: Option<Keeper>,
}

impl Warden {
    /// Begins to look.
    pub(super) fn start(watched: Watched) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name("warden".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.watch(watched)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Something runs now.
    pub(super) fn wake(&self) {
        // Whoever looks holds this until it sleeps, so it cannot sleep over it.
        drop(self.shared.lock());
        self.shared.changed.notify_all();
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        *self.shared.lock() = true;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked holds nothing any more.
            let _joined = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.quit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, mut watched: Watched) {
        let mut quit = self.lock();
        while !*quit {
            let running = watched.machine.look(Session::is_running);
            let patience = if running { PATIENCE } else { IDLE };
            if running {
                drop(quit);
                watched.look();
                quit = self.lock();
                if *quit {
                    break;
                }
            }
            quit = self
                .changed
                .wait_timeout(quit, patience)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Watched {
    /// A ledger that cannot be written refuses the next call with the reason;
    /// what is to be killed is killed all the same.
    fn look(&mut self) {
        let due = self.machine.quiet_until();
        if due.is_some_and(|due| self.clock.now() > due) {
            let _recorded = self.machine.step(Event::Tick);
        }
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        let look = |keeper: &mut Keeper| {
            let looked = keeper.refresh().or_else(|_| {
                // Another process may be writing at this moment.
                std::thread::sleep(SECOND_LOOK);
                keeper.refresh()
            });
            match looked {
                Ok(false) => ((), Then::NothingElse),
                // What cannot be trusted counts as nothing.
                Ok(true) | Err(_) => ((), Then::End),
            }
        };
        let ((), _recorded) = self.adopted.end_gone(&self.machine, keeper, look);
    }
}

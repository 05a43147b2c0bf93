//! The agent's end: the spawner process, and sandboxes that wait for a command.
//!
//! A sandbox is used for one command and thrown away. What makes it quick is
//! only that it was built before: for surroundings that recur, the pool keeps
//! a few ready. Nothing is kept for surroundings seen once.
//!
//! What was used is replaced by a thread of the pool's own, so that nobody
//! waits for that; whoever comes before it has replaced it does it in its
//! place. So what a caller gets never depends on how quick the thread is.

mod process;
mod refill;
mod shelf;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use self::process::{Spawner, children, hung_up, start};
use self::refill::{Refill, Thread};
pub(crate) use self::shelf::Waiting;
use self::shelf::{IDLE_MAX, Shelf};
use super::Copies;
use super::channel::Channel;
use super::interpreter::{Interpreters, Recipe};
use super::spec::ShownFile;
use super::streams::{Prepared, null};
use crate::layers::{LayerStore, Prefer};
use crate::mechanism::MechanismSet;
use crate::program::SpawnerProgram;
use crate::step::{AtStep, Step, StepError};

/// Surroundings remembered at once.
const SHELVES_MAX: usize = 8;

/// How many sandboxes are kept ready, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// Ready at once for the same surroundings; none turns the pool off.
    pub ready_max: usize,
    /// How often surroundings must have been used before any is kept for them.
    pub after_uses: u32,
    /// For how many interpreters, those used last, a sandbox is kept in which
    /// it is started already; none turns that off.
    pub interpreters_max: usize,
    /// Which those may be.
    pub interpreters: Interpreters,
    /// Whether a sandbox may get an empty network and control groups that
    /// served another one and were seen to be as they were made; else all of
    /// them are new.
    pub recycled: bool,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self {
            ready_max: 2,
            after_uses: 1,
            interpreters_max: 2,
            interpreters: Interpreters::ALL,
            recycled: true,
        }
    }
}

impl PoolSize {
    /// Every sandbox is built when it is needed.
    pub const OFF: Self = Self {
        ready_max: 0,
        after_uses: 0,
        interpreters_max: 0,
        interpreters: Interpreters::NONE,
        recycled: true,
    };
}

/// A spawner process and what it has prepared.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    /// Last in here: it is told to end by the drop of the pool.
    thread: Mutex<Thread>,
}

#[derive(Debug)]
struct Shared {
    program: SpawnerProgram,
    size: PoolSize,
    without: MechanismSet,
    copies: Copies,
    layers: Option<(LayerStore, Prefer)>,
    shown: Vec<ShownFile>,
    inner: Mutex<Inner>,
    /// There is something to replace, or the pool is closed.
    work: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    spawner: Option<Spawner>,
    /// Spawners started so far; the number of the last one.
    generation: u64,
    shelves: Vec<Shelf>,
    /// What was used and is not replaced yet.
    used: VecDeque<Refill>,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(
        program: SpawnerProgram,
        size: PoolSize,
        without: MechanismSet,
        copies: Copies,
        layers: Option<(LayerStore, Prefer)>,
        shown: Vec<ShownFile>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                program,
                size,
                without,
                copies,
                layers,
                shown,
                inner: Mutex::default(),
                work: Condvar::new(),
            }),
            thread: Mutex::default(),
        }
    }

    /// What is left out of every sandbox, in tests.
    pub(crate) fn without(&self) -> MechanismSet {
        self.shared.without
    }

    /// Which views are copied.
    pub(crate) fn copies(&self) -> Copies {
        self.shared.copies
    }

    /// What every sandbox shows.
    pub(crate) fn shown(&self) -> &[ShownFile] {
        &self.shared.shown
    }

    /// Where layers may lie on disk, and when they do.
    pub(crate) fn layers(&self) -> Option<&(LayerStore, Prefer)> {
        self.shared.layers.as_ref()
    }

    /// How it was asked to be.
    pub(crate) fn size(&self) -> PoolSize {
        self.shared.size
    }

    /// A sandbox with these surroundings, ready or on its way. The interpreter
    /// of the recipe may have been started in it, and no other.
    pub(crate) fn take(&self, key: &[u8], recipe: Option<&Recipe>) -> Result<Waiting, StepError> {
        let mut inner = self.shared.lock();
        inner.forget_a_dead_spawner();
        let mut ready = inner.shelf(key).take(recipe);
        if ready.is_none() && !inner.used.is_empty() {
            self.shared.replace(&mut inner);
            ready = inner.shelf(key).take(recipe);
        }
        let shelf = inner.shelf(key);
        shelf.uses = shelf.uses.saturating_add(1);
        match ready.or_else(|| shelf.take(None)) {
            Some(waiting) => Ok(waiting),
            None => self.shared.ask(&mut inner, key),
        }
    }

    /// Has what was used replaced. A failure shows when one is needed.
    /// The recipe is that of a command which could be started.
    pub(crate) fn refill(&self, key: &[u8], recipe: Option<&Recipe>) {
        if self.size().ready_max == 0 && self.size().interpreters_max == 0 {
            return;
        }
        let mut inner = self.shared.lock();
        inner.used.push_back(Refill {
            key: key.to_vec(),
            recipe: recipe.cloned(),
        });
        drop(inner);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_there(&self.shared) {
            self.shared.work.notify_one();
        } else {
            self.shared.replace(&mut self.shared.lock());
        }
    }

    /// Replaces what was used now.
    pub(crate) fn settle(&self) {
        self.shared.replace(&mut self.shared.lock());
    }

    /// Whether the spawner with this number is gone.
    pub(crate) fn is_gone(&self, generation: u64) -> bool {
        let inner = self.shared.lock();
        inner.generation != generation
            || inner
                .spawner
                .as_ref()
                .is_none_or(|spawner| hung_up(&spawner.control))
    }

    /// Ends the spawner with this number and, through the kernel, all that it made.
    pub(crate) fn end(&self, generation: u64) {
        let mut inner = self.shared.lock();
        if inner.generation == generation {
            inner.drop_spawner();
        }
    }

    /// The processes that are no command's: the spawner, its zygotes, and the
    /// sandboxes that wait.
    pub(crate) fn helpers(&self) -> Vec<u32> {
        let mut inner = self.shared.lock();
        self.shared.replace(&mut inner);
        let Some(spawner) = &inner.spawner else {
            return Vec::new();
        };
        let mut helpers = vec![spawner.child.id()];
        helpers.extend(children(spawner.child.id()));
        for waiting in inner
            .shelves
            .iter_mut()
            .flat_map(|shelf| shelf.ready.iter_mut())
        {
            let Some(first) = waiting.first_process() else {
                continue;
            };
            helpers.push(first);
            helpers.extend(children(first));
        }
        helpers
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        inner.closed = true;
        inner.used.clear();
        inner.drop_spawner();
        drop(inner);
        self.shared.work.notify_all();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.end();
        // Sandboxes that waited and got no command left their places.
        if let Some((store, _)) = &self.shared.layers {
            store.sweep();
        }
    }
}

impl Shared {
    /// Replaces what was used.
    fn replace(&self, inner: &mut Inner) {
        inner.forget_a_dead_spawner();
        while let Some(Refill { key, recipe }) = inner.used.pop_front() {
            if let Some(recipe) = recipe {
                inner
                    .shelf(&key)
                    .remember(&recipe, self.size.interpreters_max);
            }
            while let Some(wanted) = inner.shelf(&key).wanted(self.size) {
                let Ok(mut waiting) = self.ask(inner, &key) else {
                    break;
                };
                let started = match &wanted {
                    Some(recipe) => null().and_then(|null| waiting.start(recipe, null)),
                    None => Prepared::make().map(|made| waiting.prepared = Some(made)),
                };
                if started.is_err() {
                    break;
                }
                inner.shelf(&key).ready.push_back(waiting);
            }
        }
        for shelf in &mut inner.shelves {
            shelf
                .ready
                .retain(|waiting| waiting.asked.elapsed() < IDLE_MAX);
        }
    }

    fn ask(&self, inner: &mut Inner, key: &[u8]) -> Result<Waiting, StepError> {
        let (ours, theirs) = Channel::pair().at(Step::StartSpawner, "socketpair")?;
        let mut again = true;
        loop {
            let spawner = match &inner.spawner {
                Some(spawner) => spawner,
                None => {
                    inner.generation = inner.generation.saturating_add(1);
                    inner.spawner.insert(start(&self.program)?)
                }
            };
            match spawner.control.send(key, &[theirs.as_fd()]) {
                Ok(()) => {
                    return Ok(Waiting {
                        control: ours,
                        generation: inner.generation,
                        heard: VecDeque::new(),
                        started: None,
                        prepared: None,
                        asked: Instant::now(),
                    });
                }
                // It died since it was looked at; a new one gets one try.
                Err(error) if again && error.kind() == io::ErrorKind::BrokenPipe => {
                    again = false;
                    inner.drop_spawner();
                }
                Err(error) => return Err(StepError::new(Step::Talk, "request", error)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here is left half done by a panic elsewhere.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget_a_dead_spawner(&mut self) {
        if self
            .spawner
            .as_ref()
            .is_some_and(|spawner| hung_up(&spawner.control))
        {
            self.drop_spawner();
        }
    }

    fn drop_spawner(&mut self) {
        self.spawner = None;
        // Whatever it made has died with it.
        self.shelves
            .iter_mut()
            .for_each(|shelf| shelf.ready.clear());
    }

    /// The shelf for these surroundings, which becomes the last.
    fn shelf(&mut self, key: &[u8]) -> &mut Shelf {
        let shelf = match self.shelves.iter().position(|shelf| shelf.key == key) {
            Some(place) => self.shelves.remove(place),
            None => {
                if self.shelves.len() >= SHELVES_MAX {
                    self.shelves.remove(0);
                }
                Shelf {
                    key: key.to_vec(),
                    uses: 0,
                    ready: VecDeque::new(),
                    recipes: VecDeque::new(),
                }
            }
        };
        self.shelves.push_mut(shelf)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_waited_for_too_long_is_let_go_before_anybody_wants_it() {
        let pool = Pool::new(
            SpawnerProgram::Own,
            PoolSize::OFF,
            MechanismSet::NONE,
            Copies::default(),
            None,
            Vec::new(),
        );
        let mut inner = pool.shared.lock();
        let mut ends = Vec::new();
        for ago in [IDLE_MAX, Duration::ZERO] {
            let (control, end) = Channel::pair().unwrap();
            ends.push(end);
            let waiting = Waiting {
                control,
                generation: 0,
                heard: VecDeque::new(),
                started: None,
                prepared: None,
                asked: Instant::now().checked_sub(ago).unwrap(),
            };
            inner.shelf(b"key").ready.push_back(waiting);
        }
        pool.shared.replace(&mut inner);
        drop(inner);
        // Only the end of the one that is kept is held on the other side.
        let is_let_go: Vec<bool> = ends.iter().map(hung_up).collect();
        assert_eq!(is_let_go, [true, false]);
    }
}

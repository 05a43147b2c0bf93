//! What a command that runs has made so far.
//!
//! What for: others who look at the same directories are to see what a command in the
//! background or a script wrote, as they would without a sandbox, and not only after its
//! end. So its layers can be read while it writes, what is found can be decided like the
//! changes of a command that ended, and what was decided is no change at the end.
//!
//! It must never take part in what the command does: nothing in its layers is changed.
//! And it must never let the end of the command be read with what was decided before only
//! half on note: whoever reads its end waits for a look that goes on.

mod brought;
mod elsewhere;
#[cfg(test)]
mod made;
mod outside;
mod restless;
mod undone;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hermitcrab_core::authority::Verb;
use hermitcrab_core::path::RelPath;

use crate::changeset::apart::Deleted;
use crate::changeset::clock::Since;
use crate::changeset::owners::Owners;
use crate::changeset::settled::Settled;
use crate::changeset::{ChangeSet, ChangeSetError, Meanwhile, Portion, Terms};
use crate::dircap::DirCap;

pub use self::outside::Outside;

/// How often names that are never kept are taken out of one look.
const ROUNDS_MAX: usize = 16;

/// A way to what a command has made so far. Clones lead to the same.
#[derive(Clone, Debug)]
pub struct Underway(Arc<Inner>);

struct Inner {
    views: Vec<DirCap>,
    started: Since,
    owners: Option<Owners>,
    bytes_max: u64,
    /// Which names of a view it may be shown; all where nobody said.
    shows: OnceLock<Box<Shows>>,
    /// It is being killed.
    is_stopped: AtomicBool,
    state: Mutex<State>,
}

/// Whether a name of a view, by its place, may be shown to a command.
type Shows = dyn Fn(usize, &RelPath) -> bool + Send + Sync;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

/// How much a command was shown of others' changes.
#[derive(Clone, Copy, Debug, Default)]
struct Brought {
    bytes: u64,
    names: u64,
}

/// Where a view lies.
#[derive(Debug)]
struct Layer {
    /// What the command wrote.
    upper: OwnedFd,
    /// What it sees.
    merged: OwnedFd,
}

#[derive(Debug)]
struct State {
    /// One for each view, once they exist and until the end.
    layers: Vec<Layer>,
    /// What was decided, of each view.
    settled: Vec<Settled>,
    /// What it was shown of others' changes.
    brought: Brought,
    /// What it is to be shown of them as soon as it can be.
    waiting: Vec<(usize, RelPath)>,
    /// It has ended, or there is too much to look at.
    is_over: bool,
}

/// One look at what a command has made. While it lives the command's end is not read.
#[derive(Debug)]
pub struct SoFar<'u> {
    of: &'u Inner,
    state: MutexGuard<'u, State>,
    /// How each view is looked at.
    meanwhile: Vec<Meanwhile>,
    sets: Vec<ChangeSet>,
    /// Something that is there is none of this look's, and may be what is gone elsewhere.
    waits: bool,
}

impl Underway {
    pub(crate) fn new(
        views: &[DirCap],
        started: Since,
        owners: Option<Owners>,
        bytes_max: u64,
    ) -> io::Result<Self> {
        let views: io::Result<Vec<DirCap>> = views.iter().map(DirCap::duplicate).collect();
        let views = views?;
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(State {
                layers: Vec::new(),
                settled: vec![Settled::default(); views.len()],
                brought: Brought::default(),
                waiting: Vec::new(),
                is_over: false,
            }),
            views,
            started,
            owners,
            bytes_max,
            shows: OnceLock::new(),
            is_stopped: AtomicBool::new(false),
        })))
    }

    /// Of what others change, it is shown no other names than these, at any depth.
    pub fn show_only(&self, shows: impl Fn(usize, &RelPath) -> bool + Send + Sync + 'static) {
        // Whoever said it first is who started the command.
        let _said = self.0.shows.set(Box::new(shows));
    }

    /// It is being killed: what it made by now is for its end to tell. Nobody waits for a
    /// look that goes on.
    pub(crate) fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Its layers are these, and what is seen of them.
    pub(crate) fn lies_in(&self, uppers: &[OwnedFd], merged: &[OwnedFd]) -> io::Result<()> {
        let layers: io::Result<Vec<Layer>> = uppers
            .iter()
            .zip(merged)
            .take(self.0.views.len())
            .map(|(upper, merged)| {
                Ok(Layer {
                    upper: upper.try_clone()?,
                    merged: merged.try_clone()?,
                })
            })
            .collect();
        let mut state = self.0.state();
        state.layers = layers?;
        for (view, path) in std::mem::take(&mut state.waiting) {
            // What cannot be shown stays as it was.
            let _shown = self.0.bring(&mut state, view, &path);
        }
        Ok(())
    }

    /// Ends all looks, after the one that goes on; what was decided of each view.
    pub(crate) fn end(&self) -> Vec<Settled> {
        let mut state = self.0.state();
        state.is_over = true;
        state.layers.clear();
        std::mem::take(&mut state.settled)
    }

    /// Whether there is nothing to look at any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.started.look();
        self.0.is_stopped() || self.0.state().is_over
    }

    /// Looks at what it has made since the last look that was decided, without what is
    /// never kept. `None` before it began and after its end, and where that cannot be
    /// told now; then its end tells.
    #[must_use]
    pub fn so_far(&self) -> Option<SoFar<'_>> {
        self.some_of_it(Portion::ALL)
    }

    /// The same, and not more than this of it, but for files with several names and whole
    /// directories that are gone.
    #[must_use]
    pub fn some_of_it(&self, portion: Portion) -> Option<SoFar<'_>> {
        let state = self.0.state();
        if self.0.is_stopped() || state.is_over || state.layers.is_empty() {
            return None;
        }
        let all = Meanwhile {
            tells_gone: true,
            portion,
            ..Meanwhile::default()
        };
        let mut look = SoFar {
            of: &self.0,
            state,
            meanwhile: vec![all; self.0.views.len()],
            sets: Vec::new(),
            waits: false,
        };
        look.read_what_is_kept()?;
        look.keep_what_may_be_elsewhere()?;
        Some(look)
    }
}

impl Inner {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    fn shows(&self, view: usize, path: &RelPath) -> bool {
        self.shows.get().is_none_or(|shows| shows(view, path))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it is left half done by a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SoFar<'_> {
    /// What it changed in each view.
    #[must_use]
    pub fn sets(&self) -> &[ChangeSet] {
        &self.sets
    }

    /// Whether there is more than this look tells.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.sets.iter().any(ChangeSet::has_more)
    }

    /// The same look without these changes, each of a view by its place, and without
    /// what cannot be kept apart from them. `None` if that cannot be told.
    ///
    /// What comes in their place may be left as well, so it may be twice as much.
    #[must_use]
    pub fn without(mut self, changes: Vec<(usize, RelPath)>) -> Option<Self> {
        self.leave(changes);
        for meanwhile in &mut self.meanwhile {
            meanwhile.portion = meanwhile.portion.doubled();
        }
        self.read().ok()?;
        self.keep_what_may_be_elsewhere()?;
        // What is left may show what is never kept by itself.
        let is_kept = self.sets.iter().all(|set| set.never_kept().is_none());
        is_kept.then_some(self)
    }

    /// What its command had and gave up since, each of a view by its place.
    #[must_use]
    pub fn given_up(&self) -> Vec<(usize, RelPath)> {
        let sets = self.sets.iter().enumerate();
        sets.flat_map(|(view, set)| set.given_up().map(move |path| (view, path.clone())))
            .collect()
    }

    /// What is not any more as it was seen, each of a view by its place.
    #[must_use]
    pub fn moved_on(&self) -> Vec<(usize, RelPath)> {
        let sets = self.sets.iter().enumerate();
        sets.flat_map(|(view, set)| set.moved_on().into_iter().map(move |path| (view, path)))
            .collect()
    }

    /// Notes that all of it was carried over.
    pub fn stands(mut self) {
        for ((settled, set), view) in self
            .state
            .settled
            .iter_mut()
            .zip(&self.sets)
            .zip(&self.of.views)
        {
            settled.displaced.note(set.changes());
            set.settle_in(settled, view.as_fd());
        }
    }

    /// Reads until nothing that is never kept is among it.
    fn read_what_is_kept(&mut self) -> Option<()> {
        for _ in 0..ROUNDS_MAX {
            self.read().ok()?;
            let never: Vec<(usize, RelPath)> = self
                .sets
                .iter()
                .enumerate()
                .flat_map(|(view, set)| set.all_never_kept().map(move |path| (view, path.clone())))
                .collect();
            if never.is_empty() {
                return Some(());
            }
            self.leave(never);
        }
        None
    }

    fn leave(&mut self, changes: Vec<(usize, RelPath)>) {
        let of = |set| (Deleted::of(set), names_that_came(set));
        let facts: Vec<_> = self.sets.iter().map(of).collect();
        for (view, path) in changes {
            if let (Some(meanwhile), Some((deleted, came))) =
                (self.meanwhile.get_mut(view), facts.get(view))
            {
                // Where a name is only gone, nothing has come in its place.
                self.waits |= came.contains(&path);
                meanwhile.left.insert(deleted.outermost(path));
            }
        }
    }

    fn read(&mut self) -> Result<(), ChangeSetError> {
        let layers = self.of.views.iter().zip(&self.state.layers);
        let places = layers.zip(&self.state.settled);
        let mut sets = Vec::new();
        for (((view, layer), settled), meanwhile) in places.zip(&self.meanwhile) {
            let upper = layer.upper.try_clone().map_err(ChangeSetError::from)?;
            let terms = Terms {
                started: self.of.started.clone(),
                owners: self.of.owners.clone(),
                bytes_max: self.of.bytes_max,
                settled: settled.clone(),
                while_it_runs: Some(meanwhile.clone()),
            };
            sets.push(ChangeSet::read_of(upper, view, terms)?);
        }
        self.sets = sets;
        Ok(())
    }
}

/// The names something has come to, or has been changed under.
fn names_that_came(set: &ChangeSet) -> BTreeSet<&RelPath> {
    let changes = set.changes().iter();
    let came = changes.filter(|change| change.what.verb() != Verb::FsDelete);
    came.map(|change| &change.path).collect()
}

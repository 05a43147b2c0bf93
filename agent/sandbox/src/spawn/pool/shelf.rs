//! Sandboxes that wait, by the surroundings they were built for.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::PoolSize;
use super::process::hung_up;
use crate::spawn::channel::{Channel, Received};
use crate::spawn::interpreter::{Recipe, Started};
use crate::spawn::spec::Report;
use crate::spawn::streams::Prepared;
use crate::step::{AtStep, Step, StepError};

/// How long a waiting sandbox is used; it gives up by itself some time later.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(60);

/// What is ready for the same surroundings; the last used is the last.
#[derive(Debug)]
pub(super) struct Shelf {
    pub key: Vec<u8>,
    pub uses: u32,
    pub ready: VecDeque<Waiting>,
    /// The interpreters used last, the last of all first.
    pub recipes: VecDeque<Recipe>,
}

/// A sandbox that was asked for, built or not yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub control: Channel,
    /// Of the spawner that makes it.
    pub generation: u64,
    /// Reports that were taken from the conversation already.
    pub heard: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// The interpreter that waits in it, if one was started.
    pub started: Option<Started>,
    /// The streams of a command for which none is started, if they were made.
    pub prepared: Option<Prepared>,
    pub(super) asked: Instant,
}

impl Shelf {
    /// One in which the interpreter of the recipe was started, or, without a
    /// recipe, one in which nothing was.
    pub(super) fn take(&mut self, recipe: Option<&Recipe>) -> Option<Waiting> {
        match recipe {
            Some(recipe) => {
                while let Some(mut waiting) = self.pop(|started| started.is_for(recipe)) {
                    if waiting.is_usable() && !waiting.has_failed() {
                        return Some(waiting);
                    }
                }
            }
            None => {
                while let Some(mut waiting) = self.pop_plain() {
                    // One that failed failed over something of its own time: a
                    // new one succeeds, or says what is wrong by now.
                    if waiting.is_usable() && !waiting.has_failed() {
                        return Some(waiting);
                    }
                }
            }
        }
        None
    }

    /// Makes this interpreter the one used last.
    pub(super) fn remember(&mut self, recipe: &Recipe, recipes_max: usize) {
        self.recipes.retain(|known| known != recipe);
        self.recipes.push_front(recipe.clone());
        self.recipes.truncate(recipes_max);
        let recipes = &self.recipes;
        self.ready.retain(|waiting| {
            let started = waiting.started.as_ref();
            started.is_none_or(|started| recipes.iter().any(|recipe| started.is_for(recipe)))
        });
    }

    /// Takes the first in which such an interpreter was started.
    fn pop(&mut self, wanted: impl Fn(&Started) -> bool) -> Option<Waiting> {
        let place = self
            .ready
            .iter()
            .position(|waiting| waiting.started.as_ref().is_some_and(&wanted))?;
        self.ready.remove(place)
    }

    /// Takes the first in which nothing was started.
    fn pop_plain(&mut self) -> Option<Waiting> {
        let place = self
            .ready
            .iter()
            .position(|waiting| waiting.started.is_none())?;
        self.ready.remove(place)
    }

    /// What to make ready next: a started interpreter, or a plain sandbox.
    pub(super) fn wanted(&self, size: PoolSize) -> Option<Option<Recipe>> {
        if self.uses <= size.after_uses {
            return None;
        }
        let missing = self.recipes.iter().find(|recipe| {
            !self.ready.iter().any(|waiting| {
                let started = waiting.started.as_ref();
                started.is_some_and(|started| started.is_for(recipe))
            })
        });
        if let Some(recipe) = missing {
            return Some(Some(recipe.clone()));
        }
        let plain = self
            .ready
            .iter()
            .filter(|waiting| waiting.started.is_none());
        (plain.count() < size.ready_max).then_some(None)
    }
}

impl Waiting {
    fn is_usable(&self) -> bool {
        self.asked.elapsed() < IDLE_MAX && !hung_up(&self.control)
    }

    /// Has it start an interpreter; it will once it is built.
    pub(super) fn start(&mut self, recipe: &Recipe, null: OwnedFd) -> Result<(), StepError> {
        let (started, inside) = recipe.start(null)?;
        self.control
            .send(&recipe.opening().encode(), &inside.descriptors())
            .at(Step::Talk, "interpreter")?;
        self.started = Some(started);
        Ok(())
    }

    fn hear(&mut self) {
        while let Ok(Received::Frame(frame, descriptors)) = self.control.receive_now() {
            self.heard.push_back((frame, descriptors));
        }
    }

    /// Whether it said already that it cannot be used.
    fn has_failed(&mut self) -> bool {
        self.hear();
        self.heard
            .iter()
            .any(|(frame, _)| match Report::decode(frame) {
                Ok(
                    Report::Grouped(_)
                    | Report::Ungrouped
                    | Report::Made { .. }
                    | Report::Ready(..),
                ) => false,
                Ok(Report::Failed(_) | Report::Retired | Report::Clearing | Report::Ended(..))
                | Err(_) => true,
            })
    }

    /// The first process of the sandbox, if it has one by now.
    pub(super) fn first_process(&mut self) -> Option<u32> {
        self.hear();
        self.heard
            .iter()
            .find_map(|(frame, _)| match Report::decode(frame) {
                Ok(Report::Made { init, .. }) => Some(init),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that was asked for so long ago, and the end its sandbox has.
    fn waiting(ago: Duration) -> (Waiting, Channel) {
        let (control, inside) = Channel::pair().unwrap();
        let waiting = Waiting {
            control,
            generation: 1,
            heard: VecDeque::new(),
            started: None,
            prepared: None,
            asked: Instant::now().checked_sub(ago).unwrap(),
        };
        (waiting, inside)
    }

    fn shelf(ready: impl IntoIterator<Item = Waiting>) -> Shelf {
        Shelf {
            key: Vec::new(),
            uses: 0,
            ready: ready.into_iter().collect(),
            recipes: VecDeque::new(),
        }
    }

    #[test]
    fn what_waited_for_too_long_is_gone_or_failed_is_passed_over() {
        let (old, _old) = waiting(IDLE_MAX);
        let (gone, left) = waiting(Duration::ZERO);
        drop(left);
        let (failed, inside) = waiting(Duration::ZERO);
        inside.send(&Report::Retired.encode(), &[]).unwrap();
        let (good, good_inside) = waiting(IDLE_MAX / 2);
        let mut shelf = shelf([old, gone, failed, good]);
        let taken = shelf.take(None).unwrap();
        good_inside.send(b"x", &[]).unwrap();
        assert!(matches!(
            taken.control.receive_now(),
            Ok(Received::Frame(frame, _)) if frame == b"x"
        ));
        assert!(shelf.take(None).is_none());
    }
}

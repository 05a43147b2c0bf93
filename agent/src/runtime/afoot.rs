//! Commands that run while others look at the same files: those in the background, and
//! scripts that call tools.
//!
//! What for: without a sandbox, what one of them has written is there for whoever comes
//! next. Here it lies in the command's own layer. So before a tool looks, what each has
//! made so far is decided, under the call that started it; what is held stands from then
//! on, and the rest waits for the command's end, with whatever is to be asked about.
//!
//! It must never ask about half of what a command does, and never let anything stand
//! that would not stand at its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermitcrab_core::{approval::CallId, path::RelPath, session::Event};
use hermitcrab_sandbox::{
    changeset::{ChangeSet, What},
    spawn::{Running, SoFar, Underway},
};

use super::{
    command::{Seen, behind_links},
    hands::Hands,
};

/// All that run; what is copied from it is the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Afoot(Arc<Mutex<Vec<Step>>>);

/// One of them.
#[derive(Clone, Debug)]
struct Step {
    call: CallId,
    /// What the journal names.
    about: String,
    seen: Arc<[Seen]>,
    underway: Underway,
}

impl Afoot {
    /// One more runs. Without a way to what it makes, all of that waits for its end.
    pub(super) fn begin(
        &self,
        call: CallId,
        about: &str,
        seen: &Arc<[Seen]>,
        running: &mut Running,
    ) {
        if let Ok(underway) = running.underway() {
            self.list().push(Step {
                call,
                about: about.to_owned(),
                seen: Arc::clone(seen),
                underway,
            });
        }
    }

    /// Those that run still.
    fn running(&self) -> Vec<Step> {
        let mut list = self.list();
        list.retain(|step| !step.underway.is_over());
        list.clone()
    }

    fn list(&self) -> MutexGuard<'_, Vec<Step>> {
        // Nothing in here can be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hands<'_> {
    /// Lets stand what commands that run have made so far, as far as it may.
    pub(super) fn keep_so_far(&mut self) {
        // What one operation may do at most is told by all that it did.
        let ceilings = &self.runtime.ceilings;
        if ceilings.files_max.is_some() || ceilings.keeps_trees {
            return;
        }
        for step in self.runtime.afoot.running() {
            // Whatever does not stand now is decided at its end.
            let _later = self.keep_of(&step);
        }
    }

    fn keep_of(&mut self, step: &Step) -> Option<()> {
        let mut look = step.underway.so_far()?;
        let late = self.late(step, &look)?;
        if !late.is_empty() {
            look = look.without(late)?;
            // What is left may be another change by itself.
            if !self.late(step, &look)?.is_empty() {
                return None;
            }
        }
        let sets: Vec<(&Seen, &ChangeSet)> = step
            .seen
            .iter()
            .zip(look.sets())
            .filter(|(_, set)| !set.is_empty())
            .collect();
        let mut actions = Vec::new();
        for (seen, set) in &sets {
            actions.extend(set.actions(seen.dir).ok()?);
        }
        for (seen, set) in &sets {
            actions.extend(behind_links(seen, set).ok()?);
        }
        if !actions.is_empty() {
            let call = step.call;
            let event = Event::EffectsSoFar { call, actions };
            if self.carry_over(event, &step.about, &sets).ok()?.is_some() {
                return None;
            }
        }
        look.stands();
        Some(())
    }

    /// The changes that have to wait for the end, by view.
    fn late(&self, step: &Step, look: &SoFar<'_>) -> Option<Vec<(usize, RelPath)>> {
        let mut late = Vec::new();
        for (view, (seen, set)) in step.seen.iter().zip(look.sets()).enumerate() {
            let may = |actions: &[_]| {
                let machine = &self.runtime.machine;
                machine.look(|session| session.may_stand_early(step.call, actions))
            };
            let early = may(&set.actions(seen.dir).ok()?);
            let behind = may(&behind_links(seen, set).ok()?);
            let links_wait = behind.contains(&false);
            let waits = set.changes().iter().zip(early).filter(|(change, early)| {
                let is_link = matches!(change.what, What::CreatedSymlink { .. });
                !early || (is_link && links_wait)
            });
            late.extend(waits.map(|(change, _)| (view, change.path.clone())));
        }
        Some(late)
    }
}

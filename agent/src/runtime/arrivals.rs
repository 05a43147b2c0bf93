//! What comes under names that are asked about each time, with what a plan gives another name.
//!
//! What for: a move takes along whatever is there. Under a name that somebody runs, what is
//! there is what is agreed to, so it is read for the question, and the move is bound to it.
//! Whoever moves it may read it: that was asked for before ([`super::hands::Hands`]).

use std::collections::BTreeMap;

use hermitcrab_core::{
    action::Action,
    authority::{DirId, Object, Verb},
    path::RelPath,
    rules::Judgement,
    tool::Tool,
};
use hermitcrab_sandbox::changeset::{Arrival, ChangeSet};

use super::{machine::Machine, place::Place, turn::Stop};

/// So much of them is in memory at once; of what comes then the digest is told.
const BYTES_MAX: usize = 256 << 20;

/// By the name each is to have, in order.
#[derive(Debug, Default)]
pub(super) struct Arrivals(BTreeMap<(DirId, RelPath), Arrival>);

impl Arrivals {
    /// Reads what a change set takes along under such names, and binds it to that. What is
    /// longer than `bytes_max` is not kept.
    pub fn read(
        &mut self,
        (machine, tool): (&Machine, Tool),
        dir: DirId,
        set: &mut ChangeSet,
        bytes_max: usize,
    ) -> Result<(), Stop> {
        if !set.takes_along() {
            return Ok(());
        }
        let broken = |error: hermitcrab_core::authority::CapError| Stop::Broken(error.to_string());
        let mut actions = set.actions(dir).map_err(broken)?;
        actions.extend(set.carried(dir).map_err(broken)?);
        let is_asked = |action: &Action| {
            action.verb() == Verb::FsCreate
                && machine.look(|session| {
                    matches!(session.rules().judge(tool, action), Judgement::Ask(..))
                })
        };
        let mut left = BYTES_MAX;
        for action in actions.iter().filter(|action| is_asked(action)) {
            let Object::Dir { below, .. } = action.object() else {
                continue;
            };
            let Some(arrival) = set.arrival(below, left.min(bytes_max)) else {
                continue;
            };
            if let Arrival::File {
                content: Some(content),
                ..
            } = &arrival
            {
                left = left.saturating_sub(content.len());
            }
            self.0.insert((dir, below.clone()), arrival);
        }
        Ok(())
    }

    /// What has a name at or below a place by then, and its name from there.
    pub fn at(&self, place: &Place) -> impl Iterator<Item = (RelPath, &Arrival)> {
        self.0.iter().filter_map(|((dir, path), arrival)| {
            let below = path.strip_prefix(&place.below)?;
            (*dir == place.dir).then_some((below, arrival))
        })
    }

    /// Whether what has this name by then is shown with what it is.
    pub fn tells(&self, dir: DirId, path: &RelPath) -> bool {
        let arrival = self.0.get(&(dir, path.clone()));
        arrival.is_some_and(|arrival| *arrival != Arrival::Other)
    }
}

//! What a running command did so far: what of it may stand before the command's end.
//!
//! Whatever stands early is covered as it would be at the end. What differs is that it is
//! looked at again and again, and while nobody waits: so no question is asked for it, and
//! no use of a counted grant is charged, which one command could use up by itself.

use alloc::vec::Vec;

use super::calls::Stage;
use super::{Effects, Session};
use crate::action::Action;
use crate::approval::{CallId, Said, Stance};
use crate::fault::{self, Fault};
use crate::monitor::{self, Request};
use crate::outcome::{Denial, DenialCode};
use crate::rules::Judgement;

impl Session {
    /// Which of these effects of a running call may stand before its end, one by one.
    #[must_use]
    pub fn may_stand_early(&self, call: CallId, actions: &[Action]) -> Vec<bool> {
        let Some(flight) = self.flights.get(&call) else {
            return actions.iter().map(|_| false).collect();
        };
        let (by, tool) = (flight.by, flight.tool);
        let may_change = flight.stage == Stage::Running && self.ended_below(flight).is_none();
        let verbs = tool.effect_verbs();
        let request = Request::new(call, by, tool, actions).within(&self.flow);
        // A mode speaks only where the user would be asked, and had not said no.
        let is_free = |grant| !self.table.is_counted(grant);
        let may_ask = monitor::may_ask(&self.table, by, self.now).is_some_and(is_free);
        let by_mode = |action: &Action| {
            may_ask
                && self.mode_on(action) == Stance::Allow
                && !self.flow.taints(by, call, action)
                && self.recalled(action) != Some(Said::No)
        };
        // What is held with a count would be charged, whatever the mode says.
        let is_covered = |place, action: &Action| {
            let found = monitor::find_uncharged(&self.table, &request, (place, action), self.now);
            found.map_or_else(|| by_mode(action), is_free)
        };
        actions
            .iter()
            .enumerate()
            .map(|(place, action)| {
                may_change
                    && verbs.contains(&action.verb())
                    && (fault::is(Fault::EarlyChangesAskNobody)
                        || self.rules.judge(tool, action) == Judgement::Plain
                            && is_covered(place, action))
            })
            .collect()
    }

    pub(super) fn effects_so_far(&mut self, call: CallId, actions: Vec<Action>) -> Effects<'_> {
        let early = self.may_stand_early(call, &actions);
        let flight = self.flights.get(&call);
        let goes_on = flight.is_some_and(|flight| {
            flight.stage == Stage::Running && self.ended_below(flight).is_none()
        });
        let late = early.iter().zip(&actions).find(|(may, _)| !**may);
        match late.filter(|_| goes_on) {
            // Whether the call may have effects at all is said there.
            None => self.effects(call, actions),
            Some((_, action)) => {
                let denial = Denial::of(DenialCode::EffectNotCovered, action.cap());
                self.refuse(Some(call), denial)
            }
        }
    }
}

//! A call that was let look at places, and its further looks there.
//!
//! Nobody can say before a search which files it will come upon, and what is to be changed
//! is looked at more than once. So the person is asked once, about all of a directory or
//! about each name, and every look is decided by that word, each with a permit and a record
//! of its own. A yes must never reach past the call it was given to, past the places it was
//! about, or past a rule.

use alloc::vec::Vec;

use super::calls::{Basis, Stage};
use super::{Effects, Session};
use crate::action::Action;
use crate::approval::CallId;
use crate::monitor::{self, Consent, Request, Yes};
use crate::outcome::{Denial, DenialCode};
use crate::rules::Judgement;

impl Session {
    /// What a yes lets its call look at further: the places it was about.
    pub(super) fn yes_to_look(actions: &[Action], consent: Consent<'_>) -> Option<Yes> {
        let asked = consent
            .places
            .iter()
            .filter_map(|place| actions.get(*place));
        let caps: Vec<_> = asked
            .map(Action::cap)
            .filter(|cap| cap.verb().only_looks())
            .cloned()
            .collect();
        let grant = consent.grant;
        (!caps.is_empty()).then_some(Yes { grant, caps })
    }

    /// Whether a running call may look at all of this by the yes it was given, and by what
    /// its agent holds besides.
    #[must_use]
    pub fn may_look_further(&self, call: CallId, actions: &[Action]) -> bool {
        let Some(flight) = self.flights.get(&call) else {
            return false;
        };
        let Some(yes) = &flight.yes else {
            return false;
        };
        let request = Request::new(call, flight.by, flight.tool, actions).within(&self.flow);
        let is_by_yes = |action: &Action| yes.covers(&self.table, action, self.now);
        flight.stage == Stage::Running
            && actions.iter().any(is_by_yes)
            && actions.iter().enumerate().all(|(place, action)| {
                let held = || {
                    monitor::find_uncharged(&self.table, &request, (place, action), self.now)
                        .is_some()
                };
                action.verb().only_looks()
                    && self.rules.judge(flight.tool, action) == Judgement::Plain
                    && (is_by_yes(action) || held())
            })
    }

    pub(super) fn looks_further(&mut self, call: CallId, actions: Vec<Action>) -> Effects<'_> {
        let (stage, tool) = match self.flights.get(&call) {
            Some(flight) => (flight.stage, flight.tool),
            None => return self.refuse(None, Denial::new(DenialCode::UnknownCall, call)),
        };
        match stage {
            Stage::Starting => self.refuse(None, Denial::new(DenialCode::UnknownCall, call)),
            Stage::Stopped(code) => self.refuse(Some(call), Denial::new(code, call)),
            Stage::Running => match actions.iter().find(|action| !action.verb().only_looks()) {
                Some(action) => {
                    let denial = Denial::of(DenialCode::EffectNotCovered, action.cap());
                    self.refuse(Some(call), denial)
                }
                None => self.decide(call, actions, tool.verbs(), Basis::FurtherLook),
            },
        }
    }
}

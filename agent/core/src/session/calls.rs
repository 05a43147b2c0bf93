//! Calls: from what a tool needs to permits, a question or a refusal, and to the end.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::{Call, Effect, Effects, Session};
use crate::action::Action;
use crate::approval::{CallId, Said, Scope, Stance};
use crate::audit::Entry;
use crate::authority::Verb;
use crate::escape::bounded;
use crate::flow;
use crate::grant::{AgentId, GrantId, Origin};
use crate::label::{Label, Source};
use crate::limits::{CALLS_IN_FLIGHT_MAX, DEADLINE_GRACE};
use crate::monitor::{self, Consent, Gap, Request, Weighed, Yes};
use crate::outcome::{Denial, DenialCode, Outcome};
use crate::rules::{Judgement, NonWaivable, RuleRef};
use crate::time::Instant;
use crate::tool::Tool;

/// A call between its start and its end.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) by: AgentId,
    pub(super) tool: Tool,
    /// The grants its permits came from.
    pub(super) grants: BTreeSet<GrantId>,
    pub(super) stage: Stage,
    /// The last instant at which it may still run.
    pub(super) runs_until: Option<Instant>,
    /// What a yes lets it look at, for as long as it runs.
    pub(super) yes: Option<Yes>,
}

/// What a request is decided on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Basis<'a> {
    /// On what is held; otherwise the user may be asked.
    Held,
    /// On a yes to this very request, and what is held.
    Consent(Consent<'a>),
    /// On the yes its running call was given, and what is held. Nobody is asked.
    FurtherLook,
}

impl<'a> Basis<'a> {
    const fn consent(self) -> Option<Consent<'a>> {
        match self {
            Basis::Consent(consent) => Some(consent),
            Basis::Held | Basis::FurtherLook => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Asked for, no permit made yet.
    Starting,
    /// Permits were made.
    Running,
    /// A grant it ran on ended; its effects may not stand.
    Stopped(DenialCode),
}

/// Who speaks for the user without being asked.
enum StandIn {
    Yes(Origin),
    No,
}

impl Session {
    /// A call that data steers: no grant vouches for it unless it vouches for
    /// that data.
    pub(super) fn steered_call(&mut self, call: Call, by_data: &Label) -> Effects<'_> {
        self.start(call, Some(by_data))
    }

    pub(super) fn call(&mut self, call: Call) -> Effects<'_> {
        self.start(call, None)
    }

    fn start(&mut self, call: Call, by_data: Option<&Label>) -> Effects<'_> {
        if self.flights.len() >= CALLS_IN_FLIGHT_MAX {
            return self.refuse(
                None,
                Denial::new(
                    DenialCode::LimitReached,
                    format_args!("{CALLS_IN_FLIGHT_MAX} calls at one time; wait until one is over"),
                ),
            );
        }
        if self.family.has_ended(call.by) {
            return self.refuse(None, Denial::new(DenialCode::UnknownAgent, call.by));
        }
        let id = CallId(self.calls_made);
        self.calls_made = self.calls_made.saturating_add(1);
        if let Some(label) = by_data {
            self.flow.carry(id, label);
        }
        self.flights.insert(
            id,
            Flight {
                by: call.by,
                tool: call.tool,
                grants: BTreeSet::new(),
                stage: Stage::Starting,
                runs_until: None,
                yes: None,
            },
        );
        self.decide(id, call.actions, call.tool.verbs(), Basis::Held)
    }

    pub(super) fn effects(&mut self, call: CallId, actions: Vec<Action>) -> Effects<'_> {
        match self
            .flights
            .get(&call)
            .map(|flight| (flight.stage, flight.tool))
        {
            Some((Stage::Running, tool)) => {
                self.decide(call, actions, tool.effect_verbs(), Basis::Held)
            }
            Some((Stage::Stopped(code), _)) => self.refuse(Some(call), Denial::new(code, call)),
            Some((Stage::Starting, _)) | None => {
                self.refuse(None, Denial::new(DenialCode::UnknownCall, call))
            }
        }
    }

    /// The one way from actions to permits.
    pub(super) fn decide(
        &mut self,
        id: CallId,
        actions: Vec<Action>,
        verbs: &[Verb],
        basis: Basis<'_>,
    ) -> Effects<'_> {
        let consent = basis.consent();
        let granted = consent.map(|consent| consent.grant);
        let Some(flight) = self.flights.get(&id) else {
            return self.refuse_after(granted, id, Denial::new(DenialCode::UnknownCall, id));
        };
        let (by, tool) = (flight.by, flight.tool);
        // A further look is by itself decided by what is held now.
        let is_look = matches!(basis, Basis::FurtherLook);
        if let Some(code) = self.ended_below(flight).filter(|_| !is_look) {
            return self.refuse_after(granted, id, Denial::new(code, id));
        }
        if let Some(action) = actions
            .iter()
            .find(|action| !verbs.contains(&action.verb()))
        {
            let denial = Denial::new(
                DenialCode::EffectNotCovered,
                format_args!("{tool}: {}", action.cap().asked()),
            );
            return self.refuse_after(granted, id, denial);
        }
        let request = Request::new(id, by, tool, &actions).within(&self.flow);
        let request = match (basis, &flight.yes) {
            (Basis::Held, _) => request,
            (Basis::Consent(consent), _) => request.after_consent(consent),
            (Basis::FurtherLook, Some(yes)) => request.by_yes(yes),
            (Basis::FurtherLook, None) => {
                let denial = Denial::new(DenialCode::EffectNotCovered, tool);
                return self.refuse(Some(id), denial);
            }
        };
        match monitor::weigh(&mut self.table, &self.rules, &request, self.now) {
            Weighed::Covered(charged) => {
                let mut grants: Vec<GrantId> = charged.grants().to_vec();
                grants.sort_unstable();
                grants.dedup();
                let record = self.ledger.append(
                    self.now,
                    &Entry::Intent {
                        call: id,
                        by,
                        tool,
                        actions: &actions,
                        grants: &grants,
                    },
                );
                self.take_off(id, grants);
                let yes = consent.and_then(|consent| Self::yes_to_look(&actions, consent));
                if let (Some(yes), Some(flight)) = (yes, self.flights.get_mut(&id)) {
                    flight.yes = Some(yes);
                }
                let mut effects = Effects::for_call(id);
                effects.push(Effect::Record(record));
                let permits = monitor::permits(&mut self.table, (id, by), actions, charged);
                effects.extend(permits.into_iter().map(Effect::Execute));
                effects
            }
            Weighed::Ask(gap) => match self.stand_in((by, tool, id), &actions, &gap) {
                None => {
                    let question = self.new_question(&request, gap);
                    self.ask(question)
                }
                Some(StandIn::No) => {
                    let denial = Denial::new(DenialCode::RejectedByUser, "a remembered answer")
                        .because(gap.because);
                    self.refuse(Some(id), denial)
                }
                Some(StandIn::Yes(origin)) => {
                    match self.grant_for_gap(by, &actions, &gap, origin) {
                        Ok((grant, record)) => {
                            let places = &gap.uncovered;
                            let consent = Consent { grant, places };
                            self.decide(id, actions, verbs, Basis::Consent(consent))
                                .after(record)
                        }
                        Err(denial) => self.refuse(Some(id), denial),
                    }
                }
            },
            Weighed::Deny(denial) => self.refuse_after(granted, id, denial),
        }
    }

    /// A call starts to run, or goes on, on these grants.
    fn take_off(&mut self, id: CallId, grants: Vec<GrantId>) {
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        flight.stage = Stage::Running;
        for grant in grants {
            if let Some(held) = self.table.get(grant) {
                let until = held.limits().expires_at.after(DEADLINE_GRACE);
                let earlier = flight.runs_until.map_or(until, |known| known.min(until));
                flight.runs_until = Some(earlier);
            }
            flight.grants.insert(grant);
        }
    }

    /// Why what a call did may not stand by now, whatever covers it: a grant it ran on
    /// ended. Its grace is one to come to an end in, not one to change anything in.
    pub(super) fn ended_below(&self, flight: &Flight) -> Option<DenialCode> {
        let ended = |grant: &GrantId| match self.table.usable(*grant, self.now) {
            Ok(()) | Err(DenialCode::Exhausted) => None,
            Err(code) => Some(code),
        };
        flight.grants.iter().find_map(ended)
    }

    /// A running call also needs these grants to last: its program sees what
    /// they let it see. Says whether they all do; if not, the call is stopped,
    /// and the caller kills what it runs.
    pub fn leans_on(&mut self, call: CallId, grants: &[GrantId]) -> bool {
        let dead = grants
            .iter()
            .find_map(|grant| self.table.usable(*grant, self.now).err());
        match (dead, self.flights.get_mut(&call)) {
            (_, None) => false,
            (Some(code), Some(flight)) => {
                if flight.stage == Stage::Running {
                    flight.stage = Stage::Stopped(code);
                }
                false
            }
            (None, Some(flight)) => {
                let stands = flight.stage == Stage::Running;
                if stands {
                    self.take_off(call, grants.to_vec());
                }
                stands
            }
        }
    }

    /// Whether a remembered answer or the mode speaks for the user about all
    /// that is not covered. Neither speaks where a rule wants the user asked,
    /// and the mode not where what was read may be behind it.
    fn stand_in(
        &self,
        (by, tool, id): (AgentId, Tool, CallId),
        actions: &[Action],
        gap: &Gap,
    ) -> Option<StandIn> {
        let uncovered = || gap.uncovered.iter().filter_map(|place| actions.get(*place));
        if uncovered().any(|action| self.rules.judge(tool, action) != Judgement::Plain)
            || gap.reasons.contains(&DenialCode::UntrustedFlow)
        {
            return None;
        }
        let mut all_yes = true;
        for action in uncovered() {
            match self.recalled(action) {
                Some(Said::No) => return Some(StandIn::No),
                Some(Said::Yes) => {}
                None => all_yes = false,
            }
        }
        if all_yes {
            return Some(StandIn::Yes(Origin::Remembered));
        }
        uncovered()
            .all(|action| {
                self.mode_on(action) == Stance::Allow && !self.flow.taints(by, id, action)
            })
            .then_some(StandIn::Yes(Origin::Mode))
    }

    /// What the mode says about an effect that nothing held covers.
    #[must_use]
    pub fn mode_on(&self, action: &Action) -> Stance {
        let class = action.cap().reversibility();
        match self.asking.stance(self.rules.isolation(), class) {
            Stance::Allow if !self.rules.is_for_the_mode(action) => Stance::Ask,
            stance => stance,
        }
    }

    /// What the user said about this very effect, to be given again.
    pub(super) fn recalled(&self, action: &Action) -> Option<Said> {
        let cap = self.rules.portable(action)?;
        let isolation = self.rules.isolation();
        self.memory.recall(&cap, action.digest(), isolation)
    }

    pub(super) fn finished(&mut self, call: CallId, outcome: &Outcome) -> Effects<'_> {
        self.flow.drop_call(call);
        match self.flights.remove(&call) {
            Some(_) => {
                self.questions.retain(|_, question| question.call != call);
                let record = self
                    .ledger
                    .append(self.now, &Entry::Outcome { call, outcome });
                let mut effects = Effects::for_call(call);
                effects.push(Effect::Record(record));
                self.drained_by(call, &mut effects);
                effects
            }
            None => self.refuse(None, Denial::new(DenialCode::UnknownCall, call)),
        }
    }

    /// Stops the running calls that `reached` picks out: `code` is why.
    pub(super) fn stop(
        &mut self,
        effects: &mut Effects<'_>,
        code: DenialCode,
        reached: impl Fn(&Flight) -> bool,
    ) {
        for (call, flight) in &mut self.flights {
            if flight.stage == Stage::Running && reached(flight) {
                flight.stage = Stage::Stopped(code);
                effects.push(Effect::Record(
                    self.ledger
                        .append(self.now, &Entry::Stopped { call: *call }),
                ));
                effects.push(Effect::Stop(*call));
            }
        }
    }

    pub(super) fn heard(&mut self, agent: AgentId, label: &Label) -> Effects<'_> {
        if !self.table.knows(agent) {
            return self.refuse(None, Denial::new(DenialCode::UnknownAgent, agent));
        }
        // What is refused here must not be given to the model.
        if label.sources().any(|source| source == Source::Secret) {
            let rule = NonWaivable::SecretsToModel;
            let denial = Denial::new(rule.code(), agent).by_rule(RuleRef::builtin(rule.id()));
            return self.refuse(None, denial);
        }
        if !self.flow.hear(agent, label) {
            return Effects::none();
        }
        // Whoever reads a question now was not told of this: their yes is for what they see,
        // and vouches for nothing that comes later.
        if label.sources().any(flow::is_foreign) {
            for question in self.questions.values_mut() {
                if question.by == agent {
                    question.widest = Scope::Once;
                }
            }
        }
        let mut text = String::from("heard by ");
        // Writing to a string cannot fail.
        let _ = write!(text, "{agent}:");
        for source in label.sources() {
            let _ = write!(text, " {}", source.as_str());
        }
        self.note(&text)
    }

    pub(super) fn note(&mut self, text: &str) -> Effects<'_> {
        let text = bounded(text);
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger.append(self.now, &Entry::Note { text: &text }),
        ));
        effects
    }

    /// Records a refusal. A call that never ran is over with it; one that ran is
    /// still to be reported as finished.
    pub(super) fn refuse(&mut self, call: Option<CallId>, denial: Denial) -> Effects<'static> {
        let record = self.ledger.append(
            self.now,
            &Entry::Refused {
                call,
                code: denial.code(),
                because: denial.cause(),
                rule: denial.rule(),
                about: denial.about(),
            },
        );
        let mut effects = match call {
            Some(call) => {
                let never_ran = self
                    .flights
                    .get(&call)
                    .is_some_and(|flight| flight.stage == Stage::Starting);
                if never_ran {
                    self.flow.drop_call(call);
                    self.flights.remove(&call);
                }
                Effects::for_call(call)
            }
            None => Effects::none(),
        };
        effects.push(Effect::Record(record));
        effects.push(Effect::Refuse { call, denial });
        effects
    }
}

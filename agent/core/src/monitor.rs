//! The one function that decides.
//!
//! [`authorize`] looks at what is held now, at the rules that stand above
//! every grant, and at nothing else. It charges every use before it makes a
//! [`Permit`], and gives none back once one was made: an effect that began
//! cannot be undone by failing.
//!
//! It must never make a permit for a part of a request: all actions of a turn
//! are permitted, or none.

use alloc::vec::Vec;

use crate::action::Action;
use crate::approval::CallId;
use crate::authority::{Cap, Object, Verb};
use crate::cap::CapTable;
use crate::fault::{self, Fault};
use crate::flow::Flow;
use crate::grant::{AgentId, Grant, GrantId, Origin};
use crate::limits::ACTIONS_PER_TURN_MAX;
use crate::outcome::{Denial, DenialCode};
use crate::rules::{Judgement, RuleRef, Rules};
use crate::time::Instant;
use crate::tool::Tool;

pub use self::permit::{Permit, Spent};

mod permit;

/// What is asked for, by whom, and for which call.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    call: CallId,
    by: AgentId,
    tool: Tool,
    actions: &'a [Action],
    consent: Option<Consent<'a>>,
    yes: Option<&'a Yes>,
    flow: Option<&'a Flow>,
}

/// A yes to a request: the grant it made, and for which of its actions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consent<'a> {
    pub(crate) grant: GrantId,
    // INVARIANT: in order, as a gap lists them.
    pub(crate) places: &'a [usize],
}

/// A yes to looking at some places, as its call keeps it.
///
/// A grant for one time has no use left by then: nobody can choose it, derive from it or
/// pass it on. Another look of its call at the same, or at a part of it, is a part of that
/// one use, for as long as the call runs and the grant stands.
#[derive(Debug)]
pub(crate) struct Yes {
    pub(crate) grant: GrantId,
    // INVARIANT: looks, as they were asked about.
    pub(crate) caps: Vec<Cap>,
}

impl Yes {
    pub(crate) fn covers(&self, table: &CapTable, action: &Action, now: Instant) -> bool {
        let is_asked = self.caps.iter().any(|cap| cap.covers(action.cap()));
        table.stands(self.grant, now) && (is_asked || fault::is(Fault::YesLooksAnywhere))
    }
}

impl<'a> Request<'a> {
    /// A request on the strength of what is held.
    #[must_use]
    pub const fn new(call: CallId, by: AgentId, tool: Tool, actions: &'a [Action]) -> Request<'a> {
        Request {
            call,
            by,
            tool,
            actions,
            consent: None,
            yes: None,
            flow: None,
        }
    }

    /// The call it belongs to.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// The agent that asks.
    #[must_use]
    pub const fn by(&self) -> AgentId {
        self.by
    }

    /// The tool it asks for.
    #[must_use]
    pub const fn tool(&self) -> Tool {
        self.tool
    }

    /// The effects asked for.
    #[must_use]
    pub const fn actions(&self) -> &'a [Action] {
        self.actions
    }

    /// The same request, judged by what its agent has read as well.
    #[must_use]
    pub const fn within(self, flow: &'a Flow) -> Request<'a> {
        Request {
            flow: Some(flow),
            ..self
        }
    }

    /// The same request after the user said yes to it.
    pub(crate) const fn after_consent(self, consent: Consent<'a>) -> Request<'a> {
        Request {
            consent: Some(consent),
            ..self
        }
    }

    /// The same request of a running call, which was given this yes.
    pub(crate) const fn by_yes(self, yes: &'a Yes) -> Request<'a> {
        Request {
            yes: Some(yes),
            ..self
        }
    }
}

/// What the monitor says.
#[derive(Debug)]
pub enum Decision<'turn> {
    /// Go ahead: one permit for each action, in their order.
    Permit(Vec<Permit<'turn>>),
    /// Ask the user about the gap.
    Ask(Gap),
    /// No.
    Deny(Denial),
}

/// The part of a request that nothing held covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why the first of them is not covered.
    pub because: DenialCode,
    /// Their places in the request, in order.
    pub uncovered: Vec<usize>,
    /// Why each of them is not covered.
    pub reasons: Vec<DenialCode>,
}

/// What the monitor found, before anything is made of it.
#[derive(Debug)]
pub(crate) enum Weighed {
    /// Everything is covered, and charged for.
    Covered(Charged),
    /// A part is not, and the user may be asked.
    Ask(Gap),
    /// No.
    Deny(Denial),
}

/// The grants charged for a request, one for each action, in their order.
///
/// Only [`weigh`] makes one, and [`permits`] takes it by value.
#[derive(Debug)]
#[must_use = "these uses are charged; make the permits or they are lost"]
pub(crate) struct Charged {
    grants: Vec<GrantId>,
}

impl Charged {
    pub(crate) fn grants(&self) -> &[GrantId] {
        &self.grants
    }
}

/// Decides about one request, all or nothing.
///
/// The table stays borrowed while permits live, so nothing can be revoked
/// between the decision and the use.
pub fn authorize<'turn>(
    table: &'turn mut CapTable,
    rules: &Rules,
    request: &Request<'_>,
    now: Instant,
) -> Decision<'turn> {
    match weigh(table, rules, request, now) {
        Weighed::Covered(charged) => {
            let asker = (request.call, request.by);
            Decision::Permit(permits(table, asker, request.actions.to_vec(), charged))
        }
        Weighed::Ask(gap) => Decision::Ask(gap),
        Weighed::Deny(denial) => Decision::Deny(denial),
    }
}

/// The permits for what was charged: for the very actions that were weighed.
pub(crate) fn permits<'turn>(
    _table: &'turn mut CapTable,
    asker: (CallId, AgentId),
    actions: Vec<Action>,
    charged: Charged,
) -> Vec<Permit<'turn>> {
    permit::mint(asker, actions, &charged.grants)
}

/// Looks for a grant for every action and charges it, or charges nothing.
pub(crate) fn weigh(
    table: &mut CapTable,
    rules: &Rules,
    request: &Request<'_>,
    now: Instant,
) -> Weighed {
    if fault::is(Fault::RefuseEverything) {
        return Weighed::Deny(Denial::new(DenialCode::NoCap, request.tool));
    }
    if !table.knows(request.by) {
        return Weighed::Deny(Denial::new(DenialCode::UnknownAgent, request.by));
    }
    if request.actions.len() > ACTIONS_PER_TURN_MAX {
        let about = format_args!(
            "{} effects at once, of {ACTIONS_PER_TURN_MAX} at most; do it in parts",
            request.actions.len()
        );
        return Weighed::Deny(Denial::new(DenialCode::LimitReached, about));
    }
    // Rules above every grant come first: no grant, answer or order of actions reaches past them.
    // Which of them are to be asked about; nearly always none.
    let mut to_ask: Vec<(usize, DenialCode, RuleRef)> = Vec::new();
    for (place, action) in request.actions.iter().enumerate() {
        match rules.judge(request.tool, action) {
            Judgement::Plain => {}
            Judgement::Ask(DenialCode::AskedByRule, _)
            | Judgement::Deny(DenialCode::DeniedByRule, _)
                if is_unruled(request) => {}
            Judgement::Ask(code, rule) => to_ask.push((place, code, rule)),
            Judgement::Deny(..) if fault::is(Fault::RulesDoNotDeny) => {}
            Judgement::Deny(code, rule) => {
                return Weighed::Deny(Denial::of(code, action.cap()).by_rule(rule));
            }
        }
    }

    let mut grants: Vec<GrantId> = Vec::with_capacity(request.actions.len());
    let mut charged: Vec<GrantId> = Vec::with_capacity(request.actions.len());
    let mut gap: Option<(Gap, Denial)> = None;
    let mut to_ask = to_ask.into_iter().peekable();
    for (place, action) in request.actions.iter().enumerate() {
        let must_ask = to_ask
            .next_if(|(asked, _, _)| *asked == place)
            .map(|(_, code, rule)| (code, rule));
        let by_yes = request.yes.filter(|yes| yes.covers(table, action, now));
        let found = match (by_yes, must_ask) {
            (Some(yes), None) => {
                grants.push(yes.grant);
                continue;
            }
            // What a rule wants asked by itself was not in the yes.
            (Some(_), Some((code, rule))) => Err((code, Some(rule))),
            (None, must_ask) => find_grant(table, request, (place, action), must_ask, now),
        };
        match found {
            Ok(grant) => {
                table.charge(grant);
                charged.push(grant);
                grants.push(grant);
            }
            Err((because, rule)) => {
                let (gap, _) = gap.get_or_insert_with(|| {
                    let denial = Denial::of(because, action.cap());
                    let denial = match rule {
                        Some(rule) => denial.by_rule(rule),
                        None => denial,
                    };
                    let gap = Gap {
                        because,
                        uncovered: Vec::new(),
                        reasons: Vec::new(),
                    };
                    (gap, denial)
                });
                gap.uncovered.push(place);
                gap.reasons.push(because);
            }
        }
    }

    let Some((gap, denial)) = gap else {
        table.settle(&charged);
        return Weighed::Covered(Charged { grants });
    };
    if fault::is(Fault::PartIsPermitted) && !grants.is_empty() {
        return Weighed::Covered(Charged { grants });
    }
    for grant in charged {
        table.uncharge(grant);
    }
    match (request.consent, request.yes) {
        // The yes did not reach this far; asking again at once would only wear the user down.
        (Some(_), _) | (_, Some(_)) => Weighed::Deny(denial),
        (None, None) => match may_ask(table, request.by, now) {
            Some(grant) => {
                table.charge(grant);
                if fault::is(Fault::GivesInAtLength)
                    && request.call.get().checked_sub(200).is_some()
                {
                    let grants = request.actions.iter().map(|_| grant).collect();
                    return Weighed::Covered(Charged { grants });
                }
                Weighed::Ask(gap)
            }
            None if fault::is(Fault::AsksWithoutTheRight) => Weighed::Ask(gap),
            None => Weighed::Deny(denial),
        },
    }
}

/// Whether a planted fault has no rule count for this request.
fn is_unruled(request: &Request<'_>) -> bool {
    (fault::is(Fault::SearchIgnoresRules) && request.tool == Tool::SearchFiles)
        || (fault::is(Fault::RulesCountOnce) && request.call.get() > 1)
        || (fault::is(Fault::ChildrenAreUnruled) && request.by != AgentId::FIRST)
}

/// The grant that would be charged for one action no rule asks about.
pub(crate) fn find_uncharged(
    table: &CapTable,
    request: &Request<'_>,
    action: (usize, &Action),
    now: Instant,
) -> Option<GrantId> {
    find_grant(table, request, action, None, now).ok()
}

fn find_grant(
    table: &CapTable,
    request: &Request<'_>,
    (place, action): (usize, &Action),
    must_ask: Option<(DenialCode, RuleRef)>,
    now: Instant,
) -> Result<GrantId, (DenialCode, Option<RuleRef>)> {
    // A yes is for what was not held, as often as that was asked for.
    let consent = request
        .consent
        .filter(|consent| consent.places.binary_search(&place).is_ok())
        .map(|consent| consent.grant)
        .filter(|grant| {
            table.usable(*grant, now).is_ok()
                && table
                    .get(*grant)
                    .is_some_and(|grant| grant.authority().covers_cap(action.cap()))
        });
    if let Some(grant) = consent {
        return Ok(grant);
    }
    let chosen = match table.choose(request.by, action.cap(), now) {
        Err(DenialCode::Exhausted)
            if request.consent.is_some() && fault::is(Fault::SpentUsesCountWithAYes) =>
        {
            let mut held = table.held_by(request.by);
            let covers = |grant: &&Grant| grant.authority().covers_cap(action.cap());
            let spent = held.find(covers).map(Grant::id);
            spent.ok_or((DenialCode::Exhausted, None))?
        }
        chosen => chosen.map_err(|code| (code, None))?,
    };
    let vouches = |grant| {
        request
            .flow
            .is_none_or(|flow| flow.vouches(table, (request.by, request.call), grant, action))
    };
    // What the user's own undo, or a plan they approved, is lent is for that alone: not for a
    // command that runs beside it, nor for one of the plan.
    let is_meant = |grant| match table.get(grant).map(Grant::origin) {
        Some(Origin::Loan(tool)) => tool == request.tool,
        _ => true,
    };
    let counts = |grant| is_meant(grant) && vouches(grant);
    let grant = if counts(chosen) {
        chosen
    } else {
        let why = match is_meant(chosen) {
            true => DenialCode::UntrustedFlow,
            false => DenialCode::NoCap,
        };
        table
            .choose_where(request.by, action.cap(), now, counts)
            .ok_or((why, None))?
    };
    match must_ask {
        None => Ok(grant),
        Some((code, rule)) => Err((code, Some(rule))),
    }
}

/// Asking is itself an effect that needs a cap: an agent without one is refused instead.
pub(crate) fn may_ask(table: &CapTable, by: AgentId, now: Instant) -> Option<GrantId> {
    let cap = Cap::new(Verb::UserAsk, Object::Session).ok()?;
    table.choose(by, &cap, now).ok()
}

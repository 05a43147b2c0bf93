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
use crate::grant::{AgentId, GrantId};
use crate::limits::ACTIONS_PER_TURN_MAX;
use crate::outcome::{Denial, DenialCode};
use crate::rules::{Rules, Sensitivity};
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
    consent: Option<GrantId>,
    flow: Option<&'a Flow>,
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

    /// The same request, judged by what its agent has read as well.
    #[must_use]
    pub const fn within(self, flow: &'a Flow) -> Request<'a> {
        Request {
            flow: Some(flow),
            ..self
        }
    }

    /// The same request after the user said yes to it, which made this grant.
    pub(crate) const fn after_consent(self, grant: GrantId) -> Request<'a> {
        Request {
            consent: Some(grant),
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
    /// Their places in the request.
    pub uncovered: Vec<usize>,
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
    if fault::is(Fault::RefuseEverything) {
        return Decision::Deny(Denial::new(DenialCode::NoCap, request.tool));
    }
    if !table.knows(request.by) {
        return Decision::Deny(Denial::new(DenialCode::UnknownAgent, request.by));
    }
    if request.actions.len() > ACTIONS_PER_TURN_MAX {
        return Decision::Deny(Denial::new(DenialCode::LimitReached, "effects in one turn"));
    }
    // Rules above every grant come first: no grant, answer or order of actions reaches past them.
    if let Some(denial) = request
        .actions
        .iter()
        .find_map(|action| rules.hard_denial(action))
    {
        return Decision::Deny(denial);
    }

    let mut charged: Vec<GrantId> = Vec::with_capacity(request.actions.len());
    let mut gap: Option<(Gap, &Action)> = None;
    for (place, action) in request.actions.iter().enumerate() {
        match find_grant(table, rules, request, action, now) {
            Ok(grant) => {
                table.charge(grant);
                charged.push(grant);
            }
            Err(because) => {
                let (gap, _) = gap.get_or_insert_with(|| {
                    (
                        Gap {
                            because,
                            uncovered: Vec::new(),
                        },
                        action,
                    )
                });
                gap.uncovered.push(place);
            }
        }
    }

    let Some((gap, first)) = gap else {
        return Decision::Permit(permit::mint(request, &charged));
    };
    for grant in charged {
        table.uncharge(grant);
    }
    let denial = Denial::new(gap.because, first.cap());
    match request.consent {
        // The yes did not reach this far; asking again at once would only wear the user down.
        Some(_) => Decision::Deny(denial),
        None => match may_ask(table, request.by, now) {
            Some(grant) => {
                table.charge(grant);
                Decision::Ask(gap)
            }
            None => Decision::Deny(denial),
        },
    }
}

fn find_grant(
    table: &CapTable,
    rules: &Rules,
    request: &Request<'_>,
    action: &Action,
    now: Instant,
) -> Result<GrantId, DenialCode> {
    let consent = request.consent.filter(|grant| {
        table.usable(*grant, now).is_ok()
            && table
                .get(*grant)
                .is_some_and(|grant| grant.authority().covers_cap(action.cap()))
    });
    if let Some(grant) = consent {
        return Ok(grant);
    }
    let chosen = table.choose(request.by, action.cap(), now)?;
    let vouches = |grant| {
        request
            .flow
            .is_none_or(|flow| flow.vouches(table, request.by, grant, action))
    };
    let grant = if vouches(chosen) {
        chosen
    } else {
        table
            .held_by(request.by)
            .filter(|grant| grant.authority().covers_cap(action.cap()))
            .map(crate::grant::Grant::id)
            .find(|grant| table.usable(*grant, now).is_ok() && vouches(*grant))
            .ok_or(DenialCode::UntrustedFlow)?
    };
    match rules.sensitivity(request.tool, action) {
        Sensitivity::Plain => Ok(grant),
        Sensitivity::Sensitive(_) => Err(DenialCode::SensitivePath),
    }
}

/// Asking is itself an effect that needs a cap: an agent without one is refused instead.
fn may_ask(table: &CapTable, by: AgentId, now: Instant) -> Option<GrantId> {
    let cap = Cap::new(Verb::UserAsk, Object::Session).ok()?;
    table.choose(by, &cap, now).ok()
}

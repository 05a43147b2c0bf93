//! What can happen outside, as told to the session.

use alloc::string::String;
use alloc::vec::Vec;

use crate::action::Action;
use crate::approval::{Acceptor, Answer, Asking, CallId, ProposalId, ProposalSpec, RememberedId};
use crate::authority::Authority;
use crate::digest::Digest;
use crate::grant::{AgentId, GrantId, Lifetime, UpstreamId, Uses};
use crate::label::Label;
use crate::outcome::Outcome;
use crate::standing::{Standing, Surroundings};
use crate::tool::Tool;

/// Something that happened outside, told to the session.
#[derive(Debug)]
pub enum Event {
    /// An agent calls a tool.
    Call(Call),
    /// The same, and data of this label decides something about it. A change
    /// it makes needs a grant that vouches for such data, or the user's yes.
    SteeredCall {
        /// The call.
        call: Call,
        /// What travels with the data.
        by_data: Label,
    },
    /// A running call's command did this to its view: may it stand?
    Effects {
        /// The call.
        call: CallId,
        /// The change set, one action for each change.
        actions: Vec<Action>,
    },
    /// A running call's command, which has not ended, did this so far: may it stand
    /// already? Nobody is asked, and nothing that is counted is used up: what needs
    /// either waits for [`Event::Effects`].
    EffectsSoFar {
        /// The call.
        call: CallId,
        /// The change set, one action for each change.
        actions: Vec<Action>,
    },
    /// A running call looks again, or at more: at the places a yes let this very call look
    /// at, and what lies there if it was about all of it. Nobody is asked, and each place is
    /// decided by itself.
    LooksFurther {
        /// The call.
        call: CallId,
        /// The looks.
        actions: Vec<Action>,
    },
    /// The user answered.
    Answer(Answer),
    /// The user answered, and wants exactly this answered the same way again.
    AnswerAndRemember(Answer),
    /// The user answered, and lets the agent that asked hold this until the session ends.
    /// It counts where it is of the kinds that were asked about and holds all of what was
    /// shown, and where the yes may last and is meant to; otherwise the yes is for what was
    /// shown, this one time.
    AnswerHolding {
        /// The answer.
        answer: Answer,
        /// What is to be held.
        wider: Authority,
    },
    /// The user wants a remembered answer forgotten, or (`None`) all of them.
    Forget(Option<RememberedId>),
    /// The user wants to be asked more, less, or not at all from here on.
    SetAsking(Asking),
    /// The user grants something.
    Grant(GrantSpec),
    /// Something the user does themselves, by this tool, needs this until it is over, and
    /// revokes it then. It serves no other tool, and nobody was given it, so its end is no
    /// reason that anybody is told.
    Lend(Tool, GrantSpec),
    /// Another program grants something for as long as it lasts, or longer.
    GrantFrom(UpstreamId, GrantSpec),
    /// That program is gone: nobody is left who could end its grants early.
    UpstreamLost(UpstreamId),
    /// A standing grant is to count in this session, for this agent.
    Adopt {
        /// Who is to hold it.
        holder: AgentId,
        /// What was kept.
        standing: Standing,
        /// Where and when it is looked at.
        here: Surroundings,
    },
    /// A judge proposes a grant.
    Propose(ProposalSpec),
    /// Somebody entitled to accepts what was shown to them.
    Accept {
        /// Which proposal.
        proposal: ProposalId,
        /// The digest of what they saw.
        digest: Digest,
        /// Who.
        by: Acceptor,
    },
    /// Somebody turns a proposal down.
    Decline(ProposalId),
    /// An agent makes a weaker grant from one it holds.
    Attenuate(Attenuation),
    /// An agent passes a grant it holds on, undiminished.
    Forward {
        /// Who passes it on.
        by: AgentId,
        /// Which of its grants.
        from: GrantId,
        /// To whom.
        holder: AgentId,
    },
    /// The granter ends a grant, and with it everything derived from it:
    /// nothing new starts, and what runs on it is to be stopped.
    Revoke(GrantId),
    /// The same, and the session says when nothing runs on it any more.
    RevokeAndDrain(GrantId),
    /// An agent starts another, passing on these grants and nothing else.
    Spawn {
        /// Who starts it.
        parent: AgentId,
        /// What it gets, by name.
        forward: Vec<GrantId>,
    },
    /// An agent is done, and with it everything it held, passed on or started.
    EndAgent(AgentId),
    /// A call that had permits is over.
    Finished {
        /// The call.
        call: CallId,
        /// What came of it.
        outcome: Outcome,
    },
    /// Data reached an agent's context: what a tool gave its model.
    Heard {
        /// The agent.
        agent: AgentId,
        /// Where the data is from and who may see it.
        label: Label,
    },
    /// The edge puts a line of its own into the ledger.
    Note(String),
    /// Time passed: questions go stale, grants end, calls outstay their deadline.
    Tick,
    /// The session ends, and with it every grant.
    End,
}

/// One tool call.
#[derive(Debug)]
pub struct Call {
    /// Who calls.
    pub by: AgentId,
    /// Which tool.
    pub tool: Tool,
    /// Every effect it needs before it can run.
    pub actions: Vec<Action>,
}

/// What the user grants.
#[derive(Clone, Debug)]
pub struct GrantSpec {
    /// To whom.
    pub holder: AgentId,
    /// What.
    pub authority: Authority,
    /// How often.
    pub uses: Uses,
    /// How long.
    pub lifetime: Lifetime,
}

/// What an agent passes on.
#[derive(Clone, Debug)]
pub struct Attenuation {
    /// Who passes it on.
    pub by: AgentId,
    /// Which of its grants it comes from.
    pub from: GrantId,
    /// To whom; an agent may narrow a grant for itself.
    pub holder: AgentId,
    /// What, at most what `from` allows.
    pub authority: Authority,
    /// How often.
    pub uses: Uses,
    /// How long, at most as long as `from`.
    pub lifetime: Lifetime,
}

//! Grants that a judge proposes, and agents that end.
//!
//! A judge's word is text. It becomes a grant only when a person, or a holder
//! who passes on part of what it holds, accepts exactly what was shown.

use hermitcrab_core::{
    approval::{Acceptor, Proposal, ProposalId, ProposalSpec},
    authority::Name,
    grant::{AgentId, GrantId},
    outcome::{Denial, DenialCode},
    session::Event,
};

use super::{Runtime, granter, words::GrantWords, words::WordsError};
use crate::ports::Verdict;

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// The person accepted it.
    Accepted(GrantId),
    /// The person turned it down.
    Declined,
    /// Nobody looked at it yet; it can be accepted for a while.
    Waiting(ProposalId),
}

impl Runtime {
    /// A judge proposes a grant, and the person is asked whether they take it
    /// for their own.
    ///
    /// # Errors
    /// The words mean nothing, or the refusal.
    pub fn propose(
        &mut self,
        judge: &str,
        holder: AgentId,
        words: &GrantWords,
    ) -> Result<Proposed, WordsError> {
        // What is opened to put the question is closed again unless somebody wants it open:
        // a judge's word alone has nothing asked about that was refused before.
        let before = self.mounts.clone();
        let proposed = self.propose_within(judge, holder, words);
        if matches!(proposed, Ok(Proposed::Declined) | Err(_)) {
            self.mounts = before;
        }
        proposed
    }

    fn propose_within(
        &mut self,
        judge: &str,
        holder: AgentId,
        words: &GrantWords,
    ) -> Result<Proposed, WordsError> {
        let spec = words.spec(holder, &mut self.mounts, &self.machine, &self.config)?;
        let judge = Name::parse(judge).map_err(|error| {
            WordsError::Denied(Denial::new(
                DenialCode::BadArguments,
                format_args!("{error}"),
            ))
        })?;
        let parts = self.machine.step(Event::Propose(ProposalSpec {
            judge,
            holder: spec.holder,
            authority: spec.authority,
            uses: spec.uses,
            lifetime: spec.lifetime,
        }))?;
        let proposal = match (parts.proposal, parts.denials.into_iter().next()) {
            (Some(proposal), _) => proposal,
            (None, Some((_, denial))) => return Err(WordsError::Denied(denial)),
            (None, None) => {
                return Err(WordsError::Denied(Denial::new(
                    DenialCode::UnknownProposal,
                    "",
                )));
            }
        };
        match self.user.consider(&self.proposal_shown(&proposal)) {
            Verdict::Yes => self
                .accept(&proposal, Acceptor::User)
                .map(Proposed::Accepted)
                .map_err(WordsError::Denied),
            Verdict::No => {
                self.machine.step(Event::Decline(proposal.id()))?;
                Ok(Proposed::Declined)
            }
            Verdict::Later => Ok(Proposed::Waiting(proposal.id())),
        }
    }

    /// A holder takes a proposal for its own and passes on part of what it
    /// holds, and no more than that.
    ///
    /// # Errors
    /// The refusal.
    pub fn accept_as_holder(
        &mut self,
        proposal: ProposalId,
        agent: AgentId,
        from: GrantId,
    ) -> Result<GrantId, Denial> {
        let shown = self.remote().proposal(proposal.get())?;
        self.accept(&shown, Acceptor::Holder { agent, from })
    }

    fn accept(&self, proposal: &Proposal, by: Acceptor) -> Result<GrantId, Denial> {
        let parts = self.step(Event::Accept {
            proposal: proposal.id(),
            digest: proposal.digest(),
            by,
        })?;
        match (parts.granted, parts.denials.into_iter().next()) {
            (Some(grant), _) => Ok(grant),
            (None, Some((_, denial))) => Err(denial),
            (None, None) => Err(Denial::new(DenialCode::UnknownProposal, proposal.id())),
        }
    }

    fn proposal_shown(&self, proposal: &Proposal) -> String {
        let spec = proposal.spec();
        let what = self
            .machine
            .look(|session| granter::in_words(session, &spec.authority));
        format!(
            "the judge `{}` proposes to grant {} for the rest of the session: {what}",
            spec.judge, spec.holder
        )
    }

    /// An agent is done: everything it held, passed on or started ends, and
    /// what runs on it is killed.
    ///
    /// # Errors
    /// The refusal, for an agent that is none or has ended.
    pub fn end_agent(&mut self, agent: AgentId) -> Result<Vec<AgentId>, Denial> {
        let parts = self.step(Event::EndAgent(agent))?;
        self.stop_jobs(|call| parts.stopped.contains(&call))?;
        for ended in &parts.ended {
            self.agents.remove(ended);
        }
        match parts.denials.into_iter().next() {
            Some((_, denial)) if parts.ended.is_empty() => Err(denial),
            _ => Ok(parts.ended),
        }
    }
}

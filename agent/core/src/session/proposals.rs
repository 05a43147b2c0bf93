//! Proposals of judges, and who may make grants of them.

use super::{Attenuation, Effect, Effects, GrantSpec, Session};
use crate::approval::{Acceptor, Proposal, ProposalId, ProposalSpec};
use crate::audit::Entry;
use crate::digest::Digest;
use crate::grant::Origin;
use crate::limits::{PROPOSALS_MAX, QUESTION_LIFETIME};
use crate::outcome::{Denial, DenialCode};

impl Session {
    /// Keeps a proposal to be shown. It grants nothing.
    pub(super) fn propose(&mut self, spec: ProposalSpec) -> Effects<'static> {
        if !self.table.knows(spec.holder) {
            return self.refuse(None, Denial::new(DenialCode::UnknownAgent, spec.holder));
        }
        if self.proposals.len() >= PROPOSALS_MAX {
            let about = format_args!("{PROPOSALS_MAX} open proposals; accept or decline one");
            let denial = Denial::new(DenialCode::LimitReached, about);
            return self.refuse(None, denial);
        }
        let id = ProposalId(self.proposals_made);
        self.proposals_made = self.proposals_made.saturating_add(1);
        let proposal = Proposal {
            id,
            digest: Proposal::digest_of(self.hash, id, &spec),
            open_until: self.now.after(QUESTION_LIFETIME),
            spec,
        };
        let mut effects = Effects::none();
        effects.push(Effect::Record(self.ledger.append(
            self.now,
            &Entry::Proposed {
                proposal: id,
                judge: &proposal.spec.judge,
                holder: proposal.spec.holder,
                authority: &proposal.spec.authority,
                digest: proposal.digest,
            },
        )));
        self.proposals.insert(id, proposal.clone());
        effects.push(Effect::Propose(proposal));
        effects
    }

    /// A person or a holder takes a proposal for their own.
    pub(super) fn accept(
        &mut self,
        id: ProposalId,
        digest: Digest,
        by: Acceptor,
    ) -> Effects<'static> {
        let Some(proposal) = self.proposals.remove(&id) else {
            return self.refuse(None, Denial::new(DenialCode::UnknownProposal, id));
        };
        let settled = Effect::Record(self.ledger.append(
            self.now,
            &Entry::Settled {
                proposal: id,
                by: Some(by),
                digest,
            },
        ));
        let made = if self.now > proposal.open_until {
            Err(Denial::new(DenialCode::NoAnswer, id))
        } else if digest != proposal.digest {
            Err(Denial::new(DenialCode::ChangedSinceShown, id))
        } else {
            let ProposalSpec {
                holder,
                authority,
                uses,
                lifetime,
                judge: _,
            } = proposal.spec;
            match by {
                Acceptor::User => self.grant(
                    &GrantSpec {
                        holder,
                        authority,
                        uses,
                        lifetime,
                    },
                    Origin::Proposed,
                ),
                // Whoever passes on what they hold can pass on no more than that.
                Acceptor::Holder { agent, from } => self.attenuate(&Attenuation {
                    by: agent,
                    from,
                    holder,
                    authority,
                    uses,
                    lifetime,
                }),
            }
        };
        let mut effects = Effects::none();
        effects.push(settled);
        effects.append(self.granted(made));
        effects
    }

    pub(super) fn decline(&mut self, id: ProposalId) -> Effects<'static> {
        let Some(proposal) = self.proposals.remove(&id) else {
            return self.refuse(None, Denial::new(DenialCode::UnknownProposal, id));
        };
        let mut effects = Effects::none();
        effects.push(Effect::Record(self.ledger.append(
            self.now,
            &Entry::Settled {
                proposal: id,
                by: None,
                digest: proposal.digest,
            },
        )));
        effects
    }

    /// What nobody looked at in time is no longer on offer.
    pub(super) fn close_stale_proposals(&mut self, effects: &mut Effects<'_>) {
        let now = self.now;
        let stale: alloc::vec::Vec<ProposalId> = self
            .proposals
            .values()
            .filter(|proposal| now > proposal.open_until)
            .map(Proposal::id)
            .collect();
        for id in stale {
            effects.append(self.decline(id));
        }
    }
}

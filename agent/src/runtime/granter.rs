//! Another program that looks at a session, ends things in it, and grants.
//!
//! What it grants is the person's word, as on a command line, but it ends when
//! the program says so; when the program goes without a word, nobody is left
//! who could end it early, and the grant is an orphan until its deadline.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use hermitcrab_core::{
    action::Action,
    approval::{Acceptor, Asking, Proposal},
    authority::{Authority, Cap, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, Grant, GrantId, Lifetime, UpstreamId, Uses},
    outcome::{Denial, DenialCode},
    session::{Event, GrantSpec, Parts, Session},
    time::Millis,
};

use super::{mounts, reachable::Reach, remote::Remote, words::held_in_words};
use crate::control::{AgentRow, GrantRow, Listing, ProposalRow, Reply, Request};

/// One program's side of a conversation with a session.
#[derive(Debug)]
pub struct Granter {
    remote: Remote,
    upstream: UpstreamId,
    laxest: Asking,
    workspace: String,
    is_an_editors: bool,
    granted: bool,
}

impl Reach {
    /// A program that may grant, by a number no other has.
    #[must_use]
    pub fn granter(&self, program: u32) -> Granter {
        Granter {
            remote: self.remote.clone(),
            upstream: UpstreamId(program),
            laxest: self.laxest,
            workspace: self.workspace.clone(),
            is_an_editors: self.is_an_editors,
            granted: false,
        }
    }
}

impl Granter {
    /// Does what is wanted, if the session lets it.
    pub fn answer(&mut self, request: Request) -> Reply {
        match self.try_answer(request) {
            Ok(reply) => reply,
            Err(denial) => Reply::Refused {
                code: denial.code().as_str().to_owned(),
                why: denial.to_string(),
            },
        }
    }

    /// The program is gone without ending what it granted.
    pub fn lost(&self) {
        if self.granted {
            // A ledger that cannot be written refuses the next call with the reason.
            let _recorded = self.remote.step(Event::UpstreamLost(self.upstream));
        }
    }

    fn try_answer(&mut self, request: Request) -> Result<Reply, Denial> {
        let remote = &self.remote;
        match request {
            Request::List => {
                let listed = remote.look(|session, now| Listing {
                    workspace: self.workspace.clone(),
                    is_an_editors: self.is_an_editors,
                    ..listing(session, now)
                });
                Ok(Reply::Listing(listed))
            }
            Request::Revoke { grant, drain } => {
                let grant = remote.grant_named(grant)?;
                let ended = if drain {
                    remote.revoke_and_drain(grant)?
                } else {
                    remote.revoke(grant)?
                };
                Ok(done(&ended))
            }
            Request::Grant { verb, on, seconds } => {
                let spec = remote.look(|session, _| spec(session, &verb, &on, seconds))?;
                let parts = remote.step(Event::GrantFrom(self.upstream, spec))?;
                self.granted |= parts.granted.is_some();
                made(parts)
            }
            Request::Forward { grant, agent } => {
                let from = remote.grant_named(grant)?;
                let holder = remote.agent_named(agent)?;
                let by = remote.look(|session, _| session.table().get(from).map(Grant::holder));
                let by = by.ok_or_else(|| Denial::new(DenialCode::UnknownGrant, from))?;
                made(remote.step(Event::Forward { by, from, holder })?)
            }
            Request::EndAgent { agent } => {
                let agent = remote.agent_named(agent)?;
                plain(remote.step(Event::EndAgent(agent))?)
            }
            Request::Mode { mode } => {
                let wanted = Asking::parse(&mode).ok_or_else(|| {
                    Denial::new(DenialCode::BadArguments, format_args!("mode {mode}"))
                })?;
                let asking = wanted.max(self.laxest);
                plain(remote.step(Event::SetAsking(asking))?)
            }
            Request::Accept { proposal, digest } => {
                let shown = remote.proposal(proposal)?;
                // What was accepted is what was listed, or nothing is.
                if shown.digest().to_string() != digest {
                    return Err(Denial::new(DenialCode::ChangedSinceShown, shown.id()));
                }
                made(remote.step(Event::Accept {
                    proposal: shown.id(),
                    digest: shown.digest(),
                    by: Acceptor::User,
                })?)
            }
            Request::Decline { proposal } => {
                let shown = remote.proposal(proposal)?;
                plain(remote.step(Event::Decline(shown.id()))?)
            }
            Request::Forget => plain(remote.step(Event::Forget(None))?),
            Request::End => {
                remote.end()?;
                Ok(done(&[]))
            }
        }
    }
}

fn done(grants: &[GrantId]) -> Reply {
    Reply::Done {
        grants: grants.iter().map(|grant| grant.get()).collect(),
    }
}

/// What came of it. A call that is refused because of it, such as one of an agent that was ended
/// while it asked, is no refusal of it.
fn plain(parts: Parts<'static>) -> Result<Reply, Denial> {
    let of_it = parts.denials.into_iter().find(|(call, _)| call.is_none());
    match of_it {
        Some((_, denial)) => Err(denial),
        None => Ok(done(&parts.revoked)),
    }
}

fn made(parts: Parts<'static>) -> Result<Reply, Denial> {
    let granted = parts.granted;
    plain(parts)?;
    Ok(done(granted.as_slice()))
}

/// What is to be granted, in the session's own handles.
fn spec(
    session: &Session,
    verb: &str,
    on: &str,
    seconds: Option<u64>,
) -> Result<GrantSpec, Denial> {
    let wrong = || {
        Denial::new(
            DenialCode::BadArguments,
            format_args!("{verb} on {on} is nothing this session can be granted here"),
        )
    };
    let verbs = match verb {
        "fs.*" => Verb::FILES.to_vec(),
        verb => vec![Verb::parse(verb).ok_or_else(wrong)?],
    };
    let mut caps = Vec::new();
    for verb in verbs {
        let object = match verb {
            Verb::FsList | Verb::FsRead | Verb::FsCreate | Verb::FsModify | Verb::FsDelete => {
                let path = Path::new(OsStr::from_bytes(on.as_bytes()));
                let place = mounts::from_root(path).map_err(|_| wrong())?;
                let (dir, below) = session.rules().place(&place).ok_or_else(wrong)?;
                Object::tree(dir, below)
            }
            Verb::SessionRead => Object::Session,
            Verb::ProcExec if on == "*" => Object::Program(Program::AnyInView),
            Verb::ProcExec
            | Verb::FsMount
            | Verb::NetConnect
            | Verb::NetListen
            | Verb::SecretUse
            | Verb::ModelSend
            | Verb::UserAsk
            | Verb::AgentSpawn
            | Verb::ConfigChange
            | Verb::Extension => return Err(wrong()),
        };
        caps.push(Cap::new(verb, object).map_err(|_| wrong())?);
    }
    Ok(GrantSpec {
        holder: AgentId::FIRST,
        authority: Authority::from_caps(caps)?,
        uses: Uses::Uncounted,
        lifetime: seconds.map_or(Lifetime::Session, |seconds| {
            Lifetime::For(Millis::from_seconds(seconds))
        }),
    })
}

/// What the session itself says.
fn listing(session: &Session, now: hermitcrab_core::time::Instant) -> Listing {
    let mut grants: Vec<&Grant> = session
        .agents()
        .flat_map(|agent| session.held_by(agent))
        .collect();
    grants.sort_by_key(|grant| grant.id());
    Listing {
        session: format!("{:016x}", session.rules().session()),
        workspace: String::new(),
        is_an_editors: false,
        mode: session.asking().to_string(),
        running: session.running(),
        agents: session
            .agents()
            .map(|agent| AgentRow {
                agent: agent.get(),
                ended: session.agent_has_ended(agent),
            })
            .collect(),
        grants: grants
            .into_iter()
            .map(|grant| row(session, grant, now))
            .collect(),
        proposals: session
            .proposals()
            .map(|proposal| proposal_row(session, proposal))
            .collect(),
    }
}

fn row(session: &Session, grant: &Grant, now: hermitcrab_core::time::Instant) -> GrantRow {
    let limits = grant.limits();
    GrantRow {
        grant: grant.id().get(),
        agent: grant.holder().get(),
        state: session
            .table()
            .state(grant.id(), now)
            .map_or("unknown", hermitcrab_core::grant::State::as_str)
            .to_owned(),
        origin: grant.origin().as_str().to_owned(),
        from: grant.parent().map(GrantId::get),
        what: listed(session, grant.authority()),
        uses_left: match limits.uses {
            Uses::AtMost(uses) => Some(uses.saturating_sub(grant.used())),
            Uses::Uncounted => None,
        },
        seconds_left: limits
            .expires_at
            .as_millis()
            .saturating_sub(now.as_millis())
            / 1000,
    }
}

fn proposal_row(session: &Session, proposal: &Proposal) -> ProposalRow {
    let spec = proposal.spec();
    ProposalRow {
        proposal: proposal.id().get(),
        judge: spec.judge.to_string(),
        agent: spec.holder.get(),
        what: in_words(session, &spec.authority),
        digest: proposal.digest().to_string(),
    }
}

/// Authority as seen from `/`, where it has such words: all of it, for who is to agree.
pub(super) fn in_words(session: &Session, authority: &Authority) -> String {
    let (files, others) = told(session, authority);
    let files = Verb::listed(&files).into_iter();
    let files = files.map(|(verb, on)| format!("{verb} {on}"));
    files.chain(others).collect::<Vec<_>>().join(", ")
}

/// The same as far as a list takes it.
fn listed(session: &Session, authority: &Authority) -> String {
    let (files, others) = told(session, authority);
    let files = held_in_words(&files, " ").into_iter();
    files.chain(others).collect::<Vec<_>>().join(", ")
}

/// What it says of files, and of anything else.
fn told(session: &Session, authority: &Authority) -> (Vec<(Verb, String)>, Vec<String>) {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for cap in authority.caps() {
        let action = Action::new(cap.verb(), cap.object().clone(), Digest::NONE).ok();
        match action.and_then(|action| session.rules().portable(&action)) {
            Some(cap) if Verb::FILES.contains(&cap.verb()) => {
                files.push((cap.verb(), cap.object().to_string()));
            }
            Some(cap) => others.push(cap.to_string()),
            None => others.push(cap.to_string()),
        }
    }
    (files, others)
}

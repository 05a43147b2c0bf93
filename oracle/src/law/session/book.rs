//! A book beside the session: every grant, its limits and its parent, and a
//! judgement of each turn by that alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use hermitcrab_core::approval::{Answer, CallId, QuestionId, Reply, Scope};
use hermitcrab_core::audit::{Head, Record};
use hermitcrab_core::authority::{Authority, Cap, Object, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Grant, GrantId, Limits, Origin, Uses};
use hermitcrab_core::limits::GRANT_LIFETIME_MAX;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::session::{Event, Parts, Session};
use hermitcrab_core::time::Instant;

use super::super::opened::{LOCATIONS, PROTECTED, sha256};
use super::super::{Verdict, ensure};

/// What the book has to know about an event to judge the turn.
pub(super) enum Kind {
    /// May lead to permits.
    Call,
    /// Effects of this call; permits only if it still runs.
    Effects(CallId),
    /// The same before its end: nobody is asked, and nothing counted is used up.
    EarlyEffects(CallId),
    /// Further looks of this call: nobody is asked, and only looks are permitted, at what a
    /// yes let the very call look at, or by what is held.
    Looks(CallId),
    /// Permits only after a yes to exactly this question as it was shown.
    Answer(Answer),
    /// The same, and the grant may be this one in the place of what was shown.
    AnswerHolding(Answer, Authority),
    Revoke(GrantId),
    /// A new grant may come from this one only if the agent holds it.
    Derive(AgentId, GrantId),
    /// The child may hold what comes from these, nothing else.
    Spawn(Vec<GrantId>),
    Finished(CallId),
    /// Ends what the agents hold that the turn says ended.
    EndAgent,
    End,
    /// Never leads to a permit.
    Other,
}

/// One question, as it was put.
pub(super) struct Put {
    pub(super) digest: Digest,
    /// What nothing held covers.
    pub(super) asked: Vec<Cap>,
    /// Whether a yes may last.
    lasts: bool,
}

/// One grant, as first seen.
pub(super) struct Line {
    holder: AgentId,
    authority: Authority,
    limits: Limits,
    parent: Option<GrantId>,
    spent: u64,
}

pub(super) struct Book {
    pub(super) agents: Vec<AgentId>,
    pub(super) lines: BTreeMap<GrantId, Line>,
    ended: BTreeSet<GrantId>,
    pub(super) questions: BTreeMap<QuestionId, Put>,
    pub(super) calls: Vec<CallId>,
    /// Calls that had permits, with the grants these came from.
    pub(super) running: BTreeMap<CallId, BTreeSet<GrantId>>,
    pub(super) stopped: BTreeSet<CallId>,
    /// The looks each running call was given a yes to.
    pub(super) yes: BTreeMap<CallId, Vec<Cap>>,
    /// The grants those are permitted from.
    yes_from: BTreeMap<CallId, GrantId>,
    head: Head,
    over: bool,
    /// Agents that ended; they get nothing more.
    gone: BTreeSet<AgentId>,
    /// Every digest a question ever had.
    digests: BTreeSet<Digest>,
}

impl Book {
    pub(super) fn new() -> Self {
        Self {
            agents: vec![AgentId::FIRST],
            lines: BTreeMap::new(),
            ended: BTreeSet::new(),
            questions: BTreeMap::new(),
            calls: Vec::new(),
            running: BTreeMap::new(),
            stopped: BTreeSet::new(),
            yes: BTreeMap::new(),
            yes_from: BTreeMap::new(),
            head: Head::EMPTY,
            over: false,
            gone: BTreeSet::new(),
            digests: BTreeSet::new(),
        }
    }

    /// One turn: step the session, then compare.
    pub(super) fn turn(
        &mut self,
        session: &mut Session,
        at: Instant,
        event: Event,
        kind: &Kind,
    ) -> Verdict {
        let Parts {
            call,
            records,
            permits,
            question,
            spawned,
            stopped,
            drained,
            ended,
            ..
        } = session.step(at, event).into_parts();
        let permits: Vec<(GrantId, AgentId, CallId, Cap)> = permits
            .into_iter()
            .map(|p| (p.grant(), p.by(), p.call(), p.action().cap().clone()))
            .collect();
        self.records(&records)?;
        self.calls.extend(call);
        ensure(!self.over || permits.is_empty(), || {
            "a permit after the end".to_owned()
        })?;
        self.may_permit(kind, &permits)?;
        if let Some(question) = question {
            ensure(
                !matches!(kind, Kind::EarlyEffects(_) | Kind::Looks(_)),
                || "a question where nobody is to be asked".to_owned(),
            )?;
            self.may_ask(question.by())?;
            ensure(self.digests.insert(question.digest()), || {
                format!("{} has the digest of another", question.id())
            })?;
            let put = Put {
                digest: question.digest(),
                asked: question.uncovered().map(|a| a.cap().clone()).collect(),
                lasts: question.widest() > Scope::Once,
            };
            self.questions.insert(question.id(), put);
        }
        let known = self.lines.len();
        let newest = self.lines.keys().next_back().copied();
        self.learn(session)?;
        self.answered(kind, newest)?;
        if let Kind::Derive(by, from) = kind {
            let theirs = self.lines.get(from).is_some_and(|line| line.holder == *by);
            ensure(theirs || known == self.lines.len(), || {
                format!("{by} passed {from} of another on")
            })?;
        }
        for (grant, by, call, cap) in &permits {
            let is_of_yes = matches!(kind, Kind::Looks(_)) && self.is_of_yes(*call, *grant, cap)?;
            let uses = u64::from(!is_of_yes);
            self.permit(session, (*grant, uses), *by, cap)?;
            self.running.entry(*call).or_default().insert(*grant);
            // What is permitted from a grant this turn has made is permitted by a yes.
            if Some(*grant) > newest && cap.verb().only_looks() {
                self.yes.entry(*call).or_default().push(cap.clone());
                self.yes_from.insert(*call, *grant);
            }
        }
        match kind {
            Kind::Revoke(grant) => {
                // First: what is used of it, or comes from it, follows from that.
                ensure(self.over || !is_usable(session, *grant), || {
                    format!("a grant can be used though it was revoked: {grant}")
                })?;
                self.revoke(*grant, &stopped)?;
            }
            Kind::Spawn(forward) => {
                if let Some((child, _)) = spawned {
                    self.spawned(session, child, forward)?;
                }
            }
            Kind::Answer(answer) | Kind::AnswerHolding(answer, _) => {
                self.questions.remove(&answer.question);
            }
            Kind::Finished(call) => {
                self.running.remove(call);
                self.yes.remove(call);
                self.yes_from.remove(call);
            }
            Kind::EndAgent => self.agents_end(session, &ended, &stopped)?,
            Kind::End => {
                self.over = true;
                ensure(session.has_ended(), || {
                    "the session goes on after its end".to_owned()
                })?;
            }
            Kind::Call
            | Kind::Effects(_)
            | Kind::EarlyEffects(_)
            | Kind::Looks(_)
            | Kind::Derive(..)
            | Kind::Other => {}
        }
        // A deadline or a lost upstream stops calls too, in turns of any kind.
        self.stopped.extend(&stopped);
        self.drained(&drained)
    }

    /// Is this the kind of turn in which permits may be made at all?
    fn may_permit(&self, kind: &Kind, permits: &[(GrantId, AgentId, CallId, Cap)]) -> Verdict {
        if permits.is_empty() {
            return Ok(());
        }
        match kind {
            Kind::Call => Ok(()),
            Kind::Effects(call) | Kind::EarlyEffects(call) => {
                ensure(!self.stopped.contains(call), || {
                    "effects of a stopped call stand".to_owned()
                })
            }
            Kind::Looks(call) => {
                let only_looks = |(_, _, of, cap): &(GrantId, AgentId, CallId, Cap)| {
                    of == call && cap.verb().only_looks()
                };
                let is_running = self.running.contains_key(call) && !self.stopped.contains(call);
                ensure(is_running && permits.iter().all(only_looks), || {
                    format!("more than further looks of the running {call}")
                })
            }
            Kind::Answer(answer) | Kind::AnswerHolding(answer, _) => {
                ensure(matches!(answer.reply, Reply::Yes(_)), || {
                    format!("a permit after {}", word(&answer.reply))
                })?;
                ensure(
                    self.questions
                        .get(&answer.question)
                        .is_some_and(|put| put.digest == answer.digest),
                    || "a permit after an answer to something else".to_owned(),
                )
            }
            Kind::Revoke(_)
            | Kind::Spawn(_)
            | Kind::Derive(..)
            | Kind::Finished(_)
            | Kind::EndAgent
            | Kind::End
            | Kind::Other => Err("a permit nobody asked for".to_owned()),
        }
    }

    /// What an answer gave is what was shown; or, where the user wanted it and the yes may
    /// last and is meant to, more of the same kinds that holds all of that.
    fn answered(&self, kind: &Kind, newest: Option<GrantId>) -> Verdict {
        let (answer, wider) = match kind {
            Kind::Answer(answer) => (answer, None),
            Kind::AnswerHolding(answer, wider) => (answer, Some(wider)),
            _ => return Ok(()),
        };
        let made = self.lines.iter().filter(|(id, _)| Some(**id) > newest);
        for (id, line) in made {
            let Some(put) = self.questions.get(&answer.question) else {
                return Err(format!("{id} was given for no question"));
            };
            let shown = Authority::from_caps(put.asked.iter().cloned())
                .map_err(|error| error.to_string())?;
            let is_of_its_kinds = |wider: &Authority| {
                wider.caps().iter().all(|cap| {
                    matches!(cap.object(), Object::Dir { .. })
                        && put.asked.iter().any(|asked| asked.verb() == cap.verb())
                })
            };
            let is_to_last = matches!(answer.reply, Reply::Yes(scope) if scope > Scope::Once);
            let is_wanted = wider.is_some_and(|wider| {
                line.authority == *wider
                    && is_to_last
                    && put.lasts
                    && wider.covers(&shown)
                    && is_of_its_kinds(wider)
            });
            ensure(line.authority == shown || is_wanted, || {
                format!("{id} is neither what was shown nor what may be held instead")
            })?;
        }
        Ok(())
    }

    /// Only who holds the right to ask may have the user asked.
    fn may_ask(&self, by: AgentId) -> Verdict {
        let right = Cap::new(Verb::UserAsk, Object::Session).map_err(|error| error.to_string())?;
        let held = self.lines.iter().any(|(id, line)| {
            line.holder == by && line.authority.covers_cap(&right) && !self.is_ended(*id)
        });
        ensure(held && !self.over, || {
            format!("{by} asked without the right to")
        })
    }

    /// Write down every grant not seen before.
    pub(super) fn learn(&mut self, session: &Session) -> Verdict {
        let now = session.now();
        for agent in &self.agents {
            let fresh: Vec<&Grant> = session
                .held_by(*agent)
                .filter(|grant| !self.lines.contains_key(&grant.id()))
                .collect();
            for grant in fresh {
                self.lines.insert(
                    grant.id(),
                    Line {
                        holder: grant.holder(),
                        authority: grant.authority().clone(),
                        limits: grant.limits(),
                        parent: grant.parent(),
                        spent: 0,
                    },
                );
                ensure(
                    grant.origin() != Origin::Mode || is_where_it_works(grant),
                    || format!("{} is of the mode, and elsewhere", grant.id()),
                )?;
                ensure(
                    grant.limits().expires_at <= now.after(GRANT_LIFETIME_MAX),
                    || format!("{} does not end", grant.id()),
                )?;
                let Some(parent) = grant.parent() else {
                    continue;
                };
                let Some(from) = self.lines.get(&parent) else {
                    return Err(format!("{} comes from nothing known", grant.id()));
                };
                ensure(from.authority.covers(grant.authority()), || {
                    format!("{} is more than {parent}", grant.id())
                })?;
                ensure(grant.limits().expires_at <= from.limits.expires_at, || {
                    format!("{} outlives {parent}", grant.id())
                })?;
                ensure(!self.is_ended(parent), || {
                    format!("{} comes from the ended {parent}", grant.id())
                })?;
            }
        }
        Ok(())
    }

    /// Is it a part of what a yes let this call look at, and so of that one use? From a
    /// grant that only the call may use it has to be.
    fn is_of_yes(&self, call: CallId, grant: GrantId, cap: &Cap) -> Result<bool, String> {
        let is_from_it = self.yes_from.get(&call) == Some(&grant);
        let covers = |asked: &Cap| asked.covers(cap);
        let is_asked = self
            .yes
            .get(&call)
            .is_some_and(|all| all.iter().any(covers));
        let is_counted = self
            .lines
            .get(&grant)
            .is_some_and(|line| matches!(line.limits.uses, Uses::AtMost(_)));
        ensure(!(is_from_it && is_counted) || is_asked, || {
            format!("{call} looks at what it was not let look at: {cap}")
        })?;
        Ok(is_from_it && is_asked)
    }

    /// Judge one permit and charge it to the grant and all it comes from.
    fn permit(
        &mut self,
        session: &Session,
        (id, uses): (GrantId, u64),
        by: AgentId,
        cap: &Cap,
    ) -> Verdict {
        let now = session.now();
        let Some(line) = self.lines.get(&id) else {
            return Err(format!("a permit from the unknown {id}"));
        };
        ensure(line.holder == by, || format!("{by} used {id} of another"))?;
        ensure(!self.gone.contains(&by), || {
            format!("{by} used {id} after it ended")
        })?;
        ensure(line.authority.covers_cap(cap), || {
            format!("a grant does not allow this: {id} {cap}")
        })?;
        ensure(!self.is_ended(id), || {
            format!("{id} was used after its end")
        })?;
        ensure(!is_protected_change(session, cap), || {
            format!("the agent's own files are changed: {cap}")
        })?;
        let mut next = Some(id);
        while let Some(id) = next {
            let Some(line) = self.lines.get_mut(&id) else {
                return Err(format!("{id} is not in the book"));
            };
            line.spent += uses;
            ensure(now <= line.limits.expires_at, || format!("{id} is expired"))?;
            match line.limits.uses {
                Uses::Uncounted => {}
                Uses::AtMost(most) => ensure(line.spent <= most, || {
                    format!("{id} was used {} times of {most}", line.spent)
                })?,
            }
            next = line.parent;
        }
        Ok(())
    }

    /// Was it, or anything it comes from, revoked?
    fn is_ended(&self, id: GrantId) -> bool {
        let mut next = Some(id);
        while let Some(id) = next {
            if self.ended.contains(&id) {
                return true;
            }
            next = self.lines.get(&id).and_then(|line| line.parent);
        }
        false
    }

    /// Every running call on an ended grant must be stopped in the same turn.
    fn revoke(&mut self, grant: GrantId, stopped: &[CallId]) -> Verdict {
        if self.over {
            return Ok(());
        }
        self.ended.insert(grant);
        self.none_runs_on(stopped)
    }

    /// Agents that end leave nothing held and nothing running.
    fn agents_end(&mut self, session: &Session, agents: &[AgentId], stopped: &[CallId]) -> Verdict {
        let theirs: Vec<GrantId> = self
            .lines
            .iter()
            .filter(|(_, line)| agents.contains(&line.holder))
            .map(|(id, _)| *id)
            .collect();
        let left = theirs.iter().find(|id| is_usable(session, **id));
        if let Some(grant) = left {
            return Err(format!(
                "a grant can be used though its agent ended: {grant}"
            ));
        }
        self.ended.extend(theirs);
        self.gone.extend(agents);
        self.none_runs_on(stopped)
    }

    fn none_runs_on(&self, stopped: &[CallId]) -> Verdict {
        for (call, grants) in &self.running {
            let hit = grants.iter().any(|id| self.is_ended(*id));
            ensure(
                !hit || stopped.contains(call) || self.stopped.contains(call),
                || format!("{call} runs on after its grant ended"),
            )?;
        }
        Ok(())
    }

    /// What is reported as drained has ended, and nothing runs on it or below it.
    fn drained(&self, drained: &[GrantId]) -> Verdict {
        for grant in drained {
            ensure(self.is_ended(*grant), || format!("{grant} drained, alive"))?;
            for (call, grants) in &self.running {
                let below = grants.iter().any(|id| self.comes_from(*id, *grant));
                ensure(!below, || format!("{grant} drained while {call} runs"))?;
            }
        }
        Ok(())
    }

    fn comes_from(&self, id: GrantId, ancestor: GrantId) -> bool {
        let mut next = Some(id);
        while let Some(id) = next {
            if id == ancestor {
                return true;
            }
            next = self.lines.get(&id).and_then(|line| line.parent);
        }
        false
    }

    /// A child holds what was forwarded by name.
    fn spawned(&mut self, session: &Session, child: AgentId, forward: &[GrantId]) -> Verdict {
        for grant in session.held_by(child) {
            let from = grant.parent();
            ensure(from.is_some_and(|from| forward.contains(&from)), || {
                format!("{child} was born with {}", grant.id())
            })?;
        }
        self.agents.push(child);
        self.learn(session)
    }

    /// The ledger continues without a gap.
    pub(super) fn records(&mut self, records: &[Record]) -> Verdict {
        for record in records {
            ensure(record.seq == self.head.next, || {
                format!("record {} has another number than the next", record.seq)
            })?;
            ensure(record.prev == self.head.digest, || {
                format!("record {} does not continue the one before", record.seq)
            })?;
            ensure(record.digest == record.expected_digest(sha256), || {
                format!("record {} has another digest", record.seq)
            })?;
            self.head = Head {
                next: record.seq + 1,
                digest: record.digest,
            };
        }
        Ok(())
    }
}

/// Whether the session would let the grant be used.
fn is_usable(session: &Session, grant: GrantId) -> bool {
    session.table().usable(grant, session.now()).is_ok()
}

/// What was answered, in a word.
const fn word(reply: &Reply) -> &'static str {
    match reply {
        Reply::Yes(_) => "a yes",
        Reply::No => "a no",
        Reply::Unknown(_) => "words nobody offered",
        Reply::Silence => "silence",
        Reply::Cancelled => "a closed dialog",
        Reply::Failed => "a dialog that broke",
    }
}

/// Where the two directories lie, and what is protected.
static KNOWN_PLACES: LazyLock<[Option<RelPath>; 3]> = LazyLock::new(|| {
    let [first, second] = LOCATIONS;
    [first, second, PROTECTED].map(|place| RelPath::parse(place).ok())
});

/// Where a place lies, seen from `/`.
fn location(cap: &Cap) -> Option<RelPath> {
    let Object::Dir { dir, below, .. } = cap.object() else {
        return None;
    };
    let [first, second, _] = &*KNOWN_PLACES;
    let location = match dir.index() {
        0 => first,
        1 => second,
        _ => &None,
    };
    location.as_ref()?.join(below).ok()
}

/// Is all of it, as far as it is about files, where the session works?
fn is_where_it_works(grant: &Grant) -> bool {
    let [workspace, ..] = &*KNOWN_PLACES;
    let is_there = |cap: &Cap| match (cap.object(), location(cap), workspace) {
        (Object::Dir { .. }, Some(place), Some(workspace)) => place.starts_with(workspace),
        (Object::Dir { .. }, ..) => false,
        _ => true,
    };
    grant.authority().caps().iter().all(is_there)
}

/// Does `cap` change what is protected?
fn is_protected_change(session: &Session, cap: &Cap) -> bool {
    let Object::Dir { .. } = cap.object() else {
        return false;
    };
    let [.., protected] = &*KNOWN_PLACES;
    let inside = match (location(cap), protected) {
        (Some(place), Some(protected)) => place.starts_with(protected),
        _ => true,
    };
    inside && cap.verb().changes_files() && !session.has_ended()
}

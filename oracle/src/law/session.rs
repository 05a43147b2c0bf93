//! The session machine against a book kept beside it.
//!
//! The book is simple on purpose: it writes down every grant, its limits and
//! its parent, and judges each permit by that alone.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Unstructured;
use hermitcrab_core::action::Action;
use hermitcrab_core::approval::{Answer, CallId, QuestionId, Reply, Scope};
use hermitcrab_core::audit::{Head, Record};
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Grant, GrantId, Lifetime, Limits, Uses};
use hermitcrab_core::limits::GRANT_LIFETIME_MAX;
use hermitcrab_core::outcome::Outcome;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{
    Asking, Attenuation, Call, Event, GrantSpec, Parts, Session, SessionConfig,
};
use hermitcrab_core::time::{Instant, Millis};
use hermitcrab_core::tool::Tool;
use sha2::{Digest as _, Sha256};

use super::authority::{cap, rel_path};
use super::{Verdict, ensure};

const EVENTS_MAX: usize = 48;
const ACTIONS_MAX: usize = 4;
/// Where the two directories of the law lie.
const LOCATIONS: [&[u8]; 2] = [b"home/u", b"home/u/ab"];
/// The agent's own files, inside the second directory.
const PROTECTED: &[u8] = b"home/u/ab/b";

/// Feed a session events made from `bytes` and check each turn against the book.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let asking = if bytes.ratio(3, 4).unwrap_or(true) {
        Asking::Prompt
    } else {
        Asking::Refuse
    };
    let Some((mut session, records, dirs)) = open(asking) else {
        return Err("the session does not open".to_owned());
    };
    let mut book = Book::new();
    book.records(&records)?;
    book.learn(&session)?;
    let mut at = 0_u64;
    for _ in 0..EVENTS_MAX {
        if bytes.is_empty() {
            break;
        }
        at += match bytes.int_in_range(0..=7_u8).unwrap_or(0) {
            0..=4 => 0,
            5 => 1,
            6 => 60_000,
            _ => 3_600_000,
        };
        let Some((event, kind)) = event(&mut bytes, &book, dirs) else {
            continue;
        };
        book.turn(&mut session, Instant::from_millis(at), event, &kind)?;
    }
    Ok(())
}

/// Handles for laws that need some.
pub(super) fn two_dirs() -> Option<[DirId; 2]> {
    open(Asking::Refuse).map(|(_, _, dirs)| dirs)
}

fn open(asking: Asking) -> Option<(Session, Vec<Record>, [DirId; 2])> {
    let (mut session, records) = Session::open(SessionConfig {
        id: 7,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: vec![RelPath::parse(PROTECTED).ok()?],
        asking,
        ledger: Head::EMPTY,
        opened_at: Instant::from_millis(0),
    });
    let [first, second] =
        LOCATIONS.map(|location| session.add_dir(RelPath::parse(location).ok()?).ok());
    Some((session, records, [first?, second?]))
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// What the book has to know about an event to judge the turn.
enum Kind {
    /// May lead to permits.
    Call,
    /// Effects of this call; permits only if it still runs.
    Effects(CallId),
    /// Permits only after a yes to exactly this question as it was shown.
    Answer(Answer),
    Revoke(GrantId),
    /// The child may hold what comes from these, nothing else.
    Spawn(Vec<GrantId>),
    Finished(CallId),
    End,
    /// Never leads to a permit.
    Other,
}

/// One grant, as first seen.
struct Line {
    holder: AgentId,
    authority: Authority,
    limits: Limits,
    parent: Option<GrantId>,
    spent: u64,
}

struct Book {
    agents: Vec<AgentId>,
    lines: BTreeMap<GrantId, Line>,
    ended: BTreeSet<GrantId>,
    questions: BTreeMap<QuestionId, Digest>,
    calls: Vec<CallId>,
    /// Calls that had permits, with the grants these came from.
    running: BTreeMap<CallId, BTreeSet<GrantId>>,
    stopped: BTreeSet<CallId>,
    head: Head,
    over: bool,
}

impl Book {
    fn new() -> Self {
        Self {
            agents: vec![AgentId::FIRST],
            lines: BTreeMap::new(),
            ended: BTreeSet::new(),
            questions: BTreeMap::new(),
            calls: Vec::new(),
            running: BTreeMap::new(),
            stopped: BTreeSet::new(),
            head: Head::EMPTY,
            over: false,
        }
    }

    /// One turn: step the session, then compare.
    fn turn(&mut self, session: &mut Session, at: Instant, event: Event, kind: &Kind) -> Verdict {
        let Parts {
            call,
            records,
            permits,
            question,
            spawned,
            stopped,
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
            self.may_ask(question.by())?;
            self.questions.insert(question.id(), question.digest());
        }
        self.learn(session)?;
        for (grant, by, call, cap) in &permits {
            self.permit(session, *grant, *by, cap)?;
            self.running.entry(*call).or_default().insert(*grant);
        }
        match kind {
            Kind::Revoke(grant) => self.revoke(*grant, &stopped)?,
            Kind::Spawn(forward) => {
                if let Some((child, _)) = spawned {
                    self.spawned(session, child, forward)?;
                }
            }
            Kind::Answer(answer) => {
                self.questions.remove(&answer.question);
            }
            Kind::Finished(call) => {
                self.running.remove(call);
            }
            Kind::End => self.over = true,
            Kind::Call | Kind::Effects(_) | Kind::Other => {}
        }
        Ok(())
    }

    /// Is this the kind of turn in which permits may be made at all?
    fn may_permit(&self, kind: &Kind, permits: &[(GrantId, AgentId, CallId, Cap)]) -> Verdict {
        if permits.is_empty() {
            return Ok(());
        }
        match kind {
            Kind::Call => Ok(()),
            Kind::Effects(call) => ensure(!self.stopped.contains(call), || {
                "effects of a stopped call stand".to_owned()
            }),
            Kind::Answer(answer) => {
                ensure(matches!(answer.reply, Reply::Yes(_)), || {
                    format!("a permit after {:?}", answer.reply)
                })?;
                ensure(
                    self.questions.get(&answer.question) == Some(&answer.digest),
                    || "a permit after an answer to something else".to_owned(),
                )
            }
            Kind::Revoke(_) | Kind::Spawn(_) | Kind::Finished(_) | Kind::End | Kind::Other => {
                Err("a permit nobody asked for".to_owned())
            }
        }
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
    fn learn(&mut self, session: &Session) -> Verdict {
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

    /// Judge one permit and charge it to the grant and all it comes from.
    fn permit(&mut self, session: &Session, id: GrantId, by: AgentId, cap: &Cap) -> Verdict {
        let now = session.now();
        let Some(line) = self.lines.get(&id) else {
            return Err(format!("a permit from the unknown {id}"));
        };
        ensure(line.holder == by, || format!("{by} used {id} of another"))?;
        ensure(line.authority.covers_cap(cap), || {
            format!("{id} does not allow {cap}")
        })?;
        ensure(!self.is_ended(id), || {
            format!("{id} was used after its end")
        })?;
        ensure(!is_protected_change(session, cap), || {
            format!("{cap} changes the agent's own files")
        })?;
        let mut next = Some(id);
        while let Some(id) = next {
            let Some(line) = self.lines.get_mut(&id) else {
                return Err(format!("{id} is not in the book"));
            };
            line.spent += 1;
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
        for (call, grants) in &self.running {
            let hit = grants.iter().any(|id| self.is_ended(*id));
            ensure(
                !hit || stopped.contains(call) || self.stopped.contains(call),
                || format!("{call} runs on after {grant} was revoked"),
            )?;
        }
        self.stopped.extend(stopped);
        Ok(())
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
    fn records(&mut self, records: &[Record]) -> Verdict {
        for record in records {
            ensure(
                record.seq == self.head.next && record.prev == self.head.digest,
                || format!("record {} does not continue the ledger", record.seq),
            )?;
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

/// Does `cap` change what is protected?
fn is_protected_change(session: &Session, cap: &Cap) -> bool {
    let Object::Dir { dir, below } = cap.object() else {
        return false;
    };
    let protected = RelPath::parse(PROTECTED).ok();
    let place = LOCATIONS
        .get(usize::try_from(dir.index()).unwrap_or(usize::MAX))
        .and_then(|location| RelPath::parse(location).ok())
        .and_then(|location| location.join(below).ok());
    let inside = match (place, protected) {
        (Some(place), Some(protected)) => place.starts_with(&protected),
        _ => true,
    };
    inside && cap.verb().changes_files() && !session.has_ended()
}

fn event(bytes: &mut Unstructured<'_>, book: &Book, dirs: [DirId; 2]) -> Option<(Event, Kind)> {
    let agent = |bytes: &mut Unstructured<'_>| bytes.choose(&book.agents).copied().ok();
    let grant = |bytes: &mut Unstructured<'_>| {
        let ids: Vec<GrantId> = book.lines.keys().copied().collect();
        bytes.choose(&ids).copied().ok()
    };
    let call = |bytes: &mut Unstructured<'_>| bytes.choose(&book.calls).copied().ok();
    Some(match bytes.int_in_range(0..=15_u8).ok()? {
        0..=3 => (
            Event::Call(Call {
                by: agent(bytes)?,
                tool: *bytes.choose(&Tool::ALL).ok()?,
                actions: actions(bytes, dirs),
            }),
            Kind::Call,
        ),
        4 | 5 => {
            let call = call(bytes)?;
            let actions = actions(bytes, dirs);
            (Event::Effects { call, actions }, Kind::Effects(call))
        }
        6..=8 => {
            let answer = answer(bytes, book)?;
            (Event::Answer(answer.clone()), Kind::Answer(answer))
        }
        9 | 10 => (
            Event::Grant(GrantSpec {
                holder: agent(bytes)?,
                authority: authority(bytes, dirs)?,
                uses: uses(bytes),
                lifetime: lifetime(bytes),
            }),
            Kind::Other,
        ),
        11 => (
            Event::Attenuate(Attenuation {
                by: agent(bytes)?,
                from: grant(bytes)?,
                holder: agent(bytes)?,
                authority: authority(bytes, dirs)?,
                uses: uses(bytes),
                lifetime: lifetime(bytes),
            }),
            Kind::Other,
        ),
        12 => {
            let grant = grant(bytes)?;
            (Event::Revoke(grant), Kind::Revoke(grant))
        }
        13 => {
            let count = bytes.int_in_range(0..=2_usize).ok()?;
            let forward: Vec<GrantId> = (0..count).filter_map(|_| grant(bytes)).collect();
            let parent = agent(bytes)?;
            (
                Event::Spawn {
                    parent,
                    forward: forward.clone(),
                },
                Kind::Spawn(forward),
            )
        }
        14 => {
            let call = call(bytes)?;
            let outcome = Outcome::Stopped;
            (Event::Finished { call, outcome }, Kind::Finished(call))
        }
        _ => match bytes.int_in_range(0..=7_u8).ok()? {
            0 => (Event::End, Kind::End),
            1 => (Event::Note("a note".to_owned()), Kind::Other),
            _ => (Event::Tick, Kind::Other),
        },
    })
}

fn answer(bytes: &mut Unstructured<'_>, book: &Book) -> Option<Answer> {
    let open: Vec<(QuestionId, Digest)> = book.questions.iter().map(|(q, d)| (*q, *d)).collect();
    let (question, shown) = *bytes.choose(&open).ok()?;
    let digest = match bytes.int_in_range(0..=4_u8).ok()? {
        0 => sha256(b"something else"),
        _ => shown,
    };
    let reply = match bytes.int_in_range(0..=9_u8).ok()? {
        0..=2 => Reply::Yes(Scope::Once),
        3 => Reply::Yes(Scope::Session),
        4 => Reply::Yes(Scope::Always),
        5 => Reply::No,
        6 => Reply::Unknown("maybe".to_owned()),
        7 => Reply::Silence,
        8 => Reply::Cancelled,
        _ => Reply::Failed,
    };
    Some(Answer {
        question,
        digest,
        reply,
    })
}

fn actions(bytes: &mut Unstructured<'_>, dirs: [DirId; 2]) -> Vec<Action> {
    let count = bytes.int_in_range(0..=ACTIONS_MAX).unwrap_or(0);
    (0..count).filter_map(|_| action(bytes, dirs)).collect()
}

fn action(bytes: &mut Unstructured<'_>, dirs: [DirId; 2]) -> Option<Action> {
    let cap = cap(bytes, dirs)?;
    let digest = sha256(&[bytes.int_in_range(0..=3_u8).ok()?]);
    // Files are what most calls are about; the rest stays as it came.
    match cap.object() {
        Object::Dir { dir, .. } => Action::on_path(cap.verb(), *dir, rel_path(bytes)?, digest).ok(),
        object => Action::new(cap.verb(), object.clone(), digest).ok(),
    }
}

fn authority(bytes: &mut Unstructured<'_>, dirs: [DirId; 2]) -> Option<Authority> {
    let count = bytes.int_in_range(1..=3_usize).ok()?;
    let caps: Vec<Cap> = (0..count).filter_map(|_| cap(bytes, dirs)).collect();
    Authority::from_caps(caps).ok()
}

fn uses(bytes: &mut Unstructured<'_>) -> Uses {
    match bytes.int_in_range(0..=3_u64).unwrap_or(0) {
        0 => Uses::Uncounted,
        n => Uses::AtMost(n),
    }
}

fn lifetime(bytes: &mut Unstructured<'_>) -> Lifetime {
    match bytes.int_in_range(0..=2_u8).unwrap_or(0) {
        0 => Lifetime::Session,
        1 => Lifetime::For(Millis::from_seconds(60)),
        _ => Lifetime::For(Millis::new(u64::MAX)),
    }
}

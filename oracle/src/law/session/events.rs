//! Events made from bytes, about what the book knows.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use hermitcrab_core::action::Action;
use hermitcrab_core::approval::{Answer, QuestionId, Reply, Scope};
use hermitcrab_core::authority::{Authority, Cap, DirId, Object};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{GrantId, Lifetime, UpstreamId, Uses};
use hermitcrab_core::outcome::Outcome;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::session::{Asking, Attenuation, Call, Event, GrantSpec};
use hermitcrab_core::time::Millis;
use hermitcrab_core::tool::Tool;

use super::super::authority::{cap, rel_path};
use super::super::opened::sha256;
use super::book::{Book, Kind};

const ACTIONS_MAX: usize = 4;

/// What actions are about.
static CONTENTS: LazyLock<[Digest; 4]> = LazyLock::new(|| [0, 1, 2, 3].map(|one| sha256(&[one])));
/// What nobody was shown.
static NOT_SHOWN: LazyLock<Digest> = LazyLock::new(|| sha256(b"something else"));

pub(super) fn event(
    bytes: &mut Unstructured<'_>,
    book: &Book,
    dirs: [DirId; 2],
) -> Option<(Event, Kind)> {
    let agent = |bytes: &mut Unstructured<'_>| bytes.choose(&book.agents).copied().ok();
    let grant = |bytes: &mut Unstructured<'_>| bytes.choose_iter(book.lines.keys()).ok().copied();
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
        4 | 5 if !book.yes.is_empty() && bytes.ratio(3_u8, 4).ok()? => looks(bytes, book, dirs)?,
        4 | 5 => {
            let call = call(bytes)?;
            let actions = actions(bytes, dirs);
            let early = bytes.ratio(1_u8, 4).unwrap_or(false);
            if early {
                (
                    Event::EffectsSoFar { call, actions },
                    Kind::EarlyEffects(call),
                )
            } else {
                (Event::Effects { call, actions }, Kind::Effects(call))
            }
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
        11 => {
            let (by, from) = (agent(bytes)?, grant(bytes)?);
            let wanted = Attenuation {
                by,
                from,
                holder: agent(bytes)?,
                authority: authority(bytes, dirs)?,
                uses: uses(bytes),
                lifetime: lifetime(bytes),
            };
            (Event::Attenuate(wanted), Kind::Derive(by, from))
        }
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
        _ => return late_event(bytes, book, dirs),
    })
}

/// The rarer events.
fn late_event(
    bytes: &mut Unstructured<'_>,
    book: &Book,
    dirs: [DirId; 2],
) -> Option<(Event, Kind)> {
    let agent = |bytes: &mut Unstructured<'_>| bytes.choose(&book.agents).copied().ok();
    let grant = |bytes: &mut Unstructured<'_>| bytes.choose_iter(book.lines.keys()).ok().copied();
    Some(match bytes.int_in_range(0..=17_u8).ok()? {
        0 => (Event::End, Kind::End),
        1 => (Event::Note("a note".to_owned()), Kind::Other),
        2..=4 => {
            let grant = grant(bytes)?;
            (Event::RevokeAndDrain(grant), Kind::Revoke(grant))
        }
        5 | 6 => {
            let (by, holder) = (agent(bytes)?, agent(bytes)?);
            let from = grant(bytes)?;
            (Event::Forward { by, from, holder }, Kind::Derive(by, from))
        }
        7 => (Event::EndAgent(agent(bytes)?), Kind::EndAgent),
        8 | 9 => {
            let answer = answer(bytes, book)?;
            let kind = Kind::Answer(answer.clone());
            (Event::AnswerAndRemember(answer), kind)
        }
        10 => (Event::Forget(None), Kind::Other),
        11 => {
            let asking = *bytes.choose(&Asking::ALL).ok()?;
            (Event::SetAsking(asking), Kind::Other)
        }
        12 => {
            let spec = GrantSpec {
                holder: agent(bytes)?,
                authority: authority(bytes, dirs)?,
                uses: uses(bytes),
                lifetime: lifetime(bytes),
            };
            (Event::GrantFrom(UpstreamId(1), spec), Kind::Other)
        }
        13 => (Event::UpstreamLost(UpstreamId(1)), Kind::Other),
        14..=16 => {
            let answer = answer(bytes, book)?;
            let wider = wider(bytes, book, answer.question, dirs)?;
            let kind = Kind::AnswerHolding(answer.clone(), wider.clone());
            (Event::AnswerHolding { answer, wider }, kind)
        }
        _ => (Event::Tick, Kind::Other),
    })
}

/// Further looks of a call: mostly at what a yes let it look at, at times at anything.
fn looks(bytes: &mut Unstructured<'_>, book: &Book, dirs: [DirId; 2]) -> Option<(Event, Kind)> {
    let (call, asked) = bytes.choose_iter(book.yes.iter()).ok()?;
    let mut all = actions(bytes, dirs);
    for cap in asked {
        if let Object::Dir { dir, below, .. } = cap.object()
            && let Ok(below) = below.join(&rel_path(bytes)?)
        {
            all.extend(Action::on_path(cap.verb(), *dir, below, Digest::NONE));
        }
    }
    if bytes.ratio(2_u8, 3).unwrap_or(true) {
        all.retain(|action| asked.iter().any(|cap| cap.covers(action.cap())));
    }
    let event = Event::LooksFurther {
        call: *call,
        actions: all,
    };
    Some((event, Kind::Looks(*call)))
}

/// What whoever answers wants held: mostly all of each directory asked about, at times
/// with something else beside it, at times anything.
fn wider(
    bytes: &mut Unstructured<'_>,
    book: &Book,
    question: QuestionId,
    dirs: [DirId; 2],
) -> Option<Authority> {
    let any = authority(bytes, dirs)?;
    let asked = &book.questions.get(&question)?.asked;
    let all_of = |cap: &Cap| match cap.object() {
        Object::Dir { dir, .. } => {
            let (dir, below) = (*dir, RelPath::root());
            Cap::new(cap.verb(), Object::tree(dir, below)).ok()
        }
        _ => Some(cap.clone()),
    };
    let whole: Vec<Cap> = asked.iter().filter_map(all_of).collect();
    match bytes.int_in_range(0..=3_u8).ok()? {
        0 => Some(any),
        1 => Authority::from_caps(whole.into_iter().chain(any.caps().iter().cloned())).ok(),
        _ => Authority::from_caps(whole).ok(),
    }
}

fn answer(bytes: &mut Unstructured<'_>, book: &Book) -> Option<Answer> {
    let (question, put) = bytes.choose_iter(book.questions.iter()).ok()?;
    let (question, shown) = (*question, put.digest);
    let digest = match bytes.int_in_range(0..=4_u8).ok()? {
        0 => *NOT_SHOWN,
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
    let digest = *CONTENTS.get(bytes.int_in_range(0..=3_usize).ok()?)?;
    // Files are what most calls are about; the rest stays as it came.
    match cap.object() {
        Object::Dir { dir, .. } => {
            let (verb, below) = (cap.verb(), rel_path(bytes)?);
            match bytes.ratio(1, 8).ok()? {
                true => Action::on_tree(verb, *dir, below, digest).ok(),
                false => Action::on_path(verb, *dir, below, digest).ok(),
            }
        }
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

//! Every order in which threads can use a shared session, up to two
//! preemptions: the real session behind the real lock, with the model checker's
//! own mutex and condition in place of the system's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sync {
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
}

#[path = "../src/live.rs"]
#[expect(dead_code, reason = "not every way in is a matter of order")]
mod live;

use hermitcrab_core::{
    action::Action,
    approval::CallId,
    audit::Head,
    authority::{Authority, Cap, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, GrantId, Lifetime, Uses},
    outcome::{DenialCode, Outcome},
    rules::Isolation,
    session::{Asking, Attenuation, Call, Event, GrantSpec, Session, SessionConfig},
    time::{Instant, Millis},
    tool::Tool,
};
use live::{Live, Stopped};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Tries every order of the threads in `model`, up to two preemptions.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn no_hash(_: &[u8]) -> Digest {
    Digest::NONE
}

fn any_program() -> Authority {
    Authority::of(Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).unwrap())
}

/// A session whose first agent may run programs this often, and the grant for it.
fn session(uses: Uses, lifetime: Lifetime) -> (Session, GrantId) {
    let (mut session, _) = Session::open(SessionConfig {
        id: 1,
        hash: no_hash,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let grant = Event::Grant(GrantSpec {
        holder: AgentId::FIRST,
        authority: any_program(),
        uses,
        lifetime,
    });
    let grant = session
        .step(Instant::BOOT, grant)
        .into_parts()
        .granted
        .unwrap();
    (session, grant)
}

fn at_boot() -> live::Now {
    Box::new(|| Instant::BOOT)
}

fn run() -> Event {
    let object = Object::Program(Program::AnyInView);
    Event::Call(Call {
        by: AgentId::FIRST,
        tool: Tool::Terminal,
        actions: vec![Action::new(Verb::ProcExec, object, Digest::NONE).unwrap()],
    })
}

/// Starts a command: permit spent, or the code of the refusal.
fn start(live: &Live) -> Result<CallId, DenialCode> {
    live.turn(run(), |mut parts| match parts.permits.pop() {
        Some(permit) => Ok(permit.spend().call()),
        None => Err(parts.denials[0].1.code()),
    })
}

#[test]
fn the_last_use_is_used_once() {
    explore(|| {
        let (session, _) = session(Uses::AtMost(1), Lifetime::Session);
        let live = Live::new(session, at_boot());
        let other = live.clone();
        let thread = thread::spawn(move || start(&other).is_ok());
        let mine = start(&live).is_ok();
        let theirs = thread.join().unwrap();
        assert!(mine != theirs, "used {mine} and {theirs}");
    });
}

#[test]
fn two_holders_of_one_last_use_share_it() {
    explore(|| {
        let (mut session, grant) = session(Uses::AtMost(1), Lifetime::Session);
        for _ in 0..2 {
            let narrowed = Event::Attenuate(Attenuation {
                by: AgentId::FIRST,
                from: grant,
                holder: AgentId::FIRST,
                authority: any_program(),
                uses: Uses::Uncounted,
                lifetime: Lifetime::Session,
            });
            assert!(session.step(Instant::BOOT, narrowed).denial().is_none());
        }
        let live = Live::new(session, at_boot());
        let other = live.clone();
        let thread = thread::spawn(move || start(&other).is_ok());
        let mine = start(&live).is_ok();
        assert!(mine != thread.join().unwrap());
    });
}

#[test]
fn after_a_revocation_returns_nothing_starts_and_what_ran_was_killed() {
    explore(|| {
        let (session, grant) = session(Uses::Uncounted, Lifetime::Session);
        let live = Live::new(session, at_boot());
        let other = live.clone();
        let revoked = Arc::new(AtomicUsize::new(0));
        let seen = revoked.clone();
        let killed = Arc::new(AtomicUsize::new(0));
        let switch = killed.clone();
        let thread = thread::spawn(move || {
            let before = seen.load(Ordering::SeqCst);
            let started = start(&other);
            if let Ok(call) = started {
                assert_eq!(before, 0, "a call began after the revocation returned");
                let kill = Box::new(move || {
                    switch.fetch_add(1, Ordering::SeqCst);
                });
                let registered = other.runs(call, kill);
                (true, registered == Err(Stopped))
            } else {
                (false, false)
            }
        });
        live.revoke(grant, |_| ());
        revoked.store(1, Ordering::SeqCst);
        let (began, refused) = thread.join().unwrap();
        // However it came: a call that began is dead by now, killed exactly once.
        assert_eq!(killed.load(Ordering::SeqCst), usize::from(began));
        assert!(!refused || began);
        assert_eq!(start(&live), Err(DenialCode::Revoked));
    });
}

#[test]
fn after_a_drain_returns_no_effect_happens() {
    explore(|| {
        let (session, grant) = session(Uses::Uncounted, Lifetime::Session);
        let live = Live::new(session, at_boot());
        let other = live.clone();
        let drained = Arc::new(AtomicUsize::new(0));
        let seen = drained.clone();
        let thread = thread::spawn(move || {
            if let Ok(call) = start(&other) {
                // The effect, some time after the permit was spent.
                assert_eq!(seen.load(Ordering::SeqCst), 0, "an effect after the drain");
                other.finished(call, Outcome::Stopped, |_| ());
            }
        });
        live.revoke_and_drain(grant, |_| ());
        drained.store(1, Ordering::SeqCst);
        assert!(live.look(|session| session.is_drained(grant)));
        thread.join().unwrap();
    });
}

#[test]
fn a_parent_revoked_drains_what_its_child_runs() {
    explore(|| {
        let (mut session, grant) = session(Uses::Uncounted, Lifetime::Session);
        let spawn = Event::Spawn {
            parent: AgentId::FIRST,
            forward: vec![grant],
        };
        let (child, _) = session
            .step(Instant::BOOT, spawn)
            .into_parts()
            .spawned
            .unwrap();
        let live = Live::new(session, at_boot());
        let other = live.clone();
        let drained = Arc::new(AtomicUsize::new(0));
        let seen = drained.clone();
        let thread = thread::spawn(move || {
            let Event::Call(call) = run() else { return };
            let call = Event::Call(Call { by: child, ..call });
            let started = other.turn(call, |mut parts| Some(parts.permits.pop()?.spend().call()));
            if let Some(call) = started {
                assert_eq!(seen.load(Ordering::SeqCst), 0, "a child outran the drain");
                other.finished(call, Outcome::Stopped, |_| ());
            }
        });
        live.revoke_and_drain(grant, |_| ());
        drained.store(1, Ordering::SeqCst);
        thread.join().unwrap();
    });
}

#[test]
fn nothing_starts_after_its_deadline() {
    explore(|| {
        let (session, _) = session(Uses::Uncounted, Lifetime::For(Millis::new(5)));
        let clock = Arc::new(AtomicU64::new(5));
        let reading = clock.clone();
        let now = move || Instant::from_millis(reading.load(Ordering::SeqCst));
        let live = Live::new(session, Box::new(now));
        assert_eq!(live.quiet_until(), Some(Instant::from_millis(5)));
        let other = live.clone();
        let passed = Arc::new(AtomicUsize::new(0));
        let seen = passed.clone();
        let thread = thread::spawn(move || {
            let before = seen.load(Ordering::SeqCst);
            let started = start(&other).is_ok();
            assert!(!(started && before == 1), "a use after the deadline");
        });
        clock.store(6, Ordering::SeqCst);
        passed.store(1, Ordering::SeqCst);
        let expired = live.turn(Event::Tick, |parts| parts.expired.len());
        assert_eq!(expired, 1);
        thread.join().unwrap();
        assert_eq!(start(&live), Err(DenialCode::Expired));
    });
}

#[test]
fn no_agent_is_born_into_a_session_that_ended() {
    explore(|| {
        let (session, grant) = session(Uses::Uncounted, Lifetime::Session);
        let live = Live::new(session, at_boot());
        let other = live.clone();
        let thread = thread::spawn(move || {
            let spawn = Event::Spawn {
                parent: AgentId::FIRST,
                forward: vec![grant],
            };
            other.turn(spawn, |parts| parts.spawned)
        });
        live.turn(Event::End, |_| ());
        let born = thread.join().unwrap();
        live.look(|session| {
            for id in born.iter().flat_map(|(_, grants)| grants) {
                let state = session.table().usable(*id, Instant::BOOT);
                assert_eq!(state, Err(DenialCode::Revoked), "it outlived the session");
            }
        });
    });
}

/// The explorer can fail: a check and a use in two steps spend the last use twice.
#[test]
fn checking_first_and_using_later_is_caught() {
    let caught = std::panic::catch_unwind(|| {
        explore(|| {
            let (session, grant) = session(Uses::AtMost(1), Lifetime::Session);
            let live = Live::new(session, at_boot());
            let used = Arc::new(AtomicUsize::new(0));
            let (other, theirs) = (live.clone(), used.clone());
            let careless = move |live: &Live, used: &AtomicUsize| {
                let fine = live.look(|session| session.table().usable(grant, Instant::BOOT));
                if fine.is_ok() {
                    used.fetch_add(1, Ordering::SeqCst);
                    let _ = start(live);
                }
            };
            let thread = thread::spawn(move || careless(&other, &theirs));
            careless(&live, &used);
            thread.join().unwrap();
            assert!(
                used.load(Ordering::SeqCst) <= 1,
                "the last use was used twice"
            );
        });
    });
    assert!(caught.is_err());
}

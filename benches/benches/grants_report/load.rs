//! Eight threads that use one grant of one session, and end it: no use too
//! many, none after the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant as Moment;

use hermitcrab::live::Live;
use hermitcrab_core::action::Action;
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{Authority, Cap, Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::outcome::{DenialCode, Outcome};
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;

/// How many at one time.
pub const THREADS: u64 = 8;

/// What came of it.
pub struct Done {
    pub operations: u64,
    pub limit: u64,
    pub used: u64,
    pub refused: u64,
    pub seconds: f64,
}

fn no_hash(_: &[u8]) -> Digest {
    Digest::NONE
}

fn call(live: &Live) -> Result<hermitcrab_core::approval::CallId, DenialCode> {
    let object = Object::Program(Program::AnyInView);
    let event = Event::Call(Call {
        by: AgentId::FIRST,
        tool: Tool::Terminal,
        actions: vec![Action::new(Verb::ProcExec, object, Digest::NONE).unwrap()],
    });
    live.turn(event, |mut parts| match parts.permits.pop() {
        Some(permit) => Ok(permit.spend().call()),
        None => Err(parts.denials[0].1.code()),
    })
}

/// Lets them work; panics where something does not hold.
pub fn run(operations: u64) -> Done {
    let limit = operations / 4;
    let (mut session, _) = Session::open(SessionConfig {
        id: 1,
        hash: no_hash,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let cap = Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).unwrap();
    let spec = Event::Grant(GrantSpec {
        holder: AgentId::FIRST,
        authority: Authority::of(cap),
        uses: Uses::AtMost(limit),
        lifetime: Lifetime::Session,
    });
    let granted = session.step(Instant::BOOT, spec).into_parts().granted;
    let grant = granted.unwrap();
    let live = Live::new(session, Box::new(|| Instant::BOOT));
    let (used, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let revoked = Arc::new(AtomicBool::new(false));
    let started = Moment::now();
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (live, used) = (live.clone(), Arc::clone(&used));
            let (refused, revoked) = (Arc::clone(&refused), Arc::clone(&revoked));
            std::thread::spawn(move || {
                for _ in 0..operations / THREADS {
                    // One of them ends the grant when most of its uses are spent.
                    let is_last = used.load(Ordering::SeqCst) > limit / 4 * 3;
                    if number == 0 && is_last && !revoked.load(Ordering::SeqCst) {
                        live.revoke(grant, |_| ());
                        revoked.store(true, Ordering::SeqCst);
                    }
                    let was_revoked = revoked.load(Ordering::SeqCst);
                    match call(&live) {
                        Ok(call) => {
                            assert!(!was_revoked, "a call after the revocation");
                            used.fetch_add(1, Ordering::SeqCst);
                            live.finished(call, Outcome::Done(Digest::NONE), |_| ());
                        }
                        Err(DenialCode::Exhausted | DenialCode::Revoked) => {
                            refused.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(code) => panic!("{code}"),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let (used, refused) = (used.load(Ordering::SeqCst), refused.load(Ordering::SeqCst));
    assert!(used <= limit, "{used} uses of {limit}");
    assert_eq!(used + refused, operations / THREADS * THREADS);
    let charged = live.look(|session| session.table().get(grant).unwrap().used());
    assert_eq!(charged, used, "charged as often as used");
    Done {
        operations: used + refused,
        limit,
        used,
        refused,
        seconds: started.elapsed().as_secs_f64(),
    }
}

//! What the benchmarks share: a session over one directory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code, reason = "each benchmark uses its own part of this file")]

use hermitcrab_core::Permit;
use hermitcrab_core::action::Action;
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::outcome::Outcome;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::sha256;

pub fn rel(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

pub fn on_dir(verb: Verb, dir: DirId, below: RelPath) -> Cap {
    Cap::new(verb, Object::tree(dir, below)).unwrap()
}

/// A session whose agent holds everything in one directory, and any program in a view.
pub fn session() -> (Session, DirId) {
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let dir = session.add_dir(rel("work")).unwrap();
    let mut caps: Vec<Cap> = Verb::FILES
        .into_iter()
        .map(|verb| on_dir(verb, dir, RelPath::root()))
        .collect();
    caps.push(Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).unwrap());
    grant(&mut session, caps);
    (session, dir)
}

pub fn grant(session: &mut Session, caps: Vec<Cap>) {
    let parts = session
        .step(
            Instant::BOOT,
            Event::Grant(GrantSpec {
                holder: AgentId::FIRST,
                authority: Authority::from_caps(caps).unwrap(),
                uses: Uses::Uncounted,
                lifetime: Lifetime::Session,
            }),
        )
        .into_parts();
    assert!(parts.granted.is_some());
}

/// One whole turn: the call, its permit spent by `spend`, and its end.
pub fn turn<R>(
    session: &mut Session,
    tool: Tool,
    action: Action,
    spend: impl FnOnce(Permit<'_>) -> R,
) -> R {
    let mut parts = session
        .step(
            Instant::BOOT,
            Event::Call(Call {
                by: AgentId::FIRST,
                tool,
                actions: vec![action],
            }),
        )
        .into_parts();
    let call = parts.call.unwrap();
    let result = spend(parts.permits.pop().unwrap());
    let _record = session.step(
        Instant::BOOT,
        Event::Finished {
            call,
            outcome: Outcome::Done(Digest::NONE),
        },
    );
    result
}

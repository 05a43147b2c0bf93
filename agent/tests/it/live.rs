//! A shared session among real threads and real processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use hermitcrab::{
    ambient::BootClock,
    live::{Live, Now, Stopped},
    ports::Clock as _,
};
use hermitcrab_core::{
    action::Action,
    approval::CallId,
    audit::Head,
    authority::{Authority, Cap, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, GrantId, Lifetime, Uses},
    outcome::{DenialCode, Outcome},
    rules::Isolation,
    session::{Asking, Call, Event, GrantSpec, Session, SessionConfig},
    time::Instant,
    tool::Tool,
};

fn no_hash(_: &[u8]) -> Digest {
    Digest::NONE
}

fn at_boot() -> Now {
    Box::new(|| Instant::BOOT)
}

fn live(uses: Uses, now: Now) -> (Live, GrantId) {
    let opened_at = now();
    let (mut session, _) = Session::open(SessionConfig {
        id: 1,
        hash: no_hash,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at,
    });
    let cap = Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).unwrap();
    let grant = Event::Grant(GrantSpec {
        holder: AgentId::FIRST,
        authority: Authority::of(cap),
        uses,
        lifetime: Lifetime::Session,
    });
    let grant = session.step(opened_at, grant).into_parts().granted.unwrap();
    (Live::new(session, now), grant)
}

fn start(live: &Live) -> Result<CallId, DenialCode> {
    let object = Object::Program(Program::AnyInView);
    let call = Event::Call(Call {
        by: AgentId::FIRST,
        tool: Tool::Terminal,
        actions: vec![Action::new(Verb::ProcExec, object, Digest::NONE).unwrap()],
    });
    live.turn(call, |mut parts| match parts.permits.pop() {
        Some(permit) => Ok(permit.spend().call()),
        None => Err(parts.denials[0].1.code()),
    })
}

fn sleeper() -> Child {
    Command::new("/bin/sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_revocation_in_mid_run_kills_the_process_and_the_drain_waits_for_its_end() {
    let (live, grant) = live(Uses::Uncounted, Box::new(|| BootClock.now()));
    let (begun, has_begun) = mpsc::channel();
    let worker = live.clone();
    let running = thread::spawn(move || {
        let call = start(&worker).unwrap();
        let child = Arc::new(Mutex::new(sleeper()));
        let pid = child.lock().unwrap().id();
        // A process that is not waited for keeps its number, so the kill cannot miss.
        let raw = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let kill = move || {
            rustix::process::kill_process(raw, rustix::process::Signal::KILL).unwrap();
        };
        worker.runs(call, Box::new(kill)).unwrap();
        begun.send(pid).unwrap();
        let status = child.lock().unwrap().wait().unwrap();
        worker.finished(call, Outcome::Stopped, |_| ());
        status
    });
    let pid = has_begun.recv().unwrap();
    let asked = BootClock.now();
    let stopped = live.revoke_and_drain(grant, |parts| parts.stopped.len());
    let took = BootClock.now().as_millis() - asked.as_millis();
    assert_eq!(stopped, 1);
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "drained means the process is gone"
    );
    let status = running.join().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    assert_eq!(start(&live), Err(DenialCode::Revoked));
    println!("revoke and drain of a running process took {took} ms");
}

#[test]
fn a_call_stopped_before_it_said_how_to_kill_it_is_killed_when_it_does() {
    let (live, grant) = live(Uses::Uncounted, at_boot());
    let call = start(&live).unwrap();
    live.revoke(grant, |_| ());
    let killed = Arc::new(AtomicUsize::new(0));
    let switch = killed.clone();
    let kill = Box::new(move || {
        switch.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(live.runs(call, kill), Err(Stopped));
    assert_eq!(killed.load(Ordering::SeqCst), 1);
}

#[test]
fn a_thread_that_breaks_down_ends_the_session_and_kills_what_runs() {
    let (live, _) = live(Uses::Uncounted, at_boot());
    let call = start(&live).unwrap();
    let killed = Arc::new(AtomicUsize::new(0));
    let switch = killed.clone();
    let kill = Box::new(move || {
        switch.fetch_add(1, Ordering::SeqCst);
    });
    live.runs(call, kill).unwrap();
    let other = live.clone();
    let broken = thread::spawn(move || other.turn(Event::Tick, |_| panic!("it broke")));
    assert!(broken.join().is_err());
    assert_eq!(start(&live), Err(DenialCode::SessionEnded));
    assert_eq!(killed.load(Ordering::SeqCst), 1);
}

#[test]
fn the_clock_is_the_one_that_runs_on_during_suspend_and_knows_no_date() {
    use rustix::time::{ClockId, clock_gettime};
    let millis = || {
        let time = clock_gettime(ClockId::Boottime);
        u64::try_from(time.tv_sec).unwrap() * 1000
            + u64::try_from(time.tv_nsec).unwrap() / 1_000_000
    };
    let (before, now, after) = (millis(), BootClock.now().as_millis(), millis());
    assert!(before <= now && now <= after, "{before} {now} {after}");
}

/// Operations of the stress test; ten million where the code is optimised.
const OPERATIONS: u64 = if cfg!(debug_assertions) {
    160_000
} else {
    10_000_000
};
const THREADS: u64 = 8;

#[test]
fn eight_threads_never_use_a_grant_more_often_than_allowed_nor_after_its_end() {
    let limit = OPERATIONS / 4;
    let (live, grant) = live(Uses::AtMost(limit), at_boot());
    let used = Arc::new(AtomicU64::new(0));
    let refused = Arc::new(AtomicU64::new(0));
    let revoked = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (live, used, refused) = (live.clone(), used.clone(), refused.clone());
            let revoked = revoked.clone();
            thread::spawn(move || {
                for turn in 0..OPERATIONS / THREADS {
                    // One of them ends the grant when most of its uses are spent.
                    if number == 0 && used.load(Ordering::SeqCst) > limit / 4 * 3 {
                        live.revoke(grant, |_| ());
                        revoked.store(1, Ordering::SeqCst);
                    }
                    let was_revoked = revoked.load(Ordering::SeqCst) == 1;
                    match start(&live) {
                        Ok(call) => {
                            assert!(!was_revoked, "turn {turn}: a call after the revocation");
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
    assert_eq!(used + refused, OPERATIONS / THREADS * THREADS);
    let charged = live.look(|session| session.table().get(grant).unwrap().used());
    assert_eq!(charged, used, "charged as often as used");
    println!("{OPERATIONS} operations: {used} uses of {limit}, {refused} refusals");
}

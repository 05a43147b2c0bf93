//! The session and the ledger as one thing that several threads hold.
//!
//! What for: while a command runs, or a model or a person is waited for, a
//! grant can be ended from elsewhere, and a deadline passes. Why here: the
//! session decides, the ledger must hear of it in the same order, so both are
//! stepped under one lock ([`Live`]), and records are on the disk before
//! anything they announce. It must never decide anything itself.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hermitcrab_core::{
    action::Action,
    approval::CallId,
    audit::Record,
    digest::Digest,
    grant::AgentId,
    label::{Label, Readers, Source},
    outcome::{Denial, DenialCode, Outcome},
    session::{Event, Parts, Session},
    time::Instant,
};

use crate::{
    audit::{Ledger, LedgerError},
    live::{Kill, Live, Stopped},
    ports::Clock,
};

/// A session whose events are in the ledger; clones are the same one.
#[derive(Clone)]
pub struct Machine {
    live: Live,
    ledger: Arc<Mutex<Ledger>>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl Machine {
    /// Shares a session and its ledger.
    pub(super) fn new(session: Session, ledger: Arc<Mutex<Ledger>>, clock: Arc<dyn Clock>) -> Self {
        Self {
            live: Live::new(session, {
                let clock = Arc::clone(&clock);
                Box::new(move || clock.now())
            }),
            ledger,
            clock,
        }
    }

    /// Another session on the ledger of one that ended.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub(super) fn following(
        ended: &Self,
        session: Session,
        opening: &[Record],
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, LedgerError> {
        lock(&ended.ledger).append(opening)?;
        Ok(Self::new(
            session,
            Arc::clone(&ended.ledger),
            Arc::clone(clock),
        ))
    }

    /// Steps the session; the records are written before `act` may spend what
    /// it is given.
    ///
    /// # Errors
    /// The ledger cannot be written; nothing was spent.
    pub fn turn<R>(
        &self,
        event: Event,
        act: impl FnOnce(Parts<'_>) -> R,
    ) -> Result<R, LedgerError> {
        self.turn_recorded(event, Ledger::append, act)
    }

    /// The same for a call that only looks: the disk is waited for before what was
    /// seen is told ([`Machine::settle_looks`]).
    ///
    /// # Errors
    /// As for [`Machine::turn`].
    pub fn turn_looking<R>(
        &self,
        event: Event,
        act: impl FnOnce(Parts<'_>) -> R,
    ) -> Result<R, LedgerError> {
        self.turn_recorded(event, Ledger::append_look, act)
    }

    fn turn_recorded<R>(
        &self,
        event: Event,
        append: impl FnOnce(&mut Ledger, &[Record]) -> Result<(), LedgerError>,
        act: impl FnOnce(Parts<'_>) -> R,
    ) -> Result<R, LedgerError> {
        let mut unrecorded = None;
        let done = self.live.turn(event, |parts| {
            if let Err(error) = append(&mut lock(&self.ledger), &parts.records) {
                unrecorded = parts.call.filter(|_| !parts.permits.is_empty());
                return Err(error);
            }
            Ok(act(parts))
        });
        if let Some(call) = unrecorded {
            // Its permits are gone unspent: nothing of it runs, and whoever
            // drains its grants must not wait for it.
            let outcome = Outcome::Refused(DenialCode::LedgerUnwritable);
            self.live.turn(Event::Finished { call, outcome }, |_| ());
        }
        done
    }

    /// Steps the session with an event that permits nothing.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn step(&self, event: Event) -> Result<Parts<'static>, LedgerError> {
        let mut parts = self.turn(event, |parts| parts.without_permits())?;
        for (_, denial) in &mut parts.denials {
            let spelled = self.spelled(denial.clone());
            *denial = spelled;
        }
        Ok(parts)
    }

    /// Remembers that data from a network reaches an agent, and says whether that is on record.
    pub(super) fn hears_of_the_network(&self, agent: AgentId) -> bool {
        let label = Label::new(Source::Network, Readers::Anyone);
        let heard = self.step(Event::Heard { agent, label });
        // What was no news may not be on record, so the disk is asked for all of it.
        heard.is_ok_and(|parts| parts.denials.is_empty()) && self.settle().is_ok()
    }

    /// A refusal that names its place by the path a person or a model knows it by, and
    /// not by the session's own name.
    pub(super) fn spelled(&self, denial: Denial) -> Denial {
        let Some(cap) = denial.cap() else {
            return denial;
        };
        let portable = Action::new(cap.verb(), cap.object().clone(), Digest::NONE)
            .ok()
            .and_then(|action| self.look(|session| session.rules().portable(&action)));
        match portable {
            Some(cap) => denial.said_as(cap.asked()),
            None => denial,
        }
    }

    /// Waits until the records of every look are on the disk.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn settle_looks(&self) -> Result<(), LedgerError> {
        lock(&self.ledger).settle_looks()
    }

    /// Waits until every record is on the disk, those included that nothing waits for.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn settle(&self) -> Result<(), LedgerError> {
        lock(&self.ledger).settle()
    }

    /// The time on the session's own clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Looks at the session.
    pub fn look<R>(&self, look: impl FnOnce(&Session) -> R) -> R {
        self.live.look(look)
    }

    /// Tells the session of places and rules, which takes no event.
    pub fn arrange<R>(&self, arrange: impl FnOnce(&mut Session) -> R) -> R {
        self.live.arrange(arrange)
    }

    /// Says how to kill what a call runs; see [`Live::runs`].
    ///
    /// # Errors
    /// It was stopped in the meantime; `kill` was called.
    pub fn runs(&self, call: CallId, kill: Kill) -> Result<(), Stopped> {
        self.live.runs(call, kill)
    }

    /// Waits until nothing runs on a grant or below it; see [`Live::drained`].
    pub fn drained(&self, grant: hermitcrab_core::grant::GrantId) {
        self.live.drained(grant);
    }

    /// Why a running call may not go on, if it may not.
    #[must_use]
    pub fn why_stopped(&self, call: CallId) -> Option<DenialCode> {
        self.live.look(|session| session.why_stopped(call))
    }

    /// The last instant at which a tick would find nothing to do.
    #[must_use]
    pub fn quiet_until(&self) -> Option<Instant> {
        self.live.quiet_until()
    }
}

/// Nothing a ledger does is left half done by a panic elsewhere: it counts
/// what is whole, and a disk that failed once is not written to again.
fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        path::Path,
        sync::atomic::{AtomicBool, Ordering},
    };

    use hermitcrab_core::{
        audit::Head,
        authority::{Authority, Cap, Object, Program, Verb},
        grant::{Lifetime, Uses},
        rules::Isolation,
        session::{Asking, Call, GrantSpec, SessionConfig},
        tool::Tool,
    };

    use super::*;
    use crate::{audit::disk::Disk, digest::sha256};

    /// A disk that keeps nothing, until it is full and takes nothing.
    #[derive(Debug)]
    struct Filling(Arc<AtomicBool>);

    impl Disk for Filling {
        fn read_at(&mut self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.load(Ordering::SeqCst) {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(bytes.len()),
            }
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn cut(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Debug)]
    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> Instant {
            Instant::BOOT
        }
    }

    /// A machine on a disk that takes nothing once this is so.
    fn on_a_disk_that_fills() -> (Machine, Arc<AtomicBool>) {
        let is_full = Arc::new(AtomicBool::new(false));
        let disk = Box::new(Filling(Arc::clone(&is_full)));
        let (ledger, _) = Ledger::on(disk, Path::new("ledger")).unwrap();
        let (session, _) = Session::open(SessionConfig {
            id: 1,
            hash: sha256,
            isolation: Isolation::Isolated,
            protected: Vec::new(),
            asking: Asking::Refuse,
            ledger: Head::EMPTY,
            opened_at: Instant::BOOT,
        });
        let machine = Machine::new(session, Arc::new(Mutex::new(ledger)), Arc::new(Noon));
        (machine, is_full)
    }

    /// At the second attempt it is no news, and on record no more than before.
    #[test]
    fn what_comes_from_a_network_comes_once_it_is_on_record_however_often_it_is_tried() {
        let (machine, is_full) = on_a_disk_that_fills();
        is_full.store(true, Ordering::SeqCst);
        for _ in 0..3 {
            assert!(!machine.hears_of_the_network(AgentId::FIRST));
        }
        let (machine, _) = on_a_disk_that_fills();
        for _ in 0..2 {
            assert!(machine.hears_of_the_network(AgentId::FIRST));
        }
    }

    #[test]
    fn a_call_that_cannot_be_recorded_does_not_count_as_running() {
        let (machine, is_full) = on_a_disk_that_fills();
        let any = || Object::Program(Program::AnyInView);
        let spec = Event::Grant(GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::of(Cap::new(Verb::ProcExec, any()).unwrap()),
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        });
        let grant = machine.step(spec).unwrap().granted.unwrap();
        let call = || {
            Event::Call(Call {
                by: AgentId::FIRST,
                tool: Tool::Terminal,
                actions: vec![Action::new(Verb::ProcExec, any(), Digest::NONE).unwrap()],
            })
        };
        let running = || machine.look(|session| session.running_on(grant).count());
        machine.turn(call(), |_| ()).unwrap();
        assert_eq!(running(), 1);
        is_full.store(true, Ordering::SeqCst);
        machine.turn(call(), |_| ()).unwrap_err();
        assert_eq!(running(), 1, "only the one that was recorded");
    }
}

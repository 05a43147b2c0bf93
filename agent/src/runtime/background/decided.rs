//! The end of a background command: what it did is decided, and why it may have failed is
//! worked out while that can be told.

use std::sync::Arc;

use hermitcrab_core::{
    approval::CallId,
    outcome::{Denial, DenialCode, Outcome},
    session::Session,
};
use hermitcrab_sandbox::spawn::{Ending, Finished, SpawnError};

use super::{
    super::{
        command::{LeftOut, Reasons, Whose, behind_links, summary},
        hands::Hands,
        result::ChangeSummary,
        seen::Seen,
        turn::Stop,
    },
    Job,
};
use crate::digest::sha256;

/// How a background command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Its status; a signal is negative. A command on a terminal that a signal
    /// ended has none.
    pub status: Option<i32>,
    /// Whether it was killed by a call.
    pub killed: bool,
    /// Why what it did was thrown away, if it was.
    pub discarded: Option<Denial>,
    /// What of it was left out, as others changed it, too, or as it is never kept.
    pub left_out: Option<LeftOut>,
    /// How much it had changed that was decided at its end.
    pub changes: ChangeSummary,
    /// Why it may have failed, where that can be told.
    pub reasons: Reasons,
}

impl JobEnd {
    /// It ran on what was ended.
    pub(super) fn stopped(denial: Denial) -> Self {
        Self::unexplained(-15, true, Some(denial))
    }

    /// Whether it had changed something that had to wait for its end, and all of that stands.
    pub(super) fn is_kept(&self) -> bool {
        let changes = self.changes;
        let stands = self.discarded.is_none() && self.left_out.is_none();
        stands && changes.created + changes.modified + changes.deleted > 0
    }

    /// Nothing it said is a reason.
    fn unexplained(status: i32, killed: bool, discarded: Option<Denial>) -> Self {
        Self {
            status: Some(status),
            killed,
            discarded,
            left_out: None,
            changes: ChangeSummary::default(),
            reasons: Reasons::default(),
        }
    }
}

/// A command that is over, as it is decided about.
struct Ran {
    call: CallId,
    command: String,
    seen: Arc<[Seen]>,
    whose: Whose,
    /// What it printed, the end of it.
    said: String,
}

impl Hands<'_> {
    /// Decides what commands did that have ended since the last look, and what those that
    /// run have made so far.
    pub fn look_after(&mut self) -> Result<(), Stop> {
        self.look_after_ended()?;
        self.keep_so_far();
        Ok(())
    }

    /// Decides what commands did that have ended, where nobody is asked about it: while
    /// another command runs that may wait for just that.
    pub(in crate::runtime) fn look_after_unasked(&mut self) {
        // What came of the call at hand is told at its end.
        let changes = std::mem::take(self.changes);
        // Where the ledger cannot be written, the call at hand comes to know of it as well.
        let _known_later = self.decide_ended(Self::asks_nobody);
        *self.changes = changes;
    }

    fn look_after_ended(&mut self) -> Result<(), Stop> {
        self.decide_ended(|_, _| true)
    }

    /// Whether all that one did stands as it is.
    fn asks_nobody(&self, job: &Job) -> bool {
        let effects = {
            let state = job.shared.lock();
            let Some(Ok(finished)) = &state.finished else {
                return true;
            };
            let sets = job.seen.iter().zip(&finished.changes);
            let effects = sets.map(|(seen, set)| {
                let mut actions = set.actions(seen.dir).ok()?;
                actions.extend(behind_links(seen.dir, set).ok()?);
                Some(actions)
            });
            effects.collect::<Option<Vec<_>>>()
        };
        // The session is asked when nothing else is held: who ends a grant holds it, and
        // then looks at the command.
        effects.is_some_and(|effects| {
            let actions = effects.concat();
            let early = |session: &Session| session.may_stand_early(job.call, &actions);
            self.runtime.machine.look(early).into_iter().all(|may| may)
        })
    }

    fn decide_ended(&mut self, wanted: impl Fn(&Self, &Job) -> bool) -> Result<(), Stop> {
        let undecided = |hands: &Self| {
            let mut jobs = hands.runtime.jobs.0.iter();
            jobs.position(|job| job.is_undecided() && wanted(hands, job))
        };
        while let Some(place) = undecided(self) {
            let Some(job) = self.runtime.jobs.0.get_mut(place) else {
                break;
            };
            let (finished, stopped, said) = {
                let mut state = job.shared.lock();
                let (finished, stopped) = (state.finished.take(), state.stopped.take());
                (finished, stopped, state.output.clone())
            };
            let (call, killed) = (job.call, job.killed);
            let on_terminal = job.shared.terminal().is_some();
            let ran = Ran {
                call,
                command: job.command.clone(),
                seen: std::mem::replace(&mut job.seen, Arc::new([])),
                whose: job.whose.clone(),
                said,
            };
            if let Some(denial) = stopped {
                self.runtime.tell_stopped(&ran.command, &denial);
                let Some(job) = self.runtime.jobs.0.get_mut(place) else {
                    break;
                };
                job.killed = true;
                job.end = Some(JobEnd::stopped(denial));
                continue;
            }
            let end = match finished {
                Some(Ok(mut finished)) => {
                    self.decide(&ran, &mut finished, (killed, on_terminal))?
                }
                // Killed before its sandbox was ready: it never began.
                Some(Err(SpawnError::Step(_))) if killed => {
                    self.finish(call, Outcome::Stopped)?;
                    JobEnd::unexplained(-15, killed, None)
                }
                Some(Err(error)) => {
                    let stop = self.not_started(call, error)?;
                    let denial = Denial::new(DenialCode::UnknownCall, stop.words());
                    JobEnd::unexplained(-1, killed, Some(denial))
                }
                None => JobEnd::unexplained(-1, killed, None),
            };
            self.runtime.tell_lost(&ran.command, &end);
            if let Some(job) = self.runtime.jobs.0.get_mut(place) {
                job.end = Some(end);
            }
        }
        Ok(())
    }

    fn decide(
        &mut self,
        ran: &Ran,
        finished: &mut Finished,
        (killed, on_terminal): (bool, bool),
    ) -> Result<JobEnd, Stop> {
        let call = ran.call;
        let status = match finished.ending {
            _ if killed => Some(-15),
            Ending::Exited(status) => Some(status),
            Ending::Signalled(_) if on_terminal => None,
            Ending::Signalled(signal) => Some(-signal),
            Ending::TimedOut => Some(124),
            Ending::OutOfMemory | Ending::OutOfRoom | Ending::Killed => Some(-9),
        };
        *self.changes = summary(&finished.changes);
        // What was revoked while it ran does not cover what it did.
        if let Err(error) = self.runtime.heed() {
            self.finish(call, Outcome::Failed)?;
            return Err(Stop::Broken(error.to_string()));
        }
        // It is asked about during whatever call comes next, by whomever.
        self.runtime.user.about_earlier(Some(&ran.command));
        let settled = self.settle_apart(call, &ran.command, &ran.seen, finished);
        self.runtime.user.about_earlier(None);
        let outcome = match &settled {
            Ok((None, Some(left_out))) if left_out.is_all() => Outcome::Discarded(left_out.code()),
            Ok((None, _)) if killed => Outcome::Stopped,
            Ok((None, _)) => Outcome::Done(sha256(&finished.stdout.to_bytes())),
            Ok((Some((denial, _)), _)) => Outcome::Discarded(denial.code()),
            Err(_) => Outcome::Failed,
        };
        self.finish(call, outcome)?;
        let (discarded, left_out) = settled?;
        Ok(JobEnd {
            status,
            killed,
            discarded: discarded.map(|(denial, _)| denial),
            left_out,
            changes: *self.changes,
            reasons: self.reasons(&ran.whose, finished, &ran.seen, [&ran.said, ""]),
        })
    }
}

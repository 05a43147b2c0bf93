//! The end of a program that ran for something else than a command of its own: a
//! script that called tools, a server that was spoken to.

use hermitcrab_core::{
    approval::CallId,
    digest::Digest,
    outcome::{Denial, DenialCode, Outcome},
};
use hermitcrab_sandbox::spawn::{Ending, Finished, SpawnError};

use super::{
    super::{hands::Hands, seen::Seen, turn::Stop},
    summary,
};

/// A program that is over, and what it was started for.
pub(in crate::runtime) struct Over<'o> {
    /// The call it ran under.
    pub(in crate::runtime) call: CallId,
    /// What the ledger names.
    pub(in crate::runtime) about: &'o str,
    /// The directories it saw copies of.
    pub(in crate::runtime) seen: &'o [Seen],
    /// Why nothing it did is wanted any more, if it was stopped.
    pub(in crate::runtime) unwanted: Option<&'static str>,
}

impl Hands<'_> {
    /// Decides what it did, records how it ended, and says why its changes were
    /// thrown away, if they were.
    pub(in crate::runtime) fn conclude(
        &mut self,
        over: &Over<'_>,
        finished: Result<Finished, SpawnError>,
        came: impl FnOnce(&Finished) -> Digest,
    ) -> Result<(Finished, Option<Denial>), Stop> {
        let mut finished = match finished {
            Ok(finished) => finished,
            Err(error) => return Err(self.not_started(over.call, error)?),
        };
        *self.changes = summary(&finished.changes);
        // What was revoked while it ran does not cover what it did.
        if let Err(error) = self.runtime.heed() {
            self.finish(over.call, Outcome::Failed)?;
            return Err(Stop::Broken(error.to_string()));
        }
        let settled = match over.unwanted {
            None => self.settle(over.call, over.about, over.seen, &mut finished),
            Some(why) => {
                let denial = Denial::new(DenialCode::RejectedByUser, why);
                Ok(Some((denial, false)))
            }
        };
        let outcome = match &settled {
            Ok(None) if finished.ending == Ending::TimedOut => Outcome::TimedOut,
            Ok(None) => Outcome::Done(came(&finished)),
            Ok(Some((denial, _))) => Outcome::Discarded(denial.code()),
            Err(_) => Outcome::Failed,
        };
        self.finish(over.call, outcome)?;
        Ok((finished, settled?.map(|(denial, _)| denial)))
    }
}

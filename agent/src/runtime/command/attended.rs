//! A program whose output is read when it is over: started, looked after, concluded.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hermitcrab_core::outcome::Denial;
use hermitcrab_sandbox::spawn::{Finished, Streams};

use super::{Launch, Over};
use crate::{
    digest::sha256,
    runtime::{afoot::Stands, hands::Hands, seen::Seen, turn::Stop},
};

/// How a program is looked after while it runs.
pub(in crate::runtime) struct Care {
    /// How often.
    pub(in crate::runtime) every: Duration,
    /// What is told of one that nobody wanted to its end.
    pub(in crate::runtime) called_off: &'static str,
}

impl Hands<'_> {
    /// Runs a program to its end, or until nobody wants it any more, and decides what it
    /// did. `meanwhile` is called each time it is looked after.
    pub(in crate::runtime) fn run_to_its_end(
        &mut self,
        launch: Launch<'_>,
        streams: Streams,
        seen: &Arc<[Seen]>,
        care: &Care,
        mut meanwhile: impl FnMut(&mut Self),
    ) -> Result<(Finished, Option<Denial>), Stop> {
        let about = launch.about;
        let (call, running) = self.launch(launch, seen, streams)?;
        let mut running = match running {
            Ok(running) => running,
            Err(error) => return Err(self.not_started(call, error)?),
        };
        let afoot = &self.runtime.afoot;
        let has_others = afoot.has_any();
        let how = (&mut running, Stands::Early);
        afoot.begin(call, about, seen, how, &self.runtime.machine);
        let (mut wanted, mut next) = (true, Instant::now());
        let over = loop {
            match running.attend(care.every, |_, _| {}) {
                Ok(true) => break Ok(()),
                Ok(false) => {
                    meanwhile(self);
                    if has_others {
                        self.keep_meanwhile(&mut next);
                    }
                    let progress = self.runtime.progress.as_mut();
                    if wanted && progress.is_some_and(|progress| !progress.is_wanted()) {
                        wanted = false;
                        running.kill();
                    }
                }
                Err(error) => break Err(error),
            }
        };
        let over_with = Over {
            call,
            about,
            seen,
            unwanted: (!wanted).then_some(care.called_off),
        };
        let finished = over.and_then(|()| running.wait());
        self.conclude(&over_with, finished, |finished| {
            sha256(&finished.stdout.to_bytes())
        })
    }
}

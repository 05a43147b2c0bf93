//! The course of a world: its steps, its network, its deadline and its end.
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::flipping::Flipping;
use super::{Ended, Report, ToZygote};
use crate::error::{AtStage, WorldError};
use crate::protocol::{End, FsEffect, StepTrace, read_frame, write_frame};
use crate::sink::Sink;

/// The running world, seen from the observer.
pub(super) struct Watch<'z> {
    pub(super) zygote: &'z mut UnixStream,
    pub(super) reports: File,
    pub(super) answers: File,
    pub(super) until: Instant,
    pub(super) flipping: Option<Flipping<'z>>,
}

impl Watch<'_> {
    /// Follows the world until it ends or is ended. Returns the finished steps,
    /// whether one more had begun, and how it ended; the world is dead by then.
    pub(super) fn run(
        mut self,
        sink: &mut Sink,
        list: &mut dyn FnMut() -> Result<Vec<FsEffect>, WorldError>,
    ) -> Result<(Vec<StepTrace>, bool, End), WorldError> {
        let mut steps = Vec::new();
        let mut begun = false;
        let mut failed = None;
        let mut timed_out = false;
        let mut flipping = self.flipping.take();
        let interior = match &mut flipping {
            Some(flipping) => Some(flipping.hear(self.zygote)?),
            None => None,
        };
        let mut running = None;
        loop {
            let now = Instant::now();
            if now >= self.until {
                timed_out = true;
                break;
            }
            let wait = (self.until - now).min(sink.next_wake().unwrap_or(Duration::MAX));
            match self.wait(sink, wait)? {
                false => continue,
                true => match read_frame::<Report>(&mut self.reports) {
                    // Closed: the interior is ending.
                    Ok(None) | Err(_) => break,
                    Ok(Some(Report::Begin)) => {
                        begun = true;
                        if let (Some(flipping), Some(interior)) = (&flipping, interior) {
                            running = Some(flipping.begin(interior)?);
                            if self.answers.write_all(&[1]).is_err() {
                                break;
                            }
                        }
                    }
                    Ok(Some(Report::Step(mut step))) => {
                        begun = false;
                        if let Some(running) = running.take() {
                            step.answer = serde_json::to_value(running.end()).at("report step")?;
                        }
                        step.effects = list()?;
                        steps.push(*step);
                        if self.answers.write_all(&[1]).is_err() {
                            break;
                        }
                    }
                    Ok(Some(Report::Failed { stage, message })) => {
                        failed = Some(WorldError { stage, message });
                        break;
                    }
                },
            }
        }
        // The dead would be waited for by whoever follows them.
        drop(running);
        let end = self.end(timed_out)?;
        sink.drain();
        match failed {
            Some(error) => Err(error),
            None => Ok((steps, begun, end)),
        }
    }

    /// Serves the sink for at most `wait`; true once the interior has something to say.
    fn wait(&self, sink: &mut Sink, wait: Duration) -> Result<bool, WorldError> {
        let mut watched = vec![PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
        watched.extend(
            sink.descriptors()
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
        );
        let milliseconds = i32::try_from(wait.as_millis().saturating_add(1)).unwrap_or(i32::MAX);
        match poll(
            &mut watched,
            PollTimeout::try_from(milliseconds).at("poll")?,
        ) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(WorldError::new("poll", errno)),
        }
        let reported = watched.first().and_then(PollFd::any).unwrap_or(false);
        drop(watched);
        sink.serve();
        Ok(reported)
    }

    /// Ends the world. The zygote waits for its pid 1, whose death kills every
    /// process in it before anybody is told of it.
    fn end(&mut self, timed_out: bool) -> Result<End, WorldError> {
        let stage = "wait for world";
        if timed_out {
            write_frame(self.zygote, &ToZygote::TimeIsUp).at(stage)?;
        }
        match read_frame::<Ended>(self.zygote).at(stage)? {
            Some(_) if timed_out => Ok(End::TimedOut),
            Some(Ended::Exited(0)) => Ok(End::Finished),
            Some(Ended::Exited(status)) => Ok(End::Died(format!("exit {status}"))),
            Some(Ended::Signalled(signal)) => Ok(End::Died(format!("signal {signal}"))),
            None => Err(WorldError::new(stage, "the zygote is gone")),
        }
    }
}

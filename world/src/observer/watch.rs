//! The course of a world: its steps, its network, its deadline and its end.
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::course::{self, Course};
use super::{Ended, Report, ToZygote};
use crate::error::{AtStage, WorldError};
use crate::flip::Running;
use crate::protocol::{End, FsEffect, Part, StepTrace, read_frame, write_frame};
use crate::sink::Sink;

/// The running world, seen from the observer.
pub(super) struct Watch<'z> {
    pub(super) zygote: &'z mut UnixStream,
    pub(super) reports: File,
    pub(super) answers: File,
    pub(super) until: Instant,
    pub(super) course: Option<Course<'z>>,
}

/// What was seen of a world.
pub(super) struct Watched {
    /// The finished steps.
    pub(super) steps: Vec<StepTrace>,
    /// The finished parts of one more, if that had begun.
    pub(super) unfinished: Option<Vec<Part>>,
    /// How it ended; it is dead by then.
    pub(super) end: End,
}

/// Who has something to say.
enum Speaks {
    Nobody,
    Interior,
    Zygote,
}

impl Watch<'_> {
    /// Follows the world until it ends or is ended.
    pub(super) fn run(
        mut self,
        sink: &mut Sink,
        list: &mut dyn FnMut() -> Result<Vec<FsEffect>, WorldError>,
    ) -> Result<Watched, WorldError> {
        let mut steps: Vec<StepTrace> = Vec::new();
        // The parts so far of the step that has begun and is not over.
        let mut parts: Option<Vec<Part>> = None;
        let mut failed = None;
        let mut timed_out = false;
        let mut ended = None;
        let course = self.course.take();
        let mut interior = match course {
            Some(_) => Some(course::hear(self.zygote)?),
            None => None,
        };
        // The zygote keeps the pipes of a world that goes on after an end.
        let has_cuts = course.as_ref().is_some_and(Course::has_cuts);
        let mut running = None;
        // What was seen of the step before it was cut off.
        let mut before_cut = None;
        loop {
            let now = Instant::now();
            if now >= self.until {
                timed_out = true;
                break;
            }
            let wait = (self.until - now).min(sink.next_wake().unwrap_or(Duration::MAX));
            match self.wait(sink, wait, has_cuts)? {
                Speaks::Nobody => continue,
                Speaks::Zygote => {
                    let how = read_frame::<Ended>(self.zygote).at("wait for world")?;
                    let at = steps.len();
                    let cut_off = parts.is_some() && before_cut.is_none();
                    let cut = course.as_ref().and_then(|course| course.cut(at));
                    if !cut_off || cut.is_none() {
                        ended = how;
                        break;
                    }
                    let running = running.take().map(Running::end);
                    before_cut = Some(running.unwrap_or_default());
                    let texts = steps.iter().map(|step| step.text.clone()).collect();
                    let again = ToZygote::Again { step: at, texts };
                    write_frame(self.zygote, &again).at("go on after an end")?;
                    interior = Some(course::hear(self.zygote)?);
                }
                Speaks::Interior => match read_frame::<Report>(&mut self.reports) {
                    // Closed: the interior is ending.
                    Ok(None) | Err(_) => break,
                    Ok(Some(Report::Begin)) => {
                        parts = Some(Vec::new());
                        if let (Some(course), Some(interior)) = (&course, interior) {
                            let cut = course.cut(steps.len()).filter(|_| before_cut.is_none());
                            running = Some(course.begin(interior, steps.len(), cut)?);
                            if self.answers.write_all(&[1]).is_err() {
                                break;
                            }
                        }
                    }
                    Ok(Some(Report::Over)) => {
                        write_frame(self.zygote, &ToZygote::TimeIsUp).at("end a call")?;
                    }
                    Ok(Some(Report::Part { asked })) => {
                        let effects = list()?;
                        if let Some(parts) = &mut parts {
                            parts.push(Part { asked, effects });
                        }
                        if self.answers.write_all(&[1]).is_err() {
                            break;
                        }
                    }
                    Ok(Some(Report::Step(mut step))) => {
                        step.parts = parts.take().unwrap_or_default();
                        if let Some(running) = running.take() {
                            let mut seen = running.end();
                            seen.add(before_cut.take().unwrap_or_default());
                            step.answer = serde_json::to_value(seen).at("report step")?;
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
        let end = self.end(timed_out, ended)?;
        sink.drain();
        match failed {
            Some(error) => Err(error),
            None => Ok(Watched {
                steps,
                unfinished: parts,
                end,
            }),
        }
    }

    /// Serves the sink for at most `wait`; who has something to say then. The zygote is
    /// listened to only where it speaks before it is asked.
    fn wait(&self, sink: &mut Sink, wait: Duration, zygote: bool) -> Result<Speaks, WorldError> {
        let mut watched = vec![PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
        if zygote {
            watched.push(PollFd::new(self.zygote.as_fd(), PollFlags::POLLIN));
        }
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
        let any = |place: usize| watched.get(place).and_then(PollFd::any).unwrap_or(false);
        // What the interior said before its end comes before its end.
        let speaks = if any(0) {
            Speaks::Interior
        } else if zygote && any(1) {
            Speaks::Zygote
        } else {
            Speaks::Nobody
        };
        let reached = watched
            .iter()
            .skip(1 + usize::from(zygote))
            .any(|fd| fd.any().unwrap_or(false));
        drop(watched);
        // Asking every listener takes longer than a usual step has to tell.
        if reached || sink.next_wake().is_some_and(|wake| wake.is_zero()) {
            sink.serve();
        }
        Ok(speaks)
    }

    /// Ends the world. The zygote waits for its pid 1, whose death kills every
    /// process in it before anybody is told of it.
    fn end(&mut self, timed_out: bool, ended: Option<Ended>) -> Result<End, WorldError> {
        let stage = "wait for world";
        if timed_out {
            write_frame(self.zygote, &ToZygote::TimeIsUp).at(stage)?;
        }
        let ended = match ended {
            Some(ended) => Some(ended),
            None => read_frame::<Ended>(self.zygote).at(stage)?,
        };
        match ended {
            Some(_) if timed_out => Ok(End::TimedOut),
            Some(Ended::Exited(0)) => Ok(End::Finished),
            Some(Ended::Exited(status)) => Ok(End::Died(format!("exit {status}"))),
            Some(Ended::Signalled(signal)) => Ok(End::Died(format!("signal {signal}"))),
            None => Err(WorldError::new(stage, "the zygote is gone")),
        }
    }
}

//! The end of a command: what it came to, and what it made.

use std::io;

use super::Running;
use crate::changeset::{ChangeSet, Terms};
use crate::mechanism::Mechanism;
use crate::spawn::streams::Stream;
use crate::spawn::{Ending, Exchange, Finished, SpawnError, Usage, spec};
use crate::step::{AtStep, Step, StepError};

/// The signal nobody can catch.
const SIGKILL: i32 = nix::libc::SIGKILL;

impl Running {
    pub(crate) fn finish(
        &mut self,
        show: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Finished, SpawnError> {
        if let Some(failure) = self.failure.take() {
            // Only the command failed, and it used up what was ready.
            if !self.layers.is_empty() && self.may_wait && self.confined.copied.is_none() {
                self.pool.refill(&self.key, None);
            }
            return Err(failure.into());
        }
        if let Some(late) = self.not_in_time() {
            return Err(late.into());
        }
        self.look_at_room_at_last();
        let why = self.stop.map(|stop| stop.why);
        let (ending, usage) = match (self.ended, why.or(self.asked.map(|asked| asked.why))) {
            (ended, Some(why)) => (why, ended.map(|(_, usage)| usage)),
            (Some((spec::Ending::Exited(code), usage)), None) => {
                (Ending::Exited(code), Some(usage))
            }
            (Some((spec::Ending::Signalled(signal), usage)), None) => {
                (Ending::Signalled(signal), Some(usage))
            }
            (None, None) if self.pool.is_gone(self.generation) => {
                return Err(StepError::new(
                    Step::Talk,
                    "",
                    io::Error::other("the spawner went away while the command ran"),
                )
                .into());
            }
            (None, None) => (Ending::Killed, None),
        };
        let mut confined = std::mem::take(&mut self.confined);
        self.room.tell(&mut confined);
        match self.group.take() {
            Some(Ok(held)) => {
                confined.limited = held.limited;
                confined.usage = held.outlook.usage();
                if held.limited.is_complete() {
                    confined.by.insert(Mechanism::ControlGroups);
                }
                confined.missing.extend(held.limited.missing());
            }
            Some(Err(why)) => confined.missing.push(format!("control groups: {why}")),
            None => {}
        }
        let killed = matches!(ending, Ending::Killed | Ending::Signalled(SIGKILL));
        let ending = if killed && self.stop.is_none() && confined.usage.out_of_memory_kills > 0 {
            Ending::OutOfMemory
        } else {
            ending
        };
        self.close_the_way_out();
        let stdout = self
            .stdout
            .finish(&mut |bytes| show(Stream::Stdout, bytes))
            .at(Step::Talk, "stdout")?;
        let stderr = self
            .stderr
            .finish(&mut |bytes| show(Stream::Stderr, bytes))
            .at(Step::Talk, "stderr")?;
        self.merged.clear();
        let mut layers = std::mem::take(&mut self.layers).into_iter();
        let mut changes = Vec::new();
        let mut settled = match &self.underway {
            Some(underway) => underway.end(),
            None => Vec::new(),
        }
        .into_iter();
        for view in &self.views {
            let settled = settled.next().unwrap_or_default();
            let upper = layers.next().ok_or_else(missing_layer)?;
            let mut set = if ending == Ending::OutOfRoom {
                let nothing = ChangeSet::nothing_of(upper, view);
                nothing.at(Step::ViewSource, view.prefix().to_string())?
            } else {
                let bytes_max = self.room.bytes_max().unwrap_or(self.view_bytes_max);
                let terms = Terms {
                    started: self.began.clone(),
                    owners: self.owners.clone(),
                    bytes_max,
                    settled,
                    while_it_runs: None,
                };
                ChangeSet::read_of(upper, view, terms).map_err(SpawnError::ChangeSet)?
            };
            set.lies_in(self.room.kept());
            changes.push(set);
        }
        let dir = layers.next().ok_or_else(missing_layer)?;
        if crate::dircap::kernel_contains_paths() {
            confined.by.insert(Mechanism::ContainedPaths);
        }
        // A copy must be as new as its command: none is kept ready.
        if self.may_wait && confined.copied.is_none() {
            self.pool.refill(&self.key, self.recipe.as_ref());
        }
        Ok(Finished {
            ending,
            stdout,
            stderr,
            changes,
            exchange: Exchange { dir },
            confined,
            attempts: std::mem::take(&mut self.attempts),
            usage: usage.map_or_else(Usage::default, Usage::from),
            elapsed: self.started.elapsed(),
        })
    }
}

fn missing_layer() -> StepError {
    StepError::new(
        Step::Talk,
        "",
        io::Error::other("the sandbox ended before it was ready"),
    )
}

//! Where a command prints: to where this program prints, as fast as somebody reads.

use std::{
    cell::Cell,
    io::{self, IsTerminal, Write},
    os::fd::{AsFd, BorrowedFd},
    rc::Rc,
    time::Duration,
};

use hermitcrab_core::{
    grant::AgentId,
    time::{Instant, Millis},
};
use hermitcrab_sandbox::spawn::Stream;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{
    ambient::BootClock,
    cancel::Cancel,
    cli::lines::Lines,
    ports::{Clock as _, ProgressPort},
    screen::visible,
};

/// As much can be written to a pipe that has room at all.
const ROOM: usize = 4096;
/// How often it is looked whether anybody still waits.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Why what a command prints reaches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// Whoever read it reads no more.
    Reader,
    /// Where it is written has no room.
    Full,
}

/// What a command prints, to where this program prints.
pub(super) struct Through {
    cancel: Cancel,
    out_draws: bool,
    err_draws: bool,
    lines: Lines,
    /// Why what it prints reaches nobody any more, if so.
    gone: Rc<Cell<Option<Gone>>>,
    /// How long it may take, and when that is over: no reader who waits makes it longer.
    most: Option<Duration>,
    until: Option<Instant>,
}

impl Through {
    pub(super) fn new(
        cancel: Cancel,
        most: Option<Duration>,
        gone: Rc<Cell<Option<Gone>>>,
    ) -> Self {
        Self {
            cancel,
            out_draws: io::stdout().is_terminal(),
            err_draws: io::stderr().is_terminal(),
            lines: Lines::default(),
            gone,
            most,
            until: None,
        }
    }

    /// On one terminal both are one, in the order in which they came.
    pub(super) const fn is_apart(&self) -> bool {
        !(self.out_draws && self.err_draws)
    }

    fn note(&self, written: &io::Result<()>) {
        if let (None, Err(error)) = (self.gone.get(), written) {
            self.gone.set(Some(match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Gone::Full,
                _ => Gone::Reader,
            }));
        }
    }

    /// Writes as fast as somebody reads; what nobody has read when the command's time is
    /// over, or it is called off, is not waited for.
    fn pass(&self, to: BorrowedFd<'_>, piece: &[u8]) -> io::Result<()> {
        for part in piece.chunks(ROOM) {
            let mut rest = part;
            while !rest.is_empty() {
                if !self.has_room(to)? {
                    return Ok(());
                }
                match rustix::io::write(to, rest) {
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        Ok(())
    }

    /// Whether a part can be written, as soon as it can.
    fn has_room(&self, to: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            let mut wanted = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
            match poll(&mut wanted, Some(&LOOK_EVERY)) {
                Ok(0) | Err(Errno::INTR) => {}
                // Writing says what is wrong, if something is.
                Ok(_) => return Ok(true),
                Err(errno) => return Err(errno.into()),
            }
            if self.cancel.is_thrown() || self.until.is_some_and(|until| BootClock.now() >= until) {
                return Ok(false);
            }
        }
    }

    fn on_terminal(&mut self, show: impl FnOnce(&mut Lines, &mut dyn Write) -> io::Result<()>) {
        let written = if self.out_draws {
            show(&mut self.lines, &mut io::stdout().lock())
        } else {
            show(&mut self.lines, &mut io::stderr().lock())
        };
        self.note(&written);
    }
}

impl ProgressPort for Through {
    fn began(&mut self, _agent: AgentId) {
        self.until = self.most.map(|most| {
            BootClock.now().after(Millis::new(
                u64::try_from(most.as_millis()).unwrap_or(u64::MAX),
            ))
        });
    }

    fn takes(&mut self, _agent: AgentId, from: Stream, piece: &[u8]) -> bool {
        let written = match from {
            Stream::Stdout if self.out_draws => return false,
            Stream::Stderr if self.err_draws => return false,
            Stream::Stdout => self.pass(io::stdout().as_fd(), piece),
            Stream::Stderr => self.pass(io::stderr().as_fd(), piece),
        };
        self.note(&written);
        true
    }

    fn output(&mut self, _agent: AgentId, piece: &str) {
        self.on_terminal(|lines, mut to| lines.add(piece, &mut to));
    }

    fn notice(&mut self, _agent: AgentId, line: &str) {
        // Not in the middle of a line the command has not ended.
        if self.out_draws || self.err_draws {
            self.on_terminal(|lines, mut to| lines.end(&mut to));
        }
        let line = format!("hermitcrab: {}\n", visible(line));
        let said = self.pass(io::stderr().as_fd(), line.as_bytes());
        self.note(&said);
    }

    fn ended(&mut self, _agent: AgentId) {
        self.on_terminal(|lines, mut to| lines.end(&mut to));
    }

    fn is_wanted(&mut self) -> bool {
        self.gone.get().is_none() && !self.cancel.is_thrown()
    }
}

//! The person's terminal while it is lent: what is typed goes to the command as it comes, and
//! what the command draws is shown.

use std::{
    io::{self, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

use super::{
    drawn::Drawn,
    keys::{self, Keys},
};
use crate::{
    ambient::{self, Postponed},
    cancel::Cancel,
    pty::Pty,
};

/// How often it is looked whether the terminal has another size, or the program is to end.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// How long a terminal may take to say where its cursor is.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// So much may be typed that the command has not read; more waits where it is.
const AHEAD_MAX: usize = 4096;
/// So long nobody types before the terminal is given back, and so long that is waited for.
const QUIET: Duration = Duration::from_millis(400);
const QUIET_WITHIN: Duration = Duration::from_secs(10);
/// Pieces a terminal holds at most: the kernel gives 4 KiB a time, of some 64 (n_tty).
const PIECES_HELD: usize = 64;
/// What is drawn in one go.
const PIECE: usize = 16 * 1024;

/// Rows and columns of the person's terminal.
pub(super) fn size() -> (u16, u16) {
    tcgetwinsize(io::stdout()).map_or((0, 0), |size| (size.ws_row, size.ws_col))
}

/// A terminal that is lent.
pub(super) struct Lent {
    /// The command's own, until it is taken away.
    pty: Option<Pty>,
    drawn: Drawn,
    keys: Keys,
    /// The last of it is drawn.
    is_drawn: bool,
    /// Typed, and not read yet.
    ahead: Vec<u8>,
    /// When something was typed last.
    typed: Option<Instant>,
    size: (u16, u16),
    /// Gives it back.
    raw: Raw,
    /// Thrown where the program was suspended and goes on.
    goes_on: Cancel,
    /// The program ends no sooner than the terminal is back: the last field is dropped last.
    postponed: Postponed,
}

impl Lent {
    /// From now on.
    ///
    /// # Errors
    /// The terminal is none any more.
    pub(super) fn begin(pty: Pty) -> io::Result<Self> {
        let postponed = Postponed::begin()?;
        let raw = Raw::begin()?;
        let size = size();
        let mut ahead = Vec::new();
        let place = match asked_for_the_cursor(&mut ahead)? {
            Some(place) => place,
            // In the last row nothing is below.
            None => {
                let last = size.0.max(1);
                shown(&format!("\u{1b}[{last};1H\n"))?;
                (last.saturating_sub(1), 0)
            }
        };
        Ok(Self {
            pty: Some(pty),
            drawn: Drawn::new(size, place),
            keys: Keys::default(),
            ahead,
            typed: None,
            is_drawn: false,
            size,
            raw,
            goes_on: ambient::on_going_on()?,
            postponed,
        })
    }

    /// Passes on until the other end of this is closed.
    ///
    /// # Errors
    /// The terminal is none any more; the command's own is taken away.
    pub(super) fn until(mut self, over: &OwnedFd) -> io::Result<()> {
        let passed = self.passed_on(over);
        let rest = self.rest();
        let quiet = match passed {
            Ok(()) if !self.raw.is_over => self.quiet(),
            Ok(()) | Err(_) => Ok(0),
        };
        let given_back = self.given_back();
        if let Ok(1..) = quiet {
            eprintln!("hermitcrab: what was typed as the command ended is nobody's, and is gone");
        }
        passed.and(rest).and(quiet).and(given_back)
    }

    /// Waits until whoever is typing to a command that has ended sees that it has; how much
    /// they had typed by then. It is for nobody: a command chooses the moment in which it ends,
    /// and the rest of a line it had asked for would answer what is asked next.
    fn quiet(&mut self) -> io::Result<usize> {
        self.drawn_to_its_end()?;
        let until = Instant::now() + QUIET_WITHIN;
        let mut gone = 0;
        while Instant::now() < until && !self.postponed.is_asked_for() {
            let since = self.typed.map_or(QUIET, |typed| typed.elapsed());
            let left = QUIET.saturating_sub(since);
            let wait = Timespec::try_from(left).unwrap_or(LOOK_EVERY);
            let stdin = io::stdin();
            let mut wanted = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
            match poll(&mut wanted, Some(&wait)) {
                Ok(0) if left.is_zero() => break,
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut buffer = [0_u8; 1024];
            match rustix::io::read(&stdin, &mut buffer) {
                // Nobody is there any more.
                Ok(0) => break,
                Ok(count) => gone += count,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(errno) => return Err(errno.into()),
            }
            self.typed = Some(Instant::now());
        }
        Ok(gone)
    }

    fn passed_on(&mut self, over: &OwnedFd) -> io::Result<()> {
        loop {
            self.look()?;
            let Some(pty) = &self.pty else {
                return waited_for(over);
            };
            let (stdin, both) = (io::stdin(), PollFlags::IN | PollFlags::OUT);
            let takes_more = self.ahead.len() < AHEAD_MAX;
            let typed = if takes_more {
                PollFlags::IN
            } else {
                PollFlags::empty()
            };
            let theirs = if self.ahead.is_empty() {
                PollFlags::IN
            } else {
                both
            };
            let mut wanted = [
                PollFd::new(over, PollFlags::IN),
                PollFd::from_borrowed_fd(stdin.as_fd(), typed),
                PollFd::new(pty, theirs),
            ];
            match poll(&mut wanted, Some(&LOOK_EVERY)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [is_over, typed, theirs] = wanted.map(|one| one.revents());
            if !is_over.is_empty() {
                return Ok(());
            }
            if theirs.contains(PollFlags::OUT) && !self.ahead.is_empty() {
                let written = pty.write_some(&self.ahead)?;
                self.ahead.drain(..written);
            }
            if theirs.contains(PollFlags::IN) {
                self.draw()?;
            }
            if !typed.is_empty() && takes_more {
                self.read()?;
            }
        }
    }

    /// What has come about meanwhile.
    fn look(&mut self) -> io::Result<()> {
        if self.postponed.is_asked_for() {
            return Err(Errno::INTR.into());
        }
        if self.goes_on.take() {
            self.raw.again()?;
            shown(&self.drawn.redraw())?;
        }
        let size = size();
        if size != self.size {
            self.size = size;
            if let Some(pty) = &self.pty {
                pty.resize(size)?;
            }
            shown(&self.drawn.resize(size))?;
        }
        Ok(())
    }

    /// Shows what is drawn, and no more in one go than leaves time for what is typed.
    fn draw(&mut self) -> io::Result<()> {
        let Some(pty) = &self.pty else { return Ok(()) };
        let piece = pty.piece(PIECE);
        let (sent, answers) = self.drawn.take(&piece);
        if self.ahead.len() < AHEAD_MAX {
            self.ahead.extend_from_slice(&answers);
        }
        shown(&sent)
    }

    /// Takes what is typed; hangs up where that is wanted, or nobody can type any more.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0_u8; 1024];
        let count = match rustix::io::read(io::stdin(), &mut buffer) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() || self.keys.hang_up(bytes, Instant::now()) {
            self.rest()?;
            self.given_back()?;
            // The command's processes are told so by the kernel (SIGHUP, pty(7)).
            self.pty = None;
            eprintln!("hermitcrab: hung up; ^C calls it off should it not end");
            return Ok(());
        }
        self.ahead.extend_from_slice(bytes);
        self.typed = Some(Instant::now());
        Ok(())
    }

    /// Shows what is still to be shown, of a command that goes on drawing no more than its
    /// terminal holds.
    fn rest(&mut self) -> io::Result<()> {
        for _ in 0..PIECES_HELD {
            let Some(pty) = &self.pty else { break };
            let piece = pty.piece(PIECE);
            if piece.is_empty() {
                break;
            }
            let (sent, _) = self.drawn.take(&piece);
            shown(&sent)?;
        }
        Ok(())
    }

    /// The terminal is as it was; twice does no harm.
    fn given_back(&mut self) -> io::Result<()> {
        if self.raw.is_over {
            return Ok(());
        }
        let drawn = self.drawn_to_its_end();
        self.raw.end();
        drawn
    }

    fn drawn_to_its_end(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.is_drawn, true) {
            true => Ok(()),
            false => shown(&self.drawn.end()),
        }
    }
}

/// A terminal that passes each letter on as it is typed, and shows none of them itself
/// (termios(3)), until this is dropped.
struct Raw {
    before: Termios,
    is_over: bool,
}

impl Raw {
    fn begin() -> io::Result<Self> {
        let raw = Self {
            before: tcgetattr(io::stdin())?,
            is_over: false,
        };
        raw.again()?;
        Ok(raw)
    }

    fn again(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        Ok(tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?)
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            // One that is gone has nothing to be given back.
            let _gone = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where the terminal says its cursor is; what is typed meanwhile stays typed.
fn asked_for_the_cursor(typed: &mut Vec<u8>) -> io::Result<Option<(u16, u16)>> {
    shown("\u{1b}[6n")?;
    let began = Instant::now();
    while began.elapsed() < ANSWER_MAX {
        let stdin = io::stdin();
        let mut wanted = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        match poll(&mut wanted, Some(&LOOK_EVERY)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut buffer = [0_u8; 256];
        let count = rustix::io::read(&stdin, &mut buffer)?;
        typed.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if let Some(place) = keys::cursor(typed) {
            return Ok(Some(place));
        }
        if count == 0 || typed.len() >= AHEAD_MAX {
            break;
        }
    }
    Ok(None)
}

fn shown(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Waits until the other end is closed.
fn waited_for(over: &OwnedFd) -> io::Result<()> {
    loop {
        let mut wanted = [PollFd::new(over, PollFlags::IN)];
        match poll(&mut wanted, None) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

//! A terminal of its own for a command that wants one: a pseudoterminal, pty(7).
//!
//! The agent holds the master; the command gets the other end as its three
//! standard streams and can type into nothing but itself. It must never be a
//! terminal anybody else uses.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant as Moment},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Rows and columns a command finds where nobody looks.
pub const SIZE: (u16, u16) = (30, 120);
/// How long a command may take to read what is typed.
const PATIENCE: Duration = Duration::from_secs(10);
/// The letter that ends the input.
const END: [u8; 1] = [4];

/// The agent's end of a terminal.
#[derive(Debug)]
pub struct Pty {
    master: OwnedFd,
}

impl Pty {
    /// A new terminal of so many rows and columns, and the command's end of it.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn open(size: (u16, u16)) -> io::Result<(Self, OwnedFd)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        unlockpt(&master)?;
        let theirs = ioctl_tiocgptpeer(
            &master,
            OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
        )?;
        let flags = rustix::fs::fcntl_getfl(&master)?;
        rustix::fs::fcntl_setfl(&master, flags | OFlags::NONBLOCK)?;
        let pty = Self { master };
        pty.resize(size)?;
        Ok((pty, theirs))
    }

    /// Gives it so many rows and columns; whoever works on it is told (SIGWINCH).
    ///
    /// # Errors
    /// The kernel does not.
    pub fn resize(&self, (ws_row, ws_col): (u16, u16)) -> io::Result<()> {
        let size = Winsize {
            ws_row,
            ws_col,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.master, size)?)
    }

    /// What was printed since the last look.
    pub fn read(&self, mut take: impl FnMut(&[u8])) {
        let mut buffer = [0_u8; 4096];
        loop {
            match rustix::io::read(&self.master, &mut buffer) {
                Err(Errno::INTR) => {}
                // Nothing there, or nobody at the other end any more.
                Ok(0) | Err(_) => return,
                Ok(count) => take(buffer.get(..count).unwrap_or_default()),
            }
        }
    }

    /// As much as this of what was printed; nothing where there is nothing, or nobody at
    /// the other end any more.
    pub fn piece(&self, bytes_max: usize) -> Vec<u8> {
        let mut piece = vec![0_u8; bytes_max];
        loop {
            match rustix::io::read(&self.master, &mut piece) {
                Err(Errno::INTR) => {}
                read => {
                    piece.truncate(read.unwrap_or(0));
                    return piece;
                }
            }
        }
    }

    /// Types this.
    ///
    /// # Errors
    /// Nobody reads it.
    pub fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        let until = Moment::now().checked_add(PATIENCE);
        while !bytes.is_empty() {
            match rustix::io::write(&self.master, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if until.is_none_or(|until| Moment::now() >= until) {
                        return Err(io::Error::other("nothing reads what is typed"));
                    }
                    let mut wanted = [PollFd::new(&self.master, PollFlags::OUT)];
                    let wait = Timespec {
                        tv_sec: 0,
                        tv_nsec: 50_000_000,
                    };
                    let _ready = poll(&mut wanted, Some(&wait));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// A piece of this, as much as there is room for; 0 is none.
    ///
    /// # Errors
    /// Nobody reads it any more.
    pub fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.master, bytes) {
            Err(Errno::INTR | Errno::AGAIN) => Ok(0),
            written => Ok(written?),
        }
    }

    /// Ends the input.
    ///
    /// # Errors
    /// As for [`Pty::write`].
    pub fn end(&self) -> io::Result<()> {
        self.write(&END)
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Pty, SIZE};

    #[test]
    fn what_is_typed_reaches_the_other_end_and_is_shown() {
        let Ok((terminal, theirs)) = Pty::open(SIZE) else {
            println!("SKIPPED: no terminals here");
            return;
        };
        terminal.write(b"hello\n").unwrap();
        let mut line = [0_u8; 64];
        let count = rustix::io::read(&theirs, &mut line).unwrap();
        assert_eq!(&line[..count], b"hello\n");
        let mut shown = Vec::new();
        terminal.read(|bytes| shown.extend_from_slice(bytes));
        assert_eq!(shown, b"hello\r\n");
        terminal.end().unwrap();
        assert_eq!(rustix::io::read(&theirs, &mut line).unwrap(), 0);
        let size = rustix::termios::tcgetwinsize(&theirs).unwrap();
        assert_eq!((size.ws_row, size.ws_col), SIZE);
    }
}

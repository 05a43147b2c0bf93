//! A person's terminal, lent to a command of theirs: an editor, a pager, a shell.
//!
//! The command has a terminal of its own. What it draws there is drawn again here: it never
//! writes to the person's terminal itself, so it can neither change how that answers nor leave
//! anything behind on it. What is typed goes to the command and to nobody else, ^C as well;
//! [`HANG_UP`] takes the terminal away from it.
//!
//! It must give the terminal back as it was, however the command ends.

mod drawn;
mod keys;
mod lent;
mod strings;

use std::{
    io::{self, IsTerminal as _},
    os::fd::OwnedFd,
    thread::JoinHandle,
};

use hermitcrab_core::grant::AgentId;

pub use self::keys::HANG_UP;
use self::lent::Lent;
use crate::{cancel::Cancel, ports::ProgressPort, pty::Pty, screen::visible, text::no_thread};

/// Shows one command the person's terminal while it runs.
#[derive(Debug)]
pub struct Console {
    /// Until the command begins.
    pty: Option<Pty>,
    running: Option<Running>,
    cancel: Cancel,
    /// Why the terminal could not be lent; then the command is not wanted.
    failed: bool,
    /// What is told once the terminal is back.
    notices: Vec<String>,
}

/// Somebody passes on what is typed and what is drawn, until this is dropped.
#[derive(Debug)]
struct Running {
    /// Whoever passes on ends when this does.
    ends: Option<OwnedFd>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Console {
    /// Whether there is a terminal to lend: one for what is typed and for what is shown.
    #[must_use]
    pub fn is_to_be_had() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// A terminal for a command, and its end of it. The command is called off by the switch.
    ///
    /// # Errors
    /// The kernel gives no terminal.
    pub fn open(cancel: Cancel) -> io::Result<(Self, OwnedFd)> {
        let (pty, theirs) = Pty::open(lent::size())?;
        let console = Self {
            pty: Some(pty),
            running: None,
            cancel,
            failed: false,
            notices: Vec::new(),
        };
        Ok((console, theirs))
    }

    fn end(&mut self) {
        if let Some(mut running) = self.running.take()
            && let Err(error) = running.end()
        {
            self.notices
                .push(format!("the terminal could not be used: {error}"));
        }
        for line in self.notices.drain(..) {
            eprintln!("hermitcrab: {}", visible(&line));
        }
    }
}

impl ProgressPort for Console {
    fn began(&mut self, _agent: AgentId) {
        let Some(pty) = self.pty.take() else { return };
        match Running::begin(pty) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.failed = true;
                let line = no_thread("its terminal", &error);
                self.notices.push(line);
            }
        }
    }

    /// Nothing it prints comes this way.
    fn output(&mut self, _agent: AgentId, _piece: &str) {}

    fn notice(&mut self, _agent: AgentId, line: &str) {
        self.notices.push(line.to_owned());
    }

    fn ended(&mut self, _agent: AgentId) {
        self.end();
    }

    fn is_wanted(&mut self) -> bool {
        !self.failed && !self.cancel.is_thrown()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn begin(pty: Pty) -> io::Result<Self> {
        let (over, ends) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let thread = std::thread::Builder::new()
            .name("terminal of a command".to_owned())
            .spawn(move || Lent::begin(pty)?.until(&over))?;
        Ok(Self {
            ends: Some(ends),
            thread: Some(thread),
        })
    }

    /// Waits until all it drew is shown and the terminal is given back.
    fn end(&mut self) -> io::Result<()> {
        drop(self.ends.take());
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error),
            // What drew is given back all the same.
            Some(Err(_panic)) => Err(io::Error::other("what it drew could not be read")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _said = self.end();
    }
}

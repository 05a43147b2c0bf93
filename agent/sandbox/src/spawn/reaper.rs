//! What the first process of a sandbox does while its command runs: it reaps, does what
//! the agent wishes, and answers about renames.
//!
//! The end of the command is the end of everything, except where the command was asked
//! to end: then what it started may finish as well, until the agent wishes it gone.

use std::io;
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::channel::{Channel, Received};
use super::renames::Renames;
use super::spec::{Ending, Report, Wish};

/// What is left of the children.
enum Children {
    Some,
    None,
}

/// Reaps every child until the command itself has ended, and everything else with it.
pub(super) fn until_nothing_is_left(
    command: i32,
    agent: &Channel,
    renames: Option<Renames>,
) -> io::Result<Ending> {
    let mut watch = Watch {
        command: Pid::from_raw(command).ok_or(Errno::SRCH)?,
        agent,
        renames,
        agent_speaks: true,
        ending: None,
        lingers: false,
    };
    // The end of a child is read from a descriptor, so that the agent is heard as well.
    let ends = SigSet::from(Number::SIGCHLD);
    ends.thread_block()?;
    let ends = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    loop {
        let children = watch.reap()?;
        match (watch.ending, children) {
            (Some(ending), Children::None) => return Ok(ending),
            (Some(ending), Children::Some) if !watch.lingers => {
                clear(agent);
                return Ok(ending);
            }
            (None, Children::None) => return Err(Errno::CHILD.into()),
            (_, Children::Some) => watch.wait(&ends)?,
        }
    }
}

struct Watch<'a> {
    command: Pid,
    agent: &'a Channel,
    /// Who is asked about renames, if anybody is.
    renames: Option<Renames>,
    /// Whether the agent may still say something.
    agent_speaks: bool,
    /// How the command ended.
    ending: Option<Ending>,
    /// Whether what is left may finish when the command has ended.
    lingers: bool,
}

impl Watch<'_> {
    /// Reaps who has ended by now.
    fn reap(&mut self) -> io::Result<Children> {
        loop {
            // Not nix's waitpid: it fails on the real-time signals.
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => {
                    self.ending = ending(status).or(self.ending);
                }
                Ok(Some((pid, status))) => {
                    if let Some(renames) = &mut self.renames {
                        renames.ended(pid, status);
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) => return Ok(Children::Some),
                Err(Errno::CHILD) => return Ok(Children::None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until a child has ended, the agent wishes something or somebody wants
    /// to rename.
    fn wait(&mut self, ends: &SignalFd) -> io::Result<()> {
        let agent = self.agent_speaks.then(|| self.agent.as_fd());
        let asking = self.renames.as_ref().map(Renames::asking);
        let sources = [Some(ends.as_fd()), agent, asking];
        let mut wanted: Vec<_> = sources
            .into_iter()
            .flatten()
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        match poll(&mut wanted, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut heard = wanted.iter().map(|fd| !fd.revents().is_empty());
        let mut is_heard = |source: Option<_>| source.is_some() && heard.next() == Some(true);
        let [_, speaks, asks] = sources.map(&mut is_heard);
        // First, because until it is heard a signal interrupts whoever asks.
        if asks && let Some(renames) = &mut self.renames {
            renames.hear();
        }
        // Several ends are one signal, and all are looked for after it.
        while ends.read_signal()?.is_some() {}
        if speaks {
            self.listen();
        }
        Ok(())
    }

    fn listen(&mut self) {
        match self.agent.receive_now() {
            Ok(Received::Frame(frame, _)) => match Wish::decode(&frame) {
                Ok(wish) => self.heed(wish),
                Err(_) => self.lingers = false,
            },
            Ok(Received::Nothing) => {}
            // Nobody is there to wait for what lingers.
            Ok(Received::Closed) | Err(_) => {
                self.agent_speaks = false;
                self.lingers = false;
            }
        }
    }

    /// Does what the agent wishes. A signal cannot be sent only where nobody is left
    /// to get it.
    fn heed(&mut self, wish: Wish) {
        self.lingers = wish != Wish::Clear;
        let to_the_command = |signal| {
            // While it has not been reaped, its number is its own.
            if self.ending.is_none() {
                let _sent = rustix::process::kill_process(self.command, signal);
            }
        };
        match wish {
            // Everything this process may signal: the whole namespace, but not itself.
            Wish::Terminate if is_first() => {
                let _sent = rustix::process::kill_process_group(Pid::INIT, Signal::TERM);
            }
            Wish::Terminate => to_the_command(Signal::TERM),
            Wish::HangUp => to_the_command(Signal::HUP),
            Wish::GoOn => to_the_command(Signal::CONT),
            Wish::Interrupt => to_the_command(Signal::INT),
            Wish::Clear => {}
        }
    }
}

/// Whether everything this process may signal is in a namespace that begins with it.
/// Elsewhere, which is in tests alone, that would be processes of the machine.
fn is_first() -> bool {
    rustix::process::getpid() == Pid::INIT
}

fn ending(status: WaitStatus) -> Option<Ending> {
    let exited = status.exit_status().map(Ending::Exited);
    exited.or_else(|| status.terminating_signal().map(Ending::Signalled))
}

/// Kills what the command left running and waits until it is gone, so that the report
/// of its end means that nothing is left.
///
/// Only where something is left: it is looked for among the processes of the whole
/// machine, which is what kill(-1) does.
fn clear(agent: &Channel) {
    if !is_first() {
        return;
    }
    // Before, because what is left may keep this process from running. If it is
    // not heard the rest ends all the same.
    let _told = agent.send(&Report::Clearing.encode(), &[]);
    let _none_left = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

//! The spawner process: builds one sandbox, watches it, kills it on request.
//!
//! It stays outside the sandbox, single-threaded, and does nothing with what
//! the command says. When the agent goes away its socket closes, and the
//! sandbox is killed; when the spawner goes away the kernel kills the sandbox.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{DumpableBehavior, PidfdFlags, pidfd_open};

use super::channel::{Channel, Received};
use super::identity::Identity;
use super::init::{self, Verdict};
use super::spec::{Ending, Report, Spec};
use super::stage::stage_views;
use super::step::{AtStep, Step, StepError};
use crate::sys::{self, Forked};

/// The spawner's whole life; the result is its exit code.
pub(crate) fn run(control: OwnedFd) -> i32 {
    let mut control = Channel::new(control);
    match supervise(&mut control) {
        Ok(ending) => i32::from(control.send(&Report::Ended(ending).encode(), &[]).is_err()),
        Err(error) => {
            let _told = control.send(&Report::Failed(error).encode(), &[]);
            1
        }
    }
}

fn supervise(control: &mut Channel) -> Result<Ending, StepError> {
    let (frame, _none) = control.receive_frame().at(Step::ReadRequest, "")?;
    let spec = Spec::decode(&frame)
        .map_err(|_| StepError::new(Step::ReadRequest, "", io::Error::other("garbled request")))?;
    // The map files of a process that is not dumpable belong to root.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)
        .at(Step::Identity, "dumpable")?;
    let (owner, group) = spec
        .views
        .first()
        .map_or((0, 0), |view| (view.owner, view.group));
    let identity = Identity::choose(owner, group)?;
    let staged = if identity.translate_owners {
        Some(stage_views(&spec, &identity)?)
    } else {
        None
    };

    let pipe = || pipe_with(PipeFlags::CLOEXEC).at(Step::Fork, "pipe");
    let (verdict_read, verdict_write) = pipe()?;
    let (mapped_read, mapped_write) = pipe()?;
    let mut namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !spec.faults.network {
        namespaces |= CloneFlags::CLONE_NEWNET;
    }
    let child = match sys::fork_into(namespaces).at(Step::Namespaces, "")? {
        Forked::Child => {
            drop((verdict_read, mapped_write));
            init::run(init::Start {
                spec,
                identity,
                staged,
                control,
                mapped: mapped_read,
                verdict: verdict_write,
            })
        }
        Forked::Parent(child) => child,
    };
    drop((verdict_write, mapped_read));
    let guard = KillOnDrop(Some(child));
    let pidfd = rustix::process::Pid::from_raw(child.as_raw())
        .ok_or_else(|| StepError::new(Step::Fork, "", io::Error::other("no process id")))?;
    let pidfd = pidfd_open(pidfd, PidfdFlags::empty()).at(Step::Wait, "pidfd")?;
    identity.write_maps(child.as_raw())?;
    rustix::io::write(&mapped_write, b"m").at(Step::MapIds, "")?;
    // From here only the sandbox holds the command's output pipes.
    init::forget_output().at(Step::Talk, "/dev/null")?;

    wait_or_kill(control, &pidfd, child, spec.faults.orphans)?;
    guard.reap()?;
    Ok(match init::read_verdict(&verdict_read) {
        Some(Verdict::Ended(ending)) => ending,
        Some(Verdict::Failed(error)) => return Err(error),
        None => Ending::Killed,
    })
}

/// Returns when the sandbox's first process has ended, and everything with it.
fn wait_or_kill(
    control: &mut Channel,
    pidfd: &OwnedFd,
    child: Pid,
    orphans: bool,
) -> Result<(), StepError> {
    let mut listening = true;
    loop {
        let ended = {
            let mut wanted = vec![PollFd::new(pidfd, PollFlags::IN)];
            if listening {
                wanted.push(PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN));
            }
            match poll(&mut wanted, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(StepError::new(Step::Wait, "poll", errno)),
            }
            wanted.first().is_some_and(|fd| !fd.revents().is_empty())
        };
        if ended {
            return Ok(());
        }
        if !listening {
            continue;
        }
        if !readable(control) {
            continue;
        }
        // Whatever the agent says after its request means: stop. So does its end.
        match control.receive() {
            Ok(Received::Nothing) => {}
            Ok(Received::Frame(..) | Received::Closed) | Err(_) => {
                listening = false;
                if !orphans {
                    kill(child, Signal::SIGKILL).at(Step::Wait, "kill")?;
                }
            }
        }
    }
}

fn readable(control: &Channel) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN)];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut wanted, Some(&now)), Ok(count) if count > 0)
}

/// Ends the sandbox on every path out.
struct KillOnDrop(Option<Pid>);

impl KillOnDrop {
    fn reap(mut self) -> Result<(), StepError> {
        match self.0.take() {
            Some(child) => wait_for(child).at(Step::Wait, ""),
            None => Ok(()),
        }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            let _killed = kill(child, Signal::SIGKILL);
            let _reaped = wait_for(child);
        }
    }
}

fn wait_for(child: Pid) -> io::Result<()> {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return Ok(()),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

//! The spawner as a process of the agent: started, watched, ended.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::Shutdown;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::ambient::{CHILD_ARGUMENT, is_own_spawner};
use crate::program::SpawnerProgram;
use crate::spawn::channel::Channel;
use crate::spawn::streams::null;
use crate::step::{AtStep, Step, StepError};

/// How long a spawner may take to end what it made once it is let go.
const END_TIMEOUT: Timespec = Timespec {
    tv_sec: 4,
    tv_nsec: 0,
};

/// The spawner process; dropping it ends it, and through the kernel all that it made.
#[derive(Debug)]
pub(super) struct Spawner {
    pub child: Child,
    pub control: Channel,
}

/// The children of a process, as the kernel lists them.
pub(super) fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let listed = std::fs::read_to_string(path).unwrap_or_default();
    listed
        .split_ascii_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // It ends by itself when it is let go, and takes its groups away; one
        // that does not is killed.
        let _let_go = rustix::net::shutdown(self.control.as_fd(), Shutdown::Both);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            let mut wanted = [PollFd::new(&process, PollFlags::IN)];
            let _waited = poll(&mut wanted, Some(&END_TIMEOUT));
        }
        // It can only fail for a process that is gone.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Starts one.
pub(super) fn start(program: &SpawnerProgram) -> Result<Spawner, StepError> {
    let path = program.path();
    if *program == SpawnerProgram::Own && !is_own_spawner() {
        let why = "its `main` does not call `hermitcrab_sandbox::maybe_run_as_child`";
        return Err(StepError::new(
            Step::StartSpawner,
            "this program",
            io::Error::other(why),
        ));
    }
    let (ours, theirs) = Channel::pair().at(Step::StartSpawner, "socketpair")?;
    let child = std::process::Command::new(&path)
        .arg(CHILD_ARGUMENT)
        .env_clear()
        .stdin(Stdio::from(theirs.into_socket()))
        // Opened here, so that it is named where it is not there.
        .stdout(Stdio::from(null()?))
        .stderr(Stdio::from(null()?))
        // A ^C is for whoever holds the terminal, who then ends what is to end.
        .process_group(0)
        .spawn()
        .at(Step::StartSpawner, path.display().to_string())?;
    Ok(Spawner {
        child,
        control: ours,
    })
}

/// Whether every holder of the other end is gone.
pub(super) fn hung_up(channel: &Channel) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(
        channel.as_fd(),
        PollFlags::empty(),
    )];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&now)).is_err()
        || wanted
            .first()
            .is_none_or(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

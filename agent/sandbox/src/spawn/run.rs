//! The agent's side: start the spawner, drain the outputs, keep the time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use hermitcrab_core::fault::{self, Fault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};

use super::channel::{Channel, Received};
use super::output::Collector;
use super::spec::{self, FaultSpec, LimitSpec, Report, Spec, ViewSpec};
use super::step::{AtStep, Step, StepError};
use super::{Command, Ending, Exchange, Finished, SpawnError, ViewMode};
use crate::ambient::CHILD_ARGUMENT;
use crate::changeset::ChangeSet;
use crate::spawner::SpawnerProgram;

/// How long a killed sandbox may take to be gone before its spawner is killed too.
const REAP_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(program: &SpawnerProgram, command: &Command<'_>) -> Result<Finished, SpawnError> {
    let started = Instant::now();
    // The clock that file systems stamp changes with.
    let began = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let spec = spec_of(command)?;
    let orphans = spec.faults.orphans;
    let mut session = Session::start(program, command.limits.output_bytes_max)?;
    let told = session.control.send(&spec.encode(), &[]);
    drop(spec);
    // A spawner that failed early says why, which is better than a broken pipe.
    let deadline = started.checked_add(command.limits.timeout);
    let outcome = session.attend(deadline, orphans)?;
    let (report, timed_out) = match outcome {
        Attended::Reported(report, timed_out) => (report, timed_out),
        Attended::Silent => {
            told.at(Step::Talk, "request")?;
            return Err(StepError::new(
                Step::Talk,
                "",
                io::Error::other("the spawner went away without a word"),
            )
            .into());
        }
        Attended::Abandoned => {
            if !orphans {
                session.kill_spawner();
            }
            (Report::Ended(spec::Ending::Killed), true)
        }
    };
    let ending = match report {
        Report::Failed(error) => return Err(error.into()),
        Report::Ready => {
            return Err(StepError::new(Step::Talk, "", io::Error::other("no ending")).into());
        }
        Report::Ended(_) if timed_out => Ending::TimedOut,
        Report::Ended(spec::Ending::Exited(code)) => Ending::Exited(code),
        Report::Ended(spec::Ending::Signalled(signal)) => Ending::Signalled(signal),
        Report::Ended(spec::Ending::Killed) => Ending::Killed,
    };
    let kept = session.finish(orphans)?;
    let mut descriptors = kept.descriptors.into_iter();
    let mut changes = Vec::new();
    for view in &command.views {
        if view.mode == ViewMode::CopyOnWrite {
            let upper = descriptors.next().ok_or_else(missing_layer)?;
            let bytes_max = command.limits.view_bytes_max;
            let set = ChangeSet::read(upper, view.dir, bytes_max, began);
            changes.push(set.map_err(SpawnError::ChangeSet)?);
        }
    }
    let dir = descriptors.next().ok_or_else(missing_layer)?;
    Ok(Finished {
        ending,
        stdout: kept.stdout,
        stderr: kept.stderr,
        changes,
        exchange: Exchange { dir },
        elapsed: started.elapsed(),
    })
}

fn missing_layer() -> StepError {
    StepError::new(
        Step::Talk,
        "",
        io::Error::other("the sandbox ended before it was ready"),
    )
}

fn spec_of(command: &Command<'_>) -> Result<Spec, StepError> {
    let mut views = Vec::new();
    for view in &command.views {
        let fd = view.dir.as_fd();
        let on = view.at.display().to_string();
        let stat = rustix::fs::fstat(fd).at(Step::ViewSource, on.clone())?;
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        let source = std::fs::read_link(&link).at(Step::ViewSource, on)?;
        views.push(ViewSpec {
            source: source.as_os_str().as_bytes().to_vec(),
            device: stat.st_dev,
            inode: stat.st_ino,
            owner: stat.st_uid,
            group: stat.st_gid,
            at: view.at.as_os_str().as_bytes().to_vec(),
            copy_on_write: view.mode == ViewMode::CopyOnWrite,
        });
    }
    let limits = &command.limits;
    Ok(Spec {
        argv: command.argv.clone(),
        env: command.env.clone(),
        cwd: command.cwd.as_os_str().as_bytes().to_vec(),
        views,
        private_dirs: command
            .private_dirs
            .iter()
            .map(|dir| dir.as_os_str().as_bytes().to_vec())
            .collect(),
        inputs: command
            .inputs
            .iter()
            .map(|(name, bytes)| (name.as_bytes().to_vec(), bytes.clone()))
            .collect(),
        merge_stderr: command.merge_stderr,
        limits: LimitSpec {
            processes: limits.processes_max,
            open_files: limits.open_files_max,
            file_bytes: limits.file_bytes_max,
            data_bytes: limits.data_bytes_max.unwrap_or(0),
            view_bytes: limits.view_bytes_max,
            view_inodes: limits.view_inodes_max,
            tmp_bytes: limits.tmp_bytes_max,
        },
        faults: FaultSpec {
            network: fault::is(Fault::SandboxHasNetwork),
            home: fault::is(Fault::SandboxSeesHome),
            orphans: fault::is(Fault::TimeoutLeavesOrphans),
        },
    })
}

/// A running spawner.
struct Session {
    control: Channel,
    spawner: Option<Child>,
    stdout: Collector,
    stderr: Collector,
    descriptors: Vec<OwnedFd>,
}

enum Attended {
    /// The last report, and whether it came after the deadline.
    Reported(Report, bool),
    /// The spawner is gone and said nothing.
    Silent,
    /// It did not end in time after being told to.
    Abandoned,
}

struct Kept {
    stdout: super::Captured,
    stderr: super::Captured,
    descriptors: Vec<OwnedFd>,
}

impl Session {
    fn start(program: &SpawnerProgram, bytes_max: usize) -> Result<Self, StepError> {
        let path = program.path();
        let on = || path.display().to_string();
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .at(Step::StartSpawner, "socketpair")?;
        let (stdout_read, stdout_write) =
            pipe_with(PipeFlags::CLOEXEC).at(Step::StartSpawner, "pipe")?;
        let (stderr_read, stderr_write) =
            pipe_with(PipeFlags::CLOEXEC).at(Step::StartSpawner, "pipe")?;
        for pipe in [&stdout_read, &stderr_read] {
            rustix::fs::fcntl_setfl(pipe, OFlags::NONBLOCK).at(Step::StartSpawner, "pipe")?;
        }
        let spawner = std::process::Command::new(&path)
            .arg(CHILD_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(stdout_write))
            .stderr(Stdio::from(stderr_write))
            .spawn()
            .at(Step::StartSpawner, on())?;
        Ok(Self {
            control: Channel::new(ours),
            spawner: Some(spawner),
            stdout: Collector::new(stdout_read, bytes_max),
            stderr: Collector::new(stderr_read, bytes_max),
            descriptors: Vec::new(),
        })
    }

    /// Waits for the last report, draining the outputs meanwhile.
    fn attend(&mut self, deadline: Option<Instant>, orphans: bool) -> Result<Attended, StepError> {
        let mut limit = deadline;
        let mut timed_out = false;
        loop {
            let now = Instant::now();
            if limit.is_some_and(|limit| now >= limit) {
                if timed_out || orphans {
                    return Ok(Attended::Abandoned);
                }
                timed_out = true;
                limit = now.checked_add(REAP_TIMEOUT);
                // If it cannot be told, its spawner is gone, and so is the sandbox.
                let _told = self.control.send(b"stop", &[]);
            }
            let ready = self.wait(limit.map(|limit| limit.saturating_duration_since(now)))?;
            if ready.stdout {
                self.stdout.read().at(Step::Talk, "stdout")?;
            }
            if ready.stderr {
                self.stderr.read().at(Step::Talk, "stderr")?;
            }
            if !ready.control {
                continue;
            }
            let (frame, descriptors) = match self.control.receive() {
                Ok(Received::Frame(frame, descriptors)) => (frame, descriptors),
                Ok(Received::Nothing) => continue,
                Ok(Received::Closed) => return Ok(Attended::Silent),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Attended::Silent);
                }
                Err(error) => return Err(StepError::new(Step::Talk, "", error)),
            };
            self.descriptors.extend(descriptors);
            match Report::decode(&frame) {
                Ok(Report::Ready) => {}
                Ok(report) => return Ok(Attended::Reported(report, timed_out)),
                Err(_) => {
                    return Err(StepError::new(
                        Step::Talk,
                        "",
                        io::Error::other("a garbled report"),
                    ));
                }
            }
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Woken, StepError> {
        let mut wanted = vec![PollFd::from_borrowed_fd(
            self.control.as_fd(),
            PollFlags::IN,
        )];
        let streams = [&self.stdout, &self.stderr].map(|stream| {
            stream.pipe().map(|pipe| {
                wanted.push(PollFd::new(pipe, PollFlags::IN));
                wanted.len().saturating_sub(1)
            })
        });
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        match poll(&mut wanted, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Woken::default()),
            Err(errno) => return Err(StepError::new(Step::Talk, "poll", errno)),
        }
        let is_ready = |place: Option<usize>| {
            place
                .and_then(|place| wanted.get(place))
                .is_some_and(|fd| !fd.revents().is_empty())
        };
        let [stdout, stderr] = streams;
        Ok(Woken {
            control: is_ready(Some(0)),
            stdout: is_ready(stdout),
            stderr: is_ready(stderr),
        })
    }

    fn finish(mut self, orphans: bool) -> Result<Kept, StepError> {
        match self.spawner.take() {
            Some(mut spawner) if !orphans => {
                spawner.wait().at(Step::Wait, "spawner")?;
            }
            _ => {}
        }
        let descriptors = std::mem::take(&mut self.descriptors);
        let (stdout, stderr) = self.take_streams();
        Ok(Kept {
            stdout: stdout.finish().at(Step::Talk, "stdout")?,
            stderr: stderr.finish().at(Step::Talk, "stderr")?,
            descriptors,
        })
    }

    /// The kernel kills the sandbox with its spawner.
    fn kill_spawner(&mut self) {
        if let Some(spawner) = &mut self.spawner {
            // It can only fail for a process that is gone.
            let _killed = spawner.kill();
        }
    }

    fn take_streams(&mut self) -> (Collector, Collector) {
        (
            std::mem::replace(&mut self.stdout, Collector::closed()),
            std::mem::replace(&mut self.stderr, Collector::closed()),
        )
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill_spawner();
        if let Some(mut spawner) = self.spawner.take() {
            let _reaped = spawner.wait();
        }
    }
}

#[derive(Default)]
struct Woken {
    control: bool,
    stdout: bool,
    stderr: bool,
}

//! The first process of the sandbox: makes it, starts the command, reaps.
//!
//! It runs as process 1 of the new pid namespace, so its end is the end of
//! every process inside. It never looks at what the command does.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal, WaitOptions, setrlimit};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::channel::Channel;
use super::filter::{Filter, FilterSpec, Sockets};
use super::identity::Identity;
use super::root;
use super::spec::{Ending, LimitSpec, Report, Spec};
use super::step::{AtStep, Step, StepError};
use crate::sys::{self, Forked};

/// What the process needs from its parent.
pub(crate) struct Start<'a> {
    pub spec: Spec,
    pub identity: Identity,
    /// Where root's prepared views are, if root made any.
    pub staged: Option<PathBuf>,
    /// Used for one message to the agent, then let go.
    pub control: &'a mut Channel,
    /// Readable once the id maps are written.
    pub mapped: OwnedFd,
    /// Where the ending goes.
    pub verdict: OwnedFd,
}

/// What the process tells the spawner at its end.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The command ran.
    Ended(Ending),
    /// A step failed.
    Failed(StepError),
}

/// The exit code that means nothing: the verdict is in the pipe.
const EXIT: i32 = 0;

/// Runs in the child of the fork and never comes back.
pub(crate) fn run(start: Start<'_>) -> ! {
    let verdict = start.verdict;
    let result = enter(
        start.spec,
        &start.identity,
        start.staged,
        start.control,
        &start.mapped,
        verdict.as_fd(),
    );
    let report = match result {
        Ok(ending) => Report::Ended(ending),
        Err(error) => Report::Failed(error),
    };
    let _told = write_all(verdict.as_fd(), &report.encode());
    sys::exit_immediately(EXIT)
}

/// Reads what `run` wrote; `None` if it was killed before.
pub(crate) fn read_verdict(pipe: &OwnedFd) -> Option<Verdict> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(buffer.get(..count)?),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    match Report::decode(&bytes).ok()? {
        Report::Ended(ending) => Some(Verdict::Ended(ending)),
        Report::Failed(error) => Some(Verdict::Failed(error)),
        Report::Ready => None,
    }
}

/// Points the standard output and error elsewhere.
pub(crate) fn forget_output() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn enter(
    spec: Spec,
    identity: &Identity,
    staged: Option<PathBuf>,
    control: &mut Channel,
    mapped: &OwnedFd,
    verdict: BorrowedFd<'_>,
) -> Result<Ending, StepError> {
    let mut byte = [0_u8; 1];
    if rustix::io::read(mapped, &mut byte).at(Step::MapIds, "")? == 0 {
        return Err(StepError::new(
            Step::MapIds,
            "",
            io::Error::other("the spawner is gone"),
        ));
    }
    if identity.must_switch() {
        take_ids(identity)?;
    }
    die_with_spawner(verdict)?;
    let built = root::build(&spec, staged.as_deref())?;
    drop_capabilities()?;
    limit(&spec.limits)?;
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::DropCapabilities, "dumpable")?;
    let filter = Filter::build(&FilterSpec {
        sockets: if spec.faults.network {
            Sockets::Internet
        } else {
            Sockets::Local
        },
    });
    let prepared = Prepared::new(spec)?;
    filter.install().at(Step::SystemCallFilter, "install")?;

    let descriptors: Vec<_> = built
        .uppers
        .iter()
        .chain(std::iter::once(&built.exchange))
        .map(AsFd::as_fd)
        .collect();
    control
        .send(&Report::Ready.encode(), &descriptors)
        .at(Step::Talk, "ready")?;
    drop(built);

    let (failure_read, failure_write) = pipe_with(PipeFlags::CLOEXEC).at(Step::Fork, "pipe")?;
    match sys::fork_single_threaded().at(Step::Fork, "")? {
        Forked::Child => {
            drop(failure_read);
            let error = match prepared.become_command() {
                Err(error) => error,
                Ok(never) => match never {},
            };
            let _told = write_all(failure_write.as_fd(), &Report::Failed(error).encode());
            sys::exit_immediately(127)
        }
        Forked::Parent(command) => {
            drop(failure_write);
            forget_output().at(Step::Talk, "/dev/null")?;
            if let Some(Verdict::Failed(error)) = read_verdict(&failure_read) {
                return Err(error);
            }
            reap_until(command).at(Step::Wait, "")
        }
    }
}

fn take_ids(identity: &Identity) -> Result<(), StepError> {
    let user = rustix::process::Uid::from_raw(identity.user);
    let group = rustix::process::Gid::from_raw(identity.group);
    rustix::thread::set_thread_groups(&[group]).at(Step::TakeIds, "groups")?;
    rustix::thread::set_thread_res_gid(group, group, group).at(Step::TakeIds, "group")?;
    rustix::thread::set_thread_res_uid(user, user, user).at(Step::TakeIds, "user")
}

/// Asks to be killed with the spawner, then makes sure it is not gone already.
fn die_with_spawner(verdict: BorrowedFd<'_>) -> Result<(), StepError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .at(Step::TakeIds, "death signal")?;
    // The spawner alone reads the pipe: without it the pipe is broken.
    let mut wanted = [PollFd::from_borrowed_fd(verdict, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&now)).at(Step::TakeIds, "poll")?;
    if wanted
        .first()
        .is_some_and(|fd| fd.revents().contains(PollFlags::ERR))
    {
        sys::exit_immediately(EXIT);
    }
    Ok(())
}

/// Gives up every capability, and every way to get one back.
fn drop_capabilities() -> Result<(), StepError> {
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // EINVAL: the kernel is older than the capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(errno) => {
                return Err(StepError::new(
                    Step::DropCapabilities,
                    "bounding set",
                    errno,
                ));
            }
        }
    }
    rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
    .at(Step::DropCapabilities, "securebits")?;
    rustix::thread::clear_ambient_capability_set().at(Step::DropCapabilities, "ambient")?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
    .at(Step::DropCapabilities, "sets")?;
    rustix::thread::set_no_new_privs(true).at(Step::DropCapabilities, "no_new_privs")
}

fn limit(limits: &LimitSpec) -> Result<(), StepError> {
    let set = |resource: Resource, name: &str, value: u64| {
        // A hard limit can only be lowered.
        let hard = rustix::process::getrlimit(resource).maximum;
        let value = hard.map_or(value, |hard| hard.min(value));
        setrlimit(
            resource,
            Rlimit {
                current: Some(value),
                maximum: Some(value),
            },
        )
        .at(Step::ResourceLimits, name)
    };
    set(Resource::Core, "core", 0)?;
    set(Resource::Nproc, "processes", limits.processes)?;
    set(Resource::Nofile, "open files", limits.open_files)?;
    set(Resource::Fsize, "file size", limits.file_bytes)?;
    if limits.data_bytes > 0 {
        set(Resource::Data, "data", limits.data_bytes)?;
    }
    Ok(())
}

/// The command in the form exec wants it, made before the fork.
struct Prepared {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    merge_stderr: bool,
}

impl Prepared {
    fn new(spec: Spec) -> Result<Self, StepError> {
        let text = |bytes: Vec<u8>| {
            CString::new(bytes).map_err(|_| {
                StepError::new(Step::Exec, "", io::Error::other("a NUL in an argument"))
            })
        };
        let program = spec.argv.first().cloned().unwrap_or_default();
        let mut candidates = Vec::new();
        if program.contains(&b'/') {
            candidates.push(text(program)?);
        } else {
            let path = spec.env.iter().find(|(name, _)| name == b"PATH");
            let path = path.map_or(&b"/usr/bin:/bin"[..], |(_, value)| value);
            for dir in path.split(|byte| *byte == b':') {
                // An empty entry would mean the working directory.
                if !dir.is_empty() && !program.is_empty() {
                    candidates.push(text([dir, b"/", &program].concat())?);
                }
            }
        }
        let env = spec
            .env
            .into_iter()
            .map(|(name, value)| text([name, b"=".to_vec(), value].concat()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            candidates,
            argv: spec.argv.into_iter().map(text).collect::<Result<_, _>>()?,
            env,
            cwd: text(spec.cwd)?,
            merge_stderr: spec.merge_stderr,
        })
    }

    /// Turns the calling process into the command.
    fn become_command(&self) -> Result<Infallible, StepError> {
        rustix::process::setsid().at(Step::Exec, "setsid")?;
        sys::reset_signals();
        if self.merge_stderr {
            rustix::stdio::dup2_stderr(rustix::stdio::stdout()).at(Step::Exec, "stderr")?;
        }
        rustix::process::chdir(&*self.cwd)
            .at(Step::WorkingDir, self.cwd.to_string_lossy().into_owned())?;
        sys::close_on_exec_from(3).at(Step::Exec, "close_range")?;
        let mut refused = io::Error::from_raw_os_error(nix::libc::ENOENT);
        for candidate in &self.candidates {
            match nix::unistd::execve(candidate, &self.argv, &self.env) {
                Ok(never) => return Ok(never),
                Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ENOTDIR) => {}
                Err(nix::errno::Errno::EACCES) => {
                    refused = io::Error::from_raw_os_error(nix::libc::EACCES);
                }
                Err(errno) => {
                    refused = errno.into();
                    break;
                }
            }
        }
        let program = self
            .argv
            .first()
            .map(|text| text.to_string_lossy().into_owned());
        Err(StepError::new(
            Step::Exec,
            program.unwrap_or_default(),
            refused,
        ))
    }
}

/// Reaps every child until the command itself has ended.
fn reap_until(command: Pid) -> io::Result<Ending> {
    loop {
        // Not nix's waitpid: it fails on the real-time signals.
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command.as_raw() => {
                if let Some(code) = status.exit_status() {
                    return Ok(Ending::Exited(code));
                }
                if let Some(signal) = status.terminating_signal() {
                    return Ok(Ending::Signalled(signal));
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

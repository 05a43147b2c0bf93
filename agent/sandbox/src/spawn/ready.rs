//! The process that waits inside a finished sandbox to become the command.
//!
//! Everything that can be done before the command is known has been done: ids,
//! capabilities, limits, filter, session. It is used for one command and has
//! seen no data before.
//!
//! It lives in the memory of the sandbox's first process, which stands still
//! until this one has become the command: with one thread at a time no lock is
//! held that nobody could release, and no signal has a handler, so nothing here
//! runs inside of something else. What it frees must be its own.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::channel::{Channel, Received};
use super::interpreter::{SCRIPT_NUMBER, SIGNAL_NUMBER};
use super::root;
use super::spec::{Program, Report};
use crate::landlock::Fence;
use crate::mechanism::{Mechanism, MechanismSet};
use crate::net::is_of_options;
use crate::step::{AtStep, CLOSE_RANGE, Step, StepError};
use crate::sys;

/// How long it waits for a command. Longer than the agent would use it, so
/// that only an agent that has forgotten it is affected.
const PATIENCE: Timespec = Timespec {
    tv_sec: 90,
    tv_nsec: 0,
};

/// Runs in the child and never comes back.
///
/// The fence is closed first: from then on not even this program's own code
/// can do more than the command. `ready` is said before, with a descriptor of
/// this process and the others: there it can still be made. `proxy` is where that
/// listens, if there is one. `without` is what is left out, in tests.
pub(crate) fn run(
    reply: &Channel,
    fence: Option<Fence>,
    proxy: Option<Ipv4Addr>,
    ready: &[u8],
    others: &[BorrowedFd<'_>],
    without: MechanismSet,
) -> Infallible {
    let told = pidfd_open(getpid(), PidfdFlags::empty())
        .at(Step::Wait, "pidfd")
        .and_then(|main| {
            let all = [&[main.as_fd()], others].concat();
            reply.send(ready, &all).at(Step::Talk, "ready")
        });
    let moved = out_of_the_way(reply).map(Channel::new);
    let reply = moved.as_ref().unwrap_or(reply);
    let result = told
        .and_then(|()| match without.contains(Mechanism::OwnSession) {
            true => Ok(()),
            false => rustix::process::setsid().map(drop).at(Step::Exec, "setsid"),
        })
        .and_then(|()| match fence {
            Some(fence) => fence.close().map(drop).at(Step::Landlock, "close"),
            None => Ok(()),
        })
        .and_then(|()| wait(reply))
        .and_then(|(mut program, streams)| {
            let at = proxy.unwrap_or(Ipv4Addr::LOCALHOST);
            for (name, value) in program.proxied.variables(at) {
                // What the command sets itself stays.
                match program.env.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, own)) if is_of_options(&name) => {
                        own.push(b' ');
                        own.extend(value);
                    }
                    Some(_) => {}
                    None => program.env.push((name, value)),
                }
            }
            become_command(program, streams, without)
        });
    let error = match result {
        Err(error) => error,
        Ok(never) => match never {},
    };
    let _told = reply.send(&Report::Failed(error).encode(), &[]);
    sys::exit_immediately(127)
}

/// Waits for the command and its standard streams.
fn wait(reply: &Channel) -> Result<(Program, Vec<OwnedFd>), StepError> {
    loop {
        let mut wanted = [PollFd::from_borrowed_fd(reply.as_fd(), PollFlags::IN)];
        match poll(&mut wanted, Some(&PATIENCE)) {
            Ok(0) => retire(reply),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(StepError::new(Step::Talk, "command", errno)),
        }
        match reply.receive_now().at(Step::Talk, "command")? {
            Received::Frame(frame, streams) => {
                let program = Program::decode(&frame).map_err(|_| {
                    StepError::new(Step::ReadRequest, "", io::Error::other("garbled command"))
                })?;
                return Ok((program, streams));
            }
            Received::Nothing => {}
            // Nobody is there to run anything for.
            Received::Closed => sys::exit_immediately(0),
        }
    }
}

/// Nothing was run, and nothing will be: the agent may ask elsewhere.
fn retire(reply: &Channel) -> ! {
    let _told = reply.send(&Report::Retired.encode(), &[]);
    sys::exit_immediately(0)
}

fn become_command(
    program: Program,
    streams: Vec<OwnedFd>,
    without: MechanismSet,
) -> Result<Infallible, StepError> {
    let mut streams = streams.into_iter();
    let mut next = || {
        streams
            .next()
            .ok_or_else(|| StepError::new(Step::Exec, "streams", io::ErrorKind::NotFound))
    };
    rustix::stdio::dup2_stdin(next()?).at(Step::Exec, "stdin")?;
    rustix::stdio::dup2_stdout(next()?).at(Step::Exec, "stdout")?;
    if program.merge_stderr {
        rustix::stdio::dup2_stderr(rustix::stdio::stdout()).at(Step::Exec, "stderr")?;
    } else {
        rustix::stdio::dup2_stderr(next()?).at(Step::Exec, "stderr")?;
    }
    if program.on_terminal {
        // The session is new, and has no terminal yet.
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()).at(Step::Exec, "terminal")?;
    }
    root::write_inputs(&program.inputs)?;
    let mut numbered = Vec::new();
    if program.interpreter {
        for number in [SCRIPT_NUMBER, SIGNAL_NUMBER] {
            numbered.push((out_of_the_way(&next()?)?, number));
        }
    }
    let closed = !without.contains(Mechanism::ClosedDescriptors);
    Prepared::new(program)?.exec(numbered, closed)
}

/// A descriptor whose number no interpreter looks at.
fn out_of_the_way(fd: &impl AsFd) -> Result<OwnedFd, StepError> {
    rustix::io::fcntl_dupfd_cloexec(fd, SIGNAL_NUMBER.saturating_add(1)).at(Step::Exec, "dup")
}

/// The command in the form exec wants it, made before the fork.
struct Prepared {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
}

impl Prepared {
    fn new(spec: Program) -> Result<Self, StepError> {
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
        })
    }

    /// Turns the calling process into the command, which finds these
    /// descriptors under their numbers and, if the rest is `closed`, no others.
    fn exec(&self, numbered: Vec<(OwnedFd, i32)>, closed: bool) -> Result<Infallible, StepError> {
        rustix::process::chdir(&*self.cwd)
            .at(Step::WorkingDir, self.cwd.to_string_lossy().into_owned())?;
        if closed {
            sys::close_on_exec_from(3).at(Step::Exec, CLOSE_RANGE)?;
        }
        for (fd, number) in numbered {
            sys::give_number(fd, number).at(Step::Exec, "dup")?;
        }
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;

    use super::{Prepared, Program};
    use crate::net::Proxied;

    const AGAIN: &str = "spawn::ready::tests::a_command_finds_no_descriptor_that_was_left_open";

    /// The sandbox's first process has closed all it was made with by then; what is opened
    /// while the root is built, and forgotten, is closed here.
    #[test]
    fn a_command_finds_no_descriptor_that_was_left_open() {
        let dir = tempfile::tempdir().unwrap();
        let is_child = std::path::Path::new("becomes-the-command").exists();
        if !is_child {
            std::fs::write(dir.path().join("becomes-the-command"), "").unwrap();
            let ran = Command::new(std::fs::read_link("/proc/self/exe").unwrap())
                .args(["--exact", AGAIN, "--nocapture"])
                .current_dir(dir.path())
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&ran.stdout);
            let found = told.split_once("FOUND").map(|(_, found)| found);
            let found: Vec<&str> = found.unwrap_or_default().split_whitespace().collect();
            // 3 is the directory that is listed.
            assert_eq!(found, ["0", "1", "2", "3", "OVER"], "{told}");
            return;
        }
        let file = File::open("/dev/null").unwrap();
        let number = file.try_clone().unwrap();
        rustix::io::fcntl_setfd(&number, rustix::io::FdFlags::empty()).unwrap();
        let text = |words: &str| words.as_bytes().to_vec();
        let list = "echo FOUND; ls /proc/self/fd; echo OVER";
        let program = Program {
            argv: ["/bin/sh", "-c", list].map(text).to_vec(),
            env: vec![(text("PATH"), text("/usr/bin:/bin"))],
            cwd: text("/"),
            inputs: Vec::new(),
            merge_stderr: false,
            on_terminal: false,
            interpreter: false,
            proxied: Proxied::default(),
        };
        let error = Prepared::new(program).unwrap().exec(Vec::new(), true);
        panic!("it did not become the command: {error:?}");
    }
}

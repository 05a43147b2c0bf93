//! The standard streams of a command, and who holds which end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::interpreter::Started;
use super::output::Collector;
use crate::step::{AtStep, Step, StepError};

/// Where a command's standard input comes from.
#[derive(Debug, Default)]
pub enum Input {
    /// It is at its end from the beginning.
    #[default]
    Nothing,
    /// A pipe, see [`Running::take_stdin`](super::Running::take_stdin).
    Pipe,
    /// This descriptor.
    From(OwnedFd),
    /// This terminal, made for the command, which controls it and nothing else.
    Terminal(OwnedFd),
}

/// Where a command's standard output or error goes.
#[derive(Debug, Default)]
pub enum Output {
    /// It is read and kept up to the command's ceiling.
    #[default]
    Captured,
    /// Into this descriptor; nothing of it is read.
    To(OwnedFd),
}

/// The standard streams of a command.
#[derive(Debug, Default)]
pub struct Streams {
    /// Its input.
    pub stdin: Input,
    /// Its output.
    pub stdout: Output,
    /// Its errors; not used when the command merges them with its output.
    pub stderr: Output,
}

/// Which of the two outputs a piece came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, and error if the command merges them.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a command with the usual streams needs, made before there is one. It is
/// used for one command, as the sandbox it was made for.
#[derive(Debug)]
pub(crate) struct Prepared {
    null: OwnedFd,
    stdout: Pipe,
    stderr: Pipe,
}

/// Where output is read, without waiting, and where it is written.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Our ends.
#[derive(Debug)]
pub(super) struct Ours {
    pub stdin: Option<OwnedFd>,
    pub stdout: Collector,
    pub stderr: Collector,
}

/// The command's ends, in the order it expects them.
#[derive(Debug)]
pub(super) struct Theirs(Vec<OwnedFd>);

impl Streams {
    /// Whether they are those a started interpreter has.
    pub(super) fn are_usual(&self) -> bool {
        matches!(
            self,
            Self {
                stdin: Input::Nothing,
                stdout: Output::Captured,
                stderr: Output::Captured,
            }
        )
    }

    /// Makes both ends, of what was prepared where that fits; of each output that is
    /// read, so much is kept.
    pub(super) fn open(
        self,
        prepared: Option<Prepared>,
        merge_stderr: bool,
        bytes_max: usize,
    ) -> Result<(Ours, Theirs), StepError> {
        let (null_made, stdout_made, stderr_made) = match prepared {
            Some(Prepared {
                null,
                stdout,
                stderr,
            }) => (Some(null), Some(stdout), Some(stderr)),
            None => (None, None, None),
        };
        let (stdin_inside, stdin) = match self.stdin {
            Input::Nothing => (null_made.map_or_else(null, Ok)?, None),
            Input::Pipe => {
                let (read, write) = pipe()?;
                (read, Some(write))
            }
            Input::From(fd) | Input::Terminal(fd) => (fd, None),
        };
        let (stdout_inside, stdout) = output(self.stdout, stdout_made, bytes_max)?;
        let mut theirs = vec![stdin_inside, stdout_inside];
        let stderr = if merge_stderr {
            Collector::closed()
        } else {
            let (stderr_inside, stderr) = output(self.stderr, stderr_made, bytes_max)?;
            theirs.push(stderr_inside);
            stderr
        };
        let ours = Ours {
            stdin,
            stdout,
            stderr,
        };
        Ok((ours, Theirs(theirs)))
    }
}

impl Prepared {
    pub(super) fn make() -> Result<Self, StepError> {
        Ok(Self {
            null: null()?,
            stdout: Pipe::make()?,
            stderr: Pipe::make()?,
        })
    }
}

impl Pipe {
    fn make() -> Result<Self, StepError> {
        let (read, write) = pipe()?;
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK).at(Step::StartSpawner, "pipe")?;
        Ok(Self { read, write })
    }
}

impl Ours {
    /// Of an interpreter that was started before.
    pub(super) fn of(started: Started, bytes_max: usize) -> Self {
        Self {
            stdin: None,
            stdout: Collector::new(started.stdout, bytes_max),
            stderr: started.stderr.map_or_else(Collector::closed, |stderr| {
                Collector::new(stderr, bytes_max)
            }),
        }
    }
}

impl Theirs {
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd).collect()
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), StepError> {
    pipe_with(PipeFlags::CLOEXEC).at(Step::StartSpawner, "pipe")
}

/// The command's end of a stream, and ours.
fn output(
    output: Output,
    made: Option<Pipe>,
    bytes_max: usize,
) -> Result<(OwnedFd, Collector), StepError> {
    match output {
        Output::Captured => {
            let Pipe { read, write } = made.map_or_else(Pipe::make, Ok)?;
            Ok((write, Collector::new(read, bytes_max)))
        }
        Output::To(fd) => Ok((fd, Collector::closed())),
    }
}

/// An input that is always at its end. Each command has one of its own: flags that
/// are set on an open file are seen by whoever shares it.
pub(super) fn null() -> Result<OwnedFd, StepError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open("/dev/null", flags, Mode::empty()).at(Step::Devices, "/dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_prepared_serves_the_usual_streams_and_nothing_of_it_the_others() {
        let numbers = |prepared: &Prepared| {
            use std::os::fd::AsRawFd as _;
            [
                &prepared.null,
                &prepared.stdout.write,
                &prepared.stderr.write,
            ]
            .map(OwnedFd::as_raw_fd)
        };
        let handed = |theirs: &Theirs| {
            use std::os::fd::AsRawFd as _;
            theirs.0.iter().map(OwnedFd::as_raw_fd).collect::<Vec<_>>()
        };
        let prepared = Prepared::make().unwrap();
        let made = numbers(&prepared);
        let (mut ours, theirs) = Streams::default().open(Some(prepared), false, 10).unwrap();
        assert_eq!(handed(&theirs), made);
        // Nobody has written: to read does not wait.
        assert!(!ours.stdout.read(&mut |_| panic!("output")).unwrap());

        let prepared = Prepared::make().unwrap();
        let own = Prepared::make().unwrap();
        let [stdin, stdout, stderr] = numbers(&own);
        let streams = Streams {
            stdin: Input::From(own.null),
            stdout: Output::To(own.stdout.write),
            stderr: Output::To(own.stderr.write),
        };
        let (_ours, theirs) = streams.open(Some(prepared), false, 10).unwrap();
        assert_eq!(handed(&theirs), [stdin, stdout, stderr]);
        let merged = Streams::default().open(Prepared::make().ok(), true, 10);
        assert_eq!(handed(&merged.unwrap().1).len(), 2);
    }
}

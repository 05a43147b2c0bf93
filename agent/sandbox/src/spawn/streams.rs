//! The standard streams of a command, and who holds which end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use super::interpreter::Started;
use super::output::Collector;
use super::pool::null;
use super::step::{AtStep, Step, StepError};

/// Where a command's standard input comes from.
#[derive(Debug, Default)]
pub enum Input {
    /// It is at its end from the beginning.
    #[default]
    Nothing,
    /// A pipe, see [`Running::take_stdin`](super::Running::take_stdin).
    Pipe,
    /// This descriptor, such as a terminal made for the command.
    From(OwnedFd),
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

    /// Makes both ends; of each output that is read, so much is kept.
    pub(super) fn open(
        self,
        merge_stderr: bool,
        bytes_max: usize,
    ) -> Result<(Ours, Theirs), StepError> {
        let (stdin_inside, stdin) = match self.stdin {
            Input::Nothing => (null()?, None),
            Input::Pipe => {
                let (read, write) = pipe()?;
                (read, Some(write))
            }
            Input::From(fd) => (fd, None),
        };
        let (stdout_inside, stdout) = output(self.stdout, bytes_max)?;
        let mut theirs = vec![stdin_inside, stdout_inside];
        let stderr = if merge_stderr {
            Collector::closed()
        } else {
            let (stderr_inside, stderr) = output(self.stderr, bytes_max)?;
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
fn output(output: Output, bytes_max: usize) -> Result<(OwnedFd, Collector), StepError> {
    match output {
        Output::Captured => {
            let (read, write) = pipe()?;
            rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK).at(Step::StartSpawner, "pipe")?;
            Ok((write, Collector::new(read, bytes_max)))
        }
        Output::To(fd) => Ok((fd, Collector::closed())),
    }
}

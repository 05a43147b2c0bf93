//! What a command reads that its user gives it.
//!
//! A command never holds the descriptor itself: with that of a file it could write where
//! it may only read, and a terminal could be typed into. What comes from there is copied
//! into a pipe of its own, by a thread that ends with the input or with whoever reads it.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    sync::mpsc::{Sender, channel},
    thread,
};

use hermitcrab_sandbox::spawn::{Input, Output, Streams};

use crate::text::no_thread;

/// What a command is given to read.
#[derive(Clone, Copy, Debug, Default)]
pub enum CommandInput<'c> {
    /// Nothing: its input is at its end.
    #[default]
    Nothing,
    /// What comes from here.
    File(&'c File),
    /// What is typed on this terminal, which is made for it and nobody else's. It prints there,
    /// too, and nothing of that is kept.
    Terminal(&'c OwnedFd),
}

/// Somebody who waits for the pipe to copy into.
pub(super) struct Feeder {
    ends: Sender<OwnedFd>,
}

impl Feeder {
    /// Starts one. Without a pipe it ends and has read nothing.
    ///
    /// # Errors
    /// The system has no descriptor or no thread left.
    pub(super) fn of(from: &File) -> io::Result<Self> {
        let mut from = from.try_clone()?;
        let (ends, pipes) = channel::<OwnedFd>();
        thread::Builder::new()
            .name("input of a command".to_owned())
            .spawn(move || {
                if let Ok(pipe) = pipes.recv() {
                    // A command that reads no further, or has ended, is no failure.
                    let _copied = io::copy(&mut from, &mut File::from(pipe));
                }
            })
            .map_err(|error| io::Error::new(error.kind(), no_thread("it", &error)))?;
        Ok(Self { ends })
    }

    /// Begins to copy.
    pub(super) fn feed(self, pipe: OwnedFd) {
        // It waits for nothing else, so it is there.
        let _sent = self.ends.send(pipe);
    }
}

/// The streams of a command on a terminal of its own, whose end this is.
///
/// # Errors
/// The system has no descriptor left.
pub(in crate::runtime) fn on_terminal(theirs: &OwnedFd) -> io::Result<Streams> {
    Ok(Streams {
        stdin: Input::Terminal(theirs.try_clone()?),
        stdout: Output::To(theirs.try_clone()?),
        stderr: Output::Captured,
    })
}

/// The streams of a command that is given this, and who copies it.
///
/// # Errors
/// The system has no descriptor or no thread left.
pub(super) fn streams(given: CommandInput<'_>) -> io::Result<(Streams, Option<Feeder>)> {
    Ok(match given {
        CommandInput::Nothing => (Streams::default(), None),
        CommandInput::Terminal(theirs) => (on_terminal(theirs)?, None),
        CommandInput::File(from) => {
            let streams = Streams {
                stdin: Input::Pipe,
                ..Streams::default()
            };
            (streams, Some(Feeder::of(from)?))
        }
    })
}

//! What the exchanging process tells the observer, a byte at a time.
//!
//! It may be killed at any moment and must never wait for its reader, so what
//! does not fit into the pipe is not told.
use std::io::{PipeReader, PipeWriter, Read, Write};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::error::{AtStage, WorldError};

const READY: u8 = b'r';
const WINDOW: u8 = b'w';
const FLIPPED: u8 = b'f';
const MANY_FLIPPED: u8 = b'F';
const CHANGE: u8 = b'c';
const CUT: u8 = b'x';
/// How many [`MANY_FLIPPED`] stands for.
const MANY: u64 = 64;

/// How a step went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// System calls that named one of the two, as far as they were counted.
    pub windows: u64,
    /// How often the two changed places.
    pub flips: u64,
    /// Whether they had to be put back at the end.
    pub put_back: bool,
    /// System calls that change files, as far as they were counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub changes: u64,
    /// Whether the step was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Seen {
    /// Takes in what else was seen of the same step.
    pub(crate) fn add(&mut self, other: Self) {
        self.windows += other.windows;
        self.flips += other.flips;
        self.put_back |= other.put_back;
        self.changes += other.changes;
        self.cut |= other.cut;
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The writing end.
pub(super) struct Notes {
    pipe: PipeWriter,
    flips: u64,
}

impl Notes {
    pub(super) fn new(pipe: PipeWriter) -> Result<Self, WorldError> {
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).at("open notes")?;
        Ok(Self { pipe, flips: 0 })
    }

    /// From now on the step may run.
    pub(super) fn ready(&mut self) -> Result<(), WorldError> {
        self.pipe.write_all(&[READY]).at("report readiness")
    }

    /// A system call that names one of the two is about to run.
    pub(super) fn window(&mut self) {
        self.tell(WINDOW);
    }

    /// A system call that changes files is about to run.
    pub(super) fn change(&mut self) {
        self.tell(CHANGE);
    }

    /// The step is cut off.
    pub(super) fn cut(&mut self) {
        self.tell(CUT);
    }

    /// They changed places.
    pub(super) fn flipped(&mut self) {
        self.flips = self.flips.wrapping_add(1);
        if self.flips < MANY {
            self.tell(FLIPPED);
        } else if self.flips.is_multiple_of(MANY) {
            self.tell(MANY_FLIPPED);
        }
    }

    fn tell(&mut self, what: u8) {
        // A full pipe has long said enough.
        let _ = self.pipe.write(&[what]);
    }
}

/// What was told, once the writer is gone.
pub(super) fn read(pipe: &mut PipeReader) -> Seen {
    let mut told = Vec::new();
    // A pipe can be read to its end.
    let _ = pipe.read_to_end(&mut told);
    let count = |what: u8| told.iter().filter(|byte| **byte == what).count() as u64;
    Seen {
        windows: count(WINDOW),
        flips: count(FLIPPED) + count(MANY_FLIPPED) * MANY,
        put_back: false,
        changes: count(CHANGE),
        cut: count(CUT) > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_counted_and_a_full_pipe_stops_nobody() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut notes = Notes::new(writer).unwrap();
        notes.window();
        notes.flipped();
        notes.window();
        notes.change();
        notes.cut();
        drop(notes);
        let mut seen = read(&mut reader);
        assert_eq!((seen.windows, seen.flips), (2, 1));
        assert_eq!((seen.changes, seen.cut), (1, true));
        seen.add(Seen {
            changes: 4,
            put_back: true,
            ..Seen::default()
        });
        assert_eq!((seen.changes, seen.cut, seen.put_back), (5, true, true));

        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut notes = Notes::new(writer).unwrap();
        for _ in 0..200_000 {
            notes.window();
        }
        drop(notes);
        assert!(read(&mut reader).windows < 200_000);
    }
}

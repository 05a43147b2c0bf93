//! What a command wrote, with a ceiling.
//!
//! The pipe is always drained, so that a flood neither blocks the command nor
//! fills the memory; beyond the ceiling the beginning and the end are kept.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;

/// What was kept of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The beginning.
    pub head: Vec<u8>,
    /// The end, directly after `head` unless something was left out.
    pub tail: Vec<u8>,
    /// How many bytes between the two were dropped.
    pub omitted_bytes: u64,
}

impl Captured {
    /// Everything that was kept, in order. Look at `omitted_bytes` before
    /// taking it for everything that was written.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), self.tail.as_slice()].concat()
    }

    /// How many bytes the command wrote.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let kept = self.head.len().saturating_add(self.tail.len());
        self.omitted_bytes
            .saturating_add(u64::try_from(kept).unwrap_or(u64::MAX))
    }
}

/// Reads one stream.
#[derive(Debug)]
pub(crate) struct Collector {
    pipe: Option<OwnedFd>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    omitted: u64,
    /// Where a read goes first; made for the first one.
    buffer: Vec<u8>,
}

/// How many bytes one read takes: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

impl Collector {
    /// Reads from a pipe that does not block; keeps half of the ceiling from
    /// the beginning, half from the end.
    pub(crate) fn new(pipe: OwnedFd, bytes_max: usize) -> Self {
        let head_max = bytes_max / 2;
        Self {
            pipe: Some(pipe),
            head: Vec::new(),
            tail: VecDeque::new(),
            head_max,
            tail_max: bytes_max.saturating_sub(head_max),
            omitted: 0,
            buffer: Vec::new(),
        }
    }

    /// Reads nothing.
    pub(crate) fn closed() -> Self {
        Self {
            pipe: None,
            head: Vec::new(),
            tail: VecDeque::new(),
            head_max: 0,
            tail_max: 0,
            omitted: 0,
            buffer: Vec::new(),
        }
    }

    /// The pipe, while it is open.
    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Reads once and shows what it got. Returns whether there may be more
    /// right now.
    pub(crate) fn read(&mut self, show: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let Some(pipe) = &self.pipe else {
            return Ok(false);
        };
        self.buffer.clear();
        // Not filled with zeros first: most commands write a few lines.
        self.buffer.reserve(READ_BYTES);
        match rustix::io::read(pipe, spare_capacity(&mut self.buffer)) {
            Ok(0) => {
                self.pipe = None;
                Ok(false)
            }
            Ok(_) => {
                let bytes = std::mem::take(&mut self.buffer);
                show(&bytes);
                self.keep(&bytes);
                self.buffer = bytes;
                Ok(true)
            }
            Err(rustix::io::Errno::AGAIN) => Ok(false),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads what is there and closes the pipe. Only right once every writer
    /// is gone; a writer outside the sandbox would be cut off.
    pub(crate) fn finish(&mut self, show: &mut dyn FnMut(&[u8])) -> io::Result<Captured> {
        while self.read(show)? {}
        self.pipe = None;
        Ok(Captured {
            head: std::mem::take(&mut self.head),
            tail: std::mem::take(&mut self.tail).into(),
            omitted_bytes: self.omitted,
        })
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.head_max.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.omitted = self
            .omitted
            .saturating_add(u64::try_from(excess).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(written: &[u8], bytes_max: usize) -> Captured {
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::NONBLOCK).unwrap();
        let mut collector = Collector::new(read, bytes_max);
        for chunk in written.chunks(7) {
            rustix::io::write(&write, chunk).unwrap();
            collector.read(&mut |_| {}).unwrap();
        }
        drop(write);
        collector.finish(&mut |_| {}).unwrap()
    }

    #[test]
    fn output_below_the_ceiling_is_kept_whole() {
        let text = b"0123456789";
        for ceiling in 10..13 {
            let kept = captured(text, ceiling);
            assert_eq!((kept.to_bytes(), kept.omitted_bytes), (text.to_vec(), 0));
        }
    }

    #[test]
    fn output_above_the_ceiling_keeps_both_ends_and_counts_the_rest() {
        let kept = captured(b"abcdefghijklmnopqrstuvwxyz", 6);
        assert_eq!(
            kept,
            Captured {
                head: b"abc".to_vec(),
                tail: b"xyz".to_vec(),
                omitted_bytes: 20
            }
        );
        assert_eq!(kept.total_bytes(), 26);
    }
}

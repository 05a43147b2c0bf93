//! What the ledger needs of a disk, so that a test can pull the plug anywhere.

use std::{
    fmt,
    fs::File,
    io::{self, Write as _},
};

/// A file that only grows, and can be cut back after a crash.
pub trait Disk: fmt::Debug + Send {
    /// Reads from `offset`; as much as fits, nothing at the end.
    ///
    /// # Errors
    /// The disk's.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Adds bytes to the end; may take only the first of them.
    ///
    /// # Errors
    /// The disk's; some of the bytes may be there all the same.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns once everything appended survives a loss of power.
    ///
    /// # Errors
    /// The disk's; then nothing is known about what was appended.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file back to its first `bytes`, and makes that survive.
    ///
    /// # Errors
    /// The disk's.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl Disk for File {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::os::unix::fs::FileExt::read_at(self, into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.sync_all()
    }
}

/// A disk in memory, for a session that is only imagined.
#[derive(Debug, Default)]
pub struct Memory(Vec<u8>);

impl Disk for Memory {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let got = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        Ok(got)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0
            .truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// A disk as a stream from some offset on.
#[derive(Debug)]
pub(super) struct From<'d> {
    disk: &'d mut dyn Disk,
    offset: u64,
}

impl<'d> From<'d> {
    pub(super) fn new(disk: &'d mut dyn Disk, offset: u64) -> Self {
        Self { disk, offset }
    }
}

impl io::Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.disk.read_at(self.offset, into)?;
        self.offset = self.offset.saturating_add(got as u64);
        Ok(got)
    }
}

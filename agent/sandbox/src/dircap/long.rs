//! A file that is longer than anybody holds in memory, read piece by piece.
//!
//! What for: a log of gigabytes is searched, and a page of it read, in the memory of
//! one piece. The permit is spent on opening, with no link on the way; what is opened
//! then is the one file, whatever gets its name meanwhile, up to the length it had.
//! Nothing else can be done with it.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::path::RelPath;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::open::{Links, open_beneath, open_file, read_file};
use super::{DirCap, FsError, Kind, Stat};
use crate::patience::Patience;

/// Bytes of a piece; all but the last have as many.
pub const PIECE_BYTES: usize = 384 << 10;

/// What a file holds.
#[derive(Debug)]
pub enum Content {
    /// All of it.
    Whole(Vec<u8>),
    /// It is longer than what was wanted in memory.
    Long(LongFile),
}

/// A long file, opened.
pub struct LongFile {
    file: OwnedFd,
    path: RelPath,
    stat: Stat,
    /// Bytes that were there when it was opened and were not read.
    left: u64,
    piece: Vec<u8>,
    patience: Option<Patience>,
}

impl fmt::Debug for LongFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongFile")
            .field("path", &self.path)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl LongFile {
    /// Facts about it, as it was opened.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Whether parts of it take no room, which are read as NUL; as far as that can be
    /// told without waiting for another's file system.
    #[must_use]
    pub fn has_holes(&self) -> bool {
        if self.patience.is_some() {
            return false;
        }
        let start = self.stat.bytes.saturating_sub(self.left);
        let found = rustix::fs::seek(&self.file, SeekFrom::Hole(start));
        // Looking for one moves the place that is read next.
        let is_back = rustix::fs::seek(&self.file, SeekFrom::Start(start)).is_ok();
        is_back && found.is_ok_and(|hole| hole < self.stat.bytes)
    }

    /// The next piece; empty at the end. Where the file system may not answer, it is
    /// waited for as for one look.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn piece(&mut self) -> Result<&[u8], FsError> {
        let wanted = usize::try_from(self.left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(wanted, 0);
        let read = match &self.patience {
            None => filled(&self.file, piece),
            Some(patience) => self.file.try_clone().and_then(|file| {
                let looked = patience.look(move || filled(&file, piece));
                looked.and_then(|filled| filled)
            }),
        };
        self.piece = read.map_err(|source| FsError::Io {
            operation: "read",
            path: self.path.clone(),
            source,
        })?;
        self.left = match self.piece.len() {
            // Somebody cut it off meanwhile.
            short if short < wanted => 0,
            read => self.left.saturating_sub(read as u64),
        };
        Ok(&self.piece)
    }
}

/// The piece with what comes next in the file; shorter only at its end.
fn filled(file: &OwnedFd, mut piece: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut filled = 0;
    while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(file.as_fd(), rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    piece.truncate(filled);
    Ok(piece)
}

impl DirCap {
    /// A file's content, no link on the way; a file longer than `whole_max` is only
    /// opened. `fs.read`.
    ///
    /// # Errors
    /// See [`FsError`]; `symlink-refused` if there is a link.
    pub fn open_direct(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        whole_max: usize,
    ) -> Result<Content, FsError> {
        self.spend(permit, Verb::FsRead, path)?;
        let patience = self.patience.clone();
        self.look("read", path, move |dir, path| {
            let (file, stat) = open_file(dir, path, Links::Refuse)?;
            content(file, &stat, path, whole_max, patience)
        })
    }

    /// Facts about a file and what it holds, no link on the way: [`DirCap::stat`] and
    /// [`DirCap::open_direct`] of one and the same file, for one permit. A directory
    /// holds nothing; `fs.read`.
    ///
    /// # Errors
    /// As for [`DirCap::open_direct`].
    pub fn stat_and_open_direct(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        whole_max: usize,
    ) -> Result<(Stat, Option<Content>), FsError> {
        self.spend(permit, Verb::FsRead, path)?;
        let patience = self.patience.clone();
        self.look("read", path, move |dir, path| {
            let named = open_beneath(dir, path, OFlags::PATH, Links::Refuse)?;
            let stat = rustix::fs::fstat(&named)
                .map(Stat::from)
                .map_err(|errno| FsError::io("stat", path, errno))?;
            if stat.kind == Kind::Dir {
                return Ok((stat, None));
            }
            let (file, stat) = open_file(dir, path, Links::Refuse)?;
            let content = content(file, &stat, path, whole_max, patience)?;
            Ok((Stat::from(stat), Some(content)))
        })
    }
}

fn content(
    file: OwnedFd,
    stat: &rustix::fs::Stat,
    path: &RelPath,
    whole_max: usize,
    patience: Option<Patience>,
) -> Result<Content, FsError> {
    let facts = Stat::from(*stat);
    if usize::try_from(facts.bytes).is_ok_and(|bytes| bytes <= whole_max) {
        return read_file(&file, stat, whole_max)
            .map(Content::Whole)
            .map_err(|source| FsError::Io {
                operation: "read",
                path: path.clone(),
                source,
            });
    }
    Ok(Content::Long(LongFile {
        file,
        path: path.clone(),
        left: facts.bytes,
        stat: facts,
        piece: Vec::new(),
        patience,
    }))
}

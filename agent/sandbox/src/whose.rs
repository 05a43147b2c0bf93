//! Which directory it is, and whose.
//!
//! What for: a waiting sandbox shows the directory it was built over. A directory
//! that was removed and made again often gets the number of the first, so the
//! number alone does not tell the two apart; the time it was made does, where
//! the file system keeps it.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// What is kept of a directory to know it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    pub device: u64,
    pub inode: u64,
    /// When it was made, in nanoseconds; 0 where nobody knows.
    pub born: u64,
    pub owner: u32,
    pub group: u32,
    /// Permission bits.
    pub mode: u32,
}

impl Whose {
    /// Asks the kernel about an open directory: for what it knows already, without
    /// a question to a file system that may not answer.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn of(dir: impl AsFd) -> io::Result<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = statx(dir, c"", flags, wanted)?;
        let kept = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let seconds = u64::try_from(found.stx_btime.tv_sec).unwrap_or(0);
        let born = seconds
            .wrapping_mul(1_000_000_000)
            .wrapping_add(found.stx_btime.tv_nsec.into());
        Ok(Self {
            device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born: if kept { born } else { 0 },
            owner: found.stx_uid,
            group: found.stx_gid,
            mode: u32::from(found.stx_mode) & 0o7777,
        })
    }

    /// Whether both are one directory. Owners and modes are seen translated, or
    /// not, and prove nothing; nor does a time that was not known at one of the looks,
    /// as happens where the kernel has to ask for it.
    pub(crate) const fn is_the_same_as(&self, other: &Self) -> bool {
        let alike = self.born == other.born || self.born == 0 || other.born == 0;
        self.device == other.device && self.inode == other.inode && alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_itself_and_not_one_with_its_number_that_was_made_later() {
        let temp = tempfile::tempdir().unwrap();
        let open = || std::fs::File::open(temp.path()).unwrap();
        let first = Whose::of(open()).unwrap();
        std::fs::write(temp.path().join("f"), "changes its times").unwrap();
        assert!(Whose::of(open()).unwrap().is_the_same_as(&first));
        let later = Whose {
            born: first.born + 1,
            ..first
        };
        assert!(!later.is_the_same_as(&first));
        let unknown = Whose { born: 0, ..first };
        assert!(unknown.is_the_same_as(&first) && first.is_the_same_as(&unknown));
        let other = tempfile::tempdir().unwrap();
        let other = Whose::of(std::fs::File::open(other.path()).unwrap()).unwrap();
        assert!(!other.is_the_same_as(&first));
    }
}

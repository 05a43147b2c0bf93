//! The ways into a command's groups.
//!
//! Why two kinds: moving another process waits until the whole machine has
//! passed a point of rest (11 ms after idleness), because the kernel must know
//! that the process does not fork meanwhile. A process of one thread that moves
//! itself needs no such wait, and version 1 lets it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What is written to be inside, already open: rights were checked then.
#[derive(Debug, Default)]
pub(crate) struct Entrances {
    /// For a thread to move itself.
    pub own: Vec<OwnedFd>,
    /// For one process to move another.
    pub others: Vec<OwnedFd>,
}

impl Entrances {
    /// The same ways, once more.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let dup = |list: &[OwnedFd]| {
            list.iter()
                .map(OwnedFd::try_clone)
                .collect::<io::Result<_>>()
        };
        Ok(Self {
            own: dup(&self.own)?,
            others: dup(&self.others)?,
        })
    }

    /// To be sent, in the order [`Entrances::from_parts`] takes them.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.own.iter().chain(&self.others).map(AsFd::as_fd)
    }

    /// How many there are of each kind.
    pub(crate) fn counts(&self) -> [u8; 2] {
        [&self.own, &self.others].map(|list| u8::try_from(list.len()).unwrap_or(u8::MAX))
    }

    /// From the descriptors of a message; nothing, if there are too few.
    pub(crate) fn from_parts(
        counts: [u8; 2],
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Option<Self> {
        let [own, others] = counts.map(|count| {
            let list: Vec<_> = descriptors.by_ref().take(count.into()).collect();
            (list.len() == usize::from(count)).then_some(list)
        });
        Some(Self {
            own: own?,
            others: others?,
        })
    }

    /// Moves the calling process, which has one thread, inside.
    ///
    /// # Errors
    /// The kernel refused one of them.
    pub(crate) fn enter(&self) -> io::Result<()> {
        for entrance in &self.own {
            rustix::io::write(entrance, b"0")?;
        }
        Ok(())
    }

    /// Moves another process inside. This may take long.
    ///
    /// # Errors
    /// The kernel refused one of them; not, if the process is gone.
    pub(crate) fn admit(&self, process: i32) -> io::Result<()> {
        let number = process.to_string();
        for entrance in &self.others {
            match rustix::io::write(entrance, number.as_bytes()) {
                Ok(_) => {}
                // It has said why.
                Err(rustix::io::Errno::SRCH) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> OwnedFd {
        tempfile::tempfile().unwrap().into()
    }

    #[test]
    fn what_is_sent_comes_out_as_it_was_and_too_little_is_refused() {
        let entrances = Entrances {
            own: vec![file(), file()],
            others: vec![file()],
        };
        assert_eq!(entrances.descriptors().count(), 3);
        let mut sent = vec![file(), file(), file(), file()].into_iter();
        let again = Entrances::from_parts(entrances.counts(), &mut sent).unwrap();
        assert_eq!(again.counts(), entrances.counts());
        // What comes after is left alone.
        assert_eq!(sent.count(), 1);
        let mut few = vec![file(), file()].into_iter();
        assert!(Entrances::from_parts(entrances.counts(), &mut few).is_none());
    }
}

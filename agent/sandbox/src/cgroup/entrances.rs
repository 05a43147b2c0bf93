//! The ways into a command's groups.
//!
//! Why several kinds: moving another process waits until the whole machine has
//! passed a point of rest (11 ms after idleness), because the kernel must know
//! that the process does not fork meanwhile. A process of one thread that moves
//! itself needs no such wait, and version 1 lets it. With version 2 a process can
//! be born inside, if who clones it may write the groups above: an ordinary user
//! to whom they were delegated may, the zygote of root, which is nobody, may not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What is written to be inside, already open: rights were checked then.
#[derive(Debug, Default)]
pub(crate) struct Entrances {
    /// For a thread to move itself.
    pub own: Vec<OwnedFd>,
    /// For one process to move another.
    pub others: Vec<OwnedFd>,
    /// The directories of the groups of `others`, to be born in.
    pub births: Vec<OwnedFd>,
}

/// How a process came into the groups of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It was born there.
    Born,
    /// It has to be moved there, if there are any.
    Pending,
}

impl Entrances {
    /// To be sent, in the order [`Entrances::from_parts`] takes them.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all = self.own.iter().chain(&self.others).chain(&self.births);
        all.map(AsFd::as_fd)
    }

    /// How many there are of each kind.
    pub(crate) fn counts(&self) -> [u8; 3] {
        [&self.own, &self.others, &self.births]
            .map(|list| u8::try_from(list.len()).unwrap_or(u8::MAX))
    }

    /// From the descriptors of a message; nothing, if there are too few.
    pub(crate) fn from_parts(
        counts: [u8; 3],
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Option<Self> {
        let [own, others, births] = counts.map(|count| {
            let list: Vec<_> = descriptors.by_ref().take(count.into()).collect();
            (list.len() == usize::from(count)).then_some(list)
        });
        Some(Self {
            own: own?,
            others: others?,
            births: births?,
        })
    }

    /// Has `fork` make a process, born inside where the kernel lets it be: there
    /// is one group of version 2, and this process may write those above it.
    ///
    /// # Errors
    /// No process can be made, neither there nor here.
    pub(crate) fn bear<T>(
        &self,
        mut fork: impl FnMut(Option<BorrowedFd<'_>>) -> io::Result<T>,
    ) -> io::Result<(T, Admission)> {
        if let [birth] = self.births.as_slice()
            // Whatever is wrong with that way, the other is left; and an error
            // that has nothing to do with it comes again.
            && let Ok(made) = fork(Some(birth.as_fd()))
        {
            return Ok((made, Admission::Born));
        }
        Ok((fork(None)?, Admission::Pending))
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
            births: vec![file()],
        };
        assert_eq!(entrances.descriptors().count(), 4);
        let mut sent = vec![file(), file(), file(), file(), file()].into_iter();
        let again = Entrances::from_parts(entrances.counts(), &mut sent).unwrap();
        assert_eq!(again.counts(), entrances.counts());
        // What comes after is left alone.
        assert_eq!(sent.count(), 1);
        let mut few = vec![file(), file(), file()].into_iter();
        assert!(Entrances::from_parts(entrances.counts(), &mut few).is_none());
    }

    #[test]
    fn a_process_is_born_inside_where_it_can_be_and_else_moved() {
        let with = |births: Vec<OwnedFd>, refused: fn(bool) -> bool| {
            let entrances = Entrances {
                births,
                ..Entrances::default()
            };
            let mut asked = Vec::new();
            let made = entrances.bear(|birth| {
                asked.push(birth.is_some());
                if refused(birth.is_some()) {
                    Err(io::ErrorKind::PermissionDenied.into())
                } else {
                    Ok(())
                }
            });
            (made.ok().map(|((), admission)| admission), asked)
        };
        let never: fn(bool) -> bool = |_| false;
        assert_eq!(
            with(vec![file()], never),
            (Some(Admission::Born), vec![true])
        );
        assert_eq!(
            with(vec![file()], |inside| inside),
            (Some(Admission::Pending), vec![true, false])
        );
        assert_eq!(with(vec![file()], |_| true), (None, vec![true, false]));
        // Nowhere to be born, or more than one place.
        for births in [vec![], vec![file(), file()]] {
            assert_eq!(with(births, never), (Some(Admission::Pending), vec![false]));
        }
    }
}

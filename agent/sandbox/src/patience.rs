//! Waiting no longer than so long for a file system that may not answer.
//!
//! What for: a look at a file on a network file system, or on one that a program
//! serves, waits in the kernel for somebody else, and nothing ends that from within.
//! So the look is taken by a thread of its own where the file system is none that is
//! known to answer by itself, and whoever asked goes on without it when the time is
//! over. Nobody else is held up, and a thread that was given up ends with the look.
//!
//! It is for looks only: what changes something must not happen after it was said
//! that it did not. How many threads wait at once is bounded; beyond that the answer
//! is the same, and comes at once.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long one look may take.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// As many looks as a comparison of two trees may last.
const LOOKS_OF_A_COMPARISON: u32 = 10;
/// Looks that were given up and are not over, in one directory.
const GIVEN_UP_MAX: usize = 8;

/// File systems whose data is on this machine, by the number statfs(2) tells.
///
/// Sources: statfs(2), include/uapi/linux/magic.h. An overlay is among them: what
/// lies below one is not told.
const LOCAL: &[u32] = &[
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlay
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0xCA45_1A4E, // bcachefs
    0x7371_7368, // squashfs
    0xE0F5_E1E2, // erofs
    0x4D44,      // fat
    0x2011_BAB0, // exfat
    0x7366_746E, // ntfs3
    0x9660,      // iso9660
    0x3153_464A, // jfs
    0x5265_4973, // reiserfs
    0x9FA0,      // proc
    0x6265_6572, // sysfs
];

/// How long to wait for one directory's file system, and who waits.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    look_max: Duration,
    given_up: Arc<AtomicUsize>,
}

impl Patience {
    /// What a directory's file system needs; nothing, if it answers by itself.
    ///
    /// # Errors
    /// It does not say what it is.
    pub(crate) fn with(dir: impl AsFd) -> io::Result<Option<Self>> {
        let kind = rustix::fs::fstatfs(dir)?.f_type;
        let is_local = u32::try_from(kind).is_ok_and(|kind| LOCAL.contains(&kind));
        Ok((!is_local).then(|| Self::of(LOOK_MAX)))
    }

    pub(crate) fn of(look_max: Duration) -> Self {
        Self {
            look_max,
            given_up: Arc::default(),
        }
    }

    /// Takes one look.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`]: it was given up; or no thread can be started.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.wait(self.look_max, look)
    }

    /// Compares what takes many looks.
    ///
    /// # Errors
    /// As for [`Patience::look`].
    pub(crate) fn compare<T: Send + 'static>(
        &self,
        compare: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.wait(self.look_max.saturating_mul(LOOKS_OF_A_COMPARISON), compare)
    }

    fn wait<T: Send + 'static>(
        &self,
        most: Duration,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        if self.given_up.load(Ordering::SeqCst) >= GIVEN_UP_MAX {
            return Err(does_not_answer());
        }
        // Taken by who is first: the end of the look, or the end of the patience.
        let is_decided = Arc::new(AtomicBool::new(false));
        let (tell, told) = sync_channel(1);
        let (decided, given_up) = (Arc::clone(&is_decided), Arc::clone(&self.given_up));
        // Nobody joins it: its end is what may not come.
        let _looks = std::thread::Builder::new()
            .name("hermitcrab-look".to_owned())
            .spawn(move || {
                let over = Over { decided, given_up };
                let seen = act();
                drop(over);
                // Whoever asked may be gone by now.
                let _told = tell.send(seen);
            })?;
        match told.recv_timeout(most) {
            Ok(seen) => Ok(seen),
            Err(_) => {
                self.given_up.fetch_add(1, Ordering::SeqCst);
                if is_decided.swap(true, Ordering::SeqCst) {
                    // It was over just then, and counts no more.
                    self.given_up.fetch_sub(1, Ordering::SeqCst);
                }
                Err(does_not_answer())
            }
        }
    }
}

/// Says that a look is over, in whatever way it ends.
struct Over {
    decided: Arc<AtomicBool>,
    given_up: Arc<AtomicUsize>,
}

impl Drop for Over {
    fn drop(&mut self) {
        if self.decided.swap(true, Ordering::SeqCst) {
            self.given_up.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

pub(crate) fn does_not_answer() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "its file system does not answer in time",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_do_not_end_are_given_up_and_bounded_and_count_until_they_end() {
        let patience = Patience::of(Duration::from_millis(20));
        // Whom nothing holds up is not late, however busy the machine is.
        let long = Patience {
            look_max: Duration::from_secs(60),
            ..patience.clone()
        };
        assert_eq!(long.look(|| 7).unwrap(), 7);
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let ends = Arc::new(std::sync::Mutex::new(ends));
        let stuck = || {
            let ends = Arc::clone(&ends);
            patience.look(move || ends.lock().unwrap().recv().is_ok())
        };
        for _ in 0..GIVEN_UP_MAX {
            assert_eq!(stuck().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(patience.given_up.load(Ordering::SeqCst), GIVEN_UP_MAX);
        // Not even begun.
        let refused = long.look(|| panic!("one look too many"));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(end);
        while patience.given_up.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(long.look(|| 8).unwrap(), 8);
    }

    #[test]
    fn a_look_that_panics_is_over() {
        let patience = Patience::of(Duration::from_secs(30));
        let failed = patience.look(|| -> u8 { std::panic::resume_unwind(Box::new(())) });
        assert!(failed.is_err());
        assert_eq!(patience.given_up.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn what_is_here_needs_no_patience() {
        let temp = tempfile::tempdir().unwrap();
        for place in [temp.path(), std::path::Path::new("/proc")] {
            let dir = std::fs::File::open(place).unwrap();
            assert!(Patience::with(dir).unwrap().is_none(), "{place:?}");
        }
    }
}

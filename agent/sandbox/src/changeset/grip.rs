//! A file of a layer that is held on to, whatever becomes of its name.
//!
//! What for: a command that writes its files anew and puts each in the place of the one
//! before has removed that one, and who only sees that it has its name no longer cannot tell
//! whether it has another. Who holds it can: it has none left.
//!
//! What is removed keeps its room for as long. So only short ones are held, and few.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::Stat;

/// The longest file that is held on to.
const BYTES_MAX: i64 = 64 << 10;
/// All that are held by this process: descriptors are wanted elsewhere, too.
const ALL_MAX: usize = 128;

static ALL: AtomicUsize = AtomicUsize::new(0);

/// One of them. Clones hold the same.
#[derive(Clone, Debug)]
pub(crate) struct Grip(Arc<Held>);

#[derive(Debug)]
struct Held(OwnedFd);

impl Grip {
    /// Takes one, if there is room for it and it is what was found.
    pub(super) fn of(file: OwnedFd, found: &Stat) -> Option<Self> {
        if found.st_size > BYTES_MAX || rustix::fs::fstat(&file).ok()?.st_ino != found.st_ino {
            return None;
        }
        let one_more = |all: usize| (all < ALL_MAX).then(|| all.saturating_add(1));
        ALL.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()?;
        Some(Self(Arc::new(Held(file))))
    }

    /// Whether it has no name any more, and will have none.
    pub(super) fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.0.0).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        ALL.fetch_sub(1, Ordering::Relaxed);
    }
}

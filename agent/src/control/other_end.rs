//! Who is at the other end of a socket, by the kernel's word (SO_PEERCRED, unix(7)).

use std::{num::NonZeroI32, os::unix::net::UnixStream};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::process::{Uid, geteuid};

/// Whoever opened the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherEnd {
    /// Its process; `None` for one in no process namespace of ours, as outside of a
    /// container, which has no number here (the kernel says 0).
    pub(crate) process: Option<NonZeroI32>,
    user: Uid,
}

impl OtherEnd {
    /// Whoever it is; `None` if the kernel does not tell.
    pub(crate) fn of(stream: &UnixStream) -> Option<Self> {
        let told = getsockopt(stream, PeerCredentials).ok()?;
        Some(Self {
            process: NonZeroI32::new(told.pid()),
            user: Uid::from_raw(told.uid()),
        })
    }

    /// Whether that is the same user as this program's.
    pub(crate) fn is_own(self) -> bool {
        self.user == geteuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_made_here_has_this_process_at_both_ends() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let end = OtherEnd::of(&one).expect("credentials");
        let own = i32::try_from(std::process::id()).ok();
        assert_eq!(end.process.map(NonZeroI32::get), own);
        assert!(end.is_own());
    }
}

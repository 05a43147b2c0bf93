//! How many files the program may have open at once.
//!
//! What for: a command's sandbox takes several descriptors (both ends of its pipes, its
//! view, its processes). Where the shell that starts the program allows fewer, something in
//! the midst of it fails, and it fails each time as something else. So it is said at the
//! start.
//!
//! Source: getrlimit(2). A process may raise its soft limit as far as the hard one. A filter of
//! system calls may refuse to tell any (systemd's `~@resources` does); then it is tried with
//! what there is.

use core::fmt;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What the agent takes with a command in hand, some that were left running, and a front end.
pub const FOR_COMMANDS: u64 = 64;
/// What most systems allow to begin with; more is left as it is.
const USUAL: u64 = 1024;

/// Fewer files may be open than the program needs, and it may not allow itself more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    allowed: u64,
    needed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allowed, needed } = self;
        write!(
            f,
            "it may have {allowed} files open and needs {needed}; whoever set that limit must raise it (`ulimit -H -n`)"
        )
    }
}

impl core::error::Error for TooFew {}

/// Allows the process as many open files as is usual, as far as it may.
///
/// # Errors
/// That is fewer than `needed`.
pub fn make_room(needed: u64) -> Result<(), TooFew> {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    let wanted = raised(soft, hard, needed);
    let allowed = match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => wanted,
        Err(_) => soft,
    };
    if allowed < needed {
        return Err(TooFew { allowed, needed });
    }
    Ok(())
}

/// The soft limit to set. No limit is the highest number there is.
fn raised(soft: u64, hard: u64, needed: u64) -> u64 {
    soft.max(hard.min(needed.max(USUAL)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_may_be_and_never_lowered() {
        let none = nix::sys::resource::RLIM_INFINITY;
        let check = |soft, hard, needed, then| {
            assert_eq!(raised(soft, hard, needed), then, "{soft} {hard} {needed}");
        };
        check(5000, 9000, 64, 5000);
        check(none, none, 64, none);
        check(12, none, 64, 1024);
        check(12, 20, 64, 20);
        check(12, 9000, 64, 1024);
        check(12, 9000, 4096, 4096);
    }
}

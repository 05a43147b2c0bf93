//! How many files the program may have open at once.
//!
//! What for: a command's sandbox takes several descriptors (both ends of its pipes, its
//! view, its processes). Where the shell that starts the program allows fewer, something in
//! the midst of it fails, and it fails each time as something else. So it is said at the
//! start.
//!
//! Source: getrlimit(2). A process may raise its soft limit as far as the hard one.

use core::fmt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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
    let now = getrlimit(Resource::Nofile);
    let wanted = raised(now, needed);
    let allowed = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => wanted.current,
        Err(_) => now.current,
    };
    match allowed {
        Some(allowed) if allowed < needed => Err(TooFew { allowed, needed }),
        Some(_) | None => Ok(()),
    }
}

/// The limit to set; `None` stands for no limit.
fn raised(now: Rlimit, needed: u64) -> Rlimit {
    let wanted = needed.max(USUAL);
    let within = now.maximum.map_or(wanted, |hard| hard.min(wanted));
    Rlimit {
        current: now.current.map(|soft| soft.max(within)),
        maximum: now.maximum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_may_be_and_never_lowered() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let check = |now, then| assert_eq!(raised(now, 64), then, "{now:?}");
        let many = limit(Some(5000), Some(9000));
        check(many, many);
        check(limit(None, None), limit(None, None));
        check(limit(Some(12), None), limit(Some(1024), None));
        check(limit(Some(12), Some(20)), limit(Some(20), Some(20)));
        check(limit(Some(12), Some(9000)), limit(Some(1024), Some(9000)));
        assert_eq!(
            raised(limit(Some(12), Some(9000)), 4096).current,
            Some(4096)
        );
    }
}

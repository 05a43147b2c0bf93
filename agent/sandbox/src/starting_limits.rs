//! How large the program's stack and its files may become.
//!
//! What for: where the shell that starts the program allows too little, the kernel ends it in
//! the midst of something, or the sandbox fails at a step that says nothing about it. So it is
//! said at the start, as it is of open files ([`open_files`](crate::open_files)).
//!
//! Source: getrlimit(2), setrlimit(2). The first thread's stack grows up to the soft limit of
//! the moment; a process may raise that as far as the hard one. A filter of system calls may
//! refuse to tell any limit; then it is tried with what there is.

use core::fmt;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// A limit, and what the program does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    resource: Resource,
    /// What it bounds, in words.
    bounds: &'static str,
    /// As the shell's `ulimit` calls it.
    option: char,
    /// Less is too little.
    needed: u64,
    /// What most systems allow to begin with; more is left as it is.
    usual: u64,
}

const LIMITS: [Limit; 2] = [
    Limit {
        resource: Resource::RLIMIT_STACK,
        bounds: "a stack",
        option: 's',
        // Without optimisation twice of what the command line takes.
        needed: 1 << 20,
        usual: 8 << 20,
    },
    Limit {
        resource: Resource::RLIMIT_FSIZE,
        bounds: "files",
        option: 'f',
        // What cannot grow is told where it would, as of a full disk; much is done without.
        needed: 0,
        // A sandbox and the program speak by memory that the kernel counts as a file, and
        // ledger and store begin with room to grow. No more: a person who set it had a reason.
        usual: 1 << 20,
    },
];

/// Less is allowed than the program needs, and it may not allow itself more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLittle {
    limit: Limit,
    allowed: u64,
}

impl fmt::Display for TooLittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, allowed } = self;
        write!(
            f,
            "it may have {} of {allowed} bytes and needs {}; whoever set that limit must raise it (`ulimit -H -{}`)",
            limit.bounds, limit.needed, limit.option
        )
    }
}

impl core::error::Error for TooLittle {}

/// Allows the process as much as is usual, as far as it may.
///
/// # Errors
/// Some of it is less than it needs.
pub fn make_room() -> Result<(), TooLittle> {
    for limit in LIMITS {
        let Ok((soft, hard)) = getrlimit(limit.resource) else {
            continue;
        };
        let wanted = soft.max(hard.min(limit.usual));
        let allowed = match setrlimit(limit.resource, wanted, hard) {
            Ok(()) => wanted,
            Err(_) => soft,
        };
        if allowed < limit.needed {
            return Err(TooLittle { limit, allowed });
        }
    }
    Ok(())
}

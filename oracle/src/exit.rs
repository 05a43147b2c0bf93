//! Every exit code of `bisim`, in one place.

use std::io::{Error, ErrorKind};

/// All cases conform.
pub const CONFORM: u8 = 0;
/// A difference nobody has explained: `different` or `stricter-unnamed`.
pub const UNEXPLAINED: u8 = 1;
/// The agent did what it must not: `weaker`, `beyond-grant` or `both-unsafe`.
pub const UNSAFE: u8 = 2;
/// The catalogue is stale, expired, ambiguous, overbroad or malformed.
pub const CATALOGUE: u8 = 3;
/// More inconclusive cases than allowed, or chosen cases that did not run (^C, a spent budget).
pub const INCONCLUSIVE: u8 = 4;
/// A vector or its schema is invalid; nothing ran.
pub const VECTORS: u8 = 5;
/// The command line is wrong.
pub const USAGE: u8 = 64;
/// Something the run needs is missing: Python, user namespaces, overlayfs, the venv.
pub const ENVIRONMENT: u8 = 69;
/// The oracle itself failed.
pub const INTERNAL: u8 = 70;

/// The codes, for those who call the program from a script.
pub const HELP: &str = "\
Exit codes:
   0  every case conforms
   1  a difference nobody has explained
   2  the agent did what it must not
   3  the catalogue of known differences is stale, expired or malformed
   4  too many cases without a verdict, or chosen cases did not run
   5  a vector or its schema is invalid; nothing ran
  64  the command line is wrong: what it names is not there, or cannot be read or written
  69  something the run needs is missing; `bisim doctor` says what
  70  bisim itself failed, or a disk is full";

/// The same for what judges no cases of the vectors: faults, leaks, operators, patterns, speed.
pub const TRIED_HELP: &str = "\
Exit codes:
   0  all was tried, and holds
   1  something does not: it is named
   4  not all was tried (^C, or a budget that was spent)
  64  the command line is wrong: what it names is not there, or cannot be read or written
  69  something the run needs is missing; `bisim doctor` says what
  70  bisim itself failed, or a disk is full";

/// The same for `report`, which judges nothing again.
pub const REPORT_HELP: &str = "\
Exit codes:
   0  the page is written, whatever it tells
   3  the catalogue of known differences is malformed
   5  a vector or its schema is invalid
  64  the command line is wrong: what it names is not there, or cannot be read or written
  70  bisim itself failed, or a disk is full";

/// The same for `migrate`, which judges calls and not cases.
pub const MIGRATE_HELP: &str = "\
Exit codes:
   0  the plan is complete
   1  a call differs in a way that is not known to be harmless
   2  the agent did what nothing covers
   4  something is missing from the plan; it says what
  64  the command line is wrong, or nothing of Hermes is in that home
  69  this machine cannot replay; the plan is written without
  70  bisim itself failed, or a disk is full";

/// The same for `shadow`.
pub const SHADOW_HELP: &str = "\
Exit codes:
   0  and any but these: the command's own, or 128 and the number of the signal that ended it
  64  it was not run: the command line is wrong, or nothing of Hermes is in that home
  70  bisim itself failed, or a disk is full";

/// An output that cannot be written, known before there is anything to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// What is said of it.
    pub message: String,
    /// The exit code.
    pub code: u8,
}

impl Unwritten {
    /// `cannot write X`, the system's word for why, and the option that names another place.
    /// A place that is of no use is the command line's fault; that a disk is full is nobody's.
    #[must_use]
    pub fn new(cannot: &str, error: &Error, other: &str) -> Self {
        let is_full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        );
        let (room, code) = match is_full {
            true => ("make room there, or ", INTERNAL),
            false => ("", USAGE),
        };
        Self {
            message: format!("{cannot}: {error}; {room}name another {other}"),
            code,
        }
    }

    /// Prints it; the exit code.
    #[must_use]
    pub fn exit(&self) -> u8 {
        eprintln!("error: {}", self.message);
        self.code
    }
}

/// What a finished run adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases with an unsafe verdict.
    pub unsafe_cases: usize,
    /// Cases with an unexplained difference.
    pub unexplained: usize,
    /// Things wrong with the catalogue.
    pub catalogue: usize,
    /// Inconclusive cases over the stated budget.
    pub inconclusive_over: usize,
    /// Chosen cases did not run: what did not run has not passed.
    pub incomplete: bool,
}

/// The exit code of a finished run: 2 wins over all, then 1, 3, 4.
#[must_use]
pub fn code(tally: Tally) -> u8 {
    if tally.unsafe_cases > 0 {
        UNSAFE
    } else if tally.unexplained > 0 {
        UNEXPLAINED
    } else if tally.catalogue > 0 {
        CATALOGUE
    } else if tally.inconclusive_over > 0 || tally.incomplete {
        INCONCLUSIVE
    } else {
        CONFORM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_of_no_use_is_told_apart_from_a_disk_that_is_full() {
        let told = |errno: i32| {
            let error = Error::from_raw_os_error(errno);
            let told = Unwritten::new("cannot write `x`", &error, "file with --junit");
            (told.message, told.code)
        };
        let (message, code) = told(nix::libc::EACCES);
        assert_eq!(code, USAGE);
        assert!(
            message.ends_with("(os error 13); name another file with --junit"),
            "{message}"
        );
        for errno in [nix::libc::ENOSPC, nix::libc::EDQUOT] {
            let (message, code) = told(errno);
            assert_eq!(code, INTERNAL);
            assert!(
                message.ends_with("; make room there, or name another file with --junit"),
                "{message}"
            );
        }
    }

    #[test]
    fn the_help_names_every_code_once() {
        let named: Vec<u8> = HELP
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert_eq!(
            named,
            [
                CONFORM,
                UNEXPLAINED,
                UNSAFE,
                CATALOGUE,
                INCONCLUSIVE,
                VECTORS,
                USAGE,
                ENVIRONMENT,
                INTERNAL
            ]
        );
    }

    #[test]
    fn every_class_has_its_code_and_two_wins_over_all() {
        let none = Tally::default();
        let check = |tally: Tally, expected: u8| assert_eq!(code(tally), expected, "{tally:?}");
        check(none, 0);
        check(
            Tally {
                unexplained: 1,
                ..none
            },
            1,
        );
        check(
            Tally {
                catalogue: 1,
                ..none
            },
            3,
        );
        check(
            Tally {
                inconclusive_over: 1,
                ..none
            },
            4,
        );
        check(
            Tally {
                incomplete: true,
                ..none
            },
            4,
        );
        check(
            Tally {
                unexplained: 1,
                catalogue: 1,
                inconclusive_over: 1,
                ..none
            },
            1,
        );
        check(
            Tally {
                unsafe_cases: 1,
                unexplained: 9,
                catalogue: 9,
                inconclusive_over: 9,
                incomplete: true,
            },
            2,
        );
    }
}

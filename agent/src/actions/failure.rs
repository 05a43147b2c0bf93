//! From what stopped an action to a kind the rules know: by errno and code,
//! never by words.

use std::io::ErrorKind;

use hermitcrab_core::{outcome::DenialCode, plan::Failure};

use super::Trouble;
use crate::runtime::Stop;

/// The kind of a failure, and its words for a person.
#[must_use]
pub fn of(stop: &Stop) -> Trouble {
    let failure = match stop {
        Stop::Refused { denial, .. } => match denial.code() {
            DenialCode::NotRegularFile | DenialCode::SymlinkRefused => Failure::WrongKind,
            DenialCode::ChangedSinceShown => Failure::Exists,
            DenialCode::LimitReached => Failure::TooMuch,
            _ => Failure::Refused,
        },
        Stop::Missing => Failure::Missing,
        Stop::System(kind, _) => match kind {
            // Crossing devices: a file system that cannot do it for anybody.
            ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::CrossesDevices => Failure::NotPermitted,
            ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => Failure::Exists,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::Full,
            ErrorKind::IsADirectory => Failure::WrongKind,
            ErrorKind::FileTooLarge => Failure::TooMuch,
            ErrorKind::TimedOut => Failure::TimedOut,
            _ => Failure::Broken,
        },
        Stop::Io(_) | Stop::Broken(_) => Failure::Broken,
    };
    let words = match stop {
        Stop::Refused { denial, .. } => format!("{denial} ({})", denial.code()),
        Stop::Missing => "it is not there".to_owned(),
        Stop::System(_, words) | Stop::Io(words) | Stop::Broken(words) => words.clone(),
    };
    Trouble { failure, words }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use hermitcrab_core::plan::{Failure, Verdict, rule::rule};

    use super::{Stop, of};

    #[test]
    fn errno_decides_what_becomes_of_a_step_and_words_do_not() {
        let check = |kind, failure, verdict| {
            // Words that would say something else.
            let trouble = of(&Stop::System(kind, "no such file or directory".to_owned()));
            assert_eq!(trouble.failure, failure);
            assert_eq!(rule(trouble.failure, false), verdict, "{kind:?}");
        };
        let report = Verdict::Report;
        check(ErrorKind::PermissionDenied, Failure::NotPermitted, report);
        check(ErrorKind::ReadOnlyFilesystem, Failure::NotPermitted, report);
        check(ErrorKind::CrossesDevices, Failure::NotPermitted, report);
        check(ErrorKind::AlreadyExists, Failure::Exists, report);
        check(ErrorKind::DirectoryNotEmpty, Failure::Exists, report);
        check(ErrorKind::StorageFull, Failure::Full, report);
        check(ErrorKind::TimedOut, Failure::TimedOut, report);
        check(ErrorKind::FileTooLarge, Failure::TooMuch, report);
        check(ErrorKind::ConnectionReset, Failure::Broken, report);
        assert_eq!(of(&Stop::Missing).failure, Failure::Missing);
    }
}

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
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Failure::NotPermitted,
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

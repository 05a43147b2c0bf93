//! Changes that were allowed and that the system does not take.
//!
//! The journal makes all changes or none, so what a full or read-only disk stops is
//! thrown away whole, like what nobody allowed: with a code, the place, and what to
//! do. That its machinery failed is said only where it did.

use std::{io::ErrorKind, path::Path};

use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_sandbox::{
    dircap::FsError,
    journal::{CommitFailure, DIR_NAME},
};

use super::turn::Stop;
use crate::state_dir::room::{Room, is_lacking};

/// What is said of a place of the agent's own that it may not use.
const GIVEN_BACK: &str = "the agent keeps there what `hermitcrab undo` needs; if it is yours, `chmod u+rwx` gives it back to you";

/// Why a commit that changed nothing did not happen, seen from its directories; what
/// failed in none of them failed in the journal, which is in the agent's own.
pub(super) fn stop<'p>(
    failure: &CommitFailure,
    own_dir: &Path,
    dir: impl FnOnce(usize) -> Option<&'p Path>,
) -> Stop {
    let source = match &failure.error {
        FsError::Denied(denial) => return Stop::refused(denial.clone()),
        FsError::Io { source, .. } => source,
    };
    let place = match failure.part.and_then(dir) {
        Some(dir) if failure.path.is_root() => dir.display().to_string(),
        Some(dir) => format!("{}/{}", dir.display(), failure.path),
        None => own_dir.join(DIR_NAME).display().to_string(),
    };
    // What has no number is no word of the system's.
    if source.raw_os_error().is_none() {
        return Stop::Broken(format!("{}; nothing was changed", failure.error));
    }
    let code = match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            return Stop::Broken(format!("`{place}` is gone; nothing was changed"));
        }
        _ if is_lacking(source) => {
            let denial = Denial::new(DenialCode::NoRoom, &place);
            return Stop::refused(match room(&place, own_dir) {
                Some(room) => denial.beside(room),
                None => denial,
            });
        }
        ErrorKind::ReadOnlyFilesystem => DenialCode::ReadOnly,
        ErrorKind::PermissionDenied if failure.part.is_none() => {
            return Stop::refused(Denial::new(DenialCode::NotWritable, &place).beside(GIVEN_BACK));
        }
        ErrorKind::PermissionDenied => DenialCode::NotWritable,
        _ => {
            let about = format_args!("{place}: {source}");
            return Stop::refused(Denial::new(DenialCode::DiskFailed, about));
        }
    };
    Stop::refused(Denial::new(code, place))
}

/// How much room there is, and what makes some where the agent itself keeps something there.
fn room(place: &str, own_dir: &Path) -> Option<String> {
    let room = Room::at(Path::new(place))?;
    let own = Room::at(own_dir);
    if own.is_none_or(|own| own.mounted_at != room.mounted_at) {
        return Some(room.to_string());
    }
    Some(format!(
        "{room}; `hermitcrab undo --forget ID` removes what is kept there of an earlier commit"
    ))
}

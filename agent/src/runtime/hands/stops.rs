//! What a failed file operation means to the call that wanted it.

use hermitcrab_sandbox::dircap::FsError;

use super::{
    super::{place::Place, turn::Stop},
    CHANGED_BYTES_MAX, FILE_BYTES_MAX,
};
use crate::text::pytext;

/// A failed file operation on a place as a reason to stop: links that lead round in a circle
/// are told with the whole name of the place.
pub(in crate::runtime) fn stop_at(error: &FsError, place: &Place) -> Stop {
    match stop(error) {
        Stop::System(kind, _) if kind == links_in_a_circle() => {
            let name = pytext::quoted(&place.absolute);
            Stop::System(kind, format!("Symlink loop from {name}"))
        }
        stop => stop,
    }
}

/// What the system calls links that lead round in a circle.
fn links_in_a_circle() -> std::io::ErrorKind {
    std::io::Error::from(rustix::io::Errno::LOOP).kind()
}

impl Stop {
    /// Whether links led round in a circle.
    pub(in crate::runtime) fn is_of_a_circle(&self) -> bool {
        matches!(self, Self::System(kind, _) if *kind == links_in_a_circle())
    }
}

/// A failed file operation as a reason to stop.
pub(in crate::runtime) fn stop(error: &FsError) -> Stop {
    match error {
        FsError::Denied(denial) => Stop::refused(denial.clone()),
        FsError::Io { source, .. }
            if matches!(
                source.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Stop::Missing
        }
        FsError::Io { source, .. } if source.kind() == std::io::ErrorKind::FileTooLarge => {
            let most = FILE_BYTES_MAX >> 20;
            Stop::System(
                source.kind(),
                format!(
                    "{error}: of what is longer than {most} MiB, read_file and search_files take parts; `patch` changes what is not longer than {} MiB, \
                     and `terminal` any",
                    CHANGED_BYTES_MAX >> 20
                ),
            )
        }
        FsError::Io { source, .. } => Stop::System(source.kind(), error.to_string()),
    }
}

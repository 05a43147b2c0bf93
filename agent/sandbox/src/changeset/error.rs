//! Why a layer could not be read.

use std::fmt;
use std::io;

use hermitcrab_core::outcome::{Denial, DenialCode};

/// The layer could not be read.
#[derive(Debug)]
pub struct ChangeSetError {
    pub(super) operation: &'static str,
    pub(super) path: String,
    pub(super) source: io::Error,
}

impl ChangeSetError {
    /// Which refusal it is.
    #[must_use]
    pub fn denial(&self) -> Denial {
        // Layers are the agent's own: what is closed to it is the directory they lie over.
        match self.source.kind() {
            io::ErrorKind::PermissionDenied => Denial::new(
                DenialCode::NotReadable,
                format_args!("{}, which the command changed", self.path),
            ),
            _ => Denial::new(DenialCode::EffectNotCovered, self),
        }
    }
}

impl fmt::Display for ChangeSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}` of the command's view: {}; nothing was applied",
            self.operation, self.path, self.source
        )
    }
}

impl From<io::Error> for ChangeSetError {
    fn from(source: io::Error) -> Self {
        Self {
            operation: "hold",
            path: String::from("."),
            source,
        }
    }
}

impl std::error::Error for ChangeSetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

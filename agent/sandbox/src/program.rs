//! Which program starts confined commands.

use std::path::PathBuf;

/// Which program to start as the spawner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnerProgram {
    /// The running program itself, whose `main` begins with [`crate::maybe_run_as_child`]. In
    /// one that does not, no command runs: it would begin anew instead.
    Own,
    /// Another one that calls [`crate::maybe_run_as_child`], such as
    /// `hermitcrab-sandbox-child` beside a test binary.
    At(PathBuf),
}

impl SpawnerProgram {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Own => PathBuf::from("/proc/self/exe"),
            Self::At(path) => path.clone(),
        }
    }
}

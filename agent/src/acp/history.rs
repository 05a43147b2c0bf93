//! What was said in a session of an editor: kept in the session's directory, beside its
//! ledger.

use std::path::{Path, PathBuf};

use super::waiting;
use crate::{
    audit::{self, LedgerError},
    conversation::{self, Conversation, Shelf},
};

/// A conversation that a session goes on with.
#[derive(Debug)]
pub struct Past {
    /// What was said.
    pub said: Conversation,
    /// It is gone on with without being shown.
    pub is_silent: bool,
}

impl Past {
    /// Of one that begins now.
    #[must_use]
    pub fn begins(cwd: PathBuf) -> Self {
        Self {
            said: Conversation::new(cwd),
            is_silent: false,
        }
    }
}

/// The directory of a session.
#[must_use]
pub fn dir_of(state_dir: &Path, id: &str) -> PathBuf {
    Shelf::Editor.dir_of(state_dir, id)
}

/// Forgets what was said in a session; that there is nothing is no error.
///
/// No session works on it meanwhile: one that did would keep it anew.
///
/// # Errors
/// `busy`: another program has the session open. The disk's.
pub fn forget(dir: &Path) -> Result<(), LedgerError> {
    let _nobody_has_it = audit::hold(dir)?;
    waiting::forget(dir);
    conversation::forget(dir).map_err(|error| LedgerError::Io(dir.to_owned(), error))
}

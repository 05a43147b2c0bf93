//! What was said in a session of an editor: kept in the session's directory, beside its
//! ledger.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::waiting;
use crate::{
    audit::{self, LedgerError},
    conversation::{self, Conversation, Keeper, Mark, Shelf, When},
    model::Message,
    runtime::Runtime,
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

/// What is said in a session, kept as it goes on.
#[derive(Debug)]
pub struct Story {
    /// What was said.
    pub said: Conversation,
    dir: PathBuf,
    keeper: Keeper,
}

impl Story {
    /// One that is kept in this session's directory.
    #[must_use]
    pub fn of(said: Conversation, dir: PathBuf) -> Self {
        Self {
            said,
            dir,
            keeper: Keeper::default(),
        }
    }

    /// Keeps what was said up to now.
    ///
    /// # Errors
    /// The disk's.
    pub fn go_on(&mut self, messages: &[Message], runtime: &Runtime, when: When) -> io::Result<()> {
        let unchanged = self.said.note(messages);
        self.said.has_read |= runtime.has_read(runtime.first_agent());
        self.said.mark = Some(Mark::of(runtime.calls_made()));
        self.keeper.keep(&self.dir, &self.said, unchanged, when)
    }

    /// Keeps what it holds for certain.
    ///
    /// # Errors
    /// The disk's.
    pub fn settle(&mut self) -> io::Result<()> {
        let unchanged = self.said.messages.len();
        self.keeper
            .keep(&self.dir, &self.said, unchanged, When::After)
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

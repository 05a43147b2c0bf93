//! What the files of the state directory rest on: they are their owner's alone, lie under
//! one key, and how far ledger and store were known to reach is kept beside them.
//!
//! The ledger ([`audit`](crate::audit)) and the store ([`store`](crate::store)) are built
//! on it; it knows the form of neither. What
//! commands made of files that others changed meanwhile is kept beside them, and so is which
//! workspaces need much room.

pub mod anchor;
pub mod conflicts;
pub mod key;
pub mod own_file;
pub mod room;
pub mod roomy;

/// What was typed at the prompt.
pub const HISTORY_NAME: &str = "history";

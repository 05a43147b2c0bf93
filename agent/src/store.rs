//! What outlives a session: the key, the anchor of the ledger, and the store
//! with its standing grants and remembered answers.
//!
//! Nothing in here is authority. A kept grant becomes one only in a session,
//! through the core's checks; a store that cannot be trusted in full counts as
//! an empty one, is left as it is, and is said to be so.

pub mod anchor;
pub mod db;
pub mod key;
pub mod own_file;
mod state;

pub use self::state::{State, StateError};

//! What outlives a session: the key, the anchor of the ledger, and the store
//! with its standing grants and remembered answers.
//!
//! Nothing in here is authority. A kept grant becomes one only in a session,
//! through the core's checks; a store that cannot be trusted in full counts as
//! an empty one, is left as it is, and is said to be so.

pub mod archive;
mod begin;
pub mod contents;
pub mod db;
pub mod keeper;
pub mod repair;
pub mod rows;
pub mod site;
mod state;

pub use self::{
    begin::{Begun, NotBegun, begin, ledger},
    db::StoreError,
    state::{State, StateError},
};

/// The store's name in the state directory.
pub const FILE_NAME: &str = "store.redb";

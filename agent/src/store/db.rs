//! The store's file.

/// The store's name in the state directory.
pub const FILE_NAME: &str = "store.redb";

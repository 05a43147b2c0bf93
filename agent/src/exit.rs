//! Every exit code of `hermitcrab`, in one place.
//!
//! `exec` ends with the command's own status if the command ran and what it
//! did stands.

/// It ran.
pub const OK: u8 = 0;
/// The tool reports a failure of its own.
pub const TOOL_FAILED: u8 = 1;
/// The command line or the configuration means nothing.
pub const USAGE: u8 = 64;
/// This machine lacks something that is needed; `doctor` says what.
pub const ENVIRONMENT: u8 = 69;
/// The agent's own machinery failed.
pub const INTERNAL: u8 = 70;
/// The ledger does not hold.
pub const LEDGER: u8 = 74;
/// It was refused, or what it did was discarded.
pub const REFUSED: u8 = 77;

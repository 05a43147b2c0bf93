//! The edit gate: what is shown, and when the user has to be asked.

mod call;
mod standing;

pub use call::{HostFiles, prepare};
pub use standing::Desk;

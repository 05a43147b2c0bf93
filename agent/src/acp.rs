//! The agent behind an editor: the Agent Client Protocol, version 1, over the
//! standard streams.
//!
//! Why: whoever edits wants to see every change before it touches the disk,
//! where they edit. A question goes to the client with each file's old and new
//! text; what is approved is bound to those very contents, and the commit
//! checks them again. Anything but a clear yes is a refusal.
//!
//! Each session has a thread, a runtime, a ledger and grants of its own. The
//! connection's own loop never waits for a session. This module must never
//! write through the client, and never take a client's word for what is on the
//! disk.

mod ask;
mod commands;
mod complaint;
mod control;
mod desk;
pub mod frame;
mod history;
mod link;
mod modes;
mod order;
mod person;
mod planned;
mod prompt;
mod scene;
mod seat;
mod server;
mod spoken;
mod transport;
mod updates;
mod waiting;
mod watcher;

pub use self::{
    commands::Undo,
    history::forget,
    seat::{Furnish, Ground, Opened, Opener, Undoing},
    server::{Service, serve},
};

//! The thread that replaces what was used while nobody waits.
//!
//! It holds nothing that keeps a pool: a pool that goes tells it to end, and
//! waits for that, so a process has no thread more afterwards than before.

use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use super::Shared;
use crate::spawn::interpreter::Recipe;

/// A sandbox with these surroundings was used.
#[derive(Debug)]
pub(super) struct Refill {
    pub key: Vec<u8>,
    /// How the interpreter of its command would have been started before.
    pub recipe: Option<Recipe>,
}

/// Not started before there is work.
#[derive(Debug, Default)]
pub(super) enum Thread {
    #[default]
    NotYet,
    Runs(JoinHandle<()>),
    /// It cannot be started here, and is not tried again; or it was ended.
    Not,
}

impl Thread {
    /// Whether there is a thread, started now if need be.
    pub(super) fn is_there(&mut self, shared: &Arc<Shared>) -> bool {
        if matches!(self, Self::NotYet) {
            let shared = Arc::clone(shared);
            let started = std::thread::Builder::new()
                .name("hermitcrab-pool".to_owned())
                .spawn(move || serve(&shared));
            *self = started.map_or(Self::Not, Self::Runs);
        }
        matches!(self, Self::Runs(_))
    }

    /// Waits for its end, which it was told.
    pub(super) fn end(&mut self) {
        if let Self::Runs(handle) = std::mem::replace(self, Self::Not) {
            // A panic in there has taken nothing along that is used here.
            let _ended = handle.join();
        }
    }
}

fn serve(shared: &Shared) {
    let mut inner = shared.lock();
    while !inner.closed {
        if inner.used.is_empty() {
            inner = shared
                .work
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        } else {
            shared.replace(&mut inner);
        }
    }
}

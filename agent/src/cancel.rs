//! Calling something off that another thread or a signal started.
//!
//! Whoever waits (a model, a person, a printer, a command) is handed the same switch,
//! and whoever wants them to stop throws it. It knows nobody.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A switch: once it is thrown, what looks at it stops.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// The switch behind it, for a signal to throw.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Whether it was thrown.
    #[must_use]
    pub fn is_thrown(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether it was thrown; from now on it is not.
    #[must_use]
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }

    /// Throws it.
    pub fn throw(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Two switches, of which either is enough: of whoever waits, and of what they wait by.
#[derive(Clone, Copy, Debug)]
pub struct Either<'c>(pub &'c Cancel, pub Option<&'c Cancel>);

impl Either<'_> {
    /// Whether one of them was thrown.
    #[must_use]
    pub fn is_thrown(self) -> bool {
        self.0.is_thrown() || self.1.is_some_and(Cancel::is_thrown)
    }
}

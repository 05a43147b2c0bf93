//! Who has to know before a command reaches anybody.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Asked once, before the first peer of a command is looked up or connected to: what comes
/// from there is then known to come from a network. While the answer is no, nobody is reached,
/// and the next attempt asks again.
#[derive(Clone, Default)]
pub(crate) struct Notice(Option<Arc<Asked>>);

struct Asked {
    ask: Box<dyn Fn() -> bool + Send + Sync>,
    is_taken: Mutex<bool>,
}

impl Notice {
    pub(super) fn to(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Asked {
            ask: Box::new(ask),
            is_taken: Mutex::new(false),
        })))
    }

    /// Whether a peer may be reached; nobody has to know if nobody was named.
    pub(super) fn is_taken(&self) -> bool {
        let Some(asked) = &self.0 else { return true };
        // Held while it is asked: a second connection must not overtake the answer.
        let mut is_taken = asked
            .is_taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_taken {
            *is_taken = (asked.ask)();
        }
        *is_taken
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notice").field(&self.0.is_some()).finish()
    }
}

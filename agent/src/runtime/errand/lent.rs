//! What a run of a job is lent by whoever asks for it: nothing.
//!
//! It is a value so that the defect it must never have can be planted: a run that
//! borrows its caller's rights.

use hermitcrab_core::grant::AgentId;

use crate::runtime::{GrantWords, Runtime};

/// What is lent.
#[derive(Clone, Debug, Default)]
pub struct Lent(Vec<GrantWords>);

impl Lent {
    /// Everything the caller holds. Only a planted fault lends it.
    pub(super) fn all_of(caller: &Runtime, agent: AgentId) -> Self {
        Self(caller.files_in_words(agent))
    }

    /// Gives it to the session of a run.
    pub fn give_to(&self, run: &mut Runtime) {
        let agent = run.first_agent();
        for words in &self.0 {
            // A fault that cannot be planted is one that is not found.
            let _given = run.grant(agent, words);
        }
    }
}

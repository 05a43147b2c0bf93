//! A step that was seen part by part: a conversation, answer by answer.
//!
//! A yes to something counts for the part in which it was given, and what ends while a
//! question waits covers nothing from that part on. Seen as a whole, a second change of the
//! same file would be covered by the yes to the first one.

use std::collections::BTreeSet;

use bisim_world::protocol::Step;

use super::agreed::Agreed;
use super::{Approval, Holdings};
use crate::observation::StepSeen;

impl Holdings<'_> {
    /// What the agent did in a step that nothing held covers, in words, while what happened
    /// when its user was asked is followed. Charges the uses of what does cover it.
    pub fn outside_as_asked(&mut self, step: &Step, seen: &StepSeen) -> Vec<String> {
        let approval = Approval::ShownPaths;
        if seen.parts.is_empty() {
            self.follow_meanwhile(step, &seen.meanwhile);
            return self.outside(step, seen, approval);
        }
        let mut outside = Vec::new();
        // When a secret was told is not seen: it may have been while something covered it.
        let mut leaked: BTreeSet<&String> = seen.canaries.iter().collect();
        let mut asked = 0;
        for part in &seen.parts {
            let numbers = asked..part.asked.max(asked);
            asked = numbers.end;
            let agreed = Agreed::to(seen, numbers.clone(), approval);
            let told = |holdings: &Self, path: &str| {
                holdings.covers_reading(step.by(), path, agreed, &mut BTreeSet::new())
            };
            leaked.retain(|path| !told(self, path));
            let meanwhile = seen.meanwhile.get(numbers.clone()).unwrap_or_default();
            self.follow_meanwhile_from(step, numbers.start, meanwhile);
            leaked.retain(|path| !told(self, path));
            outside.extend(self.outside_of(step, (&part.delta, &[]), agreed));
        }
        outside.extend(leaked.into_iter().map(|path| format!("leaked {path}")));
        outside
    }
}

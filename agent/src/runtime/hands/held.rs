//! What an agent holds at a place, before anything is asked for.
//!
//! A tool that would look only to say more looks where that costs nothing. It must
//! never decide: what is asked for later is decided then.

use hermitcrab_core::{action::Action, authority::Verb, digest::Digest, rules::Judgement};

use super::{super::place::Place, Hands};

/// How something can be done without a question and with no rule about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// As often as wanted.
    Freely,
    /// A limited number of times, here or where the grant comes from.
    ByUse,
}

impl Hands<'_> {
    /// Whether the agent holds this now, without a question, a rule against it, and
    /// without spending one of a limited number of uses.
    #[must_use]
    pub fn freely(&self, verb: Verb, place: &Place) -> bool {
        self.held(verb, place) == Some(Held::Freely)
    }

    /// Whether each look at a place, as each read of it, is one of a limited number of uses.
    #[must_use]
    pub fn looks_by_use(&self, place: &Place) -> bool {
        !self.freely(Verb::FsList, place) && self.held(Verb::FsRead, place) == Some(Held::ByUse)
    }

    fn held(&self, verb: Verb, place: &Place) -> Option<Held> {
        let action = Action::on_path(verb, place.dir, place.below.clone(), Digest::NONE).ok()?;
        let now = self.runtime.clock.now();
        self.runtime.machine.look(|session| {
            if session.rules().judge(self.tool, &action) != Judgement::Plain {
                return None;
            }
            let grant = session.table().choose(self.by, action.cap(), now).ok()?;
            Some(if session.table().is_counted(grant) {
                Held::ByUse
            } else {
                Held::Freely
            })
        })
    }
}

//! What an agent holds at a place, before anything is asked for.
//!
//! A tool that would look only to say more looks where that costs nothing. It must
//! never decide: what is asked for later is decided then.

use hermitcrab_core::{
    action::Action,
    authority::{Extent, Object, Verb},
    digest::Digest,
    rules::Judgement,
};

use super::{
    super::place::{Place, Spot},
    Hands,
};

/// How something can be done without a question and with no rule about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// As often as wanted.
    Freely,
    /// A limited number of times, here or where the grant comes from.
    ByUse,
}

/// Why something cannot be done so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// A rule has something to say about it.
    Leave,
    /// No grant is for it.
    Grant,
}

impl Hands<'_> {
    /// Whether the agent holds this now, without a question, a rule against it, and
    /// without spending one of a limited number of uses.
    #[must_use]
    pub fn freely(&self, verb: Verb, place: &Place) -> bool {
        self.held(verb, place, Extent::Alone) == Ok(Held::Freely)
    }

    /// Whether each look at a place, as each read of it, is one of a limited number of uses.
    #[must_use]
    pub fn looks_by_use(&self, place: &Place) -> bool {
        let read = self.held(Verb::FsRead, place, Extent::Alone);
        !self.freely(Verb::FsList, place) && read == Ok(Held::ByUse)
    }

    /// Whether all that lies below a place is asked about because nobody granted it, and for
    /// no other reason.
    #[must_use]
    pub fn lacks_all(&self, verb: Verb, place: &Place) -> bool {
        self.held(verb, place, Extent::Tree) == Err(Lack::Grant)
    }

    /// The same for the place alone.
    pub(super) fn lacks(&self, verb: Verb, place: &Place) -> bool {
        self.held(verb, place, Extent::Alone) == Err(Lack::Grant)
    }

    /// Whether one of these is asked about because nobody granted it.
    #[must_use]
    pub fn lacks_any(&self, verb: Verb, spots: &[Spot<'_>]) -> bool {
        let lacks = |place: Place| self.lacks(verb, &place);
        spots.iter().any(|spot| spot.place().is_ok_and(lacks))
    }

    fn held(&self, verb: Verb, place: &Place, extent: Extent) -> Result<Held, Lack> {
        let (dir, below) = (place.dir, place.below.clone());
        let object = Object::Dir { dir, below, extent };
        let action = Action::new(verb, object, Digest::NONE).map_err(|_| Lack::Grant)?;
        let now = self.runtime.clock.now();
        self.runtime.machine.look(|session| {
            if session.rules().judge(self.tool, &action) != Judgement::Plain {
                return Err(Lack::Leave);
            }
            let looks = std::slice::from_ref(&action);
            let by_yes = |call| session.may_look_further(call, looks);
            if self.looking.iter().any(|call| by_yes(*call)) {
                return Ok(Held::Freely);
            }
            let grant = session.table().choose(self.by, action.cap(), now);
            let grant = grant.map_err(|_| Lack::Grant)?;
            Ok(if session.table().is_counted(grant) {
                Held::ByUse
            } else {
                Held::Freely
            })
        })
    }
}

//! Many places at once: one decision, one record, many permits.
//!
//! What for: a search looks at hundreds of places, and each turn of the session
//! is recorded. Every place still has a permit of its own. It must never
//! leave out a place's decision because its neighbour's was a yes.

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::{CallId, Question},
    authority::{CapError, Object, Verb},
    digest::Digest,
    fault::{self, Fault},
    limits::ACTIONS_PER_TURN_MAX,
    outcome::{DenialCode, Outcome},
    path::RelPath,
    rules::{Judgement, Sensitivity, Siblings},
    session::Session,
    time::Instant,
    tool::Tool,
};
use hermitcrab_sandbox::dircap::{self, DirCap, Names, Stat};

use super::{
    super::{
        place::{Place, Spot},
        turn::Stop,
    },
    Hands,
    long::{Content, Taker, how_it_ended},
};

/// Bytes of contents in memory at once, and perhaps one file more.
const BYTES_AT_ONCE: usize = 16 << 20;

impl Hands<'_> {
    /// Contents of many files under one decision; those that cannot be read,
    /// or only through a link, are `None`. They are in memory all at once, so after so
    /// many bytes the rest of the files is left for another decision: of the first ones
    /// alone, and of one at least, there is a result. The first may be longer than that,
    /// and is the only one then: its pieces are handed over, until `until` at most.
    pub fn read_all(
        &mut self,
        spots: &[Spot<'_>],
        taker: &mut dyn Taker,
        until: Instant,
    ) -> Result<Vec<Option<Content>>, Stop> {
        let mut left = BYTES_AT_ONCE;
        let (mut is_first, mut is_full) = (true, false);
        let mut long = None;
        let spots = spots.get(..ACTIONS_PER_TURN_MAX).unwrap_or(spots);
        let (call, read) = self.many_begun(Verb::FsRead, spots, |dir, permit, below| {
            if is_full {
                return None;
            }
            let is_first = std::mem::take(&mut is_first);
            match dir.open_direct(permit, below, BYTES_AT_ONCE) {
                Ok(dircap::Content::Whole(bytes)) => {
                    left = left.saturating_sub(bytes.len());
                    is_full = left == 0;
                    Some(Some(Content::Whole(bytes)))
                }
                Ok(dircap::Content::Long(file)) => {
                    is_full = true;
                    long = is_first.then_some(file);
                    None
                }
                Err(_) => Some(None),
            }
        })?;
        let read = match long {
            None => Ok(read.into_iter().map_while(|content| content).collect()),
            Some(file) => match self.pass(call, file, taker, Some(until)) {
                Ok(passed) => Ok(vec![Some(Content::Passed(passed))]),
                Err(Stop::Missing | Stop::System(..)) => Ok(vec![None]),
                Err(stop) => Err(stop),
            },
        };
        self.end_look(call, how_it_ended(&read))?;
        read
    }

    /// The names in many directories under one decision, each in the order its
    /// file system keeps them.
    pub fn names_all(&mut self, spots: &[Spot<'_>]) -> Result<Vec<Option<Names>>, Stop> {
        self.many(Verb::FsList, spots, |dir, permit, below| {
            dir.list_direct_as_found(permit, below).ok()
        })
    }

    /// Facts about many places under one decision.
    pub fn look_all(&mut self, spots: &[Spot<'_>]) -> Result<Vec<Option<Stat>>, Stop> {
        self.many(Verb::FsList, spots, |dir, permit, below| {
            dir.stat(permit, below).ok()
        })
    }

    /// Asks to read what only gets another name: under that it may be read by whoever
    /// may not read it where it is.
    pub fn read_to_move(&mut self, spots: &[Spot<'_>]) -> Result<(), Stop> {
        self.many(Verb::FsRead, spots, |dir, permit, below| {
            dir.stat(permit, below).ok()
        })
        .map(drop)
    }

    /// Whether all that lies in a directory is named by its handle: no directory is
    /// open on its own below it, and nothing of the agent's lies there.
    #[must_use]
    pub fn names_all_below(&self, place: &Place) -> bool {
        let above = self.runtime.mounts.absolute(place.dir, &place.below);
        above.is_some_and(|above| {
            self.runtime.mounts.below(&above).next().is_none()
                && self
                    .runtime
                    .machine
                    .look(|session| !session.rules().touches_protected(place.dir, &place.below))
        })
    }

    /// The place of a name found in a directory, unless it is the agent's own.
    #[must_use]
    pub fn found(&self, place: &Place, name: &[u8]) -> Option<Place> {
        self.child(place, name)
            .filter(|child| !self.is_protected(child))
    }

    /// Those of `found` whose name is asked about each time, and the others.
    pub fn by_sensitivity<'p, T>(
        &self,
        verb: Verb,
        found: Vec<T>,
        spot: impl Fn(&T) -> Spot<'p>,
    ) -> (Vec<T>, Vec<T>) {
        self.runtime.machine.look(|session| {
            let rules = session.rules();
            // Neighbours mostly come one after the other.
            let mut last: Option<(&Place, Siblings<'_>)> = None;
            found.into_iter().partition(|one| {
                let judged = match spot(one) {
                    Spot::In(place, name) => {
                        let known = last.take().filter(|(known, _)| std::ptr::eq(*known, place));
                        let (_, siblings) = last.insert(known.unwrap_or_else(|| {
                            let siblings = rules.siblings(self.tool, verb, place.dir, &place.below);
                            (place, siblings)
                        }));
                        siblings.sensitivity(name)
                    }
                    Spot::At(place) | Spot::All(place) => {
                        action_at(verb, spot(one), place.below.clone())
                            .ok()
                            .map_or(Sensitivity::Plain, |action| {
                                rules.sensitivity(self.tool, &action)
                            })
                    }
                };
                judged != Sensitivity::Plain
            })
        })
    }

    /// Those of `found` that a person's rule refuses, or wants a question about, and the others.
    pub fn by_rules<'p, T>(
        &self,
        verb: Verb,
        found: Vec<T>,
        spot: impl Fn(&T) -> Spot<'p>,
    ) -> (Vec<T>, Vec<T>) {
        self.runtime.machine.look(|session| {
            let is_unruled = self.tool == Tool::SearchFiles && fault::is(Fault::SearchIgnoresRules);
            if session.rules().configured().is_empty() || is_unruled {
                return (Vec::new(), found);
            }
            found
                .into_iter()
                .partition(|one| is_ruled(session, self.tool, verb, spot(one)))
        })
    }

    /// Whether a person's rule refuses it, or wants a question about it.
    #[must_use]
    pub fn is_ruled(&self, verb: Verb, spot: Spot<'_>) -> bool {
        self.runtime
            .machine
            .look(|session| is_ruled(session, self.tool, verb, spot))
    }

    fn many<R>(
        &mut self,
        verb: Verb,
        spots: &[Spot<'_>],
        mut act: impl FnMut(&DirCap, Permit<'_>, &RelPath) -> Option<R>,
    ) -> Result<Vec<Option<R>>, Stop> {
        let mut results = Vec::with_capacity(spots.len());
        for part in spots.chunks(ACTIONS_PER_TURN_MAX) {
            let (call, got) = self.many_begun(verb, part, &mut act)?;
            self.end_look(call, Outcome::Done(Digest::NONE))?;
            results.extend(got);
        }
        Ok(results)
    }

    /// The same for as many as are decided at once, in a call that still runs.
    fn many_begun<R>(
        &mut self,
        verb: Verb,
        spots: &[Spot<'_>],
        mut act: impl FnMut(&DirCap, Permit<'_>, &RelPath) -> Option<R>,
    ) -> Result<(CallId, Vec<Option<R>>), Stop> {
        let belows = spots
            .iter()
            .map(|spot| spot.below().map_err(|error| cannot_ask(*spot, &error)))
            .collect::<Result<Vec<_>, _>>()?;
        let actions = spots
            .iter()
            .zip(&belows)
            .map(|(spot, below)| {
                action_at(verb, *spot, below.clone()).map_err(|error| cannot_ask(*spot, &error))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let text = |_: &Question| {
            spots
                .iter()
                .map(|spot| format!("{verb} {}\n", spot.asked()))
                .collect::<String>()
        };
        self.begin_look(actions, text, |mounts, permits| {
            spots
                .iter()
                .zip(&belows)
                .zip(permits)
                .map(|((spot, below), permit)| act(&mounts.get(spot.dir())?.cap, permit, below))
                .collect()
        })
    }
}

fn cannot_ask(spot: Spot<'_>, why: &dyn std::fmt::Display) -> Stop {
    Stop::Broken(format!("cannot ask for `{}`: {why}", spot.absolute()))
}

fn action_at(verb: Verb, spot: Spot<'_>, below: RelPath) -> Result<Action, CapError> {
    let (dir, extent) = (spot.dir(), spot.extent());
    Action::new(verb, Object::Dir { dir, below, extent }, Digest::NONE)
}

fn is_ruled(session: &Session, tool: Tool, verb: Verb, spot: Spot<'_>) -> bool {
    let below = spot.below().ok();
    let action = below.and_then(|below| action_at(verb, spot, below).ok());
    action.is_some_and(|action| {
        matches!(
            session.rules().judge(tool, &action),
            Judgement::Deny(DenialCode::DeniedByRule, _)
                | Judgement::Ask(DenialCode::AskedByRule, _)
        )
    })
}

//! Many places at once: one decision, one record, many permits.
//!
//! What for: a search looks at hundreds of places, and each turn of the session
//! waits for the disk. Every place still has a permit of its own. It must never
//! leave out a place's decision because its neighbour's was a yes.

use std::borrow::Borrow;

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::Question,
    authority::Verb,
    digest::Digest,
    outcome::DenialCode,
    path::RelPath,
    rules::{Judgement, Sensitivity},
};
use hermitcrab_sandbox::dircap::{DirCap, Entry, Stat};

use super::{
    super::{place::Place, shown::one_line, turn::Stop},
    FILE_BYTES_MAX, Hands, action,
};

impl Hands<'_> {
    /// Contents of many files under one decision; those that cannot be read,
    /// or only through a link, are `None`.
    pub fn read_all(
        &mut self,
        places: &[impl Borrow<Place>],
    ) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        self.many(Verb::FsRead, places, |dir, permit, below| {
            dir.read_direct(permit, below, FILE_BYTES_MAX).ok()
        })
    }

    /// The names in many directories under one decision, each in the order its
    /// file system keeps them.
    pub fn names_all(
        &mut self,
        places: &[impl Borrow<Place>],
    ) -> Result<Vec<Option<Vec<Entry>>>, Stop> {
        self.many(Verb::FsList, places, |dir, permit, below| {
            dir.list_direct_as_found(permit, below).ok()
        })
    }

    /// Facts about many places under one decision.
    pub fn look_all(&mut self, places: &[impl Borrow<Place>]) -> Result<Vec<Option<Stat>>, Stop> {
        self.many(Verb::FsList, places, |dir, permit, below| {
            dir.stat(permit, below).ok()
        })
    }

    /// Asks to read what only gets another name: under that it may be read by whoever
    /// may not read it where it is.
    pub fn read_to_move(&mut self, places: &[impl Borrow<Place>]) -> Result<(), Stop> {
        self.many(Verb::FsRead, places, |dir, permit, below| {
            dir.stat(permit, below).ok()
        })
        .map(drop)
    }

    /// What was found in a directory, each name with its place. The agent's own
    /// places are left out.
    pub fn children(&self, place: &Place, entries: Vec<Entry>) -> Vec<(Entry, Place)> {
        let Some(above) = self.runtime.mounts.absolute(place.dir, &place.below) else {
            return Vec::new();
        };
        // Where no directory is open on its own below, and nothing of the
        // agent's lies there, all names are alike.
        let is_plain = self.runtime.mounts.below(&above).next().is_none()
            && self
                .runtime
                .machine
                .look(|session| !session.rules().touches_protected(place.dir, &place.below));
        let above = above.to_string_lossy();
        let child = |name: &[u8]| {
            if !is_plain {
                return self
                    .child(place, name)
                    .filter(|child| !self.is_protected(child));
            }
            let below = place.below.child(name).ok()?;
            let name = String::from_utf8_lossy(name);
            let between = if above.ends_with('/') { "" } else { "/" };
            Some(Place {
                dir: place.dir,
                below,
                absolute: format!("{above}{between}{name}"),
            })
        };
        entries
            .into_iter()
            .filter_map(|entry| {
                let child = child(&entry.name)?;
                Some((entry, child))
            })
            .collect()
    }

    /// Those of `found` whose name is asked about each time, and the others.
    pub fn by_sensitivity<T>(
        &self,
        verb: Verb,
        found: Vec<T>,
        place: impl Fn(&T) -> &Place,
    ) -> (Vec<T>, Vec<T>) {
        self.runtime.machine.look(|session| {
            found.into_iter().partition(|one| {
                let place = place(one);
                Action::on_path(verb, place.dir, place.below.clone(), Digest::NONE).is_ok_and(
                    |action| session.rules().sensitivity(self.tool, &action) != Sensitivity::Plain,
                )
            })
        })
    }

    /// Those of `found` that a person's rule refuses, or wants a question about, and the others.
    pub fn by_rules<T>(
        &self,
        verb: Verb,
        found: Vec<T>,
        place: impl Fn(&T) -> &Place,
    ) -> (Vec<T>, Vec<T>) {
        self.runtime.machine.look(|session| {
            if session.rules().configured().is_empty() {
                return (Vec::new(), found);
            }
            found.into_iter().partition(|one| {
                let place = place(one);
                let action = Action::on_path(verb, place.dir, place.below.clone(), Digest::NONE);
                action.is_ok_and(|action| {
                    matches!(
                        session.rules().judge(self.tool, &action),
                        Judgement::Deny(DenialCode::DeniedByRule, _)
                            | Judgement::Ask(DenialCode::AskedByRule, _)
                    )
                })
            })
        })
    }

    fn many<R, P: Borrow<Place>>(
        &mut self,
        verb: Verb,
        places: &[P],
        act: impl Fn(&DirCap, Permit<'_>, &RelPath) -> Option<R>,
    ) -> Result<Vec<Option<R>>, Stop> {
        let mut results = Vec::with_capacity(places.len());
        for part in places.chunks(hermitcrab_core::limits::ACTIONS_PER_TURN_MAX) {
            let actions = part
                .iter()
                .map(|place| action(verb, place.borrow(), Digest::NONE))
                .collect::<Result<Vec<_>, _>>()?;
            let text = |_: &Question| {
                part.iter()
                    .map(|place| format!("{verb} {}\n", one_line(&place.borrow().absolute)))
                    .collect::<String>()
            };
            let got: Vec<Option<R>> = self.perform(actions, text, |mounts, permits| {
                part.iter()
                    .map(Borrow::borrow)
                    .zip(permits)
                    .map(|(place, permit)| act(&mounts.get(place.dir)?.cap, permit, &place.below))
                    .collect()
            })?;
            results.extend(got);
        }
        Ok(results)
    }
}

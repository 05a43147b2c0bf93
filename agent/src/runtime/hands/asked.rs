//! One question for all that a call looks at.
//!
//! Where nobody granted looking, a search would ask about a directory, about what it holds and
//! about the files in it, and a patch about each file each time it looks at one. They ask once,
//! before the first look, and the session's call that was allowed stays open as long as the
//! tool's call does: every look is decided under it, each place by itself. What rules keep,
//! and names that are asked about each time, are not in it.

use hermitcrab_core::{
    action::Action,
    approval::{CallId, Question},
    authority::Verb,
    digest::Digest,
    outcome::Outcome,
    path::RelPath,
    session::{Call, Event},
};

use super::{
    super::{
        place::{Place, Spot},
        turn::{Reach, Stop},
        visible::one_line,
    },
    Hands, action, action_on_tree,
    long::how_it_ended,
};

/// What a question about all of a place says besides.
const ALL_OF_IT: &str = "that is the file, or the directory and everything in it; with `once`, for this one call of the tool\n\
     not in it: what a rule of yours withholds, the agent's own files, names that are asked about each time (keys, `.env`)\n";

impl Hands<'_> {
    /// Asks once to look at all of a place, by those of these verbs that nobody granted; only
    /// where that is all that is lacking. Nothing is asked where it is held.
    pub fn ask_for_all(&mut self, place: &Place, verbs: &[Verb]) -> Result<(), Stop> {
        let is_lacking = |verb: &&Verb| self.lacks_all(**verb, place);
        let lacking: Vec<Verb> = verbs.iter().filter(is_lacking).copied().collect();
        let asked = Spot::All(place).asked();
        let mut text: String = lacking
            .iter()
            .map(|verb| format!("{verb} {asked}\n"))
            .collect();
        text.push_str(ALL_OF_IT);
        let actions = lacking
            .iter()
            .map(|verb| action_on_tree(*verb, place, Digest::NONE).map(|action| (place, action)))
            .collect::<Result<Vec<_>, _>>()?;
        self.ask_to_look(actions, text)
    }

    /// The same at the start of a search, where not even a look at the place is held.
    pub fn ask_for_all_unseen(&mut self, place: &Place, verbs: &[Verb]) -> Result<(), Stop> {
        if self.is_unseen(place) {
            self.ask_for_all(place, verbs)?;
        }
        Ok(())
    }

    /// Asks once to look at files that are to be changed, those of them that nobody granted
    /// any look at, and at the directories on the way to them, which may have to be made.
    pub fn ask_for_files(&mut self, places: &[Place]) -> Result<(), Stop> {
        let mut actions: Vec<(&Place, Action)> = Vec::new();
        let mut text = format!(
            "{} looks at this first; what it would change is asked about by itself\n",
            self.tool
        );
        let unseen: Vec<&Place> = places
            .iter()
            .filter(|place| self.is_unseen(place))
            .collect();
        let ways: Vec<Place> = unseen
            .iter()
            .flat_map(|place| self.ways_to(place))
            .filter(|way| self.is_unseen(way))
            .collect();
        let ways = ways.iter().map(|way| (way, " (whether it is there)"));
        let unseen = unseen.into_iter().map(|place| (place, ""));
        for (place, why) in unseen.chain(ways) {
            if actions.iter().any(|(known, _)| *known == place) {
                continue;
            }
            actions.push((place, action(Verb::FsRead, place, Digest::NONE)?));
            let name = one_line(&place.absolute);
            text.push_str(&format!("{}{why} {name}\n", Verb::FsRead));
        }
        self.ask_to_look(actions, text)
    }

    /// Where a change under a name falls on that may not be looked at freely: as far as
    /// somebody lets it be looked at now.
    pub fn asked_target(&mut self, place: Place) -> Result<Place, Stop> {
        let before = self.looking.len();
        self.ask_for_files(std::slice::from_ref(&place))?;
        if self.looking.len() == before {
            return Ok(place);
        }
        self.target(place)
    }

    /// The directories on the way to a place, below the one held open.
    fn ways_to(&self, place: &Place) -> Vec<Place> {
        let above = |below: &RelPath| below.parent().filter(|below| !below.is_root());
        std::iter::successors(above(&place.below), above)
            .filter_map(|below| {
                let absolute = self.runtime.mounts.absolute(place.dir, &below)?;
                let absolute = absolute.to_string_lossy().into_owned();
                let dir = place.dir;
                Some(Place {
                    dir,
                    below,
                    absolute,
                })
            })
            .collect()
    }

    /// Whether nobody granted any look at a place, and nothing else is to be said about it.
    fn is_unseen(&self, place: &Place) -> bool {
        let both = [Verb::FsList, Verb::FsRead];
        both.iter().all(|verb| self.lacks(*verb, place))
    }

    fn ask_to_look(&mut self, asked: Vec<(&Place, Action)>, text: String) -> Result<(), Stop> {
        if asked.is_empty() {
            return Ok(());
        }
        let (places, actions): (Vec<&Place>, Vec<Action>) = asked.into_iter().unzip();
        let event = self.called(Call {
            by: self.by,
            tool: self.tool,
            actions,
        });
        let (mut turn, mounts) = self.turn();
        let text = |_: &Question| text;
        let (call, ()) = turn.begin_reaching(Reach::Looks, event, text, |permits| {
            // What is there is looked at by permits of its own.
            for (place, permit) in places.iter().zip(permits) {
                let dir = mounts.get(place.dir);
                let _looked = dir.map(|mount| mount.cap.stat(permit, &place.below));
            }
        })?;
        self.looking.push(call);
        Ok(())
    }

    /// A call that looks stays open if somebody was asked for it, after so many questions.
    pub(super) fn keep_if_asked(&mut self, call: CallId, asked: usize) {
        if self.asked() > asked {
            self.looking.push(call);
        }
    }

    /// The event that decides these: under a call that a yes let look there, if they are only
    /// looks and a part of that; otherwise as a call of its own. Whoever took such a yes back
    /// is not asked for the rest: further looks are refused with the reason.
    pub(super) fn looks_or_calls(&self, actions: Vec<Action>) -> Event {
        let machine = &self.runtime.machine;
        let is_part = |call| machine.look(|session| session.may_look_further(call, &actions));
        let is_stopped = |call: &&CallId| machine.why_stopped(**call).is_some();
        let only_look = actions.iter().all(|action| action.verb().only_looks());
        let stopped = self.looking.iter().find(is_stopped).filter(|_| only_look);
        let part = || self.looking.iter().find(|call| is_part(**call));
        match stopped.or_else(part).copied() {
            Some(call) => Event::LooksFurther { call, actions },
            None => self.called(Call {
                by: self.by,
                tool: self.tool,
                actions,
            }),
        }
    }

    /// Reports the calls that a yes let look as over.
    pub(super) fn looked<R>(&mut self, mut done: Result<R, Stop>) -> Result<R, Stop> {
        for call in std::mem::take(&mut self.looking) {
            let outcome: Outcome = how_it_ended(&done);
            if let (Err(stop), true) = (self.end_look(call, outcome), done.is_ok()) {
                done = Err(stop);
            }
        }
        done
    }
}

//! Looking at places: what is there, and where a name leads.
//!
//! Looks that belong together are decided together, so that a tool's call costs
//! few turns of the session. It must never follow a link on its own account:
//! where one leads is a place of its own, to be asked for.

use hermitcrab_core::{
    approval::Question,
    authority::{Cap, Object, Verb},
    digest::Digest,
    outcome::{Denial, DenialCode},
    path::RelPath,
    rules::Judgement,
};
use hermitcrab_sandbox::dircap::{Kind, Names, Stat};

use super::{
    super::{place::Place, turn::Stop, visible::one_line},
    Hands, action, stop_at, unknown,
};

/// What a place is, where it leads, and the names in it where they were listed.
type Inside = (Stat, Option<Place>, Option<Names>);

/// A symbolic link as such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it says, word for word.
    pub says: Vec<u8>,
    /// Where that leads.
    pub leads: LinkLeads,
}

/// Where a symbolic link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkLeads {
    /// To this place, which may be read.
    To(Place),
    /// To nothing; or to what is to be made here, as far as anybody can say.
    Nowhere(Option<Place>),
    /// Out of what is open, or to what may not be read without a question.
    Unseen,
}

impl Hands<'_> {
    /// Reads stand in for looking where both would do: what an agent may read
    /// it may look at.
    pub(super) fn look_verb(&self, place: &Place) -> Verb {
        let holds = |verb| {
            Cap::new(verb, Object::alone(place.dir, place.below.clone())).is_ok_and(|cap| {
                let now = self.runtime.clock.now();
                self.runtime
                    .machine
                    .look(|session| session.table().choose(self.by, &cap, now).is_ok())
            })
        };
        let lists = holds(Verb::FsList) || self.freely(Verb::FsList, place);
        if self.freely(Verb::FsRead, place) || !lists {
            Verb::FsRead
        } else {
            Verb::FsList
        }
    }

    /// Facts about a place; `None` if there is nothing.
    pub fn look(&mut self, place: &Place) -> Result<Option<Stat>, Stop> {
        let verb = self.look_verb(place);
        let looked = self.one(verb, place, Digest::NONE, |dir, permit| {
            dir.stat(permit, &place.below)
        });
        match looked {
            Ok(stat) => Ok(Some(stat)),
            Err(Stop::Missing) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// The same for a file that is to be written: in one decision with the
    /// directory it would lie in, where that may be looked at freely.
    pub fn look_ahead(&mut self, place: &Place) -> Result<Option<Stat>, Stop> {
        let Some(above) = self.above(place) else {
            return self.look(place);
        };
        let verb = self.look_verb(place);
        let actions = vec![
            action(verb, place, Digest::NONE)?,
            action(Verb::FsRead, &above, Digest::NONE)?,
        ];
        let shown = |_: &Question| format!("{verb} {}", one_line(&place.absolute));
        let (stat, parent) = self.perform(actions, shown, |mounts, permits| {
            let mut permits = permits.into_iter();
            let mut look = |place: &Place| {
                let (Some(mount), Some(permit)) = (mounts.get(place.dir), permits.next()) else {
                    return Err(unknown(place));
                };
                match mount
                    .cap
                    .stat(permit, &place.below)
                    .map_err(|error| stop_at(&error, place))
                {
                    Ok(stat) => Ok(Some(stat)),
                    Err(Stop::Missing) => Ok(None),
                    Err(stop) => Err(stop),
                }
            };
            (look(place), look(&above))
        })?;
        if matches!(parent, Ok(Some(_))) {
            self.seen_dir = Some((above.dir, above.below));
        }
        stat
    }

    /// The directory a place lies in, if it is another one than the one held
    /// open and may be looked at without a question.
    fn above(&self, place: &Place) -> Option<Place> {
        let below = place.below.parent().filter(|below| !below.is_root())?;
        let absolute = self.runtime.mounts.absolute(place.dir, &below)?;
        let above = Place {
            dir: place.dir,
            below,
            absolute: absolute.to_string_lossy().into_owned(),
        };
        self.freely(Verb::FsRead, &above).then_some(above)
    }

    /// Facts about a place and where it leads when every link is followed, in
    /// one decision; `None` if there is nothing, or if it changed so that nobody
    /// can say where it leads.
    pub fn look_through(&mut self, place: &Place) -> Result<Option<(Stat, Option<Place>)>, Stop> {
        let looked = self.look_through_and(place, false)?;
        Ok(looked.map(|(stat, real, _)| (stat, real)))
    }

    /// The same, with the names in it if it is a directory, no link leads there,
    /// and it may be listed without a question.
    pub fn look_into(&mut self, place: &Place) -> Result<Option<Inside>, Stop> {
        // What a rule has something to say about is asked for on its own.
        let list = action(Verb::FsList, place, Digest::NONE)?;
        let lists = self.freely(Verb::FsList, place)
            && self
                .runtime
                .machine
                .look(|session| session.rules().judge(self.tool, &list) == Judgement::Plain);
        self.look_through_and(place, lists)
    }

    fn look_through_and(&mut self, place: &Place, lists: bool) -> Result<Option<Inside>, Stop> {
        let verb = self.look_verb(place);
        let mut actions = vec![
            action(verb, place, Digest::NONE)?,
            action(verb, place, Digest::NONE)?,
        ];
        if lists {
            actions.push(action(Verb::FsList, place, Digest::NONE)?);
        }
        let shown = |_: &Question| format!("{verb} {}", one_line(&place.absolute));
        let looked = self.perform(actions, shown, |mounts, permits| {
            let mut permits = permits.into_iter();
            let (Some(mount), Some(first), Some(second)) =
                (mounts.get(place.dir), permits.next(), permits.next())
            else {
                return Err(unknown(place));
            };
            let (stat, real) = mount
                .cap
                .stat_and_leads_to(first, second, &place.below)
                .map_err(|error| stop_at(&error, place))?;
            let real = real.ok();
            let names = permits
                .next()
                .filter(|_| stat.kind == Kind::Dir && real.as_ref() == Some(&place.below))
                .and_then(|permit| mount.cap.list_direct_as_found(permit, &place.below).ok());
            Ok((stat, real, names))
        })?;
        match looked {
            Ok((stat, below, names)) => {
                let real = below.and_then(|below| self.named(place, &below).ok());
                // Names belong to the place they were listed at.
                let names = names.filter(|_| real.as_ref() == Some(place));
                Ok(Some((stat, real, names)))
            }
            Err(Stop::Missing) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Whether a name is not there: a link that leads nowhere is.
    pub(in crate::runtime) fn is_absent(&mut self, place: &Place) -> Result<bool, Stop> {
        let opened = if self.freely(Verb::FsList, place) {
            self.names_direct(place).map(drop)
        } else {
            self.read_direct(place).map(drop)
        };
        match opened {
            Ok(()) => Ok(false),
            Err(Stop::Missing) => Ok(true),
            Err(stop) => Err(stop),
        }
    }

    /// The place a name leads to when every link is followed. Rules and grants
    /// hold for places, so it is that place an effect has to be asked for.
    pub fn real(&mut self, place: &Place) -> Result<Place, Stop> {
        let verb = self.look_verb(place);
        let below = self.one(verb, place, Digest::NONE, |dir, permit| {
            dir.leads_to(permit, &place.below)
        })?;
        self.led(place, &below)
    }

    /// What lies at `below`, to which a name led: where that is another place, its name is
    /// what somebody wrote into a link.
    fn led(&mut self, from: &Place, below: &RelPath) -> Result<Place, Stop> {
        let place = self.named(from, below)?;
        if (place.dir, &place.below) != (from.dir, &from.below)
            && let Some(state) = self.runtime.agents.get_mut(&self.by)
        {
            state.was_led = true;
        }
        Ok(place)
    }

    /// The place a name that is not there leads to: what a link names to which there is
    /// nothing yet, or else the name itself.
    fn place_to_make(&mut self, place: Place) -> Result<Place, Stop> {
        if !self.freely(Verb::FsRead, &place) {
            return Ok(place);
        }
        let verb = self.look_verb(&place);
        let led = self.one(verb, &place, Digest::NONE, |dir, permit| {
            dir.would_lead_to(permit, &place.below)
        });
        match led {
            Ok(below) => Ok(self.led(&place, &below).unwrap_or(place)),
            Err(Stop::Broken(why)) => Err(Stop::Broken(why)),
            Err(_) => Ok(place),
        }
    }

    /// The link that a name itself is; `None` if it is the name of anything else, or of nothing.
    /// One that leads round in a circle is an error, as it is to whoever follows it.
    pub fn link(&mut self, place: &Place) -> Result<Option<Link>, Stop> {
        let verb = self.look_verb(place);
        let says = self.one(verb, place, Digest::NONE, |dir, permit| {
            dir.link_says(permit, &place.below)
        });
        let says = match says {
            Ok(Some(says)) => says,
            Ok(None) | Err(Stop::Missing) => return Ok(None),
            // It lies behind a link that leads nowhere one can go, which a look will tell.
            Err(stop) if stop.is(DenialCode::SymlinkRefused) => return Ok(None),
            Err(stop) => return Err(stop),
        };
        let leads = match self.real(place) {
            Ok(real) => self.seen_through(real),
            Err(Stop::Missing) => {
                let goal = self.place_to_make(place.clone())?;
                LinkLeads::Nowhere(Some(goal).filter(|goal| goal != place))
            }
            Err(stop @ Stop::Broken(_)) => return Err(stop),
            Err(stop) if stop.is_of_a_circle() => return Err(stop),
            Err(_) => LinkLeads::Unseen,
        };
        Ok(Some(Link { says, leads }))
    }

    /// What a link leads to is told only where it may be read without a question: that the
    /// link may go says nothing about it.
    fn seen_through(&self, real: Place) -> LinkLeads {
        if self.freely(Verb::FsRead, &real) {
            LinkLeads::To(real)
        } else {
            LinkLeads::Unseen
        }
    }

    /// The place of a name itself, be it a link or not: only the directory it lies in is
    /// where its name leads.
    pub fn target_by_name(&mut self, place: Place) -> Result<Place, Stop> {
        let (Some(name), Some(above)) = (place.below.file_name(), self.above(&place)) else {
            return Ok(place);
        };
        let name = name.to_vec();
        let above = self.target(above)?;
        Ok(self.child(&above, &name).unwrap_or(place))
    }

    /// The place a change under this name falls on: where it leads, or for what is not there
    /// yet, the name in the directory it would be made in. That place is what is asked for,
    /// shown and changed, with no link on the way. A name that may not be looked at freely,
    /// leads out, or that rules have something to say about itself (a program may be run by
    /// it), is taken as it is: a change that meets the link is refused.
    pub fn target(&mut self, place: Place) -> Result<Place, Stop> {
        let is_plain = |verb| {
            action(verb, &place, Digest::NONE).is_ok_and(|change| {
                let machine = &self.runtime.machine;
                machine
                    .look(|session| session.rules().judge(self.tool, &change) == Judgement::Plain)
            })
        };
        if ![Verb::FsCreate, Verb::FsModify].into_iter().all(is_plain) {
            return Ok(place);
        }
        let mut missing: Vec<Vec<u8>> = Vec::new();
        let mut at = place.clone();
        loop {
            if !self.freely(Verb::FsRead, &at) {
                return Ok(place);
            }
            match self.real(&at) {
                Ok(real) => {
                    let mut names = missing.iter().rev();
                    let found = names.try_fold(real, |above, name| self.child(&above, name));
                    return match found {
                        Some(found) if !missing.is_empty() => self.place_to_make(found),
                        found => Ok(found.unwrap_or(place)),
                    };
                }
                Err(Stop::Missing) => {}
                Err(Stop::Broken(why)) => return Err(Stop::Broken(why)),
                Err(_) => return Ok(place),
            }
            let (Some(name), Some(above)) = (at.below.file_name(), at.below.parent()) else {
                return Ok(place);
            };
            missing.push(name.to_vec());
            let Some(absolute) = self.runtime.mounts.absolute(at.dir, &above) else {
                return Ok(place);
            };
            at = Place {
                dir: at.dir,
                below: above,
                absolute: absolute.to_string_lossy().into_owned(),
            };
        }
    }

    /// Where a path leads under which something is to be changed. Behind a link `..` is to the
    /// system the directory above where the link leads, and by its spelling the one the link
    /// stands in; whoever wrote it can have meant either, so nothing is changed under it.
    pub fn resolve_to_change(&mut self, path: &str) -> Result<Place, Stop> {
        let place = self.resolve(path)?;
        for way in ways_up(path) {
            let Ok(passed) = self.resolve(way) else {
                continue;
            };
            if self.freely(Verb::FsRead, &passed) && self.is_led_on(&passed)? {
                return Err(Stop::refused(Denial::new(DenialCode::SymlinkRefused, path)));
            }
        }
        Ok(place)
    }

    /// Whether a place is a link to what lies in another directory.
    fn is_led_on(&mut self, place: &Place) -> Result<bool, Stop> {
        let Some(above) = place.below.parent() else {
            return Ok(false);
        };
        let real = match self.real(place) {
            Ok(real) => real,
            Err(Stop::Missing) => return Ok(false),
            Err(Stop::Broken(why)) => return Err(Stop::Broken(why)),
            // It leads out, or round in a circle.
            Err(_) => return Ok(true),
        };
        let above = self.named(place, &above)?;
        let above = self.real(&above)?;
        Ok((real.dir, real.below.parent()) != (above.dir, Some(above.below)))
    }

    /// What lies at `below` in the directory of `place`, by its own name.
    fn named(&self, place: &Place, below: &RelPath) -> Result<Place, Stop> {
        let absolute = self
            .runtime
            .mounts
            .absolute(place.dir, below)
            .ok_or_else(|| unknown(place))?;
        // A directory opened on its own names what lies in it.
        let (dir, below) = self
            .runtime
            .mounts
            .locate(&absolute)
            .ok_or_else(|| unknown(place))?;
        Ok(Place {
            dir,
            below,
            absolute: absolute.to_string_lossy().into_owned(),
        })
    }

    /// The directories on the way to a place that do not exist, outermost first.
    pub(in crate::runtime) fn missing_parents(
        &mut self,
        place: &Place,
    ) -> Result<Vec<Place>, Stop> {
        let mut missing = Vec::new();
        let mut above = place.below.parent();
        while let Some(below) = above {
            if below.is_root() {
                break;
            }
            above = below.parent();
            let absolute = self
                .runtime
                .mounts
                .absolute(place.dir, &below)
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default();
            let parent = Place {
                dir: place.dir,
                below,
                absolute,
            };
            let is_seen = self
                .seen_dir
                .as_ref()
                .is_some_and(|(dir, below)| (*dir, below) == (parent.dir, &parent.below));
            if is_seen || self.look(&parent)?.is_some() {
                break;
            }
            missing.push(parent);
        }
        missing.reverse();
        Ok(missing)
    }

    /// The directories that are missing on the way to several places, each once and after
    /// those it lies in.
    pub(in crate::runtime) fn all_missing<'p>(
        &mut self,
        places: impl Iterator<Item = &'p Place>,
    ) -> Result<Vec<Place>, Stop> {
        let mut parents: Vec<Place> = Vec::new();
        for place in places {
            for parent in self.missing_parents(place)? {
                if !parents.contains(&parent) {
                    parents.push(parent);
                }
            }
        }
        Ok(parents)
    }
}

/// The beginnings of a path behind which `..` leads up from a name.
fn ways_up(path: &str) -> Vec<&str> {
    let mut ways = Vec::new();
    let (mut at, mut is_named) = (0_usize, false);
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                ways.extend(path.get(..at).filter(|_| is_named));
                is_named = false;
            }
            _ => is_named = true,
        }
        at += name.len() + 1;
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::ways_up;

    #[test]
    fn a_way_up_begins_behind_a_name() {
        for (path, expected) in [
            ("a/b", &[][..]),
            ("../a", &[]),
            ("./../a", &[]),
            ("a/../b", &["a/"]),
            ("a/./../b", &["a/./"]),
            ("a/../../b", &["a/"]),
            ("/w/a/../b/../c", &["/w/a/", "/w/a/../b/"]),
            ("~/a/..", &["~/a/"]),
        ] {
            assert_eq!(ways_up(path), expected, "{path}");
        }
    }
}

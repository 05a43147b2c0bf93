//! The store as one workspace's agent sees it: its standing grants, its
//! remembered answers, and the references that lead to it.
//!
//! A keeper never lets a kept grant count by itself: it hands out what the
//! core's check lets through here and now, and a yes of the user is the only
//! thing that extends one.

use std::path::{Path, PathBuf};

use hermitcrab_core::{
    digest::Digest,
    grant::Uses,
    limits::GRANT_LIFETIME_MAX,
    outcome::Denial,
    rules::Isolation,
    standing::{
        Audience, Due, Kept, PortableAuthority, PortableCap, Site, Standing, StandingId,
        Surroundings, WallTime,
    },
    time::{Instant, Millis},
};

use super::{
    StoreError,
    contents::{Contents, KeptAnswer, KeptGrant, Said, SturdyRef},
    db,
    state::State,
};
use crate::{
    handles::{ObjectRef, no_such_object},
    state_dir::{anchor::Anchor, key::Purpose},
};

/// How long a remembered answer is repeated at most.
pub const REMEMBERED_FOR: Millis = Millis::from_hours(12);

/// Where a keeper finds what is kept, and for whom.
#[derive(Clone, Debug)]
pub struct Place {
    /// The state directory.
    pub state_dir: PathBuf,
    /// The workspace, as a person knows it.
    pub workspace: String,
    /// The workspace as an audience, the boot, the time, what is proved.
    pub here: Surroundings,
}

/// The keeper.
#[derive(Debug)]
pub struct Keeper {
    state_dir: PathBuf,
    state: State,
    contents: Contents,
    workspace: String,
    here: Surroundings,
    /// When the time was told first, and what time it was on the wall and in the boot.
    began: Option<(Instant, WallTime, Instant)>,
}

impl Keeper {
    /// Reads what is kept.
    ///
    /// # Errors
    /// See [`StoreError`]; then nothing that is kept counts.
    pub fn open(place: Place, state: State) -> Result<Self, StoreError> {
        let contents = db::load(&place.state_dir, &state)?;
        Ok(Self {
            state_dir: place.state_dir,
            state,
            contents,
            workspace: place.workspace,
            here: place.here,
            began: None,
        })
    }

    /// Another one, for another thread; it reads the store for itself.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            state_dir: self.state_dir.clone(),
            state: self.state.another(),
            contents: self.contents.clone(),
            workspace: self.workspace.clone(),
            here: self.here.clone(),
            began: self.began,
        }
    }

    /// Where and when it looks.
    #[must_use]
    pub const fn here(&self) -> &Surroundings {
        &self.here
    }

    /// The time goes on, by the clock nobody sets: as long has passed on the wall since this
    /// was said first.
    pub fn time_is(&mut self, at: Instant) {
        let now = (at, self.here.now, self.here.in_boot);
        let (began, wall, in_boot) = *self.began.get_or_insert(now);
        let passed = Millis::new(at.as_millis().saturating_sub(began.as_millis()));
        self.here.now = wall.after(passed);
        self.here.in_boot = in_boot.after(passed);
    }

    /// Everything kept, of all workspaces.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Reads again if somebody changed the store. Says whether it did.
    ///
    /// # Errors
    /// What is kept cannot be trusted any more; it counts as nothing.
    pub fn refresh(&mut self) -> Result<bool, StoreError> {
        let known = Anchor::read(&self.state_dir, &self.state.key);
        let changed = match known {
            Ok(anchor) => {
                let changed = anchor.generation() != self.contents.generation;
                self.state.anchor = anchor;
                changed
            }
            Err(error) => {
                self.contents = Contents::default();
                return Err(StoreError::Anchor(error));
            }
        };
        if changed {
            match db::load(&self.state_dir, &self.state) {
                Ok(contents) => self.contents = contents,
                Err(error) => {
                    self.contents = Contents::default();
                    return Err(error);
                }
            }
        }
        Ok(changed)
    }

    /// The standing grants that count here and now, and for how much longer.
    pub fn live(&self) -> impl Iterator<Item = (&Standing, Millis)> {
        self.contents.standing.iter().filter_map(|kept| {
            let left = kept.standing.check(&self.here).ok()?;
            Some((&kept.standing, left))
        })
    }

    /// Does what came to count here, as one of this workspace or through a reference that was
    /// given to it, still do so? How long it counts was settled then: a deadline of the
    /// session ends it, and no clock that was set meanwhile.
    #[must_use]
    pub fn counts_here(&self, id: StandingId) -> bool {
        let here = &self.here;
        let mut sturdy = self.contents.sturdy.iter();
        let given = sturdy.find(|sturdy| {
            sturdy.to == id && sturdy.audience == here.audience && sturdy.is_for(here.site)
        });
        let mut kept = self.contents.standing.iter();
        let Some(kept) = kept.find(|kept| kept.standing.id == id) else {
            return false;
        };
        let mut standing = kept.standing.clone();
        if let Some(given) = given {
            standing.audience = here.audience.clone();
            standing.site = given.site;
        }
        match standing.check(here) {
            Ok(_) | Err(Due::IntervalOver | Due::ClockWentBack) => true,
            Err(_) => false,
        }
    }

    /// The standing grants of this workspace that wait for a new yes.
    pub fn due(&self) -> impl Iterator<Item = (&KeptGrant, Due)> {
        self.contents.standing.iter().filter_map(|kept| {
            let due = kept.standing.check(&self.here).err()?;
            due.can_be_confirmed().then_some((kept, due))
        })
    }

    /// Keeps a grant the user has said "always" to. A grant of the same kept
    /// before is confirmed instead.
    ///
    /// # Errors
    /// See [`StoreError`]; then it is not kept.
    pub fn keep(&mut self, authority: &PortableAuthority) -> Result<StandingId, StoreError> {
        let (here, workspace) = (self.here.clone(), self.workspace.clone());
        self.change(|contents| {
            let same = contents.standing.iter_mut().find(|kept| {
                kept.standing.kept == Kept::Confirmed
                    && kept.standing.audience == here.audience
                    && kept.standing.authority == *authority
                    && kept.standing.uses_left == Uses::Uncounted
            });
            if let Some(kept) = same
                && kept.standing.confirm(&here).is_ok()
            {
                return Ok(kept.standing.id);
            }
            let id = StandingId::new(contents.number());
            contents.standing.push(KeptGrant {
                standing: Standing {
                    id,
                    audience: here.audience.clone(),
                    site: here.site,
                    authority: authority.clone(),
                    uses_left: Uses::Uncounted,
                    isolation: here.isolation,
                    made_at: here.now,
                    confirmed_at: here.now,
                    confirm_every: GRANT_LIFETIME_MAX,
                    boot: here.boot,
                    confirmed_in_boot: Some(here.in_boot),
                    kept: Kept::Confirmed,
                },
                workspace,
            });
            Ok(id)
        })
    }

    /// The user was shown a kept grant and says yes to it again.
    ///
    /// # Errors
    /// See [`StoreError`]; `None` inside if there is no such grant, or the
    /// reason no yes can lift.
    pub fn confirm(&mut self, id: StandingId) -> Result<Result<Millis, Option<Due>>, StoreError> {
        let here = self.here.clone();
        self.change(|contents| {
            let kept = contents
                .standing
                .iter_mut()
                .find(|kept| kept.standing.id == id);
            Ok(match kept {
                None => Err(None),
                Some(kept) => kept.standing.confirm(&here).map_err(Some),
            })
        })
    }

    /// Ends a kept grant for good, with every reference that leads to it. Says
    /// whether there was one that was not ended.
    ///
    /// # Errors
    /// See [`StoreError`]; then it stands still.
    pub fn revoke(&mut self, id: StandingId) -> Result<bool, StoreError> {
        self.change(|contents| {
            contents.sturdy.retain(|sturdy| sturdy.to != id);
            let kept = contents
                .standing
                .iter_mut()
                .find(|kept| kept.standing.id == id && kept.standing.kept == Kept::Confirmed);
            Ok(kept.map(|kept| kept.standing.revoke()).is_some())
        })
    }

    /// Gives out a reference to a kept grant, for the agent of a workspace.
    /// The reference is in the answer and nowhere else.
    ///
    /// # Errors
    /// See [`StoreError`]; `no-such-object` inside if there is no such grant.
    pub fn share(
        &mut self,
        id: StandingId,
        (audience, site): (&Audience, Option<Site>),
    ) -> Result<Result<ObjectRef, Denial>, StoreError> {
        let Ok(name) = ObjectRef::draw() else {
            return Ok(Err(no_such_object()));
        };
        let tag = self.state.key.tag(Purpose::Object, name.as_bytes());
        let now = self.here.now;
        self.change(|contents| {
            let stands = contents
                .standing
                .iter()
                .any(|kept| kept.standing.id == id && kept.standing.kept == Kept::Confirmed);
            if !stands {
                return Ok(Err(no_such_object()));
            }
            let number = contents.number();
            contents.sturdy.push(SturdyRef {
                id: number,
                tag,
                to: id,
                audience: audience.clone(),
                site,
                made_at: now,
            });
            Ok(Ok(name))
        })
    }

    /// The kept grant a reference leads to, as one for this workspace.
    ///
    /// # Errors
    /// `no-such-object`, whatever the reason.
    pub fn redeem(&self, text: &str) -> Result<Standing, Denial> {
        ObjectRef::parse(text)
            .and_then(|name| {
                let tag = self.state.key.tag(Purpose::Object, name.as_bytes());
                let sturdy = self
                    .contents
                    .sturdy
                    .iter()
                    .find(|sturdy| sturdy.tag == tag)?;
                if sturdy.audience != self.here.audience {
                    return None;
                }
                let kept = self
                    .contents
                    .standing
                    .iter()
                    .find(|kept| kept.standing.id == sturdy.to)?;
                let mut standing = kept.standing.clone();
                standing.audience = self.here.audience.clone();
                standing.site = sturdy.site;
                standing.check(&self.here).ok()?;
                Some(standing)
            })
            .ok_or_else(no_such_object)
    }

    /// Do these letters name a reference that was given out?
    #[must_use]
    pub fn is_reference(&self, letters: &str) -> bool {
        !self.contents.sturdy.is_empty()
            && ObjectRef::from_letters(letters).is_some_and(|name| {
                let tag = self.state.key.tag(Purpose::Object, name.as_bytes());
                self.contents.sturdy.iter().any(|sturdy| sturdy.tag == tag)
            })
    }

    /// What the user wants answered to exactly this.
    #[must_use]
    pub fn recall(&self, cap: &PortableCap, digest: Digest) -> Option<Said> {
        self.contents
            .remembered
            .iter()
            .rev()
            .find(|answer| answer.cap == *cap && answer.digest == digest && self.is_current(answer))
            .map(|answer| answer.said)
    }

    /// Is it an answer of this workspace, this boot and this proof, and recent?
    #[must_use]
    pub fn is_current(&self, answer: &KeptAnswer) -> bool {
        let here = &self.here;
        answer.audience == here.audience
            && answer.is_of(here.site)
            && answer.boot == here.boot
            && answer.isolation == here.isolation
            && answer.at <= here.now
            && here.now <= answer.at.after(REMEMBERED_FOR)
            && answer.in_boot.is_none_or(|in_boot| {
                in_boot <= here.in_boot && here.in_boot <= in_boot.after(REMEMBERED_FOR)
            })
    }

    /// Remembers an answer about these, instead of any earlier one.
    ///
    /// # Errors
    /// See [`StoreError`]; then it is not remembered.
    pub fn remember(
        &mut self,
        what: &[(PortableCap, Digest)],
        said: Said,
    ) -> Result<(), StoreError> {
        let here = self.here.clone();
        self.change(|contents| {
            contents.remembered.retain(|answer| {
                let about = |(cap, digest): &(PortableCap, Digest)| {
                    answer.cap == *cap && answer.digest == *digest
                };
                answer.audience != here.audience || !what.iter().any(about)
            });
            for (cap, digest) in what {
                let id = contents.number();
                contents.remembered.push(KeptAnswer {
                    id,
                    cap: cap.clone(),
                    digest: *digest,
                    isolation: here.isolation,
                    audience: here.audience.clone(),
                    site: here.site,
                    said,
                    boot: here.boot,
                    at: here.now,
                    in_boot: Some(here.in_boot),
                });
            }
            Ok(())
        })
    }

    /// Forgets one remembered answer, or (`None`) all. Says how many.
    ///
    /// # Errors
    /// See [`StoreError`]; then none is forgotten.
    pub fn forget(&mut self, id: Option<u64>) -> Result<usize, StoreError> {
        self.change(|contents| {
            let before = contents.remembered.len();
            contents
                .remembered
                .retain(|answer| id.is_some_and(|id| answer.id != id));
            Ok(before - contents.remembered.len())
        })
    }

    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Contents) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = db::change(&self.state_dir, &mut self.state, change)?;
        self.contents = db::load(&self.state_dir, &self.state)?;
        Ok(done)
    }
}

/// The agent of a workspace, as an audience.
#[must_use]
pub fn audience(workspace: &Path) -> Option<Audience> {
    use std::os::unix::ffi::OsStrExt as _;
    let digest = crate::digest::sha256(workspace.as_os_str().as_bytes());
    hermitcrab_core::authority::Name::parse(&format!("workspace:{digest}"))
        .ok()
        .map(Audience::new)
}

/// A time on the wall clock, as people write it: `2026-11-22T05:30:00Z`.
#[must_use]
pub fn utc(time: WallTime) -> String {
    let seconds = time.as_millis() / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Counted from 1 March of year 0, so that a leap day ends a year; an era
    // is the 400 years after which the calendar repeats.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, later) = if month_from_march < 10 {
        (month_from_march + 3, 0)
    } else {
        (month_from_march - 9, 1)
    };
    let year = era * 400 + year_of_era + later;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// What is proved, in a word.
#[must_use]
pub const fn isolation_word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Isolated => "isolated",
        Isolation::Unisolated => "unisolated",
        Isolation::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::standing::WallTime;

    use super::utc;

    #[test]
    fn a_time_is_written_as_people_write_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(WallTime::from_millis(seconds * 1000)), text);
        }
    }
}

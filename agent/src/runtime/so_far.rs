//! What commands that run have made so far stands, as far as it may, before anybody looks
//! and while others run ([`afoot`](super::afoot) knows which run).
//!
//! It must never ask about half of what a command does, and never let anything stand
//! that would not stand at its end, nor take anything away that has another name by now
//! and is not there under it.

use std::{
    ops::RangeInclusive,
    sync::PoisonError,
    time::{Duration, Instant},
};

use hermitcrab_core::{
    approval::CallId,
    fault::{self, Fault},
    path::RelPath,
    session::Event,
};
use hermitcrab_sandbox::{
    changeset::{ChangeSet, Portion, What},
    spawn::SoFar,
};

use super::{
    afoot::{Stands, Step, Trouble},
    command::behind_links,
    hands::Hands,
    seen::Seen,
};

/// How many times longer than a look at all that run nobody looks after it.
const REST: u32 = 10;
/// And at least so long.
const REST_MIN: Duration = Duration::from_millis(50);
/// How often a look is tried again without what cannot stand yet. Of a command that changes
/// what it made again and again, each time there is less of it.
const TRIES_MAX: usize = 8;
/// What of one command is carried over in one go, at first, at least and at most. While it
/// is, no grant can be ended: so it is as much as is done in about that time.
const PORTION: Portion = portion_of(128);
const PORTION_MIN: usize = 128;
const PORTION_MAX: usize = 4096;
const HELD: RangeInclusive<Duration> = Duration::from_millis(40)..=Duration::from_millis(100);
/// How often in a row some of one command is carried over at most: it may be faster.
const PORTIONS_MAX: usize = 512;
/// How long a command somebody waits for is left alone for others.
const MEANWHILE_MAX: Duration = Duration::from_millis(250);

/// That some of what one of them made stands now.
struct Kept {
    has_more: bool,
    /// How long nothing else could be decided.
    held: Duration,
}

const fn portion_of(names: usize) -> Portion {
    Portion {
        names,
        bytes: (names as u64) << 16,
    }
}

/// How much comes next, if carrying over this much took so long.
fn next_portion(portion: Portion, held: Duration) -> Portion {
    let next = match held {
        held if held < *HELD.start() => portion.doubled(),
        held if held > *HELD.end() => portion.halved(),
        _ => portion,
    };
    portion_of(next.names.clamp(PORTION_MIN, PORTION_MAX))
}

impl Hands<'_> {
    /// Lets stand what commands that run have made so far, as far as it may, unless nobody
    /// wants what it is done for any more.
    pub(super) fn keep_so_far(&mut self) {
        self.keep_until(|hands| {
            let progress = hands.runtime.progress.as_mut();
            progress.is_some_and(|progress| !progress.is_wanted())
        });
    }

    /// The same while another command runs that sees them, and brings it what came of
    /// that. Looking takes its time, which is to be a small part of all.
    pub(super) fn keep_meanwhile(&mut self, next: &mut Instant) {
        let begun = Instant::now();
        if begun < *next {
            return;
        }
        // Where calls run beside each other, each has hands of its own and no commands.
        if self.runtime.heard_late.is_none() && !fault::is(Fault::RunningFilesAreUnseen) {
            self.look_after_unasked();
        }
        let is_all = self.keep_until(|_| begun.elapsed() >= MEANWHILE_MAX);
        self.runtime.afoot.bring();
        let rest = begun.elapsed().saturating_mul(REST).max(REST_MIN);
        *next = Instant::now();
        if is_all {
            *next += rest;
        }
    }

    /// The same in portions, until all is looked at or `is_enough` says so; whether all is.
    /// Between two of them grants can be ended, and their holders be stopped.
    fn keep_until(&mut self, is_enough: impl Fn(&mut Self) -> bool) -> bool {
        // Where calls run beside each other it was done before the first of them.
        if self.runtime.heard_late.is_some() {
            return true;
        }
        // What one operation may do at most is told by all that it did.
        if fault::is(Fault::RunningFilesAreUnseen) {
            return true;
        }
        let ceilings = &self.runtime.ceilings;
        if ceilings.files_max.is_some() || ceilings.keeps_trees {
            return true;
        }
        let running = self.runtime.afoot.running().into_iter();
        for step in running.filter(|step| step.stands == Stands::Early) {
            let mut portion = PORTION;
            for _ in 0..PORTIONS_MAX {
                // Whatever does not stand now is decided at its end.
                match self.keep_of(&step, portion) {
                    Some(Kept {
                        has_more: true,
                        held,
                    }) => portion = next_portion(portion, held),
                    Some(_) | None => break,
                }
                if is_enough(self) {
                    return false;
                }
            }
        }
        true
    }

    fn keep_of(&mut self, step: &Step, portion: Portion) -> Option<Kept> {
        // Nothing in it can be half done.
        let standing = step.standing.lock();
        let mut standing = standing.unwrap_or_else(PoisonError::into_inner);
        if standing.trouble.lasts() {
            return None;
        }
        let portion = Portion {
            names: portion.names.saturating_add(standing.waiting),
            ..portion
        };
        let mut look = step.underway.some_of_it(portion)?;
        standing.waiting = 0;
        for _ in 0..TRIES_MAX {
            if look.sets().iter().any(|set| !set.is_empty()) {
                // What was revoked in the store by now does not cover it.
                self.runtime.end_what_was_revoked().ok()?;
            }
            let mut late = self.late(step, &look)?;
            standing.waiting = standing.waiting.saturating_add(late.len());
            // What its command gave up would be seen by it again.
            let given_up = look.given_up();
            if !given_up.is_empty() {
                late.extend(given_up);
                look = look.without_newcomers(late)?;
                continue;
            }
            if !late.is_empty() {
                // What is left may be another change by itself.
                look = look.without(late)?;
                continue;
            }
            let begun = Instant::now();
            let Some(why) = self.keep_what_is_seen(step, &look)? else {
                let held = begun.elapsed();
                let has_more = look.has_more() && look.sets().iter().any(|set| !set.is_empty());
                look.stands();
                standing.trouble = Trouble::default();
                return Some(Kept { has_more, held });
            };
            look.was_taken_back();
            // It is no longer as it was when it was looked at, and the rest may be.
            let moved = look.moved_on();
            if moved.is_empty() {
                if standing.trouble.again() {
                    self.note_trouble(step.call, &why);
                }
                return None;
            }
            look = look.without_newcomers(moved)?;
        }
        None
    }

    /// Nobody waits for it who could be told, and it is not to be lost. At its end the
    /// command is told, if it is so still.
    fn note_trouble(&mut self, call: CallId, why: &str) {
        let note = format!(
            "what {call} made so far is not carried over: {why}; it is tried again after pauses, and decided at its end"
        );
        let _noted = self.runtime.machine.step(Event::Note(note));
    }

    /// Carries all of a look over; why it does not stand, if it does not.
    fn keep_what_is_seen(&mut self, step: &Step, look: &SoFar<'_>) -> Option<Option<String>> {
        let sets: Vec<(&Seen, &ChangeSet)> = step
            .seen
            .iter()
            .zip(look.sets())
            .filter(|(_, set)| !set.is_empty())
            .collect();
        let mut actions = Vec::new();
        for (seen, set) in &sets {
            actions.extend(set.actions(seen.dir).ok()?);
        }
        for (seen, set) in &sets {
            actions.extend(behind_links(seen.dir, set).ok()?);
        }
        if actions.is_empty() {
            return Some(None);
        }
        let call = step.call;
        let event = Event::EffectsSoFar { call, actions };
        match self.carry_over(event, &step.about, &sets) {
            Ok(refused) => Some(refused.map(|refused| refused.denial.to_string())),
            Err(stop) => Some(Some(stop.words())),
        }
    }

    /// The changes that have to wait for the end, by view.
    fn late(&self, step: &Step, look: &SoFar<'_>) -> Option<Vec<(usize, RelPath)>> {
        let mut late = Vec::new();
        for (view, (seen, set)) in step.seen.iter().zip(look.sets()).enumerate() {
            let may = |actions: &[_]| {
                let machine = &self.runtime.machine;
                machine.look(|session| session.may_stand_early(step.call, actions))
            };
            let early = may(&set.actions(seen.dir).ok()?);
            let behind = may(&behind_links(seen.dir, set).ok()?);
            let links_wait = behind.contains(&false);
            let waits = set.changes().iter().zip(early).filter(|(change, early)| {
                let is_link = matches!(change.what, What::CreatedSymlink { .. })
                    || set.second_name_of(&change.path).is_some();
                !early || (is_link && links_wait)
            });
            late.extend(waits.map(|(change, _)| (view, change.path.clone())));
        }
        Some(late)
    }
}

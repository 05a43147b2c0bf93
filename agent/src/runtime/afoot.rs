//! Commands that run while others look at the same files: those in the background,
//! scripts that call tools, and beside them whatever else runs.
//!
//! What for: without a sandbox, what one of them has written is there for whoever comes
//! next. Here it lies in the command's own layer. So before a tool looks, what each has
//! made so far is decided, under the call that started it; what is held stands from then
//! on, and the rest waits for the command's end, with whatever is to be asked about.
//!
//! And what others changed is brought to it: of what it has looked at before, its view
//! would go on showing what was there then.
//!
//! It must never ask about half of what a command does, and never let anything stand
//! that would not stand at its end, nor take anything away that has another name by now
//! and is not there under it.

use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::CallId,
    authority::{DirId, Object, Verb},
    digest::Digest,
    fault::{self, Fault},
    path::RelPath,
    rules::Judgement,
    session::{Event, Session},
    tool::Tool,
};
use hermitcrab_sandbox::{
    changeset::{ChangeSet, Portion, What},
    spawn::{Running, SoFar, Underway},
};

use super::{
    command::{Seen, behind_links},
    hands::Hands,
    machine::Machine,
};

/// Names that are brought at one time at most; there is no end to what one command may
/// change.
const TOUCHED_MAX: usize = 10_000;

/// How many times longer than a look at all that run nobody looks after it.
const REST: u32 = 10;
/// And at least so long.
const REST_MIN: Duration = Duration::from_millis(50);
/// How often a look is tried again without what cannot stand yet.
const TRIES_MAX: usize = 4;
/// How long nothing of a command is carried over after that failed, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(60);
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
/// How often it is looked whether a command has ended that is brought what changes.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);

/// All that run; what is copied from it is the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Afoot(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    steps: Vec<Step>,
    /// Names that were changed since the last time what others changed was brought, in
    /// order.
    touched: Vec<(DirId, RelPath)>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Step {
    call: CallId,
    /// What the journal names.
    about: String,
    seen: Arc<[Seen]>,
    underway: Underway,
    stands: Stands,
    standing: Arc<Mutex<Standing>>,
}

/// What is known of carrying over what one of them makes.
#[derive(Debug, Default)]
struct Standing {
    trouble: Trouble,
    /// How many of its changes waited for its end when it was looked at last: they are
    /// among what is told.
    waiting: usize,
}

/// That what one of them made could not be carried over. Each attempt is on record, and a
/// full disk, say, may be so for as long as the command runs: so it is tried again after
/// longer and longer pauses, and said once.
#[derive(Debug, Default)]
struct Trouble {
    /// The last pause, and when it is over.
    pause: Option<(Duration, Instant)>,
}

impl Trouble {
    fn lasts(&self) -> bool {
        self.pause.is_some_and(|(_, over)| Instant::now() < over)
    }

    /// Once more; whether it is the first time.
    fn again(&mut self) -> bool {
        let last = self.pause.map(|(pause, _)| pause);
        let pause = last.map_or(PAUSE_MIN, |last| last.saturating_mul(2).min(PAUSE_MAX));
        self.pause = Some((pause, Instant::now() + pause));
        last.is_none()
    }
}

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

/// When what one of them makes may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// As soon as somebody looks.
    Early,
    /// All at its end, as somebody waits for that.
    AtItsEnd,
}

impl Afoot {
    /// One more runs. Without a way to what it makes, all of that waits for its end.
    pub(super) fn begin(
        &self,
        call: CallId,
        about: &str,
        seen: &Arc<[Seen]>,
        (running, stands): (&mut Running, Stands),
        machine: &Machine,
    ) {
        if let Ok(underway) = running.underway() {
            // What a rule keeps from commands is not brought to them, wherever it lies.
            let (machine, views) = (machine.clone(), Arc::clone(seen));
            underway.show_only(move |view, path| {
                let seen = views.get(view);
                seen.is_some_and(|seen| {
                    let below = seen.whole(path);
                    below.is_some_and(|below| is_shown(&machine, seen.dir, &below))
                })
            });
            self.list().steps.push(Step {
                call,
                about: about.to_owned(),
                seen: Arc::clone(seen),
                underway,
                stands,
                standing: Arc::default(),
            });
        }
    }

    /// Brings it what anybody changes in the directories it sees, until it has ended.
    /// Where the kernel gives no watches for that, or no thread can be had, it is brought
    /// what others change through this program.
    pub(super) fn follow(&self, call: CallId) {
        if fault::is(Fault::OthersFilesAreUnseen) {
            return;
        }
        let mut steps = self.list().steps.clone().into_iter();
        let Some(step) = steps.find(|step| step.call == call) else {
            return;
        };
        // Nobody waits for its end: it looks at names, and has nothing of anybody's.
        let _followed = std::thread::Builder::new()
            .name("hermitcrab-outside".to_owned())
            .spawn(move || follow(&step));
    }

    /// Whether any may run.
    pub(super) fn has_any(&self) -> bool {
        !self.list().steps.is_empty()
    }

    /// Those that run still.
    fn running(&self) -> Vec<Step> {
        let steps = self.list().steps.clone();
        // Not under the list's own lock: whoever looks at one of them notes what it changed.
        let (ended, running): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| step.underway.is_over());
        let has_ended = |step: &Step| ended.iter().any(|ended| ended.call == step.call);
        self.list().steps.retain(|step| !has_ended(step));
        running
    }

    /// What these permits change, if anybody is to be told of it.
    pub(super) fn touches(&self, permits: &[Permit<'_>]) -> Vec<(DirId, RelPath)> {
        if self.list().steps.is_empty() {
            return Vec::new();
        }
        let changed = permits.iter().map(Permit::action).filter(|action| {
            matches!(
                action.verb(),
                Verb::FsCreate | Verb::FsModify | Verb::FsDelete
            )
        });
        changed
            .filter_map(|action| match action.object() {
                Object::Dir { dir, below } => Some((*dir, below.clone())),
                _ => None,
            })
            .collect()
    }

    /// Notes names that were changed.
    pub(super) fn touched(&self, names: Vec<(DirId, RelPath)>) {
        let mut list = self.list();
        let room = TOUCHED_MAX.saturating_sub(list.touched.len());
        list.touched.extend(names.into_iter().take(room));
    }

    /// Brings what was changed to all that see it and run.
    pub(super) fn bring(&self) {
        let touched = std::mem::take(&mut self.list().touched);
        if touched.is_empty() || fault::is(Fault::OthersFilesAreUnseen) {
            return;
        }
        let steps = self.running();
        for (dir, below) in touched {
            for step in &steps {
                for (view, seen) in step.seen.iter().enumerate() {
                    if seen.dir == dir
                        && let Some(path) = seen.within(&below)
                    {
                        step.underway.bring(view, &path);
                    }
                }
            }
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Nothing in here can be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether no rule keeps a name from commands.
fn is_shown(machine: &Machine, dir: DirId, below: &RelPath) -> bool {
    let action = Action::on_path(Verb::FsRead, dir, below.clone(), Digest::NONE);
    action.is_ok_and(|action| {
        let judged = |session: &Session| session.rules().judge(Tool::Terminal, &action);
        machine.look(judged) == Judgement::Plain
    })
}

fn follow(step: &Step) {
    let Ok(mut outside) = step.underway.outside() else {
        return;
    };
    while !step.underway.is_over() {
        let Ok(changed) = outside.changed(FOLLOW_EVERY) else {
            return;
        };
        for (view, path) in changed {
            step.underway.bring(view, &path);
        }
    }
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
            late.extend(look.given_up());
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
            look = look.without(moved)?;
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
            actions.extend(behind_links(seen, set).ok()?);
        }
        if actions.is_empty() {
            return Some(None);
        }
        let call = step.call;
        let event = Event::EffectsSoFar { call, actions };
        match self.carry_over(event, &step.about, &sets) {
            Ok(refused) => Some(refused.map(|(denial, _)| denial.to_string())),
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
            let behind = may(&behind_links(seen, set).ok()?);
            let links_wait = behind.contains(&false);
            let waits = set.changes().iter().zip(early).filter(|(change, early)| {
                let is_link = matches!(change.what, What::CreatedSymlink { .. });
                !early || (is_link && links_wait)
            });
            late.extend(waits.map(|(change, _)| (view, change.path.clone())));
        }
        Some(late)
    }
}

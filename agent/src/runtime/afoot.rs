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
//! Here is what is known of those that run; what lets stand what they made lies above it
//! (`so_far`). It must never bring a command what a rule keeps from it.

use std::{
    collections::BTreeMap,
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
    session::Session,
    tool::Tool,
};
use hermitcrab_sandbox::spawn::{Running, Underway};

use super::{machine::Machine, seen::Seen};

/// Names that are brought at one time at most; there is no end to what one command may
/// change.
const TOUCHED_MAX: usize = 10_000;

/// How long nothing of a command is carried over after that failed, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(60);
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
    /// Who changed a name last, and what a file there was to hold then.
    authors: BTreeMap<(DirId, RelPath), (CallId, Digest)>,
}

/// A name that a permit changes.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    dir: DirId,
    below: RelPath,
    by: CallId,
    holds: Digest,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) call: CallId,
    /// What the journal names.
    pub(super) about: String,
    pub(super) seen: Arc<[Seen]>,
    pub(super) underway: Underway,
    pub(super) stands: Stands,
    pub(super) standing: Arc<Mutex<Standing>>,
}

/// What is known of carrying over what one of them makes.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) trouble: Trouble,
    /// How many of its changes waited for its end when it was looked at last: they are
    /// among what is told.
    pub(super) waiting: usize,
}

/// That what one of them made could not be carried over. Each attempt is on record, and a
/// full disk, say, may be so for as long as the command runs: so it is tried again after
/// longer and longer pauses, and said once.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// The last pause, and when it is over.
    pause: Option<(Duration, Instant)>,
}

impl Trouble {
    pub(super) fn lasts(&self) -> bool {
        self.pause.is_some_and(|(_, over)| Instant::now() < over)
    }

    /// Once more; whether it is the first time.
    pub(super) fn again(&mut self) -> bool {
        let last = self.pause.map(|(pause, _)| pause);
        let pause = last.map_or(PAUSE_MIN, |last| last.saturating_mul(2).min(PAUSE_MAX));
        self.pause = Some((pause, Instant::now() + pause));
        last.is_none()
    }
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
    pub(super) fn running(&self) -> Vec<Step> {
        let steps = self.list().steps.clone();
        // Not under the list's own lock: whoever looks at one of them notes what it changed.
        let (ended, running): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| step.underway.is_over());
        let has_ended = |step: &Step| ended.iter().any(|ended| ended.call == step.call);
        self.list().steps.retain(|step| !has_ended(step));
        running
    }

    /// What these permits change, if anybody is to be told of it.
    pub(super) fn touches(&self, permits: &[Permit<'_>]) -> Vec<Touch> {
        if self.list().steps.is_empty() {
            return Vec::new();
        }
        let changed = permits.iter().filter(|permit| {
            matches!(
                permit.verb(),
                Verb::FsCreate | Verb::FsModify | Verb::FsDelete
            )
        });
        changed
            .filter_map(|permit| match permit.object() {
                Object::Dir { dir, below, .. } => Some(Touch {
                    dir: *dir,
                    below: below.clone(),
                    by: permit.call(),
                    holds: permit.digest(),
                }),
                _ => None,
            })
            .collect()
    }

    /// Notes names that were changed.
    pub(super) fn touched(&self, touches: Vec<Touch>) {
        let mut list = self.list();
        for touch in touches {
            let name = (touch.dir, touch.below);
            if list.touched.len() < TOUCHED_MAX {
                list.touched.push(name.clone());
            }
            if list.authors.len() >= TOUCHED_MAX {
                // Whose change it was is told where it is known.
                list.authors.clear();
            }
            list.authors.insert(name, (touch.by, touch.holds));
        }
    }

    /// The call that changed a name last, of those beside which something ran, if what a
    /// file holds there is what that call put there.
    pub(super) fn author(&self, dir: DirId, below: &RelPath, holds: Digest) -> Option<CallId> {
        let list = self.list();
        let (call, put) = list.authors.get(&(dir, below.clone()))?;
        (*put == holds).then_some(*call)
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

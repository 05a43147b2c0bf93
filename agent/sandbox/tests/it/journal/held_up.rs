//! A step that is not over in time, wherever it is: who asked is told, others go on, and what
//! is half done is taken back when the step is over, and never before.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::{Commit, StuckWhy, Then, Watch};

use super::{At, Cut, commit_in, directly, plant, ran, undo_in};
use crate::support::{Workspace, tree};

/// Longer than a step of these takes, also where others want the machine: only that the one
/// that waits is left at all depends on it.
const STEP_MAX: Duration = Duration::from_secs(2);

/// Holds one step up until it is told otherwise; then the step is taken.
#[derive(Clone)]
struct Holds(Arc<Held>);

struct Held {
    left: AtomicUsize,
    may_go_on: Mutex<bool>,
    told: Condvar,
}

impl Holds {
    fn after(steps: usize) -> Self {
        Self(Arc::new(Held {
            left: AtomicUsize::new(steps),
            may_go_on: Mutex::new(false),
            told: Condvar::new(),
        }))
    }

    fn go_on(&self) {
        *self.0.may_go_on.lock().unwrap() = true;
        self.0.told.notify_all();
    }

    /// Waits for the end of whoever was left at the step, which is taken by then.
    fn until_nobody_has_it(&self) {
        while Arc::strong_count(&self.0) > 1 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Watch for Holds {
    fn before(&self, _: &'static str) -> Then {
        if self.0.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            let mut may_go_on = self.0.may_go_on.lock().unwrap();
            while !*may_go_on {
                may_go_on = self.0.told.wait(may_go_on).unwrap();
            }
        }
        Then::GoOn
    }
}

const SCRIPT: &str = "echo 1 > a; rm b; rm -r d; mkdir n; echo 2 > n/m; chmod 700 e";

/// The steps of a commit.
fn steps_of(state: Option<tempfile::TempDir>, script: &str) -> Vec<&'static str> {
    let (mut workspace, finished) = ran(script);
    if let Some(state) = state {
        workspace.state = state;
    }
    let cut = Cut::after(usize::MAX, At::Stop);
    let (journal, _) =
        Journal::open_watched(workspace.state.path(), Box::new(cut.clone())).unwrap();
    cut.seen.lock().unwrap().clear();
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    cut.seen.lock().unwrap().clone()
}

/// Whoever waits for the last step of a commit that was left sees the journal without it.
fn opened_without_waiting(workspace: &Workspace) -> Journal {
    loop {
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.broken.is_empty() && recovered.stuck.is_empty(),
            "{recovered:?}"
        );
        if recovered.waiting.is_empty() {
            return journal;
        }
        drop(journal);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What changed is what is told, and no name besides.
fn told_names(workspace: &Workspace, done: &Commit) -> Vec<String> {
    let failure = done.failure.as_ref().unwrap();
    let told = failure.error.to_string();
    assert!(told.contains("does not answer in time"), "{told}");
    let stuck = failure.stuck.iter();
    stuck
        .map(|stuck| {
            assert_eq!(stuck.why, StuckWhy::Waits);
            let at = stuck
                .at
                .strip_prefix(workspace.path().canonicalize().unwrap());
            at.unwrap().display().to_string()
        })
        .collect()
}

/// Holds up the step after so many others; whether the commit stood all the same.
fn held_up(state: Option<tempfile::TempDir>, steps: usize) -> bool {
    let (mut workspace, finished) = ran(SCRIPT);
    if let Some(state) = state {
        workspace.state = state;
    }
    let before = tree(workspace.path());
    let holds = Holds::after(usize::MAX);
    let (journal, _) =
        Journal::open_watched(workspace.state.path(), Box::new(holds.clone())).unwrap();
    holds.0.left.store(steps, Ordering::SeqCst);
    let journal = journal.giving_up_after(STEP_MAX);
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    let is_done = done.failure.is_none();
    let mut is_half_done = false;
    if !is_done {
        let told = told_names(&workspace, &done);
        is_half_done = !told.is_empty();
        let is_told = |line: &String| {
            let mut told = told.iter();
            told.any(|name| line.contains(&format!(" {name}")))
        };
        let now = tree(workspace.path());
        let changed = now.iter().filter(|line| !before.contains(line));
        let gone = before.iter().filter(|line| !now.contains(line));
        for line in changed.chain(gone) {
            let is_staged = line.contains(".hermitcrab-");
            let is_top = line.starts_with("d ") && line.contains("  [");
            assert!(
                is_staged || is_top || is_told(line),
                "{steps}: {line}: {told:?}"
            );
        }
    }
    // A session elsewhere goes on, with the same journal and with its own.
    let other = Workspace::new();
    plant(other.path());
    let (beside, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert!(recovered.stuck.is_empty() && recovered.broken.is_empty());
    for (journal, script) in [(&beside, "echo 1 > a"), (&journal, "echo 2 > b")] {
        let there = commit_in(journal, &other.run(script).changes[0], &other);
        assert!(there.failure.is_none(), "{steps}: {:?}", there.failure);
    }
    // One in the same directory does nothing on top of what is half done, and takes nothing
    // back while the last step of it is not over.
    assert!(!is_half_done || !recovered.waiting.is_empty(), "{steps}");
    if let [(id, at)] = &recovered.waiting[..] {
        assert_eq!(*at, workspace.path().canonicalize().unwrap());
        let here = workspace.run("echo mine > a");
        let refused = commit_in(&beside, &here.changes[0], &workspace).failure;
        let refused = refused.unwrap().error.to_string();
        assert!(
            refused.contains(&format!("commit {id} is half done in `")),
            "{refused}"
        );
    }
    holds.go_on();
    drop(journal);
    holds.until_nobody_has_it();
    let journal_then = opened_without_waiting(&workspace);
    if is_done {
        assert_eq!(tree(workspace.path()), directly(SCRIPT), "{steps}");
        let undone = undo_in(&journal_then, done.id.unwrap(), &workspace).unwrap();
        assert!(undone.failure.is_none(), "{steps}: {:?}", undone.failure);
    }
    assert_eq!(tree(workspace.path()), before, "held up after {steps}");
    let again = workspace.run("echo again > a");
    let again = commit_in(&journal_then, &again.changes[0], &workspace);
    assert!(again.failure.is_none(), "{steps}: {:?}", again.failure);
    is_done
}

/// Where the last step of all that decides is held up, the journal's own disk is.
fn each_step(every: usize, state: impl Fn() -> Option<tempfile::TempDir>) {
    let steps = steps_of(state(), SCRIPT);
    let decides = steps.iter().rposition(|step| *step == "name a plan");
    let decides = decides.unwrap();
    let threads: Vec<_> = (0..steps.len())
        .step_by(every)
        .filter(|at| !(decides..=decides + 1).contains(at))
        .map(|at| {
            let state = state();
            std::thread::spawn(move || (at, held_up(state, at)))
        })
        .collect();
    let stood: Vec<(usize, bool)> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for (at, stood) in &stood {
        assert_eq!(*stood, *at > decides, "{at} of {steps:?}");
    }
    assert!(stood.len() > 8, "{steps:?}");
}

#[test]
fn a_step_that_is_never_over_is_told_and_others_go_on_and_all_of_it_is_taken_back() {
    each_step(2, || None);
}

#[test]
fn so_it_is_where_what_is_staged_lies_beside_the_workspace() {
    if std::fs::metadata("/dev/shm").is_err() {
        println!("SKIPPED: there is no /dev/shm");
        return;
    }
    each_step(3, || {
        Some(tempfile::tempdir_in(PathBuf::from("/dev/shm")).unwrap())
    });
}

#[test]
fn an_undo_that_is_held_up_is_left_in_the_same_way() {
    let (workspace, finished) = ran(SCRIPT);
    let holds = Holds::after(usize::MAX);
    let (journal, _) =
        Journal::open_watched(workspace.state.path(), Box::new(holds.clone())).unwrap();
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    let id = done.id.unwrap();
    let after = tree(workspace.path());
    let journal = journal.giving_up_after(STEP_MAX);
    // In the midst of its renames.
    let steps = steps_of(None, SCRIPT);
    holds.0.left.store(steps.len() / 2 + 4, Ordering::SeqCst);
    let undone = undo_in(&journal, id, &workspace).unwrap();
    assert!(undone.failure.is_some());
    holds.go_on();
    drop(journal);
    holds.until_nobody_has_it();
    let journal = opened_without_waiting(&workspace);
    assert_eq!(tree(workspace.path()), after);
    let undone = undo_in(&journal, id, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
}

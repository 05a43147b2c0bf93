//! Where some of the steps that take a commit back fail, too: the rest is put back, what waits
//! is named, and comes when it can.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::{CommitFailure, Stuck, StuckWhy, Then, Watch};

use super::{Dice, directly, ran, script, stray};
use crate::support::{commit_in, times, tree};

/// What comes into a new directory, or out of one that goes, has to be back before it or after.
const DEPENDENT: [&str; 3] = [
    "mkdir n; mv a n/a; mv b n/c; rm -r d",
    "mv d/x y; mv d/s s; rm -r d; chmod 700 e",
    "mkdir -p n/m; mv d n/m/d; mv e/k n/k; rm -r e; echo 1 > a",
];

/// Lets so many steps pass and has the next one fail; of those that come after it one of
/// each so many fails.
#[derive(Clone)]
struct Flaky {
    left: Arc<AtomicUsize>,
    one_of: u64,
    dice: Arc<Mutex<Dice>>,
}

impl Flaky {
    fn after(steps: usize, one_of: u64) -> Box<Self> {
        let seed = 0x9e37_79b9_7f4a_7c15 ^ (steps as u64) << 8 ^ one_of;
        Box::new(Self {
            left: Arc::new(AtomicUsize::new(steps)),
            one_of,
            dice: Arc::new(Mutex::new(Dice(seed))),
        })
    }
}

impl Watch for Flaky {
    fn before(&self, _: &'static str) -> Then {
        let refused = || Then::Fail(io::Error::from(io::ErrorKind::PermissionDenied));
        match self.left.load(Ordering::Relaxed) {
            0 if self.dice.lock().unwrap().roll(self.one_of) == 0 => refused(),
            0 => Then::GoOn,
            left => {
                self.left.store(left - 1, Ordering::Relaxed);
                if left == 1 { refused() } else { Then::GoOn }
            }
        }
    }
}

/// The names at which two trees differ.
fn differing(before: &[String], after: &[String]) -> BTreeSet<PathBuf> {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (before.iter().collect(), after.iter().collect());
    let lines = before.symmetric_difference(&after);
    let name = |line: &&&String| {
        let place = if line.starts_with('l') { 1 } else { 2 };
        line.split(' ').nth(place).unwrap().into()
    };
    lines.map(|line| name(&line)).collect()
}

/// Each of these names lies at, above or below one that was told, or that something has that
/// was to go back.
fn are_told(names: &BTreeSet<PathBuf>, stuck: &[Stuck], top: &Path) -> bool {
    let is_told = |name: &Path| {
        let full = top.join(name);
        let mut told = stuck.iter();
        told.any(|told| {
            let (at, why) = (&told.at, told.to_string());
            let mut above = name
                .ancestors()
                .map(|above| format!("it is `{}`", above.display()));
            at.starts_with(&full) || full.starts_with(at) || above.any(|said| why.contains(&said))
        })
    };
    names.iter().all(|name| is_told(name))
}

/// What is told of a commit that did not happen, and where nothing is, nothing changed.
fn waits(failure: &CommitFailure) -> bool {
    let mut stuck = failure.stuck.iter();
    assert!(
        stuck.all(|stuck| matches!(stuck.why, StuckWhy::Failed(_))),
        "{failure:?}"
    );
    !failure.stuck.is_empty()
}

#[test]
fn what_cannot_be_put_back_is_named_and_the_rest_is_put_back() {
    let mut dice = Dice(0x1234_5678_9abc_def1);
    let (mut all, mut parts, mut again) = (0, 0, 0);
    let mut fixed = DEPENDENT.iter().flat_map(|script| [script; 3]);
    while parts < times(90) {
        let script = fixed
            .next()
            .map_or_else(|| script(&mut dice), |script| (*script).to_owned());
        let (workspace, finished) = ran(&script);
        let set = &finished.changes[0];
        let before = tree(workspace.path());
        for steps in 1.. {
            let one_of = 1 + dice.roll(4);
            let state = workspace.state.path();
            let (journal, _) = Journal::open_watched(state, Flaky::after(steps, one_of)).unwrap();
            let told = format!("{script}, after {steps}, one of {one_of}");
            let Some(failure) = commit_in(&journal, set, &workspace).failure else {
                assert_eq!(tree(workspace.path()), directly(&script), "{told}");
                break;
            };
            drop(journal);
            let left = differing(&before, &tree(workspace.path()));
            assert!(
                are_told(&left, &failure.stuck, workspace.path()),
                "{told}: {left:?} of {failure}"
            );
            all += 1;
            parts += u32::from(waits(&failure) && !left.is_empty());
            // Whoever comes next tries again, and may not get on either.
            let next = Journal::open_watched(state, Flaky::after(1 + steps % 7, one_of));
            again += u32::from(next.is_err());
            drop(next);
            let (_, recovered) = Journal::open(state).unwrap();
            assert!(
                recovered.stuck.is_empty() && recovered.broken.is_empty(),
                "{told}: {recovered:?}"
            );
            assert_eq!(tree(workspace.path()), before, "{told}");
            assert_eq!(stray(&workspace), [""; 0], "{told}");
        }
    }
    assert!(all > parts && again > 10, "{all}, {parts}, {again}");
}

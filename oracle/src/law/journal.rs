//! Commits that move things, make directories and delete trees, and their undoing.
//!
//! A commit is made of a tree and stopped at some step, or somebody else changes
//! something right before some step. Whoever opens the journal next finds all of it
//! or nothing; what somebody else put there stays where they put it; and taking a
//! commit back brings back all there was, or is refused before anything happens.

mod ground;
mod picture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::Unstructured;
use hermitcrab_sandbox::journal::{Journal, Then, UndoError, Watch};

use self::ground::{Ground, Stranger};
use self::picture::{Fate, NAMES, Picture, expected};
use super::{Verdict, ensure};

/// The most steps before which something happens; later is never.
const STEPS_MAX: usize = 40;

/// Makes a commit, opens the journal again, and takes it back.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let fates: Vec<Fate> = NAMES
        .iter()
        .map(|_| bytes.choose(&Fate::ALL).copied().unwrap_or(Fate::Stays))
        .collect();
    let makes_dir = bytes.arbitrary().unwrap_or(false);
    let (first, second) = (Cut::arbitrary(&mut bytes), Cut::arbitrary(&mut bytes));
    let ground = Ground::new().map_err(|error| format!("cannot make the ground: {error}"))?;
    let edits = ground
        .edits(&fates, makes_dir)
        .map_err(|error| error.to_string())?;
    if edits.is_empty() {
        return Ok(());
    }
    let before = ground.picture()?;
    let after = expected(&before, &fates, makes_dir);
    if !committed(&ground, &edits, &first, (&before, &after))? {
        return Ok(());
    }
    let back = before.as_brought_back(&fates);
    taken_back(&ground, &second, (&back, &after))
}

/// Makes the commit; whether it is all there afterwards, with nobody in between.
fn committed(
    ground: &Ground,
    edits: &[hermitcrab_sandbox::changeset::edits::Edit],
    cut: &Cut,
    (before, after): (&Picture, &Picture),
) -> Result<bool, String> {
    let watch = cut.watch(ground, cut.step);
    let stranger = watch.stranger.clone();
    let done = match Journal::open_watched(ground.state(), Box::new(watch)) {
        Ok((journal, _)) => ground.commit(&journal, edits),
        Err(error) => Err(error.to_string()),
    };
    let kept = reopened(ground, stranger.as_deref())?;
    stays(ground, stranger.as_deref())?;
    if stranger.is_some_and(|stranger| stranger.came()) {
        return Ok(false);
    }
    let now = ground.picture()?;
    if now.is(before) {
        ensure(kept == 0, || {
            "a commit is listed and did not happen".to_owned()
        })?;
        ensure(done.is_err(), || {
            "a commit is done and did not happen".to_owned()
        })?;
        return Ok(false);
    }
    ensure(now.is(after), || {
        format!("a commit is half done: {}", now.against(after))
    })?;
    ensure(kept == 1, || {
        "a commit happened and is not listed".to_owned()
    })?;
    Ok(true)
}

/// Takes the commit back.
fn taken_back(ground: &Ground, cut: &Cut, (before, after): (&Picture, &Picture)) -> Verdict {
    let early = cut.step == 0;
    let watch = cut.watch(ground, if early { usize::MAX } else { cut.step });
    let stranger = watch.stranger.clone();
    let opened = Journal::open_watched(ground.state(), Box::new(watch));
    let Ok((journal, _)) = opened else {
        return Err("the journal does not open".to_owned());
    };
    if let Some(stranger) = stranger.as_deref().filter(|_| early) {
        stranger.come();
    }
    let done = ground.undo(&journal);
    drop(journal);
    if early && stranger.as_deref().is_some_and(Stranger::hits_the_commit) {
        ensure(matches!(done, Err(Some(UndoError::Changed(_)))), || {
            "what somebody changed since is taken back".to_owned()
        })?;
    }
    reopened(ground, stranger.as_deref())?;
    stays(ground, stranger.as_deref())?;
    if stranger.is_some_and(|stranger| stranger.came()) {
        return Ok(());
    }
    let now = ground.picture()?;
    match done {
        Ok(()) => ensure(now.is(before), || {
            format!("an undo leaves something else: {}", now.against(before))
        }),
        Err(_) => ensure(now.is(before) || now.is(after), || {
            format!("an undo is half done: {}", now.against(before))
        }),
    }
}

/// Opens the journal as the program does next; how many commits it lists.
fn reopened(ground: &Ground, stranger: Option<&Stranger>) -> Result<usize, String> {
    let (journal, recovered) = Journal::open(ground.state()).map_err(|error| error.to_string())?;
    ensure(recovered.broken.is_empty(), || {
        format!("the journal does not hold: {:?}", recovered.broken)
    })?;
    let alone = !stranger.is_some_and(Stranger::came);
    ensure(!alone || recovered.stuck.is_empty(), || {
        format!("nobody was there, and it is stuck: {:?}", recovered.stuck)
    })?;
    journal
        .list()
        .map(|kept| kept.len())
        .map_err(|error| error.to_string())
}

fn stays(ground: &Ground, stranger: Option<&Stranger>) -> Verdict {
    let lost = stranger.filter(|stranger| stranger.came() && !stranger.is_there(ground));
    ensure(lost.is_none(), || {
        "what somebody else put there is gone".to_owned()
    })
}

/// What happens right before a step.
struct Cut {
    step: usize,
    /// The name somebody else takes; `None`: the program ends there.
    stranger: Option<(usize, bool)>,
}

impl Cut {
    fn arbitrary(bytes: &mut Unstructured<'_>) -> Self {
        let stranger = bytes.arbitrary().unwrap_or(false).then(|| {
            let name = bytes.choose_index(NAMES.len()).unwrap_or(0);
            (name, bytes.arbitrary().unwrap_or(false))
        });
        Self {
            step: bytes.int_in_range(0..=STEPS_MAX).unwrap_or(STEPS_MAX),
            stranger,
        }
    }

    fn watch(&self, ground: &Ground, after: usize) -> Watcher {
        Watcher {
            left: AtomicUsize::new(after),
            stranger: self
                .stranger
                .map(|(name, new)| Arc::new(ground.stranger(name, new))),
        }
    }
}

/// Lets so many steps pass.
struct Watcher {
    left: AtomicUsize,
    stranger: Option<Arc<Stranger>>,
}

impl Watch for Watcher {
    fn before(&self, _step: &'static str) -> Then {
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.wrapping_sub(1))
            });
        match (left, &self.stranger) {
            (Ok(0), Some(stranger)) => {
                stranger.come();
                Then::GoOn
            }
            (Ok(0), None) => Then::Stop,
            _ => Then::GoOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    /// One number after the other, each byte one of them.
    fn noise(number: u64) -> Vec<u8> {
        let mut numbers = crate::campaign::Numbers::new(number, 0, 0);
        (0..16)
            .map(|_| numbers.below(256))
            .filter_map(|n| u8::try_from(n).ok())
            .collect()
    }

    #[test]
    fn commits_and_undos_hold_whatever_happens_before_any_step() {
        for number in 0..120 {
            assert_eq!(check(&noise(number)), Ok(()), "{number}");
        }
    }
}

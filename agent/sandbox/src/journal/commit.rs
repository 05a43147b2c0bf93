//! Carrying a change set over into the real directories.
//!
//! All changes of all directories, or none. The steps are: spend the permits,
//! stage, flush, write the plan, take every step, flush, say that it is done.
//! The first step that cannot be taken takes back those before it.

#![expect(
    clippy::result_large_err,
    reason = "a failure is made at most once for each commit, and says all there is to show"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;
use rustix::fs::OFlags;

use super::act;
use super::areas::{self, Opened, can_be_taken, clear_areas};
use super::besides::Counts;
use super::brought;
use super::entry::{Entry, State, remove_tree};
use super::failed::{CommitFailure, Failed, NotYet, Stuck, StuckWhy, unstaged};
use super::ground::Ground;
use super::in_time::Progress;
use super::like::Like;
use super::mode;
use super::plan::{Act, Op, Plan, Touched};
use super::stage::{Source, Stager, Usable};
use super::times::Times;
use super::{CommitId, Journal, retain};
use crate::changeset::ChangeSet;
use crate::changeset::node::{Fingerprint, fingerprint, read_tree};
use crate::dircap::open::{Links, open_beneath};
use crate::dircap::{DirCap, FsError};

/// Up to so many directories are flushed one by one.
const FLUSHED_ONE_BY_ONE_MAX: usize = 16;

/// What one view of a command brings.
pub struct Part<'a, 'turn> {
    /// The directory it was a view of.
    pub dir: &'a DirCap,
    /// What happened in the view.
    pub set: &'a ChangeSet,
    /// One for each of its changes, in order.
    pub permits: Vec<Permit<'turn>>,
}

/// What came of a commit.
#[derive(Debug)]
pub struct Commit {
    /// Its name, if it happened and there was anything to do.
    pub id: Option<CommitId>,
    /// How many changes it made: all of them, or none.
    pub applied: usize,
    /// Why it did not happen.
    pub failure: Option<CommitFailure>,
}

/// A transaction that is ready to be carried out.
pub(super) struct Prepared<'j> {
    pub entry: Entry<'j>,
    pub plan: Plan,
    /// By the number of their directory; all of them, but where one cannot be reached any more.
    pub grounds: BTreeMap<usize, Opened>,
}

impl Journal {
    /// Carries change sets over, spending one permit for each change.
    ///
    /// With too few permits, one for something else, or a change that is never
    /// kept, nothing is done.
    pub fn commit(&self, parts: Vec<Part<'_, '_>>, note: &str) -> Commit {
        let changes = parts.iter().map(|part| part.set.changes().len()).sum();
        if changes == 0 {
            return Commit {
                id: None,
                applied: 0,
                failure: None,
            };
        }
        match self.try_commit(parts, note) {
            Ok(id) => Commit {
                id: Some(id),
                applied: changes,
                failure: None,
            },
            Err(failure) => Commit {
                id: None,
                applied: 0,
                failure: Some(failure),
            },
        }
    }

    fn try_commit(&self, parts: Vec<Part<'_, '_>>, note: &str) -> Result<CommitId, CommitFailure> {
        let mut bare = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            spend(number, part.dir, part.set, part.permits)?;
            bare.push((part.dir, part.set));
        }
        // A file system that answers by itself is not waited for in a thread of its own.
        if !self.has_patience(bare.iter().map(|(dir, _)| *dir)) {
            let bare: Vec<_> = bare.iter().map(|(dir, set)| (dir.as_fd(), *set)).collect();
            return self.carry_over(&bare, note);
        }
        let held = |source| {
            Failed::in_journal(FsError::Io {
                operation: "hold",
                path: RelPath::root(),
                source,
            })
        };
        let mut lent = Vec::new();
        for (dir, set) in bare {
            let dir = dir.as_fd().try_clone_to_owned().map_err(held)?;
            lent.push((dir, set.lent().map_err(held)?));
        }
        let note = note.to_owned();
        self.in_time(move |journal| {
            let bare: Vec<_> = lent.iter().map(|(dir, set)| (dir.as_fd(), set)).collect();
            journal.carry_over(&bare, &note)
        })
    }

    fn carry_over(
        &self,
        bare: &[(BorrowedFd<'_>, &ChangeSet)],
        note: &str,
    ) -> Result<CommitId, CommitFailure> {
        let finished = self.lock_finished()?;
        let dirs: Vec<_> = bare.iter().map(|(dir, _)| *dir).collect();
        self.ready_for(&finished, &areas::paths_of(&dirs)?)?;
        let entry = Entry::create(self, finished.next)?;
        let number = entry.number;
        let prepared = match self.prepare(entry, bare, note) {
            Ok(prepared) => prepared,
            Err((entry, failed)) => {
                // Nothing happened yet; what was staged goes.
                if let Some(entry) = entry {
                    let _cleared = entry.remove();
                }
                return Err(failed.into());
            }
        };
        let shields = |op: &Op| {
            let set = bare.get(op.root).map(|(_, set)| set);
            !matches!(op.act, Act::Put { .. }) || set.is_none_or(|set| set.shields(&op.path))
        };
        prepared
            .carry_out(self, &shields)
            .map_err(|failure| *failure)?;
        // Older ones that are too many go; that they stay is no failure.
        let _pruned = retain::prune(self, number);
        let id = CommitId(number);
        self.made().insert(id);
        Ok(id)
    }

    /// Stages everything and writes the plan.
    fn prepare<'j>(
        &'j self,
        entry: Entry<'j>,
        parts: &[(BorrowedFd<'_>, &ChangeSet)],
        note: &str,
    ) -> Result<Prepared<'j>, (Option<Entry<'j>>, Failed)> {
        let mut plan = Plan {
            number: entry.number,
            made_at: crate::ambient::seconds_since_1970(),
            note: note.as_bytes().to_vec(),
            undoes: None,
            roots: Vec::new(),
            ops: Vec::new(),
            touched: Vec::new(),
            bytes_before: 0,
        };
        let mut dirs = Vec::new();
        for (dir, _) in parts {
            dirs.push(*dir);
        }
        let grounds = match self.open_grounds(&entry, &mut plan, &dirs) {
            Ok(grounds) => grounds,
            Err(failed) => return Err((Some(entry), failed)),
        };
        let staged = stage_sets(self, &mut plan, &grounds, parts);
        finish_preparing(self, entry, plan, grounds, staged)
    }
}

/// Flushes what was staged and writes the plan, or says what is to be cleared.
pub(super) fn finish_preparing<'j>(
    journal: &'j Journal,
    entry: Entry<'j>,
    plan: Plan,
    grounds: Vec<Opened>,
    staged: Result<Counts, Failed>,
) -> Result<Prepared<'j>, (Option<Entry<'j>>, Failed)> {
    let written = staged.and_then(|counts| {
        can_be_taken(&plan, &grounds)?;
        entry.write_counts(&counts).map_err(Failed::in_journal)?;
        entry
            .write(&plan, State::Planned)
            .map_err(Failed::in_journal)?;
        journal.flush().map_err(Failed::in_journal)
    });
    match written {
        Ok(()) => Ok(Prepared {
            entry,
            plan,
            grounds: grounds.into_iter().enumerate().collect(),
        }),
        Err(failed) => {
            let roots = grounds.iter().map(|ground| ground.root.as_fd());
            clear_areas(journal, plan.roots.iter().zip(roots));
            Err((Some(entry), failed))
        }
    }
}

/// Checks and spends the permits of one part.
fn spend(
    part: usize,
    dir: &DirCap,
    set: &ChangeSet,
    permits: Vec<Permit<'_>>,
) -> Result<(), Failed> {
    if permits.len() != set.changes().len() {
        let denial = Denial::new(
            DenialCode::PermitMismatch,
            format_args!(
                "{} permits for {} changes",
                permits.len(),
                set.changes().len()
            ),
        );
        return Err(Failed::at(part, &RelPath::root(), denial));
    }
    if let Some((change, denial)) = set.never_kept() {
        return Err(Failed::at(part, &change.path, denial));
    }
    for (change, permit) in set.changes().iter().zip(permits) {
        let what = &change.what;
        let needs = (what.verb(), what.extent());
        dir.spend_change(permit, needs, &change.path, what.digest())
            .map_err(|error| Failed::at(part, &change.path, error))?;
    }
    Ok(())
}

/// Stages every change set; the plan gets its steps. Returns what counts of what they bring.
fn stage_sets(
    journal: &Journal,
    plan: &mut Plan,
    grounds: &[Opened],
    parts: &[(BorrowedFd<'_>, &ChangeSet)],
) -> Result<Counts, Failed> {
    let mut counts = Counts::new();
    for (number, ((_, set), ground)) in parts.iter().zip(grounds).enumerate() {
        let mut stager = Stager::new(journal, ground.area.as_fd());
        stager.takes_of_layer(set.runs());
        let steps = set
            .steps(ground.root.as_fd())
            .map_err(|(path, error)| Failed::at(number, &path, error))?;
        plan.bytes_before = plan.bytes_before.saturating_add(set.bytes_before(&steps));
        for step in steps {
            let at = plan.ops.len();
            let path = step.path.clone();
            let slot = slot_of(at);
            let (act, counting) =
                brought::stage(step, set, ground.root.as_fd(), &mut stager, &slot)
                    .map_err(|error| Failed::at(number, &path, unstaged(error, &slot, &path)))?;
            counts.extend(counting.map(|counting| (at, counting)));
            plan.ops.push(Op {
                root: number,
                path,
                act,
            });
        }
        stager
            .flush()
            .map_err(|error| Failed::at(number, &RelPath::root(), error))?;
        plan.touched
            .extend(set.changes().iter().map(|change| Touched {
                root: number,
                path: change.path.clone(),
                verb: change.what.verb(),
            }));
    }
    Ok(counts)
}

/// The name under which a step's thing is staged, and later what it displaced.
pub(super) fn slot_of(at: usize) -> RelPath {
    // Digits are a name.
    RelPath::root()
        .child(at.to_string().as_bytes())
        .unwrap_or_else(|_| RelPath::root())
}

impl Prepared<'_> {
    /// Takes every step; takes back those taken when one cannot be.
    ///
    /// What comes under a name is seen at once by whoever runs in a view of the directory
    /// and has nothing there: so each step is only taken while the view `shields` its name,
    /// and only stands if it did until the end.
    pub(super) fn carry_out(
        self,
        journal: &Journal,
        shields: &dyn Fn(&Op) -> bool,
    ) -> Result<(), Box<CommitFailure>> {
        let changed = |op: &Op| FsError::denied(DenialCode::ChangedSinceShown, &op.path);
        let progress = journal.steps.progress();
        if let Some(progress) = progress {
            let names = self.plan.ops.iter();
            let names = names.filter_map(|op| self.plan.roots.get(op.root).map(|root| (root, op)));
            let names = names.map(|(root, op)| Stuck::at(root, &op.path, StuckWhy::Waits).at);
            progress.names(self.plan.number, names);
        }
        let mut times = Times::of(&self.plan);
        for (at, op) in self.plan.ops.iter().enumerate() {
            if let Some(progress) = progress {
                progress.begins(at);
            }
            if let Some(ground) = self.grounds.get(&op.root) {
                times.note(op, ground.root.as_fd());
            }
            let done = match self.ground(journal, at, op).filter(|_| shields(op)) {
                Some(ground) => act::forward(&ground, op),
                None => Err(changed(op)),
            };
            let done = done.and_then(|()| {
                if shields(op) {
                    Ok(())
                } else {
                    Err(changed(op))
                }
            });
            if let Err(error) = done {
                let failed = Failed::at(op.root, &op.path, error);
                return Err(Box::new(self.give_up(journal, failed)));
            }
        }
        for (number, ground) in &self.grounds {
            times.give_back(*number, ground.root.as_fd());
        }
        let finished = self.flush_targets(journal).and_then(|()| {
            let kept = self.bring_home(journal)?;
            if let Some(op) = self.plan.ops.iter().find(|op| !shields(op)) {
                return Err(Failed::at(op.root, &op.path, changed(op)));
            }
            // From here on it stands, unless nobody waits for it any more.
            let decided = progress.map_or(Ok(()), Progress::decide);
            decided.map_err(|source| {
                Failed::in_journal(FsError::Io {
                    operation: "finish",
                    path: RelPath::root(),
                    source,
                })
            })?;
            let done = match self.plan.keeping(&kept) {
                None => self.entry.advance(State::Planned, State::Committed),
                // The later state counts where there are both.
                Some(plan) => self.entry.write(&plan, State::Committed),
            };
            done.map_err(Failed::in_journal)
        });
        if let Err(failed) = finished
            && !self.is_past_taking_back(journal)
        {
            return Err(Box::new(self.give_up(journal, failed)));
        }
        if let Some(progress) = progress {
            progress.stands();
        }
        self.clear_beside(journal);
        Ok(())
    }

    pub(super) fn ground<'a>(
        &'a self,
        journal: &'a Journal,
        at: usize,
        op: &Op,
    ) -> Option<Ground<'a>> {
        let opened = self.grounds.get(&op.root)?;
        Some(Ground {
            steps: &journal.steps,
            root: opened.root.as_fd(),
            area: opened.area.as_fd(),
            slot: slot_of(at).as_bytes().to_vec(),
            links_lead: self.plan.undoes.is_some() && fault::is(Fault::UndoFollowsLinks),
        })
    }

    /// Has an entry that may say by now that it stands say so no more: nobody takes back what
    /// does. Where that fails it stands, and can be undone, as far as anybody can tell.
    fn is_past_taking_back(&self, journal: &Journal) -> bool {
        let says = || matches!(self.entry.state(), Ok(Some(State::Committed)));
        if !says() || journal.steps.is_over() {
            return false;
        }
        // What it says afterwards is what counts.
        let _unsaid = self.entry.advance(State::Committed, State::Planned);
        says()
    }

    /// Takes everything back and says what it came to.
    fn give_up(self, journal: &Journal, failed: Failed) -> CommitFailure {
        // Whoever uses the journal next finds what could not be put back yet, and tries again.
        let stuck = self
            .take_back(journal)
            .unwrap_or_else(|NotYet(stuck)| stuck);
        CommitFailure {
            stuck,
            ..failed.into()
        }
    }

    /// Waits until every rename is on the disk.
    pub(super) fn flush_targets(&self, journal: &Journal) -> Result<(), Failed> {
        let failed = |part: usize, path: &RelPath, errno: rustix::io::Errno| {
            Failed::at(part, path, FsError::io("flush", path, errno))
        };
        let mut parents = BTreeSet::new();
        for op in &self.plan.ops {
            parents.insert((op.root, op.path.parent().unwrap_or_else(RelPath::root)));
            if let Act::Move { to, .. } = &op.act {
                parents.insert((op.root, to.parent().unwrap_or_else(RelPath::root)));
            }
        }
        journal
            .pass("flush what changed", &journal.place)
            .map_err(Failed::in_journal)?;
        let given_modes = self.plan.ops.iter();
        let given_modes = given_modes.filter(|op| matches!(op.act, Act::Mode(_)));
        if parents.len().saturating_add(given_modes.clone().count()) > FLUSHED_ONE_BY_ONE_MAX {
            for (part, ground) in &self.grounds {
                rustix::fs::syncfs(&ground.root)
                    .map_err(|errno| failed(*part, &RelPath::root(), errno))?;
            }
            return Ok(());
        }
        for (root, path) in &parents {
            let Some(ground) = self.grounds.get(root) else {
                continue;
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            // One that is gone, or closed to its owner, keeps nothing of ours.
            if let Ok(dir) = open_beneath(ground.root.as_fd(), path, flags, Links::Refuse) {
                rustix::fs::fsync(&dir).map_err(|errno| failed(*root, path, errno))?;
            }
        }
        for op in given_modes {
            if let Some(ground) = self.grounds.get(&op.root) {
                mode::flush(ground.root.as_fd(), &op.path)
                    .map_err(|errno| failed(op.root, &op.path, errno))?;
            }
        }
        for (part, ground) in &self.grounds {
            rustix::fs::fsync(&ground.area)
                .map_err(|errno| failed(*part, &RelPath::root(), errno))?;
        }
        Ok(())
    }

    /// Copies what was displaced beside a workspace into the entry. Says of each step of which
    /// that is so what is kept, where it is another thing than what was displaced.
    pub(super) fn bring_home(
        &self,
        journal: &Journal,
    ) -> Result<BTreeMap<usize, Fingerprint>, Failed> {
        let mut stager = Stager::new(journal, self.entry.dir.as_fd());
        let mut any = false;
        let mut others = BTreeMap::new();
        for (at, op) in self.plan.ops.iter().enumerate() {
            let (Some(root), Some(ground)) =
                (self.plan.roots.get(op.root), self.grounds.get(&op.root))
            else {
                continue;
            };
            let slot = slot_of(at);
            if root.beside.is_none()
                || matches!(op.act, Act::Meta { .. } | Act::Move { .. } | Act::Mode(_))
            {
                continue;
            }
            let io = |source: std::io::Error| {
                Failed::in_journal(FsError::Io {
                    operation: "keep what was in",
                    path: op.path.clone(),
                    source,
                })
            };
            let kept = read_tree(ground.area.as_fd(), slot.as_bytes()).map_err(io)?;
            if kept.is_empty() {
                continue;
            }
            any = true;
            let source = Source {
                dir: ground.area.as_fd(),
                at: &slot,
            };
            // Left by an attempt that was cut off.
            remove_tree(journal, self.entry.dir.as_fd(), slot.as_bytes()).map_err(io)?;
            let (staged, _) = stager
                .copy(
                    source,
                    &kept,
                    &slot,
                    &Like::kept(ground.area.as_fd(), &slot),
                    Usable::AsItsModeSays,
                )
                .map_err(|error| Failed::in_journal(unstaged(error, &slot, &op.path)))?;
            if staged.state != fingerprint(&kept) {
                others.insert(at, staged.state);
            }
        }
        if any {
            stager.flush().map_err(Failed::in_journal)?;
        }
        Ok(others)
    }

    /// Removes the directories beside workspaces, or leaves them to whoever opens it next.
    pub(super) fn clear_beside(&self, journal: &Journal) {
        let grounds = self.grounds.iter();
        let roots = grounds.filter_map(|(number, ground)| {
            Some((self.plan.roots.get(*number)?, ground.root.as_fd()))
        });
        let may = self.entry.begin_to_clear(&self.plan.roots).is_ok();
        if may && clear_areas(journal, roots) {
            self.entry.forget_opening();
        }
    }
}

impl fmt::Debug for Part<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("dir", &self.dir.id())
            .field("changes", &self.set.changes().len())
            .finish_non_exhaustive()
    }
}

//! Bringing back the state before a commit.
//!
//! Undoing is a commit of its own: staged, written down, all or nothing, and
//! kept, so that it can be undone in turn. It expects every place to be as the
//! commit left it; a place that somebody changed since is named, and then
//! nothing is done.

#![expect(
    clippy::result_large_err,
    reason = "a failure is made at most once for each commit, and says all there is to show"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use hermitcrab_core::Permit;
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{CapError, DirId, Extent, Object};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;

use super::act;
use super::areas::Opened;
use super::besides::Counts;
use super::commit::{Commit, Prepared, finish_preparing, slot_of};
use super::entry::{Entry, State};
use super::failed::{CommitFailure, Failed, unstaged};
use super::ground::Fit;
use super::like::Like;
use super::plan::{Act, Op, Plan, Touched};
use super::reach::open_root;
use super::root::{Root, Same};
use super::stage::{Source, Stager, Usable};
use super::{CommitId, Journal, JournalError, Kept, KeptChange, changes_of, retain};
use crate::changeset::in_place::OtherMode;
use crate::changeset::node::{Fingerprint, Tree, fingerprint, read_tree};
use crate::digest::sha256;
use crate::dircap::{DirCap, FsError, Thing};

/// A commit about to be taken back, and what that would do.
#[derive(Clone, Debug)]
pub struct Undo {
    kept: Kept,
    /// As it lies in the journal.
    plan: Plan,
    /// The same steps, with what is there now of what differs only in what does not count.
    found: Plan,
    backwards: Vec<Touched>,
    /// What of that goes with all that lies below it.
    trees: BTreeSet<(usize, RelPath)>,
    digest: Digest,
}

/// A commit that cannot be taken back.
#[derive(Debug)]
pub enum UndoError {
    /// The journal cannot be used, or does not hold it.
    Journal(JournalError),
    /// Somebody changed these since, in these directories; nothing was done.
    Changed(Vec<(Vec<u8>, RelPath)>),
    /// A directory it changed is not what it was; nothing was done.
    Root(String),
    /// What it did closed the way to this one; these modes open it again.
    Closed(Vec<u8>, Vec<(u32, Vec<u8>)>),
    /// It could neither be finished nor taken back before.
    Stuck(CommitId),
}

impl Undo {
    /// The commit.
    #[must_use]
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// As it lies in the journal.
    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The names it touches, as [`Undo::changes`] has them.
    pub(super) fn touched(&self) -> &[Touched] {
        &self.backwards
    }

    /// What taking it back does, in order.
    #[must_use]
    pub fn changes(&self) -> Vec<KeptChange> {
        changes_of(&self.plan.roots, &self.backwards)
    }

    /// The directories it happens in.
    #[must_use]
    pub fn roots(&self) -> Vec<Vec<u8>> {
        self.plan
            .roots
            .iter()
            .map(|root| root.path.clone())
            .collect()
    }

    /// Everything but a directory that was moved is touched by its own name.
    fn extent_of(&self, touched: &Touched) -> Extent {
        match self.trees.contains(&(touched.root, touched.path.clone())) {
            true => Extent::Tree,
            false => Extent::Alone,
        }
    }

    /// The effects it has: one for each of [`Undo::changes`], bound to this
    /// very commit. `dirs` are the directories of [`Undo::roots`], in order,
    /// by their handle and where they lie below it.
    ///
    /// # Errors
    /// A path would be too long.
    pub fn actions(&self, dirs: &[(DirId, RelPath)]) -> Result<Vec<Action>, CapError> {
        self.backwards
            .iter()
            .filter_map(|touched| Some((touched, dirs.get(touched.root)?)))
            .map(|(touched, (dir, below))| {
                let place = below
                    .join(&touched.path)
                    .unwrap_or_else(|_| touched.path.clone());
                let object = Object::Dir {
                    dir: *dir,
                    below: place,
                    extent: self.extent_of(touched),
                };
                Action::new(touched.verb, object, self.digest)
            })
            .collect()
    }
}

impl Journal {
    /// Looks up a commit and checks that it could be taken back now.
    ///
    /// # Errors
    /// See [`UndoError`].
    pub fn prepare_undo(&self, id: CommitId) -> Result<Undo, UndoError> {
        let finished = self.lock_finished()?;
        let entry = self.committed(id)?;
        let plan = entry.plan()?.ok_or(JournalError::Unknown(id))?;
        self.ready_for(&finished, &paths_of(&plan))?;
        let mut found = plan.clone();
        let changed = self.changed_since(&mut found, &entry.counts())?;
        if !changed.is_empty() && !fault::is(Fault::UndoOverlooksChanges) {
            return Err(UndoError::Changed(changed));
        }
        Ok(Undo {
            kept: Kept::of(&plan, false),
            backwards: plan.touched_backwards(),
            trees: plan.moved_trees(),
            digest: sha256(&found.encode()),
            plan,
            found,
        })
    }

    pub(super) fn committed(&self, id: CommitId) -> Result<Entry<'_>, UndoError> {
        if !self.numbers()?.contains(&id.0) {
            return Err(JournalError::Unknown(id).into());
        }
        let entry = Entry::open(self, id.0)?;
        match entry.state()? {
            Some(State::Committed) => Ok(entry),
            Some(State::Stuck) => Err(UndoError::Stuck(id)),
            Some(State::Opening | State::Planned | State::Dropped) | None => {
                Err(JournalError::Unknown(id).into())
            }
        }
    }

    /// What is not as the plan left it. What differs only in what does not count is in the
    /// plan as it is found, so that this very version is what is taken away.
    fn changed_since(
        &self,
        plan: &mut Plan,
        counts: &Counts,
    ) -> Result<Vec<(Vec<u8>, RelPath)>, UndoError> {
        let mut roots = Vec::new();
        for root in &plan.roots {
            roots.push(open_root(root).map_err(|unopened| {
                let closed = unopened.may_be_closed.then(|| closed_by(plan, root));
                closed.flatten().unwrap_or(UndoError::Root(unopened.why))
            })?);
        }
        let mut aheads = vec![act::Ahead::default(); roots.len()];
        let mut changed = Vec::new();
        for (at, op) in plan.ops.iter_mut().enumerate().rev() {
            let (Some(root), Some(ahead), Some(spec)) = (
                roots.get(op.root),
                aheads.get_mut(op.root),
                plan.roots.get(op.root),
            ) else {
                continue;
            };
            let backwards = expected(op);
            let counting = counts.get(&at).map(|counting| (*counting, &*self.besides));
            let fits = act::fits(root.as_fd(), &backwards, ahead, counting)
                .map_err(|error| UndoError::Root(error.to_string()))?;
            match (fits, &mut op.act) {
                (Fit::Exactly, _) => {}
                // Somebody gave a directory its mode back, and that is all there is to do.
                (Fit::Already, Act::Meta { before, after }) => after.clone_from(before),
                (Fit::Already, Act::Mode(change)) => {
                    change.states.1 = change.states.0;
                    change.modes.1 = change.modes.0;
                }
                (Fit::AsFarAsItCounts(found), Act::Put { staged } | Act::Swap { staged, .. }) => {
                    staged.state = found;
                }
                (Fit::AsFarAsItCounts(found), Act::Move { holds, .. }) => *holds = Some(found),
                (Fit::AsFarAsItCounts(_) | Fit::Already | Fit::Not, _) => {
                    changed.push((spec.path.clone(), backwards.path));
                }
            }
        }
        changed.sort();
        changed.dedup();
        Ok(changed)
    }

    /// Takes a commit back, spending one permit for each of its actions.
    /// `dirs` are as for [`Undo::actions`].
    pub fn undo(&self, undo: &Undo, dirs: &[&DirCap], permits: Vec<Permit<'_>>) -> Commit {
        let changes = undo.backwards.len();
        let done = spend(undo, dirs, permits)
            .map_err(CommitFailure::from)
            .and_then(|()| {
                if !self.has_patience(dirs.iter().copied()) {
                    let dirs: Vec<_> = dirs.iter().map(|dir| dir.as_fd()).collect();
                    return self.try_undo(undo, &dirs);
                }
                let held = dirs.iter().map(|dir| dir.as_fd().try_clone_to_owned());
                let held = held.collect::<Result<Vec<_>, _>>().map_err(|source| {
                    Failed::in_journal(FsError::Io {
                        operation: "hold",
                        path: RelPath::root(),
                        source,
                    })
                })?;
                let undo = undo.clone();
                self.in_time(move |journal| {
                    let dirs: Vec<_> = held.iter().map(|dir| dir.as_fd()).collect();
                    journal.try_undo(&undo, &dirs)
                })
            });
        match done {
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

    fn try_undo(&self, undo: &Undo, roots: &[BorrowedFd<'_>]) -> Result<CommitId, CommitFailure> {
        let top = |error: UndoError| {
            let error = FsError::Io {
                operation: "undo",
                path: RelPath::root(),
                source: std::io::Error::other(error.to_string()),
            };
            CommitFailure::from(Failed::in_journal(error))
        };
        let finished = self.lock_finished()?;
        let old = self.committed(undo.kept.id).map_err(top)?;
        if old.plan()?.as_ref() != Some(&undo.plan) {
            return Err(top(JournalError::Unknown(undo.kept.id).into()));
        }
        self.ready_for(&finished, &paths_of(&undo.plan))?;
        let entry = Entry::create(self, finished.next)?;
        let number = entry.number;
        let mut plan = Plan {
            number,
            made_at: crate::ambient::seconds_since_1970(),
            note: format!(
                "undo {}: {}",
                undo.kept.id,
                String::from_utf8_lossy(&undo.plan.note)
            )
            .into_bytes(),
            undoes: Some(undo.kept.id.0),
            roots: Vec::new(),
            ops: Vec::new(),
            touched: undo.backwards.clone(),
            bytes_before: 0,
        };
        let prepared = match self.open_grounds(&entry, &mut plan, roots) {
            Ok(grounds) => {
                let staged = stage_back(self, &mut plan, &grounds, &old, &undo.found);
                finish_preparing(self, entry, plan, grounds, staged)
            }
            Err(failed) => Err((Some(entry), failed)),
        };
        let prepared: Prepared<'_> = match prepared {
            Ok(prepared) => prepared,
            Err((entry, failed)) => {
                if let Some(entry) = entry {
                    let _cleared = entry.remove();
                }
                return Err(failed.into());
            }
        };
        prepared
            .carry_out(self, &|_| true)
            .map_err(|failure| *failure)?;
        // What it held is in place again. If this is cut off, it is done when
        // the journal is opened next.
        let _removed = old.remove();
        let _pruned = retain::prune(self, number);
        let id = CommitId(number);
        self.made().insert(id);
        Ok(id)
    }
}

/// Where a plan is about.
fn paths_of(plan: &Plan) -> Vec<PathBuf> {
    let paths = plan.roots.iter().map(|root| OsStr::from_bytes(&root.path));
    paths.map(PathBuf::from).collect()
}

/// Says which modes are to be given back where a directory cannot be reached for what
/// the plan did further up, in one it lies in.
fn closed_by(plan: &Plan, root: &Root) -> Option<UndoError> {
    let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
    let below = path(&root.path);
    let mut modes: Vec<(u32, Vec<u8>)> = plan
        .ops
        .iter()
        .filter_map(|op| {
            let Act::Meta { before, .. } = &op.act else {
                return None;
            };
            let mut at = path(&plan.roots.get(op.root)?.path);
            if !op.path.is_root() {
                at.push(path(op.path.as_bytes()));
            }
            below
                .starts_with(&at)
                .then(|| (before.mode, at.into_os_string().into_vec()))
        })
        .collect();
    modes.sort_by_key(|(_, at)| at.len());
    (!modes.is_empty()).then(|| UndoError::Closed(root.path.clone(), modes))
}

/// What a step taken back expects, seen as a step of its own.
fn expected(op: &Op) -> Op {
    let act = match &op.act {
        Act::Put { staged } => Act::Take {
            before: staged.state,
        },
        Act::Swap { staged, .. } => Act::Swap {
            staged: *staged,
            before: staged.state,
        },
        // Nothing is compared with what is staged before it is.
        Act::Take { before } => Act::Put {
            staged: super::plan::Staged {
                inode: 0,
                state: *before,
            },
        },
        Act::Meta { before, after } => Act::Meta {
            before: after.clone(),
            after: before.clone(),
        },
        Act::Mode(change) => Act::Mode(backwards(*change)),
        Act::Move { to, what, holds } => {
            return Op {
                root: op.root,
                path: to.clone(),
                act: Act::Move {
                    to: op.path.clone(),
                    what: *what,
                    holds: *holds,
                },
            };
        }
    };
    Op { act, ..op.clone() }
}

fn spend(undo: &Undo, dirs: &[&DirCap], permits: Vec<Permit<'_>>) -> Result<(), Failed> {
    if permits.len() != undo.backwards.len() || dirs.len() != undo.plan.roots.len() {
        let denial = Denial::new(
            DenialCode::PermitMismatch,
            format_args!(
                "{} permits for {} changes",
                permits.len(),
                undo.backwards.len()
            ),
        );
        return Err(Failed::in_journal(denial));
    }
    for (touched, permit) in undo.backwards.iter().zip(permits) {
        let failed = |error| Failed::at(touched.root, &touched.path, error);
        let dir = dirs
            .get(touched.root)
            .ok_or_else(|| failed(FsError::denied(DenialCode::PermitMismatch, &touched.path)))?;
        let needs = (touched.verb, undo.extent_of(touched));
        dir.spend_change(permit, needs, &touched.path, undo.digest)
            .map_err(failed)?;
    }
    Ok(())
}

/// Stages copies of what is kept; the plan gets the steps backwards.
fn stage_back(
    journal: &Journal,
    plan: &mut Plan,
    grounds: &[Opened],
    old: &Entry<'_>,
    done: &Plan,
) -> Result<Counts, Failed> {
    let mut counts = Counts::new();
    // The directories must be the very ones the commit was about.
    for (number, (now, then)) in plan.roots.iter().zip(&done.roots).enumerate() {
        if now.path != then.path || then.is(now.inode, now.marks) == Same::No {
            let denial = Denial::new(
                DenialCode::ChangedSinceShown,
                String::from_utf8_lossy(&then.path),
            );
            return Err(Failed::at(number, &RelPath::root(), denial));
        }
    }
    for (number, ground) in grounds.iter().enumerate() {
        let mut stager = Stager::of_kept(journal, ground.area.as_fd());
        for (from, op) in done.ops.iter().enumerate().rev() {
            let is_deleted = matches!(op.act, Act::Take { .. });
            if op.root != number || (is_deleted && fault::is(Fault::UndoForgetsTrees)) {
                continue;
            }
            let (root, slot) = (ground.root.as_fd(), slot_of(plan.ops.len()));
            let (mut back, counting) = one_back(&mut stager, (root, old), from, op, &slot)
                .map_err(|error| Failed::at(number, &op.path, unstaged(error, &slot, &op.path)))?;
            as_it_is_now(root, &mut back);
            counts.extend(counting.map(|counting| (plan.ops.len(), counting)));
            plan.ops.push(back);
        }
        stager
            .flush()
            .map_err(|error| Failed::at(number, &RelPath::root(), error))?;
    }
    Ok(counts)
}

fn backwards(change: OtherMode) -> OtherMode {
    OtherMode {
        what: change.what,
        modes: (change.modes.1, change.modes.0),
        states: (change.states.1, change.states.0),
    }
}

/// What goes back to its old name, or mode, is what has the new one by now: it was seen to
/// hold what it is to hold, and may have been brought back there by another undo. What lies
/// behind a way that another step opens is taken for what it was.
fn as_it_is_now(root: BorrowedFd<'_>, back: &mut Op) {
    if let Act::Move {
        what,
        holds: Some(_),
        ..
    }
    | Act::Mode(OtherMode { what, .. }) = &mut back.act
        && let Ok(Some(found)) = Thing::at(root, &back.path)
    {
        *what = found;
    }
}

fn one_back(
    stager: &mut Stager<'_>,
    (root, old): (BorrowedFd<'_>, &Entry<'_>),
    from: usize,
    op: &Op,
    slot: &RelPath,
) -> Result<(Op, Option<Fingerprint>), FsError> {
    let back = expected(op);
    if let Act::Move { to, holds, .. } = &back.act {
        let counts = holds.and_then(|holds| stager.counting_at(root, &back.path, to, holds));
        return Ok((back, counts));
    }
    let (before, expected) = match (&back.act, &op.act) {
        (Act::Put { staged }, _) => (None, staged.state),
        (Act::Swap { before, .. }, Act::Swap { before: kept, .. }) => (Some(*before), *kept),
        (
            Act::Swap { .. }
            | Act::Take { .. }
            | Act::Meta { .. }
            | Act::Move { .. }
            | Act::Mode(_),
            _,
        ) => {
            return Ok((back, None));
        }
    };
    let name = slot_of(from);
    let kept: Tree = read_tree(old.dir.as_fd(), name.as_bytes()).map_err(|source| FsError::Io {
        operation: "read what was kept of",
        path: op.path.clone(),
        source,
    })?;
    if fingerprint(&kept) != expected {
        return Err(FsError::Io {
            operation: "undo",
            path: op.path.clone(),
            source: std::io::Error::other(format!(
                "what was kept of it in `{}` is damaged",
                old.place()
            )),
        });
    }
    // Owners, and attributes of the system, are those of the kept version.
    let like = Like::kept(old.dir.as_fd(), &name);
    let source = Source {
        dir: old.dir.as_fd(),
        at: &name,
    };
    let (staged, tree) = stager.copy(source, &kept, slot, &like, Usable::AsItsModeSays)?;
    let act = match before {
        None => Act::Put { staged },
        Some(before) => Act::Swap { staged, before },
    };
    let counts = stager.counting(&op.path, &tree, slot);
    Ok((Op { act, ..back }, counts))
}

impl From<JournalError> for UndoError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl fmt::Display for UndoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => error.fmt(f),
            Self::Changed(names) => {
                let names: Vec<String> = names
                    .iter()
                    .map(|(root, path)| format!("`{}/{path}`", String::from_utf8_lossy(root)))
                    .collect();
                write!(
                    f,
                    "cannot undo: changed or gone since the commit: {}; put them back as they were, or undo what changed them first",
                    names.join(", ")
                )
            }
            Self::Closed(root, modes) => {
                let modes: Vec<String> = modes
                    .iter()
                    .map(|(mode, at)| format!("`chmod {mode:o} {}`", String::from_utf8_lossy(at)))
                    .collect();
                write!(
                    f,
                    "cannot undo: what it did closed the way to `{}`; open it first: {}",
                    String::from_utf8_lossy(root),
                    modes.join(", then ")
                )
            }
            Self::Root(why) => write!(
                f,
                "cannot undo: {why}; see to it that the directory is as it was first"
            ),
            Self::Stuck(id) => write!(
                f,
                "cannot undo: commit {id} was cut off and somebody changed its files since; what it displaced is kept in the journal"
            ),
        }
    }
}

impl std::error::Error for UndoError {}

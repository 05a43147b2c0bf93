//! Taking back what was done of a transaction that does not stand.
//!
//! Last first. A step that cannot be taken back now keeps none from it but those that
//! happened at the same names or around them: what it waits for may come years later, and
//! until then as much as can be is as it was. As long as any waits, the plan stays as it is,
//! and whoever uses the journal next takes back those that are left ([`super::put_back`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hermitcrab_core::path::RelPath;
use rustix::fs::AtFlags;

use super::commit::Prepared;
use super::entry::State;
use super::failed::{Failed, NotYet, Stuck, StuckWhy};
use super::ground::{Back, Fit, Ground};
use super::plan::{Act, Op, Plan};
use super::{Journal, act};
use crate::dircap::{FsError, Thing};

/// What came of taking steps back.
struct Stepped {
    /// Those that are back, or never were taken, those of earlier attempts included.
    back: BTreeSet<usize>,
    /// At which somebody changed the place, or what was there is lost.
    kept: Vec<(usize, Back)>,
    /// Which names wait.
    waits: Vec<Stuck>,
}

/// Which names wait, so that what depends on one of them is left until it has come.
#[derive(Default)]
struct Waiting {
    names: BTreeSet<(usize, RelPath)>,
    /// Each directory above such a name, and that name.
    above: BTreeMap<(usize, RelPath), RelPath>,
}

impl Prepared<'_> {
    /// Takes back, last first, whatever was done; names what was left alone.
    ///
    /// # Errors
    /// Something could not be put back yet, or it is not known whether it was.
    pub(super) fn take_back(self, journal: &Journal) -> Result<Vec<Stuck>, NotYet> {
        let stuck = self.take_back_reached(journal)?;
        let roots = self.plan.roots.clone();
        self.end_taking_back(journal, stuck.clone())
            .map_err(|failed| {
                let waits = std::iter::once(failed.into_stuck(&roots, journal));
                NotYet(waits.chain(stuck).collect())
            })
    }

    /// Takes back whatever was done in the directories that are open, of which others may
    /// be to come; names what was left alone.
    ///
    /// # Errors
    /// Something could not be put back yet.
    pub(super) fn take_back_reached(&self, journal: &Journal) -> Result<Vec<Stuck>, NotYet> {
        let Stepped {
            back,
            kept,
            mut waits,
        } = self.step_back(journal);
        let stuck = self.left_alone(&kept);
        if !waits.is_empty() || self.grounds.len() < self.plan.roots.len() {
            // What is not on the disk is looked at again, and so is what cannot be noted.
            let flushed = self.flush_targets(journal).is_ok();
            let _noted = flushed.then(|| self.entry.note_back(&back));
        }
        if waits.is_empty() {
            return Ok(stuck);
        }
        waits.extend(stuck);
        Err(NotYet(waits))
    }

    /// Takes every step back that can be.
    fn step_back(&self, journal: &Journal) -> Stepped {
        let brought = brought_by(&self.plan);
        let untaken = self.untaken();
        let (mut waiting, mut kept, mut waits) = (Waiting::default(), Vec::new(), Vec::new());
        let (mut back, mut lost) = (self.entry.noted_back(), BTreeSet::new());
        for (at, op) in self.plan.ops.iter().enumerate().rev() {
            if back.contains(&at) || !self.grounds.contains_key(&op.root) {
                continue;
            }
            let why = match waiting.keeps(op) {
                Some(first) => format!("`{first}` comes first"),
                None => match self.one_back(journal, at, &brought, &untaken) {
                    Ok(Back::Done) => {
                        back.insert(at);
                        continue;
                    }
                    Ok(left) => {
                        let mut dirs = names_of(op).flat_map(above);
                        let is_below = dirs.any(|dir| lost.contains(&(op.root, dir)));
                        let left = if is_below { Back::Lost } else { left };
                        if left == Back::Lost {
                            lost.insert((op.root, op.path.clone()));
                        }
                        kept.push((at, left));
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
            };
            let why = match self.still(op) {
                Some(to) => format!("it is `{to}` still, {why}"),
                None => why,
            };
            waiting.note(op);
            if let Some(root) = self.plan.roots.get(op.root) {
                waits.push(Stuck::at(root, &op.path, StuckWhy::Failed(why)));
            }
            if journal.steps.is_over() {
                break;
            }
        }
        Stepped { back, kept, waits }
    }

    /// Under which name a thing is that was moved and is to be moved back.
    fn still<'o>(&self, op: &'o Op) -> Option<&'o RelPath> {
        let Act::Move { to, what, .. } = &op.act else {
            return None;
        };
        let ground = self.grounds.get(&op.root)?;
        let there = Thing::at(ground.root.as_fd(), to).ok()?;
        (there == Some(*what)).then_some(to)
    }

    fn one_back(
        &self,
        journal: &Journal,
        at: usize,
        brought: &BTreeMap<(usize, &RelPath), usize>,
        untaken: &BTreeSet<usize>,
    ) -> Result<Back, FsError> {
        let ground_of = |at: usize| self.ground(journal, at, self.plan.ops.get(at)?);
        let op = self.plan.ops.get(at);
        let Some((op, ground)) = op.and_then(|op| Some((op, ground_of(at)?))) else {
            return Ok(Back::Done);
        };
        // What has the name of a directory that never came is nobody's that was to be changed.
        if matches!(op.act, Act::Meta { .. })
            && let Some(first) = brought
                .get(&(op.root, &op.path))
                .filter(|first| **first < at)
            && never_came(&self.plan, *first, &ground_of)?
        {
            return Ok(Back::Done);
        }
        if self.has_lost(op) && ground.inode()?.is_none() {
            let there = || ground.state_of_target(&op.path);
            return match &op.act {
                Act::Take { .. } | Act::Swap { .. } if untaken.contains(&at) => Ok(Back::Done),
                Act::Take { .. } if there()?.is_none() => Ok(Back::Lost),
                Act::Swap { staged, .. } if there()? == Some(staged.state) => Ok(Back::Lost),
                Act::Take { .. } | Act::Swap { .. } => Ok(Back::Kept),
                Act::Put { .. } | Act::Meta { .. } | Act::Move { .. } | Act::Mode(_) => {
                    act::backward(&ground, op)
                }
            };
        }
        act::backward(&ground, op)
    }

    /// Whether what was staged for a step is gone.
    fn has_lost(&self, op: &Op) -> bool {
        self.grounds
            .get(&op.root)
            .is_some_and(|opened| opened.is_lost)
    }

    /// The steps that displace something and find what they expect, in directories of which
    /// what was staged is gone: nothing else says there that they were not taken.
    fn untaken(&self) -> BTreeSet<usize> {
        let (mut untaken, mut aheads) = (BTreeSet::new(), BTreeMap::new());
        let all = self.plan.ops.iter().enumerate();
        for (at, op) in all.filter(|(_, op)| self.has_lost(op)) {
            let Some(opened) = self.grounds.get(&op.root) else {
                continue;
            };
            let ahead: &mut act::Ahead = aheads.entry(op.root).or_default();
            let displaces = matches!(op.act, Act::Take { .. } | Act::Swap { .. });
            if displaces
                && act::fits(opened.root.as_fd(), op, ahead, None)
                    .is_ok_and(|fit| fit == Fit::Exactly)
            {
                untaken.insert(at);
            }
            ahead.pass(op);
        }
        untaken
    }

    /// Says that it is taken back, but for what was left alone, and for directories that are
    /// not open, which are given up: what lies in them stays there.
    pub(super) fn end_taking_back(
        mut self,
        journal: &Journal,
        stuck: Vec<Stuck>,
    ) -> Result<Vec<Stuck>, Box<Failed>> {
        self.flush_targets(journal)?;
        if stuck.is_empty() {
            self.clear_beside(journal);
            self.entry.remove().map_err(Failed::in_journal)?;
            return Ok(stuck);
        }
        self.bring_home(journal)?;
        if self.grounds.len() < self.plan.roots.len() {
            // It may be the only copy of what was there.
            self.entry.forget_opening();
        }
        let state = self.entry.state().map_err(Failed::in_journal)?;
        self.entry
            .advance(state.unwrap_or(State::Planned), State::Stuck)
            .and_then(|()| self.entry.call(false))
            .map_err(Failed::in_journal)?;
        self.clear_beside(journal);
        Ok(stuck)
    }

    /// The names that somebody changed, each with what it held before, and those of which that
    /// is lost.
    fn left_alone(&self, left: &[(usize, Back)]) -> Vec<Stuck> {
        let named = left.iter().filter_map(|(at, left)| {
            let op = self.plan.ops.get(*at)?;
            let root = self.plan.roots.get(op.root)?;
            let why = match left {
                Back::Lost => StuckWhy::Lost {
                    place: root.beside_path()?,
                    still: self.still(op).map(|to| {
                        let below = Path::new(OsStr::from_bytes(to.as_bytes()));
                        root.path().join(below)
                    }),
                },
                Back::Done | Back::Kept => StuckWhy::Changed(self.kept_of(*at)),
            };
            Some(Stuck::at(root, &op.path, why))
        });
        named.collect()
    }

    /// Where what a step displaced lies in the entry.
    fn kept_of(&self, at: usize) -> Option<PathBuf> {
        let slot = at.to_string();
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(&self.entry.dir, slot.as_str(), flags).ok()?;
        Some(Path::new(&self.entry.place()).join(slot))
    }
}

/// Whether what a step was to bring is where it was staged, or has its old name.
pub(super) fn never_came<'g>(
    plan: &Plan,
    at: usize,
    ground_of: &dyn Fn(usize) -> Option<Ground<'g>>,
) -> Result<bool, FsError> {
    let Some((op, ground)) = plan.ops.get(at).zip(ground_of(at)) else {
        return Ok(false);
    };
    match &op.act {
        Act::Put { staged } | Act::Swap { staged, .. } => Ok(ground.inode()? == Some(staged.inode)),
        Act::Move { what, .. } => Ok(Thing::at(ground.root, &op.path)? == Some(*what)),
        Act::Take { .. } | Act::Meta { .. } | Act::Mode(_) => Ok(false),
    }
}

/// The first step that brings something under each name.
pub(super) fn brought_by(plan: &Plan) -> BTreeMap<(usize, &RelPath), usize> {
    let mut brought = BTreeMap::new();
    for (at, op) in plan.ops.iter().enumerate() {
        let name = match &op.act {
            Act::Put { .. } | Act::Swap { .. } => &op.path,
            Act::Move { to, .. } => to,
            Act::Take { .. } | Act::Meta { .. } | Act::Mode(_) => continue,
        };
        brought.entry((op.root, name)).or_insert(at);
    }
    brought
}

impl Waiting {
    fn note(&mut self, op: &Op) {
        for name in names_of(op) {
            for dir in above(name) {
                self.above
                    .entry((op.root, dir))
                    .or_insert_with(|| name.clone());
            }
            self.names.insert((op.root, name.clone()));
        }
    }

    /// A name that waits and must be put back before this step can be taken back.
    fn keeps(&self, op: &Op) -> Option<RelPath> {
        if self.names.is_empty() {
            return None;
        }
        names_of(op).find_map(|name| {
            let is_it = |at: &RelPath| self.names.contains(&(op.root, at.clone()));
            if is_it(name) {
                return Some(name.clone());
            }
            let below = self.above.get(&(op.root, name.clone())).cloned();
            below.or_else(|| above(name).find(is_it))
        })
    }
}

fn names_of(op: &Op) -> impl Iterator<Item = &RelPath> {
    let other = match &op.act {
        Act::Move { to, .. } => Some(to),
        Act::Put { .. } | Act::Swap { .. } | Act::Take { .. } | Act::Meta { .. } | Act::Mode(_) => {
            None
        }
    };
    std::iter::once(&op.path).chain(other)
}

/// Every directory above a name.
fn above(name: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(name.parent(), RelPath::parent)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::path::Path;

    use super::{Act, Ground, Op, Plan, RelPath, Thing, brought_by, never_came};
    use crate::changeset::node::Meta;
    use crate::journal::root::Root;
    use crate::journal::steps::Steps;

    fn rel(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    /// A thing of that directory gets another name, and the mode there afterwards.
    fn moved_and_closed(at: &Path) -> Plan {
        let dir = std::fs::File::open(at).unwrap();
        let meta = |mode| Meta {
            mode,
            xattrs: [].into(),
        };
        let (before, after) = (meta(0o755), meta(0o711));
        let acts = [
            (
                "a",
                Act::Move {
                    to: rel("n"),
                    what: Thing::read(dir.as_fd(), b"a").unwrap().unwrap(),
                    holds: None,
                },
            ),
            ("n", Act::Meta { before, after }),
        ];
        let ops = acts.into_iter().map(|(path, act)| Op {
            root: 0,
            path: rel(path),
            act,
        });
        Plan {
            number: 1,
            made_at: 0,
            note: Vec::new(),
            undoes: None,
            roots: vec![Root::of(dir.as_fd(), b"/work".to_vec(), None).unwrap()],
            ops: ops.collect(),
            touched: Vec::new(),
            bytes_before: 0,
        }
    }

    #[test]
    fn what_was_to_be_moved_never_came_while_it_has_its_old_name() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        let plan = moved_and_closed(temp.path());
        let brought = brought_by(&plan);
        assert_eq!(brought.get(&(0, &rel("n"))), Some(&0));
        assert_eq!(
            brought.len(),
            1,
            "what keeps its name is brought by nothing"
        );
        let dir = std::fs::File::open(temp.path()).unwrap();
        let steps = Steps::default();
        let never_came = |plan: &Plan| {
            let ground_of = |_: usize| {
                Some(Ground {
                    steps: &steps,
                    root: dir.as_fd(),
                    area: dir.as_fd(),
                    slot: b"0".to_vec(),
                    links_lead: false,
                })
            };
            never_came(plan, 0, &ground_of).unwrap()
        };
        assert!(never_came(&plan));
        // Whatever else has the new name by then.
        std::fs::create_dir(at("n")).unwrap();
        assert!(never_came(&plan));
        std::fs::remove_dir(at("n")).unwrap();
        std::fs::rename(at("a"), at("n")).unwrap();
        assert!(!never_came(&plan));
        // Another one with the old name is not what was to be moved.
        std::fs::create_dir(at("a")).unwrap();
        assert!(!never_came(&plan));
    }
}

//! Whatever comes between a commit that was cut off and its being taken back: directories that
//! go, come back, and have others in their place meanwhile; what was staged removed by somebody;
//! attempts that are cut off themselves; and what others do. Dealt by chance, and judged by a
//! model that knows of each directory what it held before.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Bare;

use hermitcrab_core::path::RelPath;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::changeset::edits::Edit;
use hermitcrab_sandbox::journal::{
    Commit, CommitId, ForgetError, Incoming, Part, Recovered, StuckWhy,
};
use hermitcrab_sandbox::{DirCap, Journal, sha256};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::{At, Cut, mark, plant};
use crate::support::{dir_id, rel, times, tree, with_permits};

/// Directories that a commit is of: the first has its things staged in itself.
const ROOTS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// It has another name.
    Gone(usize),
    /// It is where it was.
    Back(usize),
    /// Another one is there, with a copy of all it holds, or of all but what is staged.
    Other(usize, bool),
    /// What is there is another one by its birth, and has the number of the one that is meant.
    Mistaken(usize),
    /// Somebody removes what is staged in it.
    Clean(usize),
    /// Its owner makes a file.
    Own(usize),
    /// Somebody opens the journal, and may be cut off at it.
    Attempt(Option<u8>),
    /// Something is done elsewhere.
    Elsewhere,
    /// A person gives up what waits.
    Forget,
}

fn event() -> impl Strategy<Value = Event> {
    let root = 0..ROOTS;
    prop_oneof![
        3 => root.clone().prop_map(Event::Gone),
        2 => root.clone().prop_map(Event::Back),
        2 => (root.clone(), any::<bool>()).prop_map(|(root, all)| Event::Other(root, all)),
        1 => root.clone().prop_map(Event::Mistaken),
        1 => root.clone().prop_map(Event::Clean),
        1 => root.prop_map(Event::Own),
        4 => proptest::option::of(0..40_u8).prop_map(Event::Attempt),
        1 => Just(Event::Elsewhere),
        1 => Just(Event::Forget),
    ]
}

/// What one can do to what [`plant`] made, each apart from the others.
fn edits(of: u16) -> Vec<Edit> {
    let all = [
        vec![Edit::Replace {
            path: rel("a"),
            before: Some(sha256(b"a\n")),
            content: b"1\n".to_vec(),
        }],
        vec![Edit::Remove {
            path: rel("b"),
            before: sha256(b"bb\n"),
        }],
        vec![Edit::Move {
            from: rel("d/x"),
            to: rel("x"),
        }],
        vec![Edit::Put {
            path: rel("n/m/new"),
            content: b"2\n".to_vec(),
            mode: 0o640,
        }],
        vec![Edit::RemoveLink {
            path: rel("l"),
            target: b"a".to_vec(),
        }],
        vec![Edit::Move {
            from: rel("e"),
            to: rel("far/e"),
        }],
        vec![
            Edit::Remove {
                path: rel("d/s/z"),
                before: sha256(b"z\n"),
            },
            Edit::RemoveName { path: rel("d/s") },
        ],
        vec![Edit::Rename {
            from: rel("d/y"),
            to: rel("y"),
            before: sha256(b"y\n"),
            content: b"yy\n".to_vec(),
        }],
    ];
    let chosen = all.into_iter().enumerate();
    let mut chosen: Vec<Edit> = chosen
        .filter(|(at, _)| of & (1 << at) != 0)
        .flat_map(|(_, edits)| edits)
        .collect();
    if chosen.is_empty() {
        chosen.push(Edit::MakeDir {
            path: rel("m"),
            mode: 0o755,
        });
    }
    chosen
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Itself,
    Nothing,
    Other,
}

struct World {
    dirs: Vec<tempfile::TempDir>,
    caps: Vec<DirCap>,
    state: tempfile::TempDir,
    places: [Place; ROOTS],
    mistaken: [bool; ROOTS],
    cleaned: [bool; ROOTS],
    /// What is told of names whose former content is gone.
    lost: BTreeSet<PathBuf>,
    /// What each held when nobody looked after it any more.
    left: [Option<Vec<String>>; ROOTS],
    owned: usize,
}

fn seen(at: &Path) -> Vec<String> {
    let lines = tree(at).into_iter();
    let lines = lines.filter(|line| !line.contains(" own-"));
    lines.collect()
}

fn apart(at: &Path) -> PathBuf {
    at.with_extension("apart")
}

impl World {
    fn new() -> Option<Self> {
        let dirs = vec![
            tempfile::tempdir_in("/dev/shm").ok()?,
            tempfile::tempdir().unwrap(),
        ];
        dirs.iter().for_each(|dir| plant(dir.path()));
        let cap = |dir: &tempfile::TempDir| DirCap::open_ambient_dir(dir.path(), dir_id());
        Some(Self {
            caps: dirs.iter().map(|dir| cap(dir).unwrap()).collect(),
            dirs,
            state: tempfile::tempdir().unwrap(),
            places: [Place::Itself; ROOTS],
            mistaken: [false; ROOTS],
            cleaned: [false; ROOTS],
            lost: BTreeSet::new(),
            left: [None, None],
            owned: 0,
        })
    }

    fn at(&self, root: usize) -> &Path {
        self.dirs[root].path()
    }

    /// Where the directory itself is.
    fn itself(&self, root: usize) -> PathBuf {
        match self.places[root] {
            Place::Itself => self.at(root).to_owned(),
            Place::Nothing | Place::Other => apart(self.at(root)),
        }
    }

    fn commit(&self, journal: &Journal, masks: [u16; ROOTS]) -> Commit {
        let incoming = self.caps.iter().zip(masks);
        let incoming = incoming.map(|(cap, mask)| journal.incoming(cap, &edits(mask)));
        let incoming: Result<Vec<Incoming<'_>>, _> = incoming.collect();
        let incoming = incoming.unwrap();
        let sets: Vec<_> = incoming.iter().map(|one| one.set().unwrap()).collect();
        let actions = sets.iter().flat_map(|set| set.actions(dir_id()).unwrap());
        with_permits(Tool::Directory, actions.collect(), |permits| {
            let mut permits = permits.into_iter();
            let parts = self.caps.iter().zip(sets).map(|(dir, set)| Part {
                dir,
                set,
                permits: permits.by_ref().take(set.changes().len()).collect(),
            });
            journal.commit(parts.collect(), "a model")
        })
    }

    fn undo(&self, journal: &Journal, id: CommitId) -> Commit {
        let undo = journal.prepare_undo(id).unwrap();
        let dirs = vec![(dir_id(), RelPath::root()); ROOTS];
        let actions = undo.actions(&dirs).unwrap();
        let caps: Vec<&DirCap> = self.caps.iter().collect();
        with_permits(Tool::Directory, actions, |permits| {
            journal.undo(&undo, &caps, permits)
        })
    }

    /// Every plan there is.
    fn plans(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.path().join("journal")).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        let names = ["opening", "plan", "committed", "stuck"];
        let plans = entries.flat_map(|entry| names.map(|name| entry.join(name)));
        plans.filter(|plan| plan.is_file()).collect()
    }

    fn mistake(&mut self, root: usize, is_mistaken: bool) {
        let is_known = Cell::new(false);
        for plan in self.plans() {
            mark(&plan, |number, line| {
                // On layers nobody knows when it was born.
                if number != root || line.starts_with('-') {
                    return line.to_owned();
                }
                is_known.set(is_mistaken);
                match is_mistaken {
                    true => format!("2{line}"),
                    false => line.strip_prefix('2').unwrap_or(line).to_owned(),
                }
            });
        }
        self.mistaken[root] = is_known.get();
    }

    /// Whether nothing may happen in what is there.
    fn is_meant(&self, root: usize) -> bool {
        self.places[root] == Place::Itself && !self.mistaken[root]
    }

    fn attempt(&mut self, cut: Option<u8>) -> Result<Option<Recovered>, TestCaseError> {
        let others: Vec<usize> = (0..ROOTS).filter(|root| !self.is_meant(*root)).collect();
        let look = |world: &Self| -> Vec<Option<Vec<String>>> {
            let at = others.iter().map(|root| world.at(*root));
            at.map(|at| at.exists().then(|| tree(at))).collect()
        };
        let held = look(self);
        let state = self.state.path();
        let opened = match cut {
            None => Journal::open(state).map(Some),
            Some(steps) => {
                let cut = Cut::after(steps.into(), At::Stop);
                Ok(Journal::open_watched(state, Box::new(cut)).ok())
            }
        };
        let opened = opened.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let recovered = opened.map(|(_, recovered)| recovered);
        prop_assert_eq!(look(self), held, "what was not meant was touched");
        if let Some(recovered) = &recovered {
            prop_assert!(recovered.broken.is_empty(), "{:?}", recovered);
            for stuck in recovered.stuck.iter().flat_map(|(_, stuck)| stuck) {
                let StuckWhy::Lost { still, .. } = &stuck.why else {
                    return Err(TestCaseError::fail(stuck.to_string()));
                };
                self.lost.insert(stuck.at.clone());
                self.lost.extend(still.clone());
            }
            for unreached in &recovered.unreached {
                let told = unreached.to_string();
                prop_assert!(told.contains("undo --forget"), "{}", told);
                let root = (0..ROOTS).find(|root| self.at(*root) == unreached.at);
                prop_assert!(!self.is_meant(root.unwrap()), "{}", told);
            }
        }
        Ok(recovered)
    }

    fn happens(&mut self, event: Event, id: CommitId) -> Result<(), TestCaseError> {
        match event {
            Event::Gone(root) if self.places[root] == Place::Itself => {
                fs::rename(self.at(root), apart(self.at(root))).unwrap();
                self.places[root] = Place::Nothing;
            }
            Event::Back(root) => self.back(root),
            Event::Other(root, with_all) if self.places[root] == Place::Itself => {
                let (at, apart) = (self.at(root), apart(self.at(root)));
                fs::rename(at, &apart).unwrap();
                let done = Bare::new("cp").arg("-a").args([&apart, at]).status();
                assert!(done.unwrap().success());
                if !with_all {
                    clean(at);
                }
                self.places[root] = Place::Other;
            }
            Event::Mistaken(root) if !self.mistaken[root] => self.mistake(root, true),
            Event::Clean(root) => self.cleaned[root] |= clean(&self.itself(root)),
            Event::Own(root) if self.is_meant(root) => {
                self.owned += 1;
                let own = self.at(root).join(format!("own-{}", self.owned));
                fs::write(own, "own\n").unwrap();
            }
            Event::Attempt(cut) => {
                self.attempt(cut)?;
            }
            Event::Elsewhere => {
                self.attempt(None)?;
                let other = tempfile::tempdir().unwrap();
                let dir = DirCap::open_ambient_dir(other.path(), dir_id()).unwrap();
                let (journal, _) = Journal::open(self.state.path()).unwrap();
                let put = Edit::Put {
                    path: rel("o"),
                    content: b"o\n".to_vec(),
                    mode: 0o644,
                };
                let incoming = journal.incoming(&dir, &[put]).unwrap();
                let done = crate::support::commit_of(&journal, incoming.set().unwrap(), &dir);
                prop_assert!(done.failure.is_none(), "{:?}", done.failure);
                journal.forget(&[done.id.unwrap()]).unwrap();
            }
            Event::Forget => {
                let recovered = self.attempt(None)?;
                if recovered.is_some_and(|recovered| !recovered.unreached.is_empty()) {
                    let (journal, _) = Journal::open(self.state.path()).unwrap();
                    prop_assert_eq!(journal.list_waiting().unwrap().len(), 1);
                    // What could not be put back where that was possible is kept.
                    match journal.forget(&[id]) {
                        Ok(_) => {}
                        Err(ForgetError::Stuck(..)) if !self.lost.is_empty() => {}
                        Err(error) => prop_assert!(false, "{}", error),
                    }
                    prop_assert!(journal.list_waiting().unwrap().is_empty());
                    for root in 0..ROOTS {
                        if !self.is_meant(root) {
                            let left = seen(&self.itself(root)).into_iter();
                            self.left[root] = Some(left.filter(|line| is_no_stage(line)).collect());
                        }
                    }
                }
            }
            Event::Gone(_) | Event::Other(..) | Event::Mistaken(_) | Event::Own(_) => {}
        }
        Ok(())
    }

    fn back(&mut self, root: usize) {
        let at = self.at(root).to_owned();
        if self.places[root] != Place::Itself {
            if self.places[root] == Place::Other {
                fs::remove_dir_all(&at).unwrap();
            }
            fs::rename(apart(&at), &at).unwrap();
            self.places[root] = Place::Itself;
        }
        if self.mistaken[root] {
            self.mistake(root, false);
        }
    }
}

fn is_no_stage(line: &str) -> bool {
    !line.contains(".hermitcrab-")
}

/// Removes what is staged; whether anything was.
fn clean(at: &Path) -> bool {
    let staged: Vec<PathBuf> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains("/.hermitcrab-"))
        .collect();
    staged
        .iter()
        .for_each(|dir| fs::remove_dir_all(dir).unwrap());
    !staged.is_empty()
}

/// The names at which two trees differ.
fn differing(before: &[String], after: &[String]) -> BTreeSet<PathBuf> {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (before.iter().collect(), after.iter().collect());
    let name = |line: &&&String| {
        let place = if line.starts_with('l') { 1 } else { 2 };
        line.split(' ').nth(place).unwrap().into()
    };
    before
        .symmetric_difference(&after)
        .map(|line| name(&line))
        .collect()
}

/// How many steps it takes whole, and what each directory holds then.
fn whole(masks: [u16; ROOTS], is_undo: bool) -> Option<(usize, Vec<Vec<String>>)> {
    let world = World::new()?;
    let state = world.state.path();
    let cut = Cut::after(usize::MAX, At::Stop);
    let (journal, _) = Journal::open_watched(state, Box::new(cut.clone())).unwrap();
    if is_undo {
        let done = world.commit(&journal, masks);
        cut.seen.lock().unwrap().clear();
        world.undo(&journal, done.id.unwrap());
    } else {
        cut.seen.lock().unwrap().clear();
        let done = world.commit(&journal, masks);
        assert!(done.failure.is_none(), "{:?}", done.failure);
    }
    let steps = cut.seen.lock().unwrap().len();
    Some((steps, (0..ROOTS).map(|root| seen(world.at(root))).collect()))
}

fn judge(
    (masks, is_undo): ([u16; ROOTS], bool),
    cut: u16,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let Some((steps, after)) = whole(masks, is_undo) else {
        println!("SKIPPED: /dev/shm cannot be written");
        return Ok(());
    };
    let mut world = World::new().unwrap();
    let mut id = CommitId::new(1);
    if is_undo {
        let (journal, _) = Journal::open(world.state.path()).unwrap();
        let done = world.commit(&journal, masks);
        prop_assert!(done.failure.is_none(), "{:?}", done.failure);
        id = CommitId::new(2);
    }
    let before: Vec<Vec<String>> = (0..ROOTS).map(|root| seen(world.at(root))).collect();
    // What is done at the opening comes first.
    let counting = Cut::after(usize::MAX, At::Stop);
    drop(Journal::open_watched(world.state.path(), Box::new(counting.clone())).unwrap());
    let opening = counting.seen.lock().unwrap().len();
    let cut = Cut::after(opening + usize::from(cut) % steps, At::Stop);
    let (journal, _) = Journal::open_watched(world.state.path(), Box::new(cut)).unwrap();
    match is_undo {
        false => drop(world.commit(&journal, masks)),
        true => drop(world.undo(&journal, CommitId::new(1))),
    }
    drop(journal);
    let entry = world
        .state
        .path()
        .join(format!("journal/{:08}", id.number()));
    let stands = entry.join("committed").exists();
    for event in events {
        world.happens(*event, id)?;
    }
    (0..ROOTS).for_each(|root| world.back(root));
    world.attempt(None)?;
    let recovered = world.attempt(None)?;
    prop_assert!(recovered.unwrap().is_clean());
    for root in 0..ROOTS {
        let now: Vec<String> = seen(world.at(root));
        let expected = match (&world.left[root], stands) {
            (Some(left), _) => left,
            (None, true) => &after[root],
            (None, false) => &before[root],
        };
        // What was given up stays as it was left, and what is staged there is anybody's.
        let is_left = world.left[root].is_some();
        let now = match is_left {
            true => now.into_iter().filter(|line| is_no_stage(line)).collect(),
            false => now,
        };
        prop_assert!(now.iter().all(|line| is_no_stage(line)), "{:?}", now);
        let differing = differing(expected, &now);
        let is_told = |name: &PathBuf| {
            let full = world.at(root).join(name);
            let mut lost = world.lost.iter();
            lost.any(|lost| full.starts_with(lost) || lost.starts_with(&full))
        };
        let is_lost = world.cleaned[root] && !is_left;
        prop_assert!(
            differing.is_empty() || is_lost && differing.iter().all(is_told),
            "{}: {:?}, told: {:?}",
            root,
            differing,
            world.lost
        );
    }
    let own = world
        .dirs
        .iter()
        .flat_map(|dir| fs::read_dir(dir.path()).unwrap());
    let own = own.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().starts_with("own-")
    });
    prop_assert_eq!(own.count(), world.owned);
    Ok(())
}

#[test]
fn whatever_comes_between_each_directory_is_as_before_or_what_is_lost_is_told() {
    let config = ProptestConfig {
        cases: times(128),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let what = (prop::array::uniform2(0..256_u16), any::<bool>());
    let events = prop::collection::vec(event(), 0..7);
    let all = (what, any::<u16>(), events);
    TestRunner::new(config)
        .run(&all, |(what, cut, events)| judge(what, cut, &events))
        .unwrap_or_else(|error| panic!("{error}"));
}

//! Commits in a directory and in one within it, whose ways may be closed by what they do:
//! all or nothing in both, and taken back in both.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::journal::{Commit, CommitId, Part, UndoError};
use hermitcrab_sandbox::spawn::{Ending, Finished, View, ViewMode};
use hermitcrab_sandbox::{DirCap, Journal};

use super::{At, Cut, plant, stray};
use crate::support::arranged::{ORDINARY, Run, twice};
use crate::support::{Workspace, dir_id, on, run, tree, with_permits};

/// A directory, and one within it that has a capability of its own.
pub(super) struct Both {
    pub(super) outer: Workspace,
    pub(super) inner: DirCap,
}

/// More than any of the scripts takes.
const STEPS_MAX: usize = 500;
/// Where the inner one lies.
pub(super) const WITHIN: &str = "way/to/it";

impl Both {
    pub(super) fn new() -> Self {
        let outer = Workspace::new();
        let at = outer.path().join(WITHIN);
        plant(outer.path());
        plant_at(&at);
        let inner = DirCap::open_ambient_dir(&at, dir_id()).unwrap();
        Self { outer, inner }
    }

    pub(super) fn run(&self, script: &str) -> Finished {
        let mut command = self.outer.command(script);
        command.views.push(View {
            dir: &self.inner,
            at: self.outer.path().join(WITHIN),
            mode: ViewMode::CopyOnWrite,
            withheld: Withheld::default(),
        });
        let finished = run(&command).unwrap();
        assert_eq!(finished.ending, Ending::Exited(0), "{script}");
        finished
    }

    pub(super) fn commit(&self, journal: &Journal, finished: &Finished) -> Commit {
        let [outer, inner] = &finished.changes[..] else {
            panic!("two views")
        };
        let mut actions = outer.actions(dir_id()).unwrap();
        actions.extend(inner.actions(dir_id()).unwrap());
        with_permits(hermitcrab_core::tool::Tool::Directory, actions, |permits| {
            let mut permits = permits.into_iter();
            let parts = [(&self.outer.cap, outer), (&self.inner, inner)];
            let parts = parts.map(|(dir, set)| Part {
                dir,
                set,
                permits: permits.by_ref().take(set.changes().len()).collect(),
            });
            journal.commit(parts.into(), "a test")
        })
    }

    fn undo(&self, journal: &Journal, id: CommitId) -> Result<Commit, UndoError> {
        let undo = journal.prepare_undo(id)?;
        let dirs = [(dir_id(), RelPath::root()), (dir_id(), RelPath::root())];
        let actions = undo.actions(&dirs).unwrap();
        Ok(with_permits(
            hermitcrab_core::tool::Tool::Directory,
            actions,
            |permits| journal.undo(&undo, &[&self.outer.cap, &self.inner], permits),
        ))
    }
}

fn plant_at(at: &Path) {
    std::fs::create_dir_all(at).unwrap();
    plant(at);
}

/// The same by the shell itself, where nothing is mounted.
fn directly(script: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    plant(dir.path());
    plant_at(&dir.path().join(WITHIN));
    let status = std::process::Command::new("bash")
        .args(["-c", script])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
    seen_by_its_owner(dir.path())
}

/// What is in a directory, of which parts may be closed to their owner: modes first, the
/// rest once they are opened. They are closed again.
pub(super) fn seen_by_its_owner(at: &Path) -> Vec<String> {
    let closed = ["", "d", "n", "n/m", "way", "way/to", WITHIN, "way/to/it/d"];
    let mut modes = Vec::new();
    for dir in closed.map(|dir| at.join(dir)) {
        let Ok(stat) = dir.symlink_metadata() else {
            continue;
        };
        modes.push((dir.clone(), stat.permissions()));
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    }
    let mut seen = tree(at);
    for (dir, mode) in modes.into_iter().rev() {
        seen.push(format!("{:o}", mode.mode()));
        std::fs::set_permissions(dir, mode).unwrap();
    }
    seen
}

const SCRIPTS: [&str; 9] = [
    "echo 1 > a; echo 2 > way/to/it/a; rm way/to/it/b; mv b way/to/it/new; mv way/to/it/d/x way/y",
    "rm -r d; mv way/to/it/d way/; mkdir way/to/it/n; echo 3 > way/to/it/n/m; ln -sfn e way/to/it/l",
    "cd way/to/it; echo 4 > a; rm -r d; chmod 700 .; cd ../../..; chmod 711 way/to; echo 5 > way/z",
    "cd way/to/it; echo 6 > a; rm -r d; cd ../../..; rm b; chmod 0 way/to; chmod 0 way",
    "echo 7 > d/x; echo 8 > way/to/it/d/x; chmod 600 d way/to/it/d way/to/it; chmod 0 way/to",
    "rm -r d; mkdir d; echo 9 > d/9; chmod 0 d; rm b; echo 9 > way/to/it/a",
    "mkdir -p n/m; echo 9 > n/m/9; chmod 0 n/m; rm b; echo 9 > way/to/it/a; chmod 0 way/to/it",
    "mkdir -p n/m; echo 9 > n/m/9; chmod 600 n/m; echo 9 > way/to/it/a; chmod 600 way .",
    "rm -r d; echo 9 > b; echo 9 > way/to/it/a; chmod 0 .",
];

#[test]
fn a_commit_in_both_cut_off_at_any_step_is_all_or_nothing() {
    let name = "journal::nested::a_commit_in_both_cut_off_at_any_step_is_all_or_nothing";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || SCRIPTS.into_iter().for_each(cut_off_anywhere));
    }
}

fn cut_off_anywhere(script: &str) {
    let both = Both::new();
    let finished = both.run(script);
    let state = both.outer.state.path();
    let before = seen_by_its_owner(both.outer.path());
    let after = directly(script);
    let mut taken_back = 0;
    for steps in 0..STEPS_MAX {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(state, Box::new(cut.clone())).unwrap();
        let done = both.commit(&journal, &finished);
        drop(journal);
        let (journal, recovered) = Journal::open(state).unwrap();
        let listed = journal.list().unwrap().len();
        let context = format!(
            "{script}, cut after {steps} of {:?}: {recovered:?}",
            cut.seen.lock().unwrap()
        );
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "{context}"
        );
        taken_back += recovered.taken_back.len();
        let now = seen_by_its_owner(both.outer.path());
        if done.failure.is_none() || listed == 1 {
            assert_eq!(now, after, "{context}");
            assert!(taken_back > 3, "{taken_back}: {script}");
            return;
        }
        assert_eq!(now, before, "{context}");
        assert_eq!(stray(&both.outer), [""; 0], "{context}");
    }
    panic!("{script}: it takes more steps");
}

#[test]
fn a_commit_in_both_is_taken_back_in_both() {
    let name = "journal::nested::a_commit_in_both_is_taken_back_in_both";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    for script in SCRIPTS {
        let both = Both::new();
        let finished = both.run(script);
        let before = seen_by_its_owner(both.outer.path());
        let (journal, _) = Journal::open(both.outer.state.path()).unwrap();
        let done = both.commit(&journal, &finished);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
        let id = done.id.unwrap();
        let undone = match both.undo(&journal, id) {
            // A person opens what is told, and that is nothing that was changed since.
            Err(error @ UndoError::Closed(..)) => {
                assert!(
                    script.contains("chmod 0 ") || script.contains("chmod 600 way ."),
                    "{script}: {error}"
                );
                for order in error
                    .to_string()
                    .split('`')
                    .filter(|told| told.starts_with("chmod"))
                {
                    let done = std::process::Command::new("sh")
                        .args(["-c", order])
                        .status();
                    assert!(done.unwrap().success(), "{script}: {error}");
                }
                both.undo(&journal, id)
            }
            undone => undone,
        };
        let undone = undone.unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(undone.failure.is_none(), "{script}: {:?}", undone.failure);
        assert_eq!(seen_by_its_owner(both.outer.path()), before, "{script}");
    }
}

//! What a process was killed at whose views are overlays is taken back, and gone on from, by one
//! whose views are copies, and the other way round.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::journal::{Then, Watch};
use hermitcrab_sandbox::{DirCap, Journal};

use super::{commit_in, directly, plant, undo_in};
use crate::support::{Workspace, dir_id, on, tree};

/// What lies in the working directory of the process that is killed: what it is to do.
const CHILD: &str = "hermitcrab-told";

/// Of every kind: a directory in the place of another, of a file, and of a link; names moved,
/// linked and closed; attributes.
const SCRIPT: &str = "echo 1 > a; rm b; mkdir b; echo 2 > b/in; chmod 500 b; rm -r d; mkdir d; echo 3 > d/x; ln d/x d/other; \
                      rm l; mkdir l; mv e moved; chmod 500 moved; ln -s moved e; \
                      setfattr -n user.n -v 1 a 2>/dev/null; true";
const OWN: &str =
    "chmod u+w b; echo own > a; rm -rf d b; mkdir d; echo own > d/x; mkdir own; mv l own/l";

/// Kills this process before a step, as nothing else ends one.
struct Kills(AtomicUsize);

impl Watch for Kills {
    fn before(&self, _: &'static str) -> Then {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 0 {
            let own = rustix::process::getpid();
            let _killed = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        }
        Then::GoOn
    }
}

/// What the process does that is killed.
fn killed(told: &str) {
    let mut told = told.split('\n');
    let mut next = || told.next().unwrap().to_owned();
    let layer = match next().as_str() {
        "overlay" => Layer::Overlay,
        _ => Layer::Copy,
    };
    let steps = next().parse().unwrap();
    let (at, state) = (PathBuf::from(next()), PathBuf::from(next()));
    let mut workspace = Workspace::new();
    workspace.cap = DirCap::open_ambient_dir(&at, dir_id()).unwrap();
    on(layer, || {
        let finished = workspace.run(SCRIPT);
        let kills = Kills(AtomicUsize::new(steps));
        let (journal, _) = Journal::open_watched(&state, Box::new(kills)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_none(), "{:?}", done.failure);
    });
}

fn exchanged(name: &str, first: &str, then: Layer, state_in: Option<&str>) {
    if let Ok(told) = std::fs::read_to_string(CHILD) {
        return killed(&told);
    }
    let (mut halves, mut whole) = (0, 0);
    let every = if state_in.is_some() { 3 } else { 1 };
    for steps in (0..).step_by(every) {
        let mut workspace = Workspace::new();
        if let Some(place) = state_in {
            let Ok(state) = tempfile::tempdir_in(place) else {
                println!("SKIPPED: {place} cannot be written");
                return;
            };
            workspace.state = state;
        }
        plant(workspace.path());
        let before = tree(workspace.path());
        let of_child = tempfile::tempdir().unwrap();
        let (at, state) = (workspace.path().display(), workspace.state.path().display());
        let told = format!("{first}\n{steps}\n{at}\n{state}");
        std::fs::write(of_child.path().join(CHILD), told).unwrap();
        let ran = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .current_dir(of_child.path())
            .env("TMPDIR", of_child.path())
            .output()
            .unwrap();
        let is_over = ran.status.success();
        let told = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(is_over || ran.status.code().is_none(), "{steps}: {told}");
        halves += usize::from(tree(workspace.path()) != before);
        on(then, || {
            let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
            assert!(
                recovered.stuck.is_empty() && recovered.broken.is_empty(),
                "{steps}: {recovered:?}"
            );
            let stands = journal.list().unwrap();
            match stands.len() {
                0 => assert_eq!(tree(workspace.path()), before, "killed at {steps}"),
                _ => assert_eq!(
                    tree(workspace.path()),
                    directly(SCRIPT),
                    "killed at {steps}"
                ),
            }
            let own = commit_in(&journal, &workspace.run(OWN).changes[0], &workspace);
            assert!(own.failure.is_none(), "{steps}: {:?}", own.failure);
            let both = match stands.len() {
                0 => OWN.to_owned(),
                _ => format!("{SCRIPT}; {OWN}"),
            };
            assert_eq!(tree(workspace.path()), directly(&both), "{steps}");
            whole += stands.len();
            let made = stands.iter().map(|kept| kept.id);
            for id in std::iter::once(own.id.unwrap()).chain(made) {
                let undone = undo_in(&journal, id, &workspace).unwrap();
                assert!(undone.failure.is_none(), "{steps}: {:?}", undone.failure);
            }
            assert_eq!(tree(workspace.path()), before, "killed at {steps}");
        });
        if is_over {
            assert!(
                steps > 20 && halves > 2 && whole > 0,
                "{steps} {halves} {whole}"
            );
            return;
        }
    }
}

#[test]
fn what_an_overlays_process_was_killed_at_is_gone_on_from_by_one_with_copies() {
    let name = "journal::exchanged::what_an_overlays_process_was_killed_at_is_gone_on_from_by_one_with_copies";
    exchanged(name, "overlay", Layer::Copy, None);
}

#[test]
fn what_a_process_with_copies_was_killed_at_is_gone_on_from_by_one_with_overlays() {
    let name = "journal::exchanged::what_a_process_with_copies_was_killed_at_is_gone_on_from_by_one_with_overlays";
    exchanged(name, "copy", Layer::Overlay, None);
}

#[test]
fn so_it_is_where_an_overlays_process_keeps_its_journal_elsewhere() {
    let name = "journal::exchanged::so_it_is_where_an_overlays_process_keeps_its_journal_elsewhere";
    exchanged(name, "overlay", Layer::Copy, Some("/dev/shm"));
}

#[test]
fn a_directory_that_was_closed_and_removed_comes_back_as_it_was_and_goes_again() {
    for (made, gone) in [
        (
            "rm b; mkdir b; echo 2 > b/in; chmod 500 b",
            "chmod u+w b; rm -r b",
        ),
        (
            "mkdir n; echo 2 > n/in; chmod 500 n",
            "chmod u+w n; rm -r n",
        ),
    ] {
        let workspace = Workspace::new();
        plant(workspace.path());
        let before = tree(workspace.path());
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let first = commit_in(&journal, &workspace.run(made).changes[0], &workspace);
        assert_eq!(tree(workspace.path()), directly(made));
        let second = commit_in(&journal, &workspace.run(gone).changes[0], &workspace);
        let undone = undo_in(&journal, second.id.unwrap(), &workspace).unwrap();
        assert!(undone.failure.is_none(), "{made}: {:?}", undone.failure);
        assert_eq!(tree(workspace.path()), directly(made));
        let undone = undo_in(&journal, first.id.unwrap(), &workspace).unwrap();
        assert!(undone.failure.is_none(), "{made}: {:?}", undone.failure);
        assert_eq!(tree(workspace.path()), before);
    }
}

//! Commits are all or nothing, wherever they are cut off, and can be undone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod another;
mod closed_way;
mod elsewhere;
mod exchanged;
mod forgotten;
mod half_back;
mod held_up;
mod in_place;
mod listed;
mod lost;
mod model;
mod moved;
mod nested;
mod not_ours;
mod others;
mod power;
mod recorded;
mod taken_back;
mod unreached;
mod versions;

use crate::support;

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::edits::Edit;
use hermitcrab_sandbox::journal::{Then, UndoError, Watch};
use hermitcrab_sandbox::spawn::{Ending, Finished};
use support::{Workspace, commit, commit_in, rel, times, tree, undo_in};

/// What happens at one step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Stop,
    FullDisk,
}

/// Lets so many steps pass, then does that; notes every step it saw.
#[derive(Clone)]
pub(crate) struct Cut {
    left: Arc<AtomicUsize>,
    at: At,
    seen: Arc<Mutex<Vec<&'static str>>>,
}

impl Cut {
    pub(crate) fn after(steps: usize, at: At) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(steps)),
            at,
            seen: Arc::default(),
        }
    }
}

impl Watch for Cut {
    fn before(&self, step: &'static str) -> Then {
        self.seen.lock().unwrap().push(step);
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.wrapping_sub(1))
            })
            .unwrap();
        match (left, self.at) {
            (0, At::Stop) => Then::Stop,
            (0, At::FullDisk) => Then::Fail(io::Error::from(io::ErrorKind::StorageFull)),
            _ => Then::GoOn,
        }
    }
}

/// A number that looks random and is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A small tree to work on.
fn plant(dir: &Path) {
    for (name, content) in [
        ("a", "a\n"),
        ("b", "bb\n"),
        ("d/x", "x\n"),
        ("d/y", "y\n"),
        ("d/s/z", "z\n"),
        ("e/k", "k\n"),
    ] {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::os::unix::fs::symlink("a", dir.join("l")).unwrap();
}

/// A script of some operations on that tree. Each may fail; the rest goes on.
fn script(dice: &mut Dice) -> String {
    const NAMES: [&str; 12] = [
        "a", "b", "d", "d/x", "d/s", "d/s/z", "e", "e/k", "l", "n", "n/m", "d/new",
    ];
    let mut lines = Vec::new();
    for number in 0..3 + dice.roll(6) {
        let mut name = || NAMES[usize::try_from(dice.roll(12)).unwrap()];
        let (one, two) = (name(), name());
        lines.push(match dice.roll(11) {
            0 | 1 => format!("echo {number} > {one}"),
            2 => format!("echo {number} >> {one}"),
            3 => format!("rm -rf {one}"),
            4 => format!("mkdir {one}"),
            5 => format!("mv -T {one} {two}"),
            6 => format!("rm -rf {one}; ln -s {two} {one}"),
            7 => format!("chmod {} {one}", ["700", "755", "750", "711"][usize::try_from(dice.roll(4)).unwrap()]),
            8 => format!("rm -rf {one}; cp -r {two} {one}"),
            9 => format!(
                "python3 -c \"import os; os.setxattr('{one}', 'user.n', b'{number}', follow_symlinks=False)\""
            ),
            _ => format!("rm -rf {one}; mkdir {one}; echo {number} > {one}/f"),
        });
    }
    format!("{{ {}; }} 2>/dev/null; true", lines.join("; "))
}

/// The attribute by which the directories of a plan are known, a line for each.
const MARKS: &str = "user.hermitcrab.roots";

/// Has the directories of a plan be known otherwise; each by its line before.
fn mark(plan: &Path, line: impl Fn(usize, &str) -> String) {
    let mut text = vec![0; 4096];
    let length = rustix::fs::getxattr(plan, MARKS, &mut text[..]).unwrap();
    let text = String::from_utf8(text[..length].to_vec()).unwrap();
    let lines = text.split('\n').enumerate();
    let lines: Vec<String> = lines.map(|(number, before)| line(number, before)).collect();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(plan, MARKS, lines.join("\n").as_bytes(), flags).unwrap();
}

/// Runs it in a view of a fresh workspace.
fn ran(script: &str) -> (Workspace, Finished) {
    let workspace = Workspace::new();
    plant(workspace.path());
    let finished = workspace.run(script);
    assert_eq!(finished.ending, Ending::Exited(0), "{script}");
    (workspace, finished)
}

/// The same by the shell itself, in an ordinary directory.
fn directly(script: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    plant(dir.path());
    let status = std::process::Command::new("bash")
        .args(["-c", script])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
    tree(dir.path())
}

fn stray(workspace: &Workspace) -> Vec<String> {
    let beside = std::fs::read_dir(workspace.path()).unwrap();
    let own = std::fs::read_dir(workspace.state.path().join("journal")).unwrap();
    beside
        .chain(own)
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".hermitcrab-") || name.starts_with("0000"))
        .collect()
}

#[test]
fn a_commit_does_what_the_command_would_have_done_and_undo_takes_it_back() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..24 {
        let script = script(&mut dice);
        let (workspace, finished) = ran(&script);
        let before = tree(workspace.path());
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
        let after = tree(workspace.path());
        assert_eq!(after, directly(&script), "{script}");
        let Some(id) = done.id else {
            assert_eq!(before, after, "{script}");
            continue;
        };
        let undone = undo_in(&journal, id, &workspace).unwrap();
        assert!(undone.failure.is_none(), "{script}: {:?}", undone.failure);
        assert_eq!(tree(workspace.path()), before, "{script}");
        // Taking the undo back brings everything back once more.
        let redone = undo_in(&journal, undone.id.unwrap(), &workspace).unwrap();
        assert!(redone.failure.is_none(), "{script}: {:?}", redone.failure);
        assert_eq!(tree(workspace.path()), after, "{script}");
    }
}

#[test]
fn a_commit_cut_off_at_any_step_is_all_or_nothing_and_leaves_nothing() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut points = 0;
    let mut halves = 0;
    while points < times(400) {
        let script = script(&mut dice);
        let (workspace, finished) = ran(&script);
        let set = &finished.changes[0];
        if set.is_empty() {
            continue;
        }
        let before = tree(workspace.path());
        let after = directly(&script);
        for steps in 0.. {
            let cut = Cut::after(steps, At::Stop);
            let (journal, _) =
                match Journal::open_watched(workspace.state.path(), Box::new(cut.clone())) {
                    Ok(opened) => opened,
                    Err(error) => panic!("{script}: {error}"),
                };
            let done = commit_in(&journal, set, &workspace);
            drop(journal);
            let halfway = tree(workspace.path());
            halves += usize::from(halfway != before && halfway != after);
            let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
            assert!(
                recovered.stuck.is_empty() && recovered.broken.is_empty(),
                "{recovered:?}"
            );
            points += 1;
            let now = tree(workspace.path());
            let context = || {
                format!(
                    "{script}, cut after {steps} of {:?}",
                    cut.seen.lock().unwrap()
                )
            };
            // The last step names the plan as done; what follows is flushing.
            if done.failure.is_some() && now == before {
                assert_eq!(stray(&workspace), [""; 0], "{}", context());
                assert!(journal.list().unwrap().is_empty());
            } else {
                assert_eq!(now, after, "{}", context());
                assert_eq!(stray(&workspace), ["00000001"], "{}", context());
                assert_eq!(journal.list().unwrap().len(), 1);
                break;
            }
        }
    }
    // The cuts did find commits half carried out.
    assert!(halves > 20, "{halves} of {points}");
}

#[test]
fn a_step_that_fails_takes_the_whole_commit_back_at_once() {
    let script = "echo 1 > a; rm b; mkdir n; echo 2 > n/m; chmod 700 d; mv d/x d/w; ln -sfn b l";
    let (workspace, finished) = ran(script);
    let before = tree(workspace.path());
    for steps in 0.. {
        let cut = Cut::after(steps, At::FullDisk);
        let Ok((journal, _)) = Journal::open_watched(workspace.state.path(), Box::new(cut.clone()))
        else {
            continue;
        };
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        let Some(failure) = done.failure else {
            assert_eq!(tree(workspace.path()), directly(script));
            break;
        };
        let context = format!("{steps}: {:?} {failure:?}", cut.seen.lock().unwrap());
        drop(journal);
        let (_, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "{context}"
        );
        assert_eq!(tree(workspace.path()), before, "{context}");
        assert_eq!(stray(&workspace), [""; 0], "{context}");
    }
}

#[test]
fn an_undo_cut_off_at_any_step_is_all_or_nothing() {
    let script = "echo 1 > a; rm b; rm -r d; mkdir n; echo 2 > n/m; chmod 700 e; ln -sfn b l";
    let (workspace, finished) = ran(script);
    let before = tree(workspace.path());
    let done = commit(&finished, &workspace);
    let id = done.id.unwrap();
    let after = tree(workspace.path());
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let undone = undo_in(&journal, id, &workspace).unwrap();
        drop(journal);
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.stuck.is_empty() && recovered.broken.is_empty());
        let now = tree(workspace.path());
        assert_eq!(journal.list().unwrap().len(), 1, "cut after {steps}");
        if undone.failure.is_none() || now != after {
            assert_eq!(now, before, "cut after {steps}");
            break;
        }
    }
}

#[test]
fn an_undo_names_what_changed_since_and_does_nothing() {
    let (workspace, finished) = ran("echo 1 > a; echo 2 > b; rm d/x; mkdir n; echo 3 > n/m");
    let id = commit(&finished, &workspace).id.unwrap();
    workspace.file("a", "mine\n");
    workspace.file("n/more", "mine too\n");
    workspace.file("d/x", "again\n");
    let now = tree(workspace.path());
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let Err(UndoError::Changed(names)) = undo_in(&journal, id, &workspace) else {
        panic!("undone")
    };
    let names: Vec<String> = names.iter().map(|(_, path)| path.to_string()).collect();
    assert_eq!(names, ["a", "d/x", "n"]);
    assert_eq!(tree(workspace.path()), now);
    let before = "a\n";
    std::fs::remove_file(workspace.path().join("n/more")).unwrap();
    std::fs::remove_file(workspace.path().join("d/x")).unwrap();
    workspace.file("a", "1\n");
    let undone = undo_in(&journal, id, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(
        std::fs::read_to_string(workspace.path().join("a")).unwrap(),
        before
    );
}

#[test]
fn a_plan_that_does_not_hold_is_set_aside_and_nothing_is_lost() {
    type Damage = fn(&Path);
    let damages: [Damage; 4] = [
        |plan| std::fs::write(plan, &std::fs::read(plan).unwrap()[..40]).unwrap(),
        |plan| {
            let mut bytes = std::fs::read(plan).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(plan, bytes).unwrap();
        },
        |plan| {
            std::fs::remove_file(plan).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", plan).unwrap();
        },
        |plan| {
            std::fs::remove_file(plan).unwrap();
            std::fs::create_dir(plan).unwrap();
        },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let (workspace, finished) = ran("echo 1 > a; rm b");
        let id = commit(&finished, &workspace).id.unwrap();
        let now = tree(workspace.path());
        damage(&workspace.state.path().join("journal/00000001/committed"));
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert_eq!(recovered.broken.len(), 1, "damage {number}");
        let kept = Path::new(&recovered.broken[0].0);
        assert!(kept.is_dir(), "damage {number}");
        assert_eq!(tree(workspace.path()), now);
        assert!(matches!(
            undo_in(&journal, id, &workspace),
            Err(UndoError::Journal(_))
        ));
        drop(journal);
        let (_, again) = Journal::open(workspace.state.path()).unwrap();
        assert!(again.is_clean());
    }
}

#[test]
fn a_journal_that_is_not_the_agents_is_not_used() {
    let elsewhere = tempfile::tempdir().unwrap();
    let workspace = Workspace::new();
    std::os::unix::fs::symlink(elsewhere.path(), workspace.state.path().join("journal")).unwrap();
    assert!(Journal::open(workspace.state.path()).is_err());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    let workspace = Workspace::new();
    let journal = workspace.state.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&journal, mode).unwrap();
    assert!(Journal::open(workspace.state.path()).is_err());
}

#[test]
fn damaged_copies_are_not_put_back() {
    let (workspace, finished) = ran("echo 1 > a");
    let id = commit(&finished, &workspace).id.unwrap();
    std::fs::write(workspace.state.path().join("journal/00000001/0"), "rot\n").unwrap();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let undone = undo_in(&journal, id, &workspace).unwrap();
    let failure = undone.failure.unwrap();
    assert!(
        failure.error.to_string().contains("damaged"),
        "{}",
        failure.error
    );
    let content = std::fs::read_to_string(workspace.path().join("a")).unwrap();
    assert_eq!(content, "1\n");
}

#[test]
fn an_agents_directory_on_another_file_system_works_the_same() {
    let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: /dev/shm cannot be written");
        return;
    };
    let script = "echo 1 > a; rm b; rm -r d; mkdir n; echo 2 > n/m; chmod 700 e";
    let (mut workspace, finished) = ran(script);
    workspace.state = state;
    let before = tree(workspace.path());
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        drop(journal);
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "{recovered:?}"
        );
        if done.failure.is_some() && tree(workspace.path()) == before {
            assert_eq!(stray(&workspace), [""; 0], "cut after {steps}");
            continue;
        }
        assert_eq!(tree(workspace.path()), directly(script));
        assert_eq!(stray(&workspace), ["00000001"]);
        let id = journal.list().unwrap()[0].id;
        let undone = undo_in(&journal, id, &workspace).unwrap();
        assert!(undone.failure.is_none(), "{:?}", undone.failure);
        assert_eq!(tree(workspace.path()), before);
        break;
    }
}

#[test]
fn an_undo_from_another_file_system_gives_everything_back_to_whom_it_belonged() {
    let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: /dev/shm cannot be written");
        return;
    };
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has files of others");
        return;
    }
    let mut workspace = Workspace::new();
    workspace.state = state;
    for name in ["a", "d/x", "d/y"] {
        workspace.file(name, "old\n");
    }
    let owners = || {
        ["a", "d", "d/x", "d/y"].map(|name| {
            let stat = std::fs::metadata(workspace.path().join(name)).unwrap();
            (stat.uid(), stat.gid())
        })
    };
    for (name, id) in [("a", 1000), ("d/x", 1001)] {
        std::os::unix::fs::chown(workspace.path().join(name), Some(id), Some(id)).unwrap();
    }
    let before = owners();
    let finished = workspace.run("rm a; echo new > a; rm -r d");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert!(!workspace.path().join("d").exists());
    let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(owners(), before);
}

/// Edits of the planted tree, as a tool makes them.
fn edits() -> Vec<Edit> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        Edit::Replace {
            path: rel("a"),
            before: Some(hermitcrab_sandbox::sha256(b"a\n")),
            content: text("A\n"),
        },
        Edit::Remove {
            path: rel("b"),
            before: hermitcrab_sandbox::sha256(b"bb\n"),
        },
        Edit::Rename {
            from: rel("d/x"),
            to: rel("n/o/x"),
            before: hermitcrab_sandbox::sha256(b"x\n"),
            content: text("x\n"),
        },
        Edit::Put {
            path: rel("n/p"),
            content: text("p\n"),
            mode: 0o600,
        },
    ]
}

#[test]
fn edits_cut_off_at_any_step_are_all_or_nothing_and_can_be_undone() {
    let mut halves = 0;
    for steps in 0.. {
        let workspace = Workspace::new();
        plant(workspace.path());
        let before = tree(workspace.path());
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) =
            Journal::open_watched(workspace.state.path(), Box::new(cut.clone())).unwrap();
        let incoming = journal.incoming(&workspace.cap, &edits()).unwrap();
        let done = commit_in(&journal, incoming.set().unwrap(), &workspace);
        drop(incoming);
        drop(journal);
        halves += usize::from(tree(workspace.path()) != before);
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.stuck.is_empty() && recovered.broken.is_empty());
        if tree(workspace.path()) == before {
            assert!(done.failure.is_some() && journal.list().unwrap().is_empty());
            continue;
        }
        let read = |name: &str| std::fs::read_to_string(workspace.path().join(name)).ok();
        assert_eq!(
            ["a", "b", "d/x", "n/o/x", "n/p"].map(read),
            [
                Some("A\n".to_owned()),
                None,
                None,
                Some("x\n".to_owned()),
                Some("p\n".to_owned())
            ]
        );
        let id = journal.list().unwrap().first().unwrap().id;
        let undone = undo_in(&journal, id, &workspace).unwrap();
        assert!(undone.failure.is_none(), "{:?}", undone.failure);
        assert_eq!(tree(workspace.path()), before);
        assert!(steps > 10 && halves > 3, "{steps} steps, {halves} halves");
        break;
    }
}

#[test]
fn an_edit_of_a_file_that_holds_something_else_is_refused_and_leaves_nothing() {
    let workspace = Workspace::new();
    plant(workspace.path());
    std::fs::write(workspace.path().join("a"), "other\n").unwrap();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    assert!(journal.incoming(&workspace.cap, &edits()).is_err());
    let left = std::fs::read_dir(workspace.state.path().join("journal")).unwrap();
    assert_eq!(
        left.filter(|entry| entry.as_ref().unwrap().file_name() != "lock")
            .count(),
        0
    );
}

//! Commits that a person gives up: all of what is kept of them goes, and nothing else.

use std::io::Write as _;

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::{CommitId, ForgetError, JournalError, UndoError};

use super::nested::{Both, WITHIN};
use super::{At, Cut, commit_in, plant, stray, undo_in};
use crate::support::arranged::small_disk;
use crate::support::{Workspace, tree};

fn numbers(journal: &Journal) -> Vec<CommitId> {
    let kept = journal.list().unwrap();
    kept.iter().map(|kept| kept.id).collect()
}

fn ids(numbers: &[u64]) -> Vec<CommitId> {
    numbers.iter().copied().map(CommitId::new).collect()
}

/// A workspace of which these were done one after the other.
fn after(scripts: &[&str]) -> (Workspace, Journal) {
    let workspace = Workspace::new();
    plant(workspace.path());
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    for script in scripts {
        let finished = workspace.run(script);
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
    }
    (workspace, journal)
}

const THREE: [&str; 3] = ["echo 1 > a", "rm -r d", "echo 3 > b; mkdir n"];

#[test]
fn what_is_forgotten_is_gone_and_the_rest_can_be_taken_back() {
    let (workspace, journal) = after(&THREE);
    let now = tree(workspace.path());
    let kept = journal.list().unwrap();
    assert_eq!(kept[0].bytes, 2, "what `a` held");
    journal.forget(&ids(&[3, 1])).unwrap();
    assert_eq!(numbers(&journal), ids(&[2]));
    assert_eq!(tree(workspace.path()), now, "no file of anybody's");
    for gone in [1, 3] {
        let none = undo_in(&journal, CommitId::new(gone), &workspace);
        assert!(
            matches!(none, Err(UndoError::Journal(JournalError::Unknown(_)))),
            "{none:?}"
        );
    }
    let undone = undo_in(&journal, CommitId::new(2), &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert!(workspace.path().join("d/s/z").exists());
    // No number is given twice: a session may know the other one by it.
    assert_eq!(undone.id, Some(CommitId::new(4)));
}

#[test]
fn a_number_is_not_given_again_when_all_is_forgotten() {
    let (workspace, journal) = after(&THREE);
    journal.forget(&ids(&[1, 2, 3])).unwrap();
    drop(journal);
    for number in 4..6 {
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
        assert_eq!(numbers(&journal), []);
        let script = format!("echo {number} > a");
        let done = commit_in(&journal, &workspace.run(&script).changes[0], &workspace);
        assert_eq!(done.id, Some(CommitId::new(number)));
        journal.forget(&ids(&[number])).unwrap();
    }
    // Of one note there is the next, and nothing else.
    assert_eq!(stray(&workspace), [""; 0]);
    let names = std::fs::read_dir(workspace.state.path().join("journal")).unwrap();
    let notes = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    let notes: Vec<String> = notes.filter(|name| name.starts_with("last-")).collect();
    assert_eq!(notes, ["last-00000005"]);
}

#[test]
fn where_one_of_them_is_not_there_none_goes() {
    let (_workspace, journal) = after(&THREE);
    let none = journal.forget(&ids(&[1, 2, 9])).unwrap_err();
    assert!(
        matches!(none, ForgetError::Journal(JournalError::Unknown(id)) if id == CommitId::new(9)),
        "{none}"
    );
    assert_eq!(numbers(&journal), ids(&[1, 2, 3]));
}

#[test]
fn forgetting_that_is_cut_off_anywhere_leaves_a_journal_that_opens() {
    for at in [At::Stop, At::FullDisk] {
        for steps in 0.. {
            let (workspace, journal) = after(&THREE);
            let now = tree(workspace.path());
            drop(journal);
            let cut = Cut::after(steps, at);
            let (cutting, _) =
                Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
            let forgot = cutting.forget(&ids(&[2, 3]));
            if let Err(ForgetError::Partly(gone, _)) = &forgot {
                assert_eq!(*gone, ids(&[2]), "{steps}");
            }
            drop(cutting);
            let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
            assert!(recovered.is_clean(), "{steps}: {recovered:?}");
            assert_eq!(tree(workspace.path()), now, "{steps}");
            let left = numbers(&journal);
            assert!(left.contains(&CommitId::new(1)), "{steps}: {left:?}");
            if forgot.is_ok() {
                assert_eq!(left, ids(&[1]), "{steps}");
            }
            // Whatever is left can be taken back, the newest first, and no number is reused.
            for (place, id) in left.iter().rev().enumerate() {
                let undone = undo_in(&journal, *id, &workspace).unwrap();
                assert!(undone.failure.is_none(), "{steps}: {:?}", undone.failure);
                let next = CommitId::new(4 + u64::try_from(place).unwrap());
                assert_eq!(undone.id, Some(next), "cut after {steps}");
            }
            if forgot.is_ok() {
                assert!(steps > 10);
                break;
            }
        }
    }
}

#[test]
fn what_is_half_done_is_taken_back_and_not_forgotten() {
    let (workspace, journal) = after(&THREE[..1]);
    let before = tree(workspace.path());
    let finished = workspace.run("rm -r d; echo 2 > b; echo 2 > a");
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (other, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&other, &finished.changes[0], &workspace);
        drop(other);
        if done.failure.is_none() {
            break;
        }
        let forgot = journal.forget(&ids(&[2]));
        if tree(workspace.path()) == before {
            assert!(forgot.is_err(), "{steps}");
            assert_eq!(numbers(&journal), ids(&[1]), "{steps}");
        } else {
            // Where the last thing that was cut off was to say so, it had finished.
            forgot.unwrap();
            break;
        }
    }
}

#[test]
fn what_could_not_be_taken_back_whole_is_not_forgotten() {
    let (workspace, journal) = after(&THREE[..1]);
    drop(journal);
    let finished = workspace.run("echo 2 > b; echo 2 > a");
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (other, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&other, &finished.changes[0], &workspace);
        assert!(done.failure.is_some(), "nothing was cut off in the midst");
        drop(other);
        if std::fs::read_to_string(workspace.path().join("b")).unwrap() == "2\n" {
            std::fs::write(workspace.path().join("b"), "theirs\n").unwrap();
            break;
        }
        let (_journal, _) = Journal::open(workspace.state.path()).unwrap();
        assert!(steps < 1000);
    }
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert_eq!(recovered.stuck.len(), 1, "{recovered:?}");
    let both = numbers(&journal);
    assert_eq!(both, ids(&[1, 2]));
    let refused = journal.forget(&both).unwrap_err();
    let ForgetError::Stuck(id, place, _) = &refused else {
        panic!("{refused}")
    };
    assert_eq!(*id, CommitId::new(2));
    assert!(std::path::Path::new(place).is_dir(), "{place}");
    assert_eq!(numbers(&journal), both);
}

/// The journal's disk really is full: in memory, of two megabytes.
#[test]
fn on_a_full_disk_what_is_forgotten_makes_room() {
    let name = "journal::forgotten::on_a_full_disk_what_is_forgotten_makes_room";
    let Some(small) = small_disk(name) else {
        return;
    };
    let mut workspace = Workspace::new();
    workspace.state = tempfile::tempdir_in(&small).unwrap();
    workspace.file("one", &"x".repeat(700_000));
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = commit_in(
        &journal,
        &workspace.run("echo 1 > one").changes[0],
        &workspace,
    );
    let first = done.id.unwrap();
    let mut filled = std::fs::File::create(small.join("fill")).unwrap();
    while filled.write(&[0; 4096]).is_ok() {}
    drop(journal);
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    workspace.file("two", &"x".repeat(100_000));
    let script = workspace.run("echo 2 > two");
    let failed = commit_in(&journal, &script.changes[0], &workspace);
    assert!(failed.failure.is_some());
    journal.forget(&[first]).unwrap();
    let done = commit_in(&journal, &script.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(done.id, Some(CommitId::new(2)));
}

/// A commit that was cut off halfway, in a directory that has another name now.
fn waiting() -> (Workspace, std::path::PathBuf) {
    let (workspace, journal) = after(&[]);
    drop(journal);
    let finished = workspace.run("echo 2 > b; echo 2 > a; rm -r d");
    let before = tree(workspace.path());
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_some(), "nothing was cut off in the midst");
        if tree(workspace.path()) != before {
            break;
        }
    }
    let aside = workspace.path().with_extension("aside");
    std::fs::rename(workspace.path(), &aside).unwrap();
    (workspace, aside)
}

#[test]
fn what_waits_for_what_is_gone_for_good_is_forgotten_by_its_number() {
    let (workspace, aside) = waiting();
    let half = tree(&aside);
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    let told = recovered.unreached[0].to_string();
    assert!(told.contains("`hermitcrab undo --forget 1`"), "{told}");
    assert_eq!(numbers(&journal), []);
    let waiting = journal.list_waiting().unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (waiting[0].id, waiting[0].touched.len()),
        (CommitId::new(1), 7)
    );
    journal.forget(&ids(&[1])).unwrap();
    assert!(journal.list_waiting().unwrap().is_empty());
    assert!(journal.take_recovered().is_clean());
    let again = journal.forget(&ids(&[1])).unwrap_err();
    assert!(
        matches!(again, ForgetError::Journal(JournalError::Unknown(_))),
        "{again}"
    );
    drop(journal);
    // Nothing is told any more, and nothing is done when it is there again after all.
    for _ in 0..2 {
        let (_, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
        if aside.exists() {
            std::fs::rename(&aside, workspace.path()).unwrap();
        }
    }
    assert_eq!(tree(workspace.path()), half);
    assert_eq!(stray(&workspace), [""; 0]);
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = commit_in(
        &journal,
        &workspace.run("echo 3 > a").changes[0],
        &workspace,
    );
    assert_eq!(done.id, Some(CommitId::new(2)), "{:?}", done.failure);
}

#[test]
fn what_is_back_when_it_is_to_be_forgotten_is_taken_back_instead() {
    let (workspace, aside) = waiting();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    std::fs::rename(&aside, workspace.path()).unwrap();
    journal.forget(&ids(&[1])).unwrap();
    assert_eq!(journal.take_recovered().taken_back, ids(&[1]));
    assert_eq!(
        (workspace.read("a"), workspace.read("b")),
        ("a\n".into(), "bb\n".into())
    );
    // What its owner changed is not given up.
    let (workspace, aside) = waiting();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    for name in ["a", "b"] {
        std::fs::write(aside.join(name), "theirs\n").unwrap();
    }
    std::fs::create_dir(aside.join("d")).ok();
    std::fs::rename(&aside, workspace.path()).unwrap();
    let refused = journal.forget(&ids(&[1])).unwrap_err();
    assert!(matches!(refused, ForgetError::Stuck(..)), "{refused}");
    assert_eq!(numbers(&journal), ids(&[1]));
    assert!(journal.list_waiting().unwrap().is_empty());
}

#[test]
fn forgetting_what_waits_that_is_cut_off_leaves_it_whole_or_gone() {
    for at in [At::Stop, At::FullDisk] {
        for steps in 0.. {
            let (workspace, aside) = waiting();
            let state = workspace.state.path();
            Journal::open(state).unwrap();
            let cut = Cut::after(steps, at);
            let seen = cut.clone();
            let forgot = match Journal::open_watched(state, Box::new(cut)) {
                Ok((journal, _)) => journal.forget(&ids(&[1])),
                Err(error) => Err(ForgetError::Journal(error)),
            };
            let (_, recovered) = Journal::open(state).unwrap();
            assert!(
                recovered.broken.is_empty() && recovered.stuck.is_empty(),
                "{recovered:?}"
            );
            let half = tree(&aside);
            std::fs::rename(&aside, workspace.path()).unwrap();
            let (_, taken_back) = Journal::open(state).unwrap();
            match recovered.unreached.is_empty() {
                true => assert_eq!(tree(workspace.path()), half, "cut after {steps}"),
                false => assert_eq!(taken_back.taken_back, ids(&[1]), "cut after {steps}"),
            }
            assert_eq!(stray(&workspace), [""; 0], "cut after {steps}");
            if forgot.is_ok() {
                assert!(recovered.is_clean(), "{steps}: {recovered:?}");
            }
            if seen.seen.lock().unwrap().len() <= steps {
                assert!(forgot.is_ok() && steps > 10, "{steps}: {forgot:?}");
                break;
            }
        }
    }
}

/// Where things are staged beside workspaces: what is reached is as before and clean, and what
/// somebody changed there is kept whatever else is given up.
#[test]
fn giving_up_one_of_two_directories_leaves_nothing_in_the_other_and_loses_nothing_of_it() {
    for is_theirs in [false, true] {
        let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
            println!("SKIPPED: /dev/shm cannot be written");
            return;
        };
        let mut both = Both::new();
        both.outer.state = state;
        let (top, state) = (both.outer.path(), both.outer.state.path());
        let (within, aside) = (top.join(WITHIN), top.join("aside"));
        let own = |seen: Vec<String>| -> Vec<String> {
            let lines = seen.into_iter();
            let is_own = |line: &String| !line.contains(WITHIN) && !line.contains(" aside");
            lines.filter(is_own).collect()
        };
        let before = own(tree(top));
        let script = format!("echo 1 > a; rm b; echo 2 > {WITHIN}/a; rm {WITHIN}/b");
        let finished = both.run(&script);
        for steps in 0.. {
            let cut = Cut::after(steps, At::Stop);
            let (journal, _) = Journal::open_watched(state, Box::new(cut)).unwrap();
            assert!(both.commit(&journal, &finished).failure.is_some());
            if std::fs::read_to_string(within.join("a")).unwrap() == "2\n" {
                break;
            }
        }
        std::fs::rename(&within, &aside).unwrap();
        if is_theirs {
            std::fs::write(top.join("a"), "theirs\n").unwrap();
        }
        let half = tree(&aside);
        let (journal, recovered) = Journal::open(state).unwrap();
        assert_eq!(recovered.unreached.len(), 1, "{recovered:?}");
        let forgot = journal.forget(&ids(&[1]));
        assert!(journal.list_waiting().unwrap().is_empty());
        if is_theirs {
            let Err(ForgetError::Stuck(_, place, _)) = forgot else {
                panic!("{forgot:?}")
            };
            let kept = std::fs::read_to_string(std::path::Path::new(&place).join("0"));
            assert_eq!(kept.unwrap(), "a\n", "{place}");
            assert_eq!(both.outer.read("a"), "theirs\n");
            assert!(journal.list().unwrap()[0].is_stuck);
            std::fs::write(top.join("a"), "a\n").unwrap();
        } else {
            forgot.unwrap();
            assert_eq!(numbers(&journal), []);
        }
        drop(journal);
        assert_eq!(own(tree(top)), before);
        // What lies in the other stays there, whatever comes of it.
        std::fs::rename(&aside, &within).unwrap();
        let (_, recovered) = Journal::open(state).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
        assert_eq!(tree(&within), half);
    }
}

//! What others left, what is left behind where a disk is full, and what a person is told.

use std::path::PathBuf;

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::StuckWhy;

use super::nested::{Both, WITHIN};
use super::{At, Cut, commit_in, directly, plant, ran, stray, undo_in};
use crate::support::arranged::small_disk;
use crate::support::{Workspace, tree};

#[test]
fn what_another_was_killed_at_is_taken_back_before_anything_is_done_on_it() {
    let script = "echo 1 > a; rm b; rm -r d; mkdir n; echo 2 > n/m; chmod 700 e";
    let own = "echo own > own; echo l > e/k";
    for steps in 0.. {
        let (workspace, finished) = ran(script);
        let before = tree(workspace.path());
        // Opened before the other one begins, as that of a session beside it.
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let mine = workspace.run(own);
        let cut = Cut::after(steps, At::Stop);
        let (other, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&other, &finished.changes[0], &workspace);
        drop(other);
        if done.failure.is_none() {
            break;
        }
        let done = commit_in(&journal, &mine.changes[0], &workspace);
        // Where the last thing that was cut off was to say so, the other one had finished.
        if tree(workspace.path()) != directly(&format!("{script}; {own}")) {
            assert!(done.failure.is_none(), "{steps}: {:?}", done.failure);
            assert_eq!(tree(workspace.path()), directly(own), "cut after {steps}");
            let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
            assert!(undone.failure.is_none(), "{steps}: {:?}", undone.failure);
            assert_eq!(tree(workspace.path()), before, "cut after {steps}");
        }
        let found = journal.take_recovered();
        assert!(found.stuck.is_empty() && found.broken.is_empty(), "{steps}");
        let (_journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.is_clean(), "{steps}: {recovered:?}");
    }
}

#[test]
fn where_one_of_two_directories_takes_nothing_nothing_is_left_in_the_other() {
    let Ok(state) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: /dev/shm cannot be written");
        return;
    };
    let mut both = Both::new();
    both.outer.state = state;
    let finished = both.run(&format!("echo 1 > a; echo 2 > {WITHIN}/b"));
    let before = tree(both.outer.path());
    let mut failed = 0;
    for steps in 0.. {
        let cut = Cut::after(steps, At::FullDisk);
        let state = both.outer.state.path();
        let (journal, _) = Journal::open_watched(state, Box::new(cut)).unwrap();
        if both.commit(&journal, &finished).failure.is_none() {
            break;
        }
        failed += 1;
        assert_eq!(tree(both.outer.path()), before, "full after {steps}");
        assert_eq!(stray(&both.outer), [""; 0], "full after {steps}");
        let within = std::fs::read_dir(both.outer.path().join(WITHIN)).unwrap();
        for entry in within {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with(".hermitcrab-"), "full after {steps}");
        }
    }
    assert!(failed > 10);
}

#[test]
fn what_could_not_be_put_back_is_told_with_its_directory_and_where_the_version_before_is() {
    let both = Both::new();
    let finished = both.run(&format!(
        "echo 1 > a; echo 2 > {WITHIN}/a; echo 3 > {WITHIN}/b"
    ));
    let at = both.outer.path().join(WITHIN).join("a");
    let mut told = Vec::new();
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(both.outer.state.path(), Box::new(cut)).unwrap();
        let done = both.commit(&journal, &finished);
        drop(journal);
        let is_there = std::fs::read_to_string(&at).unwrap() == "2\n";
        if done.failure.is_none() {
            break;
        }
        if is_there {
            std::fs::write(&at, "theirs\n").unwrap();
        }
        let (_, recovered) = Journal::open(both.outer.state.path()).unwrap();
        told.extend(recovered.stuck.into_iter().flat_map(|(_, stuck)| stuck));
        if is_there {
            assert_eq!(std::fs::read_to_string(&at).unwrap(), "theirs\n");
            break;
        }
    }
    let [stuck] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(stuck.at, at);
    let StuckWhy::Changed(Some(kept)) = &stuck.why else {
        panic!("{stuck:?}")
    };
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "a\n");
    let said = stuck.to_string();
    assert!(said.contains(&format!("`{}`", at.display())), "{said}");
    assert!(said.contains(&format!("`{}`", kept.display())), "{said}");
}

/// The journal's disk really is full: in memory, of two megabytes.
#[test]
fn on_a_disk_without_room_nothing_is_half_done_and_what_was_done_before_can_be_taken_back() {
    let name = "journal::others::on_a_disk_without_room_nothing_is_half_done_and_what_was_done_before_can_be_taken_back";
    let Some(small) = small_disk(name) else {
        return;
    };
    let mut workspace = Workspace::new();
    workspace.state = tempfile::tempdir_in(&small).unwrap();
    plant(workspace.path());
    for (name, length) in [("one", 700_000), ("two", 700_000), ("three", 1_500_000)] {
        workspace.file(name, &"x".repeat(length));
    }
    let free = || rustix::fs::statvfs(&small).unwrap().f_bavail;
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let before = tree(workspace.path());
    let done = commit_in(
        &journal,
        &workspace.run("echo 1 > one; rm -r d").changes[0],
        &workspace,
    );
    let first = done.id.unwrap();
    let after = tree(workspace.path());
    // Each displaces more than there is room for.
    for script in [
        "echo 3 > three; rm -r e",
        "rm two three",
        "rm -rf ./*",
        "echo 2 > two; rm three",
    ] {
        let left = free();
        let finished = workspace.run(script);
        let failure = commit_in(&journal, &finished.changes[0], &workspace)
            .failure
            .expect(script);
        assert!(
            failure.error.to_string().contains("No space"),
            "{script}: {}",
            failure.error
        );
        assert_eq!((failure.part, failure.stuck), (None, vec![]), "{script}");
        assert_eq!(tree(workspace.path()), after, "{script}");
        assert_eq!(free(), left, "{script}: what it took is free again");
        assert_eq!(stray(&workspace), ["00000001"], "{script}");
    }
    // Not one page is left, and yet.
    let fill: PathBuf = small.join("fill");
    let mut filled = std::fs::File::create(&fill).unwrap();
    while std::io::Write::write(&mut filled, &[0; 4096]).is_ok() {}
    let finished = workspace.run("echo 2 > two");
    let failure = commit_in(&journal, &finished.changes[0], &workspace)
        .failure
        .unwrap();
    assert_eq!(failure.stuck, []);
    assert_eq!(tree(workspace.path()), after);
    assert!(
        undo_in(&journal, first, &workspace)
            .unwrap()
            .failure
            .is_some()
    );
    assert_eq!(tree(workspace.path()), after);
    drop(journal);
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert!(recovered.is_clean(), "{recovered:?}");
    // With a little room it is taken back: what comes back goes to the workspace's disk.
    filled.set_len(0).unwrap();
    let undone = undo_in(&journal, first, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(tree(workspace.path()), before);
}

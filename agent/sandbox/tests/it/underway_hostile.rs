//! What a command, its user and the machine may do while what it made is carried over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;
use crate::underway::{EndsAt, listed, started};

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::Portion;
use hermitcrab_sandbox::journal::{Then, Watch};
use support::{Workspace, children, commit_in, on_disk};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives two names each other's thing at once: 2 is `RENAME_EXCHANGE`.
const EXCHANGE: &str = "import ctypes, os, random, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    done = libc.renameat2(-100, one.encode(), -100, other.encode(), 2)
    if done: raise OSError(ctypes.get_errno(), one)
";

#[test]
fn directories_that_are_exchanged_all_the_time_hold_all_they_held() {
    let workspace = Workspace::new();
    workspace.file(
        "exchange.py",
        &format!(
            "{EXCHANGE}
for name in ('x', 'y', 'deep/z'):
    os.makedirs('new/' + name)
    for place in range(5):
        open(f'new/{{name}}/{{place}}', 'w').write(f'{{name}} {{place}}')
print('begun', flush=True)
while True:
    for one, other in (('x', 'y'), ('deep/z', 'x'), ('y', 'deep/z')):
        exchange('new/' + one, 'new/' + other)
        time.sleep(random.random() / 2000)
"
        ),
    );
    let mut command = started(&workspace, "python3 -u exchange.py; echo failed");
    command.says("begun");
    let held = |of: &Path| {
        let mut held: Vec<String> = Vec::new();
        for name in ["new/x", "new/y", "new/deep/z"] {
            for place in 0..5 {
                held.extend(std::fs::read_to_string(of.join(name).join(place.to_string())).ok());
            }
        }
        held.sort();
        held
    };
    let (mut looks, begun) = (0, Instant::now());
    while looks < 200 && begun.elapsed() < PATIENCE {
        let is_over = command.running.attend(Duration::ZERO, |_, _| {});
        assert!(!is_over.unwrap(), "an exchange failed");
        let _kept = command.keep();
        looks += 1;
    }
    let (finished, journal) = command.ended();
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    let mut all = Vec::new();
    for name in ["x", "y", "deep/z"] {
        all.extend((0..5).map(|place| format!("{name} {place}")));
    }
    all.sort();
    assert_eq!(held(workspace.path()), all);
}

#[test]
fn of_two_that_write_one_file_the_second_overwrites_nothing_it_has_not_seen() {
    let workspace = Workspace::new();
    for name in ["both", "gone"] {
        workspace.file(name, "old\n");
    }
    let mut one = started(
        &workspace,
        "echo one >> both; echo one > new; rm gone; echo first; sleep 600",
    );
    let mut other = started(
        &workspace,
        "echo other >> both; echo other > new; echo other >> gone; echo first; sleep 600",
    );
    one.says("first");
    other.says("first");
    assert_eq!(one.keep().unwrap().len(), 3);
    // What both changed is left for the end, at every look; what one removed and the
    // other wrote is there.
    let kept: Vec<String> = (0..3)
        .flat_map(|_| other.keep().unwrap_or_default())
        .collect();
    assert_eq!(kept, ["fs.create gone"]);
    assert_eq!(workspace.read("gone"), "old\nother\n");
    assert_eq!(workspace.read("both"), "old\none\n");
    assert_eq!(workspace.read("new"), "one\n");
    let (finished, journal) = other.ended();
    let (_, denial) = finished.changes[0].never_kept().unwrap();
    assert_eq!(denial.code().to_string(), "changed-since-shown");
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(commit.failure.is_some());
    assert_eq!(workspace.read("both"), "old\none\n");
    let (finished, _journal) = one.ended();
    assert_eq!(listed(&finished.changes[0]), Vec::<String>::new());
}

/// Kills the spawner before the step of this name.
struct Kills(&'static str, AtomicBool);

impl Watch for Kills {
    fn before(&self, step: &'static str) -> Then {
        if step == self.0 && !self.1.swap(true, Ordering::Relaxed) {
            for child in children() {
                let pid = rustix::process::Pid::from_raw(child).unwrap();
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            // Long enough for all of it to be gone.
            std::thread::sleep(Duration::from_millis(100));
        }
        Then::GoOn
    }
}

#[test]
fn what_is_carried_over_while_the_spawner_is_killed_is_whole() {
    for step in ["stage a file", "write a plan", "put in place"] {
        let workspace = Workspace::new();
        workspace.file("gone", "gone\n");
        let mut command = started(
            &workspace,
            "mkdir d; echo one > d/one; echo two > two; rm gone; echo first; sleep 600",
        );
        command.says("first");
        let watch = Box::new(Kills(step, AtomicBool::new(false)));
        command.journal = Journal::open_watched(command.state.path(), watch)
            .unwrap()
            .0;
        let kept = command.keep();
        let there = |name: &str| workspace.path().join(name).exists();
        let all = [there("d/one"), there("two"), !there("gone")];
        assert_eq!(all, [kept.is_some(); 3], "{step}: {kept:?}");
        // Nor is it told a second time, if the end can be told at all.
        command.running.kill();
        if let Ok(finished) = command.running.wait() {
            let changes = listed(&finished.changes[0]);
            assert_eq!(changes.is_empty(), kept.is_some(), "{step}: {changes:?}");
        }
    }
}

#[test]
fn a_directory_of_the_users_that_was_empty_is_theirs_with_a_file_in_it_and_without() {
    let workspace = Workspace::new();
    for name in ["empty", "deep/empty", "taken"] {
        std::fs::create_dir_all(workspace.path().join(name)).unwrap();
    }
    let mut command = started(
        &workspace,
        "for d in empty deep/empty taken; do echo x > $d/made; done; echo first; \
         read -r line; rm empty/made deep/empty/made; rmdir deep/empty; echo y > taken/late; echo second; sleep 600",
    );
    command.says("first");
    let stdin = std::fs::File::from(command.running.take_stdin().unwrap());
    let kept = command.keep().unwrap();
    assert_eq!(
        kept,
        [
            "fs.create deep/empty/made",
            "fs.create empty/made",
            "fs.create taken/made"
        ]
    );
    // The user's own hand is in one of them by then.
    workspace.file("deep/empty/theirs", "theirs\n");
    std::fs::remove_dir_all(workspace.path().join("taken")).unwrap();
    std::io::Write::write_all(&mut &stdin, b"\n").unwrap();
    command.says("second");
    let _kept = command.keep();
    assert!(workspace.path().join("empty").is_dir());
    assert_eq!(workspace.read("deep/empty/theirs"), "theirs\n");
    let (finished, journal) = command.ended();
    let _commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(workspace.path().join("empty").is_dir());
    assert!(!workspace.path().join("empty/made").exists());
    assert_eq!(workspace.read("deep/empty/theirs"), "theirs\n");
}

#[test]
fn what_takes_the_place_of_something_else_is_carried_over_whole_wherever_it_is_cut_off() {
    let workspace = Workspace::new();
    workspace.file("was-dir/in", "in\n");
    workspace.file("was-file", "file\n");
    workspace.file("z/keeps", "keeps\n");
    let mut command = started(
        &workspace,
        "mv was-dir/in a; rmdir was-dir; echo now > was-dir; \
         mv was-file z/moved; mkdir was-file; mv z/keeps was-file/keeps; echo first; sleep 600",
    );
    command.says("first");
    let there = || {
        let names = [
            "was-dir/in",
            "was-file",
            "z/keeps",
            "a",
            "was-dir",
            "z/moved",
            "was-file/keeps",
        ];
        names.map(|name| std::fs::read_to_string(workspace.path().join(name)).ok())
    };
    let (before, mut cut) = (there(), 0);
    loop {
        let watch = Box::new(EndsAt(AtomicU32::new(cut)));
        let opened = Journal::open_watched(command.state.path(), watch);
        command.journal = opened.unwrap().0;
        let kept = command.keep();
        let (journal, recovered) = Journal::open(command.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "{recovered:?}"
        );
        command.journal = journal;
        if kept.is_some() || there() != before {
            break;
        }
        cut += 1;
        assert!(cut < 500);
    }
    assert!(cut > 10, "{cut}");
    let text = |text: &str| Some(text.to_owned());
    let after = [
        None,
        None,
        None,
        text("in\n"),
        text("now\n"),
        text("file\n"),
        text("keeps\n"),
    ];
    assert_eq!(there(), after);
}

#[test]
fn a_look_tells_a_portion_and_what_is_gone_with_the_last_of_them() {
    let workspace = Workspace::new();
    for place in 0..40 {
        workspace.file(&format!("old/{place:02}"), &format!("{place}\n"));
    }
    let mut command = started(
        &workspace,
        "mkdir new; mv old/* new; rm -r old; ln new/07 new/link; ln -s 07 new/soft; echo first; sleep 600",
    );
    command.says("first");
    let portion = Portion {
        names: 10,
        bytes: 1 << 20,
    };
    let mut told = Vec::new();
    loop {
        let look = command.underway.some_of_it(portion).unwrap();
        let has_more = look.has_more();
        told.push(listed(&look.sets()[0]));
        let commit = commit_in(&command.journal, &look.sets()[0], &workspace);
        assert!(commit.failure.is_none(), "{commit:?}");
        look.stands();
        if !has_more {
            break;
        }
        assert!(told.len() < 20, "{told:?}");
    }
    let (last, first) = told.split_last().unwrap();
    let is_gone = |change: &String| change.starts_with("fs.delete");
    assert!(!first.iter().flatten().any(is_gone), "{told:?}");
    assert_eq!(last.iter().filter(|change| is_gone(change)).count(), 41);
    // Both names of one file are told at once, whatever room there is.
    let both = |told: &Vec<String>| {
        let names = ["fs.create new/07", "fs.create new/link"];
        names.map(|name| told.iter().any(|change| change == name))
    };
    assert!(told.iter().any(|told| both(told) == [true; 2]), "{told:?}");
    assert!(told.len() >= 5, "{told:?}");
    assert!(told.iter().all(|told| told.len() <= 43), "{told:?}");
    let (finished, _journal) = command.ended();
    assert_eq!(listed(&finished.changes[0]), Vec::<String>::new());
}

#[test]
fn a_tree_that_is_gone_and_too_large_to_look_at_waits_for_the_end() {
    let workspace = Workspace::new();
    for place in 0..10_001 {
        workspace.file(&format!("large/{}/{place}", place % 100), "");
    }
    workspace.file("small/in", "in\n");
    let mut command = started(&workspace, "rm -r large small; echo first; sleep 600");
    command.says("first");
    assert_eq!(
        command.keep().unwrap(),
        ["fs.delete small/in", "fs.delete small"]
    );
    assert!(workspace.path().join("large/7/7").exists());
    let look = command.underway.so_far().unwrap();
    assert!(!look.has_more());
    drop(look);
    let (finished, journal) = command.ended();
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    assert!(!workspace.path().join("large").exists());
}

#[test]
fn directories_that_somebody_removed_or_moved_away_stay_gone() {
    for kind in ["in memory", "on disk"] {
        let test = || gone_for_good(kind);
        match kind {
            "on disk" => on_disk(test),
            _ => test(),
        }
    }
}

fn gone_for_good(kind: &str) {
    let workspace = Workspace::new();
    for name in [
        "side/s",
        "deep/a/b",
        "late/l",
        "moved/x/y",
        "own/theirs",
        "own/e/theirs",
    ] {
        workspace.file(name, "theirs\n");
    }
    let mut command = started(
        &workspace,
        "cat */* */*/* > /dev/null 2>&1; ls -R > /dev/null; echo mine > own/e/mine; echo first; \
         read -r line; echo \"<$(cat side/s deep/a/b late/l new/n/f own/theirs 2> /dev/null)>\"; echo second; sleep 600",
    );
    command.says("first");
    let stdin = std::fs::File::from(command.running.take_stdin().unwrap());
    let brings = |names: &[&str]| {
        for name in names {
            command.underway.bring(0, &support::rel(name));
        }
    };
    workspace.file("new/n/f", "f\n");
    brings(&["new", "new/n", "new/n/f"]);
    // As a commit brings it, with a look before it goes again.
    let aside = tempfile::tempdir_in(workspace.path().parent().unwrap()).unwrap();
    let came = (aside.path().join("came"), workspace.path().join("came"));
    std::fs::create_dir_all(came.0.join("n")).unwrap();
    std::fs::write(came.0.join("n/f"), "f\n").unwrap();
    std::fs::rename(&came.0, &came.1).unwrap();
    brings(&["came/n/f", "came/n", "came"]);
    let kept = command.keep().unwrap();
    assert_eq!(kept, ["fs.create own/e/mine"], "{kind}");
    std::fs::rename(&came.1, &came.0).unwrap();
    brings(&["came"]);
    // While it lies in something that is there still.
    std::fs::remove_file(workspace.path().join("late/l")).unwrap();
    brings(&["late/l"]);
    for name in ["side", "deep", "late", "new", "own"] {
        std::fs::remove_dir_all(workspace.path().join(name)).unwrap();
    }
    std::fs::rename(workspace.path().join("moved"), aside.path().join("moved")).unwrap();
    // As the kernel's watches tell it.
    brings(&[
        "side/s", "side", "deep/a/b", "deep/a", "deep", "late", "moved",
    ]);
    brings(&[
        "new/n/f",
        "new/n",
        "new",
        "own/theirs",
        "own/e/theirs",
        "own/e",
        "own",
    ]);
    std::io::Write::write_all(&mut &stdin, b"\n").unwrap();
    command.says("second");
    let _kept = command.keep();
    let there = || {
        let mut names: Vec<String> = std::fs::read_dir(workspace.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(there(), [""; 0], "{kind}");
    let (finished, journal) = command.ended();
    let said = support::text(&finished);
    assert!(said.contains("<>"), "{kind}: {said}");
    let _commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert_eq!(there(), [""; 0], "{kind}");
}

#[test]
fn what_others_make_is_shown_by_roots_agent_that_gave_its_powers_up() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has powers to give up");
        return;
    }
    let workspace = Workspace::new();
    workspace.file("seen", "one\n");
    let mut command = started(
        &workspace,
        "echo mine > made; cat seen new d/new 2> /dev/null; echo first; read -r line; \
         echo \"<$(cat seen made new d/new)>\"; echo more >> made; echo second; sleep 600",
    );
    command.says("first");
    assert_eq!(command.keep().unwrap(), ["fs.create made"]);
    hermitcrab_sandbox::privileges::shed().unwrap();
    for name in ["seen", "made", "new", "d/new"] {
        workspace.file(name, &format!("theirs in {name}\n"));
    }
    for name in ["seen", "made", "new", "d", "d/new"] {
        command.underway.bring(0, &support::rel(name));
    }
    let stdin = std::fs::File::from(command.running.take_stdin().unwrap());
    std::io::Write::write_all(&mut &stdin, b"\n").unwrap();
    command.says("second");
    let (finished, journal) = command.ended();
    let all = ["seen", "made", "new", "d/new"].map(|name| format!("theirs in {name}"));
    let said = support::text(&finished);
    assert!(said.contains(&format!("<{}>", all.join("\n"))), "{said}");
    // So it has seen what it adds to, and nobody is overtaken.
    let done = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    assert_eq!(workspace.read("made"), "theirs in made\nmore\n");
}

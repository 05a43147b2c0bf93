//! What a command that runs has made so far, and what others make of its files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::changeset::ChangeSet;
use hermitcrab_sandbox::journal::{Then, Watch};
use hermitcrab_sandbox::spawn::{Finished, Running, Underway};
use support::{
    Workspace, commit_in, marker, on_all_layers, on_disk, processes_with, rel, start, text,
};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One that runs until it finds the file `stop` in its exchange.
pub(crate) struct Started<'w> {
    pub workspace: &'w Workspace,
    pub journal: Journal,
    pub running: Running,
    pub underway: Underway,
    pub state: tempfile::TempDir,
}

/// The journal, in its directory.
pub(crate) struct Kept(
    pub Journal,
    #[expect(dead_code, reason = "it goes with this")] tempfile::TempDir,
);

pub(crate) fn started<'w>(workspace: &'w Workspace, script: &str) -> Started<'w> {
    let state = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(state.path()).unwrap();
    let mut running = start(&workspace.command(script));
    let underway = running.underway().unwrap();
    Started {
        workspace,
        journal,
        running,
        underway,
        state,
    }
}

impl Started<'_> {
    pub fn says(&mut self, wanted: &str) {
        let (begun, mut said) = (Instant::now(), String::new());
        while !said.contains(wanted) {
            assert!(begun.elapsed() < PATIENCE, "{said}");
            let over = self.running.attend(Duration::from_millis(10), |_, bytes| {
                said.push_str(&String::from_utf8_lossy(bytes));
            });
            assert!(!over.unwrap() || said.contains(wanted), "it ended: {said}");
        }
    }

    /// Carries over what it has made so far; the changes, or `None` where that cannot be
    /// told or was not as it was seen.
    pub fn keep(&self) -> Option<Vec<String>> {
        self.keep_unless(|| {})
    }

    /// The same, with something that happens after it was looked at.
    pub fn keep_unless(&self, happens: impl FnOnce()) -> Option<Vec<String>> {
        let mut look = self.underway.so_far()?;
        happens();
        let [set] = look.sets() else {
            panic!("one view");
        };
        let changes = listed(set);
        let commit = commit_in(&self.journal, set, self.workspace);
        if commit.failure.is_some() {
            look.was_taken_back();
            return None;
        }
        look.stands();
        Some(changes)
    }

    pub fn ended(self) -> (Finished, Kept) {
        let mut running = self.running;
        running.kill();
        (running.wait().unwrap(), Kept(self.journal, self.state))
    }
}

pub(crate) fn listed(set: &ChangeSet) -> Vec<String> {
    let all = set.changes().iter();
    all.map(|change| format!("{} {}", change.what.verb(), change.path))
        .collect()
}

fn what_was_decided_is_no_change_at_the_end_unless_it_was_changed_again() {
    let workspace = Workspace::new();
    workspace.file("old", "old\n");
    workspace.file("tree/a", "a\n");
    let mut command = started(
        &workspace,
        "mkdir d; echo one > d/made; echo two > again; rm -r tree; mkdir tree; echo new > tree/b; \
         ln -s d link; chmod 600 old; echo first; read line; echo more >> again; rm d/made; \
         echo other > d/late; echo second; sleep 600",
    );
    command.says("first");
    let kept = command.keep().unwrap();
    let all = "fs.create again, fs.create d, fs.create d/made, fs.create link, fs.create tree/b, fs.delete tree/a, fs.modify old";
    let mut sorted = kept.clone();
    sorted.sort();
    assert_eq!(sorted.join(", "), all);
    assert_eq!(workspace.read("d/made"), "one\n");
    assert_eq!(command.keep(), Some(Vec::new()), "nothing new");
    // Somebody else's, beside the command's own: neither is the other's.
    workspace.file("d/theirs", "theirs\n");
    workspace.file("tree/theirs", "theirs\n");
    drop(command.running.take_stdin());
    command.says("second");
    let (finished, journal) = command.ended();
    let mut last = listed(&finished.changes[0]);
    last.sort();
    assert_eq!(
        last.join(", "),
        "fs.create d/late, fs.delete d/made, fs.modify again"
    );
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    assert_eq!(workspace.read("again"), "two\nmore\n");
    assert_eq!(
        workspace.read("d/theirs") + &workspace.read("tree/theirs"),
        "theirs\ntheirs\n"
    );
    assert!(!workspace.path().join("d/made").exists());
}

fn what_is_written_while_it_is_looked_at_is_decided_as_it_was_seen_or_not_at_all() {
    let workspace = Workspace::new();
    let mut command = started(
        &workspace,
        "echo begun; i=0; while :; do i=$((i+1)); printf \"$i\\n$i\\n\" > pair.tmp; mv pair.tmp pair; \
         ln -sfn /etc/passwd swap; rm -f swap; echo $i > swap; echo $i >> log; done",
    );
    command.says("begun");
    let (mut kept, begun) = (0, Instant::now());
    while kept < 25 {
        assert!(begun.elapsed() < PATIENCE, "only {kept}");
        // Its output would hold it up.
        let _over = command.running.attend(Duration::from_millis(1), |_, _| {});
        let Some(changes) = command.keep() else {
            continue;
        };
        if changes.iter().any(|change| change.ends_with(" pair")) {
            kept += 1;
            let pair = workspace.read("pair");
            let (one, other) = pair.trim().split_once('\n').unwrap();
            assert_eq!(one, other);
        }
        // A link stands as a link, and what it leads to as nothing of the command's.
        let swap = workspace.path().join("swap");
        if swap.symlink_metadata().is_ok_and(|swap| swap.is_file()) {
            let swap = workspace.read("swap");
            // A file is empty between its making and its first word.
            let is_its_own = swap.is_empty() || swap.trim().parse::<u32>().is_ok();
            assert!(is_its_own, "{swap}");
        }
    }
    let (finished, journal) = command.ended();
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    let log = workspace.read("log");
    let numbers: Vec<u32> = log.lines().map(|line| line.parse().unwrap()).collect();
    assert!(
        numbers
            .iter()
            .copied()
            .eq(1..=u32::try_from(numbers.len()).unwrap()),
        "{log}"
    );
}

#[test]
fn what_others_changed_is_shown_and_is_no_change_of_the_commands() {
    let workspace = Workspace::new();
    for (name, content) in [("seen", "one\n"), ("gone", "gone\n"), ("own", "own\n")] {
        workspace.file(name, content);
    }
    let mut command = started(
        &workspace,
        "cat seen gone own; ls none made 2>/dev/null; echo mine >> own; echo first; \
         until [ -e go ]; do sleep 0.01; done; echo \"<$(cat seen made/in)>\" $(ls gone 2>&1 | wc -w); \
         echo also >> seen; echo second; sleep 600",
    );
    command.says("first");
    workspace.file("seen", "two\n");
    workspace.file("made/in", "in\n");
    workspace.file("own", "theirs\n");
    std::fs::remove_file(workspace.path().join("gone")).unwrap();
    for name in ["seen", "made", "made/in", "own", "gone", "none"] {
        command.underway.bring(0, &rel(name));
    }
    workspace.file("go", "");
    command.underway.bring(0, &rel("go"));
    command.says("second");
    let (finished, _journal) = command.ended();
    // What it and somebody else changed stays a conflict.
    let set = &finished.changes[0];
    let mut last = listed(set);
    last.sort();
    assert_eq!(last.join(", "), "fs.modify own, fs.modify seen");
    let (change, denial) = set.never_kept().unwrap();
    assert_eq!(
        (change.path.to_string(), denial.code().to_string()),
        ("own".to_owned(), "changed-since-shown".to_owned())
    );
    assert!(
        support::text(&finished).contains("<two\nin>"),
        "{}",
        support::text(&finished)
    );
    assert_eq!(
        set.content_after(&rel("seen"), 100).unwrap(),
        b"two\nalso\n"
    );
}

#[test]
fn what_is_moved_all_the_time_is_under_one_of_its_names_after_each_look() {
    let workspace = Workspace::new();
    workspace.file("a/f", "f\n");
    workspace.file("b/other", "other\n");
    let names = ["a/f", "b/f", "c/f"];
    let mut command = started(
        &workspace,
        "mkdir c; python3 -uc 'import os, random, select, time\nprint(\"begun\")\n\
         while not select.select([0], [], [], 0)[0]:\n \
         for x, y in (\"ab\", \"bc\", \"ca\"):\n  os.rename(x + \"/f\", y + \"/f\")\n  \
         time.sleep(random.random() / 5000)\n\
         print(\"left:\", *filter(os.path.exists, (\"a/f\", \"b/f\", \"c/f\")))'; \
         echo over; sleep 600",
    );
    command.says("begun");
    let (mut kept, begun) = (0, Instant::now());
    while kept < 200 {
        assert!(begun.elapsed() < PATIENCE, "only {kept}");
        let is_over = command.running.attend(Duration::ZERO, |_, _| {});
        assert!(!is_over.unwrap(), "a move failed");
        if command.keep().is_some() {
            kept += 1;
            let is_there = |name: &&str| workspace.path().join(name).exists();
            assert!(names.iter().any(is_there), "after {kept} looks");
        }
    }
    drop(command.running.take_stdin());
    command.says("over");
    let (finished, journal) = command.ended();
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(
        commit.failure.is_none(),
        "{commit:?} {:#?}",
        finished.changes[0]
    );
    // Mostly one: a name that is put outside in the instant in which the command gives it up
    // is another name of the same file to it, as moving one onto the other does nothing.
    let is_there = |name: &&&str| workspace.path().join(name).exists();
    let there: Vec<&str> = names.iter().filter(is_there).copied().collect();
    let said = text(&finished);
    let left = said.lines().find_map(|line| line.strip_prefix("left: "));
    assert_eq!(left, Some(there.join(" ").as_str()), "{said}");
}

/// Ends before the step with this number, as a killed process does.
pub(crate) struct EndsAt(pub AtomicU32);

impl Watch for EndsAt {
    fn before(&self, _: &'static str) -> Then {
        let left = self.0.fetch_sub(1, Ordering::Relaxed);
        if left == 0 { Then::Stop } else { Then::GoOn }
    }
}

#[test]
fn a_look_that_is_cut_off_anywhere_is_carried_over_whole_or_not_at_all() {
    let workspace = Workspace::new();
    for name in ["changed", "gone", "tree/in"] {
        workspace.file(name, "old\n");
    }
    let mut command = started(
        &workspace,
        "echo new > changed; rm gone; rm -r tree; mkdir made; echo new > made/in; ln -s made link; echo first; sleep 600",
    );
    command.says("first");
    let there = || {
        let is_there = |name: &str| workspace.path().join(name).symlink_metadata().is_ok();
        let names = ["gone", "tree/in", "made", "made/in", "link"].map(is_there);
        (names, workspace.read("changed"))
    };
    let before = there();
    assert_eq!(
        before,
        ([true, true, false, false, false], "old\n".to_owned())
    );
    let mut cut = 0;
    let kept = loop {
        let watch = Box::new(EndsAt(AtomicU32::new(cut)));
        let opened = Journal::open_watched(command.state.path(), watch);
        command.journal = opened.unwrap().0;
        let kept = command.keep();
        // Whoever comes next takes back what was begun.
        let (journal, recovered) = Journal::open(command.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "{recovered:?}"
        );
        command.journal = journal;
        if kept.is_some() || there() != before {
            break kept;
        }
        cut += 1;
        assert!(cut < 500);
    };
    assert!(cut > 10, "{cut}");
    assert_eq!(
        there(),
        ([false, false, true, true, true], "new\n".to_owned())
    );
    let number = command.journal.list().unwrap().last().unwrap().id;
    let (finished, journal) = command.ended();
    if kept.is_some() {
        assert!(
            finished.changes[0].is_empty(),
            "{:?}",
            listed(&finished.changes[0])
        );
    }
    let undone = support::undo_in(&journal.0, number, &workspace).unwrap();
    assert!(undone.failure.is_none(), "{undone:?}");
    assert_eq!(there(), before);
}

#[test]
fn what_a_look_took_away_and_gave_back_was_changed_by_nobody() {
    let workspace = Workspace::new();
    for name in ["changed", "gone", "theirs"] {
        workspace.file(name, "old\n");
    }
    let mut command = started(
        &workspace,
        "echo new > changed; rm gone; echo mine > theirs; echo made > zz; echo first; sleep 600",
    );
    command.says("first");
    let kept = command.keep_unless(|| {
        workspace.file("zz", "in the way\n");
        workspace.file("theirs", "theirs\n");
    });
    assert_eq!(kept, None);
    assert_eq!(
        workspace.read("changed") + &workspace.read("gone"),
        "old\nold\n"
    );
    std::fs::remove_file(workspace.path().join("zz")).unwrap();
    let (finished, journal) = command.ended();
    let set = &finished.changes[0];
    // What somebody did change stays a conflict.
    let (change, _) = set.never_kept().unwrap();
    assert_eq!(change.path.to_string(), "theirs");
    drop((finished, journal));

    workspace.file("theirs", "old\n");
    let mut command = started(
        &workspace,
        "echo new > changed; rm gone; echo made > zz; echo first; sleep 600",
    );
    command.says("first");
    let kept = command.keep_unless(|| workspace.file("zz", "in the way\n"));
    assert_eq!(kept, None);
    std::fs::remove_file(workspace.path().join("zz")).unwrap();
    let (finished, journal) = command.ended();
    let commit = commit_in(&journal.0, &finished.changes[0], &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    assert_eq!(
        workspace.read("changed") + &workspace.read("zz"),
        "new\nmade\n"
    );
    assert!(!workspace.path().join("gone").exists());
}

#[test]
fn what_a_look_changed_under_another_name_was_changed_by_nobody_else() {
    let workspace = Workspace::new();
    workspace.file("one", "one\n");
    let at = |name: &str| workspace.path().join(name);
    std::fs::hard_link(at("one"), at("two")).unwrap();
    let mut command = started(
        &workspace,
        "wait_for() { until [ -e $1 ]; do sleep 0.01; done; }; echo made > made; ln made other; echo more >> one; \
         echo first; wait_for go; rm other; echo more >> two; ln made third; echo second; \
         wait_for gone; echo more >> made; echo last; sleep 600",
    );
    command.says("first");
    let mut kept = command.keep().unwrap();
    kept.sort();
    assert_eq!(
        kept.join(", "),
        "fs.create made, fs.create other, fs.modify one"
    );
    workspace.file("go", "");
    command.underway.bring(0, &rel("go"));
    command.says("second");
    let mut kept = command.keep().unwrap();
    kept.sort();
    assert_eq!(
        kept.join(", "),
        "fs.create third, fs.delete other, fs.modify two"
    );
    workspace.file("gone", "");
    command.underway.bring(0, &rel("gone"));
    command.says("last");
    let (finished, journal) = command.ended();
    let set = &finished.changes[0];
    let mut last = listed(set);
    last.sort();
    assert_eq!(last.join(", "), "fs.modify made, fs.modify third");
    let commit = commit_in(&journal.0, set, &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    let held = workspace.read("one") + &workspace.read("two") + &workspace.read("made");
    assert_eq!(held, "one\nmore\none\nmore\nmade\nmore\n");
}

/// Lets the command go on before a new name is put in place, until it sleeps so long:
/// it says nothing that could be heard meanwhile.
struct GoesOn(File, String);

impl Watch for GoesOn {
    fn before(&self, step: &'static str) -> Then {
        if step == "put in place" && processes_with(&self.1) == 0 {
            (&self.0).write_all(b"\n").unwrap();
            let begun = Instant::now();
            while processes_with(&self.1) == 0 {
                assert!(begun.elapsed() < PATIENCE, "it does not go on");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Then::GoOn
    }
}

#[test]
fn a_name_that_is_given_up_while_it_is_carried_over_can_be_taken_again() {
    let workspace = Workspace::new();
    workspace.file("index", "0\n");
    let marker = marker(88);
    let script = format!(
        "set -C; echo 1 > index.lock; echo first; read line; mv index.lock index; sleep {marker} & echo second; \
         read line; echo 2 > index.lock && echo taken; echo third; sleep 600"
    );
    let mut command = started(&workspace, &script);
    command.says("first");
    let stdin = File::from(command.running.take_stdin().unwrap());
    let watch = Box::new(GoesOn(stdin.try_clone().unwrap(), marker));
    command.journal = Journal::open_watched(command.state.path(), watch)
        .unwrap()
        .0;
    assert_eq!(command.keep(), None);
    assert!(!workspace.path().join("index.lock").exists());
    command.says("second");
    (&stdin).write_all(b"\n").unwrap();
    command.says("third");
    let (finished, journal) = command.ended();
    assert!(support::text(&finished).contains("taken"));
    let set = &finished.changes[0];
    assert_eq!(listed(set), ["fs.modify index", "fs.create index.lock"]);
    drop(journal);
}

#[test]
fn an_empty_directory_of_the_commands_own_is_not_taken_from_it() {
    let workspace = Workspace::new();
    workspace.file("theirs/in", "in\n");
    let mut command = started(
        &workspace,
        "mkdir own theirs/own; echo x > theirs/made; rm theirs/made; echo first; \
         until [ -e go ]; do sleep 0.01; done; ls -d own theirs/own 2>&1; echo second; sleep 600",
    );
    command.says("first");
    // As after a commit of it that was taken back.
    for name in ["own", "theirs/own"] {
        command.underway.bring(0, &rel(name));
    }
    workspace.file("go", "");
    command.underway.bring(0, &rel("go"));
    command.says("second");
    let (finished, _journal) = command.ended();
    assert_eq!(
        listed(&finished.changes[0]),
        ["fs.create own", "fs.create theirs/own"],
        "{}",
        support::text(&finished)
    );
}

#[test]
fn another_name_of_a_file_that_somebody_changed_holds_what_was_decided() {
    let workspace = Workspace::new();
    let mut command = started(
        &workspace,
        "echo shown > made; ln made other; echo first; sleep 600",
    );
    command.says("first");
    let look = command.underway.so_far().unwrap();
    let look = look.without(vec![(0, rel("other"))]).unwrap();
    assert_eq!(listed(&look.sets()[0]), ["fs.create made"]);
    let commit = commit_in(&command.journal, &look.sets()[0], &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    look.stands();
    workspace.file("made", "theirs\n");
    let (finished, journal) = command.ended();
    let set = &finished.changes[0];
    assert_eq!(listed(set), ["fs.create other"]);
    let commit = commit_in(&journal.0, set, &workspace);
    assert!(commit.failure.is_none(), "{commit:?}");
    assert_eq!(workspace.read("other"), "shown\n");
    assert_eq!(workspace.read("made"), "theirs\n");
}

#[test]
fn a_look_ends_with_the_command_and_says_nothing_before_it() {
    let workspace = Workspace::new();
    let mut command = started(&workspace, "echo x > made; echo begun; sleep 600");
    command.says("begun");
    let underway = command.underway.clone();
    // From the moment it is killed.
    command.running.kill();
    assert!(underway.is_over() && underway.so_far().is_none());
    let (finished, _journal) = command.ended();
    assert!(underway.is_over() && underway.so_far().is_none());
    // Nor does it take anything any more.
    underway.bring(0, &rel("made"));
    drop(finished);
    assert!(!workspace.path().join("made").exists());
}

on_all_layers!(
    what_was_decided_is_no_change_at_the_end_unless_it_was_changed_again,
    what_is_written_while_it_is_looked_at_is_decided_as_it_was_seen_or_not_at_all,
);

#[test]
fn what_others_changed_is_shown_where_the_layer_lies_on_disk_as_well() {
    on_disk(what_others_changed_is_shown_and_is_no_change_of_the_commands);
}

//! What was cut off in directories, or at names, that cannot be reached when the journal is
//! used next: it waits, is told, and is taken back later, and what its owner did meanwhile stays.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hermitcrab_sandbox::journal::{Recovered, Then, Watch};
use hermitcrab_sandbox::{DirCap, Journal};

use super::nested::{Both, WITHIN, seen_by_its_owner};
use super::{At, Cut, Dice, commit_in, directly, ran, script, stray, undo_in};
use crate::support::arranged::{ORDINARY, Run, twice};
use crate::support::{Workspace, commit_of, dir_id, times, tree};

const SCRIPT: &str = "echo 1 > a; rm b; rm -r d/s; mv d/x y; mkdir n; echo 2 > n/m; chmod 700 e";

fn chmod(at: &Path, mode: u32) {
    fs::set_permissions(at, Permissions::from_mode(mode)).unwrap();
}

fn mode(at: &Path) -> u32 {
    at.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

/// Has a commit be cut off after so many steps; whether it was.
fn cut_off(steps: usize, state: &Path, commit: impl FnOnce(&Journal) -> bool) -> bool {
    let cut = Cut::after(steps, At::Stop);
    let (journal, _) = Journal::open_watched(state, Box::new(cut)).unwrap();
    !commit(&journal)
}

fn nothing_is_lost(recovered: &Recovered) {
    assert!(
        recovered.stuck.is_empty() && recovered.broken.is_empty(),
        "{recovered:?}"
    );
}

#[test]
fn what_was_cut_off_in_a_directory_that_is_gone_is_taken_back_when_it_is_back() {
    let (mut waited, state) = (0, tempfile::tempdir().unwrap());
    let other = Workspace::new();
    for steps in 0.. {
        let (mut workspace, finished) = ran(SCRIPT);
        workspace.state = tempfile::tempdir_in(state.path()).unwrap();
        let (at, state) = (workspace.path().to_owned(), workspace.state.path());
        let before = tree(&at);
        let is_cut = cut_off(steps, state, |journal| {
            let done = commit_in(journal, &finished.changes[0], &workspace);
            done.failure.is_none()
        });
        if !is_cut || tree(&at) == directly(SCRIPT) {
            break;
        }
        if tree(&at) == before {
            continue;
        }
        waited += 1;
        let aside = at.with_extension("aside");
        fs::rename(&at, &aside).unwrap();
        let left = tree(&aside);
        for is_another in [false, true] {
            if is_another {
                fs::create_dir(&at).unwrap();
            }
            let (journal, recovered) = Journal::open(state).unwrap();
            nothing_is_lost(&recovered);
            let [unreached] = &recovered.unreached[..] else {
                panic!("{recovered:?}")
            };
            assert_eq!((&unreached.at, unreached.is_elsewhere), (&at, true));
            assert!(unreached.kept.is_dir());
            let told = unreached.to_string();
            assert!(told.contains(&format!("`{}`", at.display())), "{told}");
            assert_eq!(tree(&aside), left);
            // It is in nobody's way, whatever has its name.
            let done = commit_in(&journal, &other.run("echo $RANDOM > o").changes[0], &other);
            assert!(done.failure.is_none(), "{:?}", done.failure);
            if is_another {
                let there = DirCap::open_ambient_dir(&at, dir_id()).unwrap();
                let made = Workspace::new().run("echo mine > mine");
                let done = commit_of(&journal, &made.changes[0], &there);
                assert!(done.failure.is_none(), "{:?}", done.failure);
                assert_eq!(fs::read_to_string(at.join("mine")).unwrap(), "mine\n");
                fs::remove_dir_all(&at).unwrap();
            }
        }
        fs::rename(&aside, &at).unwrap();
        let (journal, recovered) = Journal::open(state).unwrap();
        nothing_is_lost(&recovered);
        assert_eq!(recovered.taken_back.len(), 1, "{recovered:?}");
        assert_eq!(tree(&at), before, "cut after {steps}");
        drop(journal);
        let (_, recovered) = Journal::open(state).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
    }
    assert!(waited > 3, "{waited}");
}

#[test]
fn where_one_of_two_is_gone_the_other_is_as_before_and_its_owners_from_then_on() {
    let script = format!(
        "chmod 700 d; mv d/x y; chmod 600 b; echo 1 > a; echo 2 > {WITHIN}/a; rm {WITHIN}/b"
    );
    let mut waited = 0;
    for steps in 0.. {
        let both = Both::new();
        let finished = both.run(&script);
        let (top, state) = (both.outer.path(), both.outer.state.path());
        let (within, aside) = (top.join(WITHIN), top.join("way/aside"));
        let before = tree(top);
        let is_cut = cut_off(steps, state, |journal| {
            both.commit(journal, &finished).failure.is_none()
        });
        if !is_cut {
            break;
        }
        let is_half = fs::read_to_string(within.join("a")).unwrap() == "2\n";
        if !is_half {
            continue;
        }
        fs::rename(&within, &aside).unwrap();
        let (journal, recovered) = Journal::open(state).unwrap();
        if recovered.unreached.is_empty() {
            // It had been finished.
            break;
        }
        waited += 1;
        nothing_is_lost(&recovered);
        assert_eq!(recovered.unreached[0].at, within);
        let is = |name: &str, content: &str| {
            assert_eq!(fs::read_to_string(top.join(name)).unwrap(), content);
        };
        is("a", "a\n");
        is("d/x", "x\n");
        is("way/aside/a", "2\n");
        // By the session, and by the owner, who does just what the commit did.
        let own = commit_in(
            &journal,
            &both.outer.run("echo own > own").changes[0],
            &both.outer,
        );
        assert!(own.failure.is_none(), "{:?}", own.failure);
        drop(journal);
        chmod(&top.join("d"), if waited % 2 == 0 { 0o700 } else { 0o711 });
        chmod(&top.join("b"), 0o600);
        fs::rename(top.join("d/x"), top.join("y")).unwrap();
        fs::rename(&aside, &within).unwrap();
        let (_, recovered) = Journal::open(state).unwrap();
        nothing_is_lost(&recovered);
        assert_eq!(recovered.taken_back.len(), 1, "{recovered:?}");
        is("y", "x\n");
        is("own", "own\n");
        is(&format!("{WITHIN}/a"), "a\n");
        let d = if waited % 2 == 0 { 0o700 } else { 0o711 };
        assert_eq!((mode(&top.join("d")), mode(&top.join("b"))), (d, 0o600));
        let inner = |seen: Vec<String>| -> Vec<String> {
            let within = seen.into_iter();
            within.filter(|line| line.contains(WITHIN)).collect()
        };
        assert_eq!(inner(tree(top)), inner(before), "cut after {steps}");
    }
    assert!(waited > 1, "{waited}");
}

#[test]
fn what_is_closed_to_its_owner_waits_and_is_told() {
    let name = "journal::unreached::what_is_closed_to_its_owner_waits_and_is_told";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let mut waited = 0;
    for (script, closed) in [(SCRIPT, ""), ("echo 1 > a; chmod 711 d/s", "d")] {
        for steps in 0.. {
            let (workspace, finished) = ran(script);
            let (state, before) = (workspace.state.path(), tree(workspace.path()));
            let commit = |journal: &Journal| {
                let done = commit_in(journal, &finished.changes[0], &workspace);
                done.failure
            };
            let is_cut = cut_off(steps, state, |journal| commit(journal).is_none());
            let now = tree(workspace.path());
            if !is_cut || now == directly(script) && !state.join("journal/00000001/plan").exists() {
                break;
            }
            if now == before {
                continue;
            }
            let closed_at = workspace.path().join(closed);
            let was = mode(&closed_at);
            chmod(&closed_at, 0);
            match Journal::open(state) {
                // The directory of all.
                Ok((journal, recovered)) => {
                    nothing_is_lost(&recovered);
                    if let [unreached] = &recovered.unreached[..] {
                        waited += 1;
                        assert!(!unreached.is_elsewhere);
                        let refused = commit(&journal).unwrap().error.to_string();
                        assert!(refused.contains("commit 1 was cut off"), "{refused}");
                    } else {
                        assert_ne!(closed, "");
                    }
                }
                // A name in it, which the others do not wait for.
                Err(error) => {
                    waited += 1;
                    assert!(error.to_string().contains("d/s`"), "{error}");
                    assert_eq!(workspace.read("a"), "a\n");
                }
            }
            chmod(&closed_at, was);
            let (_, recovered) = Journal::open(state).unwrap();
            nothing_is_lost(&recovered);
            assert_eq!(tree(workspace.path()), before, "{script}, {steps}");
            assert_eq!(stray(&workspace), [""; 0], "{script}, {steps}");
        }
    }
    assert!(waited > 4, "{waited}");
}

#[test]
fn taking_back_that_is_cut_off_itself_tells_of_no_change_that_nobody_made() {
    let mut dice = Dice(0x6a09_e667_f3bc_c908);
    let fixed = [
        "mv d n; chmod 711 n",
        "mv d n; chmod 711 n; chmod 700 n/s; mv e n/e; chmod 700 n/e",
        "mkdir n; chmod 700 n; mv d n/d; chmod 700 n/d; mv a n/a",
    ];
    let (mut twice, mut scripts) = (0, fixed.into_iter().map(str::to_owned));
    while twice < times(400) {
        let script = scripts.next().unwrap_or_else(|| script(&mut dice));
        let (workspace, finished) = ran(&script);
        let (state, before) = (workspace.state.path(), tree(workspace.path()));
        for steps in 0.. {
            let mut is_over = false;
            for again in 0.. {
                let is_cut = cut_off(steps, state, |journal| {
                    let done = commit_in(journal, &finished.changes[0], &workspace);
                    done.failure.is_none()
                });
                if !is_cut {
                    is_over = true;
                    break;
                }
                let cut = Cut::after(again, At::Stop);
                let is_whole = Journal::open_watched(state, Box::new(cut)).is_ok();
                twice += 1;
                let (_, recovered) = Journal::open(state).unwrap();
                nothing_is_lost(&recovered);
                let now = tree(workspace.path());
                if now != before {
                    assert_eq!(now, directly(&script), "{script}: {steps}, {again}");
                    is_over = true;
                    break;
                }
                if is_whole {
                    break;
                }
            }
            if is_over {
                break;
            }
        }
    }
}

/// Has the first mode not be set.
#[derive(Default)]
struct NotOnce(AtomicBool);

impl Watch for NotOnce {
    fn before(&self, step: &'static str) -> Then {
        match step == "set a mode" && !self.0.swap(true, Ordering::Relaxed) {
            true => Then::Fail(io::Error::from(io::ErrorKind::PermissionDenied)),
            false => Then::GoOn,
        }
    }
}

#[test]
fn of_ways_that_were_closed_each_is_opened_that_can_be_and_no_stranger() {
    let name =
        "journal::unreached::of_ways_that_were_closed_each_is_opened_that_can_be_and_no_stranger";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let script = format!(
        "mkdir n; echo 9 > n/m; chmod 0 n; echo 9 > {WITHIN}/a; chmod 0 way/to; chmod 0 way"
    );
    let (mut gone_on, mut strangers) = (0, 0);
    for steps in 0.. {
        let both = Both::new();
        let finished = both.run(&script);
        let (top, state) = (both.outer.path(), both.outer.state.path());
        let before = seen_by_its_owner(top);
        let is_cut = cut_off(steps, state, |journal| {
            both.commit(journal, &finished).failure.is_none()
        });
        if !is_cut {
            break;
        }
        let is_planned = state.join("journal/00000001/plan").exists();
        let is_untouched = seen_by_its_owner(top) == before;
        let (way, n) = (top.join("way"), top.join("n"));
        if is_planned && is_untouched {
            // What the owner makes has the name, and is as the commit was to leave its own.
            fs::create_dir(&n).unwrap();
            chmod(&n, 0);
            chmod(&way, 0);
            let (_, recovered) = Journal::open(state).unwrap();
            nothing_is_lost(&recovered);
            assert_eq!(mode(&n), 0, "cut after {steps}");
            strangers += 1;
            continue;
        }
        if is_planned && mode(&way) == 0 && !state.join("journal/00000001/committed").exists() {
            gone_on += 1;
            let opened = Journal::open_watched(state, Box::new(NotOnce::default()));
            let (_, recovered) = opened.unwrap_or_else(|error| panic!("{steps}: {error}"));
            nothing_is_lost(&recovered);
            assert_eq!(seen_by_its_owner(top), before, "cut after {steps}");
            continue;
        }
        if state.join("journal/00000001/committed").exists() {
            break;
        }
    }
    assert!(gone_on > 0 && strangers > 0, "{gone_on}, {strangers}");
}

#[test]
fn attributes_behind_a_mode_that_closes_them_come_back() {
    let name = "journal::unreached::attributes_behind_a_mode_that_closes_them_come_back";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let script =
        "python3 -c \"import os; os.setxattr('e', 'user.n', b'1')\"; echo 1 > a; rm b; chmod 0 e";
    for steps in 0.. {
        let (workspace, finished) = ran(script);
        let (state, before) = (workspace.state.path(), tree(workspace.path()));
        let is_cut = cut_off(steps, state, |journal| {
            let done = commit_in(journal, &finished.changes[0], &workspace);
            done.failure.is_none()
        });
        let is_done = state.join("journal/00000001/committed").exists();
        let opened = Journal::open(state);
        let (journal, recovered) = opened.unwrap_or_else(|error| panic!("{steps}: {error}"));
        nothing_is_lost(&recovered);
        if !is_cut || is_done {
            assert_eq!(mode(&workspace.path().join("e")), 0);
            let id = journal.list().unwrap()[0].id;
            let undone = undo_in(&journal, id, &workspace).unwrap();
            assert!(undone.failure.is_none(), "{:?}", undone.failure);
            assert_eq!(tree(workspace.path()), before);
            break;
        }
        assert_eq!(tree(workspace.path()), before, "cut after {steps}");
    }
}

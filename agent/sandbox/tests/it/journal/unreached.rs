//! What was cut off in directories, or at names, that cannot be reached when the journal is
//! used next: it waits, is told, and is taken back later, and what its owner did meanwhile stays.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hermitcrab_sandbox::journal::{Left, Recovered, Then, Watch};
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
pub(super) fn cut_off(steps: usize, state: &Path, commit: impl FnOnce(&Journal) -> bool) -> bool {
    let cut = Cut::after(steps, At::Stop);
    let (journal, _) = Journal::open_watched(state, Box::new(cut)).unwrap();
    !commit(&journal)
}

pub(super) fn nothing_is_lost(recovered: &Recovered) {
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

#[test]
fn what_was_made_ready_where_nothing_is_any_more_is_removed_when_it_is_back() {
    let (mut ready, mut waited) = (0, 0);
    for steps in 0.. {
        let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
            println!("SKIPPED: /dev/shm cannot be written");
            return;
        };
        let (mut workspace, finished) = ran(SCRIPT);
        workspace.state = dir;
        let (at, state) = (workspace.path().to_owned(), workspace.state.path());
        let before = tree(&at);
        let is_cut = cut_off(steps, state, |journal| {
            let done = commit_in(journal, &finished.changes[0], &workspace);
            done.failure.is_none()
        });
        let entry = state.join("journal/00000001");
        let is_ready = entry.join("opening").exists() && !entry.join("plan").exists();
        if !is_cut || ready > 0 && !is_ready {
            break;
        }
        if !is_ready {
            continue;
        }
        ready += 1;
        let has_staged = tree(&at).len() > before.len();
        let aside = at.with_extension("aside");
        fs::rename(&at, &aside).unwrap();
        for _ in 0..2 {
            let (journal, recovered) = Journal::open(state).unwrap();
            nothing_is_lost(&recovered);
            let [unreached] = &recovered.unreached[..] else {
                panic!("{recovered:?}")
            };
            assert!(matches!(unreached.left, Left::MadeReady(_)), "{unreached}");
            let told = unreached.to_string();
            assert!(told.contains("before it changed anything"), "{told}");
            assert!(told.contains(".hermitcrab-"), "{told}");
            // It is no commit, and in nobody's way.
            assert!(journal.list().unwrap().is_empty());
            fs::create_dir(&at).unwrap();
            let there = DirCap::open_ambient_dir(&at, dir_id()).unwrap();
            let made = Workspace::new().run("echo mine > mine");
            let done = commit_of(&journal, &made.changes[0], &there);
            assert!(done.failure.is_none(), "{:?}", done.failure);
            journal.forget(&[done.id.unwrap()]).unwrap();
            fs::remove_dir_all(&at).unwrap();
        }
        waited += usize::from(has_staged);
        fs::rename(&aside, &at).unwrap();
        let (_, recovered) = Journal::open(state).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
        assert_eq!(tree(&at), before, "cut after {steps}");
        assert_eq!(stray(&workspace), [""; 0], "cut after {steps}");
    }
    assert!(waited > 3 && ready > waited, "{ready}, {waited}");
}

/// A session goes on while another one, that was to take back what waited, is killed at it.
#[test]
fn what_another_was_killed_at_taking_up_is_taken_back_before_anything_is_done_there() {
    let mut halves = 0;
    for steps in 0.. {
        let (workspace, finished) = ran(SCRIPT);
        let (at, state) = (workspace.path().to_owned(), workspace.state.path());
        let before = tree(&at);
        for cut in 0.. {
            let is_cut = cut_off(cut, state, |journal| {
                let done = commit_in(journal, &finished.changes[0], &workspace);
                done.failure.is_none()
            });
            assert!(is_cut, "nothing was cut off in the midst");
            if tree(&at) != before && tree(&at).iter().any(|line| line.contains(" n/m ")) {
                break;
            }
            Journal::open(state).unwrap();
        }
        let aside = at.with_extension("aside");
        fs::rename(&at, &aside).unwrap();
        let (journal, _) = Journal::open(state).unwrap();
        // Something newer is done elsewhere, so what waits is not the last.
        let other = Workspace::new();
        let done = commit_in(&journal, &other.run("echo o > o").changes[0], &other);
        assert!(done.failure.is_none(), "{:?}", done.failure);
        fs::rename(&aside, &at).unwrap();
        let cut = Cut::after(steps, At::Stop);
        let killed = Journal::open_watched(state, Box::new(cut));
        let is_over = killed.is_ok();
        drop(killed);
        halves += usize::from(tree(&at) != before);
        let own = workspace.run("echo own > own");
        let done = commit_in(&journal, &own.changes[0], &workspace);
        assert!(done.failure.is_none(), "{:?}", done.failure);
        fs::remove_file(at.join("own")).unwrap();
        assert_eq!(tree(&at), before, "killed after {steps}");
        if is_over {
            break;
        }
    }
    assert!(halves > 3, "{halves}");
}

#[test]
fn what_never_got_its_new_name_is_not_what_its_owner_has_there() {
    let name = "journal::unreached::what_never_got_its_new_name_is_not_what_its_owner_has_there";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let (mut strangers, mut ways) = (0, 0);
    for closes_a_way in [false, true] {
        for steps in 0.. {
            let both = Both::new();
            let (top, state) = (both.outer.path(), both.outer.state.path());
            let script = match closes_a_way {
                false => "mv d n; chmod 711 n".to_owned(),
                true => {
                    format!("mv d n; chmod 0 n; echo 9 > {WITHIN}/a; chmod 0 way/to; chmod 0 way")
                }
            };
            let after = if closes_a_way { 0 } else { 0o711 };
            let finished = both.run(&script);
            let before = seen_by_its_owner(top);
            let is_cut = cut_off(steps, state, |journal| {
                both.commit(journal, &finished).failure.is_none()
            });
            let entry = state.join("journal/00000001");
            if !is_cut || entry.join("committed").exists() {
                break;
            }
            if !entry.join("plan").exists() || seen_by_its_owner(top) != before {
                continue;
            }
            // What the owner makes has the name, and is as the commit was to leave its own.
            let n = top.join("n");
            fs::create_dir(&n).unwrap();
            chmod(&n, after);
            if closes_a_way {
                chmod(&top.join("way"), 0);
                ways += 1;
            }
            let (_, recovered) = Journal::open(state).unwrap();
            nothing_is_lost(&recovered);
            assert_eq!(mode(&n), after, "{script}, cut after {steps}");
            strangers += 1;
        }
    }
    assert!(strangers > ways && ways > 0, "{strangers}, {ways}");
}

/// Has the modes not be set that are, one after the other, of these numbers.
struct NotThese(AtomicUsize, [usize; 2]);

impl Watch for NotThese {
    fn before(&self, step: &'static str) -> Then {
        let is_such = step == "set a mode" && {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            self.1.contains(&number)
        };
        match is_such {
            true => Then::Fail(io::Error::from(io::ErrorKind::PermissionDenied)),
            false => Then::GoOn,
        }
    }
}

#[test]
fn behind_ways_that_can_be_opened_all_is_put_back_though_another_stays_closed() {
    let name = "journal::unreached::behind_ways_that_can_be_opened_all_is_put_back_though_another_stays_closed";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let script = format!("mkdir z; chmod 0 z; echo 9 > {WITHIN}/a; chmod 0 way/to; chmod 0 way");
    for steps in 0.. {
        let both = Both::new();
        let finished = both.run(&script);
        let (top, state) = (both.outer.path(), both.outer.state.path());
        let before = seen_by_its_owner(top);
        let is_cut = cut_off(steps, state, |journal| {
            both.commit(journal, &finished).failure.is_none()
        });
        assert!(is_cut, "it was not cut off with all ways closed");
        let is_closed = |name: &str| top.join(name).exists() && mode(&top.join(name)) == 0;
        if !is_closed("way") || !is_closed("z") {
            continue;
        }
        // `z` comes first, as the ways are opened and then with all else; neither time it can.
        let watch = NotThese(AtomicUsize::new(0), [0, 3]);
        let error = Journal::open_watched(state, Box::new(watch)).unwrap_err();
        assert!(error.to_string().contains("/z`"), "{error}");
        let content = fs::read_to_string(top.join(WITHIN).join("a"));
        assert_eq!(content.unwrap(), "a\n", "{error}");
        let (_, recovered) = Journal::open(state).unwrap();
        nothing_is_lost(&recovered);
        assert_eq!(seen_by_its_owner(top), before);
        break;
    }
}

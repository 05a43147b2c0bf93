//! What was staged beside a workspace is gone when the commit is taken back, as after
//! `git clean`: what can be put back is, and what was there and cannot be is told by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::{ForgetError, Recovered, StuckWhy};

use super::nested::{Both, WITHIN};
use super::unreached::cut_off;
use super::{At, Cut, commit_in, directly, mark, ran, stray};
use crate::support::{Workspace, tree};

const SCRIPT: &str = "mkdir n; echo 2 > n/m; mv d/x y; echo 1 > a; rm b; rm -r d/s; chmod 600 e/k; \
                      ln -sfn b l; chmod 700 e";

/// Where the agent's own directory is on another file system than workspaces, of which it is
/// known when their directories were born.
fn elsewhere() -> Option<tempfile::TempDir> {
    const OVERLAY: i64 = 0x794c_7630;
    let kind = rustix::fs::statfs(std::env::temp_dir()).unwrap().f_type;
    let made = tempfile::tempdir_in("/dev/shm").ok();
    let made = made.filter(|_| kind != OVERLAY);
    if made.is_none() {
        println!("SKIPPED: /dev/shm cannot be written, or workspaces are on layers");
    }
    made
}

/// Removes what is staged beside, as somebody who wants no file that they do not know.
fn clean(dir: &Path) -> bool {
    let staged = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let staged = staged.filter(|entry| {
        let name = entry.file_name();
        name.to_str().unwrap().starts_with(".hermitcrab-")
    });
    let staged: Vec<_> = staged.map(|entry| entry.path()).collect();
    staged
        .iter()
        .for_each(|dir| fs::remove_dir_all(dir).unwrap());
    !staged.is_empty()
}

/// The names at which two trees differ, directories that only hold others aside.
fn differing(before: &[String], after: &[String]) -> BTreeSet<String> {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (before.iter().collect(), after.iter().collect());
    let lines = before.symmetric_difference(&after);
    let name = |line: &&&String| {
        let place = if line.starts_with('l') { 1 } else { 2 };
        line.split(' ').nth(place).unwrap().to_owned()
    };
    lines.map(|line| name(&line)).collect()
}

/// The names that are told as lost, and nothing else is told.
fn lost(recovered: &Recovered, top: &Path) -> BTreeSet<String> {
    assert!(
        recovered.broken.is_empty() && recovered.unreached.is_empty(),
        "{recovered:?}"
    );
    let stuck = recovered.stuck.iter().flat_map(|(_, stuck)| stuck);
    let name = stuck.map(|stuck| {
        assert!(matches!(stuck.why, StuckWhy::Lost { .. }), "{stuck}");
        assert!(stuck.to_string().contains(".hermitcrab-"), "{stuck}");
        let below = stuck.at.strip_prefix(top).unwrap();
        below.to_str().unwrap().to_owned()
    });
    name.collect()
}

#[test]
fn what_was_staged_and_is_gone_is_told_and_all_else_is_put_back() {
    let (mut partly, mut again) = (0, 0);
    for steps in 0.. {
        let Some(dir) = elsewhere() else {
            return;
        };
        let (mut workspace, finished) = ran(SCRIPT);
        workspace.state = dir;
        let (at, state) = (workspace.path(), workspace.state.path());
        let before = tree(at);
        let is_cut = cut_off(steps, state, |journal| {
            commit_in(journal, &finished.changes[0], &workspace)
                .failure
                .is_none()
        });
        if !is_cut || state.join("journal/00000001/committed").exists() {
            break;
        }
        if !state.join("journal/00000001/plan").exists() {
            continue;
        }
        assert!(clean(at));
        let half = tree(at);
        let half_changed = differing(&before, &half);
        // Whoever tries first may be cut off, too, and what they found is not forgotten.
        let cut = Cut::after(steps % 17, At::Stop);
        let first = Journal::open_watched(state, Box::new(cut));
        again += usize::from(first.is_err());
        let first = first.map(|(_, recovered)| recovered);
        let (journal, recovered) = Journal::open(state).unwrap();
        let told = lost(&first.unwrap_or(recovered), at);
        if told.is_empty() && !journal.list().unwrap().is_empty() {
            // It was cut off after that was written down.
            continue;
        }
        let left = differing(&before, &tree(at));
        let is_told = |name: &String| {
            let mut told = told.iter();
            told.any(|told| name == told || Path::new(name).starts_with(told))
        };
        assert!(
            left.iter().all(is_told),
            "{steps}: {left:?}, told: {told:?}"
        );
        // None is told that is as it was.
        assert!(
            told.iter().all(|told| left.contains(told)),
            "{steps}: {left:?}, {told:?}"
        );
        assert!(left.is_subset(&half_changed), "{left:?}, {half_changed:?}");
        partly += usize::from(!told.is_empty());
        let own: Vec<String> = stray(&workspace)
            .into_iter()
            .filter(|name| name.starts_with(".hermitcrab-"))
            .collect();
        assert_eq!(own, [""; 0], "{steps}");
        // It stays to be seen by its number.
        let listed = journal.list().unwrap();
        assert_eq!(listed.len(), usize::from(!told.is_empty()), "{steps}");
        if let [stuck] = &listed[..] {
            assert!(stuck.is_stuck);
            let refused = journal.forget(&[stuck.id]).unwrap_err();
            assert!(matches!(refused, ForgetError::Stuck(..)), "{refused}");
        }
        drop(journal);
        let (_, recovered) = Journal::open(state).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
    }
    assert!(partly > 3 && again > 3, "{partly}, {again}");
}

#[test]
fn where_it_is_gone_in_one_of_two_directories_the_other_is_as_before() {
    for has_marks in [true, false] {
        let mut halves = 0;
        for steps in 0.. {
            let Some(dir) = elsewhere() else {
                return;
            };
            let mut both = Both::new();
            both.outer.state = dir;
            let finished = both.run(&format!(
                "echo 1 > a; rm b; echo 2 > {WITHIN}/a; rm {WITHIN}/b"
            ));
            let (top, state) = (both.outer.path(), both.outer.state.path());
            let within = top.join(WITHIN);
            let before = tree(top);
            let is_cut = cut_off(steps, state, |journal| {
                both.commit(journal, &finished).failure.is_none()
            });
            if !is_cut || state.join("journal/00000001/committed").exists() {
                break;
            }
            if !state.join("journal/00000001/plan").exists() {
                continue;
            }
            halves += usize::from(fs::read_to_string(within.join("a")).unwrap() == "2\n");
            assert!(clean(&within));
            if !has_marks {
                mark(&state.join("journal/00000001/plan"), |number, line| {
                    if number == 1 { "- -" } else { line }.to_owned()
                });
            }
            let inner = tree(&within);
            let (journal, recovered) = Journal::open(state).unwrap();
            assert!(recovered.broken.is_empty(), "{recovered:?}");
            let outside = |seen: Vec<String>| -> Vec<String> {
                let lines = seen.into_iter();
                let is_staged = |line: &String| line.contains(" .hermitcrab-");
                lines
                    .filter(|line| !line.contains(WITHIN) && !is_staged(line))
                    .collect()
            };
            assert_eq!(outside(tree(top)), outside(before), "{steps}");
            if has_marks {
                let told = lost(&recovered, &within);
                assert!(told.iter().all(|name| ["a", "b"].contains(&name.as_str())));
            } else {
                // It may be another disk's, and nobody touches it.
                let [unreached] = &recovered.unreached[..] else {
                    panic!("{recovered:?}")
                };
                assert_eq!((&unreached.at, unreached.is_elsewhere), (&within, true));
                assert_eq!(tree(&within), inner);
                let other = Workspace::new();
                let done = commit_in(&journal, &other.run("echo o > o").changes[0], &other);
                assert!(done.failure.is_none(), "{:?}", done.failure);
            }
        }
        assert!(halves > 1, "{halves}");
    }
}

#[test]
fn what_somebody_did_since_is_told_as_theirs_and_stays() {
    let Some(dir) = elsewhere() else {
        return;
    };
    let (mut workspace, finished) = ran("echo 1 > a; rm b; echo 1 > d/x");
    workspace.state = dir;
    let (at, state) = (workspace.path(), workspace.state.path());
    for steps in 0.. {
        let is_cut = cut_off(steps, state, |journal| {
            commit_in(journal, &finished.changes[0], &workspace)
                .failure
                .is_none()
        });
        assert!(is_cut);
        if tree(at)
            .iter()
            .filter(|line| !line.contains(".hermitcrab-"))
            .eq(&directly("echo 1 > a; rm b; echo 1 > d/x"))
        {
            break;
        }
        Journal::open(state).unwrap();
    }
    clean(at);
    workspace.file("a", "theirs\n");
    workspace.file("b", "theirs\n");
    let (_, recovered) = Journal::open(state).unwrap();
    let [(_, stuck)] = &recovered.stuck[..] else {
        panic!("{recovered:?}")
    };
    for stuck in stuck {
        let name = stuck.at.strip_prefix(at).unwrap().to_str().unwrap();
        let expected = match name {
            "a" | "b" => matches!(stuck.why, StuckWhy::Changed(None)),
            "d/x" => matches!(stuck.why, StuckWhy::Lost { .. }),
            name => panic!("{name}"),
        };
        assert!(expected, "{stuck}");
    }
    assert_eq!(stuck.len(), 3);
    assert_eq!(
        (workspace.read("a"), workspace.read("b")),
        ("theirs\n".into(), "theirs\n".into())
    );
}

//! Races: for what is masked in /proc, and for the way to a directory that is granted.
//!
//! Each is also run where it is won, because one that nobody can win proves nothing.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command as Bare;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{Ending, PoolSize, Step, View, ViewMode};
use hermitcrab_sandbox::{DirCap, Sandbox, SpawnError};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{by_an_ordinary_user, run_without};
use crate::support::numbers::numbered;
use crate::support::{self, Workspace, spawner, text, times};

const RACE: &str = include_str!("races.pl");
/// How often masks are tried to be taken away.
const ROUNDS: u32 = 15;
/// How many sandboxes, at least, are made while the way to their view changes.
const SANDBOXES: u32 = 25;

/// By which ways something was read, in a race that was run to its end.
fn won(told: &str) -> Vec<String> {
    let rounds = told.lines().find_map(|line| line.strip_prefix("rounds "));
    assert!(rounds.is_some_and(|rounds| rounds != "0"), "{told}");
    let ways = told
        .lines()
        .filter_map(|line| line.strip_prefix("through "));
    ways.map(str::to_owned).collect()
}

#[test]
fn nobody_wins_a_race_for_what_is_masked() {
    let workspace = Workspace::new();
    workspace.file("races.pl", &numbered(RACE));
    let script = format!("exec perl races.pl {}", times(ROUNDS));
    let command = workspace.command(&script);
    let allowed = workspace.run("perl -e 1; [ -s /proc/kallsyms ] && echo shown");
    if text(&allowed).contains("not found") || !Path::new("/proc/kallsyms").exists() {
        println!("SKIPPED: no perl to make system calls with, or nothing that is masked");
        return;
    }
    let without = [
        None,
        Some(Mechanism::SystemCallFilter),
        Some(Mechanism::NoCapabilities),
        Some(Mechanism::Landlock),
        Some(Mechanism::PidNamespace),
    ];
    for without in without {
        let finished = run_without(MechanismSet::of(without), &command);
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        assert_eq!(won(&text(&finished)), [""; 0], "without {without:?}");
    }
    // Where one may take masks away the race is won: by root of a namespace of its own.
    let mask = "mount --bind /dev/null /proc/kallsyms && exec perl \"$0\" 3";
    let script = workspace.path().join("races.pl");
    let bare = Bare::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
        .args(["--mount-proc", "sh", "-c", mask])
        .arg(script)
        .output();
    match bare {
        Ok(told) if told.status.success() => {
            let ways = won(&String::from_utf8_lossy(&told.stdout));
            for way in [
                "name",
                "descriptor",
                "root of another",
                "thread",
                "relative",
            ] {
                assert!(ways.iter().any(|won| won == way), "{way}: {ways:?}");
            }
        }
        other => println!("SKIPPED: it cannot be arranged here to be won: {other:?}"),
    }
}

#[test]
fn of_an_ordinary_user_nobody_wins_it_either() {
    by_an_ordinary_user(
        "escape::races::of_an_ordinary_user_nobody_wins_it_either",
        nobody_wins_a_race_for_what_is_masked,
    );
}

/// Somebody who changes places of a directory and a link to another, until told to stop.
fn swap(directory: &Path, link: &Path, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        renameat_with(CWD, directory, CWD, link, RenameFlags::EXCHANGE).unwrap();
    }
}

fn view<'a>(dir: &'a DirCap, at: &Path, mode: ViewMode) -> View<'a> {
    View {
        dir,
        at: at.to_owned(),
        mode,
        withheld: Withheld::default(),
    }
}

/// `way/work` is granted, and `way` is now the directory and now a link to one in which
/// another `work` lies.
#[test]
fn a_link_on_the_way_to_a_view_is_never_followed_while_a_sandbox_is_made() {
    let outer = tempfile::tempdir().unwrap();
    let (way, link) = (outer.path().join("way"), outer.path().join("link"));
    let theirs = outer.path().join("theirs");
    for (dir, content) in [(&way, "mine\n"), (&theirs, "theirs\n")] {
        std::fs::create_dir_all(dir.join("work")).unwrap();
        std::fs::write(dir.join("work/f"), content).unwrap();
    }
    symlink(&theirs, &link).unwrap();
    let work = way.join("work");
    let whole = DirCap::open_ambient_dir(outer.path(), support::dir_id()).unwrap();
    let cap = DirCap::open_ambient_dir(&work, support::dir_id()).unwrap();
    let workspace = Workspace::new();
    let is_over = AtomicBool::new(false);
    let followed = AtomicU32::new(0);
    let (mut shown, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&way, &link, &is_over));
        // Whoever goes by the name follows the link.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if std::fs::read(work.join("f")).is_ok_and(|read| read == b"theirs\n") {
                    followed.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        // Both happen before it is over, or nothing was raced for.
        let is_enough = |number, shown, refused| {
            number >= times(SANDBOXES) && shown > 0 && refused > 0 || number >= 40 * SANDBOXES
        };
        let mut number = 0;
        while !is_enough(number, shown, refused) {
            number += 1;
            // Nothing that waited, and nothing that was built before.
            let sandbox = Sandbox::builder()
                .spawner(spawner())
                .pool(PoolSize::OFF)
                .build();
            let mut command = workspace.command("cat f; echo changed > f; cat f");
            command.cwd.clone_from(&work);
            command.views = match number % 3 {
                0 => vec![view(&cap, &work, ViewMode::CopyOnWrite)],
                1 => vec![view(&cap, &work, ViewMode::ReadOnly)],
                // One lies in the other, which shows the machine as it is just now.
                _ => vec![
                    view(&whole, outer.path(), ViewMode::ReadOnly),
                    view(&cap, &work, ViewMode::CopyOnWrite),
                ],
            };
            match support::run_in(&sandbox, &command) {
                Ok(finished) => {
                    assert!(text(&finished).starts_with("mine\n"), "{}", text(&finished));
                    shown += 1;
                    finished.changes.into_iter().for_each(|set| set.discard());
                }
                Err(SpawnError::Step(error)) => {
                    let steps = [Step::ViewSource, Step::ViewPlace, Step::StageViews];
                    assert!(steps.contains(&error.step()), "{error}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(followed.into_inner() > 0);
    assert!(shown > 0 && refused > 0, "{shown} shown, {refused} refused");
    for (name, content) in [
        ("way", "mine\n"),
        ("theirs", "theirs\n"),
        ("link", "mine\n"),
    ] {
        let path = outer.path().join(name);
        if !path.is_symlink() {
            let read = std::fs::read_to_string(path.join("work/f")).unwrap();
            assert_eq!(read, content, "{name}");
        }
    }
}

#[test]
fn of_an_ordinary_user_it_is_not_followed_either() {
    by_an_ordinary_user(
        "escape::races::of_an_ordinary_user_it_is_not_followed_either",
        a_link_on_the_way_to_a_view_is_never_followed_while_a_sandbox_is_made,
    );
}

//! What a command runs without is told: by its result, and by the table.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::escape::run_without;
use crate::support;

use hermitcrab_core::rules::Isolation;
use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::DirCap;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet, probe};
use hermitcrab_sandbox::spawn::{Finished, View, ViewMode};
use support::arranged::{Run, UNSHARE, twice};
use support::numbers::numbered;
use support::{Workspace, run, spawner, text};

/// What commands are not refused without, and a script that prints what each of
/// them changes.
const NOT_REQUIRED: [(Mechanism, &str); 3] = [
    (
        Mechanism::NoNesting,
        "cat /proc/sys/user/max_user_namespaces",
    ),
    (
        Mechanism::SharedWatches,
        "perl -e 'my $n = 0; $n++ while $n < 1000 && syscall(SYS_inotify_init1, 0) >= 0; print qq($n\\n)'",
    ),
    (Mechanism::FirstVictim, "cat /proc/self/oom_score_adj"),
];

fn told(finished: &Finished, mechanism: Mechanism) -> Option<&str> {
    let missing = &finished.confined.missing;
    missing
        .iter()
        .find_map(|why| why.strip_prefix(mechanism.as_str()))
}

#[test]
fn a_mechanism_that_is_left_out_shows_and_is_told() {
    let workspace = Workspace::new();
    for (mechanism, script) in NOT_REQUIRED {
        let script = numbered(script);
        let whole = workspace.run(&script);
        assert!(whole.confined.by.contains(mechanism), "{mechanism:?}");
        assert_eq!(told(&whole, mechanism), None);
        let without = MechanismSet::of([mechanism]);
        let less = run_without(without, &workspace.command(&script));
        assert!(!less.confined.by.contains(mechanism), "{mechanism:?}");
        assert_eq!(told(&less, mechanism), Some(": left out"));
        // It is none of those commands are refused without.
        assert!(less.confined.is_complete(), "{:?}", less.confined);
        if mechanism == Mechanism::SharedWatches && text(&whole).trim().is_empty() {
            println!("SKIPPED: no perl to make system calls with");
            continue;
        }
        assert_ne!(text(&less), text(&whole), "{mechanism:?}");
    }
}

#[test]
fn owners_that_cannot_be_translated_are_told() {
    let name = "told::owners_that_cannot_be_translated_are_told";
    // An overlay does not take an id map.
    let arrange = "mkdir lower upper work place && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work place && chmod 777 place";
    let Some(Run::Inner) = twice(name, &UNSHARE, arrange, "") else {
        return;
    };
    let place = std::fs::canonicalize("place").unwrap();
    let cap = DirCap::open_ambient_dir(&place, support::dir_id()).unwrap();
    let workspace = Workspace::new();
    let mut command = workspace.command("true");
    let plain = run(&command).unwrap();
    assert!(plain.confined.by.contains(Mechanism::IdMaps));
    assert_eq!(told(&plain, Mechanism::IdMaps), None);
    command.views.push(View {
        dir: &cap,
        at: "/srv/there".into(),
        mode: ViewMode::CopyOnWrite,
        withheld: Withheld::default(),
    });
    let finished = run(&command).unwrap();
    assert!(!finished.confined.by.contains(Mechanism::IdMaps));
    let why = told(&finished, Mechanism::IdMaps).unwrap();
    assert!(why.contains("`/srv/there`"), "{why}");

    let profile = probe(&spawner(), &cap);
    let row = profile
        .rows
        .iter()
        .find(|row| row.mechanism == Mechanism::IdMaps)
        .unwrap();
    assert_eq!((row.available, row.used), (Some(false), false), "{row:?}");
    assert!(row.seen.contains("/work/probe"), "{row:?}");
    // It takes a command's rights away and gives it none.
    assert_eq!(profile.isolation, Isolation::Isolated);
}

#[test]
fn second_lines_that_hold_a_command_are_told_with_those_that_do() {
    let own = std::fs::read_link("/proc/self/ns/cgroup").unwrap();
    let finished = Workspace::new().run("readlink /proc/self/ns/cgroup");
    let confined = &finished.confined;
    let by = |mechanism| confined.by.contains(mechanism);
    let is_apart = text(&finished).trim_end() != own.to_str().unwrap();
    assert_eq!(by(Mechanism::CgroupNamespace), is_apart, "{confined:?}");
    let is_fenced = confined.landlock_version > 0;
    assert_eq!(by(Mechanism::Landlock), is_fenced, "{confined:?}");
    // Whatever does not hold it is told to.
    for mechanism in Mechanism::ALL {
        let is_told = told(&finished, mechanism).is_some();
        assert_ne!(by(mechanism), is_told, "{mechanism:?}: {confined:?}");
    }
}

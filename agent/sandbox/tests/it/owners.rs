//! Root's commands on file systems that take no id map: what they may write is copied, so
//! that it is theirs as it would be over an id map, and comes out as it would from one.
//!
//! Arranged around a second run of each test, with an overlay of root's own, or as root of
//! a container that is an ordinary user's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::{Isolation, Withheld};
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::journal::Journal;
use hermitcrab_sandbox::layers::memory_holds_layers;
use hermitcrab_sandbox::profile::{Mechanism, probe};
use hermitcrab_sandbox::spawn::{Ending, Finished, Step, ViewMode};
use hermitcrab_sandbox::{Sandbox, SpawnError};
use support::arranged::{ROOTLESS, ROOTLESS_ALONE, Run, UNSHARE, twice};
use support::{Workspace, commit_in, run, run_in, spawner, text, undo_in};

/// An overlay takes no id map.
const OVERLAY: &str = "mkdir lower upper work place && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work place";

fn strange() -> Workspace {
    Workspace::at(tempfile::tempdir_in("place").unwrap())
}

fn told(finished: &Finished) -> String {
    finished.confined.missing.join("\n")
}

/// Every name with its owner, group, mode and content.
fn owned(top: &Path) -> Vec<String> {
    fn add(at: &Path, top: &Path, out: &mut Vec<String>) {
        let stat = std::fs::symlink_metadata(at).unwrap();
        let name = at.strip_prefix(top).unwrap().display();
        let what = if stat.is_file() {
            format!("{:?}", std::fs::read_to_string(at).unwrap())
        } else {
            String::new()
        };
        let (user, group, mode) = (stat.uid(), stat.gid(), stat.mode());
        out.push(format!("{name} {user}:{group} {mode:o} {what}"));
        if stat.is_dir() {
            let entries = std::fs::read_dir(at).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
            names.sort();
            names.iter().for_each(|name| add(name, top, out));
        }
    }
    let mut out = Vec::new();
    add(top, top, &mut out);
    out
}

/// An access list: kind, permissions and id of each entry.
fn list(at: &Path, entries: &[(u16, u16, u32)]) {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (kind, may, id) in entries {
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&may.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    let none = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(at, "system.posix_acl_access", &bytes, none).unwrap();
}

/// A directory with files of several people, some with ids that no map names.
fn furnish(workspace: &Workspace) {
    let top = workspace.path();
    let files = [
        ("own", 0, 0, 0o644),
        ("secret", 0, 0, 0o600),
        ("replaced", 1000, 1000, 0o644),
        ("theirs", 1000, 1000, 0o600),
        ("shared", 1000, 0, 0o660),
        ("far", 200_000, 200_000, 0o600),
        ("far-open", 200_000, 200_000, 0o644),
        ("far-tool", 200_000, 200_000, 0o4755),
        ("far-group", 0, 200_000, 0o2755),
        // As root's own files are to a command, in numbers.
        ("disguised", 0x7000_0000, 0x7000_0000, 0o600),
        ("d/own", 0, 0, 0o644),
        ("closed/inside", 200_000, 200_000, 0o644),
    ];
    for (name, user, group, mode) in files {
        workspace.file(name, &format!("{name}\n"));
        let at = top.join(name);
        chown(&at, Some(user), Some(group)).unwrap();
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    chown(top.join("closed"), Some(200_000), Some(200_000)).unwrap();
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(top.join("closed"), mode).unwrap();
    std::fs::hard_link(top.join("theirs"), top.join("theirs-again")).unwrap();
    symlink("secret", top.join("link")).unwrap();
}

const LOOK: &str = "id -u; id -g; stat -c '%n %u %g %h' own secret replaced theirs shared far far-open disguised d/own link; \
    stat -c '%n %a' own secret theirs far-open d; \
    for f in own secret replaced theirs shared far far-open disguised link; do cat $f 2> /dev/null || echo not $f; done; \
    for f in own secret replaced theirs shared far far-open disguised d/own; do { echo more >> $f; } 2> /dev/null || echo no $f; done; \
    ls closed 2> /dev/null || echo closed; cat closed/inside 2> /dev/null || echo closed; \
    chmod 777 far-open disguised 2> /dev/null || echo not mine; \
    rm -f replaced; echo new > replaced; echo made > made; mkdir new; echo in > new/in; ln -s own new-link; chmod 600 own; mv d moved";

fn overlaid(name: &str, test: fn()) {
    if let Some(Run::Inner) = twice(name, &UNSHARE, OVERLAY, "") {
        test();
    }
}

#[test]
fn a_command_sees_and_changes_what_it_would_over_an_id_map_and_owners_come_out_the_same() {
    overlaid(
        "owners::a_command_sees_and_changes_what_it_would_over_an_id_map_and_owners_come_out_the_same",
        || {
            let (plain, copied) = (Workspace::new(), strange());
            let mut seen = Vec::new();
            for workspace in [&plain, &copied] {
                furnish(workspace);
                let before = owned(workspace.path());
                let finished = workspace.run(LOOK);
                assert_eq!(owned(workspace.path()), before);
                let (journal, _) = Journal::open(workspace.state.path()).unwrap();
                let done = commit_in(&journal, &finished.changes[0], workspace);
                assert!(done.failure.is_none(), "{:?}", done.failure);
                let after = owned(workspace.path());
                let undone = undo_in(&journal, done.id.unwrap(), workspace).unwrap();
                assert!(undone.failure.is_none(), "{:?}", undone.failure);
                assert_eq!(owned(workspace.path()), before);
                seen.push((finished, after));
            }
            let (finished, after) = seen.pop().unwrap();
            let (over_a_map, after_a_map) = seen.pop().unwrap();
            // A sandbox's own copy gives what no id of its names is for to the command.
            if over_a_map.confined.copied.is_none() {
                assert_eq!(text(&finished), text(&over_a_map));
                assert_eq!(after, after_a_map);
            }
            // Not because nothing worked: root's files are written and others' are not.
            let text = text(&finished);
            for line in ["secret", "no theirs", "no disguised", "not far", "closed"] {
                assert!(text.lines().any(|found| found == line), "{line}: {text}");
            }
            for line in ["no own", "no secret", "not secret"] {
                assert!(!text.lines().any(|found| found == line), "{line}: {text}");
            }
            assert!(after.contains(&"made 0:0 100644 \"made\\n\"".to_owned()));
            assert!(after.contains(&"replaced 1000:1000 100644 \"new\\n\"".to_owned()));
            assert!(after.contains(&"secret 0:0 100600 \"secret\\nmore\\n\"".to_owned()));
            assert_eq!(finished.changes[0].layer(), Layer::Copy);
            let why = finished.confined.copied.clone().unwrap();
            assert!(
                why.starts_with("owners cannot be translated there: `/"),
                "{why}"
            );
            assert!(told(&finished).contains("so it is copied"));
            assert_eq!(finished.confined.strange, None);
            assert!(finished.confined.is_complete());
        },
    );
}

/// Somebody's things under new names.
const MOVE: &str = "mkdir sub && mv replaced sub/ && mv shared other && mv link link-again && \
    mv replaced-by replaced && echo made > sub/made";
/// And a directory, which only a copy moves as one thing.
const MOVE_ALL: &str = "mv theirs-own far-away && ";

fn furnish_to_move(workspace: &Workspace) {
    furnish(workspace);
    let top = workspace.path();
    for name in ["theirs-own/inside", "replaced-by"] {
        workspace.file(name, &format!("{name}\n"));
        chown(top.join(name), Some(1000), Some(1000)).unwrap();
    }
    chown(top.join("theirs-own"), Some(1000), Some(1000)).unwrap();
    std::os::unix::fs::lchown(top.join("link"), Some(1000), Some(1000)).unwrap();
}

#[test]
fn what_gets_another_name_stays_whose_it_was() {
    overlaid("owners::what_gets_another_name_stays_whose_it_was", || {
        for (workspace, also) in [(Workspace::new(), ""), (strange(), MOVE_ALL)] {
            furnish_to_move(&workspace);
            let before = owned(workspace.path());
            let finished = workspace.run(&format!("{also}{MOVE}"));
            assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
            let (journal, _) = Journal::open(workspace.state.path()).unwrap();
            let done = commit_in(&journal, &finished.changes[0], &workspace);
            assert!(done.failure.is_none(), "{:?}", done.failure);
            let after = owned(workspace.path());
            let dir = if also.is_empty() {
                "theirs-own"
            } else {
                "far-away"
            };
            for line in [
                "sub/replaced 1000:1000 100644 \"replaced\\n\"",
                "sub/made 0:0 100644 \"made\\n\"",
                "other 1000:0 100660 \"shared\\n\"",
                &format!("{dir} 1000:1000 40755 "),
                &format!("{dir}/inside 1000:1000 100644 \"theirs-own/inside\\n\""),
                "link-again 1000:1000 120777 ",
                "replaced 1000:1000 100644 \"replaced-by\\n\"",
            ] {
                assert!(after.contains(&line.to_owned()), "{line}: {after:?}");
            }
            let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
            assert!(undone.failure.is_none(), "{:?}", undone.failure);
            assert_eq!(owned(workspace.path()), before);
        }
    });
}

/// To whom the directory belongs may move what is in it, and is not given it thereby.
#[test]
fn roots_secret_is_roots_wherever_the_owner_of_its_directory_moves_it() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root gives files away");
        return;
    }
    let workspace = Workspace::new();
    workspace.file("secret", "secret\n");
    let closed = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(workspace.path().join("secret"), closed).unwrap();
    chown(workspace.path(), Some(1000), Some(1000)).unwrap();
    let finished = workspace.run("id -u; mv secret found && echo own > made");
    assert_eq!(text(&finished), "1000\n");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    let after = owned(workspace.path());
    for line in [
        "found 0:0 100600 \"secret\\n\"",
        "made 1000:1000 100644 \"own\\n\"",
    ] {
        assert!(after.contains(&line.to_owned()), "{line}: {after:?}");
    }
}

#[test]
fn what_commands_have_no_id_for_gets_no_other_name_in_a_copy() {
    overlaid(
        "owners::what_commands_have_no_id_for_gets_no_other_name_in_a_copy",
        || {
            let workspace = strange();
            furnish(&workspace);
            let before = owned(workspace.path());
            for script in [
                "mv far-open other",
                "mkdir sub && mv far-group sub/",
                "mv far-open d/",
            ] {
                let finished = workspace.run(script);
                assert_eq!(finished.ending, Ending::Exited(0), "{script}");
                let refused = finished.changes[0].never_kept();
                let (_, denial) = refused.unwrap_or_else(|| panic!("{script}: it would be kept"));
                assert!(denial.to_string().contains("no id for"), "{denial}");
            }
            // Removed it may be, and what stays is no hindrance.
            let finished = workspace.run("rm -f far-open; touch beside");
            let (journal, _) = Journal::open(workspace.state.path()).unwrap();
            let done = commit_in(&journal, &finished.changes[0], &workspace);
            assert!(done.failure.is_none(), "{:?}", done.failure);
            undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
            assert_eq!(owned(workspace.path()), before);
        },
    );
}

#[test]
fn a_copy_lends_nobodys_rights_and_its_command_is_nobody_outside() {
    overlaid(
        "owners::a_copy_lends_nobodys_rights_and_its_command_is_nobody_outside",
        || {
            let workspace = strange();
            furnish(&workspace);
            let finished = workspace.run(
                "stat -c '%n %a' far-tool far-group; cat /proc/self/uid_map; ls /proc/self/fd; \
                 grep -c . /proc/self/mountinfo; ls -a; echo /layers*; cat ../copied 2> /dev/null || echo no list; \
                 find / -xdev -name copied 2> /dev/null",
            );
            let text = text(&finished);
            assert!(text.contains("far-tool 755\nfar-group 755\n"), "{text}");
            let map = text
                .lines()
                .find(|line| line.split_whitespace().count() == 3);
            let outer: u32 = map
                .unwrap()
                .split_whitespace()
                .nth(1)
                .unwrap()
                .parse()
                .unwrap();
            assert!(outer >= 0x7000_0000, "{text}");
            assert!(
                text.contains("\n/layers*\nno list\n") && text.ends_with("no list\n"),
                "{text}"
            );
            assert!(
                text.contains("0\n1\n2\n3\n") && !text.contains("\n4\n"),
                "{text}"
            );
            assert_eq!(finished.changes[0].changes().len(), 0);
        },
    );
}

#[test]
fn what_an_access_list_keeps_from_a_command_is_not_in_a_copy() {
    overlaid(
        "owners::what_an_access_list_keeps_from_a_command_is_not_in_a_copy",
        || {
            const NONE: u32 = u32::MAX;
            // The owner's and others' entries; those between differ.
            let entries = |between: &[(u16, u16, u32)], others: u16| {
                [&[(1, 7, NONE)], between, &[(0x20, others, NONE)]].concat()
            };
            let (plain, copied) = (Workspace::new(), strange());
            let mut seen = Vec::new();
            for workspace in [&plain, &copied] {
                for (name, between, others) in [
                    // Bits say rw-rw---- and rw-rw-r--, in turn.
                    ("group", &[(4, 0, NONE), (8, 6, 1234), (16, 6, NONE)][..], 0),
                    ("user", &[(2, 0, 0), (4, 6, NONE), (16, 6, NONE)], 4),
                    ("let", &[(2, 6, 0), (4, 0, NONE), (16, 6, NONE)], 0),
                    ("masked", &[(2, 6, 0), (4, 6, NONE), (16, 2, NONE)], 4),
                    ("open", &[(2, 0, 1234), (4, 4, NONE), (16, 4, NONE)], 4),
                    ("d/in", &[(4, 4, NONE), (16, 4, NONE)], 4),
                ] {
                    workspace.file(name, &format!("{name}\n"));
                    let at = workspace.path().join(name);
                    chown(&at, Some(1000), Some(0)).unwrap();
                    list(&at, &entries(between, others));
                }
                let dir = workspace.path().join("d");
                chown(&dir, Some(1000), Some(0)).unwrap();
                list(&dir, &entries(&[(2, 0, 0), (4, 7, NONE), (16, 7, NONE)], 5));
                let finished = workspace.run(
                    "for f in group user let masked open d/in; do cat $f 2> /dev/null || echo not $f; done; \
                     ls d 2> /dev/null || echo not d",
                );
                assert_eq!(finished.changes[0].changes().len(), 0);
                seen.push(text(&finished));
            }
            let shown = "not group\nnot user\nlet\nnot masked\nopen\nnot d/in\nnot d\n";
            assert_eq!(seen[0], shown);
            // What it is let beyond the bits a copy does not show either.
            assert_eq!(seen[1].replace("not let", "let"), shown);
        },
    );
}

#[test]
fn what_rules_withhold_is_not_in_such_a_copy_either() {
    overlaid(
        "owners::what_rules_withhold_is_not_in_such_a_copy_either",
        || {
            let workspace = strange();
            workspace.file("keys/one", "KEY one\n");
            workspace.file("a/server.key", "KEY two\n");
            workspace.file("a/notes", "notes\n");
            let withheld = Withheld {
                places: vec![RelPath::parse_dir(b"keys").unwrap()],
                names: vec!["*.key".to_owned()],
            };
            let look = "mv a moved; mv keys moved; ln a/server.key b; cp -r . /tmp/all; \
                        find . /tmp -type f -exec cat {} + 2> /dev/null; cat a/notes; echo more >> a/notes";
            let mut command = workspace.command(look);
            command.views[0].withheld = withheld;
            let finished = run(&command).unwrap();
            assert!(finished.confined.copied.is_some());
            assert!(text(&finished).contains("notes\n"), "{}", text(&finished));
            assert!(!text(&finished).contains("KEY"), "{}", text(&finished));
            // All of it, where nothing is withheld.
            command.views[0].withheld = Withheld::default();
            assert!(text(&run(&command).unwrap()).contains("KEY one"));
        },
    );
}

/// With what a stranger can and cannot do, and what root's files are then.
fn is_a_stranger(finished: &Finished) {
    assert_eq!(
        text(finished),
        "open\nno write\nno secret\n",
        "{}",
        told(finished)
    );
    if memory_holds_layers() {
        assert_eq!(finished.confined.copied, None);
    }
    let strange = finished.confined.strange.clone().unwrap();
    assert!(told(finished).contains(&strange), "{strange}");
    assert!(!finished.confined.by.contains(Mechanism::IdMaps));
    assert!(finished.confined.is_complete());
}

const TRY: &str = "cat open; { echo more >> open; } 2> /dev/null || echo no write; cat secret 2> /dev/null || echo no secret";

fn to_try() -> Workspace {
    let workspace = strange();
    workspace.file("open", "open\n");
    workspace.file("secret", "secret\n");
    for (name, mode) in [("", 0o755), ("secret", 0o600)] {
        let at = workspace.path().join(name);
        std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    workspace
}

#[test]
fn beyond_the_ceilings_of_a_copy_the_command_is_a_stranger_and_that_is_told() {
    overlaid(
        "owners::beyond_the_ceilings_of_a_copy_the_command_is_a_stranger_and_that_is_told",
        || {
            let workspace = to_try();
            for number in 0..60 {
                workspace.file(&format!("d/f{number}"), &"x".repeat(40_000));
            }
            type Shrink = fn(&mut hermitcrab_sandbox::spawn::Limits);
            let cases: [Shrink; 3] = [
                |limits| limits.view_inodes_max = 50,
                |limits| limits.view_bytes_max = 1 << 20,
                |limits| limits.memory_bytes_max = 4 << 20,
            ];
            for shrink in cases {
                let mut command = workspace.command(TRY);
                shrink(&mut command.limits);
                // So that the last of them is enough to run in.
                command.argv = vec![b"sh".to_vec(), b"-c".to_vec(), TRY.into()];
                let finished = match run(&command) {
                    Ok(finished) => finished,
                    // Where no overlay has its layer in memory there is no third way.
                    Err(SpawnError::Step(error)) if !memory_holds_layers() => {
                        assert_eq!(error.step(), Step::CopyView, "{error}");
                        continue;
                    }
                    Err(other) => panic!("{other}"),
                };
                is_a_stranger(&finished);
                let told = told(&finished);
                for part in [
                    "nor does root copy it",
                    "stranger's rights",
                    "keep less in it",
                ] {
                    assert!(told.contains(part), "{part}: {told}");
                }
            }
            let finished = workspace.run(TRY);
            assert_eq!(text(&finished), "open\nsecret\n", "{}", told(&finished));
        },
    );
}

#[test]
fn who_wants_no_copies_for_owners_gets_none() {
    overlaid("owners::who_wants_no_copies_for_owners_gets_none", || {
        let workspace = to_try();
        let sandbox = Sandbox::builder()
            .spawner(spawner())
            .copied_for_owners(false)
            .build();
        let finished = run_in(&sandbox, &workspace.command(TRY)).unwrap();
        is_a_stranger(&finished);
        assert!(told(&finished).contains("it was asked for that it is not"));
    });
}

#[test]
fn what_can_only_be_read_is_shown_as_it_is_and_that_is_told() {
    overlaid(
        "owners::what_can_only_be_read_is_shown_as_it_is_and_that_is_told",
        || {
            let (workspace, other) = (strange(), to_try());
            let mut command =
                workspace.command("cd /srv/there; cat open; cat secret || echo no secret");
            command.merge_stderr = false;
            command
                .views
                .push(support::view(&other.cap, "/srv/there", ViewMode::ReadOnly));
            let finished = run(&command).unwrap();
            assert_eq!(text(&finished), "open\nno secret\n");
            let told = told(&finished);
            assert!(
                told.contains("`/srv/there`: ") && told.contains("what everybody may"),
                "{told}"
            );
            // The other one is copied all the same.
            assert!(finished.confined.copied.is_some());
        },
    );
}

#[test]
fn each_command_has_a_copy_as_new_as_itself_and_nothing_of_it_stays() {
    overlaid(
        "owners::each_command_has_a_copy_as_new_as_itself_and_nothing_of_it_stays",
        || {
            let workspace = strange();
            for round in 0..4 {
                workspace.file("f", &format!("{round}\n"));
                let finished =
                    workspace.run("cat f; echo mine > f; cat g 2> /dev/null; echo g > g");
                assert_eq!(text(&finished), format!("{round}\n"));
                assert_eq!(finished.ending, Ending::Exited(0));
            }
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
            assert!(!mounts.contains("nr_inodes=200000"), "{mounts}");
            // Who copied has ended, once the zygote has: with it and with the spawner.
            let sandbox = Sandbox::builder().spawner(spawner()).build();
            run_in(&sandbox, &workspace.command("true")).unwrap();
            let helpers = sandbox.helpers();
            assert!(helpers.len() >= 3, "{helpers:?}");
            drop(sandbox);
            let patience = Instant::now();
            let is_there = |id: &u32| Path::new(&format!("/proc/{id}/fd/0")).exists();
            while helpers.iter().any(is_there) {
                assert!(patience.elapsed() < Duration::from_secs(30), "{helpers:?}");
                std::thread::sleep(Duration::from_millis(5));
            }
        },
    );
}

#[test]
fn root_of_an_ordinary_users_container_changes_its_files() {
    let name = "owners::root_of_an_ordinary_users_container_changes_its_files";
    let Some(Run::Inner) = twice(name, &ROOTLESS, "mkdir place", "") else {
        return;
    };
    let workspace = to_try();
    std::os::unix::fs::chown(workspace.path().join("open"), Some(5), Some(5)).unwrap();
    workspace.file("own", "own\n");
    let finished = workspace.run(
        "id -u; cat /proc/self/uid_map; cat secret open; echo more >> own; echo new > made; \
         { echo more >> open; } 2> /dev/null || echo no write",
    );
    let text = text(&finished);
    assert!(text.starts_with("0\n"), "{text}");
    assert!(
        text.ends_with("secret\nopen\nno write\n"),
        "{text}\n{}",
        told(&finished)
    );
    // To the machine it is neither root nor the user whose container it is.
    assert!(!text.contains(" 1000 "), "{text}");
    let why = finished.confined.copied.clone().unwrap();
    assert!(why.contains("Operation not permitted"), "{why}");
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = commit_in(&journal, &finished.changes[0], &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    let after = owned(workspace.path());
    for line in [
        "made 0:0 100644 \"new\\n\"",
        "own 0:0 100644 \"own\\nmore\\n\"",
        "open 5:5 100644 \"open\\n\"",
    ] {
        assert!(after.contains(&line.to_owned()), "{line}: {after:?}");
    }
    let profile = probe(&spawner(), &workspace.cap);
    assert_eq!(profile.isolation, Isolation::Isolated, "{profile:?}");
}

#[test]
fn where_the_only_id_is_the_agents_own_its_files_are_the_commands_without_a_copy() {
    let name =
        "owners::where_the_only_id_is_the_agents_own_its_files_are_the_commands_without_a_copy";
    let Some(Run::Inner) = twice(name, &ROOTLESS_ALONE, "mkdir place", "") else {
        return;
    };
    let workspace = to_try();
    let finished = workspace.run(TRY);
    assert_eq!(text(&finished), "open\nsecret\n", "{}", told(&finished));
    assert!(finished.confined.by.contains(Mechanism::IdMaps));
    let copied = finished.confined.copied.clone().unwrap_or_default();
    assert!(!copied.contains("owners"), "{copied}");
}

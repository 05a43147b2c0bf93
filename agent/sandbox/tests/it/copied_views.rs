//! Views that are copies: kept as they were, bounded, told, and only the
//! command's changes listed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::Duration;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::changeset::{Layer, What};
use hermitcrab_sandbox::layers::memory_holds_layers;
use hermitcrab_sandbox::profile::{Mechanism, probe, probe_copying};
use hermitcrab_sandbox::spawn::{Ending, Finished, Step};
use support::arranged::{ORDINARY, Run, twice};
use support::{Workspace, commit, on, run, spawner, text};

fn names(finished: &Finished) -> Vec<String> {
    let changes = finished.changes[0].changes();
    changes
        .iter()
        .map(|change| change.path.to_string())
        .collect()
}

/// A workspace with one of everything that is not an ordinary file.
fn mixed() -> Workspace {
    let workspace = Workspace::new();
    let at = |name: &str| workspace.path().join(name);
    workspace.file("one", "linked\n");
    std::fs::create_dir(at("d")).unwrap();
    std::fs::hard_link(at("one"), at("d/two")).unwrap();
    symlink("d/two", at("link")).unwrap();
    symlink("/nowhere", at("dangling")).unwrap();
    let hollow = std::fs::File::create(at("hollow")).unwrap();
    hollow.set_len(64 << 20).unwrap();
    workspace.file("closed", "secret\n");
    std::fs::set_permissions(at("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    workspace.file("run", "#!/bin/sh\n");
    std::fs::set_permissions(at("run"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, mode, 0).unwrap();
    workspace
}

#[test]
fn a_copy_shows_what_an_overlay_shows_and_untouched_things_are_no_changes() {
    let look = "stat -c '%n %F %a %h %Y' * d/*; stat -c '%n %s' one run hollow link; readlink link dangling; cat d/two; \
                [ one -ef d/two ] && echo same; du -k hollow | cut -f1; cat closed 2> /dev/null; \
                find . | sort | wc -l";
    let workspace = mixed();
    let mut seen = Vec::new();
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            let finished = workspace.run(look);
            assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
            assert_eq!(finished.changes[0].layer(), support::layer_made());
            assert_eq!(names(&finished), [""; 0]);
            seen.push(text(&finished));
        });
    }
    assert_eq!(seen[0], seen[1]);
}

/// What a command may do to a file it was shown empty, because nobody could read it for
/// the copy: remove it, and nothing that would keep the emptiness.
#[test]
fn what_was_shown_empty_is_never_kept_empty() {
    let workspace = Workspace::new();
    workspace.file("anothers", "not for everybody\n");
    let path = workspace.path().join("anothers");
    // An id that does not exist in the sandbox, whoever runs it.
    if std::os::unix::fs::chown(&path, Some(70_000), Some(70_000)).is_err() {
        println!("SKIPPED: only root gives files away");
        return;
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    on(Layer::Copy, || {
        for script in [
            "chmod 644 anothers",
            "chmod 600 anothers && echo mine > anothers",
            "mv anothers elsewhere",
            "mkdir d && mv anothers d/",
            "ln anothers second && chmod 644 second",
        ] {
            let finished = workspace.run(script);
            assert_eq!(finished.ending, Ending::Exited(0), "{script}");
            let refused = finished.changes[0].never_kept();
            let (_, denial) = refused.unwrap_or_else(|| panic!("{script}: it would be kept"));
            assert!(denial.to_string().contains("shown empty"), "{denial}");
            assert!(commit(&finished, &workspace).failure.is_some(), "{script}");
        }
        let finished = workspace.run("cat anothers; touch beside; ls");
        assert!(finished.changes[0].never_kept().is_none());
        assert_eq!(names(&finished), ["beside"]);
        let finished = workspace.run("rm -f anothers");
        assert!(finished.changes[0].never_kept().is_none());
        assert_eq!(names(&finished), ["anothers"]);
    });
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, "not for everybody\n");
}

/// The same of a directory: its emptiness is not what is in it.
#[test]
fn a_directory_that_was_shown_empty_does_not_go_with_what_is_in_it() {
    let workspace = Workspace::new();
    workspace.file("data/pages", "not for everybody\n");
    std::fs::create_dir(workspace.path().join("bare")).unwrap();
    for name in ["data", "bare"] {
        let path = workspace.path().join(name);
        // An id that does not exist in the sandbox, whoever runs it.
        if std::os::unix::fs::chown(&path, Some(70_000), Some(70_000)).is_err() {
            println!("SKIPPED: only root gives directories away");
            return;
        }
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, closed).unwrap();
    }
    on(Layer::Copy, || {
        for script in [
            "rmdir data",
            "find . -type d -empty -delete",
            "mv data data.old",
            "mkdir d && mv data d/",
            "rmdir data && echo mine > data",
        ] {
            let finished = workspace.run(script);
            let refused = finished.changes[0].never_kept();
            let (change, denial) = refused.unwrap_or_else(|| panic!("{script}: it would be kept"));
            assert_eq!(change.path.to_string(), "data", "{script}");
            assert!(denial.to_string().contains("shown empty"), "{denial}");
            assert!(commit(&finished, &workspace).failure.is_some(), "{script}");
        }
        let finished = workspace.run("ls data; touch beside; mv beside besides; rmdir bare");
        assert!(finished.changes[0].never_kept().is_none());
        assert_eq!(names(&finished), ["besides", "bare"]);
    });
    let kept = std::fs::read_to_string(workspace.path().join("data/pages")).unwrap();
    assert_eq!(kept, "not for everybody\n");
}

#[test]
fn names_of_one_file_change_together_and_come_out_so() {
    let workspace = mixed();
    on(Layer::Copy, || {
        let finished = workspace.run("echo more >> one");
        assert_eq!(names(&finished), ["d/two", "one"]);
        assert!(commit(&finished, &workspace).failure.is_none());
    });
    let inode = |name: &str| {
        std::fs::metadata(workspace.path().join(name))
            .unwrap()
            .ino()
    };
    assert_eq!(inode("one"), inode("d/two"));
    let read = std::fs::read_to_string(workspace.path().join("d/two")).unwrap();
    assert_eq!(read, "linked\nmore\n");
}

#[test]
fn a_write_through_a_mapping_is_seen_though_no_time_changed() {
    let workspace = Workspace::new();
    workspace.file("mapped", "old old\n");
    on(Layer::Copy, || {
        let finished = workspace.run(
            "exec python3 -c \"
import mmap, os
fd = os.open('mapped', os.O_RDWR)
before = os.stat('mapped').st_ctime_ns
mmap.mmap(fd, 0)[0:3] = b'new'
print(before == os.stat('mapped').st_ctime_ns)
\"",
        );
        if finished.ending == Ending::Exited(127) {
            println!("SKIPPED: no python3 to map a file with");
            return;
        }
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        assert_eq!(names(&finished), ["mapped"]);
        assert!(commit(&finished, &workspace).failure.is_none());
    });
}

/// What somebody else does while the command runs, and whether the command,
/// which changes `f` and removes `d/x`, was overtaken by it.
#[test]
fn what_others_do_meanwhile_is_theirs_and_not_the_commands() {
    type Meddle = fn(&Workspace);
    let cases: [(&str, Meddle, bool); 6] = [
        ("another file", |w| w.file("other", "theirs\n"), false),
        ("a new file", |w| w.file("fresh", "theirs\n"), false),
        (
            "a file removed",
            |w| std::fs::remove_file(w.path().join("other")).unwrap(),
            false,
        ),
        (
            "a directory removed",
            |w| std::fs::remove_dir_all(w.path().join("e")).unwrap(),
            false,
        ),
        ("the same file", |w| w.file("f", "theirs\n"), true),
        ("the removed file", |w| w.file("d/x", "theirs\n"), true),
    ];
    for (what, meddle, overtaken) in cases {
        for layer in [Layer::Overlay, Layer::Copy] {
            on(layer, || {
                let workspace = Workspace::new();
                for name in ["f", "d/x", "e/y", "other"] {
                    workspace.file(name, "old\n");
                }
                let mut running = support::start(
                    &workspace
                        .command("echo ours > f; rm d/x; echo begun; read -r line; echo done"),
                );
                let mut told = Vec::new();
                while !told.ends_with(b"begun\n") {
                    let over = running
                        .attend(Duration::from_secs(5), |_, bytes| {
                            told.extend_from_slice(bytes)
                        })
                        .unwrap();
                    assert!(!over, "{}", String::from_utf8_lossy(&told));
                }
                meddle(&workspace);
                drop(running.take_stdin());
                let finished = running.wait().unwrap();
                assert_eq!(names(&finished), ["f", "d/x"], "{what}, {layer:?}");
                let done = commit(&finished, &workspace);
                let code = done.failure.and_then(|failure| failure.error.code());
                let expected = overtaken.then_some(DenialCode::ChangedSinceShown);
                assert_eq!(code, expected, "{what}, {layer:?}");
            });
        }
    }
}

#[test]
fn a_directory_beyond_the_ceilings_is_refused_and_says_what_to_do() {
    let workspace = Workspace::new();
    for number in 0..60 {
        workspace.file(&format!("f{number}"), &"x".repeat(40_000));
    }
    on(Layer::Copy, || {
        type Shrink = fn(&mut hermitcrab_sandbox::spawn::Limits);
        let cases: [(Shrink, bool); 4] = [
            (|_| {}, true),
            (|limits| limits.view_inodes_max = 50, false),
            (|limits| limits.view_bytes_max = 1 << 20, false),
            (|limits| limits.memory_bytes_max = 4 << 20, false),
        ];
        for (shrink, fits) in cases {
            let mut command = workspace.command("true");
            shrink(&mut command.limits);
            match run(&command) {
                Ok(finished) => assert!(fits && finished.changes[0].is_empty()),
                Err(SpawnError::Step(error)) => {
                    assert!(!fits, "{error}");
                    assert_eq!(error.step(), Step::CopyView, "{error}");
                    let told = error.to_string();
                    assert!(told.contains("smaller directory"), "{told}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert_eq!(std::fs::read_dir(workspace.path()).unwrap().count(), 60);
}

#[test]
fn each_command_has_a_copy_of_its_own_made_when_it_was_asked_for() {
    let workspace = Workspace::new();
    on(Layer::Copy, || {
        for round in 0..4 {
            workspace.file("f", &format!("{round}\n"));
            let finished = workspace.run("cat f; echo mine > f; cat g 2> /dev/null; echo g > g");
            assert_eq!(text(&finished), format!("{round}\n"));
            assert!(finished.confined.copied.is_some());
            let kinds: Vec<_> = finished.changes[0]
                .changes()
                .iter()
                .map(|c| &c.what)
                .collect();
            assert!(
                matches!(
                    kinds[..],
                    [What::ModifiedFile { .. }, What::CreatedFile { .. }]
                ),
                "{kinds:?}"
            );
        }
    });
}

#[test]
fn what_is_used_is_told_and_a_copy_proves_as_much() {
    let workspace = Workspace::new();
    let row = |profile: &hermitcrab_sandbox::profile::IsolationProfile| {
        assert!(profile.failure.is_none(), "{:?}", profile.failure);
        let rows = profile.rows.iter();
        let found = rows
            .clone()
            .find(|row| row.mechanism == Mechanism::CopyOnWrite);
        let row = found.unwrap();
        assert_eq!((row.available, row.used), (Some(true), true), "{row:?}");
        row.seen.clone()
    };
    let overlay = probe(&spawner(), &workspace.cap);
    let copy = probe_copying(&spawner(), &workspace.cap);
    assert_eq!(overlay.isolation, copy.isolation);
    // Linux before 6.6 has no layer in memory, and this one may have none on disk.
    let expected = if memory_holds_layers() {
        "overlay, its layer in memory"
    } else {
        "copy, because tmpfs keeps no attributes"
    };
    assert!(row(&overlay).starts_with(expected), "{}", row(&overlay));
    assert!(
        row(&copy).starts_with("copy, because it was asked for"),
        "{}",
        row(&copy)
    );
}

/// A directory its user has closed is in the copy of an ordinary user's command, as a
/// sandbox's first process may open it; outside nobody may.
#[test]
fn what_its_user_has_closed_hinders_no_other_change_and_is_named_where_it_was_changed() {
    let name = "copied_views::what_its_user_has_closed_hinders_no_other_change_and_is_named_where_it_was_changed";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    let workspace = Workspace::new();
    for name in ["closed/f", "closed/d/g"] {
        workspace.file(name, "in\n");
    }
    let shut = |name: &str| {
        let path = workspace.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    };
    shut("closed/d");
    shut("closed");
    on(Layer::Copy, || {
        let finished = workspace.run("echo x > beside");
        assert_eq!(names(&finished), ["beside"]);
        let done = commit(&finished, &workspace);
        assert!(done.failure.is_none(), "{:?}", done.failure);
        for script in [
            "mv closed other; mkdir closed",
            "mv closed other",
            "chmod 755 closed",
            "chmod 755 closed; echo x > closed/f; chmod 0 closed",
            "chmod 755 closed; rm closed/f; chmod 0 closed",
            "chmod 755 closed; touch closed/new; chmod 0 closed",
            "chmod 755 closed closed/d; echo x > closed/d/g; chmod 0 closed/d closed",
        ] {
            let error = run(&workspace.command(script)).unwrap_err();
            let SpawnError::ChangeSet(error) = error else {
                panic!("{script}: {error}");
            };
            let denial = error.denial();
            assert_eq!(denial.code(), DenialCode::NotReadable, "{script}");
            assert!(denial.to_string().contains("`closed, which"), "{denial}");
        }
    });
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(workspace.path().join("closed"), open.clone()).unwrap();
    std::fs::set_permissions(workspace.path().join("closed/d"), open).unwrap();
}

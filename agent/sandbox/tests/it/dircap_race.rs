//! Somebody swaps what a path leads to while it is used.
//!
//! The counts are bounded so that the test takes seconds; `HERMITCRAB_TIMES=250` makes
//! them the million of each that were run once when the mechanism was chosen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::sha256;
use rustix::fs::{CWD, RenameFlags};
use support::{Workspace, rel, times, with_permit, with_permits};

const TRIES: u32 = 4_000;
const WRITES: u32 = 2_000;
const SECRET: &[u8] = b"secret\n";

/// Swaps two names of the workspace as fast as it can while `body` runs.
fn while_swapping(workspace: &Workspace, first: &str, second: &str, body: impl FnOnce()) -> u64 {
    let stop = AtomicBool::new(false);
    let swaps = AtomicU64::new(0);
    let (first, second): (PathBuf, PathBuf) =
        (workspace.path().join(first), workspace.path().join(second));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &first, CWD, &second, RenameFlags::EXCHANGE)
                    .unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        body();
        stop.store(true, Ordering::Relaxed);
    });
    swaps.into_inner()
}

#[test]
fn no_read_ever_leaves_the_directory_while_it_is_swapped_with_a_link_out() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f"), SECRET).unwrap();
    for (name, target) in [
        ("d", outside.path().to_owned()),
        ("d/f", outside.path().join("f")),
        ("d", PathBuf::from("/proc/self/cwd")),
    ] {
        let workspace = Workspace::new();
        workspace.file("d/f", "inside\n");
        symlink(&target, workspace.path().join("swap")).unwrap();
        let path = rel("d/f");
        let (mut inside, mut escaped) = (0_u32, 0_u32);
        let swaps = while_swapping(&workspace, name, "swap", || {
            for _ in 0..times(TRIES) {
                let result = with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
                    workspace.cap.read(permit, &path, 1024)
                });
                match result.as_deref() {
                    Ok(b"inside\n") => inside += 1,
                    Ok(_) => escaped += 1,
                    Err(_) => {}
                }
            }
        });
        println!("{name}: {inside} read inside, {escaped} outside, {swaps} swaps");
        assert_eq!(escaped, 0);
        assert!(inside > 0 && swaps > 0, "the race was not run");
    }
}

#[test]
fn no_look_and_no_list_ever_tells_of_what_a_link_out_leads_to() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("f")).unwrap();
    std::fs::write(outside.path().join("f/secret"), SECRET).unwrap();
    for (name, target) in [
        ("d", outside.path().to_owned()),
        ("d/f", outside.path().join("f")),
    ] {
        let workspace = Workspace::new();
        workspace.file("d/f/own", "inside\n");
        symlink(&target, workspace.path().join("swap")).unwrap();
        let path = rel("d/f");
        // What tells them apart in their facts.
        let bits = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(outside.path().join("f"), bits).unwrap();
        let (mut inside, mut escaped) = (0_u32, 0_u32);
        let swaps = while_swapping(&workspace, name, "swap", || {
            for _ in 0..times(TRIES / 4) {
                let action = || {
                    let dir = support::dir_id();
                    Action::on_path(Verb::FsRead, dir, path.clone(), Digest::NONE).unwrap()
                };
                let looked =
                    with_permits(Tool::Directory, vec![action(), action()], |mut permits| {
                        let (facts, way) = (permits.pop().unwrap(), permits.pop().unwrap());
                        workspace.cap.stat_and_leads_to(facts, way, &path)
                    });
                match looked {
                    Ok((stat, _)) if stat.mode != 0o711 => inside += 1,
                    Ok(_) => escaped += 1,
                    Err(_) => {}
                }
                let listed = with_permit(Verb::FsList, &path, Digest::NONE, |permit| {
                    workspace.cap.list_direct_as_found(permit, &path)
                });
                if listed.is_ok_and(|names| names.iter().any(|(name, _)| name != b"own")) {
                    escaped += 1;
                }
            }
        });
        println!("{name}: {inside} looked inside, {escaped} outside, {swaps} swaps");
        assert_eq!(escaped, 0);
        assert!(inside > 0 && swaps > 0, "the race was not run");
    }
}

#[test]
fn no_write_ever_lands_outside_while_the_directory_is_swapped_with_a_link_out() {
    let outside = tempfile::tempdir().unwrap();
    let workspace = Workspace::new();
    workspace.file("d/keep", "");
    symlink(outside.path(), workspace.path().join("swap")).unwrap();
    let mut written = 0_u32;
    let swaps = while_swapping(&workspace, "d", "swap", || {
        for number in 0..times(WRITES) {
            let path = rel(&format!("d/{}", number % 16));
            let content = number.to_string();
            let result = with_permit(
                Verb::FsCreate,
                &path,
                sha256(content.as_bytes()),
                |permit| {
                    workspace
                        .cap
                        .write(permit, &path, content.as_bytes(), Base::Absent, None)
                },
            );
            written += u32::from(result.is_ok());
        }
    });
    println!("{written} written inside, {swaps} swaps");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(written > 0 && swaps > 0, "the race was not run");
}

#[test]
fn the_last_version_of_another_writer_survives_every_checked_replacement() {
    const ROUNDS: u32 = 300;
    let workspace = Workspace::new();
    workspace.file("f", "start");
    let path = rel("f");
    let (file, next) = (workspace.path().join("f"), workspace.path().join("next"));
    let start = std::sync::Barrier::new(2);
    let end = std::sync::Barrier::new(2);
    let (mut replaced, mut refused) = (0_u32, 0_u32);
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                start.wait();
                for save in 0..round % 4 {
                    // Saves by rename, as editors do.
                    std::fs::write(&next, format!("user {round} {save}")).unwrap();
                    std::fs::rename(&next, &file).unwrap();
                }
                end.wait();
            }
        });
        for round in 0..ROUNDS {
            let content = format!("agent {round}");
            start.wait();
            let seen = std::fs::read(&file).unwrap();
            let result = with_permit(
                Verb::FsModify,
                &path,
                sha256(content.as_bytes()),
                |permit| {
                    workspace
                        .cap
                        .replace_if(permit, &path, content.as_bytes(), sha256(&seen))
                },
            );
            end.wait();
            let last = match round % 4 {
                0 => String::from_utf8(seen.clone()).unwrap(),
                saves => format!("user {round} {}", saves - 1),
            };
            let found = std::fs::read_to_string(&file).unwrap();
            let replaced_the_last = result.is_ok() && seen == last.as_bytes() && found == content;
            // Not asserted here: the other thread would wait for ever.
            if found != last && !replaced_the_last {
                wrong.push(format!(
                    "{found:?} instead of {last:?}; the replacement was based on {:?}: {result:?}",
                    String::from_utf8_lossy(&seen)
                ));
            }
            match result {
                Ok(()) => replaced += 1,
                Err(_) => refused += 1,
            }
        }
    });
    println!("{replaced} replaced, {refused} refused");
    assert_eq!(wrong, Vec::<String>::new());
    assert!(replaced > 0 && refused > 0, "the race was not run");
    let left: Vec<_> = std::fs::read_dir(workspace.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

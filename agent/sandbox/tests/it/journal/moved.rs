//! Moves, made directories and removed trees: all or nothing, bound to the very
//! things they are about, and taken back with everything they had.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::Path;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Object;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::changeset::edits::Edit;
use hermitcrab_sandbox::dircap::FsError;
use hermitcrab_sandbox::journal::{Commit, Part, UndoError};
use hermitcrab_sandbox::spawn::{EXCHANGE_DIR, Ending, View, ViewMode};
use hermitcrab_sandbox::{DirCap, Journal};

use super::{At, Cut, plant};
use crate::support::{self, Workspace, as_anybody, commit_in, rel, tree, undo_in};

fn moved(from: &str, to: &str) -> Edit {
    Edit::Move {
        from: rel(from),
        to: rel(to),
    }
}

fn made(path: &str) -> Edit {
    let path = rel(path);
    Edit::MakeDir { path, mode: 0o755 }
}

/// A directory and everything in it, as a tool lists it.
fn removed(workspace: &Workspace, path: &str) -> Vec<Edit> {
    let at = workspace.path().join(path);
    let mut edits = Vec::new();
    if at.symlink_metadata().unwrap().is_file() {
        let before = hermitcrab_sandbox::sha256(&fs::read(&at).unwrap());
        let path = rel(path);
        return vec![Edit::Remove { path, before }];
    }
    if at.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(&at).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            edits.extend(removed(workspace, &format!("{path}/{name}")));
        }
    }
    edits.push(Edit::RemoveName { path: rel(path) });
    edits
}

fn planted() -> Workspace {
    let workspace = Workspace::new();
    plant(workspace.path());
    workspace
}

fn make(journal: &Journal, workspace: &Workspace, edits: &[Edit]) -> Result<Commit, FsError> {
    let incoming = journal.incoming(&workspace.cap, edits)?;
    Ok(commit_in(journal, incoming.set().unwrap(), workspace))
}

/// Everything there is to do at once.
fn everything(workspace: &Workspace) -> Vec<Edit> {
    let mut edits = vec![
        moved("a", "new/place/a"),
        moved("d", "new/d"),
        moved("l", "k"),
        made("empty/in"),
    ];
    edits.extend(removed(workspace, "e"));
    edits
}

#[test]
fn moves_and_removals_cut_off_at_any_step_are_all_or_nothing_and_so_is_taking_them_back() {
    let mut halves = 0;
    for steps in 0.. {
        let workspace = planted();
        let before = tree(workspace.path());
        let inode = fs::metadata(workspace.path().join("d/x")).unwrap().ino();
        let edits = everything(&workspace);
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = make(&journal, &workspace, &edits);
        drop(journal);
        halves += usize::from(tree(workspace.path()) != before);
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "cut after {steps}: {recovered:?}"
        );
        if tree(workspace.path()) == before {
            assert!(done.is_err() || done.is_ok_and(|done| done.failure.is_some()));
            assert!(journal.list().unwrap().is_empty());
            continue;
        }
        let there = |name: &str| workspace.path().join(name).symlink_metadata().is_ok();
        assert!(there("new/place/a") && there("k") && there("empty/in"));
        assert!(!there("a") && !there("d") && !there("l") && !there("e"));
        // A move is of the very thing, not of a copy.
        let now = fs::metadata(workspace.path().join("new/d/x"))
            .unwrap()
            .ino();
        assert_eq!(now, inode);
        assert!(steps > 10 && halves > 3, "{steps} steps, {halves} halves");
        drop(journal);
        taken_back_whole_or_not_at_all(&workspace, &before);
        return;
    }
}

/// Of a directory everything goes along, and that is what is asked for; of anything else
/// there is no more than its name.
#[test]
fn a_directory_is_moved_by_who_may_move_all_that_lies_in_it_and_so_is_taking_that_back() {
    let workspace = planted();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let edits = [moved("a", "n"), moved("d", "k"), moved("l", "m")];
    let incoming = journal.incoming(&workspace.cap, &edits).unwrap();
    let set = incoming.set().unwrap();
    let actions = set.actions(workspace.cap.id()).unwrap();
    let asked = |actions: &[Action]| -> Vec<String> {
        let asked = actions
            .iter()
            .map(|action| action.cap().asked().to_string());
        asked.collect()
    };
    let mut told = asked(&actions);
    told.sort();
    assert_eq!(
        told,
        [
            "fs.create all of dir0:k",
            "fs.create dir0:m",
            "fs.create dir0:n",
            "fs.delete all of dir0:d",
            "fs.delete dir0:a",
            "fs.delete dir0:l",
        ]
    );
    let alone = |actions: &[Action]| -> Vec<Action> {
        let alone = actions.iter().map(|action| {
            let Object::Dir { dir, below, .. } = action.object() else {
                panic!("{action}");
            };
            Action::on_path(action.verb(), *dir, below.clone(), action.digest()).unwrap()
        });
        alone.collect()
    };
    let before = tree(workspace.path());
    let commit = |actions| {
        support::with_permits(Tool::Directory, actions, |permits| {
            let dir = &workspace.cap;
            journal.commit(vec![Part { dir, set, permits }], "a test")
        })
    };
    let is_unfit = |commit: Commit| {
        let error = commit.failure.unwrap().error;
        matches!(error, FsError::Denied(denial) if denial.code() == DenialCode::PermitMismatch)
    };
    assert!(is_unfit(commit(alone(&actions))));
    assert_eq!(tree(workspace.path()), before);
    let id = commit(actions).id.unwrap();
    let after = tree(workspace.path());
    assert_ne!(after, before);
    let undo = journal.prepare_undo(id).unwrap();
    let dirs = [(workspace.cap.id(), RelPath::root())];
    let actions = undo.actions(&dirs).unwrap();
    let mut told = asked(&actions);
    told.sort();
    assert_eq!(
        told,
        [
            "fs.create all of dir0:d",
            "fs.create dir0:a",
            "fs.create dir0:l",
            "fs.delete all of dir0:k",
            "fs.delete dir0:m",
            "fs.delete dir0:n",
        ]
    );
    let undone = support::with_permits(Tool::Directory, alone(&actions), |permits| {
        journal.undo(&undo, &[&workspace.cap], permits)
    });
    assert!(is_unfit(undone));
    assert_eq!(tree(workspace.path()), after);
    assert!(undo_in(&journal, id, &workspace).unwrap().failure.is_none());
    assert_eq!(tree(workspace.path()), before);
}

fn taken_back_whole_or_not_at_all(workspace: &Workspace, before: &[String]) {
    let after = tree(workspace.path());
    let mut halves = 0;
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let id = journal.list().unwrap()[0].id;
        let undone = undo_in(&journal, id, workspace).unwrap();
        drop(journal);
        let found = tree(workspace.path());
        halves += usize::from(found != before && found != after);
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "cut after {steps}: {recovered:?}"
        );
        let now = tree(workspace.path());
        if now == after && undone.failure.is_some() {
            continue;
        }
        assert_eq!(now, before, "cut after {steps}");
        assert!(halves > 3, "{halves} of {steps}");
        // Taking that back brings everything to its new place again.
        let id = journal.list().unwrap().last().unwrap().id;
        let redone = undo_in(&journal, id, workspace).unwrap();
        assert!(redone.failure.is_none(), "{:?}", redone.failure);
        assert_eq!(tree(workspace.path()), after);
        return;
    }
}

/// Does something to a workspace in which `a` became `n/a` and `m` was made, and
/// names what then keeps it from being taken back.
#[track_caller]
fn kept_from_being_undone(change: impl FnOnce(&Path), names: &[&str]) {
    let workspace = planted();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = make(&journal, &workspace, &[moved("a", "n/a"), made("m")]).unwrap();
    change(workspace.path());
    let now = tree(workspace.path());
    match undo_in(&journal, done.id.unwrap(), &workspace) {
        Err(UndoError::Changed(found)) => {
            let found: Vec<String> = found.iter().map(|(_, path)| path.to_string()).collect();
            assert_eq!(found, names);
            assert_eq!(tree(workspace.path()), now);
        }
        Ok(undone) => {
            assert!(names.is_empty() && undone.failure.is_none(), "{undone:?}");
            let text = fs::read_to_string(workspace.path().join("a")).unwrap();
            assert!(text.starts_with("a\n"), "{text}");
            assert!(!workspace.path().join("n").exists() && !workspace.path().join("m").exists());
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_is_something_else_now_is_not_moved_back() {
    kept_from_being_undone(|_| {}, &[]);
    // Edited in place it is the same thing, and goes back as it is.
    kept_from_being_undone(
        |dir| {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .open(dir.join("n/a"))
                .unwrap();
            std::io::Write::write_all(&mut file, b"more\n").unwrap();
        },
        &[],
    );
    // Of equal content, and still another file.
    kept_from_being_undone(
        |dir| {
            fs::remove_file(dir.join("n/a")).unwrap();
            fs::write(dir.join("n/a"), "a\n").unwrap();
        },
        &["n/a"],
    );
    kept_from_being_undone(|dir| fs::remove_file(dir.join("n/a")).unwrap(), &["n/a"]);
    kept_from_being_undone(|dir| fs::write(dir.join("a"), "mine\n").unwrap(), &["n/a"]);
    // A directory that was made goes only while it is empty.
    kept_from_being_undone(|dir| fs::write(dir.join("m/f"), "").unwrap(), &["m"]);
    kept_from_being_undone(|dir| fs::write(dir.join("n/f"), "").unwrap(), &["n"]);
    kept_from_being_undone(
        |dir| fs::set_permissions(dir.join("m"), fs::Permissions::from_mode(0o700)).unwrap(),
        &["m"],
    );
}

#[test]
fn what_took_a_things_place_before_the_move_stays_where_it_is() {
    let workspace = planted();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let incoming = journal
        .incoming(&workspace.cap, &[moved("b", "n/b"), moved("a", "n/a")])
        .unwrap();
    fs::remove_file(workspace.path().join("a")).unwrap();
    fs::write(workspace.path().join("a"), "mine\n").unwrap();
    let now = tree(workspace.path());
    let failure = commit_in(&journal, incoming.set().unwrap(), &workspace)
        .failure
        .unwrap();
    assert_eq!(failure.error.code(), Some(DenialCode::ChangedSinceShown));
    assert_eq!(failure.stuck, []);
    assert_eq!(tree(workspace.path()), now);
    // A name that is taken by then is not overwritten either.
    let incoming = journal
        .incoming(&workspace.cap, &[moved("b", "n/b"), moved("a", "c")])
        .unwrap();
    fs::write(workspace.path().join("c"), "mine\n").unwrap();
    let now = tree(workspace.path());
    let failure = commit_in(&journal, incoming.set().unwrap(), &workspace)
        .failure
        .unwrap();
    assert_eq!(failure.error.code(), Some(DenialCode::ChangedSinceShown));
    assert_eq!(failure.stuck, []);
    assert_eq!(tree(workspace.path()), now);
    assert!(journal.list().unwrap().is_empty());
}

/// What a name has besides its content: number, number of names, mode, time.
fn facts(dir: &Path, name: &str) -> (u64, u64, u32, (i64, i64)) {
    let stat = fs::symlink_metadata(dir.join(name)).unwrap();
    let number = if stat.is_dir() { 0 } else { stat.ino() };
    let names = if stat.is_dir() { 0 } else { stat.nlink() };
    (
        number,
        names,
        stat.mode(),
        (stat.mtime(), stat.mtime_nsec()),
    )
}

#[test]
fn a_removed_tree_comes_back_with_modes_links_attributes_and_times() {
    let workspace = planted();
    let dir = workspace.path();
    fs::set_permissions(dir.join("d/y"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(dir.join("d/s"), fs::Permissions::from_mode(0o711)).unwrap();
    fs::hard_link(dir.join("d/x"), dir.join("d/s/x2")).unwrap();
    fs::hard_link(dir.join("d/y"), dir.join("outside")).unwrap();
    symlink("nowhere", dir.join("d/link")).unwrap();
    let status = std::process::Command::new("touch")
        .args(["-h", "-d", "2001-02-03T04:05:06.789"])
        .args(["d/link", "d/y", "d/s/z", "d/s", "d"].map(|name| dir.join(name)))
        .status()
        .unwrap();
    assert!(status.success());
    let attribute = rustix::fs::setxattr(
        dir.join("d/s"),
        "user.colour",
        b"red",
        rustix::fs::XattrFlags::empty(),
    );
    if attribute.is_err() {
        println!("SKIPPED: attributes, which this file system does not have");
    }
    let names = [
        "d", "d/link", "d/y", "d/s", "d/s/z", "d/x", "d/s/x2", "outside",
    ];
    let (before, all) = (names.map(|name| facts(dir, name)), tree(dir));
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let done = make(&journal, &workspace, &removed(&workspace, "d")).unwrap();
    assert!(done.failure.is_none() && !dir.join("d").exists());
    let undone = undo_in(&journal, done.id.unwrap(), &workspace).unwrap();
    assert!(undone.failure.is_none(), "{:?}", undone.failure);
    assert_eq!(tree(dir), all);
    assert_eq!(names.map(|name| facts(dir, name)), before);
}

#[test]
fn a_tree_into_which_something_came_meanwhile_is_not_removed() {
    let workspace = planted();
    let (journal, _) = Journal::open(workspace.state.path()).unwrap();
    let edits = removed(&workspace, "d");
    workspace.file("d/s/late", "mine\n");
    let now = tree(workspace.path());
    let done = make(&journal, &workspace, &edits).unwrap();
    let failure = done.failure.unwrap();
    assert_eq!(failure.error.code(), Some(DenialCode::ChangedSinceShown));
    assert_eq!(tree(workspace.path()), now);
}

#[test]
fn names_come_and_go_only_in_directories_that_may_be_written() {
    // Root may write everywhere.
    as_anybody(|| {
        let workspace = planted();
        let closed = workspace.path().join("d");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let now = tree(workspace.path());
        let put = |path: &str| Edit::Put {
            path: rel(path),
            content: b"n\n".to_vec(),
            mode: 0o600,
        };
        let rename = |from: &str, to: &str, content: &[u8]| Edit::Rename {
            from: rel(from),
            to: rel(to),
            before: hermitcrab_sandbox::sha256(content),
            content: content.to_vec(),
        };
        let refused: [Vec<Edit>; 9] = [
            vec![put("d/new")],
            vec![put("d/new/deeper")],
            vec![made("d/new")],
            vec![moved("a", "d/a")],
            vec![moved("d/x", "x")],
            vec![rename("a", "d/a", b"a\n")],
            vec![rename("d/x", "x", b"x\n")],
            removed(&workspace, "d/x"),
            removed(&workspace, "d"),
        ];
        for edits in refused {
            let error = match make(&journal, &workspace, &edits) {
                Err(error) => error,
                Ok(done) => done.failure.unwrap().error,
            };
            let FsError::Io { source, .. } = &error else {
                panic!("{edits:?}: {error}")
            };
            assert_eq!(
                source.kind(),
                std::io::ErrorKind::PermissionDenied,
                "{edits:?}"
            );
            assert_eq!(tree(workspace.path()), now, "{edits:?}");
        }
        // Once it is opened the same goes through.
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
        let edits = [put("d/new"), moved("a", "d/a"), rename("d/x", "x", b"x\n")];
        let done = make(&journal, &workspace, &edits).unwrap();
        assert!(done.failure.is_none(), "{:?}", done.failure);
    });
}

/// What stands in the sandbox around the second half of the test below.
const INSIDE: &str = "inside";
const WHOLE_NAME: &str = "journal::moved::a_directory_that_cannot_be_moved_as_one_is_told_so_and_stays_and_a_file_is_moved";

/// Below a view is an overlay, and no other is needed: the test runs itself there.
#[test]
fn a_directory_that_cannot_be_moved_as_one_is_told_so_and_stays_and_a_file_is_moved() {
    let exchange = Path::new(EXCHANGE_DIR);
    if exchange.join(INSIDE).exists() {
        below_a_view(&fs::read_to_string(exchange.join(INSIDE)).unwrap());
        return;
    }
    let workspace = planted();
    let programs = Path::new(env!("CARGO_BIN_EXE_hermitcrab-sandbox-child"));
    let programs = programs.parent().unwrap();
    let cap = DirCap::open_ambient_dir(programs, support::dir_id()).unwrap();
    let own = fs::read_link("/proc/self/exe").unwrap();
    let mut command = workspace.command("");
    command.argv = [own.to_str().unwrap(), "--exact", WHOLE_NAME]
        .map(|word| word.as_bytes().to_vec())
        .to_vec();
    command.views.push(View {
        dir: &cap,
        at: programs.to_owned(),
        mode: ViewMode::ReadOnly,
        withheld: Withheld::default(),
    });
    let place = workspace.path().to_str().unwrap().to_owned();
    command.inputs.push((INSIDE.to_owned(), place.into_bytes()));
    let finished = support::run(&command).unwrap();
    let told = support::text(&finished);
    assert_eq!(finished.ending, Ending::Exited(0), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

fn below_a_view(place: &str) {
    let place = Path::new(place);
    // Who is closed to all others is closed to who renames for it, as on any overlay
    // outside of a sandbox nobody does.
    let closed = rustix::process::DumpableBehavior::NotDumpable;
    rustix::process::set_dumpable_behavior(closed).unwrap();
    let cap = DirCap::open_ambient_dir(place, support::dir_id()).unwrap();
    let state = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(state.path()).unwrap();
    let commit = |edits: &[Edit]| {
        let incoming = journal.incoming(&cap, edits).unwrap();
        support::commit_of(&journal, incoming.set().unwrap(), &cap)
    };
    let before = tree(place);
    let failure = commit(&[moved("d", "k")]).failure.unwrap();
    assert!(failure.stuck.is_empty(), "{failure:?}");
    let told = failure.error.to_string();
    match failure.error {
        FsError::Io { source, .. } => {
            assert_eq!(source.kind(), std::io::ErrorKind::CrossesDevices, "{told}");
        }
        FsError::Denied(denial) => panic!("{denial}"),
    }
    assert!(told.contains("copy it"), "{told}");
    assert_eq!(tree(place), before);
    assert!(commit(&[moved("d/x", "k")]).failure.is_none());
    assert!(place.join("k").is_file() && !place.join("d/x").exists());
}

//! An agent's own directory on another file system than the workspace, and things of which
//! no copy is made by reading them.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use hermitcrab_sandbox::Journal;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{At, Cut, Workspace, commit_in, stray, undo_in};

/// A pipe, a socket and a file its owner cannot read, at the top and in a directory, and a
/// pipe whose name is to be a file's.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("d/in", "in\n");
    for name in ["pipe", "d/pipe", "taken"] {
        let (kind, mode) = (FileType::Fifo, Mode::from_raw_mode(0o640));
        mknodat(CWD, workspace.path().join(name), kind, mode, 0).unwrap();
    }
    for name in ["socket", "d/socket"] {
        drop(std::os::unix::net::UnixListener::bind(workspace.path().join(name)).unwrap());
    }
    for name in ["closed", "d/closed"] {
        workspace.file(name, &format!("{name}\n"));
        let path = workspace.path().join(name);
        rustix::fs::setxattr(&path, "user.mark", b"m", rustix::fs::XattrFlags::empty()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o040)).unwrap();
    }
    workspace
}

/// Kind, mode, owner and time of all names but directories, and what files hold.
fn facts(workspace: &Workspace) -> Vec<String> {
    let mut names = vec![Path::new("").to_owned()];
    let mut facts = Vec::new();
    while let Some(name) = names.pop() {
        let path = workspace.path().join(&name);
        let stat = std::fs::symlink_metadata(&path).unwrap();
        if stat.is_dir() {
            let below = std::fs::read_dir(&path).unwrap();
            names.extend(below.map(|entry| name.join(entry.unwrap().file_name())));
            continue;
        }
        let kind = stat.file_type();
        let holds = if kind.is_file() {
            // An ordinary user opens it for the look.
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let mut mark = [0; 8];
            let marked = rustix::fs::getxattr(&path, "user.mark", &mut mark).unwrap_or(0);
            let holds = format!("{:?} {marked}", std::fs::read_to_string(&path).unwrap());
            std::fs::set_permissions(&path, stat.permissions()).unwrap();
            holds
        } else {
            format!("{} {}", kind.is_fifo(), kind.is_socket())
        };
        let mode = stat.mode();
        let (owner, time) = (stat.uid(), (stat.mtime(), stat.mtime_nsec()));
        facts.push(format!(
            "{} {mode:o} {owner} {time:?} {holds}",
            name.display()
        ));
    }
    facts.sort();
    facts
}

#[test]
fn what_cannot_be_read_goes_to_another_file_system_and_comes_back() {
    match tempfile::tempdir_in("/dev/shm") {
        Ok(state) => goes_and_comes_back(state),
        Err(_) => println!("SKIPPED: /dev/shm cannot be written"),
    }
}

#[test]
fn what_cannot_be_read_goes_into_the_journal_and_comes_back() {
    goes_and_comes_back(tempfile::tempdir().unwrap());
}

fn goes_and_comes_back(state: tempfile::TempDir) {
    let mut workspace = workspace();
    workspace.state = state;
    let before = facts(&workspace);
    let finished = workspace.run(
        "rm -f pipe socket closed taken; rm -rf d; echo file > taken; mkdir n; echo x > n/closed; chmod 0 n/closed",
    );
    for steps in 0.. {
        let cut = Cut::after(steps, At::Stop);
        let (journal, _) = Journal::open_watched(workspace.state.path(), Box::new(cut)).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        drop(journal);
        let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(
            recovered.stuck.is_empty() && recovered.broken.is_empty(),
            "{steps}: {recovered:?}"
        );
        if let Some(failure) = done.failure.filter(|_| facts(&workspace) == before) {
            // None of the steps fails but for that.
            let why = failure.error.to_string();
            assert!(why.contains("stopped"), "{steps}: {why}");
            assert_eq!(stray(&workspace), [""; 0], "cut after {steps}");
            continue;
        }
        let after = facts(&workspace);
        assert_eq!(after.len(), 2, "{after:?}");
        for _ in 0..2 {
            let id = journal.list().unwrap().last().unwrap().id;
            let undone = undo_in(&journal, id, &workspace).unwrap();
            assert!(undone.failure.is_none(), "{:?}", undone.failure);
            assert_eq!(facts(&workspace), before);
            let id = undone.id.unwrap();
            let again = undo_in(&journal, id, &workspace).unwrap();
            assert!(again.failure.is_none(), "{:?}", again.failure);
            assert_eq!(facts(&workspace), after);
        }
        break;
    }
}

//! The workspaces in which a command once needed more room than memory has.
//!
//! What for: what a command changes lies in memory, which is quick and bounds it, and that
//! is too little for a large build, or for another name for a large file. Who met that once
//! meets it again, and where it lies makes no difference to anything else. So the agent
//! writes it down, and keeps what is changed in that workspace on disk from then on.
//!
//! It is no authority: a note more or less decides where a layer lies, and nothing else.

use std::{
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::own_file::{self, OwnFileError};
use crate::digest::sha256;

/// The directory, in the agent's own.
const DIR_NAME: &str = "roomy";
/// So many workspaces are remembered; the one noted first goes.
const NOTES_MAX: usize = 1000;

/// Whether it was noted of this workspace.
#[must_use]
pub fn is_noted(state_dir: &Path, workspace: &Path) -> bool {
    fs::symlink_metadata(state_dir.join(DIR_NAME).join(name(workspace)))
        .is_ok_and(|there| there.is_file())
}

/// Notes it.
///
/// # Errors
/// It cannot be written down.
pub fn note(state_dir: &Path, workspace: &Path) -> Result<(), OwnFileError> {
    if is_noted(state_dir, workspace) {
        return Ok(());
    }
    let dir = state_dir.join(DIR_NAME);
    own_file::state_dir(&dir)?;
    // Which one it is, for a person who looks.
    let mut told = workspace.as_os_str().as_bytes().to_vec();
    told.push(b'\n');
    own_file::put_whole(&dir, &name(workspace), &told)?;
    forget_the_first(&dir);
    Ok(())
}

/// A name of fixed length, whatever the workspace is called.
fn name(workspace: &Path) -> String {
    sha256(workspace.as_os_str().as_bytes()).to_string()
}

/// Removes what is too much. What cannot be removed is no trouble to anybody.
fn forget_the_first(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut notes: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let at = entry.metadata().and_then(|there| there.modified());
            Some((at.ok()?, entry.path()))
        })
        .collect();
    notes.sort();
    for (_, first) in notes.iter().take(notes.len().saturating_sub(NOTES_MAX)) {
        match fs::remove_file(first) {
            Err(error) if error.kind() != ErrorKind::NotFound => return,
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

    use super::{DIR_NAME, NOTES_MAX, is_noted, note};

    #[test]
    fn what_was_noted_of_one_workspace_is_known_of_that_one() {
        let temp = tempfile::tempdir().expect("a directory");
        let odd = Path::new(OsStr::from_bytes(b"/w/\xff\n.."));
        for workspace in [Path::new("/w/one"), odd] {
            assert!(!is_noted(temp.path(), workspace));
            note(temp.path(), workspace).expect("a note");
            note(temp.path(), workspace).expect("the same once more");
            assert!(is_noted(temp.path(), workspace));
        }
        assert!(!is_noted(temp.path(), Path::new("/w/on")));
        let notes = std::fs::read_dir(temp.path().join(DIR_NAME)).expect("notes");
        assert_eq!(notes.count(), 2);
    }

    #[test]
    fn so_many_are_remembered() {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = temp.path().join(DIR_NAME);
        note(temp.path(), Path::new("/w")).expect("a note");
        for more in 0..NOTES_MAX {
            std::fs::write(dir.join(more.to_string()), "").expect("a file");
        }
        note(temp.path(), Path::new("/last")).expect("a note");
        let left = std::fs::read_dir(&dir).expect("notes").count();
        assert_eq!(left, NOTES_MAX);
        assert!(is_noted(temp.path(), Path::new("/last")));
        assert!(!is_noted(temp.path(), Path::new("/w")));
    }
}

//! A journal that is not the agent's own is neither used nor touched, and it is said why.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use hermitcrab_sandbox::Journal;
use hermitcrab_sandbox::journal::JournalError;

fn opened(state: &Path, put: impl FnOnce(&Path)) -> JournalError {
    drop(Journal::open(state).unwrap());
    put(&state.join("journal"));
    Journal::open(state).unwrap_err()
}

#[test]
fn something_else_in_its_place_is_told() {
    type Put = fn(&Path);
    let puts: [(Put, &str); 6] = [
        (
            |journal| {
                fs::remove_dir_all(journal).unwrap();
                fs::write(journal, "").unwrap();
            },
            "it is not a directory",
        ),
        (
            |journal| {
                fs::rename(journal, journal.with_extension("old")).unwrap();
                symlink(journal.with_extension("old"), journal).unwrap();
            },
            "it is not a directory",
        ),
        (
            |journal| fs::set_permissions(journal, fs::Permissions::from_mode(0o777)).unwrap(),
            "others can write it",
        ),
        (
            |journal| {
                fs::remove_file(journal.join("lock")).unwrap();
                fs::create_dir(journal.join("lock")).unwrap();
            },
            "what lies there is no file",
        ),
        (
            |journal| {
                fs::remove_file(journal.join("lock")).unwrap();
                symlink("elsewhere", journal.join("lock")).unwrap();
            },
            "what lies there is no file",
        ),
        (
            |journal| {
                fs::remove_file(journal.join("lock")).unwrap();
                drop(UnixListener::bind(journal.join("lock")).unwrap());
            },
            "what lies there is no file",
        ),
    ];
    for (put, why) in puts {
        let state = tempfile::tempdir().unwrap();
        let error = opened(state.path(), put);
        assert!(matches!(error, JournalError::NotOurs(..)), "{error:?}");
        let told = error.to_string();
        assert!(
            told.contains(why) && told.contains("move it away and start again"),
            "{told}"
        );
        assert!(!state.path().join("journal/elsewhere").exists());
    }
}

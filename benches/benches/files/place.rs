//! The places a run is asked to measure in, and what file system each is on.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::ambient;

/// The directories after each `--on`.
pub fn named() -> Vec<PathBuf> {
    ambient::named("--on")
}

/// The file system of a place, in words; an ext4 without a journal costs several
/// times as much as one with it where files were removed just before, so that is told.
pub fn told(place: &Path) -> String {
    let device = std::fs::metadata(place).unwrap().dev();
    let device = format!("{}:{}", major(device), minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    // proc_pid_mountinfo(5): the device is the third field; after ` - ` come type and source.
    let found = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        (before.split(' ').nth(2)? == device).then_some(())?;
        let mut after = after.split(' ');
        Some((after.next()?, after.next()?))
    });
    match found {
        Some(("ext4", source)) => {
            let journal = source.rsplit('/').next().is_some_and(journalled);
            let journal = if journal { "with" } else { "without" };
            format!("an ext4 {journal} a journal")
        }
        Some(("tmpfs", _)) => "a tmpfs, where nothing is waited for".to_owned(),
        Some((other, _)) => format!("a file system of the type `{other}`"),
        None => "a file system of a type that is not told".to_owned(),
    }
}

/// Whether jbd2 keeps a journal for this device: it has a directory for each of its own.
fn journalled(device: &str) -> bool {
    let Ok(journals) = std::fs::read_dir("/proc/fs/jbd2") else {
        return false;
    };
    journals.filter_map(Result::ok).any(|journal| {
        journal
            .file_name()
            .to_string_lossy()
            .rsplit_once('-')
            .is_some_and(|(of, _)| of == device)
    })
}

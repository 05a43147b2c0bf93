//! How much is kept of what jobs came to: as much as Hermes keeps, which has the same directory.

use std::{io, os::fd::OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType};

/// So many runs of a job are kept, the newest, as Hermes 0.19.0 does unless it is told otherwise.
pub(super) const KEPT: usize = 50;
/// What it is told by, in its configuration.
pub(super) const SAID_BY: &str = "output_retention";
/// What stands in a name where a run's time has a digit, and all else as it is.
const FORM: &[u8] = b"0000-00-00_00-00-00.md";

/// Removes what came of all runs but the newest from a job's directory.
///
/// # Errors
/// It cannot be listed, or a file cannot be removed; the others are.
pub(super) fn keep_the_newest(dir: &OwnedFd) -> io::Result<()> {
    let mut runs = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if is_of_a_run(entry.file_name().to_bytes()) {
            runs.push(entry.file_name().to_owned());
        }
    }
    // Their names are their times.
    runs.sort();
    let more = runs.len().saturating_sub(KEPT);
    let mut failed = None;
    for name in runs.iter().take(more) {
        let seen = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_file =
            seen.is_ok_and(|seen| FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile);
        if is_file && let Err(errno) = rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            failed = Some(errno);
        }
    }
    failed.map_or(Ok(()), |errno| Err(errno.into()))
}

/// Whether a file is called as what came of a run is; what else lies there is somebody's.
fn is_of_a_run(name: &[u8]) -> bool {
    let fits = |(letter, form): (&u8, &u8)| match form {
        b'0' => letter.is_ascii_digit(),
        form => letter == form,
    };
    name.len() == FORM.len() && name.iter().zip(FORM).all(fits)
}

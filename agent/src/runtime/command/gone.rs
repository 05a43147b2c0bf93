//! What becomes of a session whose shell has no directory any more.
//!
//! In a view a directory gets another name by being copied, so whoever moves the one they
//! are in is left in none, where elsewhere they would have gone with it. What came of it is
//! known as a rename, and tells where the session is.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::PathBuf};

use hermitcrab_core::path::RelPath;
use hermitcrab_sandbox::spawn::Finished;

use super::{super::seen::Seen, CWD_BYTES_MAX, told_place};

/// Where the directory is now that the shell was in at its end, if it got another name.
pub(super) fn moved_to(finished: &Finished, seen: &[Seen]) -> Option<PathBuf> {
    let was = told_place(finished, "cwd.before")?;
    let mut moved = seen
        .iter()
        .zip(&finished.changes)
        .filter_map(|(seen, set)| {
            let below = was.strip_prefix(&seen.at).ok()?;
            let below = RelPath::parse(below.as_os_str().as_bytes()).ok()?;
            let led = |from: &RelPath, to: &RelPath| {
                let rest = below.strip_prefix(from)?;
                let to = seen.at.join(OsStr::from_bytes(to.as_bytes()));
                Some(if rest.is_root() {
                    to
                } else {
                    to.join(OsStr::from_bytes(rest.as_bytes()))
                })
            };
            let mut renames = set.renames().iter();
            renames.find_map(|rename| led(&rename.from, &rename.to))
        });
    // Of views that lie in each other the innermost had it.
    moved.next_back()
}

/// What the shell said of having none.
pub(super) fn told(finished: &Finished) -> String {
    let told = finished.exchange.read("cwd.gone", CWD_BYTES_MAX);
    String::from_utf8_lossy(&told.unwrap_or_default()).into_owned()
}

//! Whether another process is in the middle of changing a database.
//!
//! SQLite locks bytes far behind the end of the file. They are asked for, never
//! taken, so that a running Hermes notices nothing.

use std::path::Path;
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};

use super::copy;

/// The first of SQLite's lock bytes, and how many there are.
const LOCK_START: i64 = 0x4000_0000;
const LOCK_BYTES: i64 = 512;
/// A usual transaction is over in this time.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Who keeps the database locked for writing; `None` if nobody does.
pub(super) fn holder(path: &Path) -> Option<String> {
    let file = copy::open(path).ok()?;
    let mut found = None;
    for _ in 0..TRIES {
        let mut question = nix::libc::flock {
            // Conflicts with those who write, not with those who read.
            l_type: i16::try_from(nix::libc::F_RDLCK).ok()?,
            l_whence: i16::try_from(nix::libc::SEEK_SET).ok()?,
            l_start: LOCK_START,
            l_len: LOCK_BYTES,
            l_pid: 0,
        };
        fcntl(&file, FcntlArg::F_OFD_GETLK(&mut question)).ok()?;
        if i32::from(question.l_type) == nix::libc::F_UNLCK {
            return None;
        }
        found = Some(match question.l_pid {
            pid if pid > 0 => format!("process {pid}"),
            _ => "another process".to_owned(),
        });
        std::thread::sleep(PAUSE);
    }
    found
}

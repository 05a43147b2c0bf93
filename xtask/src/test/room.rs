//! The directory in which a test makes its temporary ones.
//!
//! What a test leaves in there is counted and removed: that of a process which is killed, as
//! many are in these tests, or a directory that was closed to its owner, would otherwise stay on
//! the disk of whoever runs them.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

/// A directory of one test, which `TMPDIR` names to it.
pub struct Room(TempDir);

impl Room {
    /// An empty one that every user may write in, as some tests become another.
    pub fn new() -> Result<Self> {
        // Short: sockets lie within, and their names have 107 bytes in all.
        let dir = tempfile::Builder::new()
            .prefix("t.")
            .permissions(Permissions::from_mode(0o1777))
            .tempdir()
            .context("cannot make a temporary directory for a test")?;
        // The mode above goes through the mask of whoever runs this.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777))
            .with_context(|| format!("cannot open {} to all", dir.path().display()))?;
        Ok(Self(dir))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes it with what was left in it, and says how much that was.
    ///
    /// Something mounted in it is an error, and nothing is removed: it may be any part of
    /// the machine.
    pub fn leave(self) -> Result<usize> {
        let path = self.0.keep();
        // As the kernel names it in its table.
        let path = fs::canonicalize(&path).with_context(|| format!("{}", path.display()))?;
        let mounts = fs::read("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
        if let Some(mount) = mounted_below(&mounts, &path) {
            bail!("a test left something mounted at {mount}: `umount` it and remove the directory");
        }
        let entries = fs::read_dir(&path).with_context(|| format!("{}", path.display()))?;
        let left = entries.count();
        open_up(&path)?;
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(left)
    }
}

/// The first mount point at or below a path; field 5 of a line of `mountinfo` (proc(5)).
fn mounted_below(mountinfo: &[u8], path: &Path) -> Option<String> {
    let path = path.as_os_str().as_bytes();
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .find(|at| {
            let rest = at.strip_prefix(path);
            rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
        })
        .map(|at| String::from_utf8_lossy(at).into_owned())
}

/// Lets an owner into directories that a test has closed.
fn open_up(dir: &Path) -> Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o700))
        .with_context(|| format!("cannot open {}", dir.display()))?;
    for entry in fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_and_removed_whatever_its_modes() {
        let room = Room::new().unwrap();
        let path = room.path().to_owned();
        fs::create_dir_all(path.join("closed/deep")).unwrap();
        fs::write(path.join("closed/deep/file"), "left").unwrap();
        fs::write(path.join("alone"), "").unwrap();
        for dir in ["closed/deep", "closed"] {
            fs::set_permissions(path.join(dir), Permissions::from_mode(0o0)).unwrap();
        }
        assert_eq!(room.leave().unwrap(), 2);
        assert!(!path.exists());

        let room = Room::new().unwrap();
        let mode = room.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
        assert_eq!(room.leave().unwrap(), 0);
    }

    #[test]
    fn what_is_mounted_below_is_told_from_what_is_beside() {
        let table = b"22 1 0:2 / / rw - ext4 a b\n23 22 0:3 / /tmp/t.ab rw - tmpfs a b\n\
                      24 22 0:3 / /tmp/t.a/in/it rw - tmpfs a b\n";
        let below = |path: &str| mounted_below(table, Path::new(path));
        assert_eq!(below("/tmp/t.a").as_deref(), Some("/tmp/t.a/in/it"));
        assert_eq!(below("/tmp/t.ab").as_deref(), Some("/tmp/t.ab"));
        assert_eq!(below("/tmp/t.b"), None);
    }
}

//! The directory in which a test makes its temporary ones.
//!
//! What a test leaves in there is counted and removed: that of a process which is killed, as
//! many are in these tests, or a directory that was closed to its owner, would otherwise stay on
//! the disk of whoever runs them.

use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::fs::OFlags;
use tempfile::TempDir;

/// What the name of a room begins with.
const PREFIX: &str = "t.";
/// What is put behind it for the name of the file beside it.
const SUFFIX: &str = ".of-xtask";

/// A directory of one test, which `TMPDIR` names to it.
pub struct Room {
    dir: TempDir,
    mark: Mark,
}

/// The file beside a room that says which directory it is. It is locked as long as whoever made
/// the room lives, so that the next run knows what one left that was killed.
struct Mark {
    path: PathBuf,
    _lock: File,
}

impl Mark {
    fn beside(room: &Path) -> Result<Self> {
        let mut path = room.as_os_str().to_owned();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        let make = || {
            let mut file = File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            let of = fs::symlink_metadata(room)?;
            writeln!(file, "{} {}", of.dev(), of.ino())?;
            std::io::Result::Ok(file)
        };
        let lock = make().with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, _lock: lock })
    }

    /// That of a room whose maker is dead, and that room, if it is one of this user's.
    fn left_behind(path: &Path) -> Option<(Self, PathBuf)> {
        let name = path.file_name()?.to_str()?;
        let room = path.with_file_name(name.strip_suffix(SUFFIX)?);
        let mut file = File::options()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path)
            .ok()?;
        let mine = rustix::process::geteuid().as_raw();
        let meta = file.metadata().ok()?;
        if !name.starts_with(PREFIX) || !meta.is_file() || meta.uid() != mine {
            return None;
        }
        file.try_lock().ok()?;
        let mut told = String::new();
        file.read_to_string(&mut told).ok()?;
        let is_it = match fs::symlink_metadata(&room) {
            Ok(of) => {
                let same = told.trim_end() == format!("{} {}", of.dev(), of.ino());
                same && of.is_dir() && of.uid() == mine
            }
            Err(error) => error.kind() == std::io::ErrorKind::NotFound && !told.is_empty(),
        };
        let mark = Self {
            path: path.to_owned(),
            _lock: file,
        };
        is_it.then_some((mark, room))
    }

    fn forget(self) {
        // Whoever finds it finds no room beside it.
        let _removed = fs::remove_file(&self.path);
    }
}

impl Room {
    /// An empty one that every user may write in, as some tests become another.
    pub fn new() -> Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> Result<Self> {
        // Short: sockets lie within, and their names have 107 bytes in all.
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o1777))
            .tempdir_in(place)
            .context("cannot make a temporary directory for a test")?;
        // The mode above goes through the mask of whoever runs this.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777))
            .with_context(|| format!("cannot open {} to all", dir.path().display()))?;
        let mark = Mark::beside(dir.path())?;
        Ok(Self { dir, mark })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Removes it with what was left in it, and says how much that was.
    ///
    /// Something mounted in it is an error, and nothing is removed: it may be any part of
    /// the machine.
    pub fn leave(self) -> Result<usize> {
        let left = removed(&self.dir.keep())?;
        self.mark.forget();
        Ok(left)
    }
}

/// Removes the rooms of runs that were killed, and says how many they were. One that somebody
/// still works in stays, as does all of which it is not sure that a run like this made it.
pub fn clear() -> usize {
    clear_in(&std::env::temp_dir())
}

fn clear_in(place: &Path) -> usize {
    let mut cleared = 0;
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let Some((mark, room)) = Mark::left_behind(&entry.path()) else {
            continue;
        };
        if !room.exists() {
            mark.forget();
        } else if !is_in_use(&room) && removed(&room).is_ok() {
            mark.forget();
            cleared += 1;
        }
    }
    cleared
}

/// Whether a process is told to make its temporary files here, or has one of them open. Those
/// that this user may not look at are not this user's.
fn is_in_use(room: &Path) -> bool {
    let named = [b"TMPDIR=", room.as_os_str().as_bytes()].concat();
    let uses = |process: &Path| {
        let env = fs::read(process.join("environ")).unwrap_or_default();
        let links = fs::read_dir(process.join("fd")).into_iter().flatten();
        let mut links = links
            .flatten()
            .map(|entry| entry.path())
            .chain(["cwd", "root", "exe"].map(|name| process.join(name)));
        env.split(|byte| *byte == 0).any(|line| line == named)
            || links.any(|link| fs::read_link(link).is_ok_and(|to| to.starts_with(room)))
    };
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|entry| uses(&entry.path()))
}

/// Removes a room, whatever is in it; how much that was.
fn removed(path: &Path) -> Result<usize> {
    // As the kernel names it in its table.
    let path = fs::canonicalize(path).with_context(|| format!("{}", path.display()))?;
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

    /// What is left of a run that is killed while a test works in this room.
    fn killed(room: Room) -> PathBuf {
        drop(room.mark);
        room.dir.keep()
    }

    #[test]
    fn what_a_killed_run_left_is_cleared_once_nobody_works_there() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let entries = || fs::read_dir(&place).unwrap().count();
        let alive = Room::new_in(&place).unwrap();
        let room = killed(Room::new_in(&place).unwrap());
        fs::create_dir(room.join("closed")).unwrap();
        fs::set_permissions(room.join("closed"), Permissions::from_mode(0o0)).unwrap();
        // A test goes on without who started it: it was told of the room, or works in it.
        for inside in [false, true] {
            let mut test = std::process::Command::new("sleep");
            test.arg("600").env_clear();
            if inside {
                test.current_dir(&room);
            } else {
                test.env("TMPDIR", &room);
            }
            let mut test = test.spawn().unwrap();
            assert_eq!(clear_in(&place), 0, "{inside}");
            test.kill().unwrap();
            test.wait().unwrap();
        }
        assert!(room.exists() && entries() == 4);
        assert_eq!(clear_in(&place), 1);
        assert!(!room.exists() && alive.path().exists() && entries() == 2);
        alive.leave().unwrap();
        assert_eq!(entries(), 0);
    }

    #[test]
    fn what_is_not_surely_of_such_a_run_stays() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        // No file beside it says whose it is.
        fs::create_dir(at("t.alone")).unwrap();
        // Another one has its name by now.
        let room = killed(Room::new_in(place.path()).unwrap());
        fs::rename(&room, at("moved")).unwrap();
        fs::create_dir(&room).unwrap();
        // A link where it was.
        let linked = killed(Room::new_in(place.path()).unwrap());
        fs::rename(&linked, at("behind")).unwrap();
        std::os::unix::fs::symlink(at("behind"), &linked).unwrap();
        // Made by nobody here, or before it could say anything.
        fs::create_dir(at("t.empty")).unwrap();
        fs::write(at("t.empty.of-xtask"), "").unwrap();
        fs::create_dir(at("other")).unwrap();
        let of = fs::symlink_metadata(at("other")).unwrap();
        fs::write(at("other.of-xtask"), format!("{} {}\n", of.dev(), of.ino())).unwrap();
        let before = fs::read_dir(place.path()).unwrap().count();
        assert_eq!(clear_in(place.path()), 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), before);
        // Of one that was removed by hand only what says so is left.
        let gone = killed(Room::new_in(place.path()).unwrap());
        fs::remove_dir(gone).unwrap();
        assert_eq!(clear_in(place.path()), 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), before);
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

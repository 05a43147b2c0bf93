//! The agent's own files: opened without following a link, and only if they
//! are regular, the user's own, and closed to everybody else.
//!
//! Why: the ledger, the store and its key lie where a careless copy, a restore
//! or another program may have put something else in their place. Whatever
//! looks wrong is refused with what is wrong; nothing here repairs anything.

use std::{
    fmt,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::AsFd,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, OFlags, RenameFlags, SeekFrom},
    io::Errno,
};

/// The mode of every file here: the user reads and writes, nobody else.
const FILE_MODE: u32 = 0o600;
/// The mode of the directory.
const DIR_MODE: u32 = 0o700;
/// How long somebody else may hold what is locked for a moment, on a disk however slow.
const HELD_MAX: Duration = Duration::from_secs(30);
/// How seldom it is looked whether they let go.
const HELD_LOOK_MAX: Duration = Duration::from_millis(20);

/// Why one of the agent's own files cannot be used.
#[derive(Debug)]
pub enum OwnFileError {
    /// The system refuses.
    Io(PathBuf, io::Error),
    /// A symbolic link stands in its place.
    Link(PathBuf),
    /// A directory, pipe or device stands in its place.
    NotRegular(PathBuf),
    /// It belongs to another user; the user's number.
    Owner(PathBuf, u32),
    /// Others may read or write it; its mode.
    Mode(PathBuf, u32),
}

impl fmt::Display for OwnFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) if error.kind() == io::ErrorKind::PermissionDenied => write!(
                f,
                "cannot use `{}`: permission denied; if it is yours, `chmod u+rw` gives it back to you, and `chmod u+rwx` a directory above it",
                path.display()
            ),
            Self::Io(path, error) => write!(f, "cannot use `{}`: {error}", path.display()),
            Self::Link(path) => write!(
                f,
                "`{}` is a symbolic link, so it is not used; `hermitcrab doctor --repair` sets it aside",
                path.display()
            ),
            Self::NotRegular(path) => write!(
                f,
                "`{}` is not a regular file, so it is not used; `hermitcrab doctor --repair` sets it aside",
                path.display()
            ),
            Self::Owner(path, owner) => write!(
                f,
                "`{}` belongs to user {owner}, so it is not used; have its owner give it back, or remove it yourself",
                path.display()
            ),
            Self::Mode(path, mode) => write!(
                f,
                "`{}` has mode {mode:04o}, so others can reach it and it is not used; `hermitcrab doctor --repair` closes it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OwnFileError {}

impl OwnFileError {
    /// Is it only that there is no such file?
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(_, error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading what is there.
    Read,
    /// Reading and changing what is there.
    Change,
    /// The same; made if there is none.
    Make,
    /// Reading and adding to the end; made if there is none.
    Append,
}

/// Makes the state directory, closed to others, unless it is there.
///
/// # Errors
/// It cannot be made, is not a directory, or belongs to or is open to others.
pub fn state_dir(dir: &Path) -> Result<(), OwnFileError> {
    let failed = |error| OwnFileError::Io(dir.to_owned(), error);
    let made: Vec<&Path> = dir
        .ancestors()
        .take_while(|place| !place.as_os_str().is_empty() && !place.exists())
        .collect();
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(dir)
        .map_err(failed)?;
    for above in made.into_iter().filter_map(Path::parent) {
        // What is kept in there is worth nothing without its name. A directory that
        // may be written and not read cannot be waited for.
        let _settled = sync_dir(above);
    }
    let seen = std::fs::metadata(dir).map_err(failed)?;
    if seen.uid() != user() {
        return Err(OwnFileError::Owner(dir.to_owned(), seen.uid()));
    }
    // Who may write the directory may exchange everything in it.
    if seen.mode() & 0o022 != 0 {
        return Err(OwnFileError::Mode(dir.to_owned(), seen.mode() & 0o7777));
    }
    Ok(())
}

/// Opens one of the agent's own files.
///
/// # Errors
/// See [`OwnFileError`].
pub fn open(path: &Path, access: Access) -> Result<File, OwnFileError> {
    let mut options = OpenOptions::new();
    match access {
        Access::Read => options.read(true),
        Access::Change => options.read(true).write(true),
        Access::Make => options.read(true).write(true).create(true),
        Access::Append => options.read(true).append(true).create(true),
    };
    let file = options
        .mode(FILE_MODE)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| opening(path, error))?;
    check(path, &file)?;
    Ok(file)
}

/// Makes one of the agent's own files where nothing is.
///
/// # Errors
/// There is something, or the system refuses.
pub fn create_new(path: &Path) -> Result<File, OwnFileError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| opening(path, error))
}

/// Makes one of the agent's own files, which appears under its name only when
/// all of it is on the disk. Only one process may be at it: see [`hold`].
///
/// # Errors
/// There is something in its place, or it cannot be written.
pub fn create_whole(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), OwnFileError> {
    let path = dir.join(name);
    let fresh = written_beside(&path, bytes)?;
    rustix::fs::renameat_with(
        rustix::fs::CWD,
        &fresh,
        rustix::fs::CWD,
        &path,
        RenameFlags::NOREPLACE,
    )
    .map_err(|error| OwnFileError::Io(path, error.into()))?;
    sync_dir(dir)
}

/// The same in the place of what is there under that name, if anything is.
///
/// # Errors
/// It cannot be written.
pub fn put_whole(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), OwnFileError> {
    let path = dir.join(name);
    let fresh = written_beside(&path, bytes)?;
    std::fs::rename(&fresh, &path).map_err(|error| OwnFileError::Io(path, error))?;
    sync_dir(dir)
}

/// A file with all of it on the disk, under a name beside the one it is to get.
fn written_beside(path: &Path, bytes: &[u8]) -> Result<PathBuf, OwnFileError> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    let failed = |error| OwnFileError::Io(path.to_owned(), error);
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file = create_new(&fresh)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    Ok(fresh)
}

/// Copies a file that is there, whoever may read it, as one of the agent's own where nothing is.
/// Its holes stay holes: what is mostly room would fill the disk otherwise.
///
/// # Errors
/// There is something, or the system refuses.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut old = OpenOptions::new()
        .read(true)
        .custom_flags(flags())
        .open(from)?;
    let mut new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(to)?;
    let end = old.metadata()?.len();
    new.set_len(end)?;
    let mut at = 0;
    while at < end {
        let data = match rustix::fs::seek(&old, SeekFrom::Data(at)) {
            Ok(data) => data,
            // A hole up to the end.
            Err(Errno::NXIO) => break,
            // Not every file system says where its holes are.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(errno.into()),
        };
        let hole = rustix::fs::seek(&old, SeekFrom::Hole(data)).unwrap_or(end);
        old.seek(io::SeekFrom::Start(data))?;
        new.seek(io::SeekFrom::Start(data))?;
        io::copy(&mut (&old).take(hole.saturating_sub(data)), &mut new)?;
        at = hole.max(at.saturating_add(1));
    }
    new.sync_all()
}

/// A directory in which nobody else makes anything meanwhile.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "closing it lets go of the lock")] File);

/// Waits until nobody else holds the directory, and holds it.
///
/// # Errors
/// Somebody does not let go of it, or the system refuses.
pub fn hold(dir: &Path) -> Result<Held, OwnFileError> {
    let failed = |error| OwnFileError::Io(dir.to_owned(), error);
    let opened = File::open(dir).map_err(failed)?;
    lock(&opened, Lock::Alone).map_err(failed)?;
    Ok(Held(opened))
}

/// With whom a lock is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// With others who only read.
    Shared,
    /// With nobody.
    Alone,
}

/// Waits for a lock on an open file, and not for ever: whoever has it may have been stopped.
///
/// # Errors
/// Somebody does not let go of it, or the system refuses.
pub fn lock(file: &File, how: Lock) -> io::Result<()> {
    lock_within(file, how, HELD_MAX)
}

fn lock_within(file: &File, how: Lock, most: Duration) -> io::Result<()> {
    let operation = match how {
        Lock::Shared => FlockOperation::NonBlockingLockShared,
        Lock::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
    loop {
        match rustix::fs::flock(file, operation) {
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if waited < most => {
                std::thread::sleep(pause);
                waited = waited.saturating_add(pause);
                pause = pause.saturating_mul(2).min(HELD_LOOK_MAX);
            }
            Err(Errno::WOULDBLOCK) => {
                return Err(io::Error::other(format!(
                    "another program has held it for {} s and does not let go; `fuser -v` names it, a stopped one goes on with `kill -CONT`",
                    most.as_secs()
                )));
            }
            done => return done.map_err(io::Error::from),
        }
    }
}

/// Looks at a file without opening it for anything.
///
/// # Errors
/// See [`OwnFileError`].
pub fn inspect(path: &Path) -> Result<(), OwnFileError> {
    open(path, Access::Read).map(drop)
}

/// Makes what was put into a directory survive a loss of power.
///
/// # Errors
/// The system refuses.
pub fn sync_dir(dir: &Path) -> Result<(), OwnFileError> {
    File::open(dir)
        .and_then(|opened| flush_dir(&opened))
        .map_err(|error| OwnFileError::Io(dir.to_owned(), error))
}

/// The same of an open one. Some file systems have no such thing for directories, and what was
/// written there is written.
///
/// # Errors
/// The system refuses.
pub fn flush_dir(dir: impl AsFd) -> io::Result<()> {
    match rustix::fs::fsync(dir) {
        Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn check(path: &Path, file: &File) -> Result<(), OwnFileError> {
    let seen = file
        .metadata()
        .map_err(|error| OwnFileError::Io(path.to_owned(), error))?;
    if !seen.is_file() {
        return Err(OwnFileError::NotRegular(path.to_owned()));
    }
    if seen.uid() != user() {
        return Err(OwnFileError::Owner(path.to_owned(), seen.uid()));
    }
    let mode = seen.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(OwnFileError::Mode(path.to_owned(), mode));
    }
    Ok(())
}

fn opening(path: &Path, error: io::Error) -> OwnFileError {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is(Errno::LOOP) {
        OwnFileError::Link(path.to_owned())
    } else if is(Errno::ISDIR) || is(Errno::NXIO) {
        OwnFileError::NotRegular(path.to_owned())
    } else {
        OwnFileError::Io(path.to_owned(), error)
    }
}

/// A pipe must not make the opening wait, and a link is not followed.
fn flags() -> i32 {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    i32::try_from(flags.bits()).unwrap_or(0)
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink},
        time::Duration,
    };

    use super::{Access, Lock, OwnFileError, copy, create_new, lock, lock_within, open, state_dir};

    #[test]
    fn only_a_regular_file_closed_to_others_is_opened() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("key");
        drop(create_new(&path).expect("made"));
        open(&path, Access::Read).expect("the user's own");
        assert!(matches!(create_new(&path), Err(OwnFileError::Io(..))));

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("mode");
        assert!(matches!(
            open(&path, Access::Read),
            Err(OwnFileError::Mode(_, 0o640))
        ));

        let link = dir.path().join("link");
        symlink(&path, &link).expect("link");
        assert!(matches!(
            open(&link, Access::Append),
            Err(OwnFileError::Link(_))
        ));
        assert!(matches!(
            open(&dir.path().join("none"), Access::Read),
            Err(error) if error.is_missing()
        ));
        assert!(matches!(
            open(dir.path(), Access::Read),
            Err(OwnFileError::NotRegular(_))
        ));
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("pipe");
        assert!(matches!(
            open(&pipe, Access::Read),
            Err(OwnFileError::NotRegular(_))
        ));
    }

    #[test]
    fn what_is_copied_is_the_same_and_holes_take_no_room() {
        let dir = tempfile::tempdir().expect("directory");
        let (from, to) = (dir.path().join("ledger"), dir.path().join("copy"));
        let file = create_new(&from).expect("made");
        file.write_all_at(b"begins", 0).expect("written");
        file.write_all_at(b"middle", 5 << 20).expect("written");
        file.set_len(5 << 30).expect("holes");
        copy(&from, &to).expect("copied");
        let copied = open(&to, Access::Read).expect("its owner's alone");
        let seen = copied.metadata().expect("seen");
        assert_eq!(seen.len(), 5 << 30);
        assert!(seen.blocks() * 512 < 64 << 20, "{} blocks", seen.blocks());
        for (place, words) in [
            (0, b"begins"),
            (5 << 20, b"middle"),
            (4 << 30, b"\0\0\0\0\0\0"),
        ] {
            let mut read = [0; 6];
            copied.read_exact_at(&mut read, place).expect("read");
            assert_eq!(&read, words, "{place}");
        }
        copy(&from, &to).expect_err("there is one");
    }

    #[test]
    fn who_does_not_let_go_of_a_lock_is_not_waited_for_without_end() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("anchor");
        let holder = create_new(&path).expect("made");
        lock(&holder, Lock::Shared).expect("free");
        let other = open(&path, Access::Change).expect("opened");
        lock(&other, Lock::Shared).expect("shared");
        let late = lock_within(&other, Lock::Alone, Duration::ZERO).expect_err("held");
        assert!(late.to_string().contains("does not let go"), "{late}");
        drop(holder);
        lock(&other, Lock::Alone).expect("free again");
    }

    #[test]
    fn a_state_directory_others_may_write_is_refused() {
        let dir = tempfile::tempdir().expect("directory");
        let state = dir.path().join("a/state");
        state_dir(&state).expect("made");
        state_dir(&state).expect("there");
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).expect("mode");
        assert!(matches!(
            state_dir(&state),
            Err(OwnFileError::Mode(_, 0o777))
        ));
    }
}

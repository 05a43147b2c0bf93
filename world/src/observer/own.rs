//! Directories of a project that are a world's own from the start.
//!
//! What for: an overlay refuses to rename a directory that lies in a layer below it
//! (`EXDEV`), so in a world Hermes would fail where it does not on a person's disk. The
//! directories of a project are therefore put into the layer a world writes, as they are
//! below it, before anybody sees it; what equals what was below is no effect.
//!
//! What is large or odd stays below, and with it the repository: renaming that is
//! nobody's daily work, and it holds more files than all else.

use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, setxattr, utimensat};

/// Where the directories lie.
const PROJECT: &str = "home/u/proj";
/// What of it stays below.
const REPOSITORY: &str = ".git";
/// What a directory is marked with of which nothing below shows.
const OPAQUE: &str = "user.overlay.opaque";
/// More is not copied for each world.
const ENTRIES_MAX: usize = 500;
/// More is not copied for each world.
const BYTES_MAX: u64 = 1 << 20;

/// Copies the directories of the project from `base`, all a world starts from, to `upper`,
/// the empty layer it writes.
pub(super) fn take(base: &Path, upper: &Path) -> io::Result<()> {
    // A case may have put something else there, a link elsewhere for example.
    let mut place = base.to_owned();
    for part in Path::new(PROJECT) {
        place.push(part);
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Ok(()),
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    let Some(entries) = entries(&place)? else {
        return Ok(());
    };
    if entries.is_empty() || !can_mark(upper)? {
        return Ok(());
    }
    // The way there shows what is below.
    let mut way = PathBuf::new();
    let parts: Vec<_> = Path::new(PROJECT).components().collect();
    for part in &parts {
        way.push(part);
        fs::create_dir(upper.join(&way))?;
    }
    for entry in &entries {
        entry.copy(base, upper)?;
    }
    // From the innermost outwards: what is made in a directory changes its time.
    for entry in entries.iter().rev().filter(|entry| entry.found.is_dir()) {
        alike(&upper.join(&entry.path), &entry.found)?;
    }
    while way.parent().is_some() {
        alike(&upper.join(&way), &fs::symlink_metadata(base.join(&way))?)?;
        way.pop();
    }
    Ok(())
}

/// Copies all that is in a directory to another one, which is made like it.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        let found = fs::symlink_metadata(&from)?;
        if found.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to)?;
        } else {
            leaf(&from, &to, &found)?;
        }
    }
    alike(to, &fs::symlink_metadata(from)?)
}

/// Copies what is no directory.
fn leaf(from: &Path, to: &Path, found: &Metadata) -> io::Result<()> {
    if found.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if found.is_file() {
        fs::write(to, fs::read(from)?)?;
    } else {
        let what = format!("`{}` is no file, link or directory", from.display());
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    alike(to, found)
}

/// Something below a project, by its path in the world.
struct Entry {
    path: PathBuf,
    found: Metadata,
}

/// What lies in the directories of a project, each before what is in it; nothing, if it
/// is too much or more than files, directories and links.
fn entries(project: &Path) -> io::Result<Option<Vec<Entry>>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut bytes = 0;
    let Some(top) = names(project)? else {
        return Ok(None);
    };
    let mut waiting: Vec<_> = top
        .into_iter()
        .filter(|name| name != REPOSITORY)
        .map(|name| (PathBuf::from(name), true))
        .collect();
    while let Some((path, is_top)) = waiting.pop() {
        let place = project.join(&path);
        let found = fs::symlink_metadata(&place)?;
        let kind = found.file_type();
        if is_top && !kind.is_dir() {
            continue;
        }
        let is_linked = kind.is_file() && found.nlink() > 1;
        if is_linked || !(kind.is_dir() || kind.is_file() || kind.is_symlink()) {
            return Ok(None);
        }
        if kind.is_file() {
            bytes += found.len();
        }
        if entries.len() >= ENTRIES_MAX || bytes > BYTES_MAX {
            return Ok(None);
        }
        if kind.is_dir() {
            let Some(inner) = names(&place)? else {
                return Ok(None);
            };
            waiting.extend(inner.into_iter().map(|name| (path.join(name), false)));
        }
        entries.push(Entry {
            path: Path::new(PROJECT).join(path),
            found,
        });
    }
    Ok(Some(entries))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    )
}

/// The names in a directory, the last first; nothing where it is closed to everybody,
/// which is a case of its own.
fn names(directory: &Path) -> io::Result<Option<Vec<OsString>>> {
    let mut names = match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    };
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(Some(names))
}

/// Whether directories of this layer can be marked. In memory they can since Linux 6.6.
fn can_mark(upper: &Path) -> io::Result<bool> {
    match setxattr(upper, "user.mark", b"y", XattrFlags::empty()) {
        Ok(()) => {
            rustix::fs::removexattr(upper, "user.mark")?;
            Ok(true)
        }
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

impl Entry {
    fn copy(&self, base: &Path, upper: &Path) -> io::Result<()> {
        let (from, to) = (base.join(&self.path), upper.join(&self.path));
        if self.found.is_dir() {
            fs::create_dir(&to)?;
            return Ok(setxattr(&to, OPAQUE, b"y", XattrFlags::empty())?);
        }
        leaf(&from, &to, &self.found)
    }
}

/// Gives a copy mode and times of what it is a copy of.
fn alike(place: &Path, found: &Metadata) -> io::Result<()> {
    if !found.is_symlink() {
        fs::set_permissions(place, Permissions::from_mode(found.mode()))?;
    }
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    Ok(utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Lister;

    /// What lies in a directory, with modes and times.
    fn seen(place: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for name in names(place).unwrap().unwrap() {
            let path = place.join(name);
            let metadata = fs::symlink_metadata(&path).unwrap();
            let time = (metadata.mtime(), metadata.mtime_nsec());
            found.push(format!(
                "{} {:o} {time:?}",
                path.file_name().unwrap().display(),
                metadata.mode()
            ));
            if metadata.is_dir() {
                found.extend(seen(&path));
            }
        }
        found
    }

    fn base() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        let project = base.path().join(PROJECT);
        for (name, text) in [
            ("src/deep/a", "a"),
            ("src/b", "b"),
            ("top", "t"),
            (".git/HEAD", "h"),
        ] {
            let place = project.join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        symlink("b", project.join("src/link")).unwrap();
        fs::set_permissions(project.join("src/deep"), Permissions::from_mode(0o500)).unwrap();
        base
    }

    #[test]
    fn directories_are_there_as_below_and_no_effect() {
        let (base, upper) = (base(), tempfile::tempdir().unwrap());
        take(base.path(), upper.path()).unwrap();
        if !upper.path().join("home").exists() {
            println!("SKIPPED: directories cannot be marked where this test's files lie");
            return;
        }
        let project = upper.path().join(PROJECT);
        assert_eq!(names(&project).unwrap().unwrap(), ["src"]);
        let (own, below) = (
            seen(&project.join("src")),
            seen(&base.path().join(PROJECT).join("src")),
        );
        assert_eq!(own, below);
        assert_eq!(fs::read(project.join("src/deep/a")).unwrap(), b"a");
        assert_eq!(
            fs::read_link(project.join("src/link")).unwrap(),
            Path::new("b")
        );
        let mut lister = Lister::new(&[crate::effects::over(upper.path())], base.path(), &[]);
        assert_eq!(lister.list().unwrap(), []);
        fs::rename(project.join("src"), project.join("lib")).unwrap();
        fs::remove_file(project.join("lib/b")).unwrap();
        let told: Vec<_> = lister
            .list()
            .unwrap()
            .into_iter()
            .map(|effect| effect.path)
            .collect();
        let created = ["lib", "lib/deep", "lib/deep/a", "lib/link"];
        assert_eq!(told, created.map(|name| format!("/{PROJECT}/{name}")));
    }

    #[test]
    fn what_is_odd_or_large_stays_below() {
        let odd: [fn(&Path); 5] = [
            |project| fs::hard_link(project.join("src/b"), project.join("src/c")).unwrap(),
            |project| {
                drop(
                    fs::File::create(project.join("src/large"))
                        .unwrap()
                        .set_len(BYTES_MAX + 1),
                )
            },
            |project| {
                (0..ENTRIES_MAX)
                    .for_each(|n| fs::write(project.join("src").join(n.to_string()), "").unwrap())
            },
            |project| fs::rename(project, project.with_extension("gone")).unwrap(),
            |project| {
                fs::rename(project, project.with_extension("real")).unwrap();
                symlink("proj.real", project).unwrap();
            },
        ];
        for make in odd {
            let (base, upper) = (base(), tempfile::tempdir().unwrap());
            make(&base.path().join(PROJECT));
            take(base.path(), upper.path()).unwrap();
            assert_eq!(
                names(upper.path()).unwrap().unwrap(),
                Vec::<OsString>::new()
            );
        }
    }
}

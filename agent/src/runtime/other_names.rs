//! By which other paths what lies in a directory can be reached.
//!
//! What for: a file system can be mounted at several places, so that one directory has two
//! paths though no link leads from one to the other: a home below `/home` and `/data/home`.
//! What is said of a place by one of them holds for the other, too, so the session is told of
//! both. Where a directory lies within its file system is in `proc_pid_mountinfo(5)`.

use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::{AsRawFd as _, BorrowedFd},
        unix::{ffi::OsStringExt as _, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
};

const MOUNTS: &str = "/proc/self/mountinfo";

/// What lies in a directory has another path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherName {
    /// What does, seen from the directory.
    pub below: PathBuf,
    /// The other path.
    pub at: PathBuf,
}

/// One line of the list of mounts.
#[derive(Debug)]
struct Mounted {
    number: Vec<u8>,
    device: Vec<u8>,
    /// What of the file system is mounted.
    root: PathBuf,
    at: PathBuf,
}

/// The other paths of the directory that is open at `held`, whose path is `dir`, and of what
/// lies in it. No link leads to `dir`.
///
/// # Errors
/// The list of mounts cannot be read, or does not have the one that the directory lies in.
pub fn other_names(held: BorrowedFd<'_>, dir: &Path) -> io::Result<Vec<OtherName>> {
    let told = |error: io::Error| {
        let why = format!("what is mounted where is not known: {error}");
        io::Error::new(error.kind(), why)
    };
    let mounts = read(&fs::read(MOUNTS).map_err(told)?);
    let number = number_of(held).map_err(told)?;
    let mut names = by(&mounts, &number, dir).ok_or_else(|| {
        told(io::Error::other(
            "the list lacks the mount of this directory",
        ))
    })?;
    names.retain(|name| is_one(&name.whole(dir), &name.at));
    Ok(names)
}

/// The number of the mount that something open lies in. By its path alone it cannot be told:
/// something else may be mounted over a part of that since.
fn number_of(held: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let about = fs::read(format!("/proc/self/fdinfo/{}", held.as_raw_fd()))?;
    let mut lines = about.split(|byte| *byte == b'\n');
    lines
        .find_map(|line| line.strip_prefix(b"mnt_id:"))
        .map(|number| number.trim_ascii().to_vec())
        .ok_or_else(|| io::Error::other("the kernel does not number mounts"))
}

impl OtherName {
    /// What has the other path, by the path of the directory.
    pub fn whole(&self, dir: &Path) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => dir.to_owned(),
            false => dir.join(&self.below),
        }
    }
}

fn read(list: &[u8]) -> Vec<Mounted> {
    let lines = list.split(|byte| *byte == b'\n');
    lines.filter_map(mounted).collect()
}

fn mounted(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = fields.next()?.to_vec();
    let device = fields.nth(1)?.to_vec();
    let path = |field: &[u8]| PathBuf::from(OsString::from_vec(unescaped(field)));
    let (root, at) = (path(fields.next()?), path(fields.next()?));
    (root.is_absolute() && at.is_absolute()).then_some(Mounted {
        number,
        device,
        root,
        at,
    })
}

/// Blanks, line ends and backslashes stand there as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..3).filter(|_| *first == b'\\');
        let number = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        (rest, _) = match number {
            Some(byte) => (more.get(3..).unwrap_or_default(), bytes.push(byte)),
            None => (more, bytes.push(*first)),
        };
    }
    bytes
}

/// What the list says, whether it is to be seen or something else is mounted there since;
/// `None` if it does not have the mount.
fn by(mounts: &[Mounted], number: &[u8], dir: &Path) -> Option<Vec<OtherName>> {
    let own = mounts.iter().find(|mount| mount.number == number)?;
    let rest = dir.strip_prefix(&own.at).ok()?;
    let inside = own.root.join(rest);
    let mut names: Vec<OtherName> = mounts
        .iter()
        .filter(|mount| mount.device == own.device)
        .filter_map(|mount| {
            let (below, at) = match inside.strip_prefix(&mount.root) {
                Ok(rest) => (PathBuf::new(), mount.at.join(rest)),
                Err(_) => {
                    let below = mount.root.strip_prefix(&inside).ok()?;
                    (below.to_owned(), mount.at.clone())
                }
            };
            // A name without an end is one by which nothing else is compared.
            let at: PathBuf = at.components().collect();
            let is_other = dir.join(&below).components().ne(at.components());
            is_other.then_some(OtherName { below, at })
        })
        .collect();
    names.sort_by(|one, other| (&one.below, &one.at).cmp(&(&other.below, &other.at)));
    names.dedup();
    Some(names)
}

/// Whether two paths lead to one thing, or nobody can tell.
fn is_one(path: &Path, other: &Path) -> bool {
    let numbers = |path: &Path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    match (numbers(path), numbers(other)) {
        (Ok(one), Ok(other)) => one == other,
        (one, other) => ![one.err(), other.err()]
            .into_iter()
            .flatten()
            .any(|error| error.kind() == io::ErrorKind::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    const LIST: &str = "\
        21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
        22 21 8:2 / /data rw - ext4 /dev/sda2 rw\n\
        23 21 8:2 /home /home rw shared:1 - ext4 /dev/sda2 rw\n\
        24 21 8:2 /home/u/proj /srv/with\\040blank rw - ext4 /dev/sda2 rw\n\
        25 21 0:4 net:[4026531840] /run/netns/a rw - nsfs nsfs rw\n\
        26 21 0:5 / /proc rw - proc proc rw\n\
        a line of something else\n";

    fn told(number: &str, dir: &str) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let names = by(&read(LIST.as_bytes()), number.as_bytes(), Path::new(dir));
        let names = names.expect("the mount is listed").into_iter();
        names
            .map(|name| (text(name.below), text(name.at)))
            .collect()
    }

    fn check(number: &str, dir: &str, names: &[(&str, &str)]) {
        let told = told(number, dir);
        let told: Vec<(&str, &str)> = told.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(told, names, "{dir}");
    }

    #[test]
    fn each_other_path_of_a_directory_and_of_what_lies_in_it_is_found() {
        check(
            "23",
            "/home/u/proj/src",
            &[("", "/data/home/u/proj/src"), ("", "/srv/with blank/src")],
        );
        check(
            "22",
            "/data/home/u",
            &[("", "/home/u"), ("proj", "/srv/with blank")],
        );
        check(
            "22",
            "/data",
            &[("home", "/home"), ("home/u/proj", "/srv/with blank")],
        );
        check(
            "24",
            "/srv/with blank",
            &[("", "/data/home/u/proj"), ("", "/home/u/proj")],
        );
        check("21", "/srv/other", &[]);
        check("21", "/", &[]);
        check("26", "/proc/self", &[]);
        let list = read(LIST.as_bytes());
        let none = |number: &str, dir| by(&list, number.as_bytes(), Path::new(dir)).is_none();
        assert!(none("27", "/home") && none("25", "/run/netns/a") && none("23", "/data"));
    }

    #[test]
    fn a_directory_with_one_path_has_no_others() {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = fs::canonicalize(temp.path()).expect("a path");
        let inside = dir.join("a");
        fs::create_dir(&inside).expect("a directory");
        let held = fs::File::open(&inside).expect("a directory");
        let names = other_names(held.as_fd(), &inside).expect("the mounts");
        assert!(!names.iter().any(|name| name.at.starts_with(&dir)));
        assert!(is_one(&inside, &inside) && !is_one(&inside, &dir));
        assert!(!is_one(&inside, &dir.join("none")));
    }
}

//! Files whose place a person names, or that lie where one is usual: read to their end, or
//! refused.
//!
//! Why: what lies under such a name may be anything. A pipe that nobody writes to would be
//! waited for, a device never ends, and a link that leads nowhere is not the same as no file:
//! somebody meant one to be there. Every file of this kind is opened here, and what is wrong
//! with one is said in words. The agent's own files are stricter (`state_dir/own_file.rs`), and
//! those a model names are opened below a directory it was given.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{OFlags, fcntl_setfl},
    io::Errno,
};

use crate::screen::on_one_line;

/// What becomes of a pipe under the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipes {
    /// It is no file.
    Refused,
    /// It is read as long as somebody writes to it: a shell's `<(command)` is one.
    Read,
}

/// Opens a regular file to be read, and says what is known of it.
///
/// # Errors
/// There is none, or something else lies there.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, seen) = opened(path)?;
    match what_else(&seen) {
        None => Ok((file, seen)),
        Some(what) => Err(wrong(what)),
    }
}

/// What stands in it, all of it.
///
/// # Errors
/// There is none, something else lies there, or it is longer than `bytes_max`.
pub fn bytes(path: &Path, bytes_max: u64, pipes: Pipes) -> io::Result<Vec<u8>> {
    let bytes = beginning(path, bytes_max.saturating_add(1), pipes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
        return Err(wrong(format!(
            "it is longer than {bytes_max} bytes, and not read"
        )));
    }
    Ok(bytes)
}

/// The first so many bytes of it, for who says in words of its own what is too long.
///
/// # Errors
/// There is none, or something else lies there.
pub fn beginning(path: &Path, bytes_max: u64, pipes: Pipes) -> io::Result<Vec<u8>> {
    let (file, seen) = opened(path)?;
    let first = match what_else(&seen) {
        None => Vec::new(),
        Some(_) if pipes == Pipes::Read && seen.file_type().is_fifo() => held_pipe(&file)?,
        Some(what) => return Err(wrong(what)),
    };
    let mut bytes = Vec::new();
    first
        .as_slice()
        .chain(file)
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as a text.
///
/// # Errors
/// As for [`bytes`], or it is no text.
pub fn text(path: &Path, bytes_max: u64, pipes: Pipes) -> io::Result<String> {
    String::from_utf8(bytes(path, bytes_max, pipes)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is no text in UTF-8 from byte {at} on"),
        )
    })
}

/// Opens whatever is there without waiting for anybody.
fn opened(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| in_words(path, error))?;
    let seen = file.metadata()?;
    Ok((file, seen))
}

/// What it is, if it is no regular file.
fn what_else(seen: &Metadata) -> Option<&'static str> {
    let kind = seen.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("it is a directory, and no file"),
        () if kind.is_fifo() => Some("it is a pipe, and no file"),
        () => Some("it is a device, and no file"),
    }
}

/// The first of what comes through a pipe at whose other end somebody is, which is waited for
/// from then on.
fn held_pipe(mut pipe: &File) -> io::Result<Vec<u8>> {
    let mut first = vec![0; 4096];
    let got = match pipe.read(&mut first) {
        Ok(0) => return Err(wrong("it is a pipe that nobody writes to")),
        Ok(got) => got,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    first.truncate(got);
    fcntl_setfl(pipe, OFlags::empty())?;
    Ok(first)
}

/// What the system says of an opening, where its own words would not help.
fn in_words(path: &Path, error: io::Error) -> io::Error {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is(Errno::NXIO) {
        return wrong("it is a socket, and no file");
    }
    if is(Errno::LOOP) {
        return wrong(
            "the links there lead round in a circle; remove them, or let them lead to a file",
        );
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        let what =
            "you may not read it; `ls -ld` of it and of the directories above it shows who may";
        return io::Error::new(error.kind(), what);
    }
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    match leading_nowhere(path) {
        Some((link, to)) => wrong(format!(
            "the link `{}` leads to `{}`, where nothing is; put back what belongs there, or remove the link",
            on_one_line(&link.display().to_string()),
            on_one_line(&to.display().to_string())
        )),
        None => error,
    }
}

/// Whether this is what is told of a name from which a link leads nowhere, with what to do.
#[must_use]
pub fn is_of_a_link(path: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Other && leading_nowhere(path).is_some()
}

/// Of what is missing, the first on the way that is there may be a link to it: that link, and
/// where it leads.
fn leading_nowhere(path: &Path) -> Option<(&Path, PathBuf)> {
    let there = |place: &&Path| std::fs::symlink_metadata(place).is_ok();
    let link = path.ancestors().find(there)?;
    let to = std::fs::read_link(link).ok()?;
    (!link.exists()).then_some((link, to))
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write as _},
        os::unix::{fs::symlink, net::UnixListener},
        path::Path,
    };

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{Pipes, bytes, open, text};

    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("pipe");
    }

    #[test]
    fn what_is_no_file_is_refused_at_once_and_in_words() {
        let dir = tempfile::tempdir().expect("directory");
        let at = |name: &str| dir.path().join(name);
        pipe(&at("pipe"));
        let _socket = UnixListener::bind(at("socket")).expect("socket");
        symlink("circle", at("circle")).expect("link");
        symlink("/dev/zero", at("endless")).expect("link");
        symlink(at("none"), at("dangling")).expect("link");
        symlink("\u{1b}[2J", at("odd")).expect("link");
        std::fs::write(at("binary"), [b'a', 0xff]).expect("written");
        std::fs::create_dir(at("dir")).expect("directory");
        std::fs::File::create(at("holes"))
            .and_then(|file| file.set_len(5 << 30))
            .expect("holes");
        for (name, said) in [
            ("pipe", "it is a pipe that nobody writes to".to_owned()),
            ("socket", "it is a socket, and no file".to_owned()),
            ("dir", "it is a directory, and no file".to_owned()),
            ("endless", "it is a device, and no file".to_owned()),
            (
                "holes",
                "it is longer than 9 bytes, and not read".to_owned(),
            ),
            ("binary", "it is no text in UTF-8 from byte 1 on".to_owned()),
            (
                "circle",
                "the links there lead round in a circle; remove them, or let them lead to a file"
                    .to_owned(),
            ),
            (
                "dangling",
                format!(
                    "the link `{}` leads to `{}`, where nothing is; put back what belongs there, or remove the link",
                    at("dangling").display(),
                    at("none").display()
                ),
            ),
            (
                "odd",
                format!(
                    "the link `{}` leads to `\\u{{1b}}[2J`, where nothing is; put back what belongs there, or remove the link",
                    at("odd").display()
                ),
            ),
        ] {
            let error = text(&at(name), 9, Pipes::Read).expect_err(name);
            assert_eq!(error.to_string(), said, "{name}");
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
        let refused = bytes(&at("pipe"), 9, Pipes::Refused).expect_err("a pipe");
        assert_eq!(refused.to_string(), "it is a pipe, and no file");
        assert!(open(&at("pipe")).is_err());
    }

    #[test]
    fn a_file_is_read_as_far_as_it_may_be_long_and_none_is_missing() {
        let dir = tempfile::tempdir().expect("directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "123456789").expect("written");
        symlink("file", at("link")).expect("link");
        assert_eq!(
            text(&at("link"), 9, Pipes::Refused).expect("read"),
            "123456789"
        );
        assert!(text(&at("file"), 8, Pipes::Refused).is_err());
        for name in ["none", "none/below", "link/below"] {
            let error = text(&at(name), 9, Pipes::Read).expect_err(name);
            let missing = error.kind() == io::ErrorKind::NotFound;
            assert_eq!(missing, name != "link/below", "{name}: {error}");
        }
    }

    #[test]
    fn a_directory_behind_a_link_that_leads_nowhere_is_not_a_missing_file() {
        let dir = tempfile::tempdir().expect("directory");
        symlink("/nowhere/at/all", dir.path().join("dotfiles")).expect("link");
        let error = text(&dir.path().join("dotfiles/config"), 9, Pipes::Read).expect_err("none");
        assert_ne!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }

    #[test]
    fn a_pipe_somebody_holds_is_read_to_its_end() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("pipe");
        pipe(&path);
        // Both ends, so that opening waits for nobody.
        let mut writer = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .expect("opened");
        writer.write_all(b"one ").expect("written");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || text(&path, 9, Pipes::Read)
        });
        writer.write_all(b"two").expect("written");
        // The reader sees an end only once it has taken all.
        while rustix::io::ioctl_fionread(&writer).expect("asked") > 0 {
            std::thread::yield_now();
        }
        drop(writer);
        assert_eq!(reader.join().expect("ended").expect("read"), "one two");

        let mut writer = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .expect("opened");
        writer.write_all(b"longer than that").expect("written");
        assert!(
            text(&path, 9, Pipes::Read).is_err(),
            "its end is not waited for"
        );
    }
}

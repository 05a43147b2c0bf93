//! Writes a case's own entries into its starting tree.
//!
//! Paths are resolved inside that tree only, whatever links it holds.
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

use crate::error::{AtStage, WorldError};
use crate::mounts;
use crate::order::Order;
use crate::protocol::{FileKind, FileSpec};

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// Adds `files` to the tree at `root`, in order.
pub(crate) fn write(root: &Path, files: &[FileSpec]) -> Result<(), WorldError> {
    let root = self::root(root)?;
    let mut order = Order::default();
    files.iter().try_for_each(|file| {
        add(&root, file, &mut order)
            .map_err(|message| WorldError::new(format!("make `{}`", file.path), message))
    })
}

/// Mounts what the case wants mounted, inside the tree at `root`.
pub(crate) fn mount(root: &Path, files: &[FileSpec]) -> Result<(), WorldError> {
    for file in files {
        let FileKind::Mount(source) = &file.kind else {
            continue;
        };
        let stage = format!("mount `{}`", file.path);
        let top = self::root(root)?;
        let place = |path: &str| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            open(&top, path, flags)
                .map(|found| {
                    (
                        format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&found)),
                        found,
                    )
                })
                .map_err(|why| WorldError::new(stage.clone(), why))
        };
        // Mounting through descriptors keeps both inside the tree.
        let (source, _source) = place(source)?;
        let (target, _target) = place(&file.path)?;
        mounts::bind(Path::new(&source), Path::new(&target))?;
    }
    Ok(())
}

/// Opens the top of a tree.
pub(crate) fn root(root: &Path) -> Result<OwnedFd, WorldError> {
    rustix::fs::open(
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at("open starting tree")
}

fn add(root: &OwnedFd, file: &FileSpec, order: &mut Order) -> Result<(), String> {
    let inside = file
        .path
        .strip_prefix('/')
        .ok_or("the path is not absolute")?;
    let (parent, name) = match inside.trim_end_matches('/').rsplit_once('/') {
        Some((parent, name)) => (parent, name),
        None => ("", inside.trim_end_matches('/')),
    };
    if name.is_empty() || name == "." || name == ".." {
        return Err("the path does not name an entry".to_owned());
    }
    let parent = directory(root, parent)?;
    match &file.kind {
        FileKind::Dir(_) | FileKind::Mount(_) | FileKind::Room(_) | FileKind::ReadOnly(_) => {
            match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(DIRECTORY_MODE)) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) if is_directory(&parent, name) => {}
                Err(rustix::io::Errno::EXIST) => {
                    remove(&parent, name)?;
                    rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(DIRECTORY_MODE))
                        .map_err(text)?;
                }
                Err(errno) => return Err(text(errno)),
            }
            change_mode(&parent, name, file.mode.unwrap_or(DIRECTORY_MODE))
        }
        FileKind::Text(content) => regular(&parent, name, content.as_bytes(), file.mode, order),
        FileKind::Base64(content) => {
            let bytes = data_encoding::BASE64
                .decode(content.as_bytes())
                .map_err(text)?;
            regular(&parent, name, &bytes, file.mode, order)
        }
        FileKind::Sparse(size) => {
            regular(&parent, name, &[], file.mode, order)?;
            let made = rustix::fs::openat(
                &parent,
                name,
                OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(text)?;
            rustix::fs::ftruncate(&made, *size).map_err(text)
        }
        FileKind::Symlink(target) => {
            remove(&parent, name)?;
            rustix::fs::symlinkat(target.as_str(), &parent, name).map_err(text)
        }
        FileKind::Hardlink(existing) => {
            remove(&parent, name)?;
            let existing = existing
                .strip_prefix('/')
                .ok_or("the hard link's target is not absolute")?;
            let target = open(root, existing, OFlags::PATH | OFlags::NOFOLLOW)?;
            // Linking through a descriptor keeps the resolution inside the tree.
            let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&target));
            rustix::fs::linkat(
                rustix::fs::CWD,
                descriptor.as_str(),
                &parent,
                name,
                AtFlags::SYMLINK_FOLLOW,
            )
            .map_err(text)
        }
        FileKind::Fifo(_) => {
            remove(&parent, name)?;
            let mode = Mode::from_raw_mode(file.mode.unwrap_or(FILE_MODE));
            rustix::fs::mknodat(&parent, name, FileType::Fifo, mode, 0).map_err(text)
        }
    }
}

fn regular(
    parent: &OwnedFd,
    name: &str,
    content: &[u8],
    mode: Option<u32>,
    order: &mut Order,
) -> Result<(), String> {
    remove(parent, name)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let opened =
        rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(FILE_MODE)).map_err(text)?;
    let mut file = File::from(opened);
    file.write_all(content).map_err(text)?;
    order.settle(&file).map_err(text)?;
    rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode.unwrap_or(FILE_MODE))).map_err(text)
}

/// Opens a directory of the tree, making what is missing.
fn directory(root: &OwnedFd, path: &str) -> Result<OwnedFd, String> {
    let mut done = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let parent = open(root, &done, OFlags::PATH | OFlags::DIRECTORY)?;
        match rustix::fs::mkdirat(&parent, part, Mode::from_raw_mode(DIRECTORY_MODE)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(text(errno)),
        }
        done.push('/');
        done.push_str(part);
    }
    open(root, &done, OFlags::PATH | OFlags::DIRECTORY)
}

/// Opens something in the tree, whatever links lead to it.
pub(crate) fn open(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, String> {
    let path = match path.trim_start_matches('/') {
        "" => ".",
        path => path,
    };
    rustix::fs::openat2(
        root,
        path,
        flags | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::IN_ROOT,
    )
    .map_err(text)
}

fn remove(parent: &OwnedFd, name: &str) -> Result<(), String> {
    if is_directory(parent, name) {
        let place = format!(
            "/proc/self/fd/{}/{name}",
            std::os::fd::AsRawFd::as_raw_fd(parent)
        );
        return fs::remove_dir_all(place).map_err(text);
    }
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(text(errno)),
    }
}

fn is_directory(parent: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn change_mode(parent: &OwnedFd, name: &str, mode: u32) -> Result<(), String> {
    rustix::fs::chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty()).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn spec(path: &str, kind: FileKind) -> FileSpec {
        FileSpec {
            path: path.to_owned(),
            kind,
            mode: None,
        }
    }

    #[test]
    fn every_kind_of_entry_can_be_made_and_replaced() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            spec("/a/b/c", FileKind::Text("one".to_owned())),
            spec("/a/b/c", FileKind::Base64("AAE=".to_owned())),
            spec("/a/link", FileKind::Symlink("b/c".to_owned())),
            spec("/a/hard", FileKind::Hardlink("/a/link".to_owned())),
            spec("/a/hard2", FileKind::Hardlink("/a/b/c".to_owned())),
            spec("/a/pipe", FileKind::Fifo(true)),
            spec("/a/d", FileKind::Text(String::new())),
            spec("/a/d", FileKind::Dir(true)),
        ];
        write(root.path(), &files).unwrap();
        let at = |path: &str| root.path().join(path);
        assert_eq!(fs::read(at("a/b/c")).unwrap(), [0, 1]);
        assert_eq!(fs::read(at("a/hard2")).unwrap(), [0, 1]);
        assert!(at("a/link").is_symlink());
        assert!(at("a/d").is_dir());
    }

    #[test]
    fn links_in_the_tree_do_not_lead_out_of_it() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), root.path().join("out")).unwrap();
        let written = write(
            root.path(),
            &[spec("/out/file", FileKind::Text("x".to_owned()))],
        );
        assert!(written.is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_path_that_names_no_entry_is_refused_with_the_path() {
        let root = tempfile::tempdir().unwrap();
        for path in ["relative", "/", "/a/..", "/."] {
            let error = write(root.path(), &[spec(path, FileKind::Dir(true))]).unwrap_err();
            assert_eq!(error.stage, format!("make `{path}`"));
        }
    }
}

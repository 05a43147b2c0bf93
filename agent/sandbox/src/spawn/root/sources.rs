//! The directories of the views, each at a place outside of the private root.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::places::{SOURCES, open_in_old_root};
use super::tools::{READ_ONLY, open_dir};
use crate::spawn::spec::ViewSpec;
use crate::step::{AtStep, Step, StepError};
use crate::sys;
use crate::whose::Whose;

/// Mounts of directories that root made.
pub(crate) struct Staged {
    /// Mounts of all views, in order.
    pub trees: Vec<OwnedFd>,
    /// Why the owners on some of them are not translated, by their numbers.
    pub strange: BTreeMap<usize, String>,
    /// A mount of the directory for layers, if one was asked for, or why it is of no use.
    pub store: Option<Result<OwnedFd, String>>,
}

/// Gives the directory of each view a place outside of the private root, for all
/// sandboxes that see it. `trees` are mounts of them with translated owners;
/// without them the directories are looked up below the old root.
pub(super) fn bring(views: &[ViewSpec], trees: Vec<OwnedFd>) -> Result<(), StepError> {
    let mut trees = trees.into_iter();
    for (number, view) in views.iter().enumerate() {
        let tree = match trees.next() {
            Some(tree) => tree,
            None => tree_of(view)?,
        };
        attach(number, &tree)
            .and_then(|()| open_dir(&source(number), Step::StageViews))
            .map_err(|error| if_removed(&tree, view).unwrap_or(error))
            .and_then(|shown| same_directory(shown.as_fd(), view))?;
    }
    Ok(())
}

/// Where the directory of a view lies.
pub(super) fn source(number: usize) -> PathBuf {
    Path::new(SOURCES).join(number.to_string())
}

/// Refuses a directory that is not the one the capability holds.
pub(crate) fn same_directory(found: BorrowedFd<'_>, view: &ViewSpec) -> Result<(), StepError> {
    let on = || String::from_utf8_lossy(&view.source).into_owned();
    let found = Whose::of(found).at(Step::ViewSource, on())?;
    if found.is_the_same_as(&view.whose) {
        Ok(())
    } else {
        Err(StepError::new(
            Step::ViewSource,
            on(),
            io::Error::other("it is another directory by now"),
        ))
    }
}

/// What is to be said of a directory that was removed while it was given its place:
/// the kernel mounts none, and says only that something is not there.
fn if_removed(tree: &OwnedFd, view: &ViewSpec) -> Option<StepError> {
    let removed = rustix::fs::fstat(tree).is_ok_and(|stat| stat.st_nlink == 0);
    removed.then(|| {
        let on = String::from_utf8_lossy(&view.source);
        let gone = io::Error::new(io::ErrorKind::NotFound, "it was removed meanwhile");
        StepError::new(Step::ViewSource, on, gone)
    })
}

/// Gives a mount that has no place yet its place among the sources. Through it
/// nothing is ever written: changes go to layers.
fn attach(number: usize, tree: &OwnedFd) -> Result<(), StepError> {
    let place = source(number);
    let on = || place.display().to_string();
    sys::mount_setattr(tree.as_fd(), c"", true, READ_ONLY).at(Step::StageViews, on())?;
    fs::create_dir(&place).at(Step::StageViews, on())?;
    move_mount(
        tree,
        c"",
        CWD,
        &place,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .at(Step::StageViews, on())
}

/// The view that another lies in, the innermost, and the way from there, if there is one. A view lies
/// in one before it, and shows what is there: what is hidden by it is what it shows.
pub(super) fn around<'v>(
    views: &'v [ViewSpec],
    view: &'v ViewSpec,
) -> Result<Option<(usize, &'v Path)>, StepError> {
    let path = |bytes: &'v [u8]| Path::new(OsStr::from_bytes(bytes));
    let mut found = None;
    let mut is_before = true;
    for (number, other) in views.iter().enumerate() {
        if std::ptr::eq(other, view) {
            is_before = false;
            continue;
        }
        let refuse = |why: &str| {
            let on = String::from_utf8_lossy(&view.at);
            let other = String::from_utf8_lossy(&other.at);
            let why = io::Error::other(format!("{why} the view at `{other}`"));
            Err(StepError::new(Step::ViewPlace, on, why))
        };
        if view.at == other.at {
            return refuse("it lies over");
        }
        let Ok(below) = path(&view.at).strip_prefix(path(&other.at)) else {
            continue;
        };
        if !is_before {
            return refuse("it comes before, and lies in,");
        }
        if path(&other.source).join(below) != path(&view.source) {
            return refuse("it would hide what there is in");
        }
        if found.is_none_or(|(_, known): (usize, &Path)| {
            below.as_os_str().len() < known.as_os_str().len()
        }) {
            found = Some((number, below));
        }
    }
    Ok(found)
}

/// A mount of the directory in the machine's root, with what is mounted below
/// it: an ordinary user cannot have one without the other.
fn tree_of(view: &ViewSpec) -> Result<OwnedFd, StepError> {
    let on = || String::from_utf8_lossy(&view.source).into_owned();
    let opened = open_in_old_root(&view.source).at(Step::ViewSource, on())?;
    same_directory(opened.as_fd(), view)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(&opened, c"", flags).at(Step::StageViews, on())
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::rules::Withheld;

    use super::*;

    #[test]
    fn a_directory_that_was_removed_is_told_from_one_that_is_there() {
        let outer = tempfile::tempdir().unwrap();
        let place = outer.path().join("view");
        fs::create_dir(&place).unwrap();
        let tree = open_dir(&place, Step::ViewSource).unwrap();
        let view = ViewSpec {
            source: place.as_os_str().as_bytes().to_vec(),
            whose: Whose::of(tree.as_fd()).unwrap(),
            at: b"/work".to_vec(),
            copy_on_write: true,
            read_only: false,
            withheld: Withheld::default(),
        };
        assert!(if_removed(&tree, &view).is_none());
        fs::remove_dir(&place).unwrap();
        let told = if_removed(&tree, &view).unwrap().to_string();
        assert!(told.contains("view-source"), "{told}");
        assert!(told.contains("removed meanwhile"), "{told}");
    }
}

//! The directories a command is given, each at its place in the private root.

mod layers;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{MoveMountFlags, move_mount};

use super::tools::{bind_read_only, open_dir};
use super::{LAYERS, NEW, OLD};
use crate::spawn::spec::{Surroundings, ViewSpec};
use crate::spawn::step::{AtStep, Step, StepError};
use crate::spawn::whose::Whose;

/// A view cannot be placed at or below these.
const RESERVED: &[&str] = &[
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "dev", "proc", "run",
];

/// What was placed.
pub(super) struct Placed {
    /// The layers of the views that have one, in order.
    pub uppers: Vec<OwnedFd>,
    /// Why some of them are copies, if they are.
    pub copied: Option<String>,
}

/// Mounts every view and returns the upper layers of those that have one.
/// `trees` are mounts of the same directories with translated owners; without
/// them the directories are looked up below [`OLD`].
pub(super) fn place_all(
    spec: &Surroundings,
    trees: Vec<OwnedFd>,
    keeps_attributes: bool,
) -> Result<Placed, StepError> {
    let mut uppers = Vec::new();
    let mut copied = None;
    let asked = if spec.copied_views {
        Some("it was asked for")
    } else if keeps_attributes {
        None
    } else {
        Some("tmpfs keeps no attributes of users here (Linux 6.6)")
    };
    let mut placed: Vec<&[u8]> = Vec::new();
    let mut trees = trees.into_iter();
    for (number, view) in spec.views.iter().enumerate() {
        if let Some(outer) = placed.iter().find(|outer| overlaps(outer, &view.at)) {
            return Err(StepError::new(
                Step::ViewPlace,
                String::from_utf8_lossy(&view.at),
                io::Error::other(format!(
                    "it overlaps the view at `{}`",
                    String::from_utf8_lossy(outer)
                )),
            ));
        }
        placed.push(&view.at);
        let target = place_for(&view.at, Step::ViewPlace)?;
        let source = match trees.next() {
            Some(tree) => attach(number, &tree)?,
            None => in_old(Path::new(OsStr::from_bytes(&view.source))),
        };
        let lower = open_view(&source, view)?;
        if view.copy_on_write {
            let layer = layers::Layer {
                number,
                lower: &lower,
                mode: view.whose.mode,
                target: &target,
                limits: &spec.limits,
            };
            let made = layer.make(asked)?;
            uppers.push(made.upper);
            copied = copied.or(made.copied);
        } else {
            bind_read_only(&source, &target, Step::BindReadOnly)?;
            same_directory(open_dir(&target, Step::BindReadOnly)?.as_fd(), view)?;
        }
    }
    Ok(Placed { uppers, copied })
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

/// Gives a mount that has no place yet one outside of the private root.
fn attach(number: usize, tree: &OwnedFd) -> Result<PathBuf, StepError> {
    let place = Path::new(LAYERS).join(format!("tree{number}"));
    let on = || place.display().to_string();
    fs::create_dir(&place).at(Step::StageViews, on())?;
    move_mount(
        tree,
        c"",
        CWD,
        &place,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .at(Step::StageViews, on())?;
    Ok(place)
}

fn overlaps(first: &[u8], second: &[u8]) -> bool {
    let (first, second) = (OsStr::from_bytes(first), OsStr::from_bytes(second));
    Path::new(first).starts_with(second) || Path::new(second).starts_with(first)
}

fn in_old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn open_view(source: &Path, view: &ViewSpec) -> Result<OwnedFd, StepError> {
    let on = String::from_utf8_lossy(&view.source).into_owned();
    // The path came from the descriptor itself, so it holds no link; one that
    // appeared since then means that somebody moved things.
    let opened = rustix::fs::openat2(
        CWD,
        source,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .at(Step::ViewSource, on)?;
    same_directory(opened.as_fd(), view)?;
    Ok(opened)
}

/// Makes the place of a view or private directory, refusing reserved ones.
pub(super) fn place_for(at: &[u8], step: Step) -> Result<PathBuf, StepError> {
    let path = Path::new(OsStr::from_bytes(at));
    let refuse = |why: &str| {
        Err(StepError::new(
            step,
            path.display().to_string(),
            io::Error::other(why.to_owned()),
        ))
    };
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => names.push(name),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return refuse("the path is not plain");
            }
        }
    }
    if !path.is_absolute() {
        return refuse("the path is not absolute");
    }
    let Some(first) = names.first() else {
        return refuse("the whole root cannot be a view");
    };
    if RESERVED.iter().any(|name| OsStr::new(name) == *first)
        || names == ["tmp"]
        || names == ["var"]
    {
        return refuse("the place belongs to the system");
    }
    let target = Path::new(NEW).join(names.iter().collect::<PathBuf>());
    fs::create_dir_all(&target).at(step, path.display().to_string())?;
    Ok(target)
}

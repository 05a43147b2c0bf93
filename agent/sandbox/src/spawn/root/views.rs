//! The directories a command is given, each at its place in the private root.

mod layers;
mod owners;
mod withheld;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use self::owners::Owners;
use super::store::OnDisk;
use super::template::{OLD, Template};
use super::tools::{READ_ONLY, bind_read_only, open_dir};
use super::{NEW, SOURCES};
use crate::spawn::channel::Channel;
use crate::spawn::spec::{Surroundings, ViewSpec};
use crate::spawn::step::{AtStep, Step, StepError};
use crate::spawn::whose::Whose;
use crate::sys;

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
    /// What holds the place of those that lie on disk, if any do.
    pub on_disk: Option<OnDisk>,
    /// Why they do not lie there, although they should.
    pub not_on_disk: Option<String>,
    /// Whether all files belong to the command's user by an id map, or why not, and what
    /// was done about it.
    pub owners: Result<(), String>,
    /// Why the command is a stranger in one it may write, if it is.
    pub strange: Option<String>,
    /// Why some that cannot be written are the directories themselves, if they are.
    pub bare: Option<String>,
}

/// Mounts every view over its source and returns the upper layers of those that
/// have one.
pub(super) fn place_all(
    spec: &Surroundings,
    template: &Template,
    copier: Option<Channel>,
) -> Result<Placed, StepError> {
    let mut uppers = Vec::new();
    let mut copied = None;
    let mut bare = None;
    let mut grounds = Grounds::of(spec, template, copier);
    // One zygote for each set: these are the command's own, unless a fault is planted.
    for (number, view) in template.views.iter().enumerate() {
        let target = place_for(&view.at, Step::ViewPlace)?;
        let source = source(number);
        let lower = open_dir(&source, Step::ViewSource)?;
        same_directory(lower.as_fd(), view)?;
        let mut is_copy = false;
        if view.copy_on_write {
            let layer = layers::Layer {
                number,
                lower: &lower,
                mode: view.whose.mode,
                target: &target,
                limits: &spec.limits,
            };
            let made = grounds.make(&layer)?;
            if spec.places.views.contains(view) {
                uppers.push(made.upper);
            }
            is_copy = made.copied.is_some();
            copied = copied.or(made.copied);
        } else {
            if let Err(refused) = layers::show(&lower, &target)? {
                bare = Some(format!("no overlay can be mounted ({refused})"));
                bind_read_only(&source, &target, Step::BindReadOnly)?;
                same_directory(open_dir(&target, Step::BindReadOnly)?.as_fd(), view)?;
            }
            grounds.owners.of_what_is_read(number);
        }
        withheld::cover(view, &target, is_copy)?;
    }
    Ok(Placed {
        uppers,
        copied,
        on_disk: grounds.on_disk,
        not_on_disk: grounds.not_on_disk,
        strange: grounds.owners.left_strange.clone(),
        owners: grounds.owners.told(),
        bare,
    })
}

/// Where layers can lie.
struct Grounds<'a> {
    owners: Owners<'a>,
    /// Why views are copied, whatever else could be.
    copies: Option<&'static str>,
    /// Why an overlay cannot have its layer in memory.
    not_in_memory: Option<&'static str>,
    may_be_on_disk: bool,
    on_disk: Option<OnDisk>,
    not_on_disk: Option<String>,
}

impl<'a> Grounds<'a> {
    fn of(spec: &Surroundings, template: &'a Template, copier: Option<Channel>) -> Self {
        let (may_be_on_disk, not_on_disk) = match &template.store {
            Some(Ok(())) => (!spec.copies.all, None),
            Some(Err(why)) => (false, Some(why.clone())),
            None => (false, None),
        };
        Self {
            owners: Owners {
                strange: &template.strange,
                copier: copier.filter(|_| spec.copies.for_owners),
                told: Vec::new(),
                left_strange: None,
            },
            copies: spec.copies.all.then_some("it was asked for"),
            not_in_memory: (!template.keeps_attributes)
                .then_some("tmpfs keeps no attributes of users here (Linux 6.6)"),
            may_be_on_disk,
            on_disk: None,
            not_on_disk,
        }
    }

    /// Makes a copy if owners take one, else a layer on disk if it can lie there, else
    /// in memory.
    fn make(&mut self, layer: &layers::Layer<'_>) -> Result<layers::Made, StepError> {
        if let Some(made) = self.owners.have_copied(layer)? {
            if self.may_be_on_disk {
                let why = "a view is copied because of its owners, and copies lie in memory";
                self.not_on_disk = Some(why.to_owned());
            }
            return Ok(made);
        }
        if self.may_be_on_disk {
            match self.on_disk(layer) {
                Ok(made) => return Ok(made),
                Err(why) => {
                    self.may_be_on_disk = false;
                    self.not_on_disk = Some(why);
                }
            }
        }
        layer.make(self.copies.or(self.not_in_memory))
    }

    fn on_disk(&mut self, layer: &layers::Layer<'_>) -> Result<layers::Made, String> {
        let disk = match self.on_disk.take() {
            Some(disk) => disk,
            None => OnDisk::make()?,
        };
        let made = layer.make_on_disk(&disk);
        self.on_disk = Some(disk);
        made
    }
}

/// Gives the directory of each view a place outside of the private root, for all
/// sandboxes that see it. `trees` are mounts of them with translated owners;
/// without them the directories are looked up below [`OLD`].
pub(super) fn bring(views: &[ViewSpec], trees: Vec<OwnedFd>) -> Result<(), StepError> {
    let mut placed: Vec<&[u8]> = Vec::new();
    let mut trees = trees.into_iter();
    for (number, view) in views.iter().enumerate() {
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
fn source(number: usize) -> PathBuf {
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

fn overlaps(first: &[u8], second: &[u8]) -> bool {
    let (first, second) = (OsStr::from_bytes(first), OsStr::from_bytes(second));
    Path::new(first).starts_with(second) || Path::new(second).starts_with(first)
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

/// Opens a directory of the machine. The path came from a descriptor, so it holds no
/// link; one that appeared since then means that somebody moved things.
pub(super) fn open_in_old_root(source: &[u8]) -> rustix::io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(source));
    rustix::fs::openat2(
        CWD,
        Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path)),
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
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
        || names == ["var", "tmp"]
    {
        return refuse("the place belongs to the system");
    }
    let target = Path::new(NEW).join(names.iter().collect::<PathBuf>());
    fs::create_dir_all(&target).at(step, path.display().to_string())?;
    Ok(target)
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
            withheld: Withheld::default(),
        };
        assert!(if_removed(&tree, &view).is_none());
        fs::remove_dir(&place).unwrap();
        let told = if_removed(&tree, &view).unwrap().to_string();
        assert!(told.contains("view-source"), "{told}");
        assert!(told.contains("removed meanwhile"), "{told}");
    }
}

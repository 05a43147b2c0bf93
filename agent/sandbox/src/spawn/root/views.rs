//! The directories a command is given, each at its place in the private root.

mod layers;
mod owners;
mod withheld;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{MoveMountFlags, move_mount};

use self::owners::Owners;
use super::places::{NESTED, place_for};
use super::sources::{self, same_directory, source};
use super::store::OnDisk;
use super::template::Template;
use super::tools::{bind_read_only, open_dir, seal};
use crate::spawn::channel::Channel;
use crate::spawn::spec::{Surroundings, ViewSpec};
use crate::step::{AtStep, Step, StepError};

/// What was placed.
pub(crate) struct Placed {
    /// The layers of the views that have one, in order.
    pub uppers: Vec<OwnedFd>,
    /// What is seen of each.
    pub merged: Vec<OwnedFd>,
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
    let (mut uppers, mut merged) = (Vec::new(), Vec::new());
    let mut copied = None;
    let mut bare = None;
    let mut grounds = Grounds::of(spec, template, copier);
    // One zygote for each set: these are the command's own, unless a fault is planted.
    // The roots of views, by number, for those that lie in them, and which are copies.
    let mut roots: Vec<(OwnedFd, bool)> = Vec::new();
    for (number, view) in template.views.iter().enumerate() {
        let around = sources::around(&template.views, view)?;
        let target = match around {
            Some(_) => Path::new(NESTED).join(number.to_string()),
            None => place_for(&view.at, Step::ViewPlace)?,
        };
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
                merged.push(open_dir(&target, Step::ViewPlace)?);
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
        if view.read_only {
            seal(&target, Step::BindReadOnly)?;
        }
        withheld::cover(view, &target, is_copy)?;
        if template.views.len() > 1 {
            roots.push((open_dir(&target, Step::ViewPlace)?, is_copy));
        }
        if let Some((number, below)) = around
            && let (Some((root, is_copy)), Some(outer)) =
                (roots.get(number), template.views.get(number))
        {
            if *is_copy {
                withheld::hold_above(outer, root, below)?;
            }
            move_into(&target, root, below, view)?;
        }
    }
    Ok(Placed {
        uppers,
        merged,
        copied,
        on_disk: grounds.on_disk,
        not_on_disk: grounds.not_on_disk,
        strange: grounds.owners.left_strange.clone(),
        owners: grounds.owners.told(),
        bare,
    })
}

/// Moves a view that is made into the one it lies in. That one shows a directory of the
/// machine as it is now, in which somebody may be at work: no link is followed.
fn move_into(made: &Path, outer: &OwnedFd, below: &Path, view: &ViewSpec) -> Result<(), StepError> {
    let on = || String::from_utf8_lossy(&view.at).into_owned();
    let place = openat2(
        outer,
        below,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .at(Step::ViewPlace, on())?;
    let flags = MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(CWD, made, &place, c"", flags).at(Step::ViewPlace, on())
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

//! Where things lie while the root of a sandbox is made.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use crate::spawn::place;
use crate::spawn::spec::Places;
use crate::step::{AtStep, Step, StepError};

/// Where the command finds its inputs and leaves what the caller wants back.
pub(crate) const EXCHANGE_DIR: &str = "/run/hermitcrab";

/// The template, and over it the root of one sandbox.
pub(super) const NEW: &str = "/new";
/// Places for file systems of a sandbox's own: its views' layers, by number.
pub(super) const LAYERS: &str = "/layers";
/// A directory on disk for layers, if there is one.
pub(super) const STORE: &str = "/store";
/// The directories of the views, by number.
pub(super) const SOURCES: &str = "/sources";
/// Where views that lie in another are made, by number, before they are moved there.
pub(super) const NESTED: &str = "/nested";
/// What the command can write besides its views. /tmp, the shared memory and the
/// exchange directory are parts of it, each a mount for itself: making and taking
/// apart a file system costs several times what a mount costs.
pub(super) const OWN: &str = "/layers/own";

/// The machine's root, while the template is built.
pub(super) const OLD: &str = "/old";
/// Shown in place of directories that are hidden.
pub(super) const EMPTY: &str = "/empty";
/// Shown in place of what rules withhold of a view: nobody can open them, and nobody
/// mistakes them for something that is empty.
pub(super) const WITHHELD_FILE: &str = "/withheld/file";
pub(super) const WITHHELD_DIR: &str = "/withheld/dir";

/// Opens a directory of the machine. The path came from a descriptor, so it holds no
/// link; one that appeared since then means that somebody moved things.
pub(super) fn open_in_old_root(source: &[u8]) -> rustix::io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(source));
    openat2(
        CWD,
        Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path)),
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

/// Makes the place of a view or private directory, refusing reserved ones. Where commands
/// are shown something of the machine in any case, it has to be there already.
pub(super) fn place_for(at: &[u8], step: Step) -> Result<PathBuf, StepError> {
    let path = Path::new(OsStr::from_bytes(at));
    let on = || path.display().to_string();
    let refuse = |why: &str| Err(StepError::new(step, on(), io::Error::other(why.to_owned())));
    if let Some(why) = place::refusal(path) {
        return refuse(why);
    }
    let names = place::names(path).unwrap_or_default();
    let target = Path::new(NEW).join(names.iter().collect::<PathBuf>());
    if place::is_of_the_system(&names) {
        if step != Step::ViewPlace {
            return refuse("the place belongs to the system");
        }
        // Links of the machine lead nowhere sensible from here.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(
            CWD,
            &target,
            flags,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )
        .at(step, on())?;
    } else {
        fs::create_dir_all(&target).at(step, on())?;
    }
    Ok(target)
}

/// Makes the places of views in an /etc that nothing can be made in later.
pub(super) fn places_below_etc(places: &Places) {
    for view in &places.views {
        let at = Path::new(OsStr::from_bytes(&view.at));
        if at.starts_with("/etc") && view.at == view.source && place::refusal(at).is_none() {
            let names = place::names(at).unwrap_or_default();
            let target = Path::new(NEW).join(names.iter().collect::<PathBuf>());
            // What cannot be made is missed when the view is placed.
            let _made = fs::create_dir_all(target);
        }
    }
}

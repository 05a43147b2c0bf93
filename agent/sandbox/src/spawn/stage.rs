//! Views prepared by root, with their owners translated.
//!
//! The command of root runs with ids nobody else has, so without translation
//! it could not use the files it is given. The translation is a property of a
//! private mount; nothing changes on disk. Where the file system cannot do it
//! (overlayfs, network file systems), the view is mounted as it is and the
//! command has the rights of a stranger: less service, never less protection.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{OpenTreeFlags, open_tree};

use super::identity::Identity;
use super::root::same_directory;
use super::spec::Places;
use super::step::{AtStep, Step, StepError};
use crate::sys;

/// A mount of each view that has no place yet, owners translated by the maps
/// of `user_namespace`.
pub(crate) fn trees(places: &Places, user_namespace: &OwnedFd) -> Result<Vec<OwnedFd>, StepError> {
    let mut trees = Vec::new();
    for view in &places.views {
        let source = Path::new(OsStr::from_bytes(&view.source));
        let on = source.display().to_string();
        let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        if !view.copy_on_write {
            flags |= OpenTreeFlags::AT_RECURSIVE;
        }
        let tree = open_tree(CWD, source, flags).at(Step::ViewSource, on.clone())?;
        same_directory(tree.as_fd(), view)?;
        // A file system that cannot translate leaves the view as it is, see above.
        let _translated = sys::mount_idmap(tree.as_fd(), user_namespace.as_fd());
        trees.push(tree);
    }
    Ok(trees)
}

/// A user namespace with the identity's maps, held by a descriptor only.
pub(crate) fn user_namespace(identity: &Identity) -> Result<OwnedFd, StepError> {
    match sys::fork_into(CloneFlags::CLONE_NEWUSER).at(Step::Namespaces, "user")? {
        sys::Cloned::Child => loop {
            // Lives until it is killed below, or with its parent.
            let _armed = rustix::process::set_parent_process_death_signal(Some(
                rustix::process::Signal::KILL,
            ));
            if rustix::process::getppid().is_none_or(rustix::process::Pid::is_init) {
                sys::exit_immediately(0);
            }
            nix::unistd::pause();
        },
        sys::Cloned::Parent(child) => {
            let path = format!("/proc/{}/ns/user", child.number);
            let opened = identity.write_maps(&child).and_then(|()| {
                rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                    .at(Step::MapIds, path.clone())
            });
            let _killed = kill(child.number, Signal::SIGKILL);
            let _reaped = waitpid(child.number, None);
            opened
        }
    }
}

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
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};

use super::identity::Identity;
use super::root::{base_dir, same_directory};
use super::spec::Spec;
use super::step::{AtStep, Step, StepError};
use crate::sys;

/// Makes a private mount namespace holding each view under a plain number, and
/// says where they are.
pub(crate) fn stage_views(spec: &Spec, identity: &Identity) -> Result<PathBuf, StepError> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNS).at(Step::StageViews, "unshare")?;
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .at(Step::StageViews, "/")?;
    let user_namespace = user_namespace(identity)?;
    let mut trees = Vec::new();
    for view in &spec.views {
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
    let base = base_dir()?;
    mount(
        "tmpfs",
        &base,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        c"size=1m,mode=755",
    )
    .at(Step::StageViews, base.display().to_string())?;
    for (number, tree) in trees.iter().enumerate() {
        let place = base.join(number.to_string());
        std::fs::create_dir(&place).at(Step::StageViews, place.display().to_string())?;
        move_mount(
            tree,
            c"",
            CWD,
            &place,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .at(Step::StageViews, place.display().to_string())?;
    }
    Ok(base)
}

/// A user namespace with the identity's maps, held by a descriptor only.
fn user_namespace(identity: &Identity) -> Result<OwnedFd, StepError> {
    match sys::fork_into(CloneFlags::CLONE_NEWUSER).at(Step::Namespaces, "user")? {
        sys::Forked::Child => loop {
            // Lives until it is killed below, or with its parent.
            let _armed = rustix::process::set_parent_process_death_signal(Some(
                rustix::process::Signal::KILL,
            ));
            if rustix::process::getppid().is_none_or(rustix::process::Pid::is_init) {
                sys::exit_immediately(0);
            }
            nix::unistd::pause();
        },
        sys::Forked::Parent(child) => {
            let path = format!("/proc/{child}/ns/user");
            let opened = identity.write_maps(child.as_raw()).and_then(|()| {
                rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                    .at(Step::MapIds, path.clone())
            });
            let _killed = kill(child, Signal::SIGKILL);
            let _reaped = waitpid(child, None);
            opened
        }
    }
}

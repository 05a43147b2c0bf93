//! Views prepared by root, with their owners translated.
//!
//! The command of root runs with ids nobody else has, so without translation
//! it could not use the files it is given. The translation is a property of a
//! private mount; nothing changes on disk. Where the file system cannot do it
//! (overlayfs, network file systems, whatever belongs to another user namespace), the
//! view is mounted as it is. To what it can only read there the command has the rights
//! of a stranger: less service, never less protection. What it may write is copied for
//! it ([`super::copier`]), if it is no more than a copy may hold; else the same holds.
//!
//! Only a process of the machine's own user namespace may do this, and it opens
//! directories that may lie on a file system which does not answer. So a process
//! of its own does it, for one zygote, which waits for it: the spawner never opens
//! a view, and whoever asks for others is served meanwhile. It ends when that is done,
//! unless there is something to copy.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

use super::channel::{Channel, Received};
use super::copier::{self, Original};
use super::ground::user_namespace;
use super::root::{Staged, is_still, same_directory};
use super::spec::{Places, Report, StoreSpec};
use crate::identity::Identity;
use crate::step::{AtStep, CLOSE_RANGE, Step, StepError};
use crate::sys::{self, Cloneling};

/// The process that opens the views.
pub(crate) struct Stage {
    pub process: Cloneling,
    /// The mounts come this way, and then copies are asked for.
    pub mounts: Channel,
}

/// Starts it. It is not waited for.
pub(crate) fn start(identity: &Identity, places: &Places) -> Result<Stage, StepError> {
    let (ours, theirs) = Channel::pair().at(Step::Fork, "stage")?;
    match sys::fork_into(CloneFlags::empty()).at(Step::Fork, "stage")? {
        sys::Cloned::Child => {
            let told = match send_all(identity, places, &theirs) {
                Ok(()) => Ok(()),
                Err(error) => theirs.send(&Report::Failed(error).encode(), &[]),
            };
            // A zygote that is gone needs no mounts.
            sys::exit_immediately(i32::from(told.is_err()))
        }
        sys::Cloned::Parent(process) => Ok(Stage {
            process,
            mounts: ours,
        }),
    }
}

/// Takes what it makes, unless `control` is closed first and nobody who asked by it is to
/// be served still: mounts may have changed since, and then no more requests come.
pub(crate) fn receive_all(
    places: &Places,
    mounts: &Channel,
    control: &Channel,
) -> Result<Staged, StepError> {
    let failed = |why: &'static str| StepError::new(Step::StageViews, "", io::Error::other(why));
    let mut trees = Vec::new();
    let mut strange = BTreeMap::new();
    let mut store = None;
    let mut may_be_let_go = true;
    while trees.len() < places.views.len() || store.is_some() != places.store.is_some() {
        let mut wanted = [
            PollFd::from_borrowed_fd(mounts.as_fd(), PollFlags::IN),
            // Its end is told in any case, requests are not.
            PollFd::from_borrowed_fd(control.as_fd(), PollFlags::empty()),
        ];
        let watched = if may_be_let_go { 2 } else { 1 };
        match poll(wanted.get_mut(..watched).unwrap_or_default(), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(StepError::new(Step::StageViews, "poll", errno)),
        }
        match mounts.receive_now().at(Step::StageViews, "")? {
            // After the views.
            Received::Frame(frame, descriptors) if trees.len() == places.views.len() => {
                let why = || String::from_utf8_lossy(&frame).into_owned();
                store = Some(descriptors.into_iter().next().ok_or_else(why));
            }
            Received::Frame(frame, descriptors) => match descriptors.into_iter().next() {
                Some(tree) => {
                    if !frame.is_empty() {
                        let why = String::from_utf8_lossy(&frame).into_owned();
                        strange.insert(trees.len(), why);
                    }
                    trees.push(tree);
                }
                None => {
                    return Err(match Report::decode(&frame) {
                        Ok(Report::Failed(error)) => error,
                        _ => failed("a garbled report"),
                    });
                }
            },
            Received::Nothing if wanted[1].revents().contains(PollFlags::HUP) => {
                if !control.holds_one() {
                    return Err(failed("nobody waits for them any more"));
                }
                may_be_let_go = false;
            }
            Received::Nothing => {}
            Received::Closed => return Err(failed("the process that opens them is gone")),
        }
    }
    Ok(Staged {
        trees,
        strange,
        store,
    })
}

/// What the process does.
fn send_all(identity: &Identity, places: &Places, to: &Channel) -> Result<(), StepError> {
    sys::close_all_but(&[to.as_fd()]).at(Step::Fork, CLOSE_RANGE)?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .at(Step::TakeIds, "death signal")?;
    let user_namespace = user_namespace(identity)?;
    let originals = send_trees(places, &user_namespace, to)?;
    if let Some(store) = &places.store {
        // Without it layers lie in memory: no command fails for that.
        match store_tree(store, &user_namespace) {
            Ok(tree) => to.send(&[], &[tree.as_fd()]),
            Err(why) => to.send(why.as_bytes(), &[]),
        }
        .at(Step::Talk, "the mount for layers")?;
    }
    drop(user_namespace);
    if !originals.is_empty() {
        copier::serve(identity, &originals, to);
    }
    Ok(())
}

/// A mount of the directory for layers, in which whoever makes a sandbox can write.
fn store_tree(store: &StoreSpec, user_namespace: &OwnedFd) -> Result<OwnedFd, String> {
    let source = Path::new(OsStr::from_bytes(&store.source));
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, source, flags).map_err(|errno| errno.to_string())?;
    is_still(&tree, store)?;
    sys::mount_idmap(tree.as_fd(), user_namespace.as_fd())
        .map_err(|error| format!("owners cannot be translated there ({error})"))?;
    Ok(tree)
}

/// Sends a mount of each view that has no place yet, owners translated by the maps
/// of `user_namespace`; and keeps those to which that does not apply and that a command
/// may write.
fn send_trees(
    places: &Places,
    user_namespace: &OwnedFd,
    to: &Channel,
) -> Result<Vec<Original>, StepError> {
    let mut originals = Vec::new();
    for (number, view) in places.views.iter().enumerate() {
        let source = Path::new(OsStr::from_bytes(&view.source));
        let on = source.display().to_string();
        let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        if !view.copy_on_write {
            flags |= OpenTreeFlags::AT_RECURSIVE;
        }
        let tree = open_tree(CWD, source, flags).at(Step::ViewSource, on.clone())?;
        same_directory(tree.as_fd(), view)?;
        // A file system that cannot translate leaves the view as it is, see above,
        // and that is told beside it.
        let why = match sys::mount_idmap(tree.as_fd(), user_namespace.as_fd()) {
            Ok(()) => String::new(),
            Err(error) => format!("`{}`: {error}", String::from_utf8_lossy(&view.at)),
        };
        to.send(why.as_bytes(), &[tree.as_fd()])
            .at(Step::Talk, "a view's mount")?;
        if !why.is_empty() && view.copy_on_write {
            originals.push(Original { number, tree });
        }
    }
    Ok(originals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whose::Whose;

    /// Nothing but a directory for layers: one frame, with a descriptor.
    fn places() -> Places {
        Places {
            store: Some(StoreSpec {
                source: b"/nowhere".to_vec(),
                whose: Whose {
                    device: 0,
                    inode: 0,
                    born: 0,
                    owner: 0,
                    group: 0,
                    mode: 0,
                },
                always: false,
            }),
            ..Places::default()
        }
    }

    #[test]
    fn who_asked_before_a_zygote_was_let_go_is_served_and_nobody_else_is_waited_for() {
        let received = |asked: bool| {
            let (stage, mounts) = Channel::pair().unwrap();
            let (spawner, control) = Channel::pair().unwrap();
            if asked {
                spawner.send(b"a request", &[]).unwrap();
            }
            drop(spawner);
            let later = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                let null = std::fs::File::open("/dev/null").unwrap();
                // Nobody may be there any more.
                let _sent = stage.send(&[], &[null.as_fd()]);
            });
            let received = receive_all(&places(), &mounts, &control);
            later.join().unwrap();
            // The request is there still.
            let is_there =
                matches!(control.receive(), Ok(Received::Frame(frame, _)) if frame == b"a request");
            assert_eq!(is_there, asked);
            received
        };
        assert!(received(true).is_ok_and(|staged| matches!(staged.store, Some(Ok(_)))));
        let refused = received(false).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|why| why.contains("nobody waits")));
    }
}

//! What the agent keeps of a superuser's powers.
//!
//! What for: nothing needs root, but some start the agent as root all the same.
//! Then it keeps what reaching and replacing its user's files takes, and the
//! spawner, which is a program of its own, what building sandboxes takes. All
//! else (modules, the clock, raw devices, other programs' memory, ...) is given
//! up before anything is read, and no program started later has it.
//!
//! Source: capabilities(7). A superuser's program gets, when it starts, what is
//! left in the bounding set: so the spawner gets its own powers back, and no more.

use std::io;

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};

/// What reaching, replacing and giving back files takes, and ending commands.
fn kept() -> CapabilitySet {
    CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
}

/// What a thread takes that makes files for a command, with the rights of that command
/// (`spawn/underway/brought`). Only such a thread uses them; and whatever this program
/// starts has them anyway, as the spawner does.
fn for_threads() -> CapabilitySet {
    CapabilitySet::SETUID | CapabilitySet::SETGID
}

/// What building sandboxes takes besides: ids, mounts, namespaces, limits.
fn for_the_spawner() -> CapabilitySet {
    CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::SETPCAP
        | CapabilitySet::SETFCAP
        | CapabilitySet::SYS_ADMIN
        | CapabilitySet::SYS_CHROOT
        | CapabilitySet::SYS_PTRACE
        | CapabilitySet::SYS_RESOURCE
        | CapabilitySet::NET_ADMIN
        | CapabilitySet::MKNOD
}

/// Gives up for good what the agent does not need. For the first thread, before
/// there is another. Who holds nothing keeps it so.
///
/// # Errors
/// The kernel did not take the sets.
pub fn shed() -> io::Result<()> {
    let held = capabilities(None)?;
    if (held.effective | held.permitted | held.inheritable).is_empty() {
        return Ok(());
    }
    // Only who holds this may lower the bounding set; the sets below can be lowered by anybody.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in (CapabilitySet::all() - kept() - for_the_spawner()).iter() {
            match remove_capability_from_bounding_set(capability) {
                // EINVAL: the kernel is older than the capability.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: held.effective & kept(),
            permitted: held.permitted & (kept() | for_threads()),
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// Lets the calling thread reach files as somebody else does, and with no powers any more;
/// whether it does now. For a thread of its own: there is no way back.
#[must_use]
pub(crate) fn become_another(user: Uid, group: Gid) -> bool {
    let Ok(held) = capabilities(None) else {
        return false;
    };
    let with = |effective| CapabilitySets { effective, ..held };
    // Where they are not held the ids tell.
    let _taken = set_capabilities(
        None,
        with(held.effective | (held.permitted & for_threads())),
    );
    // The group first: with the user's rights it could not be changed.
    setfsgid(group);
    setfsuid(user);
    let is_bare = set_capabilities(None, with(CapabilitySet::empty())).is_ok();
    // Nobody has these ids, so nothing is changed, and what is so now is said.
    let nobody = u32::MAX;
    let is_another =
        setfsgid(Gid::from_raw(nobody)) == group && setfsuid(Uid::from_raw(nobody)) == user;
    is_bare && is_another
}

//! What all zygotes of one spawner have in common: the user namespace they live in, and
//! the networks that several commands share.
//!
//! What for: there is a zygote for each set of places, and it goes when the machine's mounts
//! change or others are used. What one command serves is to be reached by later ones all
//! the same, whatever places they are shown. So a network that is shared is nobody's but the
//! spawner's, which keeps it until the session ends; and as a network can be entered only
//! with capabilities over the user namespace it belongs to, all zygotes live in that one.
//!
//! No command has a capability there: each is in a user namespace of its own below it. So
//! nobody in a network that is shared can change it: it has a loopback that is up, and
//! nothing else. What one sandbox listens at the others reach; that is what it is for, and
//! nobody else is in it ([`Common`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use rustix::fs::{Mode, OFlags};

use super::channel::{Channel, Received};
use super::spec::Report;
use crate::identity::Identity;
use crate::net::{Common, raise_loopback};
use crate::step::{AtStep, Step, StepError};
use crate::sys;

/// Shared networks kept at once.
const NETWORKS_MAX: usize = 16;

/// The network of the process that opens it.
const OWN_NETWORK: &str = "/proc/self/ns/net";
/// How many sockets there are in the network of the process that opens it.
const SOCKETS: &str = "/proc/self/net/sockstat";

/// What the zygotes of one spawner stand on.
#[derive(Debug)]
pub(crate) struct Ground {
    user: OwnedFd,
    /// The last used is the last.
    networks: Vec<Shared>,
}

#[derive(Debug)]
struct Shared {
    common: Common,
    namespace: OwnedFd,
    /// What tells, from wherever it is read, how many sockets there are in it.
    sockets: OwnedFd,
}

impl Ground {
    /// Made once: the ids of all identities a process can choose are the same outside.
    pub(crate) fn make(identity: &Identity) -> Result<Self, StepError> {
        Ok(Self {
            user: user_namespace(&identity.outer())?,
            networks: Vec::new(),
        })
    }

    /// The user namespace of the zygotes.
    pub(crate) fn user(&self) -> BorrowedFd<'_> {
        self.user.as_fd()
    }

    /// The network of those that have this in common.
    pub(crate) fn network(&mut self, common: Common) -> Result<BorrowedFd<'_>, StepError> {
        let known = self.networks.iter().position(|net| net.common == common);
        let network = match known {
            Some(place) => self.networks.remove(place),
            None => {
                if self.networks.len() >= NETWORKS_MAX {
                    let place = least_missed(self.networks.iter().map(Shared::is_used));
                    self.networks.remove(place);
                }
                Shared::make(common, self.user())?
            }
        };
        Ok(self.networks.push_mut(network).namespace.as_fd())
    }
}

/// Which of those that were used in this order is given up: one in which nothing can be
/// reached, if there is such a one. Who is in it stays in it.
fn least_missed(mut are_used: impl Iterator<Item = bool>) -> usize {
    are_used.position(|is_used| !is_used).unwrap_or(0)
}

impl Shared {
    /// A process makes it that enters the user namespace for that alone.
    fn make(common: Common, user: BorrowedFd<'_>) -> Result<Self, StepError> {
        let (ours, theirs) = Channel::pair().at(Step::Fork, "network")?;
        let child = match sys::fork_into(CloneFlags::empty()).at(Step::Fork, "network")? {
            sys::Cloned::Child => {
                let told = match up(user) {
                    Ok([namespace, sockets]) => {
                        theirs.send(&[], &[namespace.as_fd(), sockets.as_fd()])
                    }
                    Err(error) => theirs.send(&Report::Failed(error).encode(), &[]),
                };
                sys::exit_immediately(i32::from(told.is_err()))
            }
            sys::Cloned::Parent(child) => child,
        };
        drop(theirs);
        let heard = ours.receive();
        let _reaped = waitpid(child.number, None);
        let gone = || StepError::new(Step::Network, "shared", io::ErrorKind::UnexpectedEof);
        match heard.at(Step::Network, "shared")? {
            Received::Frame(frame, descriptors) => match <[OwnedFd; 2]>::try_from(descriptors) {
                Ok([namespace, sockets]) => Ok(Self {
                    common,
                    namespace,
                    sockets,
                }),
                Err(_) => Err(match Report::decode(&frame) {
                    Ok(Report::Failed(error)) => error,
                    _ => gone(),
                }),
            },
            Received::Nothing | Received::Closed => Err(gone()),
        }
    }

    /// Whether there is a socket in it, as far as can be told.
    fn is_used(&self) -> bool {
        let mut bytes = [0_u8; 64];
        let Ok(count) = rustix::io::pread(&self.sockets, &mut bytes, 0) else {
            return true;
        };
        let text = bytes.get(..count).unwrap_or_default();
        text.split(|byte| *byte == b'\n').next() != Some(b"sockets: used 0")
    }
}

/// Moves the calling process into a new network with its loopback up, and returns that and
/// what tells of its sockets.
fn up(user: BorrowedFd<'_>) -> Result<[OwnedFd; 2], StepError> {
    setns(user, CloneFlags::CLONE_NEWUSER).at(Step::Namespaces, "user")?;
    unshare(CloneFlags::CLONE_NEWNET).at(Step::Namespaces, "network")?;
    raise_loopback().at(Step::Network, "loopback")?;
    let open = |path: &'static str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).at(Step::Network, path)
    };
    Ok([open(OWN_NETWORK)?, open(SOCKETS)?])
}

/// A user namespace with the identity's maps, held by a descriptor only. For a process that
/// is dumpable: else the files of the maps are root's.
pub(crate) fn user_namespace(identity: &Identity) -> Result<OwnedFd, StepError> {
    match sys::fork_into(CloneFlags::CLONE_NEWUSER).at(Step::Namespaces, "user")? {
        sys::Cloned::Child => loop {
            // Lives until it is killed below, or with its parent: if that cannot be
            // arranged it holds an empty namespace and waits, and nothing else.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_serves_nobody_is_given_up_before_one_that_does() {
        for (are_used, given_up) in [
            ([false, false, true], 0),
            ([true, false, false], 1),
            ([true, true, false], 2),
            // All of them serve somebody: the one that was not asked for for longest.
            ([true, true, true], 0),
        ] {
            assert_eq!(least_missed(are_used.into_iter()), given_up, "{are_used:?}");
        }
    }
}

//! Network namespaces that are empty, and so can serve one sandbox after another.
//!
//! What for: making a network namespace costs more than starting a program,
//! and the kernel takes them apart behind a lock that every other one waits
//! for. An empty one has nothing in it that a command could have changed: its
//! loopback is down, and the namespace belongs to the zygote, over which a
//! command has no capability.
//!
//! One sandbox has it at a time. Before the next one gets it, it is looked at:
//! no socket, no address, no route, one interface that never carried anything.
//! That is done when its sandbox has ended and nobody waits, because nothing
//! can change in a network that nobody is in.
//! It must never hand out one for which that could not be seen.

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

/// Namespaces kept at once; more are made and forgotten.
const KEPT_MAX: usize = 16;

/// The namespaces of one zygote.
#[derive(Default)]
pub(crate) struct Networks {
    kept: Vec<Network>,
}

struct Network {
    namespace: OwnedFd,
    /// Of the first process of the sandbox that has it.
    user: Option<OwnedFd>,
    /// It was looked at since anybody was in it.
    is_seen_empty: bool,
}

impl Networks {
    /// Moves the calling process into one that is empty and that nobody has.
    /// Its children are born there. Returns its place.
    pub(crate) fn enter(&mut self) -> io::Result<usize> {
        while let Some(place) = self.kept.iter().position(Network::is_free) {
            if let Some(network) = self.kept.get(place)
                && setns(&network.namespace, CloneFlags::CLONE_NEWNET).is_ok()
                && (network.is_seen_empty || is_empty())
            {
                // Whoever is born here now is in it.
                if let Some(network) = self.kept.get_mut(place) {
                    network.is_seen_empty = false;
                }
                return Ok(place);
            }
            self.kept.remove(place);
        }
        unshare(CloneFlags::CLONE_NEWNET)?;
        let namespace = rustix::fs::open(
            "/proc/self/ns/net",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        if self.kept.len() >= KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push(Network {
            namespace,
            user: None,
            is_seen_empty: false,
        });
        Ok(self.kept.len().saturating_sub(1))
    }

    /// Notes whose it is; it is free again when this process has ended.
    pub(crate) fn give(&mut self, place: usize, first_process: OwnedFd) {
        if let Some(network) = self.kept.get_mut(place) {
            network.user = Some(first_process);
            network.is_seen_empty = false;
        }
    }

    /// Looks at what is free again until something can be read from `control`.
    pub(crate) fn look_over_until(&mut self, control: BorrowedFd<'_>) {
        loop {
            let users = self.kept.iter().filter(|network| !network.is_seen_empty);
            let mut wanted = vec![PollFd::from_borrowed_fd(control, PollFlags::IN)];
            wanted.extend(
                users
                    .filter_map(|network| network.user.as_ref())
                    .map(|user| PollFd::new(user, PollFlags::IN)),
            );
            if wanted.len() == 1 {
                return;
            }
            match poll(&mut wanted, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            }
            let asked = wanted.first().is_none_or(|fd| !fd.revents().is_empty());
            if asked {
                return;
            }
            self.kept.retain_mut(|network| {
                if network.is_seen_empty || !network.is_free() {
                    return true;
                }
                network.user = None;
                network.is_seen_empty =
                    setns(&network.namespace, CloneFlags::CLONE_NEWNET).is_ok() && is_empty();
                network.is_seen_empty
            });
        }
    }

    /// One was entered, and it is not known who has it now.
    pub(crate) fn forget(&mut self, place: usize) {
        if place < self.kept.len() {
            self.kept.remove(place);
        }
    }
}

impl Network {
    /// The first process of a sandbox ends after every other one in it.
    fn is_free(&self) -> bool {
        let Some(user) = &self.user else {
            return true;
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut wanted = [PollFd::new(user, PollFlags::IN)];
        matches!(poll(&mut wanted, Some(&now)), Ok(1..))
    }
}

/// Whether the network the calling process is in is as it was made.
pub(crate) fn is_empty() -> bool {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/net/{name}"));
    let (Ok(sockets), Ok(addresses), Ok(interfaces)) =
        (read("sockstat"), read("fib_trie"), read("dev"))
    else {
        return false;
    };
    // Absent without IPv6.
    let newer_addresses = match read("if_inet6") {
        Ok(addresses) => addresses,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(_) => return false,
    };
    sockets.lines().next() == Some("sockets: used 0")
        && addresses.is_empty()
        && newer_addresses.is_empty()
        && is_unused_loopback(&interfaces)
}

/// Two lines of headings, and the loopback with nothing but zeros.
fn is_unused_loopback(interfaces: &str) -> bool {
    let mut lines = interfaces.lines().skip(2);
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return false;
    };
    line.trim_start()
        .strip_prefix("lo:")
        .is_some_and(|counts| counts.split_ascii_whitespace().all(|count| count == "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-|   Receive |  Transmit\n face |bytes packets|bytes packets\n";

    #[test]
    fn only_a_loopback_that_carried_nothing_is_unused() {
        let seen = |rest: &str| is_unused_loopback(&format!("{HEAD}{rest}"));
        assert!(seen("    lo:       0       0    0    0\n"));
        assert!(!seen("    lo:      84       1    0    0\n"));
        assert!(!seen("    lo: 0 0\n  eth0: 0 0\n"));
        assert!(!seen("  eth0: 0 0\n"));
        assert!(!seen(""));
    }

    #[test]
    fn the_network_of_the_machine_is_not_an_empty_one() {
        // A socket of our own is enough, whatever else there is.
        let _held = std::net::UdpSocket::bind("0.0.0.0:0");
        assert!(!is_empty());
    }
}

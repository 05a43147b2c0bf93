//! Empty network namespaces, which more than one sandbox can have, one after another.
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
    /// What shows whether anything is in it.
    gauges: Gauges,
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
                && (network.is_seen_empty || network.gauges.show_nothing())
                && setns(&network.namespace, CloneFlags::CLONE_NEWNET).is_ok()
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
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let namespace = rustix::fs::open("/proc/self/ns/net", flags, Mode::empty())?;
        let gauges = Gauges::open()?;
        if self.kept.len() >= KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push(Network {
            namespace,
            gauges,
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
                network.is_seen_empty = network.gauges.show_nothing();
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

/// The files that tell about one network. An open one goes on telling about the
/// network it was opened in, from wherever it is read.
struct Gauges {
    sockets: OwnedFd,
    addresses: OwnedFd,
    interfaces: OwnedFd,
    /// Absent without IPv6.
    newer_addresses: Option<OwnedFd>,
}

impl Gauges {
    /// Of the network the calling process is in.
    fn open() -> io::Result<Self> {
        let open = |name: &str| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::open(format!("/proc/self/net/{name}"), flags, Mode::empty())
        };
        Ok(Self {
            sockets: open("sockstat")?,
            addresses: open("fib_trie")?,
            interfaces: open("dev")?,
            newer_addresses: match open("if_inet6") {
                Ok(addresses) => Some(addresses),
                Err(rustix::io::Errno::NOENT) => None,
                Err(errno) => return Err(errno.into()),
            },
        })
    }

    /// Whether the network is as it was made. One that cannot be read is not.
    fn show_nothing(&self) -> bool {
        let newer_addresses = self.newer_addresses.as_ref().map(read).transpose();
        let (Ok(sockets), Ok(addresses), Ok(interfaces), Ok(newer_addresses)) = (
            read(&self.sockets),
            read(&self.addresses),
            read(&self.interfaces),
            newer_addresses,
        ) else {
            return false;
        };
        sockets.lines().next() == Some("sockets: used 0")
            && addresses.is_empty()
            && newer_addresses.is_none_or(|addresses| addresses.is_empty())
            && is_unused_loopback(&interfaces)
    }
}

/// The beginning of a file: all of it, if the network is empty. What is longer
/// is cut off, and then shows more than nothing.
fn read(file: &OwnedFd) -> io::Result<String> {
    let mut bytes = [0_u8; 2048];
    let count = rustix::io::pread(file, &mut bytes, 0)?;
    let text = std::str::from_utf8(bytes.get(..count).unwrap_or_default());
    text.map(str::to_owned).map_err(io::Error::other)
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
    use std::os::fd::AsFd as _;

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
        assert!(!Gauges::open().unwrap().show_nothing());
    }

    /// One that is as it was left by a process that has ended: the machine's, in which a
    /// socket of this process is open.
    fn left_with_a_socket() -> (Networks, std::net::UdpSocket) {
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let number = i32::try_from(ended.id()).unwrap();
        let number = rustix::process::Pid::from_raw(number).unwrap();
        let flags = rustix::process::PidfdFlags::empty();
        let user = rustix::process::pidfd_open(number, flags).unwrap();
        ended.wait().unwrap();
        let held = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let namespace = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
        let network = Network {
            namespace: namespace.into(),
            gauges: Gauges::open().unwrap(),
            user: Some(user),
            is_seen_empty: false,
        };
        let kept = vec![network];
        (Networks { kept }, held)
    }

    #[test]
    fn a_network_in_which_something_was_left_is_not_kept_for_the_next_one() {
        let (mut networks, _held) = left_with_a_socket();
        let (control, _open) = rustix::pipe::pipe().unwrap();
        networks.look_over_until(control.as_fd());
        assert_eq!(networks.kept.len(), 0);
    }

    #[test]
    fn a_network_in_which_something_was_left_is_not_entered() {
        let (mut networks, _held) = left_with_a_socket();
        let place = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        // Who may not make a network of their own stays where they are, without a place.
        std::thread::spawn(move || {
            let before = place();
            match networks.enter() {
                Ok(_) => assert_ne!(place(), before),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
            }
        })
        .join()
        .unwrap();
    }
}

//! The network of worlds, made anew as soon as one of them has used it.
//!
//! Making one takes as long as all else an observer does for a world, and most worlds
//! never send a byte. What the kernel counts in a network tells whether one did: every
//! packet and every attempt to send one, open sockets, and connections that linger. Where
//! an account differs from what it was at the beginning, or cannot be read, or the sink
//! was reached, the network goes with its world.
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags};

use crate::error::{AtStage, WorldError};
use crate::loopback;
use crate::protocol::NetAttempt;
use crate::sink::Sink;

/// What the kernel counts for one network, below `/proc/self/net`: bytes and packets of each
/// interface, what the protocols did and what they did in vain, sockets, and labels that outlive
/// theirs. `netstat` tells more of the packets and connections the others tell of, and reading it
/// takes as long as reading all of them.
const ACCOUNTS: [&str; 6] = [
    "dev",
    "snmp",
    "snmp6",
    "sockstat",
    "sockstat6",
    "ip6_flowlabel",
];
/// Those that are there whatever the kernel was built with.
const NEEDED: [&str; 3] = ["dev", "snmp", "sockstat"];
/// Of accounts of sockets, what is counted for this network and not for the whole machine.
const OWN: [&str; 3] = ["used", "inuse", "tw"];
/// More than any of them takes.
const ACCOUNT_BYTES_MAX: usize = 16 * 1024;

/// A network of its own, which its maker is in, and what answers there.
pub(super) struct Network {
    place: OwnedFd,
    sink: Sink,
    accounts: Vec<Account>,
    is_reached: bool,
    /// Counted among the sockets.
    _asked: OwnedFd,
}

/// One account, as it was when the network was made.
struct Account {
    file: File,
    is_of_sockets: bool,
    first: Vec<u8>,
}

impl Network {
    /// Puts the calling process into a new one.
    pub(super) fn make() -> Result<Self, WorldError> {
        unshare(CloneFlags::CLONE_NEWNET).at("unshare world")?;
        let asked = loopback::up()?;
        let sink = Sink::open()?;
        let mut accounts = Vec::new();
        for name in ACCOUNTS {
            match Account::open(name) {
                Ok(account) => accounts.push(account),
                Err(_) if !NEEDED.contains(&name) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            place: own_namespace("net")?,
            sink,
            accounts,
            is_reached: false,
            _asked: asked,
        })
    }

    /// Where a world's first process finds it.
    pub(super) fn place(&self) -> BorrowedFd<'_> {
        self.place.as_fd()
    }

    /// What answers there.
    pub(super) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// What reached the sink in the world that has ended.
    pub(super) fn take_attempts(&mut self) -> Vec<NetAttempt> {
        let attempts = self.sink.take_attempts();
        self.is_reached |= !attempts.is_empty();
        attempts
    }

    /// Whether nobody has used it, so that another world may have it.
    pub(super) fn is_as_made(&self) -> Result<bool, WorldError> {
        if self.is_reached {
            return Ok(false);
        }
        for account in &self.accounts {
            if account.read()? != account.first {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Account {
    fn open(name: &str) -> Result<Self, WorldError> {
        let path = format!("/proc/self/net/{name}");
        let mut account = Self {
            file: File::open(&path).at(&format!("open {path}"))?,
            is_of_sockets: name.starts_with("sockstat"),
            first: Vec::new(),
        };
        account.first = account.read()?;
        Ok(account)
    }

    fn read(&self) -> Result<Vec<u8>, WorldError> {
        let stage = "read an account of the network";
        let mut bytes = vec![0_u8; ACCOUNT_BYTES_MAX];
        let mut length = 0;
        loop {
            let rest = bytes.get_mut(length..).unwrap_or_default();
            if rest.is_empty() {
                return Err(WorldError::new(stage, "it is longer than any is"));
            }
            match self.file.read_at(rest, length as u64).at(stage)? {
                0 => break,
                more => length += more,
            }
        }
        bytes.truncate(length);
        Ok(if self.is_of_sockets {
            own_sockets(&bytes)
        } else {
            bytes
        })
    }
}

/// What an account of sockets says of this network: of `TCP: inuse 8 orphan 0 tw 0 alloc 9
/// mem 0` the rest is the machine's.
fn own_sockets(account: &[u8]) -> Vec<u8> {
    let mut own = Vec::new();
    for line in account.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ');
        own.extend(words.next().unwrap_or_default());
        while let (Some(name), Some(count)) = (words.next(), words.next()) {
            if OWN.iter().any(|own| own.as_bytes() == name) {
                own.extend([b" ", name, b" ", count].concat());
            }
        }
        own.push(b'\n');
    }
    own
}

/// A namespace of the calling process.
pub(super) fn own_namespace(kind: &str) -> Result<OwnedFd, WorldError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/ns/{kind}"), flags, Mode::empty()).at("open namespace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_sockets_only_this_networks_own_are_told() {
        let account =
            b"sockets: used 12\nTCP: inuse 8 orphan 3 tw 1 alloc 9 mem 4\nFRAG: inuse 0 memory 7\n";
        assert_eq!(
            String::from_utf8(own_sockets(account)).unwrap(),
            "sockets: used 12\nTCP: inuse 8 tw 1\nFRAG: inuse 0\n\n"
        );
    }
}

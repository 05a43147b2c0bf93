//! The second line for files, sockets and signals: Landlock.
//!
//! What for: the private root decides what a command can see; if a mount were
//! wrong or a fault of the kernel let a command around one, this still holds,
//! because it is checked by other code of the kernel at each call. Nothing is
//! writable but the places named, mounts cannot be changed, processes outside
//! cannot be signalled or traced, sockets without a name in the file system
//! end at the sandbox, and without a network capability there is no TCP.
//!
//! The rules are made before the command's process exists and only closed in
//! it. Older kernels know fewer of them: what the kernel offers is used and its
//! version is reported, see [`Fence::close`]. Before version 9 a socket that
//! has a name in the file system is not covered; the private root has none.
//!
//! This module must never widen anything: it only takes away.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};

use crate::sys::watched;

/// The newest version whose rights this table was reviewed for.
const REVIEWED: ABI = ABI::V9;

/// What each version refuses that those before let pass.
const REFUSED_SINCE: [(u8, &str); 6] = [
    (2, "moving files between directories"),
    (3, "cutting files off"),
    (4, "TCP"),
    (5, "orders to devices"),
    (6, "abstract sockets and signals out of the sandbox"),
    (9, "sockets with a name in the file system"),
];

/// What the fence lets pass because the kernel's version is too old for it, in
/// words that follow the version; nothing, if it is not.
#[must_use]
pub fn lacks(version: u8) -> String {
    let lacking: Vec<_> = REFUSED_SINCE
        .into_iter()
        .filter_map(|(since, what)| (version < since).then_some(what))
        .collect();
    if lacking.is_empty() {
        String::new()
    } else {
        format!(", without a second line for {}", lacking.join(", "))
    }
}

/// What a command may do with TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// Neither connect nor listen.
    Refused,
    /// Connect to this port, and not listen.
    Only(u16),
    /// What its network namespace offers.
    AsTheNamespace,
}

/// Rules that are ready and not yet closed around anybody.
#[derive(Debug)]
pub struct Fence {
    rules: RulesetCreated,
    version: u8,
}

/// How much of the fence the kernel could build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The version of Landlock in force, 0 for none.
    pub version: u8,
}

impl Fence {
    /// Makes the rules: everything below `root` can be read and run, everything
    /// below the `writable` places changed, devices below `devices` used.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses a rule.
    pub fn build<'a>(
        root: BorrowedFd<'_>,
        devices: BorrowedFd<'_>,
        writable: impl IntoIterator<Item = BorrowedFd<'a>>,
        tcp: Tcp,
    ) -> io::Result<Self> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(REVIEWED))
            .map_err(io::Error::other)?
            .scope(Scope::from_all(REVIEWED))
            .map_err(io::Error::other)?;
        if tcp != Tcp::AsTheNamespace {
            rules = rules
                .handle_access(AccessNet::from_all(REVIEWED))
                .map_err(io::Error::other)?;
        }
        let rules = rules.create().map_err(io::Error::other)?;
        let read: BitFlags<AccessFs> = AccessFs::from_read(REVIEWED);
        let device = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        let mut rules = allow(rules, root, read)?;
        rules = allow(rules, devices, device)?;
        if let Tcp::Only(port) = tcp {
            rules = rules
                .add_rule(NetPort::new(port, AccessNet::ConnectTcp))
                .map_err(io::Error::other)?;
        }
        for place in writable {
            rules = allow(rules, place, AccessFs::from_all(REVIEWED))?;
        }
        Ok(Self {
            rules,
            version: crate::sys::landlock_version().min(REVIEWED as u8),
        })
    }

    /// The same rules, to be closed around another process.
    ///
    /// # Errors
    /// There is no room for a descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            rules: self.rules.try_clone()?,
            version: self.version,
        })
    }

    /// The version of Landlock that will be in force, 0 for none.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// Closes the fence around the calling process and its descendants, for good.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses, for instance because too many
    /// fences stand inside each other.
    pub fn close(self) -> io::Result<Closed> {
        let rules: Option<OwnedFd> = self.rules.into();
        let Some(rules) = rules else {
            // What was promised in the report must hold.
            return if self.version == 0 {
                Ok(Closed { version: 0 })
            } else {
                Err(io::Error::other("no rules were made"))
            };
        };
        rustix::thread::set_no_new_privs(true)?;
        // The kernel takes all the rules or refuses.
        watched::restrict_self_unheard(rules.as_fd())?;
        Ok(Closed {
            version: self.version,
        })
    }
}

fn allow(
    rules: RulesetCreated,
    place: BorrowedFd<'_>,
    access: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    rules
        .add_rule(PathBeneath::new(place, access))
        .map_err(io::Error::other)
}

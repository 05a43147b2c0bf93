//! What of the network one command has, made from the permits for it.

use hermitcrab_core::Permit;
use hermitcrab_core::authority::{Host, Object, Verb};
use hermitcrab_core::outcome::{Denial, DenialCode};

use super::allow::{AllowList, is_loopback};
use super::notice::Notice;
use crate::digest::sha256;
use crate::wire::Writer;

/// Whose loopback it is: equal for commands that may share one, and for no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Common(pub [u8; 32]);

/// The network of one command. Made from permits; without any there is none.
#[derive(Debug, Default)]
pub struct Network {
    loopback: bool,
    /// With whom the loopback is shared; nobody, if it is 0.
    common: u64,
    allow: AllowList,
    notice: Notice,
}

impl Network {
    /// No network at all: not even the command's own loopback.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Spends the permits: those for listening on the loopback give the command
    /// a loopback of its own, those for connecting let it reach their peers and
    /// nothing else.
    ///
    /// # Errors
    /// One of them is for something else.
    pub fn from_permits<'a>(permits: impl IntoIterator<Item = Permit<'a>>) -> Result<Self, Denial> {
        let mut loopback = false;
        let mut connecting = Vec::new();
        for permit in permits {
            match (permit.verb(), permit.object()) {
                (Verb::NetListen, Object::Host(host)) if is_loopback(&host.name) => {
                    loopback = true;
                    let _spent = permit.spend();
                }
                (Verb::NetConnect, Object::Host(_)) => connecting.push(permit),
                _ => {
                    return Err(Denial::new(
                        DenialCode::PermitMismatch,
                        format_args!("{permit:?} spent on a command's network"),
                    ));
                }
            }
        }
        Ok(Self {
            loopback,
            common: 0,
            allow: AllowList::from_permits(connecting)?,
            notice: Notice::default(),
        })
    }

    /// Shares its loopback with the commands of the same sandbox maker that name the same
    /// number, which is not 0, and reach the same peers: what one of them listens at the
    /// others reach.
    #[must_use]
    pub fn in_common(mut self, number: u64) -> Self {
        self.common = number;
        self
    }

    /// Lets no name that is permitted lead to these addresses ([`Verdict::Ruled`]).
    ///
    /// [`Verdict::Ruled`]: super::Verdict::Ruled
    #[must_use]
    pub fn but(mut self, addresses: Vec<Host>) -> Self {
        self.allow = self.allow.but(addresses);
        self
    }

    /// Has somebody know before the first peer is looked up or connected to. While `know` says
    /// no, none is reached ([`Verdict::Unnoticed`]). It is called on a thread of the proxy's.
    ///
    /// [`Verdict::Unnoticed`]: super::Verdict::Unnoticed
    #[must_use]
    pub fn noticed(mut self, know: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.notice = Notice::to(know);
        self
    }

    /// Who has to know.
    pub(crate) fn notice(&self) -> &Notice {
        &self.notice
    }

    /// What those have in common with whom it shares its loopback; nothing if that is its own.
    pub(crate) fn common(&self) -> Option<Common> {
        if !self.loopback || self.common == 0 {
            return None;
        }
        let mut peers: Vec<String> = self.allow.peers().map(ToString::to_string).collect();
        peers.sort_unstable();
        peers.dedup();
        let mut all = Writer::default();
        all.u64(self.common);
        all.list(&peers, |w, peer| w.bytes(peer.as_bytes()));
        Some(Common(*sha256(&all.finish()).as_bytes()))
    }

    /// Whether the command can make sockets of the internet at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        !self.loopback && !self.has_peers()
    }

    /// Whether it may listen and connect on a loopback.
    #[must_use]
    pub fn has_loopback(&self) -> bool {
        self.loopback
    }

    /// Whether there are peers outside that it may reach.
    #[must_use]
    pub fn has_peers(&self) -> bool {
        !self.allow.is_empty()
    }

    /// The peers it may reach.
    #[must_use]
    pub fn allow(&self) -> &AllowList {
        &self.allow
    }
}

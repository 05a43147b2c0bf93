//! The network capability of a command.
//!
//! A command's network namespace holds nothing but a loopback. With a
//! list of peers, one socket that listens in there is handed out to the agent,
//! which answers it as a small proxy: the command asks for a name and a port,
//! and the agent, outside, looks the name up and connects, if the list says so.
//! The command never resolves a name and never sends a packet to the machine.
//!
//! A [`Network`] is made from permits: none, a loopback (of the command's own, or one that
//! it shares with those others of its agent that reach the same peers), a list of peers, or
//! both. Who shares a loopback can do what the others there can: each proxy serves all of
//! them, and so does whatever one of them listens with. So nobody shares one with a command
//! that reaches less, more or anything else.
//!
//! Doubt means deny: a name that is not plainly a name, an address nobody
//! listed, a name that leads to a private address, a method the proxy does not
//! know. Each attempt is in the [`Attempt`]s that are returned.
//!
//! What it does not protect against: a listed peer may pass on what it is sent,
//! and a peer that serves several names on one address serves all of them.

mod address;
mod allow;
mod http;
mod loopback;
mod network;
mod proxy;
mod socks;

use std::net::Ipv4Addr;

pub use self::address::is_public;
pub use self::allow::{AllowList, Attempt, Peer, Target, Verdict, is_loopback};
pub use self::loopback::{listen, listen_beside, raise_loopback};
pub(crate) use self::network::Common;
pub use self::network::Network;
pub use self::proxy::{Proxy, Resolve, SystemResolver};

/// The port of the proxy, on a loopback of the command's own at 127.0.0.1.
pub const PROXY_PORT: u16 = 3128;

/// What a command's variables say of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proxied {
    /// Nothing: there is none.
    #[default]
    Nothing,
    /// All goes through it but what is on the command's loopback.
    Outside,
    /// The machine's loopback is granted, so that goes through it as well.
    Everything,
}

impl Proxied {
    pub(crate) const ALL: [Self; 3] = [Self::Nothing, Self::Outside, Self::Everything];

    /// For what reaches these peers.
    pub(crate) fn by(allow: &AllowList) -> Self {
        if allow.is_empty() {
            Self::Nothing
        } else if allow.lists_loopback() {
            Self::Everything
        } else {
            Self::Outside
        }
    }

    /// The variables that point programs at the proxy at this address.
    pub(crate) fn variables(self, at: Ipv4Addr) -> Vec<(Vec<u8>, Vec<u8>)> {
        let http = format!("http://{at}:{PROXY_PORT}");
        let socks = format!("socks5h://{at}:{PROXY_PORT}");
        let mut variables: Vec<(&str, &str)> = Vec::new();
        if self != Self::Nothing {
            for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
                variables.push((name, &http));
            }
            for name in ["all_proxy", "ALL_PROXY"] {
                variables.push((name, &socks));
            }
        }
        if self == Self::Outside {
            for name in ["no_proxy", "NO_PROXY"] {
                variables.push((name, "localhost,127.0.0.1,::1"));
            }
        }
        let bytes = |text: &str| text.as_bytes().to_vec();
        let variables = variables.into_iter();
        variables
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect()
    }
}

/// Whether a variable is one that points at a command's own way to its peers. That of the
/// next command may be elsewhere, or not be there.
#[must_use]
pub fn is_way_out(name: &str, value: &str) -> bool {
    let place = value.split_once("://").map_or(value, |(_, place)| place);
    let address = place.split_once(':').map(|(address, _)| address);
    let at = address
        .and_then(|address| address.parse().ok())
        .filter(|at| loopback::may_be_a_proxys(*at));
    let is =
        |(known, told): (Vec<u8>, Vec<u8>)| known == name.as_bytes() && told == value.as_bytes();
    let told = Proxied::Outside.variables(at.unwrap_or(Ipv4Addr::LOCALHOST));
    told.into_iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_way_out_are_told_from_those_somebody_set() {
        for (name, value, is) in [
            ("http_proxy", "http://127.0.0.1:3128", true),
            ("HTTPS_PROXY", "http://127.31.28.254:3128", true),
            ("ALL_PROXY", "socks5h://127.31.28.1:3128", true),
            ("no_proxy", "localhost,127.0.0.1,::1", true),
            ("no_proxy", "localhost", false),
            ("http_proxy", "http://127.31.29.1:3128", false),
            ("http_proxy", "http://127.0.0.1:3129", false),
            ("http_proxy", "http://10.0.0.1:3128", false),
            ("http_proxy", "", false),
            ("MY_PROXY", "http://127.0.0.1:3128", false),
        ] {
            assert_eq!(is_way_out(name, value), is, "{name}={value}");
        }
    }

    #[test]
    fn what_variables_say_of_a_proxy_is_what_there_is() {
        let names = |proxied: Proxied| {
            let told = proxied.variables(Ipv4Addr::LOCALHOST).into_iter();
            told.map(|(name, _)| String::from_utf8(name).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Proxied::Nothing), Vec::<String>::new());
        assert_eq!(names(Proxied::Everything).len(), 6);
        assert_eq!(names(Proxied::Outside).len(), 8);
        assert!(!names(Proxied::Everything).contains(&"no_proxy".to_owned()));
    }
}

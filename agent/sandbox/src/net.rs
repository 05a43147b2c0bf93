//! The network capability of a command.
//!
//! A command's network namespace holds nothing but a loopback. With a
//! list of peers, one socket that listens in there is handed out to the agent,
//! which answers it as a small proxy: the command asks for a name and a port,
//! and the agent, outside, looks the name up and connects, if the list says so.
//! The command never resolves a name and never sends a packet to the machine.
//!
//! A [`Network`] is made from permits: none, a loopback (of the command's own, or one that
//! it shares with others of its agent), a list of peers, or both.
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

pub use self::address::is_public;
pub use self::allow::{AllowList, Attempt, Peer, Target, Verdict, is_loopback};
pub use self::loopback::{listen, raise_loopback};
pub use self::network::Network;
pub use self::proxy::{Proxy, Resolve, SystemResolver};

/// The port of the proxy, in the command's own network namespace.
pub const PROXY_PORT: u16 = 3128;

/// The variables that point programs at the proxy.
#[must_use]
pub fn proxy_environment(allow: &AllowList) -> Vec<(Vec<u8>, Vec<u8>)> {
    let http = format!("http://127.0.0.1:{PROXY_PORT}");
    let socks = format!("socks5h://127.0.0.1:{PROXY_PORT}");
    let mut variables: Vec<(&str, &str)> = Vec::new();
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
        variables.push((name, &http));
    }
    for name in ["all_proxy", "ALL_PROXY"] {
        variables.push((name, &socks));
    }
    // The command's own loopback needs no proxy; the machine's, where that is
    // granted, is reached by it alone.
    if !allow.lists_loopback() {
        for name in ["no_proxy", "NO_PROXY"] {
            variables.push((name, "localhost,127.0.0.1,::1"));
        }
    }
    variables
        .into_iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect()
}

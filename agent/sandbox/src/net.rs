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
mod notice;
mod proxy;
mod socks;

use std::net::Ipv4Addr;

pub use self::address::is_public;
pub use self::allow::{AllowList, Attempt, Peer, Target, Verdict, is_loopback};
pub use self::loopback::{listen, listen_beside, raise_loopback};
pub(crate) use self::network::Common;
pub use self::network::Network;
pub(crate) use self::notice::Notice;
pub use self::proxy::{Proxy, Resolve, SystemResolver};

/// The port of the proxy, on a loopback of the command's own at 127.0.0.1.
pub const PROXY_PORT: u16 = 3128;

/// Options of programs of Java that fetch things, in variables that are read without a word:
/// the one that every such program reads (`JAVA_TOOL_OPTIONS`) is told of at each start.
const OPTIONS_OF_JAVA: [&str; 2] = ["MAVEN_OPTS", "GRADLE_OPTS"];

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

    /// What has a program of Java go through the proxy: such programs look at no variable of
    /// the others. What is on the command's loopback they reach themselves, unless told not to.
    fn options_of_java(self, at: Ipv4Addr) -> String {
        let of =
            |scheme: &str| format!("-D{scheme}.proxyHost={at} -D{scheme}.proxyPort={PROXY_PORT}");
        let mut options = format!("{} {}", of("http"), of("https"));
        if self == Self::Everything {
            options.push_str(" -Dhttp.nonProxyHosts=");
        }
        // Newer releases of Maven look at these only where that is asked for.
        options + " -Daether.connector.http.useSystemProperties=true"
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
        let of_java = self.options_of_java(at);
        if self != Self::Nothing {
            for name in OPTIONS_OF_JAVA {
                variables.push((name, &of_java));
            }
        }
        let bytes = |text: &str| text.as_bytes().to_vec();
        let variables = variables.into_iter();
        variables
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect()
    }
}

/// Whether a variable holds options, to which others are added.
#[must_use]
pub fn is_of_options(name: &[u8]) -> bool {
    OPTIONS_OF_JAVA.iter().any(|known| known.as_bytes() == name)
}

/// What of such options points at a command's own way to its peers.
#[must_use]
pub fn way_out_among(options: &str) -> Option<&str> {
    let begins = "-Dhttp.proxyHost=";
    let place = options.find(begins)?;
    let options = options.get(place..)?;
    let at = options.get(begins.len()..)?.split(' ').next()?;
    let at: Ipv4Addr = at.parse().ok()?;
    if at != Ipv4Addr::LOCALHOST && !loopback::may_be_a_proxys(at) {
        return None;
    }
    let mut told = Proxied::ALL.iter().map(|told| told.options_of_java(at));
    let told = told.find(|told| options.starts_with(told.as_str()))?;
    options.get(..told.len())
}

/// Whether a variable is one that points at a command's own way to its peers, and holds nothing
/// else. That of the next command may be elsewhere, or not be there.
#[must_use]
pub fn is_way_out(name: &str, value: &str) -> bool {
    if is_of_options(name.as_bytes()) {
        return way_out_among(value) == Some(value);
    }
    let place = value.split_once("://").map_or(value, |(_, place)| place);
    let address = place.split_once(':').map(|(address, _)| address);
    let at = address
        .and_then(|address| address.parse().ok())
        .filter(|at| loopback::may_be_a_proxys(*at))
        .unwrap_or(Ipv4Addr::LOCALHOST);
    let is =
        |(known, told): (Vec<u8>, Vec<u8>)| known == name.as_bytes() && told == value.as_bytes();
    let all = Proxied::ALL.into_iter();
    all.flat_map(|proxied| proxied.variables(at)).any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &str = "-Dhttp.proxyHost=127.31.28.2 -Dhttp.proxyPort=3128 \
                           -Dhttps.proxyHost=127.31.28.2 -Dhttps.proxyPort=3128 \
                           -Daether.connector.http.useSystemProperties=true";

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
            ("MAVEN_OPTS", OPTIONS, true),
            (
                "MAVEN_OPTS",
                format!("-Dmaven.repo.local=/tmp/x {OPTIONS}").as_str(),
                false,
            ),
            ("MAVEN_OPTS", format!("{OPTIONS} -Xmx1g").as_str(), false),
            ("MAVEN_OPTS", "-Xmx1g", false),
            ("http_proxy", format!("x {OPTIONS}").as_str(), false),
        ] {
            assert_eq!(is_way_out(name, value), is, "{name}={value}");
        }
    }

    #[test]
    fn a_way_out_is_found_among_options_of_somebodys() {
        let among = |options: String| way_out_among(&options).map(str::to_owned);
        for options in [
            OPTIONS.to_owned(),
            format!("-Xmx1g {OPTIONS}"),
            format!("{OPTIONS} -Xmx1g"),
        ] {
            assert_eq!(among(options).as_deref(), Some(OPTIONS));
        }
        for options in [
            "-Xmx1g".to_owned(),
            OPTIONS.replace("127.31.28.2", "10.0.0.1"),
            OPTIONS.replace("3128", "3129"),
            OPTIONS.replace("true", "false"),
        ] {
            assert_eq!(among(options.clone()), None, "{options}");
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
        assert_eq!(names(Proxied::Everything).len(), 8);
        assert_eq!(names(Proxied::Outside).len(), 10);
        assert!(!names(Proxied::Everything).contains(&"no_proxy".to_owned()));
    }
}

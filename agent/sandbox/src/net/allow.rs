//! Which peers a command may reach, and what it tried.

use std::fmt;
use std::net::IpAddr;

use hermitcrab_core::Permit;
use hermitcrab_core::authority::{Host, HostPattern, Name, Object, Port, Verb};
use hermitcrab_core::outcome::{Denial, DenialCode};

/// A name or address, and a port, as a command asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What is to be reached.
    pub host: Peer,
    /// On which port.
    pub port: u16,
}

/// What is to be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A name, in lower case, without a final dot.
    Named(Name),
    /// An address, written in the usual form.
    Address(IpAddr),
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was connected.
    Connected,
    /// It is not on the list.
    NotListed,
    /// The name leads to an address of the machine or its neighbourhood.
    NotPublic,
    /// It is neither a name nor an address, or the request was not understood.
    Unreadable,
    /// The peer did not answer.
    Unreachable,
    /// Whoever has to know of it before could not be told.
    Unnoticed,
    /// The name leads to an address that a rule is about.
    Ruled,
}

/// One attempt of a command to reach something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What it asked for, as far as it could be read.
    pub target: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// The peers a command may reach. An empty list lets it reach nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    hosts: Vec<Host>,
    /// Addresses to which no name leads, whatever is listed.
    excluded: Vec<Host>,
}

impl AllowList {
    /// Spends the permits: the list holds exactly what they permit.
    ///
    /// # Errors
    /// One of them is not for connecting; none is spent in part.
    pub fn from_permits<'a>(permits: impl IntoIterator<Item = Permit<'a>>) -> Result<Self, Denial> {
        let mut hosts = Vec::new();
        for permit in permits {
            match (permit.verb(), permit.object()) {
                (Verb::NetConnect, Object::Host(host)) => hosts.push(host.clone()),
                _ => {
                    return Err(Denial::new(
                        DenialCode::PermitMismatch,
                        format_args!("{permit:?} spent on a connection"),
                    ));
                }
            }
            let _spent = permit.spend();
        }
        Ok(Self {
            hosts,
            excluded: Vec::new(),
        })
    }

    /// The same, and to none of these addresses by a name.
    pub(super) fn but(mut self, excluded: Vec<Host>) -> Self {
        self.excluded = excluded;
        self
    }

    /// Whether a name may not lead there.
    pub(super) fn excludes(&self, address: IpAddr, port: u16) -> bool {
        let address = Target {
            host: Peer::Address(address.to_canonical()),
            port,
        };
        self.excluded.iter().any(|host| is_meant(host, &address))
    }

    /// What is listed.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    /// Whether nothing is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Whether an address of the machine's own loopback is listed.
    pub(super) fn lists_loopback(&self) -> bool {
        self.hosts.iter().any(|host| is_loopback(&host.name))
    }

    /// Whether `target` itself is listed. A listed name says nothing about the
    /// address it leads to, and no name stands for an address.
    pub(super) fn lists(&self, target: &Target) -> bool {
        self.hosts.iter().any(|host| is_meant(host, target))
    }
}

/// Whether a listed peer is this one.
fn is_meant(host: &Host, target: &Target) -> bool {
    let port = match host.port {
        Port::Any => true,
        Port::Only(port) => port == target.port,
    };
    port && match (&host.name, &target.host) {
        (HostPattern::Exact(listed), Peer::Named(name)) => listed == name,
        (HostPattern::Subdomains(listed), Peer::Named(name)) => name
            .as_str()
            .strip_suffix(listed.as_str())
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        (HostPattern::Exact(listed), Peer::Address(address)) => {
            listed.as_str().parse() == Ok(*address)
        }
        (HostPattern::Subdomains(_), Peer::Address(_)) => false,
    }
}

impl Target {
    /// Reads `host` as it stands in a request.
    ///
    /// Refused is everything a resolver might read differently from the list:
    /// other spellings of addresses, empty labels, characters names do not have.
    #[must_use]
    pub fn parse(host: &str, port: u16) -> Option<Self> {
        if port == 0 {
            return None;
        }
        let bare = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(inner) = bare {
            let address = inner.parse().ok().map(IpAddr::V6)?;
            return Some(Self {
                host: Peer::Address(address),
                port,
            });
        }
        if let Ok(address) = host.parse() {
            return Some(Self {
                host: Peer::Address(address),
                port,
            });
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let plain = name.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
        // `127.1`, `0x7f.1`, `2130706433`: numbers to a resolver, not names.
        let last = name.rsplit('.').next().unwrap_or_default();
        let numeric = last.bytes().all(|byte| byte.is_ascii_digit())
            || last
                .strip_prefix("0x")
                .or_else(|| last.strip_prefix("0X"))
                .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !plain || numeric || name.len() > 253 {
            return None;
        }
        Some(Self {
            host: Peer::Named(Name::parse_caseless(name).ok()?),
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Peer::Named(name) => write!(f, "{name}:{}", self.port),
            Peer::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Peer::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// Whether this names the loopback, in one of its usual spellings.
#[must_use]
pub fn is_loopback(name: &HostPattern) -> bool {
    match name {
        HostPattern::Exact(name) => {
            name.as_str() == "localhost"
                || Target::parse(name.as_str(), 1).is_some_and(|target| match target.host {
                    Peer::Address(address) => address.is_loopback(),
                    Peer::Named(_) => false,
                })
        }
        HostPattern::Subdomains(_) => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::net) fn list(entries: &[(&str, Option<u16>)]) -> AllowList {
        let hosts = entries
            .iter()
            .map(|(name, port)| Host {
                name: match name.strip_prefix("*.") {
                    Some(below) => HostPattern::Subdomains(Name::parse(below).unwrap()),
                    None => HostPattern::Exact(Name::parse(name).unwrap()),
                },
                port: port.map_or(Port::Any, Port::Only),
            })
            .collect();
        AllowList {
            hosts,
            ..AllowList::default()
        }
    }

    #[test]
    fn an_address_is_excluded_on_its_ports_by_each_of_its_spellings() {
        let excluded = list(&[
            ("192.0.2.1", None),
            ("2001:db8::1", Some(443)),
            ("a.test", None),
        ]);
        let all = AllowList::default().but(excluded.hosts);
        let excludes = |address: &str, port| all.excludes(address.parse().unwrap(), port);
        assert!(excludes("192.0.2.1", 80) && excludes("::ffff:192.0.2.1", 80));
        assert!(excludes("2001:db8::1", 443) && !excludes("2001:db8::1", 80));
        assert!(!excludes("192.0.2.2", 80));
    }

    fn lists(list: &AllowList, host: &str, port: u16) -> bool {
        Target::parse(host, port).is_some_and(|target| list.lists(&target))
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        let empty = AllowList::default();
        for host in ["example.com", "localhost", "127.0.0.1", "8.8.8.8"] {
            assert!(!lists(&empty, host, 443), "{host}");
        }
    }

    #[test]
    fn names_match_whole_and_without_regard_to_case_or_a_final_dot() {
        let listed = list(&[("example.com", Some(443))]);
        for host in ["example.com", "EXAMPLE.com", "example.com."] {
            assert!(lists(&listed, host, 443), "{host}");
        }
        for (host, port) in [
            ("example.com", 80),
            ("www.example.com", 443),
            ("badexample.com", 443),
            ("example.com.evil.test", 443),
            ("example.co", 443),
            ("example.com..", 443),
            ("example.com", 0),
        ] {
            assert!(!lists(&listed, host, port), "{host}:{port}");
        }
    }

    #[test]
    fn a_wildcard_covers_what_is_below_and_not_the_name_itself() {
        let listed = list(&[("*.example.com", None)]);
        assert!(lists(&listed, "a.example.com", 1));
        assert!(lists(&listed, "a.b.example.com", 65_535));
        for host in [
            "example.com",
            ".example.com",
            "aexample.com",
            "evilexample.com",
            "evil-example.com",
            "a.example.com.evil",
        ] {
            assert!(!lists(&listed, host, 443), "{host}");
        }
    }

    #[test]
    fn an_address_is_only_reached_when_it_is_listed_itself() {
        let listed = list(&[("127.0.0.1", Some(8080)), ("::1", None), ("*.0.0.1", None)]);
        assert!(lists(&listed, "127.0.0.1", 8080));
        assert!(lists(&listed, "[::1]", 443));
        assert!(lists(&listed, "::1", 443));
        for host in ["127.0.0.2", "::ffff:127.0.0.1", "127.0.0.0.1"] {
            assert!(!lists(&listed, host, 8080), "{host}");
        }
    }

    #[test]
    fn other_spellings_of_addresses_are_not_names() {
        for host in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "a.127",
            "1.2.3",
            "",
            ".",
            "a..b",
            "-a.b",
            "a b",
            "a\0b",
            "a@b",
            "a/b",
            "ex\u{e4}mple.com",
            "[::1",
            "[a]",
            "[127.0.0.1]",
            "fe80::1%lo",
        ] {
            assert_eq!(Target::parse(host, 443), None, "{host:?}");
        }
    }
}

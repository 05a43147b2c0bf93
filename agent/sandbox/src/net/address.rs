//! Which addresses belong to the internet at large.
//!
//! A name on the list must not lead into the machine or its neighbourhood,
//! whoever answers for that name. Addresses that carry another one inside
//! (mapped, translated, tunnelled) are judged by what they carry.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Whether a listed name may lead here. Everything not known to be public is not.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether this machine has the address: whoever reaches it from here comes from inside,
/// past what keeps others out. Nothing is sent; an address no way leads to is not its own.
#[must_use]
pub fn is_own(address: IpAddr) -> bool {
    // The kernel speaks to an own address from that same address (ip(7)).
    let whence = || {
        let any: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, DISCARD))?;
        socket.local_addr()
    };
    whence().is_ok_and(|whence| whence.ip() == address)
}

/// A port like any other, and never spoken to.
const DISCARD: u16 = 9;

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a == 10
        || a == 127
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        // Protocol assignments, documentation, 6to4 relays, measurements.
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let [p0, p1, p2, p3, p4, p5, p6, p7] = parts;
    let carried = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    if [p0, p1, p2, p3, p4] == [0; 5] && (p5 == 0xffff || p5 == 0) {
        // Mapped, or the old compatible form; `::` and `::1` fall under 0/8.
        return p5 == 0xffff && carried(p6, p7);
    }
    if [p0, p1, p2, p3, p4, p5] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return carried(p6, p7);
    }
    if p0 == 0x2002 {
        return carried(p1, p2);
    }
    // Only what is handed out as global unicast, without documentation,
    // benchmarks, tunnels that carry a hidden address, and identifiers.
    (p0 & 0xe000) == 0x2000
        && !(p0 == 0x2001 && p1 < 0x200)
        && !(p0 == 0x2001 && p1 == 0xdb8)
        && !(p0 == 0x3fff && p1 < 0x1000)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    #[test]
    fn an_address_of_this_machine_is_its_own_and_no_other_is() {
        let is_own = |text: &str| super::is_own(text.parse::<IpAddr>().unwrap());
        assert!(is_own("127.0.0.1"));
        for other in ["8.8.8.8", "192.0.2.1", "2001:4860:4860::8888"] {
            assert!(!is_own(other), "{other}");
        }
    }

    use super::*;

    #[test]
    fn addresses_of_the_machine_and_its_neighbourhood_are_not_public() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "3fff:1::",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "198.17.0.1",
            "223.255.255.1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:4860:4860::8888",
            "2002:808:808::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}

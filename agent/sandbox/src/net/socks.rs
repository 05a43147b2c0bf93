//! The SOCKS 5 side of the proxy (RFC 1928): connect, without authentication.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::allow::Target;

pub(super) const VERSION: u8 = 5;
const CONNECT: u8 = 1;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Connected = 0,
    NotAllowed = 2,
    Unreachable = 4,
    NotSupported = 7,
}

/// Speaks the greeting and reads one request; `None`: not understood.
pub(super) fn read(stream: &mut (impl Read + Write)) -> io::Result<Option<Target>> {
    let [version, methods] = bytes(stream)?;
    let mut offered = vec![0; usize::from(methods)];
    stream.read_exact(&mut offered)?;
    if version != VERSION || !offered.contains(&0) {
        stream.write_all(&[VERSION, 0xff])?;
        return Ok(None);
    }
    stream.write_all(&[VERSION, 0])?;
    let [version, command, _reserved, kind] = bytes(stream)?;
    let host = match kind {
        1 => Some(Ipv4Addr::from(bytes::<4>(stream)?).to_string()),
        3 => {
            let [length] = bytes(stream)?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name)?;
            String::from_utf8(name).ok()
        }
        4 => Some(format!("[{}]", Ipv6Addr::from(bytes::<16>(stream)?))),
        _ => return Ok(None),
    };
    let port = u16::from_be_bytes(bytes(stream)?);
    if version != VERSION || command != CONNECT {
        return Ok(None);
    }
    Ok(host.and_then(|host| Target::parse(&host, port)))
}

/// Answers a request. The bound address is of no use to a client and all zero.
pub(super) fn answer(stream: &mut impl Write, reply: Reply) -> io::Result<()> {
    stream.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0])
}

fn bytes<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Talk<'a> {
        said: &'a [u8],
        heard: Vec<u8>,
    }

    impl Read for Talk<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.said.read(buffer)
        }
    }

    impl Write for Talk<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn target(said: &[u8]) -> Option<String> {
        let mut talk = Talk {
            said,
            heard: Vec::new(),
        };
        read(&mut talk)
            .ok()
            .flatten()
            .map(|target| target.to_string())
    }

    #[test]
    fn names_and_addresses_are_read() {
        let name = b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb";
        assert_eq!(target(name).as_deref(), Some("example.com:443"));
        let v4 = b"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50";
        assert_eq!(target(v4).as_deref(), Some("127.0.0.1:80"));
    }

    #[test]
    fn other_methods_commands_and_broken_requests_are_refused() {
        for said in [
            &b"\x04\x01\x00"[..],
            b"\x05\x01\x02",
            // Bind, and an association for datagrams.
            b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50",
            b"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50",
            b"\x05\x01\x00\x05\x01\x00\x03\x01/\x00\x50",
            b"\x05\x01\x00\x05\x01\x00\x09",
            b"\x05\x01",
        ] {
            assert_eq!(target(said), None, "{said:?}");
        }
    }
}

//! The command's own network: its loopback, and the socket handed out of it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use super::PROXY_PORT;

/// How many connections wait to be taken.
const BACKLOG: i32 = 64;
/// Where on a loopback that is shared the proxies listen.
const NETWORK: [u8; 3] = [127, 31, 28];
/// How many of them there can be.
const ADDRESSES_MAX: u8 = 254;

/// Switches on the loopback of the network namespace the caller is in, which
/// needs a capability there: the sandbox's first process has it for a moment.
pub fn raise_loopback() -> io::Result<()> {
    /// See rtnetlink(7): change the link, and say whether it worked.
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 0x1 | 0x4;
    /// The loopback is the first interface of every namespace.
    const LOOPBACK: i32 = 1;
    const UP: u32 = 1;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // Number 0, which is the routing protocol.
        None,
    )?;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&0_u32.to_ne_bytes());
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&LOOPBACK.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // A header of 16 bytes, then the error number, negative, 0 for none.
    let error = answer
        .get(..length)
        .and_then(|answer| answer.get(16..20))
        .and_then(|bytes| bytes.first_chunk::<4>())
        .map(|bytes| i32::from_ne_bytes(*bytes));
    match error {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        None => Err(io::Error::other("the kernel's answer is too short")),
    }
}

/// A socket that listens at 127.0.0.1 in the network namespace the caller is in, wherever
/// it is handed to.
pub fn listen() -> io::Result<(OwnedFd, Ipv4Addr)> {
    listen_at(Ipv4Addr::LOCALHOST)
}

/// The same where others listen as well, at an address of the loopback that is free: a port
/// of 127.0.0.1 may be somebody's who serves there.
pub fn listen_beside() -> io::Result<(OwnedFd, Ipv4Addr)> {
    let [first, second, third] = NETWORK;
    let mut addresses = (1..=ADDRESSES_MAX).map(|last| Ipv4Addr::new(first, second, third, last));
    let taken = || io::Error::from(io::ErrorKind::AddrInUse);
    addresses
        .find_map(|address| match listen_at(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            listening => Some(listening),
        })
        .unwrap_or_else(|| Err(taken()))
}

/// Whether a proxy listens there, if there is one.
pub(super) fn may_be_a_proxys(address: Ipv4Addr) -> bool {
    address == Ipv4Addr::LOCALHOST || address.octets().starts_with(&NETWORK)
}

fn listen_at(address: Ipv4Addr) -> io::Result<(OwnedFd, Ipv4Addr)> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::bind(&socket, &SocketAddr::from((address, PROXY_PORT)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok((socket, address))
}

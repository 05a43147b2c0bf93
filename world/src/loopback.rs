//! Switches the loopback interface of a fresh network namespace on.
//!
//! Done with one netlink message, because the classic ioctl would need
//! unsafe code.
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::{AtStage, WorldError};

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
/// In a new namespace the loopback interface is always the first.
const LOOPBACK_INDEX: u32 = 1;

/// Brings `lo` up. The socket that was asked is returned: the kernel counts it a while
/// longer once it is closed, and who looks at that count keeps it.
pub(crate) fn up() -> Result<OwnedFd, WorldError> {
    let stage = "bring loopback up";
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )
    .at(stage)?;
    sendto(
        socket.as_raw_fd(),
        &message(),
        &NetlinkAddr::new(0, 0),
        MsgFlags::empty(),
    )
    .at(stage)?;
    let mut answer = [0_u8; 256];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).at(stage)?;
    // An acknowledgement is a header of 16 bytes and a negative errno, 0 for success.
    let code = answer
        .get(16..20)
        .filter(|_| length >= 20)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(socket),
        Some(code) => Err(WorldError::new(
            stage,
            std::io::Error::from_raw_os_error(-code),
        )),
        None => Err(WorldError::new(stage, "netlink answer is cut")),
    }
}

/// `nlmsghdr` and `ifinfomsg` asking for the up flag.
fn message() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    bytes.extend(32_u32.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([0_u8, 0]);
    bytes.extend(0_u16.to_ne_bytes());
    bytes.extend(LOOPBACK_INDEX.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes
}

//! Messages, with descriptors attached, over a socket that keeps their bounds.
//!
//! One message is one datagram, so several processes can hold the same end and
//! none ever sees half of what was meant for another. What does not fit into a
//! datagram travels in a sealed memory file beside it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, socketpair,
};

use crate::wire::FRAME_BYTES_MAX;

/// The most descriptors one message carries, its memory file included.
pub(crate) const DESCRIPTORS_MAX: usize = 252;
/// Longer messages go into a memory file. The buffer of a read lies on the
/// stack, and a process that was just forked pays for each page it touches.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// The first byte of a message: where the rest of it is.
const INLINE: u8 = 0;
const IN_MEMORY_FILE: u8 = 1;

/// One end of a conversation.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
}

/// What a read brought.
pub(crate) enum Received {
    /// A whole message, with its descriptors.
    Frame(Vec<u8>, Vec<OwnedFd>),
    /// Nothing is there yet.
    Nothing,
    /// Every holder of the other end is gone.
    Closed,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Both ends of a new conversation.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (first, second) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self::new(first), Self::new(second)))
    }

    pub(crate) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Has a send fail when there was no room for so long.
    pub(crate) fn give_up_sending_after(&self, patience: Duration) -> io::Result<()> {
        let timeout = rustix::net::sockopt::Timeout::Send;
        rustix::net::sockopt::set_socket_timeout(&self.socket, timeout, Some(patience))
            .map_err(Into::into)
    }

    /// Sends one message, waiting for room if there is none.
    pub(crate) fn send(&self, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if frame.len() > FRAME_BYTES_MAX || descriptors.len() >= DESCRIPTORS_MAX {
            return Err(io::Error::other("the message to the spawner is too long"));
        }
        if frame.len() <= INLINE_BYTES_MAX {
            return self.send_parts(&[&[INLINE], frame], descriptors);
        }
        let memory = memory_file(frame)?;
        let length = u64::try_from(frame.len()).unwrap_or(u64::MAX);
        let mut all = vec![memory.as_fd()];
        all.extend_from_slice(descriptors);
        self.send_parts(&[&[IN_MEMORY_FILE], &length.to_le_bytes()], &all)
    }

    fn send_parts(&self, parts: &[&[u8]; 2], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space =
            [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(io::Error::other("too many descriptors in one message"));
        }
        let parts = parts.map(IoSlice::new);
        retry(|| rustix::net::sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    /// Waits for one message.
    pub(crate) fn receive(&self) -> io::Result<Received> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC)
    }

    /// Takes one message if it is there already.
    pub(crate) fn receive_now(&self) -> io::Result<Received> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
    }

    /// Whether one message at least is there, however the other end fares; it is not taken.
    pub(crate) fn holds_one(&self) -> bool {
        let look = || {
            let mut first = [0_u8; 1];
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            retry(|| rustix::net::recv(&self.socket, &mut first[..], flags).map(|(got, _)| got))
        };
        // Said once, as below.
        let found = match look() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => look(),
            found => found,
        };
        found.is_ok_and(|bytes| bytes > 0)
    }

    fn receive_with(&self, flags: RecvFlags) -> io::Result<Received> {
        let mut buffer = [0_u8; INLINE_BYTES_MAX + 1];
        let mut space =
            [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut receive = || {
            retry(|| {
                rustix::net::recvmsg(
                    &self.socket,
                    &mut [IoSliceMut::new(&mut buffer)],
                    &mut ancillary,
                    flags,
                )
            })
        };
        // The other end went away before reading what it was sent. The kernel
        // says so once, and only then gives out what had come before.
        let received = match receive() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => receive(),
            received => received,
        };
        let message = match received {
            Ok(message) => message,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Received::Nothing);
            }
            Err(error) => return Err(error),
        };
        let mut descriptors = Vec::new();
        for item in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = item {
                descriptors.extend(received);
            }
        }
        if message
            .flags
            .intersects(ReturnFlags::CTRUNC | ReturnFlags::TRUNC)
        {
            return Err(io::Error::other("a message was cut off"));
        }
        let bytes = buffer.get(..message.bytes).unwrap_or_default();
        match bytes.split_first() {
            None => Ok(Received::Closed),
            Some((&INLINE, frame)) => Ok(Received::Frame(frame.to_vec(), descriptors)),
            Some((&IN_MEMORY_FILE, length)) => {
                if descriptors.is_empty() {
                    return Err(io::Error::other("a message came without its memory file"));
                }
                let memory = descriptors.remove(0);
                Ok(Received::Frame(
                    read_memory_file(&memory, length)?,
                    descriptors,
                ))
            }
            Some(_) => Err(io::Error::other("a message of an unknown kind")),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn memory_file(frame: &[u8]) -> io::Result<OwnedFd> {
    let memory = rustix::fs::memfd_create(
        c"hermitcrab-message",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    let mut rest = frame;
    while !rest.is_empty() {
        let count = retry(|| rustix::io::write(&memory, rest))?;
        rest = rest.get(count..).unwrap_or_default();
    }
    rustix::fs::fcntl_add_seals(
        &memory,
        SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    Ok(memory)
}

fn read_memory_file(memory: &OwnedFd, length: &[u8]) -> io::Result<Vec<u8>> {
    let length = length
        .first_chunk::<8>()
        .and_then(|bytes| usize::try_from(u64::from_le_bytes(*bytes)).ok())
        .filter(|length| *length <= FRAME_BYTES_MAX)
        .ok_or_else(|| io::Error::other("a message is too long"))?;
    let mut frame = vec![0_u8; length];
    let mut done = 0_usize;
    while let Some(rest) = frame.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = u64::try_from(done).unwrap_or(u64::MAX);
        let count = retry(|| rustix::io::pread(memory, &mut *rest, at))?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done = done.saturating_add(count);
    }
    Ok(frame)
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_any_length_arrive_whole_and_apart_with_their_descriptors() {
        let (ours, theirs) = Channel::pair().unwrap();
        let long: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let (read, _write) = rustix::pipe::pipe().unwrap();
        for frame in [&b""[..], b"short", &long, &long[..INLINE_BYTES_MAX]] {
            ours.send(frame, &[read.as_fd(), read.as_fd()]).unwrap();
        }
        for frame in [&b""[..], b"short", &long, &long[..INLINE_BYTES_MAX]] {
            let Ok(Received::Frame(bytes, descriptors)) = theirs.receive() else {
                panic!("no frame");
            };
            assert_eq!(bytes, frame);
            assert_eq!(descriptors.len(), 2);
        }
        assert!(matches!(theirs.receive_now(), Ok(Received::Nothing)));
        drop(ours);
        assert!(matches!(theirs.receive(), Ok(Received::Closed)));
    }

    #[test]
    fn the_last_words_of_an_end_that_closed_without_listening_are_heard() {
        let (ours, theirs) = Channel::pair().unwrap();
        ours.send(b"never read", &[]).unwrap();
        theirs.send(b"last words", &[]).unwrap();
        drop(theirs);
        assert!(matches!(ours.receive(), Ok(Received::Frame(frame, _)) if frame == b"last words"));
        assert!(matches!(ours.receive(), Ok(Received::Closed)));
    }
}

//! Frames, with descriptors attached, over a stream socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::wire::FRAME_BYTES_MAX;

/// The most descriptors one frame carries.
pub(crate) const DESCRIPTORS_MAX: usize = 32;
const READ_BYTES: usize = 64 * 1024;

/// One end of the conversation.
pub(crate) struct Channel {
    socket: OwnedFd,
    pending: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// What a read brought.
pub(crate) enum Received {
    /// A whole frame, with the descriptors that came so far.
    Frame(Vec<u8>, Vec<OwnedFd>),
    /// Nothing complete yet.
    Nothing,
    /// The other end is gone.
    Closed,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            pending: Vec::new(),
            descriptors: Vec::new(),
        }
    }

    /// Sends one frame, waiting as long as the other end takes to read it.
    pub(crate) fn send(&self, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if frame.len() > FRAME_BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::Error::other("the message to the spawner is too long"));
        }
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut space =
            [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(io::Error::other("too many descriptors in one message"));
        }
        // The length goes out with the descriptors; the rest needs none.
        let sent = retry(|| {
            rustix::net::sendmsg(
                &self.socket,
                &[IoSlice::new(&length)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )
        })?;
        self.send_all(length.get(sent..).unwrap_or_default())?;
        self.send_all(frame)
    }

    fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = retry(|| rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL))?;
            bytes = bytes.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads once (waiting for at least one byte) and says what is complete.
    pub(crate) fn receive(&mut self) -> io::Result<Received> {
        if let Some(frame) = self.take_frame()? {
            return Ok(Received::Frame(
                frame,
                std::mem::take(&mut self.descriptors),
            ));
        }
        let mut buffer = vec![0_u8; READ_BYTES];
        let mut space =
            [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let message = retry(|| {
            rustix::net::recvmsg(
                &self.socket,
                &mut [IoSliceMut::new(&mut buffer)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        for item in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = item {
                self.descriptors.extend(received);
            }
        }
        if message.bytes == 0 {
            return Ok(Received::Closed);
        }
        self.pending
            .extend_from_slice(buffer.get(..message.bytes).unwrap_or_default());
        match self.take_frame()? {
            Some(frame) => Ok(Received::Frame(
                frame,
                std::mem::take(&mut self.descriptors),
            )),
            None => Ok(Received::Nothing),
        }
    }

    /// Reads until a frame is complete.
    pub(crate) fn receive_frame(&mut self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        loop {
            match self.receive()? {
                Received::Frame(frame, descriptors) => return Ok((frame, descriptors)),
                Received::Nothing => {}
                Received::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    fn take_frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some((head, rest)) = self.pending.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(io::Error::other("a message of the spawner is too long"));
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = frame.to_vec();
        self.pending.drain(..length.saturating_add(4));
        Ok(Some(frame))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(Into::into),
        }
    }
}

//! Open files sent from one process of the harness to another.
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// More than any message of the harness carries.
const MOST: usize = 8;

/// Sends one byte and these descriptors with it.
pub(crate) fn send(socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    match sent {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives what [`send`] sent; as many descriptors as expected, or an error.
pub(crate) fn receive<const N: usize>(socket: impl AsFd) -> io::Result<[OwnedFd; N]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8];
    let got = loop {
        let mut buffers = [IoSliceMut::new(&mut byte)];
        match rustix::net::recvmsg(
            &socket,
            &mut buffers,
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    if got.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    let count = descriptors.len();
    descriptors
        .try_into()
        .map_err(|_| io::Error::other(format!("{count} descriptors came, not {N}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_sent_can_be_used_on_the_other_side() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&here, &[writer.as_fd(), here.as_fd()]).unwrap();
        drop(writer);
        let [pipe, _] = receive::<2>(&there).unwrap();
        std::fs::File::from(pipe).write_all(b"x").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }

    #[test]
    fn another_number_or_a_closed_socket_is_an_error() {
        let (here, there) = UnixStream::pair().unwrap();
        send(&here, &[here.as_fd()]).unwrap();
        assert!(receive::<2>(&there).is_err());
        drop(here);
        assert!(receive::<1>(&there).is_err());
    }
}

//! A way into a session that runs, for the person who started it.
//!
//! What for: a grant is ended, a mode changed, a proposal answered from another
//! terminal, while the session waits for a model or a command. Why a socket in
//! the state directory: nobody but its owner reaches that directory, no agent
//! is ever given it, and the other end is asked who it is all the same.
//!
//! Here is what is said, and the end that asks; the end that answers is the runtime's.
//!
//! What a request does is an event of the session like any other, decided and
//! recorded there. A program that grants something and dies without ending it
//! leaves a grant that ends at its deadline and is listed as orphaned. The
//! socket must never be reachable from where commands run.

mod client;
mod other_end;
mod wire;

use std::{
    fs, io,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

pub(crate) use self::other_end::OtherEnd;
pub use self::{
    client::{Connection, ControlError},
    wire::{AgentRow, GrantRow, Listing, ProposalRow, Reply, Request},
};

/// The socket's name in the state directory.
pub const SOCKET_NAME: &str = "session.socket";

/// Names a file by way of its directory's descriptor: a socket's name may not
/// be long, a directory's may.
pub(crate) fn through_directory<R>(
    dir: &Path,
    name: &str,
    act: impl FnOnce(PathBuf) -> io::Result<R>,
) -> io::Result<R> {
    let opened = fs::File::open(dir)?;
    act(PathBuf::from(format!(
        "/proc/self/fd/{}/{name}",
        opened.as_raw_fd()
    )))
}

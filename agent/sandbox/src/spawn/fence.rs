//! The Landlock fence of one command: which places it may change.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::root::EXCHANGE_DIR;
use super::spec::Surroundings;
use crate::landlock::{Fence, Tcp};
use crate::net::PROXY_PORT;

/// Makes the fence from inside the finished root.
pub(super) fn build(spec: &Surroundings) -> io::Result<Fence> {
    let mut places = vec![
        open(Path::new("/tmp"))?,
        open(Path::new("/dev/shm"))?,
        open(Path::new(EXCHANGE_DIR))?,
    ];
    if spec.places.use_var_tmp() {
        places.push(open(Path::new("/var/tmp"))?);
    }
    for view in spec.places.views.iter().filter(|view| view.copy_on_write) {
        places.push(open(as_path(&view.at))?);
    }
    for place in &spec.places.private_dirs {
        places.push(open(as_path(place))?);
    }
    if spec.places.faults.open_root {
        places.push(open(Path::new("/"))?);
    }
    let tcp = if spec.faults.network || spec.network.loopback {
        Tcp::AsTheNamespace
    } else if spec.network.proxy {
        Tcp::Only(PROXY_PORT)
    } else {
        Tcp::Refused
    };
    Fence::build(
        open(Path::new("/"))?.as_fd(),
        open(Path::new("/dev"))?.as_fd(),
        places.iter().map(AsFd::as_fd),
        tcp,
    )
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    rustix::fs::open(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(Into::into)
}

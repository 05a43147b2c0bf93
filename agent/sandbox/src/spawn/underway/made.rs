//! For tests: a command that runs and has made this.

use std::fs::File;
use std::path::Path;

use hermitcrab_core::authority::DirId;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Session, SessionConfig};

use super::Underway;
use crate::changeset::clock::Since;
use crate::digest::sha256;
use crate::dircap::DirCap;

fn dir_id() -> DirId {
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: hermitcrab_core::audit::Head::EMPTY,
        opened_at: hermitcrab_core::time::Instant::BOOT,
    });
    session.add_dir(rel("view")).unwrap()
}

pub(super) fn rel(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).unwrap()
}

/// A command that runs over `lower` and has made what is in `upper`.
pub(super) fn underway(at: &Path) -> Underway {
    std::fs::create_dir(at.join("work")).unwrap();
    let view = DirCap::open_ambient_dir(&at.join("lower"), dir_id()).unwrap();
    let underway = Underway::new(&[view], Since::now(), None, 1 << 30).unwrap();
    let open = |name: &str| [File::open(at.join(name)).unwrap().into()];
    underway.lies_in(&open("upper"), &open("lower")).unwrap();
    underway
}

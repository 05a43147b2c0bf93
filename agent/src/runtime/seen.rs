//! A directory as a command sees it.

use std::path::PathBuf;

use hermitcrab_core::{
    authority::DirId,
    fault::{self, Fault},
    grant::GrantId,
    path::RelPath,
    rules::Withheld,
};
use hermitcrab_sandbox::{
    dircap::DirCap,
    spawn::{View, ViewMode},
};

use super::mounts::Mounts;

/// A directory a command sees.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) dir: DirId,
    pub(super) at: PathBuf,
    /// A narrower capability, where only a part is held.
    pub(super) part: Option<DirCap>,
    /// What of it rules withhold.
    pub(super) withheld: Withheld,
    /// What lets it be seen.
    pub(super) by_grant: GrantId,
}

impl Seen {
    /// A place below its directory, as it is named from what is seen.
    pub(super) fn within(&self, below: &RelPath) -> Option<RelPath> {
        match &self.part {
            Some(part) => below.strip_prefix(part.prefix()),
            None => Some(below.clone()),
        }
    }

    /// A place named from what is seen, as it is named below its directory.
    pub(super) fn whole(&self, path: &RelPath) -> Option<RelPath> {
        match &self.part {
            Some(part) => part.place(path).ok(),
            None => Some(path.clone()),
        }
    }
}

/// The same, and all that rules withhold of it where this fault is planted.
pub(super) fn unless_planted(fault: Fault, mut seen: Vec<Seen>) -> Vec<Seen> {
    if fault::is(fault) {
        for seen in &mut seen {
            seen.withheld = Withheld::default();
        }
    }
    seen
}

impl Seen {
    /// The copy of it that a command gets.
    pub(super) fn view<'m>(&'m self, mounts: &'m Mounts) -> Option<View<'m>> {
        let dir = match &self.part {
            Some(part) => part,
            None => &mounts.get(self.dir)?.cap,
        };
        Some(View {
            dir,
            at: self.at.clone(),
            mode: ViewMode::CopyOnWrite,
            withheld: self.withheld.clone(),
        })
    }
}

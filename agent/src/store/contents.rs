//! Everything the store holds, as one value.
//!
//! What is kept is little (a person confirmed each of it), so it is read and
//! written whole: then one seal covers all of it, and nothing in it can be
//! removed, exchanged or added without the key.

pub use hermitcrab_core::approval::Said;
use hermitcrab_core::{
    digest::Digest,
    rules::Isolation,
    standing::{Audience, BootId, PortableCap, Site, Standing, StandingId, WallTime},
    time::Instant,
};

use crate::state_dir::key::Tag;

/// Standing grants, sturdy references or remembered answers there can be.
pub const ROWS_MAX: usize = 4096;

/// What the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// How often it was changed.
    pub generation: u64,
    /// The number of the next row of any kind; numbers are never used again.
    pub next: u64,
    /// The standing grants.
    pub standing: Vec<KeptGrant>,
    /// The sturdy references.
    pub sturdy: Vec<SturdyRef>,
    /// The remembered answers.
    pub remembered: Vec<KeptAnswer>,
}

/// A standing grant and what a person is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptGrant {
    /// The grant.
    pub standing: Standing,
    /// The workspace it is for, as a person knows it.
    pub workspace: String,
}

/// A reference to a standing grant that another program may present. The
/// reference itself is not kept, only its keyed hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SturdyRef {
    /// Its number, for listing and ending it.
    pub id: u64,
    /// The keyed hash of the reference.
    pub tag: Tag,
    /// The standing grant it leads to.
    pub to: StandingId,
    /// Who may present it.
    pub audience: Audience,
    /// In which directory; records of before have none.
    pub site: Option<Site>,
    /// When it was made.
    pub made_at: WallTime,
}

/// An answer to be repeated where exactly the same is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its number, for listing and clearing it.
    pub id: u64,
    /// What was asked for.
    pub cap: PortableCap,
    /// The content it was for.
    pub digest: Digest,
    /// What was proved about the sandbox then.
    pub isolation: Isolation,
    /// Who asked.
    pub audience: Audience,
    /// In which directory; records of before have none.
    pub site: Option<Site>,
    /// What the user said.
    pub said: Said,
    /// In which boot.
    pub boot: BootId,
    /// When.
    pub at: WallTime,
    /// When in that boot, on the clock that nobody sets; records of before have none.
    pub in_boot: Option<Instant>,
}

impl SturdyRef {
    /// Whether it was made for this directory.
    #[must_use]
    pub fn is_for(&self, site: Option<Site>) -> bool {
        self.site.is_none() || self.site == site
    }
}

impl KeptAnswer {
    /// Whether it was given in this directory.
    #[must_use]
    pub fn is_of(&self, site: Option<Site>) -> bool {
        self.site.is_none() || self.site == site
    }
}

impl Contents {
    /// A number nothing had before.
    pub fn number(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }

    /// Are there more rows than the store takes?
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        [
            self.standing.len(),
            self.sturdy.len(),
            self.remembered.len(),
        ]
        .into_iter()
        .any(|rows| rows > ROWS_MAX)
    }
}

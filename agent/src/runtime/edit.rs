//! A change of one file as a tool wants it: what is there, and what is to be.

use hermitcrab_core::{authority::Extent, digest::Digest};

use super::place::Place;

/// What a place held before a write.
#[derive(Clone, Debug)]
pub enum Before {
    /// Nothing.
    Nothing,
    /// A file with this content.
    File(Vec<u8>),
    /// A file that is too long to be in memory.
    Long(Long),
    /// A file this agent may not read.
    Unread,
}

/// What is known of a file that was read piece by piece.
#[derive(Clone, Debug)]
pub struct Long {
    /// The digest of all it holds.
    pub digest: Digest,
    /// What it begins with.
    pub head: Vec<u8>,
}

/// One file's change.
#[derive(Clone, Debug)]
pub enum FileChange {
    /// It gets this content.
    Write {
        /// Where.
        place: Place,
        /// What was there.
        before: Before,
        /// What will be there.
        content: Vec<u8>,
        /// Its permission bits, if it is new and comes from a file that had these.
        mode: Option<u32>,
    },
    /// It goes.
    Delete {
        /// Where.
        place: Place,
        /// What was there.
        before: Vec<u8>,
    },
    /// A directory goes that is empty by then, or a link, or what is special.
    RemoveDir {
        /// Where.
        place: Place,
    },
    /// A symbolic link goes, and nothing of what it leads to.
    RemoveLink {
        /// Where.
        place: Place,
        /// What it says, word for word.
        says: Vec<u8>,
    },
    /// There is a new symbolic link.
    PutLink {
        /// Where.
        place: Place,
        /// What it says, word for word.
        says: Vec<u8>,
    },
    /// It gets another name.
    Rename {
        /// The old one.
        from: Place,
        /// The new one.
        to: Place,
        /// What it holds under the old one.
        before: Vec<u8>,
        /// What it holds under the new one.
        content: Vec<u8>,
    },
    /// A file, a directory or a link gets another name, whatever it holds.
    Move {
        /// The old one.
        from: Place,
        /// The new one.
        to: Place,
        /// How much goes along: all of a directory.
        extent: Extent,
    },
}

/// A file of somebody else's making, and where it is to lie.
pub(super) struct Received<'p> {
    /// Where.
    pub place: Place,
    /// What it holds.
    pub content: &'p [u8],
    /// Who sent it, and what they say it is.
    pub from: String,
}

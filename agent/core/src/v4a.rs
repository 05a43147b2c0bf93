//! The V4A patch text that models write, read into operations.
//!
//! Two readers of one patch are one too many: a gate that finds fewer file
//! headers than the patcher lets files change that nobody was shown. So there
//! is this one reader, for whoever asks, shows or applies, and it is as
//! lenient as the most lenient patcher we know, because what a lenient reader
//! accepts must be seen by the strict one too.
//!
//! Reading grants nothing and touches no file.
//!
//! ```text
//! patch     = { any line } [ begin ] { section } [ end { any line } ]
//! begin     = a line that contains "*** Begin Patch" or "***Begin Patch"
//! end       = a line that contains "*** End Patch" or "***End Patch"
//! section   = "***" blank* ("Update" | "Add" | "Delete") blank+ "File:" path, body lines
//!           | "***" blank* "Move" blank+ "File:" path "->" path
//! body line = "@@" [ hint "@@" ] | "+" text | "-" text | " " text | "\" note | text
//! ```
//!
//! A body line of any other kind is context; an empty one is left out. The
//! last begin line before the first end line counts, and without one the
//! patch starts at the top.
mod header;
mod parse;
mod print;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use parse::{PATCH_BYTES_MAX, parse, parse_or_mistakes};
pub use print::print;

/// One file's part of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new file.
    Add {
        /// Its path, as written.
        path: String,
        /// Its text, as added lines.
        hunks: Vec<Hunk>,
    },
    /// A change to a file.
    Update {
        /// Its path, as written.
        path: String,
        /// The changes; at least one.
        hunks: Vec<Hunk>,
    },
    /// A file is removed.
    Delete {
        /// Its path, as written.
        path: String,
    },
    /// A file gets another name.
    Move {
        /// The old path, as written.
        path: String,
        /// The new path, as written.
        to: String,
    },
}

impl Operation {
    /// The word in the header: `Add`, `Update`, `Delete`, `Move`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Add { .. } => "Add",
            Self::Update { .. } => "Update",
            Self::Delete { .. } => "Delete",
            Self::Move { .. } => "Move",
        }
    }

    /// The path of the header; of a move, the old one.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. }
            | Self::Update { path, .. }
            | Self::Delete { path }
            | Self::Move { path, .. } => path,
        }
    }

    /// The new path of a move.
    #[must_use]
    pub fn new_path(&self) -> Option<&str> {
        match self {
            Self::Move { to, .. } => Some(to),
            Self::Add { .. } | Self::Update { .. } | Self::Delete { .. } => None,
        }
    }
}

/// One connected change inside a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Where to look for it, in the patch writer's words.
    pub hint: Option<String>,
    /// Its lines; at least one.
    pub lines: Vec<Line>,
}

/// One line of a hunk, without its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// It is there before and after.
    Context(String),
    /// It is there before only.
    Removed(String),
    /// It is there after only.
    Added(String),
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum V4aError {
    /// It is longer than [`PATCH_BYTES_MAX`].
    TooLong,
    /// A header without a path.
    PathMissing,
    /// An update that changes nothing.
    HunkMissing {
        /// The header's path.
        path: String,
    },
    /// A move that does not say where to.
    TargetMissing {
        /// The header's path.
        path: String,
    },
}

impl fmt::Display for V4aError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(
                formatter,
                "the patch is longer than {PATCH_BYTES_MAX} bytes"
            ),
            Self::PathMissing => formatter.write_str("a file header has no path"),
            Self::HunkMissing { path } => {
                write!(formatter, "the update of `{path}` has no changed lines")
            }
            Self::TargetMissing { path } => {
                write!(
                    formatter,
                    "the move of `{path}` has no new path (`old -> new`)"
                )
            }
        }
    }
}

impl core::error::Error for V4aError {}

//! Relative paths that cannot leave the directory they are used in.
//!
//! What for: every file effect names its target as a directory handle plus a
//! [`RelPath`]. Why: a string that is checked in one place and used in another
//! is checked nowhere; a value of this type has no absolute form, no `..` and
//! no NUL to begin with. The kernel enforces containment again at the call,
//! because a link may still lead out.
//!
//! It must never look at a file system: `a/b` means the same whether or not
//! it exists. Names are bytes; nothing is case-folded or Unicode-normalised.

use alloc::vec::Vec;
use core::fmt;

use crate::denial_code::DenialCode;
use crate::escape::write_escaped;
use crate::fault::{self, Fault};
use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};

/// A path below some directory: no `..`, not absolute, no NUL, bounded.
///
/// `.` and repeated slashes are dropped when parsing, so equal places are
/// equal values. The directory itself is [`RelPath::root`], written `.`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath {
    // INVARIANT: components joined by single slashes, none empty, `.` or `..`;
    // empty exactly for the root; within the two length limits.
    bytes: Vec<u8>,
}

/// Why some bytes are not a [`RelPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// Nothing was given.
    Empty,
    /// It starts with a slash.
    Absolute,
    /// A component is `..`.
    Escapes,
    /// It holds a NUL byte.
    Nul,
    /// The whole path or one name is too long.
    TooLong,
    /// It names a directory by its ending where a file may be meant.
    TrailingSlash,
}

impl PathError {
    /// The refusal this becomes.
    #[must_use]
    pub const fn code(self) -> DenialCode {
        match self {
            PathError::Empty => DenialCode::PathEmpty,
            PathError::Absolute => DenialCode::PathAbsolute,
            PathError::Escapes => DenialCode::PathEscapes,
            PathError::Nul => DenialCode::PathNul,
            PathError::TooLong => DenialCode::PathTooLong,
            PathError::TrailingSlash => DenialCode::PathTrailingSlash,
        }
    }
}

impl From<PathError> for DenialCode {
    fn from(error: PathError) -> DenialCode {
        error.code()
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code().wording())
    }
}

impl core::error::Error for PathError {}

impl RelPath {
    /// The directory itself.
    #[must_use]
    pub const fn root() -> RelPath {
        RelPath { bytes: Vec::new() }
    }

    /// Reads a path that may name a file; a trailing slash is refused.
    ///
    /// # Errors
    /// The first rule of the type that the bytes break.
    pub fn parse(bytes: &[u8]) -> Result<RelPath, PathError> {
        let path = RelPath::parse_dir(bytes)?;
        if path.is_root() {
            return Ok(path);
        }
        match bytes.rsplit(|byte| *byte == b'/').next() {
            None | Some(b"" | b".") if !fault::is(Fault::FileWithTrailingSlash) => {
                Err(PathError::TrailingSlash)
            }
            None | Some(_) => Ok(path),
        }
    }

    /// Reads a path that names a directory; a trailing slash is allowed.
    ///
    /// # Errors
    /// The first rule of the type that the bytes break.
    pub fn parse_dir(bytes: &[u8]) -> Result<RelPath, PathError> {
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes.contains(&0) && !fault::is(Fault::PathAllowsNul) {
            return Err(PathError::Nul);
        }
        if bytes.starts_with(b"/") && !fault::is(Fault::PathAllowsAbsolute) {
            return Err(PathError::Absolute);
        }
        let mut path = RelPath::root();
        for component in bytes.split(|byte| *byte == b'/') {
            match component {
                b"" => {}
                b"." if !fault::is(Fault::PathKeepsDots) => {}
                b".." if !fault::is(Fault::DirCapAllowsDotDot) => return Err(PathError::Escapes),
                name => {
                    // In one piece, and no more than a path may have.
                    if path.is_root() {
                        path.bytes.reserve_exact(bytes.len().min(PATH_BYTES_MAX));
                    }
                    path.push(name)?;
                }
            }
        }
        // Checked on what was given, too: the kernel counts those bytes.
        if bytes.len() > PATH_BYTES_MAX && !fault::is(Fault::PathOfAnyLength) {
            return Err(PathError::TooLong);
        }
        Ok(path)
    }

    /// A single name in this directory.
    ///
    /// # Errors
    /// The name is empty, `.`, `..`, holds a slash or a NUL, or is too long.
    pub fn child(&self, name: &[u8]) -> Result<RelPath, PathError> {
        self.may_have(name)?;
        // In one piece: a listing of a directory makes thousands of these.
        let mut bytes = Vec::with_capacity(self.bytes.len() + 1 + name.len());
        bytes.extend_from_slice(&self.bytes);
        let mut path = RelPath { bytes };
        path.push(name)?;
        Ok(path)
    }

    /// Whether [`RelPath::child`] has a path for this name.
    ///
    /// # Errors
    /// As there.
    pub fn may_have(&self, name: &[u8]) -> Result<(), PathError> {
        match name {
            b"" | b"." => return Err(PathError::Empty),
            b".." => return Err(PathError::Escapes),
            _ if name.contains(&b'/') => return Err(PathError::TrailingSlash),
            _ if name.contains(&0) => return Err(PathError::Nul),
            _ => {}
        }
        self.has_room_for(name)
    }

    /// `below`, seen from the directory `self` is relative to.
    ///
    /// # Errors
    /// The result would be too long.
    pub fn join(&self, below: &RelPath) -> Result<RelPath, PathError> {
        if below.is_root() {
            return Ok(self.clone());
        }
        // Both keep the rules of the type; only the length can break one.
        let separator = usize::from(!self.bytes.is_empty());
        let length = self.bytes.len() + separator + below.bytes.len();
        if length > PATH_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&self.bytes);
        if separator == 1 {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(&below.bytes);
        Ok(RelPath { bytes })
    }

    /// Is it the directory itself?
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes to give to the kernel; `.` for the root.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        if self.bytes.is_empty() {
            b"."
        } else {
            &self.bytes
        }
    }

    /// The path as text, if it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(self.as_bytes()).ok()
    }

    /// The names on the way, outermost first; none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        self.bytes
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
    }

    /// The last name; `None` for the root.
    #[must_use]
    pub fn file_name(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    /// The directory it lies in; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<RelPath> {
        let name = self.file_name()?;
        // With the slash before it, which the only name does not have.
        let kept = self.bytes.len().saturating_sub(name.len() + 1);
        Some(RelPath {
            bytes: self.bytes.get(..kept)?.to_vec(),
        })
    }

    /// Is it `prefix` or below it, name by name?
    #[must_use]
    pub fn starts_with(&self, prefix: &RelPath) -> bool {
        self.tail_after(prefix).is_some()
    }

    /// The same place seen from `prefix`, if it is `prefix` or below it.
    #[must_use]
    pub fn strip_prefix(&self, prefix: &RelPath) -> Option<RelPath> {
        self.tail_after(prefix).map(|tail| RelPath {
            bytes: tail.to_vec(),
        })
    }

    fn tail_after(&self, prefix: &RelPath) -> Option<&[u8]> {
        if prefix.is_root() {
            return Some(&self.bytes);
        }
        match self.bytes.strip_prefix(prefix.bytes.as_slice())? {
            b"" => Some(b""),
            rest if fault::is(Fault::PrefixByLetters) => Some(rest),
            rest => rest.strip_prefix(b"/"),
        }
    }

    fn has_room_for(&self, name: &[u8]) -> Result<(), PathError> {
        let separator = usize::from(!self.bytes.is_empty());
        let length = self.bytes.len() + separator + name.len();
        if (name.len() > NAME_BYTES_MAX || length > PATH_BYTES_MAX)
            && !fault::is(Fault::PathOfAnyLength)
        {
            return Err(PathError::TooLong);
        }
        Ok(())
    }

    fn push(&mut self, name: &[u8]) -> Result<(), PathError> {
        self.has_room_for(name)?;
        if !self.bytes.is_empty() {
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(name);
        Ok(())
    }
}

impl TryFrom<&str> for RelPath {
    type Error = PathError;

    fn try_from(text: &str) -> Result<RelPath, PathError> {
        RelPath::parse(text.as_bytes())
    }
}

/// Printable: control characters and bytes that are not UTF-8 come out escaped.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.as_bytes())
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelPath({self})")
    }
}

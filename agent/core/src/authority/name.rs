//! Names that look like what they are.

use alloc::string::String;
use core::fmt;

use crate::limits::NAME_BYTES_MAX;

/// A short printable name of a program, host, secret or model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why some text is not a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Nothing was given.
    Empty,
    /// It is longer than [`NAME_BYTES_MAX`].
    TooLong,
    /// It holds a character that is not printable ASCII.
    Unprintable,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Empty => "the name is empty",
            NameError::TooLong => "the name is too long",
            NameError::Unprintable => "the name holds a character that is not printable ASCII",
        })
    }
}

impl core::error::Error for NameError {}

impl Name {
    /// Reads a name exactly as written.
    ///
    /// # Errors
    /// It is empty, too long, or not printable ASCII; look-alike letters are
    /// thereby refused, not folded.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        if text.is_empty() {
            Err(NameError::Empty)
        } else if text.len() > NAME_BYTES_MAX {
            Err(NameError::TooLong)
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Err(NameError::Unprintable)
        } else {
            Ok(Name(String::from(text)))
        }
    }

    /// Reads a name in which case carries no meaning, such as a host's.
    ///
    /// # Errors
    /// As for [`Name::parse`].
    pub fn parse_caseless(text: &str) -> Result<Name, NameError> {
        Name::parse(&text.to_ascii_lowercase())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.0)
    }
}

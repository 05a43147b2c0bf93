//! Verbs of others: `x.<vendor>.<name>`.
//!
//! The list of verbs is closed, so that a match over it is complete. What a
//! vendor adds is one more verb with a name as its object: it can be granted,
//! narrowed, asked about and recorded like any other, and is always treated as
//! what cannot be undone, because nothing here knows what it does.

use core::fmt;

use super::name::{Name, NameError};

/// The name of a vendor's verb, such as `x.acme.deploy`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionName(Name);

/// Why some text is not an [`ExtensionName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionError {
    /// It is no name at all.
    Name(NameError),
    /// It does not read `x.<vendor>.<name>` in small letters, digits and `-`.
    Form,
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtensionError::Name(error) => error.fmt(f),
            ExtensionError::Form => {
                f.write_str("the name is not `x.<vendor>.<name>` in small letters, digits and `-`")
            }
        }
    }
}

impl core::error::Error for ExtensionError {}

impl ExtensionName {
    /// Reads `x.<vendor>.<name>`; the name may have more parts.
    ///
    /// # Errors
    /// It has another form.
    pub fn parse(text: &str) -> Result<ExtensionName, ExtensionError> {
        let name = Name::parse(text).map_err(ExtensionError::Name)?;
        let is_part = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_lowercase())
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        let mut parts = text.split('.');
        let starts_right = parts.next() == Some("x");
        let rest = parts.clone().count();
        if starts_right && rest >= 2 && parts.all(is_part) {
            Ok(ExtensionName(name))
        } else {
            Err(ExtensionError::Form)
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for ExtensionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a vendor's verb acts on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extension {
    /// Which verb.
    pub name: ExtensionName,
    /// On what; `None` stands for everything the verb can act on.
    pub on: Option<Name>,
}

impl Extension {
    /// Does it include `other`?
    pub(super) fn covers(&self, other: &Extension) -> bool {
        self.name == other.name && (self.on.is_none() || self.on == other.on)
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on {
            Some(on) => write!(f, "{} {on}", self.name),
            None => write!(f, "{} *", self.name),
        }
    }
}

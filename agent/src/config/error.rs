//! Why a configuration cannot be used or changed.

use std::{fmt, io, path::PathBuf};

use super::one_line;

/// A configuration that cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Io(PathBuf, io::Error),
    /// It is not what it should be; the text names the place.
    Form(PathBuf, String),
    /// A link leads to it from where it should be, and nothing is there; the text says what to do.
    Link(String),
    /// Somebody else may write it or its directory; the text says who, and what to do.
    Others(PathBuf, String),
    /// The changed file cannot be written.
    Write(PathBuf, io::Error),
    /// The file is as it should be, and this change to it would not be.
    Change(String),
    /// Somebody else changed it since it was read.
    Meanwhile(PathBuf),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot read `{}`: {error}", path.display()),
            // What it holds may be quoted from the file, line breaks and all.
            Self::Form(path, what) => write!(
                f,
                "`{}` is not a configuration: {}",
                path.display(),
                one_line(what)
            ),
            Self::Link(what) => write!(f, "there is no configuration: {what}"),
            Self::Others(path, what) => write!(
                f,
                "the configuration decides what is allowed, and of `{}` others decide: {what}",
                path.display()
            ),
            Self::Write(path, error) => write!(
                f,
                "nothing was changed: cannot write `{}`: {error}",
                path.display()
            ),
            Self::Change(what) => write!(f, "nothing was changed: {what}"),
            Self::Meanwhile(path) => write!(
                f,
                "nothing was changed: somebody else changed `{}` meanwhile; see what it says now, and do it again",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// The same about a person's own file, with what they can do.
    #[must_use]
    pub fn with_the_way_out(&self) -> String {
        if let Self::Form(..) = self {
            return format!(
                "{self}; mend it there, or `hermitcrab config reset` begins a new one and keeps this beside it"
            );
        }
        self.to_string()
    }
}

//! The configuration file: standing grants, as a person writes them.
//!
//! It is read once at the start, before any model is listened to, and no grant
//! reaches it.

use std::{fmt, io, path::Path, path::PathBuf};

use hermitcrab_core::time::Millis;
use serde::Deserialize;

use crate::runtime::GrantWords;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Given to the agent at the start of each session, besides reading its
    /// workspace and running programs on a copy of it.
    #[serde(default)]
    pub grants: Vec<ConfiguredGrant>,
}

/// One grant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredGrant {
    /// `fs.create`, `fs.*`, ...
    pub verb: String,
    /// An absolute path, or one from `~`, or `.` for the workspace.
    pub on: String,
    /// How often it may be used.
    #[serde(default)]
    pub uses: Option<u64>,
    /// How long it lasts.
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// A configuration that cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Io(PathBuf, io::Error),
    /// It is not what it should be; the text names the place.
    Form(PathBuf, String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot read `{}`: {error}", path.display()),
            Self::Form(path, what) => {
                write!(f, "`{}` is not a configuration: {what}", path.display())
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Reads the file; one that does not exist is an empty one.
///
/// # Errors
/// It cannot be read, or holds something unknown.
pub fn read(path: &Path) -> Result<Config, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => return Err(ConfigError::Io(path.to_owned(), error)),
    };
    toml::from_str(&text).map_err(|error| {
        let what = error
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        ConfigError::Form(path.to_owned(), what)
    })
}

impl ConfiguredGrant {
    /// In the runtime's words; `.` is the workspace.
    #[must_use]
    pub fn words(&self, workspace: &Path) -> GrantWords {
        let on = if self.on == "." {
            workspace.to_string_lossy().into_owned()
        } else {
            self.on.clone()
        };
        GrantWords {
            verb: self.verb.clone(),
            on,
            uses: self.uses,
            lifetime: self.seconds.map(Millis::from_seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Config, ConfigError, read};

    #[test]
    fn a_missing_file_is_an_empty_configuration() {
        assert!(
            read(Path::new("/nonexistent/config.toml"))
                .expect("empty")
                .grants
                .is_empty()
        );
    }

    #[test]
    fn unknown_words_are_an_error_with_a_place() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        std::fs::write(
            &path,
            "[[grants]]\nverb = \"fs.*\"\non = \".\"\nforever = true\n",
        )
        .expect("written");
        let Err(ConfigError::Form(_, what)) = read(&path) else {
            panic!("accepted")
        };
        assert!(
            what.contains("line 4") && what.contains("forever"),
            "{what}"
        );
    }

    #[test]
    fn a_dot_is_the_workspace() {
        let config: Config =
            toml::from_str("[[grants]]\nverb = \"fs.read\"\non = \".\"\nuses = 2\n")
                .expect("config");
        let words = config.grants[0].words(Path::new("/w"));
        assert_eq!((words.on.as_str(), words.uses), ("/w", Some(2)));
    }
}

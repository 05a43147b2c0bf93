//! Where the key of a model or a server is written down, and how it is had.
//!
//! It comes from the environment, from a file nobody else may read, or from the
//! keyring of the desktop. It must never be told, nor taken from a file others can read.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{ModelError, keyring};
use crate::{
    given_file::{self, Pipes},
    text::redact,
};

/// Longer than any key is.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// Where secrets and files are looked for.
pub struct Surroundings<'s> {
    /// The value of a variable of the environment.
    pub variable: &'s dyn Fn(&str) -> Option<String>,
    /// Where `~` leads.
    pub home: &'s Path,
    /// Where paths of the configuration begin.
    pub dir: &'s Path,
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("home", &self.home)
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// Where a path of the configuration leads.
#[must_use]
pub fn placed(path: &str, around: &Surroundings<'_>) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => around.home.join(rest),
        None => around.dir.join(path),
    }
}

/// Where a key is written down, in the words of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyPlaces<'w> {
    /// The variable of the environment that holds it.
    pub env: Option<&'w str>,
    /// The file that holds it.
    pub file: Option<&'w str>,
    /// Its name in the keyring of the desktop.
    pub keyring: Option<&'w str>,
}

impl KeyPlaces<'_> {
    /// Whether there is one place at most.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        if let Some(name) = self.env {
            named_variable(name)?;
        }
        let places = [self.env, self.file, self.keyring];
        if places.into_iter().flatten().count() > 1 {
            return Err(
                "the key comes from one of `key_env`, `key_file` and `key_keyring`, not from more"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The place, for a person.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let env = self.env.map(|name| format!("the variable `{name}`"));
        let file = || self.file.map(|file| format!("the file `{file}`"));
        let keyring = || self.keyring.map(|name| format!("`{name}` in the keyring"));
        env.or_else(file).or_else(keyring)
    }

    /// The key, if one is written down: from the environment, from a file that
    /// nobody else may read, or from the keyring.
    ///
    /// # Errors
    /// `address`: it is not where it should be, in words.
    pub fn key(&self, around: &Surroundings<'_>) -> Result<Option<String>, ModelError> {
        if let Some(name) = self.env {
            return match (around.variable)(name) {
                Some(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
                _ => Err(ModelError::Address(format!(
                    "the variable `{name}` that `key_env` names holds no key"
                ))),
            };
        }
        match (self.file, self.keyring) {
            (Some(file), _) => key_in(&placed(file, around)).map(Some),
            (None, Some(name)) => keyring::key(name).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// Whether a variable can have this name. It is not told: what is none is most often the key.
///
/// # Errors
/// What is wrong, in words.
pub fn named_variable(name: &str) -> Result<(), String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(is_letter)
        && redact::masked(name, redact::Mask::Ends) == name;
    match is_name {
        true => Ok(()),
        false => Err(
            "`key_env` is the name of a variable that holds the key, such as OPENAI_API_KEY, and \
             what is given is no such name; a key itself goes into a file that `key_file` names"
                .to_owned(),
        ),
    }
}

/// The key in a file, without the end of its line.
///
/// # Errors
/// The file cannot be read, is empty, or others may read it.
pub fn key_in(path: &Path) -> Result<String, ModelError> {
    use std::os::unix::fs::PermissionsExt as _;
    let wrong =
        |why: String| ModelError::Address(format!("the key file `{}` {why}", path.display()));
    let read = || -> std::io::Result<(String, u32)> {
        let text = given_file::text(path, KEY_BYTES_MAX, Pipes::Read)?;
        Ok((text, std::fs::metadata(path)?.permissions().mode()))
    };
    let (text, mode) = read().map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if mode & 0o077 != 0 {
        return Err(wrong(format!(
            "may be read by others (mode {:o}); `chmod 600` makes it yours",
            mode & 0o777
        )));
    }
    match text.trim() {
        "" => Err(wrong("is empty".to_owned())),
        key => Ok(key.to_owned()),
    }
}

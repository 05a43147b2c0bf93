//! From the words of a configuration to a model that can be asked.

use std::{fmt, path::Path, time::Duration};

use super::{
    Backend, Cancel, ModelError, ReplyLimits, Structured,
    http::{HttpConfig, HttpModel},
    keyring,
    llama::{self, LlamaConfig, LlamaModel},
    scripted::Scripted,
};
use crate::config::models::{BackendWords, Kind};

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

/// Opens the model configured. Nothing is sent yet.
///
/// # Errors
/// `address`: what is configured cannot be used, in words.
pub fn open(
    words: &BackendWords,
    around: &Surroundings<'_>,
    cancel: &Cancel,
) -> Result<Backend, ModelError> {
    match words.kind() {
        Kind::Http => {
            let config = HttpConfig {
                base_url: words.base_url().to_owned(),
                key: words.key_places().key(around)?,
                structured: words
                    .structured
                    .as_deref()
                    .and_then(Structured::parse)
                    .unwrap_or_default(),
                proxy: words.proxy.clone(),
                retries: words.retries.unwrap_or(2),
                extra: words.extra_fields(),
                limits: limits(words),
            };
            let place = config.base_url.clone();
            Ok(Backend {
                model: words.model.clone(),
                place,
                port: Box::new(HttpModel::configured(config)?.with_cancel(cancel.clone())),
            })
        }
        Kind::Llama => {
            let model = in_a_file(words, around)?.with_cancel(cancel.clone());
            Ok(Backend {
                model: words.model.clone(),
                place: placed(words.file.as_deref().unwrap_or_default(), around)
                    .display()
                    .to_string(),
                port: Box::new(model),
            })
        }
        Kind::Scripted => {
            let path = words.file.as_deref().unwrap_or_default();
            let path = placed(path, around);
            Ok(Backend {
                model: words.model.clone(),
                place: path.display().to_string(),
                port: Box::new(Scripted::read(&path)?),
            })
        }
    }
}

/// The model in a file, run by the program itself.
///
/// # Errors
/// `address`: the program cannot.
pub fn in_a_file(
    words: &BackendWords,
    around: &Surroundings<'_>,
) -> Result<LlamaModel, ModelError> {
    if !llama::is_built_in() {
        return Err(ModelError::Address(llama::NOT_BUILT_IN.to_owned()));
    }
    let file = placed(words.file.as_deref().unwrap_or_default(), around);
    Ok(LlamaModel::new(LlamaConfig {
        context: words.context_tokens,
        threads: words.threads,
        memory_bytes_max: words.memory_max_mb.map(|mib| mib.saturating_mul(1 << 20)),
        temperature: words.temperature.map(|warmth| warmth as f32),
        seed: words.seed.unwrap_or(0),
        limits: limits(words),
        ..LlamaConfig::of(file)
    }))
}

/// The bounds configured, within the usual ones.
fn limits(words: &BackendWords) -> ReplyLimits {
    let usual = ReplyLimits::default();
    ReplyLimits {
        time_max: words
            .timeout_seconds
            .map_or(usual.time_max, Duration::from_secs),
        bytes_max: words.reply_bytes_max.unwrap_or(usual.bytes_max),
        tokens_max: words.tokens_max,
    }
}

fn placed(path: &str, around: &Surroundings<'_>) -> std::path::PathBuf {
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
        let places = [self.env, self.file, self.keyring];
        if places.into_iter().flatten().count() > 1 {
            return Err(
                "the key comes from one of `key_env`, `key_file` and `key_keyring`, not from more"
                    .to_owned(),
            );
        }
        Ok(())
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

/// The key in a file, without the end of its line.
///
/// # Errors
/// The file cannot be read, is empty, or others may read it.
pub fn key_in(path: &Path) -> Result<String, ModelError> {
    use std::os::unix::fs::PermissionsExt as _;
    let wrong =
        |why: String| ModelError::Address(format!("the key file `{}` {why}", path.display()));
    let read = || -> std::io::Result<(String, u32)> {
        let mode = std::fs::metadata(path)?.permissions().mode();
        Ok((std::fs::read_to_string(path)?, mode))
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

//! The models in the configuration file: the one that plans, and the one that
//! reads what nobody vouches for.

pub mod open;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{Structured, key::KeyPlaces};

/// Where a model is, if nothing says so.
pub(super) const LOCAL_SERVER: &str = "http://127.0.0.1:8080/v1";

/// The table `[models]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelsWords {
    /// Sees what the user says and what may be used, and plans.
    #[serde(default)]
    pub planner: Option<BackendWords>,
    /// Reads untrusted data, with no tools; without it, the planner's backend
    /// does so in a conversation of its own.
    #[serde(default)]
    pub quarantined: Option<BackendWords>,
}

impl ModelsWords {
    /// The model that reads what nobody vouches for.
    #[must_use]
    pub fn quarantined(&self) -> Option<&BackendWords> {
        self.quarantined.as_ref().or(self.planner.as_ref())
    }

    /// What is wrong with it, in words.
    ///
    /// # Errors
    /// The words.
    pub fn check(&self) -> Result<(), String> {
        for (name, words) in [
            ("planner", &self.planner),
            ("quarantined", &self.quarantined),
        ] {
            if let Some(words) = words {
                words
                    .check()
                    .map_err(|why| format!("models.{name}: {why}"))?;
            }
        }
        Ok(())
    }
}

/// Which kind of backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An address that speaks chat completions.
    Http,
    /// A file with the answers.
    Scripted,
    /// A model in a GGUF file, run by the program itself.
    Llama,
}

/// One model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendWords {
    /// `http` (the default), `llama` or `scripted`.
    #[serde(default)]
    pub backend: Option<String>,
    /// Its name, as its backend knows it.
    pub model: String,
    /// Where it is.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The answers of a scripted one; the model of one run by the program.
    #[serde(default)]
    pub file: Option<String>,
    /// The variable of the environment that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<String>,
    /// Its name in the keyring of the desktop, below `service hermitcrab`.
    #[serde(default)]
    pub key_keyring: Option<String>,
    /// How it is told the form of an answer: `json_schema`, `json_object`,
    /// `gbnf` or `none`.
    #[serde(default)]
    pub structured: Option<String>,
    /// An address to go through. The environment's proxies are not used.
    #[serde(default)]
    pub proxy: Option<String>,
    /// How long one answer may take.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// Further tries where nobody answered or the backend was too busy.
    #[serde(default)]
    pub retries: Option<u32>,
    /// How long an answer may be.
    #[serde(default)]
    pub reply_bytes_max: Option<u64>,
    /// How many tokens the model may write.
    #[serde(default)]
    pub tokens_max: Option<u32>,
    /// How freely it chooses its words.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// How long a conversation may be, in tokens, its answer included.
    #[serde(default)]
    pub context_tokens: Option<u32>,
    /// Threads that count; for `llama`.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Memory it may take besides its file, in MiB; for `llama`.
    #[serde(default)]
    pub memory_max_mb: Option<u64>,
    /// What chance begins with; for `llama`.
    #[serde(default)]
    pub seed: Option<u32>,
    /// Fields that are added to each request.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl BackendWords {
    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.backend.as_deref() {
            Some("scripted") => Kind::Scripted,
            Some("llama") => Kind::Llama,
            _ => Kind::Http,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.base_url.as_deref().unwrap_or(LOCAL_SERVER)
    }

    /// What is added to each request.
    #[must_use]
    pub fn extra_fields(&self) -> Map<String, Value> {
        let mut extra = self.extra.clone();
        if let Some(temperature) = self.temperature {
            extra.insert("temperature".to_owned(), temperature.into());
        }
        extra
    }

    fn check(&self) -> Result<(), String> {
        match self.backend.as_deref() {
            None | Some("http") => {}
            Some("scripted" | "llama") if self.file.is_some() => {}
            Some("llama") => return Err("a model run by the program needs a `file`".to_owned()),
            Some("scripted") => return Err("a scripted model needs a `file`".to_owned()),
            Some(other) => {
                return Err(format!(
                    "the backend `{other}` is not http, llama or scripted"
                ));
            }
        }
        self.check_llama()?;
        if let Some(structured) = &self.structured
            && Structured::parse(structured).is_none()
        {
            return Err(format!(
                "`structured` is json_schema, json_object, gbnf or none, not `{structured}`"
            ));
        }
        self.key_places().check()
    }

    /// Where its key is.
    #[must_use]
    pub fn key_places(&self) -> KeyPlaces<'_> {
        KeyPlaces {
            env: self.key_env.as_deref(),
            file: self.key_file.as_deref(),
            keyring: self.key_keyring.as_deref(),
        }
    }

    /// What counts for one kind alone is set for no other: it would be read by nobody.
    fn check_llama(&self) -> Result<(), String> {
        let own = [
            ("threads", self.threads.is_some()),
            ("memory_max_mb", self.memory_max_mb.is_some()),
            ("seed", self.seed.is_some()),
        ];
        let others = [
            ("base_url", self.base_url.is_some()),
            ("key_env", self.key_env.is_some()),
            ("key_file", self.key_file.is_some()),
            ("key_keyring", self.key_keyring.is_some()),
            ("structured", self.structured.is_some()),
            ("proxy", self.proxy.is_some()),
            ("retries", self.retries.is_some()),
            ("extra", !self.extra.is_empty()),
        ];
        let is_llama = self.kind() == Kind::Llama;
        let (unread, whose) = if is_llama {
            (
                others.as_slice(),
                "counts for other backends, not for llama",
            )
        } else {
            (own.as_slice(), "counts for the backend llama alone")
        };
        if let Some((name, _)) = unread.iter().find(|(_, is_set)| *is_set) {
            return Err(format!("`{name}` {whose}"));
        }
        if self.kind() == Kind::Scripted && self.context_tokens.is_some() {
            return Err("`context_tokens` counts for models, not for scripted".to_owned());
        }
        let zero = [
            ("context_tokens", self.context_tokens == Some(0)),
            ("threads", self.threads == Some(0)),
            ("memory_max_mb", self.memory_max_mb == Some(0)),
        ];
        if let Some((name, _)) = zero.iter().find(|(_, is_zero)| *is_zero) {
            return Err(format!("`{name}` is at least 1"));
        }
        Ok(())
    }
}

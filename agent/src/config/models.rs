//! The models in the configuration file: the one that plans, and the one that
//! reads what nobody vouches for.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::Structured;

/// Where a model is, if nothing says so.
const LOCAL_SERVER: &str = "http://127.0.0.1:8080/v1";

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
}

/// One model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendWords {
    /// `http` (the default) or `scripted`.
    #[serde(default)]
    pub backend: Option<String>,
    /// Its name, as its backend knows it.
    pub model: String,
    /// Where it is.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The file of a scripted one.
    #[serde(default)]
    pub file: Option<String>,
    /// The variable of the environment that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<String>,
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
            Some("scripted") if self.file.is_some() => {}
            Some("scripted") => return Err("a scripted model needs a `file`".to_owned()),
            Some(other) => return Err(format!("the backend `{other}` is not http or scripted")),
        }
        if let Some(structured) = &self.structured
            && Structured::parse(structured).is_none()
        {
            return Err(format!(
                "`structured` is json_schema, json_object, gbnf or none, not `{structured}`"
            ));
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            return Err(
                "the key comes from `key_env` or from `key_file`, not from both".to_owned(),
            );
        }
        Ok(())
    }
}

//! From the words of a configuration to a model that can be asked.

use std::time::Duration;

use crate::{
    cancel::Cancel,
    config::models::{BackendWords, Kind},
    model::{
        Backend, ModelError, ReplyLimits, Structured,
        http::{HttpConfig, HttpModel},
        key::{Surroundings, placed},
        llama::{self, LlamaConfig, LlamaModel},
        scripted::Scripted,
    },
};

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
                key_place: words.key_places().words(),
                structured: words
                    .structured
                    .as_deref()
                    .and_then(Structured::parse)
                    .unwrap_or_default(),
                proxy: words.proxy.clone(),
                retries: words.retries.unwrap_or(2),
                extra: words.extra_fields(),
                limits: limits(words),
                context: words.context_tokens.map(u64::from),
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

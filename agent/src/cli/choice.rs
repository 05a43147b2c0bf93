//! Which model a command talks to: the one of its line, or else the configured one.

use std::path::PathBuf;

use super::{Trouble, open};
use crate::{
    ambient,
    cancel::Cancel,
    config::models::{BackendWords, Kind},
    exit,
    model::{
        Backend, ModelError,
        http::{HttpConfig, HttpModel},
        key::{key_in, named_variable},
    },
    runtime::{GrantWords, Runtime},
};

/// What such a command takes besides the setting.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// The model's name, as its backend knows it [default: the one of `models.planner` in the configuration]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Where the model is: an address that speaks chat completions
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// A second model that may propose a grant where something was refused; you accept it, or not
    #[arg(long, value_name = "NAME")]
    pub judge: Option<String>,
    /// The variable of the environment that holds the key for it
    #[arg(long, value_name = "NAME", conflicts_with = "key_file")]
    key_env: Option<String>,
    /// A file that holds the key for it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// What is said where a model is needed and none is configured.
pub const NO_MODEL: &str = "no model is configured; name one with `--model NAME` and where it is with `--base-url URL`, or once and for all with `hermitcrab config backend http --model NAME --base-url URL`";

/// The model chosen on the command line, or else the configured one.
pub fn backend(
    ground: &open::Ground,
    choice: &Choice,
    cancel: &Cancel,
) -> Result<Option<Backend>, Trouble> {
    let wrong = |error: ModelError| (error.to_string(), exit::USAGE);
    // Without a name the configured model is meant, at another address or with another key. The
    // configured key goes nowhere else than the configuration says.
    let planner = &ground.config.models().planner;
    let configured = planner.as_ref().filter(|words| words.kind() == Kind::Http);
    let has_key = choice.key_env.is_some() || choice.key_file.is_some();
    let is_besides = choice.base_url.is_some() || has_key;
    let model = match (&choice.model, configured) {
        (Some(model), _) => Some(model),
        (None, Some(words)) if is_besides => Some(&words.model),
        (None, None) if is_besides => {
            let why = "`--base-url`, `--key-env` and `--key-file` are for a model at an address, and none is configured; name it with `--model NAME`";
            return Err((why.to_owned(), exit::USAGE));
        }
        (None, _) => None,
    };
    if let Some(model) = model {
        let of_the_configured = || match choice.model {
            Some(_) => None,
            None => configured.map(BackendWords::base_url),
        };
        let base = choice.base_url.as_deref().or_else(of_the_configured);
        let (key, key_place) = key(choice).map_err(wrong)?;
        let base_url = base.unwrap_or("http://127.0.0.1:8080/v1").to_owned();
        let config = HttpConfig {
            base_url: base_url.clone(),
            key,
            key_place,
            retries: 2,
            ..HttpConfig::default()
        };
        let port = HttpModel::configured(config).map_err(wrong)?;
        return Ok(Some(Backend {
            model: model.clone(),
            place: base_url,
            port: Box::new(port.with_cancel(cancel.clone())),
        }));
    }
    match planner {
        Some(words) => ground.model(words, cancel).map(Some),
        None => Ok(None),
    }
}

/// The key that the command line names, and where it is in words.
fn key(choice: &Choice) -> Result<(Option<String>, Option<String>), ModelError> {
    let Some(name) = &choice.key_env else {
        let key = choice.key_file.as_deref().map(key_in).transpose()?;
        let place = choice.key_file.as_ref();
        return Ok((
            key,
            place.map(|file| format!("the file `{}`", file.display())),
        ));
    };
    named_variable(name).map_err(ModelError::Address)?;
    let value = ambient::variable(name).map(|key| key.trim().to_owned());
    match value.filter(|key| !key.is_empty()) {
        Some(key) => Ok((Some(key), Some(format!("the variable `{name}`")))),
        None => Err(ModelError::Address(format!(
            "the variable `{name}` that `--key-env` names holds no key; does your shell export it?"
        ))),
    }
}

/// Naming the model, on the command line or in the configuration, is the
/// user's grant to talk to it.
pub fn let_talk(runtime: &mut Runtime, backend: &Backend) -> Result<(), Trouble> {
    let talk = GrantWords::new("model.send", &backend.model);
    let agent = runtime.first_agent();
    runtime
        .grant(agent, &talk)
        .map(drop)
        .map_err(|error| (error.to_string(), exit::USAGE))
}

//! `model`: a table `[models.planner]` that could be taken over.

use serde::{Deserialize, Serialize};

use super::super::settings::Model;
use super::Proposal;

/// The table, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProposedModel {
    /// Its name.
    pub name: String,
    /// Where it is, if that is said.
    pub base_url: Option<String>,
    /// How long a conversation may be, if that is said.
    pub context_tokens: Option<u64>,
    /// Who serves it, as Hermes calls them.
    pub provider: Option<String>,
}

pub(super) fn proposal(model: &Model) -> Proposal {
    let mut said = Vec::new();
    for (key, value) in [
        ("default", &model.name),
        ("provider", &model.provider),
        ("base_url", &model.base_url),
    ] {
        said.extend(value.as_ref().map(|value| format!("{key} {value}")));
    }
    said.extend(
        model
            .context_tokens
            .map(|tokens| format!("context_length {tokens}")),
    );
    let mut here = match &model.name {
        Some(_) => "`[models.planner]` in `hermitcrab.toml`, as a comment: no model is talked to until it is named. It is reached at an address that speaks chat completions; Hermes' `.env` and `auth.json` are not read, so its key is named as well",
        None => "no model is talked to until one is named",
    }
    .to_owned();
    if !model.besides.is_empty() {
        here.push_str(&format!(
            "; without a counterpart: {}",
            model.besides.join(", ")
        ));
    }
    Proposal {
        id: "model".to_owned(),
        from: "model".to_owned(),
        said: match said.is_empty() {
            true => "not stated".to_owned(),
            false => said.join(", "),
        },
        in_hermes: "this model works for you, and whoever serves it is sent what it reads"
            .to_owned(),
        here,
        confirm: "which model works for you: `hermitcrab config backend http --model NAME --base-url URL`, with `--key-env`, `--key-file` or `--key-keyring` where it wants a key; then `hermitcrab model check`".to_owned(),
        model: model.name.clone().map(|name| ProposedModel {
            name,
            base_url: model.base_url.clone(),
            context_tokens: model.context_tokens,
            provider: model.provider.clone(),
        }),
        ..Proposal::default()
    }
}

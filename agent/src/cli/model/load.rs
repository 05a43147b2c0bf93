//! `model load`: is a file one that works here, and how fast is it?

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    cli::{Trouble, open},
    config::models::{Kind, open as opening},
    exit,
    model::{
        Message, ModelError, ModelPort as _, ModelRequest, ReplyLimits, Schema,
        llama::{self, LlamaConfig, LlamaModel},
    },
    screen::visible,
};

/// How long loading and answering may take.
const TIME_MAX: Duration = Duration::from_secs(600);
/// Tokens of the answer.
const TOKENS_MAX: u32 = 32;

/// Loads each, and says what was seen.
pub fn load(files: &[PathBuf]) -> Result<u8, Trouble> {
    if !llama::is_built_in() {
        return Err((llama::NOT_BUILT_IN.to_owned(), exit::ENVIRONMENT));
    }
    let models = if files.is_empty() {
        configured()?
    } else {
        let named = |file: &PathBuf| (file.clone(), LlamaModel::new(LlamaConfig::of(file.clone())));
        files.iter().map(named).collect()
    };
    if models.is_empty() {
        return Err((
            "no file is named, and no configured model is one; `hermitcrab model load FILE`"
                .to_owned(),
            exit::USAGE,
        ));
    }
    let mut code = exit::OK;
    for (file, mut model) in models {
        if let Err(error) = tried(&file, &mut model) {
            println!("{}: {error}", visible(&file.display().to_string()));
            code = exit::TOOL_FAILED;
        }
    }
    Ok(code)
}

/// The models of the configuration that this program runs.
fn configured() -> Result<Vec<(PathBuf, LlamaModel)>, Trouble> {
    let ground = open::configured()?;
    let around = ground.surroundings();
    let models = ground.config.models();
    let roles = [models.planner.as_ref(), models.quarantined.as_ref()];
    let mut found = Vec::new();
    for words in roles.into_iter().flatten() {
        if words.kind() == Kind::Llama {
            let model = opening::in_a_file(words, &around)
                .map_err(|error| (error.to_string(), exit::USAGE))?;
            found.push((model.file().to_owned(), model));
        }
    }
    Ok(found)
}

fn tried(file: &Path, model: &mut LlamaModel) -> Result<(), ModelError> {
    let began = Instant::now();
    let loaded = model.load()?;
    let took = began.elapsed();
    println!("{}:", visible(&file.display().to_string()));
    println!(
        "    architecture {}, {} parameters, {} tokens known, {}",
        visible(&loaded.architecture),
        loaded.parameters,
        loaded.vocabulary,
        if loaded.has_template {
            "with a template for conversations"
        } else {
            "without a template for conversations"
        }
    );
    let memory = model.memory_bytes().map_or_else(String::new, |bytes| {
        format!(", {} MiB of memory", bytes >> 20)
    });
    println!(
        "    loaded in {} ms, {} tokens of context{memory}",
        took.as_millis(),
        loaded.context
    );
    let messages = [Message::User("Say hello.".to_owned())];
    let limits = ReplyLimits {
        time_max: TIME_MAX,
        bytes_max: 1 << 20,
        tokens_max: Some(TOKENS_MAX),
    };
    // Held to letters, as every answer here is held to a form.
    let schema = Schema {
        name: "letters".to_owned(),
        json: json!({"type": "string"}),
        grammar: Some("root ::= [ -~]+".to_owned()),
    };
    let request = ModelRequest::new("", &messages)
        .shaped(&schema)
        .within(limits);
    match model.complete(request) {
        // What it says is nothing to go by here; that it says something is.
        Ok(_) | Err(ModelError::CutOff) => {}
        Err(error) => return Err(error),
    }
    let done = model.last();
    println!(
        "    read {} tokens at {} a second, wrote {} at {} a second",
        done.read,
        rate(done.read, done.reading_micros),
        done.written,
        rate(done.written, done.writing_micros)
    );
    Ok(())
}

/// How many a second.
fn rate(tokens: u64, micros: u64) -> u64 {
    tokens
        .saturating_mul(1_000_000)
        .checked_div(micros)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_rate_of_nothing_is_nothing() {
        assert_eq!((rate(10, 500_000), rate(1, 0), rate(0, 5)), (20, 0, 0));
    }
}

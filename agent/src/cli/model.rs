//! `model`: the models a person has, and whether they work.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

mod load;

use super::{Trouble, as_json::print_json, open, say, tell};
use crate::{
    ambient,
    cancel::Cancel,
    config::models::BackendWords,
    exit,
    model::{
        Message, ModelRequest, ReplyLimits, Schema,
        gguf::{self, Gguf},
        llama,
    },
    screen::visible,
};

/// Files looked at below the usual places.
const FILES_MAX: usize = 20_000;
/// How deep it is looked.
const DEPTH_MAX: u32 = 6;

/// What to do with models.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// One JSON object a line, for programs, as `model list --json`
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show the models that are configured, and the GGUF files you have
    List {
        /// Look for files here as well
        dirs: Vec<PathBuf>,
        /// One JSON object a line, for programs
        #[arg(long)]
        json: bool,
    },
    /// Ask the configured models something, or look whether files are whole
    Check {
        /// GGUF files
        files: Vec<PathBuf>,
    },
    /// Load GGUF files, each in a process of its own, and see them answer
    Load {
        /// GGUF files; without one, those that are configured
        files: Vec<PathBuf>,
    },
}

pub fn model(arguments: &ModelArgs) -> u8 {
    let done = match &arguments.what {
        None => list(&[], arguments.json),
        Some(What::List { dirs, json }) => list(dirs, *json || arguments.json),
        Some(_) if arguments.json => Err((
            "`--json` is for `model list`, and not for this".to_owned(),
            exit::USAGE,
        )),
        Some(What::Check { files }) if files.is_empty() => check(),
        Some(What::Check { files }) => Ok(whole(files)),
        Some(What::Load { files }) => load::load(files),
    };
    done.unwrap_or_else(|(message, code)| {
        say(&message);
        code
    })
}

fn list(dirs: &[PathBuf], is_json: bool) -> Result<u8, Trouble> {
    let ground = open::configured()?;
    for (role, words) in roles(&ground) {
        match words {
            _ if is_json => print_json(&role_as_json(role, words)),
            Some(words) => tell(&format!(
                "{role:<12} {} ({})",
                visible(&words.model),
                visible(words.file.as_deref().unwrap_or_else(|| words.base_url()))
            )),
            None => tell(&format!(
                "{role:<12} none; `hermitcrab config backend http --model NAME --base-url URL` names one, `hermitcrab config backend llama --file FILE` one in a file"
            )),
        }
    }
    let home = &ground.places.home;
    let usual = [
        ".cache/llama.cpp",
        ".cache/huggingface/hub",
        ".cache/lm-studio/models",
        ".lmstudio/models",
        ".hermit/models",
        ".local/share/models",
        "models",
        "Models",
    ];
    let mut found = Vec::new();
    let mut looked_at = 0;
    for dir in usual
        .iter()
        .map(|dir| home.join(dir))
        .chain(dirs.iter().cloned())
    {
        look(&dir, DEPTH_MAX, &mut looked_at, &mut found);
    }
    found.sort();
    found.dedup();
    let mut code = exit::OK;
    for dir in dirs {
        if let Err(error) = std::fs::read_dir(dir) {
            code = exit::USAGE;
            say(&unseen(dir, &error));
        }
    }
    for path in &found {
        match is_json {
            true => print_json(&file_as_json(path)),
            false => tell(&format!(
                "{}\n    {}",
                visible(&path.display().to_string()),
                about(path)
            )),
        }
    }
    if is_json {
        return Ok(code);
    }
    if found.is_empty() {
        let place = match dirs {
            [] => "in the usual places",
            _ => "there or in the usual places",
        };
        tell(&format!(
            "no GGUF files {place}; `hermitcrab model list DIR` looks elsewhere"
        ));
    } else {
        tell(&format!(
            "to use one: {}`llama-server -m FILE`, then `hermitcrab config backend http --model NAME`",
            if llama::is_built_in() {
                "`hermitcrab config backend llama --file FILE`; or "
            } else {
                ""
            }
        ));
    }
    Ok(code)
}

fn role_as_json(role: &str, words: Option<&BackendWords>) -> Value {
    json!({
        "role": role,
        "model": words.map(|words| &words.model),
        "at": words.map(|words| words.file.as_deref().unwrap_or_else(|| words.base_url())),
    })
}

fn file_as_json(path: &Path) -> Value {
    let file = path.to_string_lossy();
    match gguf::read(path) {
        Ok(gguf) => json!({
            "file": file,
            "name": gguf.name,
            "architecture": gguf.architecture,
            "parameters": gguf.parameters,
            "context_tokens": gguf.context,
            "bytes": gguf.bytes,
            "is_cut_off": gguf.is_cut_off(),
        }),
        Err(error) => json!({"file": file, "why": error.to_string()}),
    }
}

/// What is said of a directory somebody named that cannot be looked into.
fn unseen(dir: &Path, error: &std::io::Error) -> String {
    let shown = visible(&dir.display().to_string());
    match error.kind() {
        std::io::ErrorKind::NotADirectory => {
            format!("`{shown}` is no directory; `hermitcrab model check {shown}` looks at a file")
        }
        _ => format!(
            "cannot look for models in `{shown}`: {error}; name a directory that you can list"
        ),
    }
}

fn roles(ground: &open::Configured) -> [(&'static str, Option<&BackendWords>); 2] {
    let models = ground.config.models();
    [
        ("planner", models.planner.as_ref()),
        ("quarantined", models.quarantined()),
    ]
}

/// GGUF files below a directory; links are not followed.
fn look(dir: &Path, depth: u32, looked_at: &mut usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        *looked_at += 1;
        if *looked_at > FILES_MAX {
            return;
        }
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 1 {
            look(&path, depth - 1, looked_at, found);
        } else if path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
        {
            found.push(path);
        }
    }
}

fn about(path: &Path) -> String {
    match gguf::read(path) {
        Ok(gguf) => described(&gguf),
        Err(error) => error.to_string(),
    }
}

fn described(gguf: &Gguf) -> String {
    let name = gguf.name.as_deref().map(visible).unwrap_or_default();
    let kind = gguf
        .architecture
        .as_deref()
        .map(visible)
        .unwrap_or_default();
    let millions = gguf.parameters / 1_000_000;
    let context = gguf.context.map_or_else(String::new, |tokens| {
        format!(", {tokens} tokens of context")
    });
    let whole = if gguf.is_cut_off() {
        format!(
            "; CUT OFF: {} bytes of at least {}",
            gguf.bytes, gguf.bytes_needed
        )
    } else {
        String::new()
    };
    format!(
        "{name} {kind}, {millions} million parameters{context}, {} MiB{whole}",
        gguf.bytes >> 20
    )
    .trim_start()
    .to_owned()
}

fn whole(files: &[PathBuf]) -> u8 {
    let mut code = exit::OK;
    for file in files {
        let (words, holds) = match gguf::read(file) {
            Ok(gguf) => (described(&gguf), !gguf.is_cut_off()),
            Err(error) => (error.to_string(), false),
        };
        tell(&format!(
            "{}: {words}",
            visible(&file.display().to_string())
        ));
        if !holds {
            code = exit::TOOL_FAILED;
        }
    }
    code
}

/// Asks each model for a small answer of a form, and says what came.
fn check() -> Result<u8, Trouble> {
    let ground = open::configured()?;
    let cancel = Cancel::default();
    // At the prompt ^C ends nothing by itself.
    ambient::on_interrupt(&cancel).map_err(|error| {
        let message = format!("cannot take ^C in hand: {error}");
        (message, exit::ENVIRONMENT)
    })?;
    let mut code = exit::OK;
    let mut last: Option<&BackendWords> = None;
    for (role, words) in roles(&ground) {
        if cancel.is_thrown() {
            return Ok(exit::INTERRUPTED);
        }
        let Some(words) = words else {
            tell(&format!("{role}: none is configured"));
            code = exit::USAGE;
            continue;
        };
        if last.is_some_and(|other| std::ptr::eq(other, words)) {
            tell(&format!("{role}: the same as the planner"));
            continue;
        }
        last = Some(words);
        let began = Instant::now();
        let asked = ground.model(words, &cancel).and_then(|mut backend| {
            let schema = Schema {
                name: "answer".to_owned(),
                json: json!({"type": "object", "properties": {"works": {"type": "boolean"}},
                    "required": ["works"], "additionalProperties": false}),
                grammar: Some(
                    "root ::= \"{\\\"works\\\":\" (\"true\" | \"false\") \"}\"".to_owned(),
                ),
            };
            let messages = [Message::User(
                "Answer with the JSON object {\"works\": true} and nothing else.".to_owned(),
            )];
            let limits = ReplyLimits {
                time_max: Duration::from_secs(120),
                bytes_max: 1 << 20,
                tokens_max: Some(1000),
            };
            let request = ModelRequest::new(&backend.model, &messages)
                .shaped(&schema)
                .within(limits);
            backend
                .port
                .complete(request)
                .map_err(|error| (error.to_string(), exit::ENVIRONMENT))
        });
        match asked {
            Ok(reply) => {
                let is_json = serde_json::from_str::<serde_json::Value>(reply.text.trim()).is_ok();
                tell(&format!(
                    "{role}: `{}` answers in {} ms{}",
                    visible(&words.model),
                    began.elapsed().as_millis(),
                    if is_json {
                        ", in the form asked for".to_owned()
                    } else {
                        format!(
                            ", but not in the form asked for; try another `models.{role}.structured`: json_schema, json_object, gbnf or none"
                        )
                    }
                ));
            }
            Err((message, failed)) => {
                tell(&format!("{role}: `{}`: {message}", visible(&words.model)));
                code = if cancel.is_thrown() {
                    exit::INTERRUPTED
                } else {
                    failed
                };
            }
        }
    }
    Ok(code)
}

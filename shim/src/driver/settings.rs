//! A case's settings as Hermes' configuration file.
//!
//! Written in block style, as a person would write it, because commands of the
//! cases edit it line by line.
use bisim_world::WorldError;
use bisim_world::protocol::{Drive, Job};
use bisim_world::wire::MODEL_URL;
use serde_json::{Map, Value};

/// What a world's configuration says unless the case says otherwise.
const DEFAULTS: [(&str, &str); 3] = [
    ("approvals.mode", "\"manual\""),
    ("security.tirith_enabled", "false"),
    ("security.allow_lazy_installs", "false"),
];

/// What else it says where Hermes' own loop runs: nothing about the machine
/// is probed for the model's information, by programs or over the network.
const DEFAULTS_OF_THE_LOOP: [(&str, &str); 2] = [
    ("agent.environment_probe", "false"),
    ("model.context_length", "128000"),
];

/// And where its server for editors runs, which finds its model by itself.
const DEFAULTS_OF_THE_SERVER: [(&str, &str); 5] = [
    ("agent.environment_probe", "false"),
    ("model.context_length", "128000"),
    ("model.default", "\"scripted\""),
    ("model.provider", "\"custom\""),
    ("model.api_key", "\"none\""),
];

/// The text of `config.yaml` for a job's dotted settings.
pub(super) fn config(job: &Job) -> Result<String, WorldError> {
    let loop_defaults = match job.drive {
        Drive::Calls => &[][..],
        Drive::Conversation => &DEFAULTS_OF_THE_LOOP,
        Drive::Wire => &DEFAULTS_OF_THE_SERVER,
    };
    let bad = |error: String| WorldError::new("write settings", error);
    let mut tree = Map::new();
    for (name, value) in DEFAULTS.iter().chain(loop_defaults) {
        let value = serde_json::from_str(value).map_err(|error| bad(error.to_string()))?;
        insert(&mut tree, name, value).map_err(bad)?;
    }
    if job.drive == Drive::Wire {
        insert(&mut tree, "model.base_url", MODEL_URL.into()).map_err(bad)?;
    }
    for (name, value) in &job.settings {
        insert(&mut tree, name, value.clone()).map_err(bad)?;
    }
    let mut text = String::new();
    write(&tree, 0, &mut text);
    Ok(text)
}

fn insert(tree: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), String> {
    match name.split_once('.') {
        None => {
            tree.insert(name.to_owned(), value);
            Ok(())
        }
        Some((first, rest)) => {
            let below = tree
                .entry(first)
                .or_insert_with(|| Value::Object(Map::new()));
            match below {
                Value::Object(below) => insert(below, rest, value),
                other => Err(format!("`{name}` is below `{first}`, which is {other}")),
            }
        }
    }
}

fn write(tree: &Map<String, Value>, depth: usize, text: &mut String) {
    for (name, value) in tree {
        text.push_str(&"  ".repeat(depth));
        match value {
            Value::Object(below) if !below.is_empty() => {
                text.push_str(&format!("{name}:\n"));
                write(below, depth + 1, text);
            }
            // Every JSON value is a YAML value; plain words stay unquoted.
            Value::String(word) if is_plain(word) => text.push_str(&format!("{name}: {word}\n")),
            other => text.push_str(&format!("{name}: {other}\n")),
        }
    }
}

/// A word that YAML reads as itself.
fn is_plain(word: &str) -> bool {
    const NOT_WORDS: [&str; 10] = [
        "true", "false", "yes", "no", "on", "off", "null", "y", "n", "none",
    ];
    !word.is_empty()
        && word.chars().all(|letter| letter.is_ascii_alphabetic())
        && !NOT_WORDS.contains(&word.to_ascii_lowercase().as_str())
}

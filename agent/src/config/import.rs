//! Taking over the settings of the Python tool Hermit: its `config.json`.
//!
//! Each of its keys either finds its place here or is named as left out, with
//! the reason. Its API key goes into a file of its own that nobody else may
//! read, never into the configuration.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ConfigError, edit::Edit};

/// Bytes read of a file to import.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What became of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// What was set, for a person.
    pub taken: Vec<String>,
    /// What was not, and why.
    pub left: Vec<String>,
}

/// The places of its settings here.
const SAME: [(&str, &str); 9] = [
    ("confirm_before_execute", "safety.confirm_before_execute"),
    ("dry_run_by_default", "safety.dry_run_by_default"),
    ("block_rm_rf", "safety.block_rm_rf"),
    (
        "require_confirmation_for_delete",
        "safety.require_confirmation_for_delete",
    ),
    ("max_files_per_operation", "safety.max_files_per_operation"),
    ("memory_max_mb", "limits.memory_max_mb"),
    ("cpu_quota_percent", "limits.cpu_quota_percent"),
    ("pids_max", "limits.pids_max"),
    ("timeout_seconds", "limits.timeout_seconds"),
];

/// Keys that need no place, and why.
const LEFT: [(&str, &str); 9] = [
    ("setup_complete", "nothing is asked twice here anyway"),
    ("openai_configured", "it is seen from the model itself"),
    ("llamacpp_configured", "it is seen from the model itself"),
    ("enabled", "limits are always on where the machine can"),
    ("llamacpp_n_ctx", "the server that loads the model decides"),
    (
        "llamacpp_n_gpu_layers",
        "the server that loads the model decides",
    ),
    (
        "llamacpp_n_batch",
        "the server that loads the model decides",
    ),
    (
        "llamacpp_n_ubatch",
        "the server that loads the model decides",
    ),
    (
        "auto_organize_extensions",
        "sorting by type knows its kinds itself",
    ),
];

/// Reads `from` and puts what it says into the configuration at `config`.
///
/// # Errors
/// One of the files cannot be read or written; then nothing was changed.
pub fn import(from: &Path, config: &Path) -> Result<Imported, ConfigError> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(from)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| ConfigError::Io(from.to_owned(), error))?;
    let wrong = |why: String| ConfigError::Form(from.to_owned(), why);
    let settings: Value =
        serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    let Value::Object(settings) = settings else {
        return Err(wrong("it is not an object".to_owned()));
    };
    let mut edit = Edit::open(config)?;
    let mut done = Imported::default();
    let mut found = Vec::new();
    for (name, value) in &settings {
        match value {
            // Its sections only group; their keys are each found once.
            Value::Object(section) if !is_a_setting(name) => {
                found.extend(section.iter().map(|(name, value)| (name.as_str(), value)));
            }
            value => found.push((name.as_str(), value)),
        }
    }
    let mut key = None;
    for (name, value) in &found {
        let same = SAME.iter().find(|(theirs, _)| theirs == name);
        let left = LEFT.iter().find(|(theirs, _)| theirs == name);
        match (same, left, *name) {
            (Some((_, ours)), _, _) => match edit.set(ours, &value.to_string()) {
                Ok(()) => done.taken.push(format!("{ours} = {value}")),
                Err(error) => done.left.push(format!("{name}: {error}")),
            },
            (None, Some((_, why)), _) => done.left.push(format!("{name}: {why}")),
            (None, None, "allowed_directories") => directories(value, &mut edit, &mut done)?,
            (None, None, "openai_key") => key = value.as_str().filter(|key| !key.is_empty()),
            (None, None, "openai_model" | "llm_backend" | "llamacpp_model_path") => {}
            (None, None, name) => done
                .left
                .push(format!("{}: this key is not known", name.escape_debug())),
        }
    }
    let text = |wanted: &str| {
        found
            .iter()
            .find(|(name, _)| *name == wanted)
            .and_then(|(_, value)| value.as_str())
            .filter(|text| !text.is_empty())
    };
    let key_file = model(&text, key, config, &mut edit, &mut done)?;
    if let (Some(file), Some(key)) = (&key_file, key) {
        super::edit::replace(file, format!("{key}\n").as_bytes())
            .map_err(|error| ConfigError::Io(file.clone(), error))?;
    }
    edit.save()?;
    Ok(done)
}

/// Whether a key's value may be an object without being a section.
fn is_a_setting(name: &str) -> bool {
    matches!(name, "allowed_directories" | "auto_organize_extensions")
}

fn directories(value: &Value, edit: &mut Edit, done: &mut Imported) -> Result<(), ConfigError> {
    let listed: Vec<&str> = match value {
        Value::Array(list) => list
            .iter()
            .filter_map(|entry| entry.as_str().or_else(|| entry.get("path")?.as_str()))
            .collect(),
        Value::Object(named) => named.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    for directory in listed {
        let is_wide = matches!(directory.trim_end_matches('/'), "" | "~");
        if is_wide || !(directory.starts_with('/') || directory.starts_with("~/")) {
            done.left.push(format!(
                "allowed_directories: `{}` is too wide or no place",
                directory.escape_debug()
            ));
        } else if edit.add_directory(directory)? {
            done.taken
                .push(format!("directories: {}", directory.escape_debug()));
        }
    }
    Ok(())
}

/// The model it used; where its key is to be kept.
fn model<'v>(
    text: &dyn Fn(&str) -> Option<&'v str>,
    key: Option<&str>,
    config: &Path,
    edit: &mut Edit,
    done: &mut Imported,
) -> Result<Option<PathBuf>, ConfigError> {
    if edit.get("models.planner.model").is_some() {
        done.left
            .push("the model: one is configured here already".to_owned());
        return Ok(None);
    }
    if let Some(path) = text("llamacpp_model_path") {
        done.left.push(format!(
            "llamacpp_model_path: start `llama-server -m {}` and name it with `hermitcrab config backend http`",
            path.escape_debug()
        ));
    }
    let Some(name) = text("openai_model").filter(|_| text("llm_backend") != Some("llamacpp"))
    else {
        return Ok(None);
    };
    edit.set("models.planner.model", name)?;
    edit.set("models.planner.base_url", "https://api.openai.com/v1")?;
    done.taken.push(format!("models.planner.model = {name:?}"));
    if key.is_none() {
        return Ok(None);
    }
    let file = config.with_file_name("openai.key");
    edit.set("models.planner.key_file", "openai.key")?;
    done.taken
        .push(format!("its key, into `{}`", file.display()));
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::import;

    #[test]
    fn every_key_is_taken_over_or_named_and_the_secret_stays_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("directory");
        let (from, config) = (
            dir.path().join("config.json"),
            dir.path().join("config.toml"),
        );
        let theirs = serde_json::json!({
            "llm_backend": "openai", "openai_key": "sk-sesame", "openai_model": "gpt-x",
            "allowed_directories": ["~/Downloads", "/", "~"],
            "confirm_before_execute": true, "setup_complete": true,
            "safety": {"block_rm_rf": true, "max_files_per_operation": 100},
            "cgroups": {"enabled": true, "memory_max_mb": 256, "timeout_seconds": "long"},
            "surprise": 1,
        });
        std::fs::write(&from, theirs.to_string()).expect("written");
        let done = import(&from, &config).expect("imported");
        let text = std::fs::read_to_string(&config).expect("read");
        for part in [
            "directories = [\"~/Downloads\"]",
            "confirm_before_execute = true",
            "block_rm_rf = true",
            "max_files_per_operation = 100",
            "memory_max_mb = 256",
            "model = \"gpt-x\"",
            "key_file = \"openai.key\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("sesame"));
        assert!(
            !done
                .taken
                .iter()
                .chain(&done.left)
                .any(|line| line.contains("sesame"))
        );
        let key = dir.path().join("openai.key");
        assert_eq!(std::fs::read_to_string(&key).expect("read"), "sk-sesame\n");
        let mode = std::fs::metadata(&key).expect("seen").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left = done.left.join("\n");
        for part in [
            "surprise",
            "timeout_seconds",
            "setup_complete",
            "`/`",
            "`~`",
        ] {
            assert!(left.contains(part), "{part}: {left}");
        }
        crate::config::read(&config).expect("a configuration");
    }
}

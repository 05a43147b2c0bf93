//! Taking over the settings of the Python tool Hermit: its `config.json`.
//!
//! Each of its keys either finds its place here or is named as left out, with
//! the reason. Its API key goes into a file of its own that nobody else may
//! read, never into the configuration.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ConfigError, edit::Edit};
use crate::{
    given_file::{self, Pipes},
    model::llama,
};

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
const LEFT: [(&str, &str); 8] = [
    ("setup_complete", "nothing is asked twice here anyway"),
    ("openai_configured", "it is seen from the model itself"),
    ("llamacpp_configured", "it is seen from the model itself"),
    ("enabled", "limits are always on where the machine can"),
    (
        "llamacpp_n_gpu_layers",
        "models in files run on processors here; a server decides itself",
    ),
    (
        "llamacpp_n_batch",
        "its size is fixed here; a server decides itself",
    ),
    (
        "llamacpp_n_ubatch",
        "its size is fixed here; a server decides itself",
    ),
    (
        "auto_organize_extensions",
        "sorting by type knows its kinds itself",
    ),
];

/// Why a directory is not the agent's to have, if so.
pub type NotGiven<'n> = &'n dyn Fn(&Path) -> Option<&'static str>;

/// Reads `from` and puts what it says into the configuration at `config`.
///
/// # Errors
/// One of the files cannot be read or written; then nothing was changed.
pub fn import(
    from: &Path,
    config: &Path,
    not_given: NotGiven<'_>,
) -> Result<Imported, ConfigError> {
    import_for(from, config, not_given, llama::is_built_in())
}

/// The same for a program that can run models in files, or cannot.
fn import_for(
    from: &Path,
    config: &Path,
    not_given: NotGiven<'_>,
    runs_files: bool,
) -> Result<Imported, ConfigError> {
    /// Somebody who comes from Hermes may take this for the way.
    const OF_HERMES: &str = "what a home of Hermes holds is looked at by `cargo bisim migrate --hermes-home DIR`, \
                             which writes what could be taken over";
    if from.is_dir() {
        let why = format!("it is a directory; {OF_HERMES}");
        return Err(ConfigError::Form(from.to_owned(), why));
    }
    let wrong = |why: String| ConfigError::Form(from.to_owned(), why);
    let text = given_file::text(from, FILE_BYTES_MAX, Pipes::Read).map_err(|error| {
        match error.kind() {
            // Hermes and Hermit are one letter apart.
            std::io::ErrorKind::NotFound => wrong(format!("it is not there; {OF_HERMES}")),
            std::io::ErrorKind::Other => wrong(error.to_string()),
            _ => ConfigError::Io(from.to_owned(), error),
        }
    })?;
    let settings: Value = serde_json::from_str(&text).map_err(|error| {
        let hint = match text.parse::<toml_edit::DocumentMut>() {
            Ok(_) => {
                "; a configuration of this program's own, such as a migration proposes, is put where \
                 `hermitcrab config path` says, or its keys are set one by one"
            }
            Err(_) if from.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") => {
                &*format!("; {OF_HERMES}")
            }
            Err(_) => "",
        };
        wrong(format!("it is not JSON: {error}{hint}"))
    })?;
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
            (None, None, "allowed_directories") => {
                directories(value, not_given, &mut edit, &mut done)?;
            }
            (None, None, "openai_key") => key = value.as_str().filter(|key| !key.is_empty()),
            // They belong together, and are looked at together below.
            (
                None,
                None,
                "openai_model" | "llm_backend" | "llamacpp_model_path" | "llamacpp_n_ctx",
            ) => {}
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
    let key_file = if edit.get("models.planner.model").is_some() {
        let why = "the model: one is configured here already";
        done.left.push(why.to_owned());
        None
    } else {
        let tokens = found.iter().find(|(name, _)| *name == "llamacpp_n_ctx");
        let file = ModelFile {
            path: text("llamacpp_model_path"),
            tokens: tokens.map(|(_, tokens)| *tokens),
            is_used: text("llm_backend") == Some("llamacpp"),
        };
        if runs_files && file.is_used {
            model_in_a_file(&file, &mut edit, &mut done)?;
        } else {
            file.is_left(&mut done);
        }
        model(&text, key, config, &mut edit, &mut done)?
    };
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

fn directories(
    value: &Value,
    not_given: NotGiven<'_>,
    edit: &mut Edit,
    done: &mut Imported,
) -> Result<(), ConfigError> {
    let listed: Vec<&str> = match value {
        Value::Array(list) => list
            .iter()
            .filter_map(|entry| entry.as_str().or_else(|| entry.get("path")?.as_str()))
            .collect(),
        Value::Object(named) => named.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    for directory in listed {
        let is_a_place =
            directory.starts_with('/') || directory == "~" || directory.starts_with("~/");
        let why_not = match is_a_place {
            true => not_given(Path::new(directory)),
            false => Some("it is no place that is the same everywhere"),
        };
        if let Some(why) = why_not {
            done.left.push(format!(
                "allowed_directories: `{}`: {why}",
                directory.escape_debug()
            ));
        } else if edit.add_directory(directory)? {
            done.taken
                .push(format!("directories: {}", directory.escape_debug()));
        }
    }
    Ok(())
}

/// The model it ran itself.
struct ModelFile<'v> {
    path: Option<&'v str>,
    tokens: Option<&'v Value>,
    /// Whether it is the one it worked with.
    is_used: bool,
}

impl ModelFile<'_> {
    /// Says how a server can run it.
    fn is_left(&self, done: &mut Imported) {
        let Some(path) = self.path else { return };
        let context = match self.tokens {
            Some(tokens) => format!(" -c {tokens}"),
            None => String::new(),
        };
        done.left.push(format!(
            "llamacpp_model_path, llamacpp_n_ctx: start `llama-server -m {}{context}` and name it with `hermitcrab config backend http`",
            path.escape_debug()
        ));
    }
}

/// The model it ran itself becomes one this program runs.
fn model_in_a_file(
    file: &ModelFile<'_>,
    edit: &mut Edit,
    done: &mut Imported,
) -> Result<(), ConfigError> {
    let is_placed = |path: &&str| path.starts_with('/') || path.starts_with("~/");
    let Some(path) = file.path.filter(is_placed) else {
        let why = "llamacpp_model_path: it is no place that is the same everywhere";
        done.left.push(why.to_owned());
        return Ok(());
    };
    let name = Path::new(path).file_stem().unwrap_or_default();
    edit.set("models.planner.model", &name.to_string_lossy())?;
    // What is read as another kind of value is written as a text.
    edit.set("models.planner.file", path)?;
    edit.set("models.planner.backend", "llama")?;
    done.taken.push(format!(
        "models.planner.file = {path:?}, run by the program itself"
    ));
    match file.tokens {
        None => {}
        // Nought is as much as the model was made for.
        Some(tokens) if tokens.as_u64() == Some(0) => done.left.push(
            "llamacpp_n_ctx: 0 asked for all the model can hold; `models.planner.context_tokens` asks for more than usual"
                .to_owned(),
        ),
        Some(tokens) => match edit.set("models.planner.context_tokens", &tokens.to_string()) {
            Ok(()) => done
                .taken
                .push(format!("models.planner.context_tokens = {tokens}")),
            Err(error) => done.left.push(format!("llamacpp_n_ctx: {error}")),
        },
    }
    Ok(())
}

/// The model it used over a network; where its key is to be kept.
fn model<'v>(
    text: &dyn Fn(&str) -> Option<&'v str>,
    key: Option<&str>,
    config: &Path,
    edit: &mut Edit,
    done: &mut Imported,
) -> Result<Option<PathBuf>, ConfigError> {
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
    use std::path::Path;

    use super::{Imported, import, import_for};

    /// A directory with their settings, ours, and what became of each.
    fn imported(theirs: &serde_json::Value, runs_files: bool) -> (String, Imported) {
        let dir = tempfile::tempdir().expect("directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("config.json"), theirs.to_string()).expect("written");
        let done = import_for(
            &at("config.json"),
            &at("config.toml"),
            &|_| None,
            runs_files,
        );
        let done = done.expect("imported");
        if !at("config.toml").exists() {
            return (String::new(), done);
        }
        crate::config::read(&at("config.toml")).expect("a configuration");
        let text = std::fs::read_to_string(at("config.toml")).expect("read");
        (text, done)
    }

    #[test]
    fn a_configuration_of_our_own_is_told_where_it_belongs() {
        let dir = tempfile::tempdir().expect("directory");
        let ours = dir.path().join("config.toml");
        let told = |text: &str| {
            let theirs = dir.path().join("theirs");
            std::fs::write(&theirs, text).expect("written");
            import(&theirs, &ours, &|_| None)
                .expect_err("refused")
                .to_string()
        };
        let hint = "`hermitcrab config path`";
        assert!(told("[safety]\nask = true\n").contains(hint));
        assert!(!told("{\"llm_backend\": ").contains(hint));
        assert!(!ours.exists());
    }

    #[test]
    fn a_model_in_a_file_is_run_here_with_its_context_or_told_how_to_serve_it() {
        let theirs = |tokens: serde_json::Value| {
            serde_json::json!({
                "llm_backend": "llamacpp", "llamacpp_model_path": "/models/tiny.gguf",
                "llamacpp_n_ctx": tokens, "llamacpp_n_gpu_layers": 9, "openai_model": "gpt-x",
            })
        };
        let (text, done) = imported(&theirs(4096.into()), true);
        for part in [
            "backend = \"llama\"",
            "file = \"/models/tiny.gguf\"",
            "model = \"tiny\"",
            "context_tokens = 4096",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("gpt-x"), "{text}");
        assert!(done.left.join("\n").contains("llamacpp_n_gpu_layers"));
        for odd in [
            serde_json::json!(0),
            serde_json::json!(-1),
            serde_json::json!("all"),
        ] {
            let (text, done) = imported(&theirs(odd), true);
            assert!(text.contains("backend = \"llama\""), "{text}");
            assert!(!text.contains("context_tokens"), "{text}");
            assert!(
                done.left.join("\n").contains("llamacpp_n_ctx: "),
                "{done:?}"
            );
        }
        // Without llama.cpp inside, or where it was not what it worked with.
        let (text, done) = imported(&theirs(4096.into()), false);
        assert!(!text.contains("llama"), "{text}");
        let how = "llama-server -m /models/tiny.gguf -c 4096";
        assert!(done.left.join("\n").contains(how), "{done:?}");
        let mut other = theirs(4096.into());
        other["llm_backend"] = "openai".into();
        let (text, done) = imported(&other, true);
        assert!(text.contains("gpt-x") && !text.contains("tiny"), "{text}");
        assert!(done.left.join("\n").contains(how), "{done:?}");
    }

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
        let not_given = |directory: &Path| {
            let is_wide = directory == Path::new("/") || directory == Path::new("~");
            is_wide.then_some("it is too wide")
        };
        let done = import(&from, &config, &not_given).expect("imported");
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

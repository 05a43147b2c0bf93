//! `config`: what is configured, shown and changed.
//!
//! Every change is one of the person's own file. It is made whole or not at
//! all, and what the file says besides, comments included, stays.

mod held;
mod shown;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use hermitcrab_sandbox::spawn::never_shown;

use super::{Trouble, quoted::quoted, say, tell};
use crate::{
    ambient::{self, Places},
    config::{ConfigError, bounds, edit::Edit, import, keys},
    exit,
    model::llama,
    runtime::{lexical, real},
    screen::visible,
};

/// How often a change is made again where somebody else was first.
const TRIES_MAX: u32 = 50;

/// What to do with the configuration.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// One JSON object a line, for programs, as `config show --json`
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show every key, or one: what counts for it and where that is written
    #[command(visible_alias = "get", alias = "list")]
    Show {
        /// The key, with its tables, or a table; without it all are shown
        key: Option<String>,
        /// One JSON object a line, for programs
        #[arg(long)]
        json: bool,
    },
    /// Say where the file is
    Path,
    /// Set a key, such as limits.pids_max
    Set {
        /// The key, with its tables
        key: String,
        /// What to set it to
        #[arg(allow_negative_numbers = true)]
        value: String,
    },
    /// Take a key out again; without one, begin a new file and keep the old one beside it
    Reset {
        /// The key, with its tables
        key: Option<String>,
    },
    /// Let the agent list and read one more directory, or several
    AddDirectory {
        /// The directory
        #[arg(value_name = "DIR", required = true)]
        directories: Vec<PathBuf>,
    },
    /// No longer let it, of one or several
    RemoveDirectory {
        /// The directories, as shown or as they are called
        #[arg(value_name = "DIR", required = true)]
        directories: Vec<PathBuf>,
    },
    /// Say which model works for you, or which one reads what nobody vouches for
    Backend(BackendArgs),
    /// Take over the settings of the Python tool Hermit
    Import {
        /// Its file
        #[arg(value_name = "FILE", default_value = "~/.hermit/config.json")]
        file: PathBuf,
    },
}

/// A model for one of the two roles.
#[derive(Debug, Args)]
struct BackendArgs {
    /// http, llama, scripted, or none to take it out again
    kind: KindArg,
    /// Its name, as its backend knows it; for llama, the file's if it is left out
    #[arg(long, required_if_eq_any = [("kind", "http"), ("kind", "scripted")])]
    model: Option<String>,
    /// Where it is
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The answers of a scripted one, or the GGUF file of llama
    #[arg(long, value_name = "FILE", required_if_eq_any = [("kind", "scripted"), ("kind", "llama")])]
    file: Option<String>,
    /// The variable that holds its key
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key_file", "key_keyring"])]
    key_env: Option<String>,
    /// The file that holds its key
    #[arg(long, value_name = "FILE", conflicts_with = "key_keyring")]
    key_file: Option<String>,
    /// Its name in the keyring; `secret-tool store --label NAME service hermitcrab key NAME` puts it there
    #[arg(long, value_name = "NAME")]
    key_keyring: Option<String>,
    /// How it is told the form of an answer: json_schema, json_object, gbnf or none
    #[arg(long, value_name = "HOW")]
    structured: Option<String>,
    /// For the model that reads what nobody vouches for
    #[arg(long)]
    quarantined: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArg {
    Http,
    Llama,
    Scripted,
    None,
}

pub fn config(arguments: &ConfigArgs) -> u8 {
    let places = match ambient::places() {
        Ok(places) => places,
        Err(error) => {
            say(&error.to_string());
            return exit::ENVIRONMENT;
        }
    };
    match run(arguments, &places) {
        Ok(()) => exit::OK,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn wrong(error: ConfigError) -> Trouble {
    let code = match &error {
        // The words were right, and the machine does not take them.
        ConfigError::Write(..) => exit::ENVIRONMENT,
        ConfigError::Io(..)
        | ConfigError::Form(..)
        | ConfigError::Link(_)
        | ConfigError::Others(..)
        | ConfigError::Change(_)
        | ConfigError::Meanwhile(_) => exit::USAGE,
    };
    (error.to_string(), code)
}

/// The same about the person's own file.
fn of_the_users(error: ConfigError) -> Trouble {
    (error.with_the_way_out(), exit::USAGE)
}

fn run(arguments: &ConfigArgs, places: &Places) -> Result<(), Trouble> {
    let file = &places.config_file;
    match &arguments.what {
        None => shown::show(places, None, arguments.json),
        Some(What::Show { key, json }) => {
            shown::show(places, key.as_deref(), *json || arguments.json)
        }
        Some(_) if arguments.json => Err((
            "`--json` is for `config show`, and not for this".to_owned(),
            exit::USAGE,
        )),
        Some(What::Path) => {
            println!("{}", file.display());
            Ok(())
        }
        Some(What::Set { key, value }) => {
            changed(file, |edit| {
                edit.set(key, value)?;
                let now = edit.get(key).unwrap_or_default();
                if key == "directories" {
                    are_given(&now, places)
                        .map_err(|why| ConfigError::Form(file.to_owned(), why))?;
                }
                Ok(Some(format!("{key} = {now}")))
            })?;
            let more = value
                .parse()
                .ok()
                .and_then(|value| bounds::beyond_this(key, value, &ambient::machine()));
            if let Some(more) = more {
                say(&more);
            }
            if let Some(key) = keys::find(key).filter(|key| held::concerns(key))
                && let Some(why) = held::lacking(&held::rows()).not_held(key)
            {
                say(&format!("`{}` is {why}", key.name));
            }
            Ok(())
        }
        Some(What::Reset { key: Some(key) }) => changed(file, |edit| {
            let usual = keys::find(key).map_or("", |key| key.usual);
            Ok(edit
                .unset(key)?
                .then(|| format!("{key} is not set any more; without it: {usual}")))
        }),
        Some(What::Reset { key: None }) => {
            match Edit::reset(file).map_err(wrong)? {
                Some(aside) => tell(&format!("a new file; the old one is `{}`", aside.display())),
                None => println!("a new file"),
            }
            Ok(())
        }
        Some(What::AddDirectory { directories }) => {
            let names = directories
                .iter()
                .map(|directory| directory_name(directory, places))
                .collect::<Result<Vec<_>, _>>()?;
            changed(file, |edit| {
                let mut added = Vec::new();
                for name in &names {
                    if edit.add_directory(name)? {
                        added.push(format!("`{name}`"));
                    }
                }
                let added = added.join(", ");
                Ok((!added.is_empty()).then(|| {
                    format!("the agent may list and read {added} from its next session on")
                }))
            })?;
            for directory in directories {
                let at = place_of(directory, places);
                if let Some(why) = never_shown(&at) {
                    say(&format!(
                        "commands are not shown `{}`: {why}",
                        visible(&at.to_string_lossy())
                    ));
                }
            }
            Ok(())
        }
        Some(What::RemoveDirectory { directories }) => {
            remove_directories(file, directories, places)
        }
        Some(What::Backend(backend)) => set_backend(file, &places.current, backend),
        Some(What::Import { file: from }) => {
            // One that is not there may come to be there.
            let not_given = |directory: &Path| not_given(&place_of(directory, places), places);
            let done = import::import(&from_here(from, places), file, &not_given).map_err(wrong)?;
            for line in &done.taken {
                tell(&format!("taken over: {line}"));
            }
            for line in &done.left {
                tell(&format!("left out:   {line}"));
            }
            Ok(())
        }
    }
}

/// Changes the file, and says what was changed or that nothing was. Where somebody else was
/// first, what they made of it is changed.
fn changed(
    file: &Path,
    mut change: impl FnMut(&mut Edit) -> Result<Option<String>, ConfigError>,
) -> Result<(), Trouble> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut edit = Edit::open(file).map_err(of_the_users)?;
        let Some(line) = change(&mut edit).map_err(wrong)? else {
            println!("nothing to change");
            return Ok(());
        };
        match edit.save() {
            Ok(()) => {
                tell(&line);
                return Ok(());
            }
            Err(ConfigError::Meanwhile(_)) if tries < TRIES_MAX => {}
            Err(error) => return Err(wrong(error)),
        }
    }
}

/// Takes directories off the list, whatever path or link to them is written here or there. One
/// that is not on it is an error: whoever names it means to close something.
fn remove_directories(
    file: &Path,
    directories: &[PathBuf],
    places: &Places,
) -> Result<(), Trouble> {
    let mut unknown = Vec::new();
    changed(file, |edit| {
        unknown.clear();
        let mut removed = Vec::new();
        for directory in directories {
            let (shown, place) = (directory.to_string_lossy(), place_of(directory, places));
            let is_meant =
                |known: &str| known == shown || place_of(Path::new(known), places) == place;
            match edit.remove_directories(is_meant)? {
                0 => unknown.push(format!("`{}`", visible(&shown))),
                _ => removed.push(format!("`{shown}`")),
            }
        }
        Ok((!removed.is_empty()).then(|| {
            let are = if removed.len() == 1 { "is" } else { "are" };
            format!("{} {are} the agent's no more", removed.join(", "))
        }))
    })?;
    if unknown.is_empty() {
        return Ok(());
    }
    let (unknown, are) = (
        unknown.join(", "),
        if unknown.len() == 1 { "is" } else { "are" },
    );
    let message = format!(
        "{unknown} {are} not on the list of `{}`; `hermitcrab config show directories` shows it",
        visible(&file.to_string_lossy())
    );
    Err((message, exit::USAGE))
}

/// Where a directory lies that is named from here, by the path without links; one that is not
/// there, where it would.
fn place_of(directory: &Path, places: &Places) -> PathBuf {
    let real = real(&from_here(directory, places));
    lexical(&real).unwrap_or(real)
}

/// A directory as it is written into the file.
fn written(path: &Path, places: &Places) -> String {
    match path.strip_prefix(&places.home) {
        Ok(below) => Path::new("~").join(below).to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// The same for one that may be added.
fn directory_name(directory: &Path, places: &Places) -> Result<String, Trouble> {
    let refused = |why: &str| {
        Err((
            format!(
                "`{}` cannot be given to the agent: {why}",
                directory.display()
            ),
            exit::USAGE,
        ))
    };
    let real = match from_here(directory, places).canonicalize() {
        Ok(real) => real,
        // What is kept in one may not have been written yet, such as a first note.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let at = from_here(directory, places);
            let at = quoted(&at.to_string_lossy());
            return refused(&format!("{error}; `mkdir -p {at}` makes it"));
        }
        Err(error) => return refused(&error.to_string()),
    };
    if !real.is_dir() {
        return refused("it is no directory");
    }
    if real.to_str().is_none() {
        return refused("its name is not UTF-8, so no configuration can hold it");
    }
    match not_given(&real, places) {
        Some(why) => refused(why),
        None => Ok(written(&real, places)),
    }
}

/// Whether a whole list of directories, as the file has it, may be the agent's. One that is not
/// there may come to be there.
fn are_given(list: &str, places: &Places) -> Result<(), String> {
    let text = format!("directories = {list}");
    let list: Directories = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    for name in &list.directories {
        let path = Path::new(name);
        let refused = |why: &str| {
            Err(format!(
                "`{}` cannot be given to the agent: {why}",
                visible(name)
            ))
        };
        if !path.is_absolute() && !path.starts_with("~") {
            return refused("it is named from where you are; name it from `/` or `~`");
        }
        if let Some(why) = not_given(&place_of(path, places), places) {
            return refused(why);
        }
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Directories {
    directories: Vec<String>,
}

fn from_here(directory: &Path, places: &Places) -> PathBuf {
    match directory.strip_prefix("~") {
        Ok(rest) => places.home.join(rest),
        Err(_) => places.current.join(directory),
    }
}

/// Why a directory is not the agent's to list and read, whatever spelling leads to it.
fn not_given(real: &Path, places: &Places) -> Option<&'static str> {
    if real == Path::new("/") || places.home.starts_with(real) {
        return Some("it holds your whole home, with your keys; name what is needed in it");
    }
    let own = [
        Some(places.state_dir.as_path()),
        places.config_file.parent(),
    ];
    if own
        .into_iter()
        .flatten()
        .any(|own| own.starts_with(real) || real.starts_with(own))
    {
        return Some("the agent's own files are in it");
    }
    let hidden = real.strip_prefix(&places.home).is_ok_and(|below| {
        below
            .components()
            .any(|part| SECRET_DIRS.iter().any(|name| part.as_os_str() == *name))
    });
    hidden.then_some("keys are kept there")
}

/// Directories of a home that hold keys.
const SECRET_DIRS: [&str; 8] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
];

fn set_backend(file: &Path, current: &Path, backend: &BackendArgs) -> Result<(), Trouble> {
    let role = if backend.quarantined {
        "quarantined"
    } else {
        "planner"
    };
    changed(file, |edit| {
        let kind = match backend.kind {
            KindArg::None => {
                let was = edit.unset_model(role);
                return Ok(was.then(|| format!("there is no {role} model any more")));
            }
            KindArg::Http => "http",
            KindArg::Llama => "llama",
            KindArg::Scripted => "scripted",
        };
        let name = match (
            backend.kind,
            backend.model.as_deref(),
            backend.file.as_deref(),
        ) {
            (KindArg::Llama, None, Some(file)) => {
                let stem = Path::new(file).file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            }
            (_, name, _) => name.unwrap_or_default().to_owned(),
        };
        // A path on the command line begins here, one in the file beside it.
        let from_here = |file: &str| match file.starts_with("~/") {
            true => file.to_owned(),
            false => current.join(file).to_string_lossy().into_owned(),
        };
        let model_file = backend.file.as_deref().map(from_here);
        let key_file = backend.key_file.as_deref().map(from_here);
        let given = [
            ("model", Some(name.as_str())),
            ("file", model_file.as_deref()),
            ("backend", Some(kind)),
            ("base_url", backend.base_url.as_deref()),
            ("key_env", backend.key_env.as_deref()),
            ("key_file", key_file.as_deref()),
            ("key_keyring", backend.key_keyring.as_deref()),
            ("structured", backend.structured.as_deref()),
        ];
        let besides = edit.set_model(role, &given)?;
        if matches!(backend.kind, KindArg::Llama) && !llama::is_built_in() {
            say(llama::NOT_BUILT_IN);
        }
        for file in [&model_file, &key_file].into_iter().flatten() {
            if !file.starts_with("~/") && !Path::new(file).exists() {
                say(&format!("there is no `{}` yet", visible(file)));
            }
        }
        let mut line =
            format!("the {role} model is `{name}`; `hermitcrab model check` tries it out");
        for (what, names) in [
            ("as before", &besides.stays),
            ("taken out, since it does not go with this", &besides.gone),
        ] {
            if !names.is_empty() {
                line.push_str(&format!("\n{what}: {}", names.join(", ")));
            }
        }
        Ok(Some(line))
    })
}

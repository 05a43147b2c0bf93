//! Changing the user's file and leaving everything else in it as it is:
//! comments, order, blanks.
//!
//! What comes out is read like any other configuration before it is written;
//! a change that would make it unusable is refused, and the file is replaced
//! whole or not at all.

mod put;

use std::{
    io,
    path::{Path, PathBuf},
};

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value, value};

pub(in crate::config) use self::put::replace;
use self::put::{alone, made};
use super::{ConfigError, file, keys, models::LOCAL_SERVER, parse};
use crate::model::http::check_address;

/// What a new file begins with.
const HEADER: &str = "# hermitcrab's configuration. `hermitcrab config show` lists every key and what counts;\n# `hermitcrab config set KEY VALUE` changes one and leaves the rest of this file alone.\n";

/// What names the key for the model at an address.
const KEYS_OF_A_PLACE: [&str; 3] = ["key_env", "key_file", "key_keyring"];
/// What counts for a model of whatever kind.
const COUNTS_EVERYWHERE: [&str; 4] = [
    "timeout_seconds",
    "reply_bytes_max",
    "tokens_max",
    "temperature",
];

/// What became of the rest of a table, when a model was described anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Besides {
    /// What is as it was.
    pub stays: Vec<String>,
    /// What was taken out: a key that was for another address or was replaced, and, of a
    /// backend of another kind, what does not count for this one.
    pub gone: Vec<String>,
}

/// A file being changed.
#[derive(Debug)]
pub struct Edit {
    path: PathBuf,
    /// What stood in it when it was read; nothing if there was none.
    was: Option<String>,
    /// What stands before everything in a file that holds nothing else: the
    /// document would put it behind the first table.
    head: String,
    document: DocumentMut,
}

impl Edit {
    /// Reads the file; one that does not exist begins with a word about itself.
    ///
    /// # Errors
    /// It cannot be read, somebody else may write it, or it is no configuration.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        // Where a link leads, the file is.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let was = file::text(&path)?;
        let text = was.clone().unwrap_or_else(|| HEADER.to_owned());
        parse(&path, &text)?;
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            ConfigError::Form(path.clone(), super::one_line(error.message()).into_owned())
        })?;
        let mut edit = Self {
            path,
            was,
            head: String::new(),
            document,
        };
        if edit.document.as_table().is_empty() && !text.trim().is_empty() {
            edit.head = format!("{}\n", text.trim_end());
            edit.document = DocumentMut::new();
        }
        Ok(edit)
    }

    /// The whole file.
    fn text(&self) -> String {
        format!("{}{}", self.head, self.document)
    }

    /// The value at a key, as it is written there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        let mut item = self.document.as_item();
        for part in name.split('.') {
            item = item.get(part)?;
        }
        item.as_value()
            .map(|value| value.to_string().trim().to_owned())
    }

    /// Sets a key. Words that are no number, truth value or list are a text.
    ///
    /// # Errors
    /// There is no such key, or it does not take this.
    pub fn set(&mut self, name: &str, words: &str) -> Result<(), ConfigError> {
        if keys::find(name).is_none() {
            return Err(ConfigError::Change(keys::unknown(name)));
        }
        if name.ends_with(".base_url") {
            check_address(words).map_err(ConfigError::Change)?;
        }
        let literal: Option<Value> = words.parse().ok();
        let text = Value::from(words);
        let tries = literal.into_iter().chain([text]);
        let mut first = None;
        for wanted in tries {
            let before = self.document.clone();
            self.put(name, wanted)?;
            match parse(&self.path, &self.document.to_string()) {
                Ok(_) => return Ok(()),
                Err(error) => {
                    self.document = before;
                    first.get_or_insert(match error {
                        // What was wrong is the value, not the file.
                        ConfigError::Form(_, what) => {
                            ConfigError::Change(not_taken(name, words, &what).unwrap_or(what))
                        }
                        error => error,
                    });
                }
            }
        }
        Err(first.unwrap_or_else(|| ConfigError::Change("there is nothing to set".to_owned())))
    }

    fn put(&mut self, name: &str, wanted: Value) -> Result<(), ConfigError> {
        let (tables, last) = name.rsplit_once('.').unwrap_or(("", name));
        let mut item: &mut Item = self.document.as_item_mut();
        for part in tables.split('.').filter(|part| !part.is_empty()) {
            let mut new = Table::new();
            // A table that only holds tables needs no line of its own.
            new.set_implicit(true);
            let is_within_a_line = item.is_inline_table();
            let path = &self.path;
            let not_a_table = |part: &str| {
                let what = format!("`{part}` is not written as a table of its own");
                ConfigError::Form(path.clone(), what)
            };
            let Some(table) = item.as_table_like_mut() else {
                return Err(not_a_table(part));
            };
            if is_within_a_line && !table.contains_key(part) {
                return Err(not_a_table(part));
            }
            item = table.entry(part).or_insert(Item::Table(new));
            if !item.is_table_like() {
                return Err(not_a_table(part));
            }
        }
        let Some(table) = item.as_table_like_mut() else {
            return Ok(());
        };
        match table.get_mut(last).and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = wanted;
                *old.decor_mut() = decor;
            }
            None => {
                table.insert(last, value(wanted));
            }
        }
        Ok(())
    }

    /// Takes a key out; whether it was there.
    ///
    /// # Errors
    /// There is no such key.
    pub fn unset(&mut self, name: &str) -> Result<bool, ConfigError> {
        if keys::find(name).is_none() {
            return Err(ConfigError::Change(keys::unknown(name)));
        }
        let (tables, last) = name.rsplit_once('.').unwrap_or(("", name));
        let mut table: &mut Table = self.document.as_table_mut();
        for part in tables.split('.').filter(|part| !part.is_empty()) {
            table = match table.get_mut(part).and_then(Item::as_table_mut) {
                Some(table) => table,
                None => return Ok(false),
            };
        }
        Ok(table.remove(last).is_some())
    }

    /// Describes a model anew. What its table says besides stays, comments
    /// included, but for what is not for the model that is described: see [`Besides`].
    ///
    /// # Errors
    /// It would not be one.
    pub fn set_model(
        &mut self,
        role: &str,
        given: &[(&str, Option<&str>)],
    ) -> Result<Besides, ConfigError> {
        let given: Vec<(&str, &str)> = given
            .iter()
            .filter_map(|(name, words)| Some((*name, (*words)?)))
            .collect();
        let of = |wanted: &str| {
            let mut all = given.iter();
            all.find(|(name, _)| *name == wanted)
                .map(|(_, words)| *words)
        };
        if let Some(base) = of("base_url") {
            check_address(base).map_err(ConfigError::Change)?;
        }
        let mut besides = Besides::default();
        if let Some(table) = self.model_table(role) {
            let said = |name: &str| table.get(name).and_then(Item::as_str).map(str::to_owned);
            let was = said("backend").unwrap_or_else(|| "http".to_owned());
            let kind = of("backend").unwrap_or("http");
            let is_moved = of("base_url")
                .is_some_and(|base| said("base_url").as_deref().unwrap_or(LOCAL_SERVER) != base);
            let has_new_key = KEYS_OF_A_PLACE.iter().any(|name| of(name).is_some());
            let names: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
            for name in names.iter().filter(|name| of(name).is_none()) {
                let is_key = KEYS_OF_A_PLACE.contains(&name.as_str());
                let is_kept = match (is_key, was == kind) {
                    (_, false) => {
                        COUNTS_EVERYWHERE.contains(&name.as_str())
                            || (name == "context_tokens" && kind != "scripted")
                    }
                    // A key is for whoever is at an address: nobody else is sent it.
                    (true, true) => !is_moved && !has_new_key,
                    (false, true) => true,
                };
                if is_kept {
                    besides.stays.push(name.clone());
                } else {
                    table.remove(name);
                    besides.gone.push(name.clone());
                }
            }
        }
        for (name, words) in &given {
            self.put(&format!("models.{role}.{name}"), Value::from(*words))?;
        }
        parse(&self.path, &self.document.to_string()).map(|_| besides)
    }

    fn model_table(&mut self, role: &str) -> Option<&mut dyn TableLike> {
        self.document
            .get_mut("models")?
            .as_table_like_mut()?
            .get_mut(role)?
            .as_table_like_mut()
    }

    /// Takes a whole model out; whether it was there.
    pub fn unset_model(&mut self, role: &str) -> bool {
        self.document
            .get_mut("models")
            .and_then(Item::as_table_like_mut)
            .is_some_and(|models| models.remove(role).is_some())
    }

    /// Adds a directory to the list; whether it was not there yet.
    ///
    /// # Errors
    /// The list is not one.
    pub fn add_directory(&mut self, directory: &str) -> Result<bool, ConfigError> {
        let list = self.directories()?;
        if list.iter().any(|known| known.as_str() == Some(directory)) {
            return Ok(false);
        }
        list.push(directory);
        Ok(true)
    }

    /// Takes those off the list that are meant; how many there were.
    ///
    /// # Errors
    /// The list is not one.
    pub fn remove_directories(
        &mut self,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<usize, ConfigError> {
        let list = self.directories()?;
        let before = list.len();
        list.retain(|known| !known.as_str().is_some_and(&is_meant));
        Ok(before - list.len())
    }

    fn directories(&mut self) -> Result<&mut Array, ConfigError> {
        let path = self.path.clone();
        self.document
            .entry("directories")
            .or_insert(value(Array::new()))
            .as_array_mut()
            .ok_or_else(|| ConfigError::Form(path, "`directories` is not a list".to_owned()))
    }

    /// Writes the file, if it is as it was when it was read: what somebody else set meanwhile,
    /// such as a stricter mode, is not to be lost without a word.
    ///
    /// # Errors
    /// It would be no configuration, is another one by now, or cannot be written.
    pub fn save(&self) -> Result<(), ConfigError> {
        let text = self.text();
        parse(&self.path, &text)?;
        let failed = |error: io::Error| ConfigError::Write(self.path.clone(), error);
        let dir = made(&self.path).map_err(failed)?;
        // Of two that change it at once one is first, and the other sees that.
        let _held = alone(dir).map_err(failed)?;
        if file::text(&self.path)? != self.was {
            return Err(ConfigError::Meanwhile(self.path.clone()));
        }
        replace(&self.path, text.as_bytes()).map_err(failed)
    }

    /// Sets the file aside and begins a new one; where the old one is now, if
    /// there was one.
    ///
    /// # Errors
    /// It cannot be moved or written.
    pub fn reset(path: &Path) -> Result<Option<PathBuf>, ConfigError> {
        let cannot = |error| {
            let place = path.display();
            ConfigError::Change(format!(
                "cannot put a new file in the place of `{place}`: {error}"
            ))
        };
        let mut aside = None;
        let is_there = |place: &Path| std::fs::symlink_metadata(place).is_ok();
        if is_there(path) {
            let free = (1..).map(|number: u32| path.with_extension(format!("toml.{number}")));
            let place = free.into_iter().find(|place| !is_there(place));
            if let Some(place) = place {
                std::fs::rename(path, &place).map_err(cannot)?;
                aside = Some(place);
            }
        }
        if let Err(error) = replace(path, HEADER.as_bytes()) {
            // What was there counts on.
            if let Some(place) = &aside
                && let Err(again) = std::fs::rename(place, path)
            {
                return Err(cannot(std::io::Error::other(format!(
                    "{error}; what was there is now `{}` and could not be put back: {again}",
                    place.display()
                ))));
            }
            return Err(cannot(error));
        }
        Ok(aside)
    }
}

/// What a key takes, where it was given something of another kind.
fn not_taken(name: &str, words: &str, what: &str) -> Option<String> {
    let (before, expected) = what.rsplit_once("expected ")?;
    if !before.contains("invalid type") && !before.contains("invalid value") {
        return None;
    }
    let is_whole = words.bytes().all(|byte| byte.is_ascii_digit());
    let takes = match expected {
        "u32" if is_whole => {
            return Some(format!(
                "`{name}` is {} at most; `{words}` is more",
                u32::MAX
            ));
        }
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list, such as [\"a\", \"b\"]",
        "a string" => "words",
        _ => return None,
    };
    Some(format!("`{name}` is {takes}; `{words}` is none"))
}

#[cfg(test)]
mod tests {
    use super::Edit;

    const TEXT: &str = "# mine\nmode = \"prompt\" # why\n\n[limits]\n# few\npids_max = 5\n";

    fn edited(text: &str, change: impl FnOnce(&mut Edit)) -> String {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("written");
        let mut edit = Edit::open(&path).expect("a configuration");
        change(&mut edit);
        edit.save().expect("saved");
        std::fs::read_to_string(&path).expect("read")
    }

    #[test]
    fn a_key_is_changed_and_every_comment_stays() {
        let after = edited(TEXT, |edit| {
            edit.set("mode", "reject_all").expect("set");
            edit.set("limits.pids_max", "7").expect("set");
            edit.set("models.planner.model", "4")
                .expect("a text, whatever it looks like");
        });
        for part in [
            "# mine\n",
            "mode = \"reject_all\" # why",
            "# few\npids_max = 7",
            "[models.planner]\nmodel = \"4\"",
        ] {
            assert!(after.contains(part), "{part}: {after}");
        }
    }

    #[test]
    fn what_would_not_be_a_configuration_is_refused_and_nothing_changes() {
        let after = edited(TEXT, |edit| {
            for (key, words) in [
                ("mode", "maybe"),
                ("limits.pids_max", "many"),
                ("limits.pids_max", "-1"),
                ("limits.pids_max", "0"),
                ("limits.pid_max", "5"),
                ("rules", "[]"),
            ] {
                assert!(edit.set(key, words).is_err(), "{key} = {words}");
            }
        });
        assert_eq!(after, TEXT);
    }

    #[test]
    fn keys_and_directories_come_and_go() {
        let after = edited(TEXT, |edit| {
            assert!(edit.unset("limits.pids_max").expect("unset"));
            assert!(!edit.unset("limits.pids_max").expect("unset"));
            assert!(edit.add_directory("~/a").expect("added"));
            assert!(!edit.add_directory("~/a").expect("known"));
            assert!(edit.add_directory("~/b \"c\"").expect("added"));
            let of_it = |known: &str| known == "~/a";
            assert_eq!(edit.remove_directories(of_it).expect("removed"), 1);
            assert_eq!(edit.remove_directories(of_it).expect("gone"), 0);
        });
        assert!(after.contains("directories = ["), "{after}");
        assert!(!after.contains("~/a"), "{after}");
        assert!(!after.contains("pids_max"), "{after}");
    }

    #[test]
    fn what_a_file_begins_with_stays_at_its_beginning() {
        let change = |edit: &mut Edit| {
            edit.set("limits.pids_max", "7").expect("set");
            edit.set("mode", "prompt").expect("set");
        };
        let rest = "mode = \"prompt\"\n\n[limits]\npids_max = 7\n";
        assert_eq!(
            edited("# mine\n# too\n", change),
            format!("# mine\n# too\n{rest}")
        );
        assert_eq!(edited("", change), rest);
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        let mut edit = Edit::open(&path).expect("a new one");
        change(&mut edit);
        edit.save().expect("saved");
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, format!("{}{rest}", super::HEADER));
    }

    #[test]
    fn an_address_that_is_none_is_not_written_and_the_file_is_not_blamed() {
        let after = edited(TEXT, |edit| {
            let refused = [
                edit.set("models.planner.base_url", "localhost:8080"),
                edit.set_model(
                    "planner",
                    &[("model", Some("m")), ("base_url", Some("localhost"))],
                )
                .map(drop),
                edit.set("mode", "maybe"),
                edit.set("mod", "prompt"),
            ];
            for error in refused.map(|done| done.expect_err("refused").to_string()) {
                assert!(error.starts_with("nothing was changed: "), "{error}");
            }
        });
        assert_eq!(after, TEXT);
    }

    #[test]
    fn what_somebody_else_set_meanwhile_is_not_written_over() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        // There is none yet, and there is one.
        for stricter in ["reject_all", "prompt"] {
            let mut late = Edit::open(&path).expect("a configuration");
            late.set("limits.pids_max", "7").expect("set");
            let mut first = Edit::open(&path).expect("a configuration");
            first.set("mode", stricter).expect("set");
            first.save().expect("saved");
            let error = late.save().expect_err("refused").to_string();
            assert!(error.starts_with("nothing was changed: "), "{error}");
            let mode = Edit::open(&path).expect("read").get("mode");
            assert_eq!(mode, Some(format!("\"{stricter}\"")));
        }
    }

    const MODELS: &str = "# which one\n[models.planner] # mine\n# small\nmodel = \"m\"\nbase_url = \"http://h/v1\"\nkey_env = \"K\" # of h\n# dull\ntemperature = 0.2\n\n[models.planner.extra]\ntop_p = 1 # all\n";

    fn described(text: &str, given: &[(&str, &str)]) -> (String, [String; 2]) {
        let mut told = Default::default();
        let after = edited(text, |edit| {
            let given: Vec<_> = given.iter().map(|(name, to)| (*name, Some(*to))).collect();
            let besides = edit.set_model("planner", &given).expect("described");
            told = [besides.stays.join(" "), besides.gone.join(" ")];
        });
        (after, told)
    }

    #[test]
    fn another_model_leaves_the_rest_of_its_table_and_comments_alone() {
        let same = [("model", "o"), ("backend", "http")];
        let (after, told) = described(MODELS, &same);
        assert_eq!(told, ["base_url key_env temperature extra", ""]);
        let expected = MODELS.replace("\"m\"", "\"o\"");
        let expected = expected.replace("0.2\n", "0.2\nbackend = \"http\"\n");
        assert_eq!(after, expected);
        let line = "models = {planner = {model = \"m\", temperature = 0.2}} # one\n";
        let (after, told) = described(line, &same);
        assert_eq!(told, ["temperature", ""]);
        let begin = "models = {planner = {model = \"o\", temperature = 0.2";
        assert!(after.starts_with(begin), "{after}");
        assert!(after.ends_with("} # one\n"), "{after}");
    }

    #[test]
    fn a_key_is_not_sent_to_another_address_and_what_is_of_one_kind_goes_with_it() {
        let there = ("base_url", "http://h/v1");
        let elsewhere = ("base_url", "http://i/v1");
        let gone = |given: &[(&str, &str)]| described(MODELS, given).1[1].clone();
        assert_eq!(gone(&[there]), "");
        assert_eq!(gone(&[elsewhere]), "key_env");
        assert_eq!(gone(&[elsewhere, ("key_env", "L")]), "");
        assert_eq!(gone(&[("key_file", "f")]), "key_env");
        let llama = [("model", "o"), ("backend", "llama"), ("file", "m.gguf")];
        let (after, told) = described(MODELS, &llama);
        assert_eq!(
            told,
            ["temperature", "base_url key_env extra"].map(str::to_owned)
        );
        assert!(after.contains("# dull\ntemperature = 0.2"), "{after}");
    }

    #[test]
    fn a_reset_keeps_what_was_there_beside_it() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, TEXT).expect("written");
        let aside = Edit::reset(&path).expect("reset").expect("kept");
        assert_eq!(std::fs::read_to_string(aside).expect("read"), TEXT);
        assert!(Edit::open(&path).is_ok_and(|edit| edit.get("mode").is_none()));
    }
}

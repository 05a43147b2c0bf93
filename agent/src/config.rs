//! The configuration files: grants and rules, as a person writes them.
//!
//! They are read once at the start, before any model is listened to, and no
//! grant reaches them. The administrator's file cannot be made milder by the
//! user's: its rules are added to the user's, and the strictest decides.

pub mod bounds;
pub mod edit;
mod error;
mod file;
pub mod import;
pub mod keys;
pub mod models;
mod rules;
pub mod servers;
pub mod settings;
pub mod talk;

use std::{borrow::Cow, path::Path, path::PathBuf, time::Duration};

use hermitcrab_core::{
    approval::{Asking, Stance},
    authority::{Program, Verb},
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
    time::Millis,
};
use serde::Deserialize;
use toml::Spanned;

use self::servers::{ServerWords, ServersWords};
use self::settings::{LimitsWords, SafetyWords, SandboxWords};
use self::talk::ChatWords;
pub use self::{error::ConfigError, rules::RuleWords};
use crate::runtime::{Ceilings, GrantWords};

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Given to the agent at the start of each session, besides reading its
    /// workspace and running programs on a copy of it.
    #[serde(default)]
    grants: Vec<ConfiguredGrant>,
    /// Ask here, refuse there.
    #[serde(default)]
    rules: Vec<Spanned<RuleWords>>,
    /// `approve_all`, `prompt` or `reject_all`.
    #[serde(default)]
    mode: Option<String>,
    /// Listed and read besides the workspace.
    #[serde(default)]
    directories: Vec<String>,
    /// When to ask besides, and how much one operation may do.
    #[serde(default)]
    safety: SafetyWords,
    /// How much a command may use.
    #[serde(default)]
    limits: LimitsWords,
    /// How commands are made quick.
    #[serde(default)]
    sandbox: SandboxWords,
    /// Models that go round in circles, and the agents they start.
    #[serde(default)]
    chat: ChatWords,
    /// Servers of tools outside.
    #[serde(default)]
    servers: ServersWords,
    /// The models.
    #[serde(default)]
    models: models::ModelsWords,
    /// Where it was read from, and what is in it.
    #[serde(skip)]
    file: PathBuf,
    #[serde(skip)]
    text: String,
}

/// One grant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredGrant {
    /// `fs.create`, `fs.*`, ...
    pub verb: String,
    /// An absolute path, or one from `~`, `.` for the workspace, or `./` and a path below it.
    #[serde(deserialize_with = "rules::in_letters")]
    pub on: String,
    /// How often it may be used.
    #[serde(default)]
    pub uses: Option<u64>,
    /// How long it lasts.
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// Reads the file; one that does not exist is an empty one.
///
/// # Errors
/// It cannot be read, somebody else may write it, or it holds something unknown.
pub fn read(path: &Path) -> Result<Config, ConfigError> {
    match file::text(path)? {
        Some(text) => parse(path, &text),
        None => Ok(Config::default()),
    }
}

/// Reads what stands in a file; `path` is for messages only.
///
/// # Errors
/// It holds something unknown.
pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let wrong = |what: String| ConfigError::Form(path.to_owned(), what);
    let mut config: Config = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .and_then(|span| line_of(text, span.start))
            .map_or_else(String::new, |line| format!("line {line}: "));
        wrong(format!(
            "{line}{}",
            with_suggestion(&one_line(error.message()))
        ))
    })?;
    if let Some(mode) = &config.mode
        && Asking::parse(mode).is_none()
    {
        return Err(wrong(format!(
            "the mode `{mode}` is not approve_all, prompt or reject_all"
        )));
    }
    config.models.check().map_err(wrong)?;
    config.limits.check().map_err(wrong)?;
    config.chat.check().map_err(wrong)?;
    servers::check(&config.servers).map_err(wrong)?;
    let _chosen = config.sandbox.interpreters().map_err(wrong)?;
    let _named = config.sandbox.caches().map_err(wrong)?;
    path.clone_into(&mut config.file);
    text.clone_into(&mut config.text);
    Ok(config)
}

/// On one line.
fn one_line(text: &str) -> Cow<'_, str> {
    // Most complaints are on one already: letters, digits, signs, and single spaces between.
    let mut before = b' ';
    let is_one_already = text.bytes().all(|byte| {
        let goes_on = matches!(byte, b'!'..=b'~') || (byte == b' ' && before != b' ');
        before = byte;
        goes_on
    });
    if is_one_already && before != b' ' {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    Cow::Owned(line)
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, at: usize) -> Option<u32> {
    let before = text.get(..at)?;
    let lines = before.bytes().filter(|byte| *byte == b'\n').count();
    Some(u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1))
}

/// A complaint about an unknown key, with the one that may be meant.
fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(unknown) = quoted.next()
        && let Some(meant) = keys::nearest(unknown, quoted)
    {
        return format!("{message}; did you mean `{meant}`?");
    }
    message.to_owned()
}

/// Reads the administrator's file, which only an administrator may write.
///
/// # Errors
/// As for [`read`]; or somebody else may write it.
pub fn read_administrators(path: &Path) -> Result<Config, ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
        Err(error) => Err(ConfigError::Io(path.to_owned(), error)),
        Ok(seen) if seen.uid() != 0 || seen.mode() & 0o022 != 0 => Err(ConfigError::Form(
            path.to_owned(),
            "others than the administrator may write it".to_owned(),
        )),
        Ok(_) => read(path),
    }
}

impl Config {
    /// When the user is asked, if the file says so.
    #[must_use]
    pub fn mode(&self) -> Option<Asking> {
        self.mode.as_deref().and_then(Asking::parse)
    }

    /// How many conversations at a terminal are kept: as many as both files allow.
    #[must_use]
    pub fn conversations_kept(&self, administrator: &Self) -> usize {
        self.chat.kept(&administrator.chat)
    }

    /// The models.
    #[must_use]
    pub fn models(&self) -> &models::ModelsWords {
        &self.models
    }

    /// The rules, each with its line.
    ///
    /// # Errors
    /// One of them means nothing.
    pub fn rules(
        &self,
        layer: Layer,
        workspace: &Path,
        home: &Path,
    ) -> Result<Vec<ConfiguredRule>, ConfigError> {
        let file = self.file.to_string_lossy();
        let mut rules = Vec::new();
        for rule in &self.rules {
            let line = line_of(&self.text, rule.span().start).unwrap_or(u32::MAX);
            let rule = rule.get_ref();
            let such = rule.rules((&file, line, layer), workspace, home);
            rules.extend(such.map_err(|what| {
                let what = format!("line {line}, rule `{}`: {what}", rule.id);
                ConfigError::Form(self.file.clone(), what)
            })?);
        }
        for rule in self.asked_besides(layer) {
            rules.push(rule?);
        }
        Ok(rules)
    }

    /// The switches of `[safety]` that are rules: ask before each command, ask
    /// before each deletion.
    fn asked_besides(
        &self,
        layer: Layer,
    ) -> impl Iterator<Item = Result<ConfiguredRule, ConfigError>> {
        let switches = [
            (
                "confirm_before_execute",
                &self.safety.confirm_before_execute,
                Verb::ProcExec,
                Pattern::Object(PortableObject::Program(Program::AnyInView)),
            ),
            (
                "require_confirmation_for_delete",
                &self.safety.require_confirmation_for_delete,
                Verb::FsDelete,
                Pattern::Anything,
            ),
        ];
        switches
            .into_iter()
            .filter_map(move |(id, switch, verb, pattern)| {
                let switch = switch.as_ref().filter(|switch| *switch.get_ref())?;
                let line = line_of(&self.text, switch.span().start).unwrap_or(u32::MAX);
                let file = self.file.to_string_lossy();
                let at = (&*file, line, layer);
                let rule = ConfiguredRule::new(id, Stance::Ask, vec![verb], pattern, at);
                Some(rule.map_err(|error| {
                    ConfigError::Form(self.file.clone(), format!("safety.{id}: {error}"))
                }))
            })
    }

    /// How much one operation and one command may do, both files together.
    #[must_use]
    pub fn ceilings(&self, other: &Self) -> Ceilings {
        let (mine, theirs) = (&self.safety, &other.safety);
        let limits = self.limits.narrowed(&other.limits);
        Ceilings {
            files_max: settings::least(
                mine.max_files_per_operation,
                theirs.max_files_per_operation,
            ),
            keeps_trees: [mine, theirs]
                .iter()
                .any(|safety| safety.block_rm_rf == Some(true)),
            memory_bytes_max: limits
                .memory_max_mb
                .map(|megabytes| megabytes.saturating_mul(1 << 20)),
            cpu_percent_max: limits.cpu_quota_percent,
            processes_max: limits.pids_max,
            changes_bytes_max: limits
                .changes_max_mb
                .map(|megabytes| megabytes.saturating_mul(1 << 20)),
            tmp_bytes_max: limits
                .tmp_max_mb
                .map(|megabytes| megabytes.saturating_mul(1 << 20)),
            timeout_max: limits.timeout_seconds.map(Duration::from_secs),
            script_timeout: limits.script_timeout_seconds.map(Duration::from_secs),
            script_calls_max: limits
                .script_calls_max
                .and_then(|most| usize::try_from(most).ok()),
            interpreters: self.sandbox.both(&other.sandbox),
            sandboxes_are_fresh: self.sandbox.is_fresh_in_either(&other.sandbox),
            layers: self.sandbox.layers(&other.sandbox),
            leaves_owners: self.sandbox.leaves_owners_in_either(&other.sandbox),
            caches: self.sandbox.caches_of_both(&other.sandbox),
            talk: self.chat.both(&other.chat),
        }
    }

    /// The servers of tools outside that both files name.
    pub fn servers<'c>(
        &'c self,
        administrator: &'c Self,
    ) -> impl Iterator<Item = (&'c str, &'c ServerWords)> {
        servers::both(&self.servers, &administrator.servers)
    }

    /// Whether nothing is to be kept unless the user says so each time.
    #[must_use]
    pub fn is_dry_by_default(&self) -> bool {
        self.safety.dry_run_by_default == Some(true)
    }

    /// The directories besides the workspace, as they are written.
    #[must_use]
    pub fn directories(&self) -> &[String] {
        &self.directories
    }

    /// What is granted at the start of a session: the grants, and what the
    /// rules allow.
    pub fn grants(&self, workspace: &Path) -> impl Iterator<Item = GrantWords> {
        let allowed = self
            .rules
            .iter()
            .flat_map(|rule| rule.get_ref().grants(workspace));
        self.grants
            .iter()
            .map(|grant| grant.words(workspace))
            .chain(allowed)
            .chain(self.directories.iter().flat_map(|directory| {
                ["fs.list", "fs.read"].map(|verb| GrantWords::new(verb, directory))
            }))
    }
}

impl ConfiguredGrant {
    /// In the runtime's words; `.` is the workspace, and `./` leads below it.
    #[must_use]
    pub fn words(&self, workspace: &Path) -> GrantWords {
        let below = match self.on.strip_prefix("./") {
            _ if self.on == "." => Some(workspace.to_owned()),
            Some(below) if self.verb.starts_with("fs.") => Some(workspace.join(below)),
            _ => None,
        };
        let on = below.map_or_else(
            || self.on.clone(),
            |place| place.to_string_lossy().into_owned(),
        );
        GrantWords {
            verb: self.verb.clone(),
            on,
            uses: self.uses,
            lifetime: self.seconds.map(Millis::from_seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Config, ConfigError, read};

    #[test]
    fn a_missing_file_is_an_empty_configuration() {
        assert!(
            read(Path::new("/nonexistent/config.toml"))
                .expect("empty")
                .grants
                .is_empty()
        );
    }

    #[test]
    fn unknown_words_are_an_error_with_a_place() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        std::fs::write(
            &path,
            "[[grants]]\nverb = \"fs.*\"\non = \".\"\nforever = true\n",
        )
        .expect("written");
        let Err(ConfigError::Form(_, what)) = read(&path) else {
            panic!("accepted")
        };
        assert!(
            what.contains("line 4") && what.contains("forever"),
            "{what}"
        );
        for (text, meant) in [
            ("[safty]\n", "did you mean `safety`?"),
            ("[limits]\npid_max = 3\n", "did you mean `pids_max`?"),
            (
                "[models.planner]\nmodel = \"m\"\nbaseurl = \"x\"\n",
                "did you mean `base_url`?",
            ),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = read(&path).expect_err("refused").to_string();
            assert!(error.contains(meant), "{error}");
        }
    }

    #[test]
    fn what_is_quoted_from_a_file_stays_on_one_line() {
        let file = Path::new("config.toml");
        let error = super::parse(file, "mode = \"\"\"ask\nme\"\"\"\n").expect_err("refused");
        assert_eq!(
            error.to_string(),
            "`config.toml` is not a configuration: the mode `ask me` is not approve_all, prompt or reject_all"
        );
        for (text, expected) in [
            ("", ""),
            ("two words", "two words"),
            (" around ", "around"),
            ("two  spaces", "two spaces"),
            (
                "a\ttab and\u{2003}one of the wide ones",
                "a tab and one of the wide ones",
            ),
            ("ü stays", "ü stays"),
        ] {
            assert_eq!(super::one_line(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_switches_are_rules_with_a_line_and_ceilings_of_both_files() {
        use hermitcrab_core::rules::Layer;
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        std::fs::write(
            &path,
            "[safety]\nconfirm_before_execute = true\nrequire_confirmation_for_delete = true\nmax_files_per_operation = 9\n[limits]\ntimeout_seconds = 7\n",
        )
        .expect("written");
        let config = read(&path).expect("config");
        let rules = config
            .rules(Layer::User, Path::new("/w"), Path::new("/h"))
            .expect("rules");
        let places: Vec<String> = rules
            .iter()
            .map(|rule| rule.reference().to_string())
            .collect();
        assert_eq!(
            places,
            [
                format!("confirm_before_execute at {}:2", path.display()),
                format!("require_confirmation_for_delete at {}:3", path.display()),
            ]
        );
        let other: Config =
            toml::from_str("[safety]\nmax_files_per_operation = 3\nblock_rm_rf = true\n[limits]\nscript_calls_max = 9\n")
                .expect("config");
        let ceilings = config.ceilings(&other);
        assert_eq!((ceilings.files_max, ceilings.keeps_trees), (Some(3), true));
        assert_eq!(
            (ceilings.script_calls_max, ceilings.script_timeout),
            (Some(9), None)
        );
        assert_eq!(
            ceilings.timeout_max,
            Some(std::time::Duration::from_secs(7))
        );
    }

    #[test]
    fn a_dot_is_the_workspace() {
        let config: Config =
            toml::from_str("[[grants]]\nverb = \"fs.read\"\non = \".\"\nuses = 2\n")
                .expect("config");
        let words = config.grants[0].words(Path::new("/w"));
        assert_eq!((words.on.as_str(), words.uses), ("/w", Some(2)));
    }

    #[test]
    fn rules_know_their_line_and_bad_ones_are_named() {
        use hermitcrab_core::rules::Layer;
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("config.toml");
        let rules = |text: &str| {
            std::fs::write(&path, text).expect("written");
            read(&path)
                .and_then(|config| config.rules(Layer::User, Path::new("/w"), Path::new("/h")))
        };
        let text = "mode = \"prompt\"\n\n[[rules]]\nid = \"keys\"\ndecision = \"deny\"\nverbs = [\"fs.*\"]\nnamed = \"*.pem\"\n\n[[rules]]\nid = \"docs\"\ndecision = \"allow\"\nverbs = [\"fs.modify\"]\non = \"docs\"\n";
        let read_rules = rules(text).expect("rules");
        let places: Vec<String> = read_rules
            .iter()
            .map(|rule| rule.reference().to_string())
            .collect();
        assert_eq!(
            places,
            [
                format!("keys at {}:3", path.display()),
                format!("docs at {}:9", path.display())
            ]
        );
        let config = read(&path).expect("config");
        let allowed: Vec<_> = config.grants(Path::new("/w")).collect();
        assert_eq!(
            (
                allowed.len(),
                allowed[0].on.as_str(),
                allowed[0].verb.as_str()
            ),
            (1, "/w/docs", "fs.modify")
        );
        for (wrong, part) in [
            (
                text.replace("\"deny\"", "\"maybe\""),
                "not deny, ask or allow",
            ),
            (text.replace("fs.modify", "fs.fly"), "no verb `fs.fly`"),
            (text.replace("on = \"docs\"", ""), "none of `on`"),
            (text.replace("named", "host"), "not for fs.list"),
            (
                text.replace("fs.*", "net.connect")
                    .replace("named = \"*.pem\"", "host = \"*.pem:0\""),
                "not a peer",
            ),
            (text.replace("prompt", "yes"), "not approve_all"),
        ] {
            let error = rules(&wrong).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

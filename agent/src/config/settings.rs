//! The switches of the configuration: when to ask besides, how much one
//! operation may do, how much a command may use, how it is made quick.
//!
//! Both files may say something about each; the stricter word counts. What
//! reads them: the rules (asking), [`crate::runtime::Ceilings`] (how much), and
//! the command line (dry runs).

use hermitcrab_sandbox::spawn::Interpreters;
use serde::Deserialize;
use toml::Spanned;

use super::bounds;
use crate::runtime::{Caches, Layers};

/// The table `[safety]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyWords {
    /// Ask before each command, although it runs on a copy.
    #[serde(default)]
    pub confirm_before_execute: Option<Spanned<bool>>,
    /// Ask before each deletion, even a granted one.
    #[serde(default)]
    pub require_confirmation_for_delete: Option<Spanned<bool>>,
    /// Never delete a directory with something in it.
    #[serde(default)]
    pub block_rm_rf: Option<bool>,
    /// Show what would change and keep nothing, unless told otherwise.
    #[serde(default)]
    pub dry_run_by_default: Option<bool>,
    /// How many files and directories one operation may change.
    #[serde(default)]
    pub max_files_per_operation: Option<u64>,
}

/// The table `[limits]`: what one command may use, with everything it starts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsWords {
    /// Memory, in MiB.
    #[serde(default)]
    pub memory_max_mb: Option<u64>,
    /// Processor time, in hundredths of one processor.
    #[serde(default)]
    pub cpu_quota_percent: Option<u32>,
    /// Processes and threads at once.
    #[serde(default)]
    pub pids_max: Option<u64>,
    /// What it may change before that is decided, in MiB.
    #[serde(default)]
    pub changes_max_mb: Option<u64>,
    /// What its `/tmp` holds, in MiB.
    #[serde(default)]
    pub tmp_max_mb: Option<u64>,
    /// How long it may run.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// How long a script that calls tools may run.
    #[serde(default)]
    pub script_timeout_seconds: Option<u64>,
    /// Calls it may make.
    #[serde(default)]
    pub script_calls_max: Option<u64>,
}

impl LimitsWords {
    /// What is wrong with it, in words.
    ///
    /// # Errors
    /// The words.
    pub fn check(&self) -> Result<(), String> {
        let all = [
            ("memory_max_mb", self.memory_max_mb),
            ("cpu_quota_percent", self.cpu_quota_percent.map(u64::from)),
            ("pids_max", self.pids_max),
            ("changes_max_mb", self.changes_max_mb),
            ("tmp_max_mb", self.tmp_max_mb),
            ("timeout_seconds", self.timeout_seconds),
            ("script_timeout_seconds", self.script_timeout_seconds),
            ("script_calls_max", self.script_calls_max),
        ];
        let wrong = all.into_iter().find_map(|(name, value)| match value? {
            0 => Some(format!(
                "`limits.{name}` is 0, and nothing could run; leave it out for the usual value"
            )),
            value => bounds::beyond_any(name, value),
        });
        wrong.map_or(Ok(()), Err)
    }

    /// The narrower of both, limit by limit.
    #[must_use]
    pub fn narrowed(&self, other: &Self) -> Self {
        Self {
            memory_max_mb: least(self.memory_max_mb, other.memory_max_mb),
            cpu_quota_percent: least(self.cpu_quota_percent, other.cpu_quota_percent),
            pids_max: least(self.pids_max, other.pids_max),
            changes_max_mb: least(self.changes_max_mb, other.changes_max_mb),
            tmp_max_mb: least(self.tmp_max_mb, other.tmp_max_mb),
            timeout_seconds: least(self.timeout_seconds, other.timeout_seconds),
            script_timeout_seconds: least(
                self.script_timeout_seconds,
                other.script_timeout_seconds,
            ),
            script_calls_max: least(self.script_calls_max, other.script_calls_max),
        }
    }
}

/// Where what a command changed lies until that is decided.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum LayersWord {
    /// In memory, until a command of the workspace needs more room than that has.
    Auto,
    /// In memory, which bounds it.
    Memory,
    /// In the agent's own directory.
    Disk,
}

/// The table `[sandbox]`: how commands are made quick, and where they write.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxWords {
    /// `sh`, `bash`, `python3`: started before their script is known.
    #[serde(default)]
    pub interpreters: Option<Vec<String>>,
    /// Whether nothing of a sandbox serves a second command.
    #[serde(default)]
    pub fresh: Option<bool>,
    /// Where what they change lies until that is decided.
    #[serde(default)]
    pub layers: Option<LayersWord>,
    /// Whether directories are copied where owners cannot be translated.
    #[serde(default)]
    pub copy_for_owners: Option<bool>,
    /// Names of directories whose contents are left out where they are not held.
    #[serde(default)]
    pub caches: Option<Vec<String>>,
}

impl SandboxWords {
    /// The interpreters that may be started early; nothing for the usual ones.
    ///
    /// # Errors
    /// What is wrong with a name, in words.
    pub fn interpreters(&self) -> Result<Option<Interpreters>, String> {
        let Some(names) = &self.interpreters else {
            return Ok(None);
        };
        Interpreters::from_names(names.iter().map(String::as_str))
            .map(Some)
            .map_err(|name| {
                format!(
                    "`sandbox.interpreters` names `{}`, which is not sh, dash, bash or python3",
                    name.escape_debug()
                )
            })
    }

    /// Those that both name.
    #[must_use]
    pub fn both(&self, other: &Self) -> Option<Interpreters> {
        // Names were checked when they were read.
        let read = |words: &Self| words.interpreters().ok().flatten();
        match (read(self), read(other)) {
            (Some(one), Some(two)) => Some(one.and(two)),
            (one, two) => one.or(two),
        }
    }

    /// The directories whose contents nobody is asked about; the usual ones if nothing is said.
    ///
    /// # Errors
    /// What is wrong with a name, in words.
    pub fn caches(&self) -> Result<Caches, String> {
        let Some(names) = &self.caches else {
            return Ok(Caches::default());
        };
        Caches::from_names(names.iter().map(String::as_str)).map_err(|name| {
            format!(
                "`sandbox.caches` names `{}`, which is not the name of a directory of caches, such as `out` or `node_modules/.cache`",
                name.escape_debug()
            )
        })
    }

    /// Those that both files leave out.
    #[must_use]
    pub fn caches_of_both(&self, other: &Self) -> Caches {
        // Names were checked when they were read.
        let read = |words: &Self| words.caches().unwrap_or_default();
        match (&self.caches, &other.caches) {
            (_, None) => read(self),
            (None, _) => read(other),
            (Some(_), Some(_)) => read(self).and(&read(other)),
        }
    }

    /// In memory if one says so, else on disk if one says that, else as it is needed.
    #[must_use]
    pub fn layers(&self, other: &Self) -> Layers {
        let words = [self.layers, other.layers];
        if words.contains(&Some(LayersWord::Memory)) {
            Layers::Memory
        } else if words.contains(&Some(LayersWord::Disk)) {
            Layers::Disk
        } else {
            Layers::AsNeeded
        }
    }

    /// Whether either does not want directories copied because of their owners.
    #[must_use]
    pub fn leaves_owners_in_either(&self, other: &Self) -> bool {
        [self, other]
            .iter()
            .any(|words| words.copy_for_owners == Some(false))
    }

    /// Whether either wants every sandbox made from the ground up.
    #[must_use]
    pub fn is_fresh_in_either(&self, other: &Self) -> bool {
        [self, other].iter().any(|words| words.fresh == Some(true))
    }
}

/// The smaller of two limits, where there are two.
pub(super) fn least<N: Ord>(one: Option<N>, two: Option<N>) -> Option<N> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_sandbox::spawn::Interpreters;

    use super::{Layers, LayersWord, LimitsWords, SandboxWords};

    #[test]
    fn interpreters_started_early_are_those_that_both_files_name() {
        let words = |names: &[&str]| SandboxWords {
            interpreters: Some(names.iter().map(|name| (*name).to_owned()).collect()),
            ..SandboxWords::default()
        };
        let usual = SandboxWords::default();
        assert_eq!(usual.both(&usual), None);
        assert_eq!(words(&[]).both(&usual), Some(Interpreters::NONE));
        let both = words(&["sh", "bash"]).both(&words(&["bash", "python3"]));
        assert_eq!(both, Interpreters::from_names(["bash"]).ok());
        assert!(
            words(&["perl"])
                .interpreters()
                .is_err_and(|why| why.contains("`perl`"))
        );
    }

    #[test]
    fn sandboxes_are_fresh_where_either_file_says_so() {
        let words = |fresh| SandboxWords {
            fresh,
            ..SandboxWords::default()
        };
        for (one, two, expected) in [
            (None, None, false),
            (Some(false), None, false),
            (Some(true), None, true),
            (Some(true), Some(false), true),
            (Some(false), Some(false), false),
        ] {
            assert_eq!(words(one).is_fresh_in_either(&words(two)), expected);
            assert_eq!(words(two).is_fresh_in_either(&words(one)), expected);
        }
    }

    #[test]
    fn layers_lie_where_a_file_says_and_in_memory_where_they_disagree() {
        let words = |layers| SandboxWords {
            layers,
            ..SandboxWords::default()
        };
        let (memory, disk) = (Some(LayersWord::Memory), Some(LayersWord::Disk));
        let auto = Some(LayersWord::Auto);
        for (one, two, expected) in [
            (None, None, Layers::AsNeeded),
            (auto, None, Layers::AsNeeded),
            (auto, disk, Layers::Disk),
            (auto, memory, Layers::Memory),
            (disk, None, Layers::Disk),
            (disk, disk, Layers::Disk),
            (disk, memory, Layers::Memory),
            (memory, None, Layers::Memory),
        ] {
            assert_eq!(words(one).layers(&words(two)), expected);
            assert_eq!(words(two).layers(&words(one)), expected);
        }
    }

    #[test]
    fn the_narrower_limit_counts_and_nothing_is_no_limit() {
        let one = LimitsWords {
            pids_max: Some(5),
            timeout_seconds: Some(9),
            ..LimitsWords::default()
        };
        let two = LimitsWords {
            pids_max: Some(3),
            memory_max_mb: Some(64),
            ..LimitsWords::default()
        };
        let both = one.narrowed(&two);
        assert_eq!(
            (both.pids_max, both.timeout_seconds, both.memory_max_mb),
            (Some(3), Some(9), Some(64))
        );
        assert_eq!(both.cpu_quota_percent, None);
        let none = LimitsWords {
            pids_max: Some(0),
            ..LimitsWords::default()
        };
        assert!(none.check().is_err_and(|why| why.contains("pids_max")));
    }
}

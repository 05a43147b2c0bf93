//! The catalogue of known divergences, `vectors/known-divergences.toml`.
//!
//! An entry explains one kind of difference in one direction, for a stated
//! time. It can never excuse `weaker`, `beyond-grant` or `both-unsafe`, and it
//! fails the gate when it rots: stale (no longer happens), expired, ambiguous
//! (two entries explain the same difference) or overbroad (it catches a
//! difference it does not describe).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::glob::glob;
use crate::relation::{Finding, StepJudgement};

mod form;

pub use form::{due, lint, strangers};

/// The file.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The entries.
    #[serde(default, rename = "entry")]
    pub entries: Vec<Entry>,
}

impl Catalogue {
    /// The release whose entries count for this one: itself, or, if no entry was
    /// seen with it, the newest one that entries were seen with. Such a release is a
    /// second opinion: most entries say something about the agent, and those hold
    /// with any Hermes.
    #[must_use]
    pub fn release_for<'a>(&'a self, hermes: &'a str) -> &'a str {
        let named = || self.entries.iter().flat_map(|entry| &entry.versions);
        if named().any(|version| version == hermes) {
            return hermes;
        }
        let parts = |version: &str| -> Vec<u64> {
            let parts = version.split('.');
            parts.map(|part| part.parse().unwrap_or(0)).collect()
        };
        named()
            .max_by_key(|version| parts(version))
            .map_or(hermes, String::as_str)
    }
}

/// One known divergence.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name, as it appears in `stricter:<id>`.
    pub id: String,
    /// One sentence: why the difference is right.
    pub justification: String,
    /// Which way the agent differs.
    pub direction: Direction,
    /// The Hermes versions it was seen with.
    pub versions: Vec<String>,
    /// Who answers for it.
    pub owner: String,
    /// When it was written, `YYYY-MM-DD`.
    pub opened: String,
    /// When it must be looked at again; after that day it is expired.
    pub review_by: String,
    /// Where it may match.
    #[serde(default)]
    pub scope: Scope,
    /// The differences it describes, as `what hermes -> agent` (see the
    /// report); `*` stands for any run of characters. A difference in scope
    /// and direction that none of them fits makes the entry overbroad.
    pub fingerprints: Vec<String>,
    /// Cases that prove its edges.
    pub witness: Witness,
}

/// Which way the agent differs from Hermes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The agent refuses, asks or does less.
    Stricter,
    /// The agent acts inside the grants where Hermes refuses or asks by spelling.
    Attenuated,
    /// Benign behaviour differs and somebody has taken it on.
    Different,
}

/// Where an entry may match: every stated part must fit; an empty part fits all.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Suites.
    #[serde(default)]
    pub suites: Vec<String>,
    /// The case has at least one of these flags.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The case has none of these flags.
    #[serde(default)]
    pub without_flags: Vec<String>,
    /// Exactly these cases.
    #[serde(default)]
    pub cases: Vec<String>,
    /// `headless`, `interactive`, `gateway`, `acp`, `cron`.
    #[serde(default)]
    pub contexts: Vec<String>,
    /// `call:terminal`, `probe:validate_within_dir`, ...
    #[serde(default)]
    pub steps: Vec<String>,
    /// Hermes' side of the fingerprint, with `*`.
    #[serde(default)]
    pub hermes: Vec<String>,
    /// The agent's side of the fingerprint, with `*`.
    #[serde(default)]
    pub agent: Vec<String>,
}

/// Cases that prove where an entry begins and ends.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// Cases it must match.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// Cases it must not match.
    pub nomatch: Vec<String>,
}

/// Something wrong with the catalogue; each fails the gate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Fault {
    /// The entry (or entries).
    pub entry: String,
    /// `malformed`, `stale`, `expired`, `ambiguous` or `overbroad`.
    pub kind: Cow<'static, str>,
    /// Why, and what to do.
    pub why: String,
}

impl Entry {
    /// Whether a judged step of a case lies in scope and direction.
    #[must_use]
    pub fn catches(&self, version: &str, case: &Case, step: &StepJudgement) -> bool {
        let direction = match step.finding {
            Finding::Stricter => Direction::Stricter,
            Finding::Attenuated => Direction::Attenuated,
            Finding::Different => Direction::Different,
            Finding::Equal
            | Finding::EqualMasked
            | Finding::Weaker
            | Finding::BeyondGrant
            | Finding::BothUnsafe
            | Finding::Inconclusive => return false,
        };
        let scope = &self.scope;
        let fits = |list: &[String], value: &str| {
            list.is_empty() || list.iter().any(|pattern| glob(pattern, value))
        };
        let context = case.job.context.word();
        direction == self.direction
            && self.versions.iter().any(|known| known == version)
            && fits(&scope.suites, &case.suite)
            && (scope.flags.is_empty() || scope.flags.iter().any(|flag| case.flags.contains(flag)))
            && !scope
                .without_flags
                .iter()
                .any(|flag| case.flags.contains(flag))
            && fits(&scope.cases, &case.id)
            && fits(&scope.contexts, context)
            && fits(&scope.steps, &step.what)
            && fits(&scope.hermes, &step.hermes)
            && fits(&scope.agent, &step.agent)
    }

    /// Whether one of the recorded fingerprints describes the step.
    #[must_use]
    pub fn describes(&self, step: &StepJudgement) -> bool {
        let fingerprint = step.fingerprint();
        self.fingerprints
            .iter()
            .any(|pattern| glob(pattern, &fingerprint))
    }
}

/// Reads the catalogue; a missing file is an empty one.
///
/// # Errors
/// A line for a person: what is wrong and where.
pub fn load(file: &Path) -> Result<Catalogue, String> {
    let text = crate::suite::bytes_of(file).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| std::io::Error::other("a byte of it is no UTF-8"))
    });
    match text {
        Ok(text) => toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Catalogue::default()),
        Err(error) => Err(format!("{}: cannot read: {error}", file.display())),
    }
}

/// Follows a run and finds rot.
#[derive(Debug, Default)]
pub struct Usage {
    /// Entry to the cases it explained.
    explained: BTreeMap<String, BTreeSet<String>>,
    /// Cases that ran to a conclusive verdict.
    ran: BTreeSet<String>,
    faults: BTreeSet<Fault>,
}

impl Usage {
    /// Notes that a case was judged.
    pub fn ran(&mut self, case: &str) {
        self.ran.insert(case.to_owned());
    }

    /// Notes that an entry explained a case.
    pub fn explained(&mut self, entry: &str, case: &str) {
        self.explained
            .entry(entry.to_owned())
            .or_default()
            .insert(case.to_owned());
    }

    /// Notes faults found on the way.
    pub fn fault(&mut self, fault: Fault) {
        self.faults.insert(fault);
    }

    /// How many cases each entry explained.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.explained
            .iter()
            .map(|(entry, cases)| (entry.clone(), cases.len()))
            .collect()
    }

    /// All rot. `whole` says that every case of every suite ran, so that an
    /// entry without a match is stale; otherwise its witnesses must have run.
    #[must_use]
    pub fn rot(
        &self,
        catalogue: &Catalogue,
        version: &str,
        whole: bool,
        exists: &dyn Fn(&str) -> bool,
    ) -> Vec<Fault> {
        let mut faults = self.faults.clone();
        let none = BTreeSet::new();
        for entry in &catalogue.entries {
            let mut fault = |kind: &'static str, why: String| {
                faults.insert(Fault {
                    entry: entry.id.clone(),
                    kind: Cow::Borrowed(kind),
                    why,
                });
            };
            for case in entry.witness.matches.iter().chain(&entry.witness.nomatch) {
                if !exists(case) {
                    fault("malformed", format!("the witness `{case}` is not a case"));
                }
            }
            if !entry.versions.iter().any(|known| known == version) {
                continue;
            }
            let explained = self.explained.get(&entry.id).unwrap_or(&none);
            if whole && explained.is_empty() {
                fault("stale", "it explained nothing; delete it".to_owned());
            }
            for case in &entry.witness.matches {
                if self.ran.contains(case) && !explained.contains(case) {
                    fault(
                        "stale",
                        format!(
                            "it does not explain its witness `{case}`; `--explain {case}` shows \
                             what there is to explain"
                        ),
                    );
                }
            }
            for case in &entry.witness.nomatch {
                if explained.contains(case) {
                    fault(
                        "overbroad",
                        format!("it explains `{case}`, which it must not"),
                    );
                }
            }
        }
        faults.into_iter().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;

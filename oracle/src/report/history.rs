//! One line per run, kept beside the report, so that a page can show how
//! things went. Nothing is ever decided from it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use hermitcrab::given_file::{self, Pipes};
use serde::{Deserialize, Serialize};

use crate::result::{Headline, Summary};
use crate::suite;
use crate::verdict::{KINDS, Kind};

/// The file inside a report directory.
pub const FILE: &str = "history.jsonl";
/// The most runs read back, the newest.
const RUNS_MAX: usize = 200;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// `YYYY-MM-DD`, UTC.
    pub day: String,
    /// The Hermes version.
    pub hermes: String,
    /// The agent's version.
    pub agent: String,
    /// Cases that were to run.
    pub chosen: usize,
    /// Cases that ran.
    pub ran: usize,
    /// How many of each verdict.
    pub verdicts: BTreeMap<Kind, usize>,
    /// The headline's numbers.
    pub headline: Headline,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
    /// The exit code.
    pub exit: u8,
}

/// Adds a run to the history of a report directory.
///
/// # Errors
/// The file cannot be written.
pub fn add(folder: &Path, day: &str, summary: &Summary) -> Result<(), String> {
    let path = folder.join(FILE);
    let entry = Entry {
        day: day.to_owned(),
        hermes: summary.hermes.clone(),
        agent: summary.agent.clone(),
        chosen: summary.chosen,
        ran: summary.ran,
        verdicts: KINDS
            .into_iter()
            .map(|kind| (kind, summary.count(|one| one == kind)))
            .filter(|(_, count)| *count > 0)
            .collect(),
        headline: summary.headline,
        wall_ms: summary.wall_ms,
        exit: summary.exit,
    };
    let line = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
    File::options()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{line}"))
        .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

/// The runs of a report directory, oldest first. A line that cannot be read,
/// of another version or cut off, is left out.
#[must_use]
pub fn read(folder: &Path) -> Vec<Entry> {
    let text =
        given_file::text(&folder.join(FILE), suite::BYTES_MAX, Pipes::Refused).unwrap_or_default();
    let runs: Vec<Entry> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let old = runs.len().saturating_sub(RUNS_MAX);
    runs.into_iter().skip(old).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_kept_in_order_and_a_cut_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for ran in 1..4 {
            let summary = Summary {
                ran,
                ..Summary::default()
            };
            add(folder.path(), "2026-01-02", &summary).unwrap();
        }
        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"day\":")).unwrap();
        let ran: Vec<_> = read(folder.path()).iter().map(|run| run.ran).collect();
        assert_eq!(ran, [1, 2, 3]);
    }
}

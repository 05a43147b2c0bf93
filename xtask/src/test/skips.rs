//! Which skips a gate accepts: a short list with reasons, for machines that
//! cannot have what a test needs. An entry nothing matches is stale.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    #[serde(default)]
    skip: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Part of the test's label.
    test: String,
    /// Part of the reason the test gives.
    reason: String,
    /// Why this machine cannot run it.
    why: String,
}

/// One line for each skip the file does not list and each entry that nothing matched.
pub fn unexplained(path: &Path, skips: &[(String, &str)]) -> Result<Vec<String>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let accepted: Accepted =
        toml::from_str(&text).with_context(|| format!("{} is malformed", path.display()))?;
    Ok(findings(&accepted.skip, skips))
}

fn findings(accepted: &[Entry], skips: &[(String, &str)]) -> Vec<String> {
    let matches = |entry: &Entry, (label, reason): &(String, &str)| {
        label.contains(&entry.test) && reason.contains(&entry.reason) && !entry.why.is_empty()
    };
    let unlisted = skips
        .iter()
        .filter(|skip| !accepted.iter().any(|entry| matches(entry, skip)))
        .map(|(label, reason)| format!("UNEXPLAINED SKIP {label}: {reason}"));
    let stale = accepted
        .iter()
        .filter(|entry| !skips.iter().any(|skip| matches(entry, skip)))
        .map(|entry| format!("STALE accepted skip `{}`: nothing was skipped", entry.test));
    unlisted.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_skips_pass_and_unused_entries_are_stale() {
        let entry = |test: &str, reason: &str, why: &str| Entry {
            test: test.to_owned(),
            reason: reason.to_owned(),
            why: why.to_owned(),
        };
        let skips = [("a/lib x".to_owned(), "no venv")];
        assert!(findings(&[entry("a/lib", "venv", "none here")], &skips).is_empty());
        assert_eq!(findings(&[], &skips).len(), 1);
        assert_eq!(findings(&[entry("a/lib", "venv", "")], &skips).len(), 2);
        assert_eq!(findings(&[entry("a/lib", "venv", "w")], &[]).len(), 1);
    }
}

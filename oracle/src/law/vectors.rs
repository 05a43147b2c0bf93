//! Reading vectors and the catalogue of known divergences.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Verdict, ensure};
use crate::known::{self, Catalogue};
use crate::suite::{self, Suites};

/// Read a suite file; a second reading of the same bytes gives the same.
pub fn check_suite(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let read = || {
        let mut suites = Suites::default();
        let mut problems = Vec::new();
        suite::parse(
            Path::new("suite.json"),
            &text,
            &mut suites,
            &mut BTreeMap::new(),
            &mut problems,
        );
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        (suites.cases.len(), problems)
    };
    let first = read();
    ensure(first == read(), || "two readings differ".to_owned())?;
    let (_, problems) = first;
    ensure(
        problems
            .iter()
            .all(|problem| problem.starts_with("suite.json") && !problem.contains('\n')),
        || format!("a problem names no file or has several lines: {problems:?}"),
    )?;
    ensure(
        !problems.is_empty() || serde_json::from_str::<serde_json::Value>(&text).is_ok(),
        || "what is no JSON was read without a problem".to_owned(),
    )
}

/// Read a catalogue and lint it for one day.
pub fn check_catalogue(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let Ok(catalogue) = toml::from_str::<Catalogue>(&text) else {
        return Ok(());
    };
    let first = known::lint(&catalogue, Some("2026-11-22")).len();
    let second = known::lint(&catalogue, Some("2026-11-22")).len();
    ensure(first == second, || "two lints differ".to_owned())
}

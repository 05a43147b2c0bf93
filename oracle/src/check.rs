//! `bisim check`: choose the cases, run them on both subjects, judge, report.

use std::path::Path;

use crate::ambient::Ambient;
use crate::case::Case;
use crate::cli::CheckArgs;
use crate::suite::{self, Suites};
use crate::{exit, known};

/// Runs the command; returns the exit code.
#[must_use]
pub fn run(ambient: &Ambient, args: &CheckArgs) -> u8 {
    let vectors = args
        .vectors
        .clone()
        .unwrap_or_else(|| ambient.root.join("vectors"));
    let (suites, _catalogue) = match load(&vectors) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let chosen = match choose(&suites, args) {
        Ok(chosen) => chosen,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::USAGE;
        }
    };
    if args.list {
        list(&chosen);
        return exit::CONFORM;
    }
    eprintln!("error: running cases is not wired up in this build");
    exit::INTERNAL
}

/// Reads vectors and catalogue, and says what is wrong with them.
fn load(vectors: &Path) -> Result<(Suites, known::Catalogue), u8> {
    let suites = suite::load(vectors).map_err(|problems| {
        for problem in &problems {
            eprintln!("error: {problem}");
        }
        eprintln!(
            "error: {} problems in the vectors; nothing was run",
            problems.len()
        );
        exit::VECTORS
    })?;
    let catalogue = known::load(&vectors.join("known-divergences.toml")).map_err(|message| {
        eprintln!("error: {message}");
        exit::CATALOGUE
    })?;
    Ok((suites, catalogue))
}

/// The cases that suite, case and shard options leave.
fn choose<'s>(suites: &'s Suites, args: &CheckArgs) -> Result<Vec<&'s Case>, String> {
    for name in &args.suite {
        if !suites.descriptions.contains_key(name) {
            let known: Vec<_> = suites.descriptions.keys().map(String::as_str).collect();
            return Err(format!("no suite `{name}`; there are {}", known.join(", ")));
        }
    }
    let wanted: Vec<&String> = args.case.iter().chain(&args.explain).collect();
    for id in &wanted {
        if !suites.cases.iter().any(|case| case.id == **id) {
            return Err(format!("no case `{id}`; `bisim check --list` shows all"));
        }
    }
    Ok(suites
        .cases
        .iter()
        .filter(|case| args.suite.is_empty() || args.suite.contains(&case.suite))
        .filter(|case| wanted.is_empty() || wanted.iter().any(|id| **id == case.id))
        .enumerate()
        .filter(|(place, _)| args.shard.is_none_or(|shard| shard.takes(*place)))
        .map(|(_, case)| case)
        .collect())
}

fn list(chosen: &[&Case]) {
    for case in chosen {
        println!("{:16} {}", case.suite, case.id);
    }
    eprintln!("{} cases", chosen.len());
}

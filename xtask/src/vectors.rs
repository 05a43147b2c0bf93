//! Turns recorded observations of the real Hermes into cases, and keeps them true.
//!
//! The rows are facts somebody else measured; the cases are what `bisim` runs.
//! The conversion is a tool and not a one-off edit, so that a case can always
//! be traced to its row and a better reading of a row is one change here. Its
//! output is deterministic: the same rows give the same bytes. It must never
//! run a command of a row.

mod approval;
mod bypass;
mod draft;
mod edit_approval;
mod emit;
mod fixture;
mod index;
mod path_security;
mod paths_overlap;
mod row;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use crate::cmd::Passed;
use emit::Suite;

/// What `cargo xtask vectors` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Writes `vectors/suites/*.json`, `INDEX.md` and `SOURCES.md` from the rows.
    Convert(Places),
    /// Fails if a converted suite is not what `convert` writes, or the index is out of date.
    Check(Places),
    /// Rewrites `INDEX.md` from the suites that are there.
    Index(Places),
}

/// Where rows are read and cases written.
#[derive(Args, Clone, Debug)]
pub struct Places {
    /// The folder of the recorded rows (`approval.jsonl`, ...).
    #[arg(long, default_value = "../shared/cases")]
    from: PathBuf,
    /// The folder of the vectors.
    #[arg(long, default_value = "vectors")]
    to: PathBuf,
}

/// Runs one command.
///
/// # Errors
/// A row or suite that cannot be read, a row that is not understood, or (for
/// `check`) a file that differs from what the rows give.
pub fn run(command: &Command) -> anyhow::Result<Passed> {
    match command {
        Command::Convert(places) => convert(places)?,
        Command::Check(places) => return check(places),
        Command::Index(places) => write(&places.to.join("INDEX.md"), &index::render(&places.to)?)?,
    }
    Ok(Passed::Yes)
}

fn convert(places: &Places) -> anyhow::Result<()> {
    let folder = places.to.join("suites");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let suites = suites(&places.from)?;
    for suite in &suites {
        write(&folder.join(suite.file_name()), &suite.render()?)?;
    }
    write(&places.to.join("SOURCES.md"), &index::sources(&suites))?;
    write(&places.to.join("INDEX.md"), &index::render(&places.to)?)?;
    for suite in &suites {
        println!(
            "{}: {} rows -> {} cases",
            suite.name,
            suite.rows,
            suite.cases.len()
        );
    }
    Ok(())
}

fn check(places: &Places) -> anyhow::Result<Passed> {
    let mut stale = Vec::new();
    if places.from.is_dir() {
        let suites = suites(&places.from)?;
        for suite in &suites {
            let path = places.to.join("suites").join(suite.file_name());
            if read(&path)? != suite.render()? {
                stale.push(path);
            }
        }
        let path = places.to.join("SOURCES.md");
        if read(&path)? != index::sources(&suites) {
            stale.push(path);
        }
    } else {
        println!(
            "SKIPPED: {} is not here, converted suites are not compared with their rows",
            places.from.display()
        );
    }
    let path = places.to.join("INDEX.md");
    if read(&path)? != index::render(&places.to)? {
        stale.push(path);
    }
    for path in &stale {
        eprintln!(
            "{}: out of date; run `cargo xtask vectors convert`",
            path.display()
        );
    }
    Ok(Passed::when(stale.is_empty()))
}

/// All converted suites, in the order of the documents.
fn suites(from: &Path) -> anyhow::Result<Vec<Suite>> {
    let tree = fixture::Tree::read(&from.join("fx-tree-1.json"))?;
    Ok(vec![
        approval::suite(&row::read(from, "approval.jsonl")?)?,
        path_security::suite(&row::read(from, "path_security.jsonl")?, &tree)?,
        edit_approval::suite(&row::read(from, "edit_approval.jsonl")?)?,
        paths_overlap::suite(&row::read(from, "paths_overlap.jsonl")?)?,
        bypass::suite(&row::read(from, "bypass.jsonl")?)?,
    ])
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

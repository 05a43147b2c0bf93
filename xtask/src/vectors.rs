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
mod made;
mod ordinary;
mod path_security;
mod paths_overlap;
mod row;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use crate::cmd::{self, Passed};
use emit::Suite;

/// What `cargo xtask vectors` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Write the converted suites, `SOURCES.md`, the index and the schema from recorded rows.
    Convert {
        /// The folder of the recorded rows (`approval.jsonl`, ...).
        #[arg(long)]
        from: PathBuf,
        #[command(flatten)]
        to: Vectors,
    },
    /// Fail if a file is malformed, out of date, or not what its rows give.
    Check {
        /// The folder of the recorded rows; without it they are not compared.
        #[arg(long)]
        from: Option<PathBuf>,
        #[command(flatten)]
        to: Vectors,
    },
    /// Write the made-up suites, then the index and the schema.
    Make {
        #[command(flatten)]
        to: Vectors,
    },
    /// Write the index and the schema of the suites that are there.
    Index {
        #[command(flatten)]
        to: Vectors,
    },
}

/// Where the cases are.
#[derive(Args, Clone, Debug)]
pub struct Vectors {
    /// The folder of the vectors; default: the workspace's.
    #[arg(long)]
    vectors: Option<PathBuf>,
}

impl Vectors {
    fn folder(&self) -> PathBuf {
        self.vectors
            .clone()
            .unwrap_or_else(|| cmd::root().join("vectors"))
    }
}

/// Runs one command.
///
/// # Errors
/// A row or suite that cannot be read, or a row that is not understood.
pub fn run(command: &Command) -> anyhow::Result<Passed> {
    match command {
        Command::Convert { from, to } => {
            let folder = to.folder();
            let suites = suites(from)?;
            for (path, text) in converted(&suites)? {
                write(&folder.join(path), &text)?;
            }
            for suite in &suites {
                println!(
                    "{}: {} rows -> {} cases",
                    suite.name,
                    suite.rows,
                    suite.cases.len()
                );
            }
            write_derived(&folder)?;
            Ok(Passed::Yes)
        }
        Command::Check { from, to } => check(from.as_deref(), &to.folder()),
        Command::Make { to } => {
            let folder = to.folder();
            for suite in made::suites()? {
                write(
                    &folder.join("suites").join(suite.file_name()),
                    &suite.render()?,
                )?;
                println!("{}: {} cases", suite.name, suite.cases.len());
            }
            write_derived(&folder)?;
            Ok(Passed::Yes)
        }
        Command::Index { to } => {
            write_derived(&to.folder())?;
            Ok(Passed::Yes)
        }
    }
}

fn write_derived(folder: &Path) -> anyhow::Result<()> {
    for (path, text) in derived(folder)? {
        write(&folder.join(path), &text)?;
    }
    Ok(())
}

/// Prints everything that is wrong, and says whether nothing was.
pub fn check(from: Option<&Path>, folder: &Path) -> anyhow::Result<Passed> {
    let mut wrong = Vec::new();
    let loaded = bisim::suite::load(folder).unwrap_or_else(|problems| {
        wrong.extend(problems.iter().map(ToString::to_string));
        Default::default()
    });
    match bisim::known::load(&folder.join("known-divergences.toml")) {
        Ok(catalogue) => {
            // The form alone: dates are held against the day when the oracle runs.
            let mut faults = bisim::known::lint(&catalogue, None);
            if !loaded.cases.is_empty() {
                let releases = bisim::hermes_env::known_versions();
                faults.extend(bisim::known::strangers(
                    &catalogue,
                    &loaded.cases,
                    &releases,
                ));
            }
            for fault in faults {
                wrong.push(format!(
                    "known divergence `{}`: {}: {}",
                    fault.entry, fault.kind, fault.why
                ));
            }
        }
        Err(message) => wrong.push(message),
    }
    let mut files = derived(folder)?;
    for suite in made::suites()? {
        files.push((Path::new("suites").join(suite.file_name()), suite.render()?));
    }
    if let Some(from) = from {
        files.extend(converted(&suites(from)?)?);
    }
    for (path, text) in files {
        let path = folder.join(path);
        if read(&path)? != text {
            wrong.push(format!("{}: out of date; run `cargo xtask vectors index`, `make` for a made-up suite, or `convert` for a converted one", path.display()));
        }
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    Ok(Passed::when(wrong.is_empty()))
}

/// What the rows give: a path below the vectors, and its text.
fn converted(suites: &[Suite]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = vec![(PathBuf::from("SOURCES.md"), index::sources(suites))];
    for suite in suites {
        files.push((Path::new("suites").join(suite.file_name()), suite.render()?));
    }
    Ok(files)
}

/// What the suites and the oracle's types give.
fn derived(folder: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let schema = serde_json::to_string_pretty(&bisim::case::schema())?;
    Ok(vec![
        (PathBuf::from("INDEX.md"), index::render(folder)?),
        (PathBuf::from("schema/suite.json"), format!("{schema}\n")),
    ])
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
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

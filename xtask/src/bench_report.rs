//! The reports on the spawn path, on grants and on file calls: measured in an optimised build,
//! written by the benchmark itself, never by hand.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cmd::{self, Passed};

#[derive(Debug, clap::Args)]
pub struct Files {
    /// A directory to measure in, once more for each; the directory for temporary files without it.
    #[arg(long, value_name = "DIR")]
    on: Vec<PathBuf>,
}

/// Measure the spawn path and write.
pub fn run() -> Result<Passed> {
    report("spawn_report", &[])
}

/// Measure what grants cost, let eight threads use one ten million times, and write.
pub fn grants() -> Result<Passed> {
    report("grants_report", &[])
}

/// Measure file calls beside Hermes' and write.
pub fn files(args: &Files) -> Result<Passed> {
    report("files", &args.on)
}

fn report(bench: &str, places: &[PathBuf]) -> Result<Passed> {
    let to = cmd::root().join("docs/benchmarks");
    cmd::status(
        cmd::cargo()
            .args(["bench", "--package", "benches", "--bench", bench])
            .args(["--", "--write"])
            .arg(to)
            .args(places.iter().flat_map(|place| [Path::new("--on"), place])),
    )
}

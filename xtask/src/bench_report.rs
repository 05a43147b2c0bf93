//! The reports on the spawn path, on grants and on file calls: measured in an optimised build,
//! written by the benchmark itself, never by hand.

use anyhow::Result;

use crate::cmd::{self, Passed};

/// Measure the spawn path and write.
pub fn run() -> Result<Passed> {
    report("spawn_report")
}

/// Measure what grants cost, let eight threads use one ten million times, and write.
pub fn grants() -> Result<Passed> {
    report("grants_report")
}

/// Measure file calls beside Hermes' and write.
pub fn files() -> Result<Passed> {
    report("files")
}

fn report(bench: &str) -> Result<Passed> {
    let to = cmd::root().join("docs/benchmarks");
    cmd::status(
        cmd::cargo()
            .args(["bench", "--package", "benches", "--bench", bench])
            .args(["--", "--write"])
            .arg(to),
    )
}

//! The report on the spawn path: measured in an optimised build, written by
//! the benchmark itself, never by hand.

use anyhow::Result;

use crate::cmd::{self, Passed};

/// Measure and write.
pub fn run() -> Result<Passed> {
    let to = cmd::root().join("docs/benchmarks");
    cmd::status(
        cmd::cargo()
            .args(["bench", "--package", "benches", "--bench", "spawn_report"])
            .args(["--", "--write"])
            .arg(to),
    )
}

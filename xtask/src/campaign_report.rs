//! The report on what the harness costs: `bisim speed`, over fuzz targets built
//! as for a campaign. Written by the program, never by hand.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{
    ci::lacks_for_fuzzing,
    cmd::{self, Passed},
};

/// Where the targets go.
const TARGETS: &str = "target/fuzz-campaign";
/// What is written.
const PAGE: &str = "docs/benchmarks/campaign.md";

/// What `campaign-report` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Leave out the fuzz targets, whose build needs nightly and some minutes.
    #[arg(long)]
    no_targets: bool,
    /// Only build what is measured.
    #[arg(long)]
    build: bool,
}

/// Builds, measures and writes.
pub fn run(args: &Args) -> Result<Passed> {
    let root = cmd::root();
    let oracle = ["build", "--package", "bisim", "--bin", "bisim"];
    if let Passed::No = cmd::status(cmd::cargo().args(oracle))? {
        return Ok(Passed::No);
    }
    let targets = root.join(TARGETS);
    if !args.no_targets {
        if let Some(what) = lacks_for_fuzzing() {
            bail!("{what}; --no-targets measures the rest");
        }
        let mut build = Command::new(root.join(".clusterfuzzlite/build.sh"));
        bisim::nested_cargo::apart(&mut build)
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("OUT", &targets)
            .env("FUZZ_BUILD", "--release --sanitizer none");
        if let Passed::No = cmd::status(&mut build)? {
            return Ok(Passed::No);
        }
    }
    if args.build {
        return Ok(Passed::Yes);
    }
    let mut speed = cmd::cargo();
    speed
        .args(["run", "--package", "bisim", "--", "speed", "--write"])
        .arg(root.join(PAGE));
    if !args.no_targets {
        speed.arg("--targets").arg(&targets);
    }
    cmd::status(&mut speed)
}

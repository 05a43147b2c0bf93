//! `cargo xtask mutants`: change the code where decisions are made, one place
//! at a time, and see whether the tests notice.
//!
//! The tool is cargo-mutants, which is installed by whoever wants to run this
//! (`cargo install cargo-mutants --locked --version 27.1.0`); nothing else needs
//! it. All of it takes hours on two processors, so `--shard` deals it out.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use serde::Deserialize;

use crate::cmd::{self, Passed};

/// Where results go.
const PLACE: &str = "target/mutants";
/// A mutant may loop for ever; the slowest run of the tests takes a tenth.
const TIMEOUT_SECONDS: &str = "150";

/// What `mutants` takes.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// What is changed.
    #[arg(long, value_enum, default_value_t = Of::Core)]
    of: Of,
    /// Only every n-th mutant, from the i-th on, counted from 0, as in `7/72`.
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
}

/// What is changed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    /// Every decision of the agent, under the core's own tests.
    Core,
    /// The relation that judges it, under the oracle's own tests.
    Relation,
}

/// The counts cargo-mutants leaves.
#[derive(Debug, Deserialize)]
struct Outcomes {
    missed: u64,
    caught: u64,
    timeout: u64,
    unviable: u64,
}

/// Runs the tool and prints the figure; passes if no mutant survived.
pub fn run(args: &Args) -> Result<Passed> {
    let installed = cmd::cargo().args(["mutants", "--version"]).output();
    ensure!(
        installed.is_ok_and(|output| output.status.success()),
        "cargo-mutants is not installed; run `cargo install cargo-mutants --locked --version 27.1.0`"
    );
    let mut tool = cmd::cargo();
    tool.args(["mutants", "--jobs", "1", "--timeout", TIMEOUT_SECONDS]);
    tool.args(["--no-shuffle", "--colors", "never", "--output", PLACE]);
    if let Some(shard) = &args.shard {
        tool.args(["--shard", shard, "--sharding", "round-robin"]);
    }
    choose(&mut tool, args.of);
    // Its exit status says whether one survived, which the counts say as well.
    let status = tool.status().context("cannot start cargo")?;
    let path = cmd::root().join(PLACE).join("mutants.out/outcomes.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let seen: Outcomes =
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
    let killed = seen.caught.saturating_add(seen.timeout);
    let viable = killed.saturating_add(seen.missed);
    println!(
        "{killed} of {viable} viable mutants are noticed, {} survive, {} do not compile",
        seen.missed, seen.unviable
    );
    ensure!(
        viable > 0,
        "no mutant was tried ({status}); the log is below {PLACE}"
    );
    Ok(Passed::when(seen.missed == 0))
}

fn choose(tool: &mut Command, of: Of) {
    match of {
        Of::Core => tool.args(["-p", "hermitcrab-core", "--", "--lib", "--test", "it"]),
        Of::Relation => tool.args([
            "-p",
            "bisim",
            "--file",
            "oracle/src/relation.rs",
            "--file",
            "oracle/src/relation/**",
            "--",
            "--lib",
            "relation",
        ]),
    };
}

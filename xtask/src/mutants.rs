//! `cargo xtask mutants`: change the code where decisions are made, one place
//! at a time, and see whether the tests notice.
//!
//! The tool is cargo-mutants, which is installed by whoever wants to run this
//! (`cargo install cargo-mutants --locked --version 27.1.0`); nothing else needs
//! it. All of it takes hours on two processors, so `--shard` deals it out. A
//! mutant that no test can notice is explained in `.ci/accepted-mutants.toml`.

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

/// Mutants that may survive, with the reason.
const ACCEPTED: &str = ".ci/accepted-mutants.toml";

/// The list of mutants that may survive.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    #[serde(default)]
    mutant: Vec<Explained>,
}

/// A kind of mutant that may survive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Explained {
    /// The file it is in; empty for every file.
    file: String,
    /// What its description holds.
    change: String,
    /// Why no test can notice it.
    reason: String,
}

impl Accepted {
    fn read() -> Result<Self> {
        let path = cmd::root().join(ACCEPTED);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let read: Self = toml::from_str(text)?;
        for one in &read.mutant {
            ensure!(
                !one.change.is_empty() && !one.reason.is_empty(),
                "an entry without change or reason: {one:?}"
            );
        }
        Ok(read)
    }

    /// Why a survivor, as cargo-mutants tells it, may survive.
    fn reason(&self, survivor: &str) -> Option<&str> {
        let explains =
            |one: &&Explained| survivor.starts_with(&one.file) && survivor.contains(&one.change);
        Some(&self.mutant.iter().find(explains)?.reason)
    }
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
    let survivors = cmd::root().join(PLACE).join("mutants.out/missed.txt");
    let survivors = fs::read_to_string(&survivors)
        .with_context(|| format!("cannot read {}", survivors.display()))?;
    let unexplained = unexplained(&Accepted::read()?, &survivors);
    println!(
        "{killed} of {viable} viable mutants are noticed, {} survive, {unexplained} of them \
         without a reason, {} do not compile",
        seen.missed, seen.unviable
    );
    ensure!(
        viable > 0,
        "no mutant was tried ({status}); the log is below {PLACE}"
    );
    Ok(Passed::when(unexplained == 0))
}

/// Prints each survivor; how many nobody has explained.
fn unexplained(accepted: &Accepted, survivors: &str) -> usize {
    let mut count = 0;
    for survivor in survivors.lines().filter(|line| !line.is_empty()) {
        match accepted.reason(survivor) {
            Some(reason) => println!("survives: {survivor}: {reason}"),
            None => {
                count += 1;
                println!("SURVIVES: {survivor}");
            }
        }
    }
    count
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[mutant]]
        file = "agent/core/src/"
        change = "fault::is(Fault::"
        reason = "no fault is planted"
    "#;

    #[test]
    fn a_survivor_is_explained_only_by_file_and_change_together() {
        let accepted = Accepted::parse(LIST).unwrap();
        let guard = "replace match guard fault::is(Fault::ForgetExpiry) with false in weigh";
        let survivors = format!(
            "agent/core/src/monitor.rs:1:2: {guard}\n\
             oracle/src/relation.rs:1:2: {guard}\n\
             agent/core/src/monitor.rs:3:4: replace weigh with ()\n"
        );
        assert_eq!(unexplained(&accepted, &survivors), 2);
        assert_eq!(unexplained(&Accepted::default(), &survivors), 3);
        assert_eq!(unexplained(&accepted, ""), 0);
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        assert!(Accepted::parse(&LIST.replace("no fault is planted", "")).is_err());
        assert!(Accepted::parse(&LIST.replace("file", "folder")).is_err());
    }

    #[test]
    fn the_checked_in_list_can_be_read() {
        assert!(!Accepted::read().unwrap().mutant.is_empty());
    }
}

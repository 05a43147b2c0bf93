//! `cargo xtask mutants`: change the code where decisions are made, one place
//! at a time, and see whether the tests notice.
//!
//! The tool is cargo-mutants, which is installed by whoever wants to run this
//! (`cargo install cargo-mutants --locked --version 27.1.0`); nothing else needs
//! it. It builds anew for each mutant, which takes hours, so `--shard` deals
//! them out; `--together` builds once with nearly all of them ([`together`]) and
//! leaves it the rest. A mutant that no test can notice is explained in
//! `.ci/accepted-mutants.toml`.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use serde::Deserialize;

use crate::cmd::{self, Passed};

mod together;
mod weave;

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
    /// All of them, most in one build: minutes instead of hours.
    #[arg(long, conflicts_with = "shard")]
    together: bool,
}

/// What is changed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    /// Every decision of the agent, under the core's own tests.
    Core,
    /// The relation that judges it, and what is held by its own account, under the oracle's
    /// own tests.
    Relation,
}

/// A crate, or a part of one, and the tests that ought to notice.
struct Place {
    package: &'static str,
    /// Its sources.
    sources: &'static str,
    /// Which of them are changed; all of them if empty.
    files: &'static [&'static str],
    /// What `cargo test` builds of it.
    tests: &'static [&'static str],
    /// Parts of the names of the tests to run; all of them if empty.
    filter: &'static [&'static str],
}

impl Place {
    /// Where the package is.
    fn package_dir(&self) -> &'static str {
        self.sources.trim_end_matches("/src")
    }

    /// Whether the test of this name is run.
    fn runs(&self, test: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|part| test.contains(part))
    }

    /// What chooses the mutants.
    fn chosen(&self) -> Vec<&'static str> {
        let files = self.files.iter().flat_map(|file| ["--file", file]);
        ["-p", self.package].into_iter().chain(files).collect()
    }
}

impl Of {
    const fn place(self) -> Place {
        match self {
            Self::Core => Place {
                package: "hermitcrab-core",
                sources: "agent/core/src",
                files: &[],
                tests: &["--lib", "--test", "it"],
                filter: &[],
            },
            Self::Relation => Place {
                package: "bisim",
                sources: "oracle/src",
                files: &[
                    "oracle/src/relation.rs",
                    "oracle/src/relation/**",
                    "oracle/src/holdings.rs",
                    "oracle/src/holdings/**",
                ],
                tests: &["--lib"],
                filter: &["relation", "holdings"],
            },
        }
    }
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
    /// What the line that is changed holds, where there are several of that description.
    #[serde(default)]
    on: String,
    /// Why no test can notice it.
    reason: String,
    /// How many mutants it explains; more of the same description are none of it.
    #[serde(default = "one")]
    mutants: usize,
}

const fn one() -> usize {
    1
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

    /// Why a survivor, as cargo-mutants tells it, may survive. An entry is used
    /// up by as many as it explains.
    fn reason(&mut self, survivor: &str) -> Option<&str> {
        let line = line_of(survivor).unwrap_or_default();
        let entry = self.mutant.iter_mut().find(|one| {
            one.mutants > 0
                && survivor.starts_with(&one.file)
                && survivor.contains(&one.change)
                && line.contains(&one.on)
        })?;
        entry.mutants -= 1;
        Some(&entry.reason)
    }

    /// Entries about these sources that say more survive than did, once all was tried.
    fn stale(&self, sources: &str) -> Vec<String> {
        let of_them = |one: &&Explained| one.file.starts_with(sources) && one.mutants > 0;
        let told = |one: &Explained| {
            format!(
                "{ACCEPTED}: `{}` in {} explains {} fewer than it says; correct the entry",
                one.change, one.file, one.mutants
            )
        };
        self.mutant.iter().filter(of_them).map(told).collect()
    }
}

/// The line of the sources that a survivor changes, told as `FILE:LINE:COLUMN: …`.
fn line_of(survivor: &str) -> Option<String> {
    let mut parts = survivor.split(':');
    let file = parts.next()?;
    let number: usize = parts.next()?.parse().ok()?;
    let text = fs::read_to_string(cmd::root().join(file)).ok()?;
    text.lines().nth(number.checked_sub(1)?).map(str::to_owned)
}

/// The counts cargo-mutants leaves.
#[derive(Debug, Default, Deserialize)]
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
    let mut all = Outcomes::default();
    let mut survivors = Vec::new();
    let mut left = None;
    if args.together {
        let found = together::run(args.of)?;
        all = found.counts;
        survivors = found.survivors;
        left = Some(found.left);
    }
    // `None` is everything; what was woven leaves something to do, or nothing.
    if left.as_ref().is_none_or(|left| !left.is_empty()) {
        let (seen, missed) = one_by_one(args, left.as_deref())?;
        all = all.and(&seen);
        survivors.extend(missed);
    }
    let killed = all.caught.saturating_add(all.timeout);
    let viable = killed.saturating_add(all.missed);
    let mut accepted = Accepted::read()?;
    let unexplained = unexplained(&mut accepted, &survivors);
    // A part of the mutants says nothing of the entries about the others.
    let stale = match args.shard {
        Some(_) => Vec::new(),
        None => accepted.stale(args.of.place().sources),
    };
    for entry in &stale {
        println!("{entry}");
    }
    println!(
        "{killed} of {viable} viable mutants are noticed, {} survive, {unexplained} of them \
         without a reason, {} do not compile",
        all.missed, all.unviable
    );
    ensure!(viable > 0, "no mutant was tried; the log is below {PLACE}");
    Ok(Passed::when(unexplained == 0 && stale.is_empty()))
}

impl Outcomes {
    const fn and(&self, other: &Self) -> Self {
        Self {
            missed: self.missed.saturating_add(other.missed),
            caught: self.caught.saturating_add(other.caught),
            timeout: self.timeout.saturating_add(other.timeout),
            unviable: self.unviable.saturating_add(other.unviable),
        }
    }
}

/// Has cargo-mutants build and test each on its own: those named, or all.
fn one_by_one(args: &Args, named: Option<&[String]>) -> Result<(Outcomes, Vec<String>)> {
    let place = args.of.place();
    let mut tool = cmd::cargo();
    tool.args(["mutants", "--jobs", "1", "--timeout", TIMEOUT_SECONDS]);
    tool.args(["--no-shuffle", "--colors", "never", "--output", PLACE]);
    if let Some(shard) = &args.shard {
        tool.args(["--shard", shard, "--sharding", "round-robin"]);
    }
    if let Some(named) = named {
        tool.args([
            "--re",
            &named
                .iter()
                .map(|name| exactly(name))
                .collect::<Vec<_>>()
                .join("|"),
        ]);
    }
    tool.args(place.chosen()).arg("--").args(place.tests);
    // Of several, the tests' own program runs what any of them is a part of.
    if !place.filter.is_empty() {
        tool.arg("--").args(place.filter);
    }
    // Its exit status says whether one survived, which the counts say as well.
    let status = tool.status().context("cannot start cargo")?;
    let results = cmd::root().join(PLACE).join("mutants.out");
    let read = |name: &str| {
        let path = results.join(name);
        fs::read_to_string(&path)
            .with_context(|| format!("cannot read {} ({status})", path.display()))
    };
    let seen: Outcomes = serde_json::from_str(&read("outcomes.json")?)
        .with_context(|| format!("the outcomes below {} are damaged", results.display()))?;
    let missed = read("missed.txt")?;
    let missed = missed.lines().filter(|line| !line.is_empty());
    Ok((seen, missed.map(str::to_owned).collect()))
}

/// What means something else than itself in a pattern. Nothing more may be escaped: of
/// what is left, `\<` and `\>` are the ends of a word, which no name would match.
const SPECIAL: &str = "\\.+*?()|[]{}^$";

/// A pattern for exactly this name.
fn exactly(name: &str) -> String {
    let mut pattern = String::from("^");
    for letter in name.chars() {
        if SPECIAL.contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('$');
    pattern
}

/// Every mutant there is, by the same choice.
fn list(of: Of) -> Result<Vec<weave::Mutant>> {
    let mut tool = cmd::cargo();
    tool.args(["mutants", "--list", "--json"])
        .args(of.place().chosen());
    let listed = tool.output().context("cannot start cargo")?;
    ensure!(
        listed.status.success(),
        "cargo-mutants cannot list the mutants"
    );
    serde_json::from_slice(&listed.stdout).context("the list of mutants is damaged")
}

/// Prints each survivor; how many nobody has explained.
fn unexplained(accepted: &mut Accepted, survivors: &[String]) -> usize {
    let mut count = 0;
    for survivor in survivors {
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

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    const LIST: &str = r#"
        [[mutant]]
        file = "agent/core/src/"
        change = "fault::is(Fault::"
        reason = "no fault is planted"
    "#;

    #[test]
    fn a_survivor_is_explained_only_by_file_and_change_together_and_not_too_often() {
        let guard = "replace match guard fault::is(Fault::ForgetExpiry) with false in weigh";
        let survivors = [
            format!("agent/core/src/monitor.rs:1:2: {guard}"),
            format!("oracle/src/relation.rs:1:2: {guard}"),
            "agent/core/src/monitor.rs:3:4: replace weigh with ()".to_owned(),
        ];
        assert_eq!(
            unexplained(&mut Accepted::parse(LIST).unwrap(), &survivors),
            2
        );
        assert_eq!(unexplained(&mut Accepted::default(), &survivors), 3);
        assert_eq!(unexplained(&mut Accepted::parse(LIST).unwrap(), &[]), 0);
        let twice = [survivors[0].clone(), survivors[0].clone()];
        assert_eq!(unexplained(&mut Accepted::parse(LIST).unwrap(), &twice), 1);
        let two = LIST.replace("file =", "mutants = 2\n        file =");
        assert_eq!(unexplained(&mut Accepted::parse(&two).unwrap(), &twice), 0);
    }

    #[test]
    fn of_several_of_one_description_only_the_one_on_its_line_is_explained() {
        let told = "replace line_of -> Option<String> with None";
        let here = include_str!("mutants.rs");
        let at = |part: &str| here.lines().position(|line| line.contains(part)).unwrap() + 1;
        let survivors = ["fn line_of(", "fn exactly("]
            .map(|part| format!("xtask/src/mutants.rs:{}:4: {told}", at(part)));
        let list = format!(
            "[[mutant]]\nfile = \"xtask/src/\"\nchange = \"{told}\"\non = \"fn exactly(\"\nreason = \"so\"\n"
        );
        let mut accepted = Accepted::parse(&list).unwrap();
        assert_eq!(unexplained(&mut accepted, &survivors[..1]), 1);
        assert_eq!(accepted.stale("xtask/src").len(), 1);
        assert_eq!(unexplained(&mut accepted, &survivors[1..]), 0);
        assert_eq!(accepted.stale("xtask/src"), Vec::<String>::new());
    }

    #[test]
    fn an_entry_that_explains_nothing_is_told_to_whoever_tried_its_file() {
        let accepted = Accepted::parse(LIST).unwrap();
        let told = accepted.stale("agent/core/src");
        assert_eq!(told.len(), 1);
        assert!(
            told[0].contains("`fault::is(Fault::` in agent/core/src/"),
            "{told:?}"
        );
        assert_eq!(accepted.stale("oracle/src"), Vec::<String>::new());
    }

    #[test]
    fn a_name_is_a_pattern_for_itself_alone() {
        let name = "a/b.rs:1:2: replace <impl D for C>::fmt -> R<'_> with (|| + &&) << [$1] in f";
        let pattern = Regex::new(&exactly(name)).unwrap();
        assert!(pattern.is_match(name));
        for other in [
            name.replace(".rs", "_rs"),
            format!("{name} too"),
            format!("a{name}"),
        ] {
            assert!(!pattern.is_match(&other), "{other}");
        }
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

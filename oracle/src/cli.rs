//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

mod numbers;

/// Judges the agent against the real Hermes, in equal disposable worlds.
#[derive(Debug, Parser)]
#[command(name = "bisim", version, after_help = crate::exit::HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the suites and judge every case.
    #[command(after_help = crate::exit::HELP)]
    Check(Box<CheckArgs>),
    /// Say what this machine has and lacks for a run.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Doctor(DoctorArgs),
    /// Plant faults in the agent one by one and see the suites find each.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Selftest(SelftestArgs),
    /// Run cases that make trouble and count what stays behind and what is lost.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Leaks(LeakArgs),
    /// Measure what worlds, cases and fuzz targets cost.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Speed(SpeedArgs),
    /// Hunt for commands that get past a guard, and keep what is found.
    #[command(after_help = crate::exit::HELP)]
    Fuzz(FuzzArgs),
    /// Decide about generated work that is harmless, and count false alarms.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Benign(BenignArgs),
    /// Show for each pattern of Hermes' detector what it flags and what gets past it.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Patterns(PatternArgs),
    /// Tell for each operator how many of its variants have the effect of their seed.
    #[command(after_help = crate::exit::TRIED_HELP)]
    Operators(OperatorArgs),
    /// Run the cases of one file, such as a finding, and explain each.
    #[command(after_help = crate::exit::HELP)]
    Replay(ReplayArgs),
    /// Make one page of a report, for a browser without a network.
    #[command(after_help = crate::exit::REPORT_HELP)]
    Report(ReportArgs),
    /// Show what changes for a user of Hermes, on their own home and history.
    #[command(after_help = crate::exit::MIGRATE_HELP)]
    Migrate(Box<MigrateArgs>),
    /// Run a live Hermes and mirror each of its calls while somebody works.
    #[command(after_help = crate::exit::SHADOW_HELP)]
    Shadow(Box<ShadowArgs>),
    /// Put the reports of several runs, such as shards, together and judge them as one.
    #[command(after_help = crate::exit::HELP)]
    Merge(MergeArgs),
    /// The agent's worker process; started by `check`, not by people.
    #[command(name = "__agent-worker", hide = true)]
    AgentWorker {
        /// What the sandbox was seen to do here.
        #[arg(long, default_value = "unknown")]
        isolation: String,
        /// A fault to plant.
        #[arg(long)]
        fault: Option<String>,
    },
    /// The agent's own program, inside a world; started by its worker, not by people.
    #[command(name = "__agent", hide = true)]
    Agent {
        /// A fault to plant.
        #[arg(long)]
        fault: Option<String>,
        /// Its command line.
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// A worker that is a bare shell; started by the oracle, not by people.
    #[command(name = "__shell-worker", hide = true)]
    ShellWorker,
}

/// How many cases without a verdict a gate bears.
#[derive(Clone, Copy, Debug, Args)]
pub struct Allowed {
    /// Inconclusive cases allowed, but for unsteady ones.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = numbers::any_usize)]
    pub inconclusive_max: usize,
    /// Unsteady cases allowed: they failed once and, repeated alone, not again.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = numbers::any_usize)]
    pub unsteady_max: usize,
}

/// What `check` takes.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// Print a line of JSON per case, then the summary, instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write SARIF.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Only this suite (may be repeated).
    #[arg(long, value_name = "SUITE")]
    pub suite: Vec<String>,
    /// Only this case (may be repeated).
    #[arg(long, value_name = "ID")]
    pub case: Vec<String>,
    /// The Hermes release to compare with.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// Pairs of workers; default: two for each processor, since a pair often waits.
    #[arg(short, long, value_name = "N", value_parser = numbers::jobs)]
    pub jobs: Option<usize>,
    /// Only every n-th case, from the i-th on, counted from 1.
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub shard: Option<Shard>,
    /// Of the cases that were generated only every n-th, from the i-th on; those written by
    /// hand and recorded ones all run.
    #[arg(long, value_name = "I/N", value_parser = parse_shard, conflicts_with = "shard")]
    pub generated: Option<Shard>,
    /// Stop after this long (`90s`, `10m`, `1h`); what did not run is shown.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub budget: Option<Duration>,
    /// List the chosen cases and stop; with --json a line of JSON for each.
    #[arg(long)]
    pub list: bool,
    /// Run one case and explain the verdict.
    #[arg(long, value_name = "ID", conflicts_with = "json")]
    pub explain: Option<String>,
    /// Where the full report goes; default `target/bisim`, and with --explain
    /// `target/bisim/explain`.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// How much doubt is allowed.
    #[command(flatten)]
    pub allowed: Allowed,
    /// Another vectors directory.
    #[arg(long, value_name = "DIR")]
    pub vectors: Option<PathBuf>,
}

/// What `doctor` takes.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Make the Hermes environment anew.
    #[arg(long)]
    pub repair: bool,
    /// Print a line of JSON for each thing that is looked at.
    #[arg(long)]
    pub json: bool,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
}

/// What `selftest` takes.
#[derive(Clone, Debug, Args)]
pub struct SelftestArgs {
    /// Only this fault (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub fault: Vec<String>,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// List the faults and stop.
    #[arg(long)]
    pub list: bool,
    /// Hunt through all suites, without trying first what found a fault before.
    #[arg(long)]
    pub full: bool,
    /// Write down what found each fault, to be tried first from now on.
    #[arg(long)]
    pub keep: bool,
    /// Measure instead how well the buckets of a campaign tell the faults apart.
    #[arg(long)]
    pub buckets: bool,
    /// With `--buckets`: how many generated things of each kind meet each fault.
    #[arg(long, value_name = "N", default_value_t = 40, requires = "buckets",
        value_parser = numbers::some_held)]
    pub count: u64,
    /// With `--buckets`: which of them.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "buckets",
        allow_negative_numbers = true, value_parser = numbers::seed)]
    pub seed: u64,
    /// With `--buckets`: keep the labelled findings in this file; until all are there they
    /// are in the one beside it that ends in `.part`.
    #[arg(long, value_name = "FILE", requires = "buckets")]
    pub write: Option<PathBuf>,
}

/// What `leaks` takes.
#[derive(Clone, Debug, Args)]
pub struct LeakArgs {
    /// How many cases.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = numbers::some_usize)]
    pub count: usize,
    /// Cases at the same time; default: two for each processor.
    #[arg(short, long, value_name = "N", value_parser = numbers::jobs)]
    pub jobs: Option<usize>,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// The directory of temporary files is this run's alone; given by the program to itself.
    #[arg(long, hide = true)]
    pub apart: bool,
}

/// What `speed` takes.
#[derive(Clone, Debug, Args)]
pub struct SpeedArgs {
    /// Empty worlds of each subject.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = numbers::some_usize)]
    pub worlds: usize,
    /// Cases of Hermes that are compared with a plain loop.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = numbers::some_usize)]
    pub cases: usize,
    /// Where the built fuzz targets are; without it they are not measured.
    #[arg(long, value_name = "DIR")]
    pub targets: Option<PathBuf>,
    /// How long each target runs.
    #[arg(long, value_name = "SECONDS", default_value_t = 4, value_parser = numbers::some)]
    pub seconds: u64,
    /// Write the page here as well.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
}

/// What `fuzz` takes.
#[derive(Clone, Debug, Args)]
pub struct FuzzArgs {
    /// Stop after this long (`90s`, `10m`, `1h`).
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub time: Duration,
    /// Stop after this many places of the campaign.
    #[arg(long, value_name = "N", value_parser = numbers::some)]
    pub count: Option<u64>,
    /// Only ask Hermes' guard and the agent about the commands at this many places, by the
    /// thousand, and send into worlds what is new about them.
    #[arg(long, value_name = "N", conflicts_with = "count",
        value_parser = numbers::some)]
    pub screen: Option<u64>,
    /// Which campaign; the same number is the same variants everywhere.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true,
        value_parser = numbers::seed)]
    pub seed: u64,
    /// What to hunt with.
    #[arg(long, value_enum, default_value_t = crate::generate::Target::Commands)]
    pub target: crate::generate::Target,
    /// Trios of workers; default: the number of processors.
    #[arg(short, long, value_name = "N", value_parser = numbers::jobs)]
    pub jobs: Option<usize>,
    /// Only every n-th place, from the i-th on, counted from 1.
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub shard: Option<Shard>,
    /// Go on where a run of the same campaign stopped; there must be one.
    #[arg(long)]
    pub resume: bool,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// A fault to plant in the agent, to see that the campaign finds it; `selftest --list`
    /// names them, and the build needs the feature `planted-faults`.
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
    /// Where log, findings and summary go; default `target/bisim/fuzz-SEED`, or
    /// `fuzz-TARGET-SEED`.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

/// What `benign` takes.
#[derive(Clone, Debug, Args)]
pub struct BenignArgs {
    /// How many jobs.
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = numbers::some)]
    pub count: u64,
    /// Which jobs; the same number is the same jobs everywhere.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true,
        value_parser = numbers::seed)]
    pub seed: u64,
    /// Instead, run so many of the jobs in worlds: a bare shell shows that they do what is said
    /// of them, and the agent that it asks nobody about them.
    #[arg(long, value_name = "N", conflicts_with_all = ["observe", "contrast"],
        value_parser = numbers::some_held)]
    pub run: Option<u64>,
    /// Instead, ask Hermes' guard about so many of the jobs as well, and count by family what it
    /// stops.
    #[arg(long, value_name = "N", conflicts_with = "observe",
        value_parser = numbers::some)]
    pub contrast: Option<u64>,
    /// Instead, see in worlds what each shape of a command does, and write
    /// `vectors/benign-work.jsonl` anew.
    #[arg(long)]
    pub observe: bool,
    /// With `--observe`: only the shapes that hold this text, printed and not written.
    #[arg(long, value_name = "TEXT", requires = "observe")]
    pub only: Option<String>,
    /// The Hermes release that `--contrast` asks.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// A fault to plant in the agent, to see that an alarm comes of it; `selftest --list` names
    /// them, and the build needs the feature `planted-faults`.
    #[arg(long, value_name = "NAME", conflicts_with = "observe")]
    pub fault: Option<String>,
}

/// What `patterns` takes.
#[derive(Clone, Debug, Args)]
pub struct PatternArgs {
    /// Which variants are tried; the same number is the same ones everywhere.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true,
        value_parser = numbers::seed)]
    pub seed: u64,
    /// Write the table here as well.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Instead, compare choosing by what paid before with even choice, over this
    /// many cases each.
    #[arg(long, value_name = "N", value_parser = numbers::some)]
    pub compare: Option<u64>,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
}

/// What `operators` takes.
#[derive(Clone, Debug, Args)]
pub struct OperatorArgs {
    /// On how many seeds each operator is tried.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = numbers::some_usize)]
    pub seeds: usize,
    /// Only this operator (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub operator: Vec<String>,
    /// Fail as well (exit code 1) where an operator could not be tried, since this machine lacks
    /// its program or no seed fits; without it, it is named and counted apart.
    #[arg(long)]
    pub all: bool,
    /// List the operators, with their class and the programs each needs, and stop.
    #[arg(long)]
    pub list: bool,
    /// Print a line of JSON for each operator instead of what is wrong with some.
    #[arg(long)]
    pub json: bool,
    /// Write the whole table here.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
}

/// What `replay` takes.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// A file in the form of a suite; or the name of a campaign's case, as its log has it
    /// (`work:v4a~17`).
    pub file: PathBuf,
    /// How often a case in which names change places is run at most.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = numbers::tries)]
    pub tries: u32,
    /// The Hermes release.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// A fault to plant in the agent, to see that the case shows it; `selftest --list` names
    /// them, and the build needs the feature `planted-faults`.
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
}

/// What `report` takes.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Where the page goes, as `index.html`.
    #[arg(long, value_name = "DIR")]
    pub html: PathBuf,
    /// The report directory of a check; default `target/bisim`, if there was one.
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// The directory of a campaign to show as well, or alone (may be repeated).
    #[arg(long, value_name = "DIR")]
    pub fuzz: Vec<PathBuf>,
    /// Another vectors directory.
    #[arg(long, value_name = "DIR")]
    pub vectors: Option<PathBuf>,
}

/// What `merge` takes.
#[derive(Clone, Debug, Args)]
pub struct MergeArgs {
    /// The report directories of checks, or those of the parts of one campaign.
    #[arg(required = true, value_name = "DIR")]
    pub reports: Vec<PathBuf>,
    /// Where the merged report goes.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only this suite was to be run by the checks (may be repeated).
    #[arg(long, value_name = "SUITE")]
    pub suite: Vec<String>,
    /// Print the summary as a line of JSON instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write SARIF.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// How much doubt is allowed.
    #[command(flatten)]
    pub allowed: Allowed,
    /// Another vectors directory.
    #[arg(long, value_name = "DIR")]
    pub vectors: Option<PathBuf>,
}

/// What `migrate` takes.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// The home of Hermes, such as `~/.hermes`; it is copied and only ever read.
    #[arg(long, value_name = "DIR")]
    pub hermes_home: PathBuf,
    /// The directory Hermes worked in, for the files its calls need.
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Where the plan goes; default `target/bisim/migrate`.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The agent's configuration that the proposals are added to; it is only read.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The Hermes release the calls are replayed with; each further one (may be
    /// repeated) gives a second opinion.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: Vec<String>,
    /// Translate only.
    #[arg(long)]
    pub no_replay: bool,
    /// Replay for at most this long (`90s`, `10m`, `1h`), the newest sessions first.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub budget: Duration,
    /// Replay about this many calls, drawn at random from all sessions, and state
    /// how far the shares may be off.
    #[arg(long, value_name = "CALLS", conflicts_with = "no_replay",
        value_parser = numbers::some)]
    pub sample: Option<u64>,
    /// Replay everything again, also what an earlier run into the same directory did.
    #[arg(long)]
    pub fresh: bool,
    /// Pairs of workers; default: two for each processor.
    #[arg(short, long, value_name = "N", value_parser = numbers::jobs)]
    pub jobs: Option<usize>,
    /// A fault to plant in the agent, to see that a migration shows it; `selftest --list`
    /// names them, and the build needs the feature `planted-faults`.
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
}

/// What `shadow` takes.
#[derive(Clone, Debug, Args)]
pub struct ShadowArgs {
    /// The home of Hermes, for what it allows and denies; it is copied and only ever read.
    #[arg(long, value_name = "DIR")]
    pub hermes_home: PathBuf,
    /// The directory Hermes works in; default the current one.
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// The Hermes release the calls are mirrored to.
    #[arg(long, value_name = "VERSION", default_value = HERMES_DEFAULT, value_parser = parse_release)]
    pub hermes: String,
    /// Where the report goes, line by line; default `target/bisim/shadow`.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// How long to go on mirroring after Hermes has ended (`90s`, `10m`, `1h`); ^C ends it
    /// before, and the calls that are left are counted as left out.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    pub finish: Duration,
    /// Hermes and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// The release everything is compared with unless another is named.
pub const HERMES_DEFAULT: &str = "0.19.0";

/// One part of an evenly dealt whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Shard {
    /// Which part, from 1.
    pub part: usize,
    /// Of how many.
    pub parts: usize,
}

impl Shard {
    /// Whether a case's place in the list falls into this part.
    #[must_use]
    pub fn takes(self, place: usize) -> bool {
        place % self.parts == self.part - 1
    }
}

pub(crate) fn parse_shard(text: &str) -> Result<Shard, String> {
    let wrong = || "write it as part/parts, such as 1/4".to_owned();
    let (part, parts) = text.split_once('/').ok_or_else(wrong)?;
    let part = part.parse().map_err(|_| wrong())?;
    let parts = parts.parse().map_err(|_| wrong())?;
    if part == 0 || part > parts {
        return Err(format!(
            "part {part} of {parts} does not exist; parts are counted from 1"
        ));
    }
    Ok(Shard { part, parts })
}

/// A release that can be installed; said before anything is made or begun.
fn parse_release(text: &str) -> Result<String, String> {
    let known = crate::hermes_env::known_versions();
    match known.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "no lock file pins hermes-agent `{text}`; known: {}",
            known.join(", ")
        )),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    hermitcrab::cli::span::read(text)
}

#[cfg(test)]
mod tests;

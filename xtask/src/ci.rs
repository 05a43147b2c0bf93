//! `cargo xtask ci`: the gates, in the order in which they usually fail.
//!
//! One list of steps for people and machines: `.ci/run` only prepares a bare
//! machine, runs README's test command and calls this. Flags travel as arguments, never as `RUSTFLAGS`, so
//! that the steps share what is built.

mod beside;
mod fuzzing;
mod lints;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

pub(crate) use self::fuzzing::lacks_for_fuzzing;

use self::beside::Beside;
use crate::cmd::{self, Passed, Show};
use crate::{house, kernels, test, vectors};

/// The oracle's share of the time.
const CHECK_BUDGET: &str = "30m";

/// Arguments of `cargo xtask ci`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these steps, by name, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// All but these steps.
    #[arg(long, value_delimiter = ',')]
    skip: Vec<String>,
    /// Take the tests' counts from this summary, which `cargo xtask test
    /// --summary` has just left, instead of running them again.
    #[arg(long)]
    tested: Option<PathBuf>,
    /// Of the generated cases the oracle judges only every n-th, from the i-th on, such as
    /// `2/4`; those written by hand and recorded ones all.
    #[arg(long, value_name = "I/N")]
    generated: Option<String>,
    /// The other kernels, as `cargo xtask kernels` takes them (may be repeated); default: all of them.
    #[arg(long)]
    kernel: Vec<String>,
    /// Print the names of the steps and stop.
    #[arg(long)]
    list: bool,
}

/// How a step ended.
enum End {
    Passed,
    Failed(Failure),
    /// The machine lacks what the step needs. Fails in CI unless a person left the step out.
    Skipped(String),
}

/// What went wrong in a step.
struct Failure {
    why: String,
    /// The last lines the step printed.
    tail: String,
}

impl End {
    /// Failed, and what there is to say has been printed.
    fn failed(why: impl Into<String>) -> Self {
        Self::Failed(Failure {
            why: why.into(),
            tail: String::new(),
        })
    }
}

type Gate = fn() -> Result<End>;

/// What a step cost. The CPU share compares across machines and loads; the wall does not.
struct Took {
    wall: Duration,
    cpu: Duration,
}

struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    fn start() -> Self {
        Self {
            wall: Instant::now(),
            cpu: cmd::children_cpu(),
        }
    }

    fn took(&self) -> Took {
        Took {
            wall: self.wall.elapsed(),
            cpu: cmd::children_cpu().saturating_sub(self.cpu),
        }
    }
}

const STEPS: &[(&str, &str, Gate)] = &[
    ("fmt", "every file is formatted", fmt),
    (
        "house",
        "arrows, licences, unsafe, hidden tests",
        house_rules,
    ),
    (
        "vectors",
        "cases and catalogue are well formed, index and schema up to date",
        vectors_rules,
    ),
    (
        "clippy",
        "no lint, with and without planted faults and what models in files need; no llama.cpp is built",
        lints::clippy,
    ),
    (
        "arm",
        "the sandbox and its tests compile for 64-bit ARM without a lint",
        lints::arm,
    ),
    ("docs", "documents build without a warning", lints::docs),
    (
        "kernels",
        "limits and isolation hold under other kernels, with control groups of version 2 alone; \
         begun beside the first gates",
        other_kernels,
    ),
    (
        "hermes",
        "the real Hermes is installed, and both workers start",
        hermes,
    ),
    ("test", "README's test command", tests),
    ("benches", "the benchmarks run once", benches),
    ("check", "the oracle's verdict over all suites", check),
    ("selftest", "the oracle finds every planted fault", selftest),
    (
        "patterns",
        "each pattern of Hermes has a command it flags and one that gets past it",
        patterns,
    ),
    (
        "operators",
        "what each operator makes of a command keeps its effect, in a shell without a guard",
        operators,
    ),
    (
        "leaks",
        "cases that make trouble, in a bare shell, the agent and Hermes, leave nothing behind",
        leaks,
    ),
    (
        "fuzz",
        "the fuzz targets build and survive a short run; they are compiled beside the check",
        || fuzzing::fuzz(None),
    ),
];

/// Run the chosen steps, all of them even if one fails, and print a closing line.
pub fn run(args: &Args) -> Result<Passed> {
    for name in args.only.iter().chain(&args.skip) {
        if !STEPS.iter().any(|(step, _, _)| step == name) {
            bail!("there is no step `{name}`; `cargo xtask ci --list` names them");
        }
    }
    if args.list {
        let mut out = std::io::stdout().lock();
        for (name, what, _) in STEPS {
            writeln!(out, "{name:<10} {what}").context("cannot write the list of steps")?;
        }
        return Ok(Passed::Yes);
    }
    let wanted = |name: &str| {
        (args.only.is_empty() || args.only.iter().any(|only| only == name))
            && !args.skip.iter().any(|skipped| skipped == name)
    };
    let mut beside = match wanted("kernels") {
        true => kernels_beside(&args.kernel)?,
        false => None,
    };
    let mut targets = None;
    let mut ends: Vec<(&str, End, Took)> = Vec::new();
    for (name, what, gate) in STEPS {
        if !wanted(name) {
            continue;
        }
        println!("\n=== {name}: {what}");
        if *name == "check" && wanted("fuzz") {
            targets = fuzzing::compiled_beside()?;
        }
        let clock = Clock::start();
        let end = match (*name, &args.tested) {
            ("test", Some(summary)) => Ok(tested(summary)),
            ("check", _) => check_of(args.generated.as_deref()),
            ("fuzz", _) => fuzzing::fuzz(targets.take()),
            ("kernels", _) => beside.take().map_or_else(gate, Beside::end),
            _ => gate(),
        };
        let end = end.unwrap_or_else(|error| End::failed(format!("{error:#}")));
        ends.push((name, end, clock.took()));
    }

    let summary = args.tested.clone();
    let summary = summary.unwrap_or_else(|| cmd::root().join(SUMMARY));
    let mut counts = test::Counts::default();
    if ends.iter().any(|(name, _, _)| *name == "test") {
        counts = test::read_summary(&summary).unwrap_or_default();
    }
    // What a failed step printed last, once more: a log is often cut in the
    // middle, and what failed early would be lost there.
    for (name, end, _) in &ends {
        if let End::Failed(Failure { tail, .. }) = end
            && !tail.is_empty()
        {
            println!("\n=== {name} ended with");
            print!("{tail}");
        }
    }
    println!("\n=== summary");
    for (name, end, took) in &ends {
        let (word, why) = match end {
            End::Passed => {
                counts.passed += 1;
                ("ok", "")
            }
            End::Failed(Failure { why, .. }) => {
                counts.failed += 1;
                ("FAILED", why.as_str())
            }
            End::Skipped(why) => {
                counts.failed += 1;
                ("SKIPPED, which fails here:", why.as_str())
            }
        };
        println!(
            "{name:<10} {:>5} s, {:>5} s of CPU  {word} {why}",
            took.wall.as_secs(),
            took.cpu.as_secs()
        );
    }
    if counts.skipped > 0 {
        println!("{} tests skipped for the reasons above", counts.skipped);
    }
    if counts.unsteady > 0 {
        println!(
            "{} tests failed among others and passed each time alone, see `UNSTEADY` above",
            counts.unsteady
        );
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    Ok(Passed::when(counts.failed == 0))
}

/// Where the test step leaves its counts, below the workspace root.
const SUMMARY: &str = "target/xtask/test.json";

fn vectors_rules() -> Result<End> {
    Ok(match vectors::check(None, &cmd::root().join("vectors"))? {
        Passed::Yes => End::Passed,
        Passed::No => End::failed("see above"),
    })
}

/// Run a command; its status decides.
fn step(command: &mut Command) -> Result<End> {
    let shown = cmd::show(command);
    println!("$ {shown}");
    let (passed, tail) = cmd::status_and_tail(command, Show::All)?;
    Ok(ended(passed, &shown, tail))
}

fn ended(passed: Passed, shown: &str, tail: String) -> End {
    match passed {
        Passed::Yes => End::Passed,
        Passed::No => End::Failed(Failure {
            why: format!("`{shown}` failed"),
            tail,
        }),
    }
}

/// The first end that is not `Passed`, stopping there.
fn in_turn(gates: impl IntoIterator<Item = Command>) -> Result<End> {
    for mut gate in gates {
        match step(&mut gate)? {
            End::Passed => {}
            other => return Ok(other),
        }
    }
    Ok(End::Passed)
}

fn cargo(args: &[&str]) -> Command {
    let mut command = cmd::cargo();
    command.args(args);
    command
}

fn fmt() -> Result<End> {
    step(&mut cargo(&["fmt", "--all", "--check"]))
}

fn house_rules() -> Result<End> {
    Ok(match house::run()? {
        Passed::Yes => End::Passed,
        Passed::No => End::failed("see above"),
    })
}

/// Before the tests, because some of them drive the real Hermes and would be skipped.
fn hermes() -> Result<End> {
    step(&mut cargo(&["bisim", "doctor"]))
}

fn tests() -> Result<End> {
    let summary = cmd::root().join(SUMMARY);
    if summary.exists() {
        std::fs::remove_file(&summary).context("cannot remove the last summary")?;
    }
    step(&mut cargo(&[
        "xtask",
        "test",
        "--summary",
        SUMMARY,
        "--accepted-skips",
        ".ci/accepted-skips.toml",
    ]))
}

/// What the tests came to when they ran before.
fn tested(summary: &Path) -> End {
    match test::read_summary(summary) {
        Ok(counts) if counts.failed == 0 && counts.unexplained == 0 && counts.passed > 0 => {
            println!(
                "{} passed and {} were unsteady when they ran before",
                counts.passed, counts.unsteady
            );
            End::Passed
        }
        Ok(counts) => End::failed(format!(
            "{} passed, {} failed, {} unexplained skips when they ran before",
            counts.passed, counts.failed, counts.unexplained
        )),
        Err(error) => End::failed(format!("{error:#}")),
    }
}

/// Criterion's test mode runs each benchmark once, so a bench that cannot run is noticed.
/// With `bisim` beside it, what is built for it is what the tests have built; by their names,
/// because `--benches` would run the oracle's unit tests, too.
fn benches() -> Result<End> {
    let mut test = cargo(&["test", "--package", "benches", "--package", "bisim"]);
    for name in bench_names(&cmd::root().join("benches/Cargo.toml"))? {
        test.args(["--bench", &name]);
    }
    step(&mut test)
}

/// The benchmarks a manifest names.
fn bench_names(manifest: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let benches = table.get("bench").and_then(toml::Value::as_array);
    let names: Vec<String> = benches
        .into_iter()
        .flatten()
        .filter_map(|bench| Some(bench.get("name")?.as_str()?.to_owned()))
        .collect();
    if names.is_empty() {
        bail!("{} names no benchmark", manifest.display());
    }
    Ok(names)
}

fn check() -> Result<End> {
    check_of(None)
}

fn check_of(generated: Option<&str>) -> Result<End> {
    let mut check = cargo(&["bisim", "check", "--budget", CHECK_BUDGET]);
    let Some(part) = generated else {
        return step(&mut check);
    };
    let end = step(check.args(["--generated", part]))?;
    println!("the generated cases of part {part} ran; `cargo bisim check` runs those of all parts");
    Ok(end)
}

fn selftest() -> Result<End> {
    step(&mut cargo(&["bisim", "selftest"]))
}

fn patterns() -> Result<End> {
    step(&mut cargo(&["bisim", "patterns"]))
}

/// So many that each trouble meets all three; by itself the command runs a thousand.
fn leaks() -> Result<End> {
    step(&mut cargo(&["bisim", "leaks", "--count", "200"]))
}

/// On few seeds: a hunt through all of them is a campaign's.
fn operators() -> Result<End> {
    step(&mut cargo(&["bisim", "operators", "--seeds", "2", "--all"]))
}

/// Only what differs from kernel to kernel: the whole suite there takes half an hour.
const PER_KERNEL: [&str; 5] = [
    "delegated::",
    "groups::",
    "isolation::",
    "profile::",
    "told::",
];

/// Not begun beside the others: the machine lacks what it needs.
fn other_kernels() -> Result<End> {
    if let Err(missing) = kernels::ready(kernels::Processor::OWN) {
        return Ok(End::Skipped(missing.to_string()));
    }
    step(cargo(&["xtask", "kernels"]).args(PER_KERNEL))
}

/// The gate of other kernels, begun early: the gates before it compile, and it hardly needs
/// more than one processor. `None` if the machine lacks what it needs, which the gate says.
fn kernels_beside(chosen: &[String]) -> Result<Option<Beside>> {
    if kernels::ready(kernels::Processor::OWN).is_err() {
        return Ok(None);
    }
    // Not by cargo, which would wait for the others to be done with what is built.
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("kernels").args(PER_KERNEL);
    for kernel in chosen {
        command.args(["--kernel", kernel]);
    }
    command.current_dir(cmd::root());
    Beside::start(&mut command, "kernels").map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step's end for a summary with these bytes, or for none.
    fn end_for(bytes: Option<&str>) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.json");
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        matches!(tested(&path), End::Passed)
    }

    #[test]
    fn only_a_summary_with_passes_and_without_failures_or_unexplained_skips_passes() {
        let summary = |passed, failed, unexplained| {
            format!(
                r#"{{"passed":{passed},"failed":{failed},"skipped":1,"unexplained":{unexplained}}}"#
            )
        };
        assert!(end_for(Some(&summary(3, 0, 0))));
        for bad in [
            summary(0, 0, 0),
            summary(3, 1, 0),
            summary(3, 0, 1),
            "{".to_owned(),
        ] {
            assert!(!end_for(Some(&bad)), "{bad}");
        }
        assert!(!end_for(None));
    }

    #[test]
    fn every_benchmark_that_stands_in_its_directory_is_run_by_its_name() {
        let place = cmd::root().join("benches");
        let mut files: Vec<String> = std::fs::read_dir(place.join("benches"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension().is_some_and(|kind| kind == "rs") || path.join("main.rs").exists()
            })
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut names = bench_names(&place.join("Cargo.toml")).unwrap();
        files.sort();
        names.sort();
        assert_eq!(names, files);
    }
}

//! Run the tests, several at a time, each in its own process and process group.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process_group};

use super::Counts;
use super::build::Case;
use super::room::Room;

/// How often a running test is looked at.
const POLL: Duration = Duration::from_millis(5);
/// The marker by which a test says it could not run here.
const SKIP_MARKER: &str = "SKIPPED:";

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Status 0.
    Passed,
    /// Status 0, and the test said what the machine lacks.
    Skipped(String),
    /// Anything else, with what.
    Failed(String),
    /// It failed with this among others, and passed each time it was repeated alone.
    Unsteady(String),
}

impl Fate {
    /// The word for it in the list of tests, as wide as all others.
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Passed => "      ok",
            Fate::Skipped(_) => " SKIPPED",
            Fate::Failed(_) => "  FAILED",
            Fate::Unsteady(_) => "UNSTEADY",
        }
    }
}

/// A test and its end.
#[derive(Debug)]
pub struct Ended<'a> {
    /// Which test.
    pub case: &'a Case,
    /// How it ended.
    pub fate: Fate,
    /// How many temporary files and directories it left.
    pub left: usize,
}

/// Run all of `cases`, at most `jobs` at a time; failing ones are printed as they end.
pub fn all(cases: &[Case], jobs: usize, timeout: Duration) -> Result<Vec<Ended<'_>>> {
    let next = AtomicUsize::new(0);
    let ended = Mutex::new(Vec::with_capacity(cases.len()));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|_| scope.spawn(|| worker(cases, &next, &ended, timeout)))
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| anyhow!("a thread of the test runner panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let mut ended = ended
        .into_inner()
        .map_err(|_| anyhow!("the list of ended tests is poisoned"))?;
    ended.sort_by_key(|(index, _)| *index);
    Ok(ended.into_iter().map(|(_, end)| end).collect())
}

/// Take tests from the common list until none is left.
fn worker<'a>(
    cases: &'a [Case],
    next: &AtomicUsize,
    ended: &Mutex<Vec<(usize, Ended<'a>)>>,
    timeout: Duration,
) -> Result<()> {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(case) = cases.get(index) else {
            return Ok(());
        };
        let started = Instant::now();
        let (fate, output, left) = one(case, timeout)?;
        let mut ended = ended
            .lock()
            .map_err(|_| anyhow!("the list of ended tests is poisoned"))?;
        // Printing under the lock keeps one test's lines together.
        println!(
            "{} {:>7.2} s  {}",
            fate.word(),
            started.elapsed().as_secs_f64(),
            case.label()
        );
        if matches!(fate, Fate::Failed(_)) {
            println!("----- output of {}\n{output}\n-----", case.label());
        }
        ended.push((index, Ended { case, fate, left }));
    }
}

/// Run one test while no other runs: how it ended, and how long it took.
pub fn alone(case: &Case, timeout: Duration) -> Result<(Fate, Duration)> {
    let started = Instant::now();
    let (fate, output, _) = one(case, timeout)?;
    if matches!(fate, Fate::Failed(_)) {
        println!("----- output of {}, alone\n{output}\n-----", case.label());
    }
    Ok((fate, started.elapsed()))
}

/// Run one test.
fn one(case: &Case, timeout: Duration) -> Result<(Fate, String, usize)> {
    if case.ignored {
        let why = "marked #[ignore]; print `SKIPPED: reason` and return instead";
        return Ok((Fate::Failed(why.to_owned()), String::new(), 0));
    }
    let program = &case.program;
    let room = Room::new()?;
    let mut output_file = tempfile::tempfile().context("cannot make a temporary file")?;
    let mut command = Command::new(&program.executable);
    if let Some(name) = &case.name {
        command.args(["--exact", name, "--nocapture"]);
    }
    // A file instead of a pipe: a process left behind cannot hold us up.
    command
        .current_dir(&program.directory)
        .env("CARGO", crate::ambient::cargo())
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("CARGO_MANIFEST_PATH", program.directory.join("Cargo.toml"))
        .env("CARGO_PKG_NAME", &program.package)
        .env("CARGO_PKG_VERSION", &program.version)
        .env("TMPDIR", room.path())
        .stdin(Stdio::null())
        .stdout(handle(&output_file)?)
        .stderr(handle(&output_file)?)
        .process_group(0);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", program.executable.display()))?;
    let status = wait(&mut child, timeout)?;
    kill_group(&child);

    let mut bytes = Vec::new();
    output_file.rewind().context("temporary file")?;
    output_file
        .read_to_end(&mut bytes)
        .context("temporary file")?;
    let output = String::from_utf8_lossy(&bytes).into_owned();
    let fate = match status {
        None => Fate::Failed(format!("ran longer than {} s", timeout.as_secs())),
        Some(status) if status.success() => without_failure(&output),
        Some(status) => Fate::Failed(status.to_string()),
    };
    let left = room.leave().unwrap_or_else(|error| {
        // Something that is still written to, or that belongs to others, fails no test.
        println!("{}: its temporary files stay: {error:#}", case.label());
        1
    });
    Ok((fate, output, left))
}

/// Passed, or skipped with all the reasons the test gave. A skip without a reason fails.
fn without_failure(output: &str) -> Fate {
    let reasons: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_once(SKIP_MARKER))
        .map(|(_, reason)| reason.trim())
        .collect();
    if reasons.is_empty() {
        Fate::Passed
    } else if reasons.iter().any(|reason| reason.is_empty()) {
        Fate::Failed("skipped without a reason".to_owned())
    } else {
        Fate::Skipped(reasons.join("; "))
    }
}

fn handle(file: &File) -> Result<Stdio> {
    Ok(Stdio::from(file.try_clone().context("temporary file")?))
}

/// The status, or `None` if the time ran out and the process was killed.
pub fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a test")? {
            return Ok(Some(status));
        }
        if started.elapsed() > timeout {
            kill_group(child);
            child.kill().context("cannot kill a test")?;
            child.wait().context("cannot wait for a test")?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// End what is left of a test's process group; nothing left is the usual case.
fn kill_group(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // An empty group is what we want; no other error is possible for a child of ours.
        let _empty = kill_process_group(pid, Signal::KILL);
    }
}

/// Run the doc tests; cargo's status decides, its result lines give the numbers.
pub fn doc_tests() -> Result<Counts> {
    let output = crate::cmd::cargo()
        .args(["test", "--doc", "--no-fail-fast", "--workspace"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let mut counts = doc_counts(&text);
    if !output.status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

/// Sum of the lines `test result: ok. 3 passed; 0 failed; …`.
fn doc_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("test result: ") else {
            continue;
        };
        let number = |word: &str| {
            rest.split([';', '.'])
                .filter_map(|part| part.trim().strip_suffix(word))
                .find_map(|n| n.trim().parse::<usize>().ok())
                .unwrap_or(0)
        };
        counts.passed += number(" passed");
        counts.failed += number(" failed");
        // An ignored doc test is one that nothing checks.
        counts.failed += number(" ignored");
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_needs_a_reason_and_is_not_a_pass() {
        let check = |output: &str, expected: Fate| assert_eq!(without_failure(output), expected);
        check("running 1 test\nok", Fate::Passed);
        check("SKIPPED: no venv\n", Fate::Skipped("no venv".to_owned()));
        check(
            "test x ... SKIPPED: no venv\nSKIPPED: no overlay",
            Fate::Skipped("no venv; no overlay".to_owned()),
        );
        check(
            "SKIPPED:\n",
            Fate::Failed("skipped without a reason".to_owned()),
        );
    }

    #[test]
    fn doc_test_results_are_summed_and_an_ignored_one_fails() {
        let text = "x\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
                    test result: FAILED. 4 passed; 2 failed; 0 ignored\n";
        let expected = Counts {
            passed: 7,
            failed: 3,
            ..Counts::default()
        };
        assert_eq!(doc_counts(text), expected);
    }
}

//! A campaign that is killed, and what it leaves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod ready;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many places are dealt; `HERMITCRAB_CAMPAIGN_CASES=1000` for a soak.
const CASES: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(180);

fn fuzz(place: &Path, cases: u64, resume: bool) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bisim"));
    command
        .args(["fuzz", "--target", "paths", "--seed", "5", "--jobs", "1"])
        .args(["--time", "1h", "--count", &cases.to_string()])
        .arg("--report")
        .arg(place)
        // No world has it, and none may need it.
        .env("TMPDIR", place.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if resume {
        command.arg("--resume");
    }
    command
}

/// The whole lines of the log below its head.
fn lines(place: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(place.join("campaign.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Processes that hold a file below this directory, as every worker holds its log.
fn holders(place: &Path) -> usize {
    let holds = |process: &Path| {
        std::fs::read_dir(process.join("fd")).is_ok_and(|files| {
            files
                .flatten()
                .filter_map(|file| std::fs::read_link(file.path()).ok())
                .any(|target| target.starts_with(place))
        })
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| holds(&entry.path()))
        .count()
}

fn are_gone(place: &Path) {
    let until = Instant::now() + PATIENCE;
    while holders(place) > 0 {
        assert!(Instant::now() < until, "a worker outlives its campaign");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .lines()
        .count()
}

#[test]
fn a_campaign_killed_in_the_middle_goes_on_and_leaves_nothing() {
    let cases = std::env::var("HERMITCRAB_CAMPAIGN_CASES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(CASES);
    if !ready::can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("report");
    let before = mounts();
    let mut child = fuzz(&place, cases, false).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while lines(&place).len() < 2 {
        assert!(Instant::now() < until, "no case was finished");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    are_gone(&place);
    let kept = lines(&place);
    let done = fuzz(&place, cases, true).status().unwrap();
    assert!(matches!(done.code(), Some(0 | 1 | 4)), "{done}");
    let all = lines(&place);
    assert_eq!(
        all.get(..kept.len()),
        Some(kept.as_slice()),
        "nothing is lost"
    );
    let fates = all.iter().map(|line| line.get("fate").unwrap());
    assert_eq!(fates.filter(|fate| *fate == "inconclusive").count(), 0);
    let places: BTreeSet<u64> = all
        .iter()
        .map(|line| line.get("index").unwrap().as_u64().unwrap())
        .collect();
    assert_eq!(all.len() as u64, cases, "nothing is repeated");
    assert_eq!(places, (0..cases).collect());
    are_gone(&place);
    assert_eq!(mounts(), before);
}

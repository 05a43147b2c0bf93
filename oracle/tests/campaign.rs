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

use bisim::campaign::specimen;
use bisim::generate::Target;
use serde_json::{Value, json};

/// How many places are dealt; `HERMITCRAB_CAMPAIGN_CASES=1000` for a soak.
const CASES: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(180);

/// A commit of which no program was built here.
const ANOTHER: &str = "0123456789abcdef0123456789abcdef01234567";

/// The seed of all of them.
const SEED: u64 = 5;

fn fuzz(target: Target, place: &Path, cases: u64, resume: bool) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bisim"));
    command
        .args(["fuzz", "--target", target.word(), "--jobs", "1"])
        .args(["--seed", &SEED.to_string()])
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

/// The whole lines of the log below its head that say of variants.
fn lines(place: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(place.join("campaign.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line.get("commit").is_none())
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

/// Runs a campaign until this many cases are on record, and kills it; what is on record then.
fn killed(target: Target, place: &Path, (cases, resume): (u64, bool), after: usize) -> Vec<Value> {
    let mut child = fuzz(target, place, cases, resume).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while lines(place).len() < after {
        assert!(Instant::now() < until, "no case was finished");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    are_gone(place);
    lines(place)
}

/// Killed again and again, the campaign of a seed is the same as one that never was: what is
/// on record stays, nothing of it is made or counted again, and what was found is kept,
/// though the kill came between its line and its file.
fn goes_on_after_every_kill(target: Target, found: &str) {
    if !ready::can_run() {
        return;
    }
    let cases = 7_u64;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("report");
    let mut kept: Vec<Value> = Vec::new();
    let mut of_another = 0;
    for (round, after) in [1, 2, 4].into_iter().enumerate() {
        let now = killed(target, &place, (cases, round > 0), after);
        assert_eq!(
            now.get(..kept.len()),
            Some(kept.as_slice()),
            "nothing is lost"
        );
        kept = now;
        if round == 0 {
            // The last place was dealt to a run that was killed right behind this line, in
            // the middle of the next.
            let seen = json!({ "index": cases - 1, "variant": found, "fate": "differs" });
            let log = place.join("campaign.jsonl");
            let mut text = std::fs::read_to_string(&log).unwrap();
            text.truncate(text.rfind('\n').unwrap() + 1);
            // It was one of another commit.
            let (head, text) = text.split_once('\n').unwrap();
            let of = json!({ "commit": ANOTHER });
            let text: String = text
                .split_inclusive('\n')
                .filter(|line| !line.contains("\"commit\""))
                .collect();
            let text = format!("{head}\n{of}\n{text}{seen}\n{{\"index\":1,\"var");
            std::fs::write(&log, text).unwrap();
            kept = lines(&place);
            of_another = kept.len() as u64;
        }
    }
    let done = fuzz(target, &place, cases, true).status().unwrap();
    assert_eq!(
        done.code(),
        Some(1),
        "what was found is told by every later run"
    );
    let all = lines(&place);
    assert_eq!(
        all.get(..kept.len()),
        Some(kept.as_slice()),
        "nothing is lost"
    );
    let mut dealt: Vec<(u64, String)> = all
        .iter()
        .map(|line| {
            let variant = line.get("variant").unwrap().as_str().unwrap().to_owned();
            (line.get("index").unwrap().as_u64().unwrap(), variant)
        })
        .collect();
    dealt.sort();
    let mut meant: Vec<(u64, String)> = (0..cases - 1)
        .map(|index| (index, specimen(target, SEED, index).unwrap().to_string()))
        .collect();
    meant.push((cases - 1, found.to_owned()));
    assert_eq!(
        dealt, meant,
        "the same seed goes on, and no place comes twice"
    );
    let summary = std::fs::read_to_string(place.join("campaign.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let fates = summary.pointer("/tally/all").unwrap().as_object().unwrap();
    let counted: u64 = fates.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, cases, "each is counted once: {fates:?}");
    assert_eq!(fates.get("differs"), Some(&json!(1)));
    assert_eq!(fates.get("inconclusive"), None, "{fates:?}");
    // What was made from another commit is told apart, and none is said of all.
    assert_eq!(summary.get("commit"), None);
    let parts = summary["commits"].as_array().unwrap();
    let first = json!({ "commit": ANOTHER, "variants": of_another });
    assert_eq!((parts.len(), &parts[0]), (2, &first), "{parts:?}");
    assert_eq!(parts[1]["variants"], json!(cases - of_another));
    let findings: Vec<_> = std::fs::read_dir(place.join("findings"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let id = bisim::generate::specimen::id_of(found);
    assert_eq!(findings, [format!("{id}.json")]);
    are_gone(&place);
}

#[test]
fn a_campaign_with_commands_goes_on_after_every_kill() {
    goes_on_after_every_kill(Target::Commands, "delete-file");
}

#[test]
fn a_campaign_with_sequences_goes_on_after_every_kill() {
    goes_on_after_every_kill(Target::Sequences, "sequence:0+h0+c2.0");
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
    let kept = killed(Target::Paths, &place, (cases, false), 2);
    let done = fuzz(Target::Paths, &place, cases, true).status().unwrap();
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

//! Commands both guards are only asked about, and what worlds show of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod ready;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Enough for every context; a part of them is a sample of all.
const PLACES: u64 = 1206;
const PART: &str = "1/18";
const MINE: u64 = PLACES / 18;

fn screen(place: &Path, part: &str, jobs: &str, more: &[&str]) -> i32 {
    let status = Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(["fuzz", "--seed", "5", "--jobs", jobs, "--time", "1h"])
        .args(["--screen", &PLACES.to_string(), "--shard", part])
        .args(more)
        .arg("--report")
        .arg(place)
        // No world has it, and none may need it.
        .env("TMPDIR", place.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.code().unwrap()
}

fn summary(place: &Path) -> Value {
    let text = fs::read_to_string(place.join("campaign.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn count(summary: &Value, name: &str) -> u64 {
    let told = summary.pointer("/tally/screen").unwrap();
    told[name].as_u64().unwrap()
}

/// The variants examined in worlds, sorted.
fn examined(place: &Path) -> Vec<String> {
    let text = fs::read_to_string(place.join("campaign.jsonl")).unwrap();
    let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["variant"].to_string();
    let variants = text.lines().filter(|line| line.contains("\"variant\":"));
    let mut all: Vec<String> = variants.map(of).collect();
    all.sort();
    all
}

#[test]
fn worlds_tell_what_the_lane_told_and_a_screening_that_was_cut_goes_on_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("screened");
    if !ready::can_run() {
        return;
    }
    assert_eq!(screen(&place, PART, "1", &[]), 0);
    let whole = summary(&place);
    assert_eq!(whole["tally"]["screen"]["disagree"], serde_json::json!([]));
    assert!(count(&whole, "compared") >= 15, "{whole}");
    assert!(count(&whole, "shown") >= 15, "{whole}");
    let told = whole["tally"]["screen"]["counts"].as_object().unwrap();
    for context in ["interactive", "gateway", "acp", "cron", "headless"] {
        assert!(told.keys().any(|key| key.starts_with(context)), "{told:?}");
    }
    let asked = count(&whole, "commands") + count(&whole, "left_out");
    assert_eq!(asked, MINE);
    let variants = examined(&place);
    assert_eq!(variants.len() as u64, count(&whole, "chosen"));

    // Killed while worlds showed what was new: the round has no line, the log is cut.
    fs::write(place.join("screen.jsonl"), "{\"from\":0,\"to").unwrap();
    let log = place.join("campaign.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.get(..text.len() * 2 / 3).unwrap()).unwrap();
    assert_ne!(screen(&place, PART, "1", &[]), 0, "it is there already");
    // How many work on it changes nothing.
    assert_eq!(screen(&place, PART, "2", &["--resume"]), 0);
    assert_eq!(examined(&place), variants);
    assert_eq!(summary(&place)["tally"]["screen"], whole["tally"]["screen"]);
    // And once more, with nothing left to do.
    assert_eq!(screen(&place, PART, "1", &["--resume"]), 0);
    assert_eq!(examined(&place), variants);
    let other = screen(&place, "2/18", "1", &["--resume"]);
    assert_ne!(other, 0, "another part of the places");
    let other = screen(&place, PART, "1", &["--target", "paths"]);
    assert_eq!(other, 64, "only commands are screened");
}

#[test]
fn a_screening_keeps_to_its_time_and_says_where_it_was_and_goes_on_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("cut");
    if !ready::can_run() {
        return;
    }
    let run = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
            .args([
                "fuzz", "--seed", "5", "--jobs", "1", "--time", "1s", "--screen", "200000",
            ])
            .args(more)
            .arg("--report")
            .arg(&place)
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("0 of 200,000 places screened, 0 commands asked about"),
        "{said}"
    );
    assert!(
        said.contains("the time was up before the next 1,024 places"),
        "{said}"
    );
    assert!(said.contains("--resume goes on from there"), "{said}");
    let (code, said) = run(&["--resume"]);
    assert_eq!(code, Some(4), "{said}");
}

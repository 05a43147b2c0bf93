//! A run that is stopped while a subject hangs: one signal ends it within seconds, what
//! it had found is kept, and nothing is left of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ready;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bisim::lineage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a stopped run may take, on a machine that has other things to do. What hangs
/// does so for a minute at least.
const SECONDS_MAX: Duration = Duration::from_secs(10);
/// How long what is stopped may take to come to where it hangs, or to be gone.
const PATIENCE: Duration = Duration::from_secs(180);
const INTERRUPTED: i32 = 4;

/// Two cases, in the second of which Hermes' own interpreter opens a pipe nobody writes to.
const CASES: &str = r#"{"schema": 1, "suite": "s", "description": "d", "cases": [
    {"id": "quick", "script": [{"call": {"tool": "terminal", "args": {"command": "echo quick"}}}]},
    {"id": "hangs", "world": {"files": [{"path": "/home/u/.hermes/skills/x/SKILL.md", "fifo": true}]},
     "script": [{"call": {"tool": "terminal", "args": {"command": "sleep 600", "background": true}}},
                {"call": {"tool": "skill_view", "args": {"name": "x"}}}]}]}"#;
/// How long Hermes may take from one call to the next.
const NEXT_CALL: Duration = Duration::from_secs(1);

fn bisim(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bisim"));
    command
        .args(args)
        .env("TMPDIR", folder.join("temporary"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["temporary", "suites", "home"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("suites/s.json"), CASES).unwrap();
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/homes/0.19.0");
    let home = folder.path().join("home");
    std::fs::copy(made.join("config.yaml"), home.join("config.yaml")).unwrap();
    let packed = std::fs::File::open(made.join("state.db.gz")).unwrap();
    let mut file = std::fs::File::create(home.join("state.db")).unwrap();
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut file).unwrap();
    folder
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lines of a file that is being written.
fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

fn mounts() -> BTreeSet<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().map(str::to_owned).collect()
}

/// Has every process below this one hang, so that no worker says anything any more.
fn freeze(id: i32) {
    for below in lineage::descendants(u32::try_from(id).unwrap()).into_keys() {
        // One that has ended meanwhile needs no stopping.
        let _ = kill(Pid::from_raw(below), Signal::SIGSTOP);
    }
}

/// Sends one signal; the exit code, once the run has ended in time and nothing is left.
fn stop(mut run: Child, signal: Signal, folder: &Path, before: &BTreeSet<String>) -> Option<i32> {
    kill(Pid::from_raw(run.id().try_into().unwrap()), signal).unwrap();
    let sent = Instant::now();
    let status = loop {
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        if sent.elapsed() > SECONDS_MAX {
            freeze(i32::try_from(std::process::id()).unwrap());
            run.kill().unwrap();
            panic!("it still runs {SECONDS_MAX:?} after {signal}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    // Whatever lost its parent has fallen to this process.
    wait_for("processes are left", || {
        lineage::reap();
        lineage::descendants(std::process::id()).is_empty()
    });
    assert_eq!(&mounts(), before, "mounts are left");
    let left = std::fs::read_dir(folder.join("temporary")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new(), "files are left");
    status.code()
}

#[test]
fn one_signal_ends_a_run_whose_hermes_hangs_and_nothing_is_left() {
    let folder = place();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    if !ready::can_run() {
        return;
    }
    lineage::adopt().unwrap();
    let before = mounts();
    let (vectors, report) = (at("."), at("report"));
    let check = [
        "check",
        "--jobs",
        "1",
        "--vectors",
        &vectors,
        "--report",
        &report,
    ];

    // While Hermes hangs in a call.
    let run = bisim(folder.path(), &check).spawn().unwrap();
    let log = folder.path().join("report/results.jsonl");
    wait_for("the quick case never ended", || lines(&log) == 1);
    let id = run.id();
    wait_for("the other case never began", || {
        lineage::descendants(id)
            .values()
            .any(|name| name == "sleep")
    });
    std::thread::sleep(NEXT_CALL);
    assert_eq!(
        stop(run, Signal::SIGTERM, folder.path(), &before),
        Some(INTERRUPTED)
    );
    let kept = std::fs::read_to_string(&log).unwrap();
    assert!(lines(&log) == 1 && kept.contains("\"quick\""), "{kept}");
    let summary = std::fs::read_to_string(at("report/summary.json")).unwrap();
    assert!(summary.contains("the run was interrupted"), "{summary}");

    // While a worker is still loading what it drives, and is silent there.
    let run = bisim(folder.path(), &check).spawn().unwrap();
    let id = run.id();
    wait_for("no worker was started", || {
        !lineage::descendants(id).is_empty()
    });
    freeze(i32::try_from(id).unwrap());
    assert_eq!(
        stop(run, Signal::SIGHUP, folder.path(), &before),
        Some(INTERRUPTED)
    );

    let campaign = at("campaign");
    let home = at("home");
    let out = at("out");
    let paths = [
        "fuzz", "--target", "paths", "--seed", "5", "--jobs", "2", "--report", &campaign,
    ];
    let found = |file: &str, more_than: usize| {
        let file = folder.path().join(file);
        move |_: u32| lines(&file) > more_than
    };
    let deep = |count: usize| move |id: u32| lineage::descendants(id).len() >= count;
    type HasBegun<'a> = Box<dyn Fn(u32) -> bool + 'a>;
    let runs: [(&[&str], Signal, HasBegun<'_>); 4] = [
        (
            &paths,
            Signal::SIGINT,
            // Behind the seed and the commit.
            Box::new(found("campaign/campaign.jsonl", 3)),
        ),
        (
            &["operators", "--seeds", "44"],
            Signal::SIGTERM,
            Box::new(deep(6)),
        ),
        (
            &[
                "migrate",
                "--hermes-home",
                &home,
                "--out",
                &out,
                "--workspace",
                &vectors,
            ],
            Signal::SIGTERM,
            // Of five, the last four of which come within a second.
            Box::new(found("out/replay.journal", 0)),
        ),
        (
            &["leaks", "--count", "100"],
            Signal::SIGHUP,
            Box::new(deep(9)),
        ),
    ];
    for (args, signal, has_begun) in runs {
        let said = std::fs::File::create(folder.path().join("said")).unwrap();
        let run = bisim(folder.path(), args).stdout(said).spawn().unwrap();
        let id = run.id();
        wait_for("it never began", || has_begun(id));
        // `leaks` works in a child, which is to end by itself.
        let works = match args {
            ["leaks", ..] => lineage::children(i32::try_from(id).unwrap()).pop().unwrap(),
            _ => i32::try_from(id).unwrap(),
        };
        freeze(works);
        let code = stop(run, signal, folder.path(), &before);
        assert_eq!(code, Some(INTERRUPTED), "{args:?}");
        // A worker that was ended holds nothing, which is no leak.
        let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
        assert!(!said.contains("GROWN"), "{args:?}: {said}");
    }
    assert!(lines(&folder.path().join("campaign/campaign.jsonl")) > 3);
}

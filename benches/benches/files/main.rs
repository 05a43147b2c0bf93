//! What one call of a file tool or of `terminal` costs, beside the same call of
//! the real Hermes.
//!
//! ```console
//! $ cargo xtask files-report
//! $ cargo xtask files-report --on /var/tmp --on /mnt/journalled
//! ```
//!
//! Both run in temporary directories of their own, one after the other, in each of
//! the places named: what a write costs is mostly what its file system makes of it.
//! Hermes' half needs the environment that `cargo bisim doctor` installs; where
//! it is missing, only the agent's half is printed and it is said so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/ambient.rs"]
mod ambient;
mod commands;
mod hermes;
mod place;

use std::{
    ffi::{CStr, CString},
    fmt::Write as _,
    io::{Seek as _, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Instant,
};

use hermitcrab::{
    ambient::BootClock,
    person::NobodyThere,
    runtime::{GrantWords, Runtime, RuntimeConfig},
};
use hermitcrab_core::{rules::Isolation, session::Asking};
use hermitcrab_sandbox::{SpawnerProgram, maybe_run_as_child};
use rustix::fs::{FileType, Mode, OFlags, RawDir};
use serde_json::{Value, json};

/// Calls of each kind that are timed; a clock tick is far below what they take.
const CALLS: usize = 1000;
/// The same where it only has to work.
const CALLS_TRIED: usize = 20;
/// Files that a search looks through, for either kind of it.
const SEARCHED: [(&str, usize); 2] = [("s", 20), ("m", 200)];
/// The same for Hermes, which takes far longer.
const HERMES_CALLS: usize = 20;

/// The calls, by number: each works on a file of its own, so that none is
/// answered from what an earlier one left.
fn call(kind: &str, number: usize) -> (&'static str, Value) {
    match kind {
        "write_file" => (
            "write_file",
            json!({"path": format!("w/{number}.txt"), "content": "line\n".repeat(100)}),
        ),
        "read_file" => ("read_file", json!({"path": format!("r/{number}.txt")})),
        "patch" => (
            "patch",
            json!({"mode": "replace", "path": format!("p/{number}.txt"), "old_string": "second", "new_string": "2nd"}),
        ),
        _ => {
            let path = if kind == FEW { "s" } else { "m" };
            (
                "search_files",
                json!({"pattern": "second", "path": path, "limit": 5 + number % 100, "offset": number / 100}),
            )
        }
    }
}

const FEW: &str = "search_files, 20 files";
const MANY: &str = "search_files, 200 files";
const KINDS: [&str; 5] = ["write_file", "read_file", "patch", FEW, MANY];

fn fill(dir: &Path) {
    std::fs::create_dir(dir.join("w")).unwrap();
    for (letter, files) in [("r", CALLS), ("p", CALLS)].into_iter().chain(SEARCHED) {
        std::fs::create_dir(dir.join(letter)).unwrap();
        for number in 0..files {
            let path = dir.join(letter).join(format!("{number}.txt"));
            std::fs::write(path, "first\nsecond\nthird\n").unwrap();
        }
    }
}

/// Milliseconds of processor time this process and its children have used.
fn used() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .skip(11)
        .take(4)
        .map(|field| field.parse().unwrap())
        .collect();
    fields.iter().sum::<f64>() * 10.0
}

/// Milliseconds of one call: of processor time, and on the clock.
#[derive(Clone, Copy)]
struct Cost {
    used: f64,
    passed: f64,
}

/// What the kernel takes for the larger search, whoever asks.
struct Floors {
    /// All its files, one after the other opened, read and closed.
    files: Cost,
    /// What a page needs, and as many bytes on the disk as the ledger has of it.
    page: Cost,
}

/// Measures them, with nothing decided and nothing recorded.
fn floors(place: &Path, rounds: usize, ledger_bytes: usize) -> Floors {
    let dirs = tempfile::tempdir_in(place).unwrap();
    fill(dirs.path());
    let (letter, files) = SEARCHED[1];
    let open = |dir: &OwnedFd, name: &CStr, flags: OFlags| {
        rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let root = rustix::fs::open(
        dirs.path(),
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    )
    .unwrap();
    let letter = CString::new(letter).unwrap();
    let dir = open(&root, &letter, OFlags::RDONLY | OFlags::DIRECTORY);
    let names: Vec<CString> = (0..files)
        .map(|number| CString::new(format!("{number}.txt")).unwrap())
        .collect();
    let mut buffer = [0_u8; 4096];
    let all = cost(rounds, |_| {
        for name in &names {
            let file = open(&dir, name, OFlags::RDONLY);
            assert!(rustix::io::read(&file, &mut buffer).unwrap() > 0);
        }
    });
    let record = vec![b'x'; ledger_bytes];
    // As long as it gets, so that what is added changes nothing but its bytes.
    let mut ledger = std::fs::File::create(dirs.path().join("ledger")).unwrap();
    ledger.write_all(&vec![0; ledger_bytes * rounds]).unwrap();
    ledger.rewind().unwrap();
    ledger.sync_all().unwrap();
    let mut list = Vec::with_capacity(32 * 1024);
    let page = cost(rounds, |number| {
        let (_, args) = call(MANY, number);
        let rows = args["limit"].as_u64().unwrap() + args["offset"].as_u64().unwrap();
        let dir = open(&root, &letter, OFlags::RDONLY | OFlags::DIRECTORY);
        let mut entries = RawDir::new(&dir, list.spare_capacity_mut());
        let mut read = 0;
        while let Some(entry) = entries.next() {
            let entry = entry.unwrap();
            if read < rows && entry.file_type() == FileType::RegularFile {
                let file = open(&dir, entry.file_name(), OFlags::RDONLY);
                let stat = rustix::fs::fstat(&file).unwrap();
                assert!(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
                assert!(rustix::io::read(&file, &mut buffer).unwrap() > 0);
                read += 1;
            }
        }
        assert_eq!(read, rows);
        (&ledger).write_all(&record).unwrap();
        ledger.sync_data().unwrap();
    });
    Floors { files: all, page }
}

/// What one of these takes, of so many.
fn cost(rounds: usize, mut one: impl FnMut(usize)) -> Cost {
    let (before, begun) = (used(), Instant::now());
    for number in 0..rounds {
        one(number);
    }
    let rounds = rounds as f64;
    Cost {
        used: (used() - before) / rounds,
        passed: begun.elapsed().as_secs_f64() * 1000.0 / rounds,
    }
}

/// An agent that may do anything in the directory `w` of this one.
fn agent(dir: &Path, spawner: SpawnerProgram) -> Runtime {
    let workspace = dir.canonicalize().unwrap().join("w");
    std::fs::create_dir(&workspace).unwrap();
    fill(&workspace);
    let config = RuntimeConfig {
        home: dir.to_owned(),
        state_dir: dir.join("state"),
        common_dir: dir.join("state"),
        workspace: workspace.clone(),
        protected: Vec::new(),
        tools: hermitcrab::tools::run,
        env: Vec::new(),
        git_settings: String::new(),
        isolation: Isolation::Isolated,
        asking: Asking::Refuse,
        session: 1,
        spawner,
        umask: 0o022,
    };
    let mut runtime = Runtime::open(config, Box::new(NobodyThere), Box::new(BootClock)).unwrap();
    let agent = runtime.first_agent();
    let place = workspace.to_string_lossy();
    for (verb, object) in [("fs.*", &*place), ("proc.exec", "*")] {
        runtime
            .grant(agent, &GrantWords::new(verb, object))
            .unwrap();
    }
    runtime
}

/// What each kind of call takes, and how many bytes the ledger has of one.
fn ours(place: &Path, calls: usize) -> Vec<(Cost, usize)> {
    let dirs = tempfile::tempdir_in(place).unwrap();
    let mut runtime = agent(dirs.path(), SpawnerProgram::At("/nonexistent".into()));
    let agent = runtime.first_agent();
    let ledger = dirs.path().join("state").join("ledger.jsonl");
    // What is behind the records is room for more.
    let recorded = || {
        let bytes = std::fs::read(&ledger).unwrap();
        bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1)
    };
    KINDS
        .iter()
        .map(|kind| {
            let before = recorded();
            let cost = cost(calls, |number| {
                let (tool, args) = call(kind, number);
                let report = runtime.call(agent, tool, &args);
                assert!(!report.text.contains("\"error\""), "{}", report.text);
            });
            (cost, (recorded() - before) / calls)
        })
        .collect()
}

/// What all calls take in one place.
struct Measured {
    place: PathBuf,
    ours: Vec<(Cost, usize)>,
    floors: Floors,
    theirs: Option<Vec<Cost>>,
}

impl Measured {
    fn at(place: PathBuf, calls: usize, with_hermes: bool) -> Self {
        let ours = ours(&place, calls);
        let searched = KINDS.iter().position(|kind| *kind == MANY).unwrap();
        let floors = floors(&place, calls, ours[searched].1);
        let hermes = if with_hermes {
            hermes::start(&place)
        } else {
            None
        };
        let theirs = hermes.map(|mut hermes| {
            let calls = |kind: &str| {
                (0..=HERMES_CALLS)
                    .map(|number| call(kind, number))
                    .collect()
            };
            KINDS.map(|kind| hermes.cost(calls(kind))).to_vec()
        });
        Self {
            place,
            ours,
            floors,
            theirs,
        }
    }

    /// The table of the place, and what its kernel takes by itself.
    fn section(&self) -> String {
        let mut text = format!(
            "\n## On {}\n\n\
             | call | processor time | of Hermes | ratio | on the clock | of Hermes | ratio |\n\
             |---|--:|--:|--:|--:|--:|--:|\n",
            place::told(&self.place)
        );
        for (at, kind) in KINDS.iter().enumerate() {
            let (one, _) = self.ours[at];
            let row = match self.theirs.as_ref().map(|theirs| theirs[at]) {
                Some(other) => format!(
                    "| `{kind}` | {:.3} | {:.1} | {:.0} | {:.3} | {:.1} | {:.0} |",
                    one.used,
                    other.used,
                    other.used / one.used.max(0.001),
                    one.passed,
                    other.passed,
                    other.passed / one.passed.max(0.001),
                ),
                None => format!(
                    "| `{kind}` | {:.3} | - | - | {:.3} | - | - |",
                    one.used, one.passed
                ),
            };
            writeln!(text, "{row}").unwrap();
        }
        let Floors { files, page } = &self.floors;
        let recorded = self.ours.last().map_or(0, |(_, bytes)| *bytes);
        writeln!(
            text,
            "\nThe {} files of the last row opened, read and closed in a bare loop: {:.3} of processor time, {:.3} on \
             the clock. What such a search needs of the kernel (below), with {recorded} bytes for the ledger: {:.3} of \
             processor time, {:.3} on the clock{}.",
            SEARCHED[1].1,
            files.used,
            files.passed,
            page.used,
            page.passed,
            self.theirs
                .as_ref()
                .and_then(|theirs| theirs.last())
                .map_or_else(String::new, |theirs| format!(
                    "; no program that reads and records as much can be more than {:.0} times cheaper than Hermes",
                    theirs.used / page.used.max(0.001)
                )),
        )
        .unwrap();
        text
    }
}

fn main() {
    maybe_run_as_child();
    // `cargo test --benches` runs this too; there it only has to work.
    if !ambient::wants_figures() {
        let tried = Measured::at(std::env::temp_dir(), CALLS_TRIED, false);
        assert!(tried.section().contains(MANY));
        commands::measured(commands::ROUNDS_TRIED, None);
        return;
    }
    let mut places = place::named();
    if places.is_empty() {
        places.push(std::env::temp_dir());
    }
    let mut measured = Vec::new();
    for place in places {
        measured.push(Measured::at(place, CALLS, true));
    }
    let mut hermes = hermes::start(&measured[0].place);
    let commands = commands::measured(commands::ROUNDS, hermes.as_mut());
    let report = report(&measured, commands.as_deref());
    println!("{report}");
    if let Some(dir) = ambient::write_to() {
        assert!(
            measured.iter().all(|place| place.theirs.is_some()) && commands.is_some(),
            "Hermes is not installed here (`cargo bisim doctor`), or commands cannot be confined"
        );
        std::fs::write(dir.join("files.md"), report).unwrap();
    }
}

fn report(measured: &[Measured], commands: Option<&[commands::Times]>) -> String {
    let mut text = format!(
        "# What a call costs\n\n\
         Written by `cargo xtask files-report`; do not edit. Milliseconds of one call, the ledger included: {CALLS} \
         calls of each kind here, {HERMES_CALLS} in Hermes, in one run on one machine. Carry the ratios to another \
         machine, not the times. What confining a command costs by itself stands in [spawn.md](spawn.md).\n\n\
         A write makes a file, puts what it replaces aside for `undo` and waits four times for the disk, so its cost is \
         that of its file system. A search reads no more files than its page needs; what it needs of the kernel, \
         whoever asks, is the directory listed, as many files as the page has rows opened, looked at, read and \
         closed, and what the ledger has of it written to a file that need not get longer, and waited for.\n"
    );
    for place in measured {
        text.push_str(&place.section());
    }
    text.push_str(&commands::section(commands));
    text
}

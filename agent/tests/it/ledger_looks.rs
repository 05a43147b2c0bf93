//! What was seen is told when its records are on the disk, and not before; what was done and
//! cannot be recorded is told of.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hermitcrab::{
    audit::{Ledger, disk::Disk},
    runtime::{GrantWords, Runtime},
};
use hermitcrab_core::outcome::DenialCode;
use serde_json::json;
use support::{ManualClock, ScriptedUser, plug::Plug};

use crate::ledger_crash::records;
/// A runtime with a file to look at, on this disk.
fn looking(disk: Box<dyn Disk>, root: &Path) -> Runtime {
    let workspace = root.join("w");
    std::fs::create_dir_all(workspace.join("held")).unwrap();
    std::fs::write(workspace.join("held/a.txt"), "wool\n").unwrap();
    let mut runtime = Runtime::open_on(
        support::config(workspace.clone(), root.join("state")),
        Ledger::on(disk, Path::new("plugged")).unwrap(),
        Box::new(ScriptedUser::default()),
        Box::new(ManualClock::default()),
    )
    .unwrap();
    let held = workspace.join("held").to_string_lossy().into_owned();
    let first = runtime.first_agent();
    runtime
        .grant(first, &GrantWords::new("fs.*", &held))
        .unwrap();
    runtime
}

fn looks() -> [(&'static str, serde_json::Value); 2] {
    [
        ("read_file", json!({"path": "held/a.txt"})),
        ("search_files", json!({"pattern": "wool", "path": "held"})),
    ]
}

/// A file without a name takes records as any other does, and nobody finds them.
#[test]
fn nothing_is_done_on_a_ledger_that_was_removed_meanwhile() {
    let mut bench = support::Bench::with_files();
    let write = |name: &str| json!({"path": name, "content": "x"});
    let report = bench.call("write_file", write("a.txt"));
    assert_eq!(report.fate, hermitcrab::runtime::Fate::Ran);
    std::fs::remove_file(bench.state.join("ledger.jsonl")).unwrap();
    for (tool, args) in [
        ("write_file", write("b.txt")),
        ("terminal", json!({"command": "echo x > b.txt"})),
    ] {
        let report = bench.call(tool, args);
        let why = "it was removed while it was written";
        assert!(report.text.contains(why), "{}", report.text);
        assert_eq!(bench.text("b.txt"), None);
    }
}

#[test]
fn what_was_seen_is_told_when_the_records_of_all_its_looks_are_on_the_disk() {
    let dirs = tempfile::tempdir().unwrap();
    let disk = Plug::holding(b"", 1 << 20, None);
    let root = dirs.path().canonicalize().unwrap();
    let mut runtime = looking(Box::new(disk.clone()), &root);
    let first = runtime.first_agent();
    for (tool, args) in looks() {
        let (before, waited) = (disk.durable().len(), disk.borrow().syncs);
        let report = runtime.call(first, tool, &args);
        assert!(report.text.contains("wool"), "{}", report.text);
        let written = disk.borrow().written.clone();
        assert_eq!(written, disk.durable(), "{tool}");
        let of_this = records(&written[before..]);
        let kinds = |kind: &str| {
            let kind = format!("\"kind\":\"{kind}\"");
            of_this.iter().filter(|line| line.contains(&kind)).count()
        };
        assert!(kinds("intent") > 1, "{tool} looks more than once");
        assert_eq!(kinds("intent"), kinds("outcome"), "{tool}");
        assert_eq!(disk.borrow().syncs, waited + 1, "{tool}: one for all looks");
    }
    // What changes something is announced on the disk, and so is its end.
    let waited = disk.borrow().syncs;
    let args = json!({"path": "held/b.txt", "content": "two\n"});
    runtime.call(first, "write_file", &args);
    let written = disk.borrow().written.clone();
    assert_eq!(written, disk.durable());
    assert_eq!(disk.borrow().syncs, waited + 2);
    // What does not look waits for nothing.
    let waited = disk.borrow().syncs;
    runtime.call(first, "todo", &json!({}));
    assert_eq!(disk.borrow().syncs, waited);
}

/// A disk that takes everything, and then cannot say that it has it.
#[derive(Clone, Debug)]
struct Doubtful(Plug, Arc<AtomicBool>);

impl Disk for Doubtful {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, into)
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(io::Error::other("no answer")),
            false => self.0.sync(),
        }
    }
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0.cut(bytes)
    }
}

#[test]
fn what_was_seen_is_not_told_where_the_records_cannot_be_put_on_the_disk() {
    for (tool, args) in looks() {
        let dirs = tempfile::tempdir().unwrap();
        let in_doubt = Arc::new(AtomicBool::new(false));
        let disk = Doubtful(Plug::holding(b"", 1 << 20, None), Arc::clone(&in_doubt));
        let root = dirs.path().canonicalize().unwrap();
        let mut runtime = looking(Box::new(disk), &root);
        let first = runtime.first_agent();
        in_doubt.store(true, Ordering::SeqCst);
        let report = runtime.call(first, tool, &args);
        let refused = hermitcrab::runtime::Fate::Refused(DenialCode::LedgerUnwritable);
        assert_eq!(report.fate, refused, "{tool}: {}", report.text);
        assert!(!report.text.contains("wool"), "{tool}: {}", report.text);
        // The disk that failed once is not believed again.
        in_doubt.store(false, Ordering::SeqCst);
        let report = runtime.call(first, tool, &args);
        assert_eq!(report.fate, refused, "{tool}: {}", report.text);
    }
}

/// A change is made before its outcome is recorded: where that does not fit any more,
/// its reader is told that it stands, and what to do.
#[test]
fn a_change_whose_outcome_cannot_be_recorded_is_told_of() {
    let mut told = 0;
    for room in (3000..6000).step_by(100) {
        let dirs = tempfile::tempdir().unwrap();
        let root = dirs.path().canonicalize().unwrap();
        let mut runtime = looking(Box::new(support::Filling::of(room)), &root);
        let first = runtime.first_agent();
        let place = root.join("w").to_string_lossy().into_owned();
        if runtime.grant_basics(first).is_err()
            || runtime
                .grant(first, &GrantWords::new("fs.create", &place))
                .is_err()
        {
            continue;
        }
        for number in 0..20 {
            let name = format!("f{number}.txt");
            let args = json!({"path": name, "content": "x"});
            let report = runtime.call(first, "write_file", &args);
            if report.fate == hermitcrab::runtime::Fate::Ran || !root.join("w").join(&name).exists()
            {
                continue;
            }
            told += 1;
            let text = &report.text;
            assert!(
                text.contains(
                    "it was done, and what it changed stands, and this cannot be recorded"
                ),
                "{text}"
            );
            assert!(text.contains("then start a new session."), "{text}");
        }
    }
    assert!(
        told > 0,
        "no room was such that only the outcome did not fit"
    );
}

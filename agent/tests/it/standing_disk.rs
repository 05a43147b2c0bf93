//! What becomes of kept grants where the ledger's disk is full.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hermitcrab::{
    audit::{Ledger, disk::Disk},
    runtime::{Fate, Runtime},
};
use hermitcrab_core::{outcome::DenialCode, standing::StandingId};
use serde_json::json;

use crate::support::machine::Machine;

/// A ledger's disk that takes nothing more once it is said to be full.
#[derive(Debug)]
struct Filling(File, Arc<AtomicBool>);

impl Disk for Filling {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        Disk::read_at(&mut self.0, offset, into)
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Disk::append(&mut self.0, bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        Disk::sync(&mut self.0)
    }
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        Disk::cut(&mut self.0, bytes)
    }
}

#[test]
fn a_revocation_elsewhere_ends_the_grant_though_it_cannot_be_recorded() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    assert_eq!(machine.write(&["always"], "a.txt", "2"), (1, true));
    let path = machine.state_dir().join("ledger.jsonl");
    let file = File::options().read(true).append(true).open(&path).unwrap();
    let is_full = Arc::new(AtomicBool::new(false));
    let disk = Filling(file, Arc::clone(&is_full));
    let mut opened = machine.open_on(Ledger::on(Box::new(disk), &path).unwrap(), &[]);
    let first = opened.runtime.first_agent();
    let modifies = |runtime: &Runtime| {
        let held = runtime.grants_in_words(first);
        held.iter().any(|(_, words)| words.starts_with("fs.modify"))
    };
    let args = json!({"path": "a.txt", "content": "3"});
    assert_eq!(
        opened.runtime.call(first, "write_file", &args).fate,
        Fate::Ran
    );
    assert!(modifies(&opened.runtime));
    for id in [0, 1] {
        assert!(machine.keeper().revoke(StandingId::new(id)).unwrap());
    }
    is_full.store(true, Ordering::SeqCst);
    let args = json!({"path": "a.txt", "content": "4"});
    let fate = opened.runtime.call(first, "write_file", &args).fate;
    assert_eq!(fate, Fate::Refused(DenialCode::LedgerUnwritable));
    assert!(!modifies(&opened.runtime), "it ended all the same");
    assert_eq!(
        std::fs::read_to_string(machine.workspace.join("a.txt")).unwrap(),
        "3"
    );
}

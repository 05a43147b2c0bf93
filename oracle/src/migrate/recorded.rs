//! All that was recorded, from the database and the conversation files, counted
//! while it passes. A call that both hold is given once.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::figures::grouped;

use super::{
    database::Database,
    history::{Call, Counts, Session, Sink},
    note::Note,
    source::{DATABASE, Snapshot},
    trajectory,
};

/// How often reading says how far it is.
const LINE_EVERY_CALLS: u64 = 10_000;

/// What was recorded, wherever it was.
pub(super) struct History<'h> {
    snapshot: &'h Snapshot,
    database: Option<Database>,
    pub(super) counts: Counts,
    pub(super) tools: BTreeMap<String, u64>,
    seen: HashSet<u64>,
    pub(super) placeless: u64,
    pub(super) notes: Vec<Note>,
}

impl<'h> History<'h> {
    /// All that is in a copy and can be opened.
    pub(super) fn new(snapshot: &'h Snapshot) -> Self {
        let path = snapshot.path(DATABASE);
        Self::with(snapshot, path.and_then(|path| Database::open(&path).ok()))
    }

    /// With a database that was opened before, or that could not be.
    pub(super) fn with(snapshot: &'h Snapshot, database: Option<Database>) -> Self {
        Self {
            snapshot,
            database,
            counts: Counts::default(),
            tools: BTreeMap::new(),
            seen: HashSet::new(),
            placeless: 0,
            notes: Vec::new(),
        }
    }

    /// Gives every call to `sink`; `says` how far it is, if wanted.
    pub(super) fn read(&mut self, sink: &mut dyn Sink, says: bool) {
        let mut counting = Counting {
            sink,
            says,
            tools: &mut self.tools,
            seen: &mut self.seen,
            placeless: &mut self.placeless,
            count: 0,
            over: false,
        };
        if let Some(database) = &self.database
            && let Err(note) = database.stream(&mut counting, &mut self.counts)
        {
            self.notes.push(note);
        }
        let known: HashSet<u64> = std::mem::take(counting.seen);
        for name in self.snapshot.trajectories() {
            if counting.over {
                break;
            }
            let Some(path) = self.snapshot.path(name) else {
                continue;
            };
            let mut seen_before = |call: &Call| known.contains(&fingerprint(call));
            let read = trajectory::stream(
                &path,
                name,
                &mut counting,
                &mut seen_before,
                &mut self.counts,
            );
            if let Err(note) = read {
                self.notes.push(note);
            }
        }
    }
}

/// Counts what passes.
struct Counting<'c> {
    sink: &'c mut dyn Sink,
    /// Whether it says how far it is.
    says: bool,
    tools: &'c mut BTreeMap<String, u64>,
    seen: &'c mut HashSet<u64>,
    placeless: &'c mut u64,
    count: u64,
    over: bool,
}

impl Sink for Counting<'_> {
    fn session(&mut self, session: &Session) {
        let from_database = session.started > 0.0;
        *self.placeless += u64::from(from_database && session.cwd.is_none());
        self.sink.session(session);
    }

    fn call(&mut self, call: Call) -> bool {
        const TOOLS_MAX: usize = 500;
        self.count += 1;
        if self.says && self.count.is_multiple_of(LINE_EVERY_CALLS) {
            eprintln!("{} calls read", grouped(self.count));
        }
        if self.tools.len() < TOOLS_MAX || self.tools.contains_key(&call.tool) {
            *self.tools.entry(call.tool.clone()).or_default() += 1;
        }
        self.seen.insert(fingerprint(&call));
        self.over = !self.sink.call(call);
        !self.over
    }
}

/// A call of the database and the same one in a conversation file.
fn fingerprint(call: &Call) -> u64 {
    let mut hash = DefaultHasher::new();
    call.id.hash(&mut hash);
    call.tool.hash(&mut hash);
    call.args.to_string().hash(&mut hash);
    hash.finish()
}

/// Reading alone, for counting.
pub(super) struct OnlyRead;

impl Sink for OnlyRead {
    fn session(&mut self, _session: &Session) {}

    fn call(&mut self, _call: Call) -> bool {
        true
    }
}

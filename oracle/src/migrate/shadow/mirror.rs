//! Doing in a world what Hermes has just done outside of it.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Told;
use super::listen::{Heard, Record, Stopped};
use crate::ambient::Ambient;
use crate::check::Judge;
use crate::cli::ShadowArgs;
use crate::known::{self, Catalogue};
use crate::migrate::history::{Call, Session};
use crate::migrate::redact::Redactor;
use crate::migrate::replay::{
    Outcome, Places, Replayer, Terms, Unit, Unreplayable, Workspace, never,
};
use crate::subject::Subjects;

/// The report, a line for each call, written while Hermes runs.
pub(super) const LINES: &str = "shadow.jsonl";
/// How often it is seen whether Hermes has ended.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Times of telling that are kept for the median.
const TIMES_MAX: usize = 100_000;

/// A new file that only its user can read: it quotes what their agent does.
pub(super) fn alone(path: &Path) -> io::Result<File> {
    let mode = 0o600;
    let mut options = File::options();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)?;
    // One that was there before keeps its own mode otherwise.
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Mirrors calls, one by one.
pub(super) struct Mirror {
    subjects: Subjects,
    terms: Terms,
    redactor: Redactor,
    catalogue: Catalogue,
    version: String,
    workspace: PathBuf,
    home: Option<String>,
    /// The workspace as it was before the call that comes next.
    before: Workspace,
    lines: File,
    told: Told,
    times: Vec<u64>,
    forgotten: BTreeMap<String, u64>,
}

impl Mirror {
    pub(super) fn new(
        ambient: &Ambient,
        args: &ShadowArgs,
        subjects: Subjects,
        (terms, redactor): (Terms, Redactor),
        workspace: &Path,
        report: &Path,
    ) -> io::Result<Self> {
        let home = args.hermes_home.canonicalize().ok();
        Ok(Self {
            subjects,
            terms,
            redactor,
            // Without the list nothing is named, and nothing else is lost.
            catalogue: known::load(&ambient.root.join("vectors/known-divergences.toml"))
                .unwrap_or_default(),
            version: args.hermes.clone(),
            before: Workspace::read(workspace),
            workspace: workspace.to_owned(),
            home: home
                .filter(|path| path.file_name().is_some_and(|name| name == ".hermes"))
                .and_then(|path| path.parent()?.to_str().map(str::to_owned)),
            lines: alone(&report.join(LINES))?,
            told: Told::default(),
            times: Vec::new(),
            forgotten: BTreeMap::new(),
        })
    }

    /// Mirrors what arrives until Hermes has ended and nothing is left, or the
    /// time after its end is spent.
    pub(super) fn run(
        mut self,
        arriving: &Receiver<Heard>,
        stopped: &Stopped,
        finish: Duration,
    ) -> Told {
        let mut until: Option<Instant> = None;
        loop {
            // Asked before looking: what is told before it is over is found.
            let over = stopped.is_over();
            let ended = stopped.ended.load(Ordering::SeqCst);
            if ended && until.is_none() {
                until = Instant::now().checked_add(finish);
            }
            if stopped.is_hurried() || until.is_some_and(|until| Instant::now() >= until) {
                self.told.left_out += arriving.try_iter().count() as u64;
                break;
            }
            match arriving.recv_timeout(LOOK_EVERY) {
                Ok(heard) => self.one(heard),
                Err(RecvTimeoutError::Timeout) if over => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.told.left_out += stopped.dropped.load(Ordering::Relaxed);
        self.told.left_out += self.forgotten.values().sum::<u64>();
        self.times.sort_unstable();
        let at = |hundredths: usize| {
            let place = self.times.len().saturating_sub(1) * hundredths / 100;
            self.times.get(place).copied().unwrap_or_default()
        };
        self.told.overhead_us_median = at(50);
        self.told.overhead_us_p99 = at(99);
        self.told
    }

    fn one(&mut self, heard: Heard) {
        let Heard { record, after } = heard;
        self.told.calls += 1;
        if self.times.len() < TIMES_MAX {
            self.times.push(record.overhead_us);
        }
        self.forgotten
            .insert(record.session.clone(), record.forgotten);
        let outcome = self.mirror(&record, after);
        *self.told.classes.entry(outcome.class).or_default() += 1;
        let line = json!({
            "tool": record.tool,
            "call": outcome.call,
            "became": outcome.class,
            "why": outcome.why,
            "needs": outcome.missing,
            "overhead_us": record.overhead_us,
        });
        // A report that cannot be written any more is no reason to stop Hermes.
        let _ = writeln!(self.lines, "{}", self.redactor.clean_value(&line));
    }

    fn mirror(&mut self, record: &Record, after: Workspace) -> Outcome {
        let cwd = Path::new(&record.cwd);
        let places = Places::new(self.workspace.to_str(), self.home.as_deref());
        let args = serde_json::from_str(&record.args).unwrap_or_default();
        let call = Call {
            id: record.call.clone(),
            tool: record.tool.clone(),
            args: places.value(&args),
            result: Some(record.result.clone()),
            cut: record.cut,
        };
        // It has happened already; the next call starts from what it left.
        let before = std::mem::replace(&mut self.before, after);
        if let Some(why) = never(&call.tool) {
            return Outcome::unreplayed(&call, &Unreplayable::Tool(why));
        }
        let unit = Unit {
            session: Session {
                id: record.session.clone(),
                source: "cli".to_owned(),
                cwd: cwd.to_str().map(str::to_owned),
                started: 0.0,
            },
            project: cwd.to_str().map(str::to_owned),
            places,
            workspace: Arc::new(before),
            calls: vec![call.clone()],
            known: BTreeMap::new(),
        };
        let judge = Judge::new(&self.catalogue, &self.version);
        let mut replayer = Replayer {
            terms: &self.terms,
            judge: &judge,
            subjects: &mut self.subjects,
        };
        replayer.run(&unit).pop().unwrap_or_else(|| {
            Outcome::unreplayed(&call, &Unreplayable::Harness("nothing ran".to_owned()))
        })
    }
}

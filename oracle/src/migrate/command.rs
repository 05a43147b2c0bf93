//! The command: read, translate, replay, suggest, write.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::config;
use super::database::Database;
use super::history::{Call, Counts, Session, Sink};
use super::home::Home;
use super::note::Note;
use super::opinion::Opinion;
use super::parallel::{self, Ended};
use super::replay::Class;
use super::report::{self, Report, grouped};
use super::source::{DATABASE, Snapshot};
use super::{suggest, trajectory, translate};
use crate::ambient::Ambient;
use crate::cli::MigrateArgs;
use crate::environment::Lack;
use crate::exit;
use crate::interrupt::Interrupt;
use crate::subject::Processes;

/// How often reading says how far it is.
const LINE_EVERY_CALLS: u64 = 10_000;

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &MigrateArgs) -> u8 {
    let known = crate::hermes_env::known_versions();
    if let Some(unknown) = args
        .hermes
        .iter()
        .find(|one| !known.contains(&one.as_str()))
    {
        eprintln!(
            "error: no lock file pins hermes-agent `{unknown}`; known: {}",
            known.join(", ")
        );
        return exit::USAGE;
    }
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| ambient.root.join("target/bisim/migrate"));
    if let Err(message) = make_out(&out, &args.hermes_home) {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    if let Some(message) = unusable(args) {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let snapshot = match Snapshot::take(&args.hermes_home, args.workspace.as_deref()) {
        Ok(snapshot) => snapshot,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::USAGE;
        }
    };
    match migrate(ambient, args, snapshot, &out) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            exit::INTERNAL
        }
    }
}

/// What is named and is not there; nobody should wait for a replay to hear it.
fn unusable(args: &MigrateArgs) -> Option<String> {
    if let Some(place) = args.workspace.as_ref().filter(|place| !place.is_dir()) {
        return Some(format!(
            "the workspace `{}` is not a directory",
            place.display()
        ));
    }
    let config = args.config.as_ref()?;
    match hermitcrab::config::read(config) {
        Ok(_) if config.is_file() => None,
        Ok(_) => Some(format!(
            "the configuration `{}` is not there",
            config.display()
        )),
        Err(error) => Some(error.to_string()),
    }
}

/// The outputs go anywhere but into the home.
fn make_out(out: &Path, home: &Path) -> Result<(), String> {
    let inside = |out: &Path| {
        let home = home.canonicalize().ok();
        let above = out.ancestors().find_map(|place| place.canonicalize().ok());
        matches!((home, above), (Some(home), Some(above)) if above.starts_with(&home))
    };
    if inside(out) {
        return Err(format!(
            "`{}` is inside the Hermes home, which is only read; name another place with --out",
            out.display()
        ));
    }
    std::fs::create_dir_all(out).map_err(|error| {
        format!(
            "cannot make `{}`: {error}; name another place with --out",
            out.display()
        )
    })
}

fn migrate(
    ambient: &Ambient,
    args: &MigrateArgs,
    mut snapshot: Snapshot,
    out: &Path,
) -> Result<u8, String> {
    let mut notes = std::mem::take(&mut snapshot.notes);
    let home = Home::read(&snapshot, &mut notes);
    let proposals = translate::translate(&home.settings);
    let mut report = Report {
        schema: report::SCHEMA,
        made: ambient.today.clone(),
        hermes: args.hermes.first().cloned().unwrap_or_default(),
        home: args.hermes_home.display().to_string(),
        files: snapshot.names().map(str::to_owned).collect(),
        env_names: home.env_names.clone(),
        skills: home.skills.clone(),
        jobs: home.jobs.clone(),
        proposals,
        ..Report::default()
    };
    let database = match snapshot.path(DATABASE).map(|path| Database::open(&path)) {
        None => {
            if !notes.iter().any(|note| note.about == DATABASE) {
                notes.push(Note::remark(
                    DATABASE,
                    "there is none, so no session is known",
                ));
            }
            None
        }
        Some(Ok(database)) => {
            report.database_schema = Some(database.schema);
            Some(database)
        }
        Some(Err(note)) => {
            notes.push(note);
            None
        }
    };
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let clean = |text: &str| home.redactor.clean(text);
    let mut history = History {
        database,
        ..History::new(&snapshot)
    };
    let mut lack: Option<Lack> = None;
    let mut needs = BTreeMap::new();
    let replay = if args.no_replay {
        Err("it was not wanted".to_owned())
    } else {
        parallel::Machine::prepare(
            ambient,
            args,
            &report.hermes,
            &home,
            &report.proposals,
            (&interrupt, &processes),
        )
        .map_err(|missing| {
            let what = missing.what.clone();
            lack = Some(missing);
            what
        })
    };
    match replay {
        Ok(machine) => {
            let Ended {
                replayed,
                wanted,
                cut,
                started_from,
            } = machine.run(&clean, &mut |gather| history.read(gather));
            if cut {
                notes.push(Note::partial(
                    "replay",
                    "not every call was replayed, because the time was spent or it was interrupted; --budget gives it more",
                ));
            }
            for version in args.hermes.iter().skip(1) {
                let again = parallel::Machine::prepare(
                    ambient,
                    args,
                    version,
                    &home,
                    &report.proposals,
                    (&interrupt, &processes),
                );
                match again {
                    Ok(machine) => {
                        let mut history = History::new(&snapshot);
                        let ended = machine.run(&clean, &mut |gather| history.read(gather));
                        let opinion = Opinion::of(version, &replayed, &ended.replayed);
                        report.opinions.push(opinion);
                    }
                    Err(missing) => notes.push(Note::partial(
                        format!("hermes-agent {version}"),
                        format!("no second opinion: {}", missing.what),
                    )),
                }
            }
            report.replayed = Some(replayed);
            report.started_from = started_from;
            needs = wanted;
        }
        Err(why) => {
            report.not_replayed_because = why;
            history.read(&mut OnlyRead);
        }
    }
    report.counts = history.counts;
    report.tools = std::mem::take(&mut history.tools);
    notes.append(&mut history.notes);
    if history.placeless > 0 && args.workspace.is_none() {
        notes.push(Note::remark(
            DATABASE,
            format!(
                "{} sessions do not say where they worked (older releases did not record it); --workspace says it for them",
                grouped(history.placeless)
            ),
        ));
    }
    report.suggestion = suggest::suggest(&needs);
    report.changed_meanwhile = snapshot.changed_since();
    report.notes = notes;
    report.summary = report.sentence();
    let report = report.cleaned(&home.redactor)?;
    write(&report, args.config.as_deref(), out)?;
    println!("{}", report.summary);
    for note in report.notes.iter().filter(|note| note.partial) {
        println!("missing: {}: {}", note.about, note.text);
    }
    println!("the plan: {}", out.join("migration.md").display());
    if let Some(lack) = lack {
        lack.print();
    }
    Ok(code(&report, args.no_replay))
}

/// What a finished migration adds up to.
fn code(report: &Report, replay_unwanted: bool) -> u8 {
    let Some(replayed) = &report.replayed else {
        return match (replay_unwanted, report.is_partial()) {
            (true, false) => exit::CONFORM,
            (true, true) => exit::INCONCLUSIVE,
            (false, _) => exit::ENVIRONMENT,
        };
    };
    let some = |class| replayed.count(class) > 0;
    exit::code(exit::Tally {
        unsafe_cases: usize::from(some(Class::Unsafe)),
        unexplained: usize::from(some(Class::Changed)),
        incomplete: report.is_partial(),
        ..exit::Tally::default()
    })
}

fn write(report: &Report, existing: Option<&Path>, out: &Path) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("cannot draft: {error}"))?;
    let proposed = config::propose(
        &report.proposals,
        &report.suggestion.grants,
        existing,
        scratch.path(),
    )?;
    let mut json = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    json.push('\n');
    for (name, text) in [
        ("migration.md", report::markdown(report)),
        ("migration.html", report::page(report)),
        ("migration.json", json),
        ("hermitcrab.toml", proposed.text),
        ("migration.diff", proposed.diff),
    ] {
        let path: PathBuf = out.join(name);
        std::fs::write(&path, text)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// What was recorded, wherever it was.
struct History<'h> {
    snapshot: &'h Snapshot,
    database: Option<Database>,
    counts: Counts,
    tools: BTreeMap<String, u64>,
    seen: HashSet<u64>,
    placeless: u64,
    notes: Vec<Note>,
}

impl<'h> History<'h> {
    /// All that is in a copy and can be opened.
    fn new(snapshot: &'h Snapshot) -> Self {
        let path = snapshot.path(DATABASE);
        Self {
            snapshot,
            database: path.and_then(|path| Database::open(&path).ok()),
            counts: Counts::default(),
            tools: BTreeMap::new(),
            seen: HashSet::new(),
            placeless: 0,
            notes: Vec::new(),
        }
    }

    fn read(&mut self, sink: &mut dyn Sink) {
        let mut counting = Counting {
            sink,
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
        if self.count.is_multiple_of(LINE_EVERY_CALLS) {
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
struct OnlyRead;

impl Sink for OnlyRead {
    fn session(&mut self, _session: &Session) {}

    fn call(&mut self, _call: Call) -> bool {
        true
    }
}

//! The command: read, translate, replay, suggest, write.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{
    config,
    database::Database,
    history::Sink,
    home::Home,
    journal::{self, Journal},
    note::Note,
    opinion::Opinion,
    parallel::{Ended, Machine, Parts, Pass},
    recorded::{History, OnlyRead},
    replay::{Class, Proof, Wanted},
    report::{self, Report},
    source::{DATABASE, Snapshot},
    suggest, translate,
};
use crate::ambient::Ambient;
use crate::cli::MigrateArgs;
use crate::environment::{self, Lack};
use crate::exit::{self, Unwritten};
use crate::figures::grouped;
use crate::interrupt::Interrupt;
use crate::planting;
use crate::pulse::Pulse;
use crate::report::{publish, row::name};
use crate::subject::Processes;

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &MigrateArgs) -> u8 {
    if let Err((code, message)) = planting::possible("migrate", args.fault.as_deref()) {
        eprintln!("error: {message}");
        return code;
    }
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| ambient.reports.join("target/bisim/migrate"));
    if let Err(unwritten) = make_out(&out, &args.hermes_home) {
        return unwritten.exit();
    }
    if let Some(message) = unusable(args) {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let _alone = match environment::alone(&out, "--out") {
        Ok(alone) => alone,
        Err(unwritten) => return unwritten.exit(),
    };
    let copying = Pulse::start("copying what Hermes keeps, to read the copy");
    let taken = Snapshot::take(&args.hermes_home, args.workspace.as_deref(), &interrupt);
    drop(copying);
    let snapshot = match taken {
        Ok(snapshot) => match snapshot.is_strange(&args.hermes_home) {
            Some(message) => {
                eprintln!("error: {message}");
                return exit::USAGE;
            }
            None => snapshot,
        },
        Err(unwritten) => return unwritten.exit(),
    };
    let journal = match args.no_replay {
        true => None,
        false => match open_journal(args, &out) {
            Ok(journal) => Some(Mutex::new(journal)),
            Err(message) => {
                eprintln!("error: {message}");
                return exit::USAGE;
            }
        },
    };
    match migrate(
        ambient,
        args,
        snapshot,
        journal,
        &out,
        (&interrupt, &processes),
    ) {
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
            "the workspace `{}` is not a directory; name with --workspace the one Hermes worked in, or leave it out",
            place.display()
        ));
    }
    let config = args.config.as_ref()?;
    let why = match hermitcrab::config::read(config) {
        Ok(_) if config.is_file() => return None,
        Ok(_) => format!("there is no configuration `{}`", config.display()),
        Err(error) => error.to_string(),
    };
    Some(format!(
        "{why}; name with --config the file that `hermitcrab config path` says, or leave it out where you have none"
    ))
}

/// The outputs go anywhere but into the home.
fn make_out(out: &Path, home: &Path) -> Result<(), Unwritten> {
    let inside = |out: &Path| {
        let home = home.canonicalize().ok();
        let above = out.ancestors().find_map(|place| place.canonicalize().ok());
        matches!((home, above), (Some(home), Some(above)) if above.starts_with(&home))
    };
    if inside(out) {
        return Err(Unwritten {
            message: format!(
                "`{}` is inside the Hermes home, which is only read; name another place with --out",
                out.display()
            ),
            code: exit::USAGE,
        });
    }
    environment::no_file(out, "--out")?;
    std::fs::create_dir_all(out).map_err(|error| {
        let cannot = format!("cannot make `{}`", out.display());
        Unwritten::new(&cannot, &error, "place with --out")
    })
}

/// Whether a home is not the one that the agent shares with Hermes.
fn is_elsewhere(ambient: &Ambient, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let usual = ambient.hermes_home.as_deref();
    usual.is_none_or(|usual| real(usual) != real(home))
}

fn migrate(
    ambient: &Ambient,
    args: &MigrateArgs,
    mut snapshot: Snapshot,
    journal: Option<Mutex<Journal>>,
    out: &Path,
    (interrupt, processes): (&Interrupt, &Processes),
) -> Result<u8, String> {
    let mut notes = std::mem::take(&mut snapshot.notes);
    let home = Home::read(&snapshot, &mut notes);
    let proposals = translate::translate(&home.settings);
    let mut report = Report {
        schema: report::SCHEMA,
        made: ambient.today.clone(),
        hermes: args.hermes.first().cloned().unwrap_or_default(),
        home: args.hermes_home.display().to_string(),
        is_elsewhere: is_elsewhere(ambient, &args.hermes_home),
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
                    "there is none, so only conversation files are known",
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
    let clean = |text: &str| home.redactor.clean(text);
    let mut history = History::with(&snapshot, database);
    let mut lack: Option<Lack> = None;
    let mut needs = Wanted::default();
    let parts = journal.as_ref().map(|journal| Parts {
        home: &home,
        proposals: &report.proposals,
        digest: snapshot.terms_digest(),
        journal,
        interrupt,
        processes,
    });
    let machine = match parts {
        None => Err("`--no-replay` was given".to_owned()),
        Some(parts) => match Machine::prepare(ambient, args, &report.hermes, parts) {
            Ok(machine) => Ok((machine, parts)),
            Err(missing) => {
                let what = missing.what.clone();
                lack = Some(missing);
                Err(what)
            }
        },
    };
    match machine {
        Ok((mut machine, parts)) => {
            let mut all = History::new(&snapshot);
            let mut read = |sink: &mut dyn Sink, pass: Pass| match pass {
                Pass::Keep => history.read(sink, false),
                Pass::Count => all.read(sink, true),
                Pass::Again => History::new(&snapshot).read(sink, false),
            };
            let Ended {
                mut replayed,
                wanted,
                cut,
                total,
                started_from,
                effort,
            } = machine.run(&clean, &mut read);
            if cut {
                let seen = replayed.judged() + replayed.count(Class::NotReplayed);
                let done = seen - replayed.unreached().min(seen);
                notes.push(Note::partial(
                    "replay",
                    format!(
                        "not every call was replayed, because the time was spent or it was interrupted ({} of {} were done, the newest first); the same command again goes on from here, --budget gives it more",
                        grouped(done),
                        grouped(total)
                    ),
                ));
            }
            if replayed.asks() > 0 && !interrupt.is_set() {
                report.proved = Some(machine.prove(&mut replayed, &clean, &mut read));
            }
            drop(machine);
            // What was interrupted did not read it to the end; what counted, did.
            if all.counts.calls > history.counts.calls {
                history.counts = all.counts;
                history.tools = all.tools;
                history.placeless = all.placeless;
            }
            let mut opinions = Vec::new();
            for version in args.hermes.iter().skip(1) {
                if interrupt.is_set() {
                    break;
                }
                match Machine::prepare(ambient, args, version, parts) {
                    Ok(mut machine) => {
                        let ended = machine.run(&clean, &mut |sink, pass| {
                            History::new(&snapshot).read(sink, pass == Pass::Count);
                        });
                        opinions.push(Opinion::of(version, &replayed, &ended.replayed));
                    }
                    Err(missing) => notes.push(Note::partial(
                        format!("hermes-agent {version}"),
                        format!("no second opinion: {}", missing.what),
                    )),
                }
            }
            report.opinions = opinions;
            report.replayed = Some(replayed);
            report.started_from = started_from;
            report.effort = effort;
            needs = wanted;
        }
        Err(why) => {
            report.not_replayed_because = why;
            history.read(&mut OnlyRead, true);
        }
    }
    let journal = journal.and_then(|journal| journal.into_inner().ok());
    if journal.is_some_and(|journal| journal.broken) {
        notes.push(Note::remark(
            journal::NAME,
            "it could not be written to the end, so another run replays again what is missing in it",
        ));
    }
    report.counts = std::mem::take(&mut history.counts);
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
    let report = report.placed().cleaned(&home.redactor)?;
    write(&report, args.config.as_deref(), out)?;
    println!("{}", report.summary);
    if let Some(supposed) = report.supposed() {
        println!("{supposed}");
    }
    for note in report.notes.iter().filter(|note| note.partial) {
        println!("missing: {}: {}", name(&note.about), name(&note.text));
    }
    println!("the plan: {}", out.join("migration.md").display());
    println!(
        "what it proposes: {}, which counts for nothing until you have put it where `hermitcrab config path` says",
        out.join("hermitcrab.toml").display()
    );
    // Put there as it is, it would take the place of what the user has said already.
    if let Some(there) = ambient.config.as_deref().filter(|file| file.exists())
        && args.config.is_none()
    {
        println!(
            "there is a configuration at `{}` already: with `--config {}` the proposals are added to what it says",
            name(&there.display().to_string()),
            publish::quoted(&there.to_string_lossy())
        );
    }
    // Where the user has had enough, it was they who ended the workers.
    if interrupt.is_set() && report.replayed.is_none() {
        return Ok(exit::INCONCLUSIVE);
    }
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
    let under_grants = report
        .proved
        .as_ref()
        .map_or(0, |proved| proved.unsafe_calls)
        > 0
        || replayed.asked.iter().any(|one| one.proof == Proof::Unsafe);
    exit::code(exit::Tally {
        unsafe_cases: usize::from(some(Class::Unsafe) || under_grants),
        unexplained: usize::from(replayed.count(Class::Changed) > replayed.known),
        incomplete: report.is_partial(),
        ..exit::Tally::default()
    })
}

/// What an earlier run into the same directory replayed; nothing, if it is not wanted.
fn open_journal(args: &MigrateArgs, out: &Path) -> Result<Journal, String> {
    if args.fresh {
        match std::fs::remove_file(out.join(journal::NAME)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("cannot begin afresh: {error}"));
            }
            Ok(()) | Err(_) => {}
        }
    }
    let journal = Journal::open(out)?;
    if !journal.is_empty() {
        let worlds = journal.len() as u64;
        eprintln!(
            "going on with what an earlier run replayed ({} world{}); --fresh replays it again",
            grouped(worlds),
            if worlds == 1 { "" } else { "s" }
        );
    }
    Ok(journal)
}

/// Writes a file as a whole, or leaves what was there: half a report would be read as one.
/// It quotes a history that is its user's alone, so it is readable by nobody else.
fn whole(out: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mode = std::fs::Permissions::from_mode(0o600);
    let mut file = tempfile::Builder::new()
        .permissions(mode)
        .tempfile_in(out)?;
    file.write_all(text)?;
    file.persist(path)?;
    Ok(())
}

fn write(report: &Report, existing: Option<&Path>, out: &Path) -> Result<(), String> {
    let scratch = tempfile::tempdir()
        .map_err(|error| format!("cannot draft: {error}; TMPDIR names another place"))?;
    let proposed = config::propose(
        &report.proposals,
        &report.suggestion.grants,
        existing,
        scratch.path(),
    )
    .map_err(|why| format!("cannot draft `hermitcrab.toml` where TMPDIR says: {why}"))?;
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
        whole(out, &path, text.as_bytes())
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

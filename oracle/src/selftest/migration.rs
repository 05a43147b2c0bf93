//! Whether somebody who is moving would see a fault: a migration of a home with a
//! recorded history, with the fault planted in the agent it replays on.
//!
//! The plan must say so and the exit code must, and without a fault neither may.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use hermitcrab_core::fault::Fault;

use crate::ambient::Ambient;
use crate::exit;
use crate::migrate::replay::{Class, Replayed};
use crate::migrate::report::Report;

/// What is planted, and as what it must come out.
const SHOWN: [(Fault, Class, u8); 2] = [
    (Fault::CommitWithoutAsking, Class::Unsafe, exit::UNSAFE),
    (Fault::ReadTruncates, Class::Changed, exit::UNEXPLAINED),
];

/// Calls of the recorded history that search from where they are: Hermes finds nothing
/// there without ripgrep, and worlds have none. That is known, and no reason to fail.
const SEARCHES_FROM_HERE: u64 = 1;

/// Runs the migrations; a line for each.
///
/// # Errors
/// Which fault does not come out, or what could not be done.
pub(super) fn shown(ambient: &Ambient, hermes: &str) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = folder.path().join("home");
    make(&ambient.root.join("oracle/tests/homes").join(hermes), &home)
        .map_err(|error| format!("no home to migrate: {error}"))?;
    let (code, sound) = migrate(ambient, hermes, folder.path(), None)?;
    let differs = (sound.count(Class::Unsafe), sound.count(Class::Changed));
    if code != exit::CONFORM || differs != (0, SEARCHES_FROM_HERE) {
        return Err(format!(
            "a migration without a fault ends with {code}: {:?}",
            sound.classes
        ));
    }
    let mut lines = Vec::new();
    for (fault, class, expected) in SHOWN {
        let (code, replayed) = migrate(ambient, hermes, folder.path(), Some(fault))?;
        let count = replayed.count(class);
        if code != expected || count <= sound.count(class) {
            return Err(format!(
                "a migration does not show {}: it ends with {code}, {:?}",
                fault.name(),
                replayed.classes
            ));
        }
        lines.push(format!(
            "{:28} shown by a migration: {count} of {} calls {}, exit code {code}",
            fault.name(),
            replayed.judged(),
            class.word()
        ));
    }
    Ok(lines)
}

/// A home that a release made, unpacked.
fn make(from: &Path, home: &Path) -> std::io::Result<()> {
    std::fs::create_dir(home)?;
    // Deleting is not allowed here, so that it is there to be done without.
    let config = std::fs::read_to_string(from.join("config.yaml"))?;
    let config: Vec<&str> = config
        .lines()
        .filter(|line| !line.contains("recursive delete"))
        .collect();
    std::fs::write(home.join("config.yaml"), config.join("\n"))?;
    let packed = File::open(from.join("state.db.gz"))?;
    let mut database = File::create(home.join("state.db"))?;
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut database)?;
    Ok(())
}

fn migrate(
    ambient: &Ambient,
    hermes: &str,
    folder: &Path,
    fault: Option<Fault>,
) -> Result<(u8, Replayed), String> {
    let out = folder.join(fault.map_or("sound", Fault::name));
    let mut program = Command::new(&ambient.program);
    program
        .arg("migrate")
        .arg("--hermes-home")
        .arg(folder.join("home"))
        .arg("--out")
        .arg(&out)
        .args(["--hermes", hermes, "--jobs", "2"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(fault) = fault {
        program.args(["--fault", fault.name()]);
    }
    let said = |error: std::io::Error| format!("cannot run a migration: {error}");
    let code = program.status().map_err(said)?.code();
    let code = code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(exit::INTERNAL);
    let json = std::fs::read_to_string(out.join("migration.json")).map_err(said)?;
    let report: Report = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    let replayed = report
        .replayed
        .ok_or_else(|| format!("nothing was replayed: {}", report.not_replayed_because))?;
    Ok((code, replayed))
}

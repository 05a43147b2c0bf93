//! `bisim doctor`: what this machine has and lacks for a run.

use crate::ambient::Ambient;
use crate::cli::DoctorArgs;
use crate::interrupt::Interrupt;
use crate::subject::{Processes, Subject};
use crate::{environment, exit, hermes_env};

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &DoctorArgs) -> u8 {
    if args.repair
        && let Err(error) = remove(ambient, &args.hermes)
    {
        eprintln!("error: {error}");
        return exit::ENVIRONMENT;
    }
    let logs = ambient.reports.join("target/bisim");
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let mut starts = match environment::prepare(ambient, &args.hermes, &logs, &processes) {
        Ok(starts) => starts,
        Err(lack) => return lack.exit(&interrupt),
    };
    println!("hermes environment  ok");
    let subjects = match environment::try_out(&mut starts, &processes) {
        Ok(subjects) => subjects,
        Err(lack) => return lack.exit(&interrupt),
    };
    println!("worlds              ok (user namespaces, overlayfs, mounts)");
    println!("hermes              {}", subjects.hermes.version());
    println!(
        "hermitcrab          {}, sandbox isolated",
        env!("CARGO_PKG_VERSION")
    );
    exit::CONFORM
}

/// Removes a Hermes environment, so that the next step makes it anew.
fn remove(ambient: &Ambient, version: &str) -> Result<(), String> {
    if !hermes_env::known_versions().contains(&version) {
        return Ok(());
    }
    let kept = ambient.cache.join("hermes");
    let entries = match std::fs::read_dir(&kept) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot list `{}`: {error}", kept.display())),
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(&format!("{version}-")) {
            std::fs::remove_dir_all(entry.path())
                .map_err(|error| format!("cannot remove `{}`: {error}", entry.path().display()))?;
            eprintln!("removed {}", entry.path().display());
        }
    }
    Ok(())
}

//! `bisim doctor`: what this machine has and lacks for a run.

use crate::ambient::Ambient;
use crate::cli::DoctorArgs;
use crate::environment::Lack;
use crate::interrupt::Interrupt;
use crate::subject::Processes;
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
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let mut looks = Looks::default();
    let shim = looks.at("shim", environment::shim(ambient), |_| "ok".to_owned());
    let env = environment::hermes(ambient, &args.hermes, &processes);
    let env = looks.at("hermes environment", env, |_| "ok".to_owned());
    let agent = environment::agent_alone(ambient, None, &processes);
    let worlds = looks.at("worlds", agent, |_| {
        "ok (user namespaces, overlayfs, mounts)".to_owned()
    });
    match (shim, env, worlds.is_some()) {
        (Some(shim), Some(env), true) => {
            let start = environment::hermes_start(&env, shim);
            let hermes = environment::hermes_alone(start, &processes);
            looks.at("hermes", hermes, String::clone);
        }
        _ => row("hermes", "not tried without what is lacking"),
    }
    if worlds.is_some() {
        row(
            "hermitcrab",
            concat!(env!("CARGO_PKG_VERSION"), ", sandbox isolated"),
        );
    }
    looks.exit(&interrupt)
}

fn row(what: &str, found: &str) {
    println!("{what:<20}{found}");
}

/// What was looked at. All of it is, so that a machine is set up in one go.
#[derive(Default)]
struct Looks {
    lacks: Vec<Lack>,
}

impl Looks {
    /// Tells how one look came out, and keeps what is lacking for the end.
    fn at<T>(
        &mut self,
        what: &str,
        found: Result<T, Lack>,
        words: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match found {
            Ok(found) => {
                row(what, &words(&found));
                Some(found)
            }
            Err(lack) => {
                row(what, "LACKING");
                self.lacks.push(lack);
                None
            }
        }
    }

    /// Says of each lack how it is mended; the exit code.
    fn exit(self, interrupt: &Interrupt) -> u8 {
        let ends = self.lacks.iter().map(|lack| lack.exit(interrupt));
        ends.max().unwrap_or(exit::CONFORM)
    }
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

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
    let mut looks = Looks {
        lacks: Vec::new(),
        is_for_programs: args.json,
    };
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
        _ => looks.row("hermes", "not tried without what is lacking", None),
    }
    if worlds.is_some() {
        looks.row(
            "hermitcrab",
            concat!(env!("CARGO_PKG_VERSION"), ", sandbox isolated"),
            None,
        );
    }
    looks.exit(&interrupt)
}

/// What was looked at. All of it is, so that a machine is set up in one go.
struct Looks {
    lacks: Vec<Lack>,
    is_for_programs: bool,
}

impl Looks {
    fn row(&self, what: &str, found: &str, lack: Option<&Lack>) {
        println!("{}", line(self.is_for_programs, what, found, lack));
    }

    /// Tells how one look came out, and keeps what is lacking for the end.
    fn at<T>(
        &mut self,
        what: &str,
        found: Result<T, Lack>,
        words: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match found {
            Ok(found) => {
                self.row(what, &words(&found), None);
                Some(found)
            }
            Err(lack) => {
                self.row(what, "LACKING", Some(&lack));
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

/// One thing that was looked at: in columns, or as a program reads it.
fn line(is_for_programs: bool, what: &str, found: &str, lack: Option<&Lack>) -> String {
    if !is_for_programs {
        return format!("{what:<20}{found}");
    }
    let mut line = serde_json::json!({ "what": what, "found": found });
    if let (Some(lack), Some(line)) = (lack, line.as_object_mut()) {
        line.insert("lacks".to_owned(), lack.what.clone().into());
        line.insert("help".to_owned(), lack.help.clone().into());
    }
    line.to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_and_what_is_lacking_is_told_to_people_and_to_programs() {
        assert_eq!(line(false, "shim", "ok", None), "shim                ok");
        let lack = Lack {
            what: "no python".to_owned(),
            help: "install it".to_owned(),
        };
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        assert_eq!(
            read(&line(true, "shim", "ok", None)),
            serde_json::json!({"what": "shim", "found": "ok"})
        );
        assert_eq!(
            read(&line(true, "worlds", "LACKING", Some(&lack))),
            serde_json::json!({"what": "worlds", "found": "LACKING", "lacks": "no python", "help": "install it"})
        );
    }
}

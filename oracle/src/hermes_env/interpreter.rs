//! Finding a Python that can run Hermes.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{EnvError, shown};
use crate::processes::Processes;

/// The releases Hermes and the shim's stable interface both support.
const MINOR_RANGE: std::ops::RangeInclusive<u8> = 11..=13;

/// The names tried in each directory of `PATH`, in this order.
const NAMES: [&str; 4] = ["python3", "python3.11", "python3.12", "python3.13"];

/// A usable interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The real executable, behind shims and links.
    pub executable: PathBuf,
    /// Where its standard library lives (`sys.base_prefix`).
    pub base_prefix: PathBuf,
    /// Major and minor version.
    pub version: (u8, u8),
}

/// What the interpreter says of itself.
#[derive(Deserialize)]
struct Facts {
    version: (u8, u8),
    executable: PathBuf,
    base_prefix: PathBuf,
    has_venv: bool,
    implementation: String,
}

const QUESTION: &str = "\
import json, sys, importlib.util, os
has_venv = all(importlib.util.find_spec(m) for m in ('venv', 'ensurepip'))
base = getattr(sys, '_base_executable', None) or sys.executable
print(json.dumps({'version': sys.version_info[:2], 'executable': os.path.realpath(base),
  'base_prefix': os.path.realpath(sys.base_prefix), 'has_venv': has_venv,
  'implementation': sys.implementation.name}))";

/// The first usable interpreter on the path.
///
/// # Errors
/// [`EnvError::NoPython`] with the reason each candidate was passed over.
pub fn find(path_dirs: &[PathBuf], processes: &Processes) -> Result<Interpreter, EnvError> {
    let mut passed_over = Vec::new();
    let mut told = BTreeSet::new();
    for name in NAMES {
        for dir in path_dirs {
            let candidate = dir.join(name);
            if !candidate.is_file() {
                continue;
            }
            match examine(&candidate, processes) {
                Ok(interpreter) => return Ok(interpreter),
                Err(reason) => {
                    // `/bin` is often `/usr/bin`, and `python3` one of the others. Each is asked all
                    // the same: what stands behind them may go by the name it is called by.
                    let file = candidate.canonicalize().unwrap_or(candidate.clone());
                    if told.insert((file, reason.clone())) {
                        passed_over.push(format!("{}: {reason}", shown(&candidate)));
                    }
                }
            }
        }
    }
    Err(EnvError::NoPython(passed_over))
}

/// The one an environment was made with, if it is what it was.
pub fn known(executable: &Path, processes: &Processes) -> Option<Interpreter> {
    let known = examine(executable, processes).ok()?;
    (known.executable == executable).then_some(known)
}

/// Asks one candidate about itself.
fn examine(candidate: &Path, processes: &Processes) -> Result<Interpreter, String> {
    let mut child = Command::new(candidate)
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("could not be started: {error}"))?;
    if !processes.takes_child(&mut child) {
        return Err("was not asked, since the run was interrupted".to_owned());
    }
    let id = child.id();
    let output = child.wait_with_output();
    processes.remove(id);
    let output = output.map_err(|error| format!("could not be heard: {error}"))?;
    if !output.status.success() {
        return Err("did not answer when asked for its version".to_owned());
    }
    let facts: Facts = serde_json::from_slice(&output.stdout)
        .map_err(|_| "gave an answer that is not understood".to_owned())?;
    let (major, minor) = facts.version;
    if major != 3 || !MINOR_RANGE.contains(&minor) {
        return Err(format!("is {major}.{minor}"));
    }
    if facts.implementation != "cpython" {
        return Err(format!("is {}, not cpython", facts.implementation));
    }
    if !facts.has_venv {
        return Err("has no venv module (Debian: `apt install python3-venv`)".to_owned());
    }
    Ok(Interpreter {
        executable: facts.executable,
        base_prefix: facts.base_prefix,
        version: facts.version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(dir: &Path, name: &str, body: &str) {
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn answer(version: &str, has_venv: bool) -> String {
        format!(
            "echo '{{\"version\": {version}, \"executable\": \"/x/python\", \"base_prefix\": \"/x\", \"has_venv\": {has_venv}, \"implementation\": \"cpython\"}}'"
        )
    }

    #[test]
    fn too_old_broken_and_incomplete_interpreters_are_passed_over_with_reasons() {
        let dir = tempfile::tempdir().unwrap();
        script(dir.path(), "python3", &answer("[3, 9]", true));
        script(dir.path(), "python3.11", "exit 1");
        script(dir.path(), "python3.12", &answer("[3, 12]", false));
        let error = find(&[dir.path().to_owned()], &Processes::default()).unwrap_err();
        let message = error.message();
        for reason in ["is 3.9", "did not answer", "no venv module"] {
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn one_interpreter_under_several_names_is_passed_over_once() {
        let dir = tempfile::tempdir().unwrap();
        script(dir.path(), "python3.11", &answer("[3, 11]", false));
        std::os::unix::fs::symlink("python3.11", dir.path().join("python3")).unwrap();
        let again = dir.path().join("again");
        std::os::unix::fs::symlink(dir.path(), &again).unwrap();
        let error = find(&[dir.path().to_owned(), again], &Processes::default()).unwrap_err();
        let message = error.message();
        assert_eq!(message.matches("has no venv").count(), 1, "{message}");
    }

    #[test]
    fn the_first_usable_interpreter_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        script(dir.path(), "python3", &answer("[3, 14]", true));
        script(dir.path(), "python3.13", &answer("[3, 13]", true));
        let interpreter = find(&[dir.path().to_owned()], &Processes::default()).unwrap();
        assert_eq!(interpreter.version, (3, 13));
    }
}

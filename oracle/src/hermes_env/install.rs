//! Making the environment: a virtual environment, then pip with digests.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::locks::{self, Lock};
use super::{EnvError, HermesEnv, Progress, fingerprint};
use crate::processes::Processes;

/// Lines of a failing command's output that are kept for the message.
const OUTPUT_LINES_MAX: usize = 12;
/// How long apart one looks whether another process still installs.
const PAUSE: Duration = Duration::from_millis(50);
/// How long that takes without a word of it.
const UNTOLD: Duration = Duration::from_secs(1);

/// Holds the installation lock until dropped; says once if another process keeps it.
///
/// # Errors
/// The lock file cannot be made or locked, or the run is over before another process lets go.
pub fn exclusive(home: &Path, processes: &Processes, waits: &mut dyn FnMut()) -> io::Result<File> {
    let file = File::create(home.join("lock"))?;
    let (began, mut is_told) = (Instant::now(), false);
    while let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if errno != rustix::io::Errno::WOULDBLOCK {
            return Err(errno.into());
        }
        if processes.is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // Who only looks at it is done at once.
        if !is_told && began.elapsed() > UNTOLD {
            waits();
            is_told = true;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(file)
}

/// Installs `lock` into `hermes_env.venv`, from nothing.
///
/// # Errors
/// The stage that failed with the tail of what it printed.
pub fn run(
    lock: &Lock,
    home: &Path,
    hermes_env: &HermesEnv,
    processes: &Processes,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), EnvError> {
    let cache_error = |source| EnvError::Cache {
        path: home.to_owned(),
        source,
    };
    fingerprint::remove(home).map_err(cache_error)?;
    if hermes_env.venv.exists() {
        fs::remove_dir_all(&hermes_env.venv).map_err(cache_error)?;
    }
    let requirements = home.join("requirements.lock");
    fs::write(&requirements, lock.text).map_err(cache_error)?;

    let (major, minor) = hermes_env.interpreter.version;
    progress(Progress::Stage(format!(
        "making a private python {major}.{minor} environment for hermes-agent {}",
        lock.version
    )));
    let mut venv = Command::new(&hermes_env.interpreter.executable);
    venv.args(["-I", "-m", "venv", "--clear"])
        .arg(&hermes_env.venv);
    stream(venv, "make the virtual environment", processes, &mut |_| {})?;

    let total = locks::package_count(lock);
    let mut done = 0;
    let mut waits = false;
    let mut pip = Command::new(hermes_env.venv.join("bin").join("python"));
    pip.args([
        "-I",
        "-m",
        "pip",
        "install",
        "--no-input",
        "--no-deps",
        "--require-hashes",
    ])
    .args([
        "--only-binary",
        ":all:",
        "--progress-bar",
        "off",
        "--disable-pip-version-check",
    ])
    .arg("-r")
    .arg(&requirements);
    stream(pip, "install the pinned packages", processes, &mut |line| {
        if let Some(rest) = line.strip_prefix("Collecting ") {
            done = (done + 1).min(total);
            let name = rest.split([' ', '=']).next().unwrap_or(rest).to_owned();
            progress(Progress::Package { done, total, name });
        } else if line.starts_with("Installing collected packages") {
            progress(Progress::Stage(format!("unpacking {total} packages")));
        } else if line.starts_with("WARNING: Retrying") && !waits {
            waits = true;
            let told = "the package index does not answer; pip tries again".to_owned();
            progress(Progress::Stage(told));
        }
    })
}

/// Runs a command, hands every line of its output on, and keeps the tail.
fn stream(
    mut command: Command,
    stage: &str,
    processes: &Processes,
    line_seen: &mut dyn FnMut(&str),
) -> Result<(), EnvError> {
    let failed = |output: String| EnvError::Install {
        stage: stage.to_owned(),
        output,
    };
    let (reader, writer) = io::pipe().map_err(|error| failed(error.to_string()))?;
    let writer_again = writer
        .try_clone()
        .map_err(|error| failed(error.to_string()))?;
    command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(writer_again)
        .process_group(0);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if !processes.takes_child(&mut child) {
        return Err(failed("the run was interrupted".to_owned()));
    }
    // The command still holds the writing ends; without this the reader never sees the end.
    drop(command);
    let mut tail = VecDeque::new();
    for line in BufReader::new(reader).lines() {
        let Ok(line) = line else { break };
        line_seen(&line);
        if tail.len() == OUTPUT_LINES_MAX {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    let status = child.wait().map_err(|error| failed(error.to_string()));
    processes.remove(child.id());
    let status = status?;
    if status.success() {
        return Ok(());
    }
    tail.push_back(format!("({status})"));
    Err(failed(Vec::from(tail).join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_stage_keeps_the_tail_of_what_it_printed() {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "for i in $(seq 40); do echo line $i; done; echo broken >&2; exit 3",
        ]);
        let mut lines = 0;
        let error = stream(shell, "try", &Processes::default(), &mut |_| lines += 1).unwrap_err();
        assert_eq!(lines, 41);
        let EnvError::Install { stage, output } = error else {
            panic!("another error")
        };
        assert_eq!(stage, "try");
        assert!(
            output.contains("broken") && output.contains("exit status: 3"),
            "{output}"
        );
        assert!(!output.contains("line 2\n"), "{output}");
    }

    #[test]
    fn an_installation_ends_with_the_run_and_so_does_waiting_for_another_one() {
        let processes = Processes::default();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo begun; sleep 1000 & sleep 1000"]);
        let again = processes.clone();
        let error = stream(shell, "try", &processes, &mut |_| again.end_all()).unwrap_err();
        assert!(error.message().contains("signal: 9"), "{}", error.message());

        let home = tempfile::tempdir().unwrap();
        let nobody = &mut || panic!("nobody else has it");
        let held = exclusive(home.path(), &Processes::default(), nobody).unwrap();
        let error = exclusive(home.path(), &processes, nobody).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        let (told, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let say = &mut || told.send(()).unwrap();
                exclusive(home.path(), &Processes::default(), say).map(drop)
            });
            waits.recv().unwrap();
            drop(held);
            waiting.join().unwrap().unwrap();
        });
        assert!(waits.try_recv().is_err(), "it is said once");
        exclusive(home.path(), &processes, nobody).unwrap();
    }
}

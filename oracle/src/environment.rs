//! What a run needs of this machine, and what to say when it is not there.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use bisim_world::WorldError;
use bisim_world::protocol::{Context, Drive, Job, RawTrace, Step, UserModel, WorldSpec};
use indicatif::ProgressBar;
use serde_json::Value;

use crate::ambient::Ambient;
use crate::exit::{self, Unwritten};
use crate::hermes_env::{self, EnvRequest, HermesEnv, Progress};
use crate::interrupt::Interrupt;
use crate::progress;
use crate::pulse::Pulse;
use crate::subject::agent_world::{ISOLATED, ISOLATION_PROBE};
use crate::subject::{Processes, Restarting, Start, Starts, Subject, Subjects};

/// Said while Hermes alone is started.
pub(crate) const HERMES_STARTS: &str = "starting Hermes, which takes some seconds";

/// Something that is missing: what, what is lost, how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub what: String,
    /// What cannot be done without it, and how to get it.
    pub help: String,
}

impl Lack {
    /// Prints it to standard error.
    pub fn print(&self) {
        eprintln!("error: {}", self.what);
        for line in self.help.lines() {
            eprintln!("  {line}");
        }
    }

    /// Prints it; what the program ends with. Where the user has had enough, it was they who
    /// took it away, and nothing is missing.
    #[must_use]
    pub fn exit(&self, interrupt: &Interrupt) -> u8 {
        if interrupt.is_set() {
            return exit::INCONCLUSIVE;
        }
        self.print();
        exit::ENVIRONMENT
    }
}

/// Makes the directory a run writes to and keeps other runs out of it while the result lives:
/// two that write to one leave a report of neither.
///
/// # Errors
/// It cannot be made or written in, or another run is writing to it.
pub fn alone(place: &Path, option: &str) -> Result<File, Unwritten> {
    let failed = |error: std::io::Error| {
        let cannot = format!("cannot make the report directory `{}`", place.display());
        Unwritten::new(&cannot, &error, &format!("one with {option}"))
    };
    no_file(place, option)?;
    std::fs::create_dir_all(place).map_err(failed)?;
    let directory = File::open(place).map_err(failed)?;
    // One that is there and takes no file is known before an hour of work, too.
    tempfile::Builder::new()
        .tempfile_in(place)
        .map_err(|error| {
            // Its own words name the file that was tried, which is nobody's.
            let error = error.kind().into();
            let cannot = format!("cannot write in `{}`", place.display());
            Unwritten::new(&cannot, &error, &format!("place with {option}"))
        })?;
    match directory.try_lock() {
        // Where a file system has no locks nobody can be told apart.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(Unwritten {
            message: format!(
                "another run is writing to `{}`; wait for its end, or name another place with {option}",
                place.display()
            ),
            code: exit::ENVIRONMENT,
        }),
    }
}

/// Whether nothing lies where a directory is to be made, or a directory does.
///
/// # Errors
/// Something else does.
pub fn no_file(place: &Path, option: &str) -> Result<(), Unwritten> {
    if place.is_dir() || place.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Unwritten {
        message: format!(
            "`{}` is no directory, and what is written goes into one; name another one with {option}",
            place.display()
        ),
        code: exit::USAGE,
    })
}

/// Whether the file an option names can be written; said before minutes of work are done for it.
/// What is there stays until there is something to take its place.
///
/// # Errors
/// It cannot, and why.
pub fn writable(file: Option<&Path>, option: &str) -> Result<(), Unwritten> {
    let Some(file) = file else { return Ok(()) };
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let was_there = file.exists();
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| {
            File::options()
                .append(true)
                .create(true)
                .open(file)
                .map(drop)
        })
        .and_then(|()| match was_there {
            true => Ok(()),
            false => std::fs::remove_file(file),
        })
        .map_err(|error| {
            let cannot = format!("cannot write `{}`", file.display());
            Unwritten::new(&cannot, &error, &format!("file with {option}"))
        })
}

/// How many pairs of workers keep this machine busy: a case often waits, for a
/// deadline, a grace or a person who does not answer.
#[must_use]
pub fn pairs_usual() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() * 2)
}

/// Finds or makes the Hermes environment and the shim.
///
/// # Errors
/// What is missing.
pub fn prepare(
    ambient: &Ambient,
    version: &str,
    logs: &Path,
    processes: &Processes,
) -> Result<Starts, Lack> {
    // Before minutes are spent on what would be of no use without it.
    let extension = shim(ambient)?;
    let env = hermes(ambient, version, processes)?;
    std::fs::create_dir_all(logs).map_err(|error| Lack {
        what: format!(
            "cannot make the report directory `{}`: {error}",
            logs.display()
        ),
        help: "name another one with --report".to_owned(),
    })?;
    Ok(Starts {
        hermes: hermes_start(&env, extension),
        agent: agent_start(ambient),
        logs: logs.to_owned(),
    })
}

/// How Hermes is started in this environment, driven by this extension.
#[must_use]
pub fn hermes_start(env: &HermesEnv, extension: PathBuf) -> Start {
    Start::Hermes {
        python: env.venv.join("bin/python"),
        extension,
    }
}

/// How the agent is started before its sandbox was tried out.
fn agent_start(ambient: &Ambient) -> Start {
    Start::Agent {
        program: ambient.program.clone(),
        isolation: "unknown".to_owned(),
        fault: None,
    }
}

/// The extension that drives Hermes from within its interpreter.
///
/// # Errors
/// It was not built.
pub fn shim(ambient: &Ambient) -> Result<PathBuf, Lack> {
    ambient
        .program
        .parent()
        .and_then(|folder| {
            // Cargo refreshes the copy in `deps`; the other may be older.
            ["deps/libhermes_shim.so", "libhermes_shim.so"]
                .into_iter()
                .map(|name| folder.join(name))
                .find(|path| path.is_file())
        })
        .ok_or_else(|| Lack {
            what: format!(
                "no libhermes_shim.so beside `{}`",
                ambient.program.display()
            ),
            help: "without it Hermes cannot be driven; build it with `cargo build -p hermes-shim`"
                .to_owned(),
        })
}

/// Finds or makes the environment with this release of Hermes.
///
/// # Errors
/// What is missing.
pub fn hermes(ambient: &Ambient, version: &str, processes: &Processes) -> Result<HermesEnv, Lack> {
    let request = EnvRequest {
        cache_dir: ambient.cache.clone(),
        path_dirs: ambient.path.clone(),
        processes: processes.clone(),
    };
    let mut shown = Shown::default();
    let env = hermes_env::ensure(version, &request, &mut |progress| shown.show(progress));
    env.map_err(|error| Lack {
        what: error.message(),
        help: error.help(),
    })
}

/// How an installation is shown: what is done, and of packages how many are there. Nothing of
/// one that is not needed.
#[derive(Default)]
struct Shown {
    pulse: Option<Pulse>,
    bar: Option<ProgressBar>,
}

impl Shown {
    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Stage(text) => {
                self.clear();
                self.pulse.get_or_insert_with(Pulse::quiet).note(&text);
            }
            Progress::Package { done, total, name } => {
                if self.bar.is_none() {
                    self.bar = progress::bar(total, "{bar:30} {pos}/{len} packages  {msg}");
                }
                if let Some(bar) = &self.bar {
                    self.pulse = None;
                    bar.set_position(done as u64);
                    bar.set_message(name);
                } else if done.is_multiple_of(10) || done == total {
                    let text = format!("{done}/{total} packages, {name}");
                    self.pulse.get_or_insert_with(Pulse::quiet).go_on(&text);
                }
            }
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Starts both workers, gives each a world, and has the agent's sandbox tried
/// out in one; what was seen goes into `starts` for every later worker.
///
/// # Errors
/// What is missing.
pub fn try_out(starts: &mut Starts, processes: &Processes) -> Result<Subjects, Lack> {
    let _pulse = Pulse::start("starting Hermes and the agent, which takes some seconds");
    let Subjects {
        mut hermes,
        mut agent,
    } = Subjects::new(starts, processes);
    // Neither needs the other, and Hermes is long in coming.
    let (trace, hermes) = std::thread::scope(|scope| {
        let hermes = scope.spawn(|| works(&mut hermes).map(|()| hermes));
        let trace = probed(&mut agent);
        (trace, hermes.join().unwrap_or_else(|_| Err(died())))
    });
    note_isolation(&trace?, &mut starts.agent)?;
    Ok(Subjects {
        hermes: hermes?,
        agent: Subjects::new(starts, processes).agent,
    })
}

/// What the agent's sandbox does in a world of this machine.
fn probed(agent: &mut Restarting) -> Result<RawTrace, Lack> {
    agent
        .ready()
        .map_err(|error| lack("the agent's worker", &error))?;
    let job = bare(vec![Step::Probe {
        name: ISOLATION_PROBE.to_owned(),
        input: Value::Null,
    }]);
    agent
        .run(job)
        .map_err(|error| lack("a world for the agent", &error))
}

fn died() -> Lack {
    Lack {
        what: "a thread of this program died while Hermes was started".to_owned(),
        help: "run the command again".to_owned(),
    }
}

/// How the agent is started alone: with what its sandbox does in a world of this machine.
///
/// # Errors
/// What is missing.
pub fn agent_alone(
    ambient: &Ambient,
    fault: Option<&str>,
    processes: &Processes,
) -> Result<Start, Lack> {
    let _pulse = Pulse::start("starting the agent in a world");
    let mut start = agent_start(ambient);
    let mut agent = Restarting::new(start.clone(), processes.clone(), None);
    let trace = probed(&mut agent)?;
    note_isolation(&trace, &mut start)?;
    if let Start::Agent { fault: planted, .. } = &mut start {
        *planted = fault.map(str::to_owned);
    }
    Ok(start)
}

/// Has Hermes' worker start and work in a world; the release it says it is.
///
/// # Errors
/// What is missing.
pub fn hermes_alone(start: Start, processes: &Processes) -> Result<String, Lack> {
    let _pulse = Pulse::start(HERMES_STARTS);
    let mut hermes = Restarting::new(start, processes.clone(), None);
    works(&mut hermes)?;
    Ok(hermes.version().to_owned())
}

fn works(hermes: &mut Restarting) -> Result<(), Lack> {
    hermes
        .ready()
        .map_err(|error| lack("Hermes' worker", &error))?;
    hermes
        .run(job_ending())
        .map_err(|error| lack("a world for Hermes", &error))?;
    Ok(())
}

/// Without proved isolation the agent refuses every command, so nothing that
/// is worth comparing would be compared.
fn note_isolation(trace: &RawTrace, agent: &mut Start) -> Result<(), Lack> {
    let help = "without it the agent runs no command and its side of the cases says nothing; \
        `cargo hermitcrab doctor` shows every mechanism and how to get it";
    let step = trace.steps.first();
    let seen = step
        .and_then(|step| step.answer.pointer("/value/isolation"))
        .and_then(Value::as_str);
    match (seen, agent) {
        (Some(ISOLATED), Start::Agent { isolation, .. }) => {
            ISOLATED.clone_into(isolation);
            Ok(())
        }
        (Some(word), _) => Err(Lack {
            what: format!(
                "the agent's sandbox is {word} in a world of this machine: {}",
                step.and_then(|step| step.answer.pointer("/value/missing"))
                    .map(ToString::to_string)
                    .unwrap_or_default()
            ),
            help: help.to_owned(),
        }),
        (None, _) => Err(Lack {
            what: format!(
                "the agent's sandbox could not be tried out: {}",
                step.map_or_else(
                    || format!("{:?}", trace.end),
                    |step| format!("{:?}", step.outcome)
                )
            ),
            help: help.to_owned(),
        }),
    }
}

fn job_ending() -> Job {
    bare(vec![Step::EndSession {}])
}

/// These steps in a world with nothing in it, of nobody who holds anything.
pub(crate) fn bare(script: Vec<Step>) -> Job {
    Job {
        world: Some(WorldSpec {
            cwd: "/home/u/proj".to_owned(),
            files: Vec::new(),
            flip: None,
            serves: None,
            conversations: Vec::new(),
        }),
        context: Context::Interactive,
        user: UserModel::DenyAll,
        held: Vec::new(),
        rules: Vec::new(),
        settings: serde_json::Map::new(),
        drive: Drive::Calls,
        script,
        deadline_ms: 60_000,
    }
}

/// Words for a stage that failed on this machine.
fn lack(what: &str, error: &WorldError) -> Lack {
    let stage = error.stage.as_str();
    let help = if stage.contains("user namespace") || stage.contains("uid map") {
        "user namespaces are needed to build worlds; without them no command may be run and nothing is compared.\n\
         allow them: `sysctl -w kernel.unprivileged_userns_clone=1`, `sysctl -w user.max_user_namespaces=15000` \
         and, on Ubuntu, `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a container: --security-opt seccomp=unconfined or run as root; \
         after a mere chroot the kernel makes none whatever is allowed: enter the tree as a container instead (`systemd-nspawn -D TREE`)"
    } else if stage.contains("give up") {
        "a worker that is started as root becomes another user first, and there is none here (a container whose root \
         is alone in its user namespace).\nstart the oracle as an ordinary user of the container, or give it more users"
    } else if stage.contains("overlay") {
        "overlayfs inside user namespaces (Linux 5.11 or newer) gives each case its own copy of the tree; without it nothing is compared.\n\
         load it: `modprobe overlay`; inside a container, use a host kernel that has it"
    } else if stage.contains("git") {
        "every world begins as a repository; install git where the whole machine has it (Debian: `apt install git`)"
    } else if stage.contains("import hermes") {
        "the Hermes environment does not work; make it anew with `cargo bisim doctor --repair`"
    } else if stage.contains("agent's runtime") {
        "the agent cannot open its runtime inside a world; `cargo hermitcrab doctor` shows which mechanism is missing"
    } else {
        "the workers' own messages are in the report directory (hermes.log, agent.log)"
    };
    Lack {
        what: format!("cannot start {what}: {error}"),
        help: help.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time_writes_to_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a/b");
        let first = alone(&place, "--report").unwrap();
        let other = alone(&place, "--report").unwrap_err();
        assert!(
            other.message.starts_with("another run is writing to"),
            "{other:?}"
        );
        assert!(other.message.contains("--report"), "{other:?}");
        assert_eq!(other.code, exit::ENVIRONMENT);
        // The next one comes in as soon as it has ended, however it did.
        drop(first);
        assert!(alone(&place, "--report").is_ok());
        std::fs::write(dir.path().join("file"), "").unwrap();
        let no_place = alone(&dir.path().join("file/x"), "--out").unwrap_err();
        assert!(no_place.message.starts_with("cannot make"), "{no_place:?}");
        assert!(no_place.message.contains("--out"), "{no_place:?}");
        assert_eq!(no_place.code, exit::USAGE);
        let a_file = alone(&dir.path().join("file"), "--out").unwrap_err();
        assert!(a_file.message.contains("is no directory"), "{a_file:?}");
        assert!(
            a_file.message.ends_with("name another one with --out"),
            "{a_file:?}"
        );
        assert_eq!(a_file.code, exit::USAGE);
        // It is there, it can be entered and locked, and nobody can make a file in it.
        let no_files = alone(Path::new("/proc/self"), "--out").unwrap_err();
        assert!(
            no_files
                .message
                .starts_with("cannot write in `/proc/self`: "),
            "{no_files:?}"
        );
        assert_eq!(no_files.code, exit::USAGE);
    }

    #[test]
    fn each_missing_mechanism_is_named_with_what_is_lost_and_how_to_get_it() {
        for (stage, word) in [
            ("unshare user namespace", "max_user_namespaces"),
            ("give up groups", "ordinary user"),
            ("mount overlay", "modprobe overlay"),
            ("git init -q -b main", "apt install git"),
            ("import hermes", "doctor --repair"),
            ("anything", "agent.log"),
        ] {
            let lack = lack("x", &WorldError::new(stage, "EPERM"));
            assert!(lack.help.contains(word), "{lack:?}");
            assert!(lack.what.contains(stage), "{lack:?}");
        }
    }
}

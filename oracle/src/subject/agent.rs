//! The agent's worker: this program's hidden mode.
//!
//! It enters the same worlds as Hermes' worker and speaks the same protocol;
//! only the driver differs.

use std::io;
use std::process::ExitCode;

use bisim_world::driver::{Driver, Interior, StepSink};
use bisim_world::enter::{self, Harness};
use bisim_world::protocol::{Drive, FileSpec, Job, Step, StepOutcome, StepTrace};
use bisim_world::serves;
use bisim_world::zygote::{Pipes, Seedling};
use bisim_world::{Forked, Forker, WorldError};
use hermitcrab_core::rules::Isolation;
use hermitcrab_sandbox::SpawnerProgram;
use hermitcrab_sandbox::sys;

use super::agent_world::{AgentWorld, ISOLATED, Machine};
use super::{agent_probe, agent_wire, earlier};

/// Runs the worker until the oracle says goodbye; returns the exit status.
/// Must be called before the process has a second thread.
#[must_use]
pub fn serve(isolation: &str, fault: Option<&str>) -> u8 {
    match work(isolation, fault) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("agent worker: {error}");
            crate::exit::INTERNAL
        }
    }
}

fn work(isolation: &str, fault: Option<&str>) -> Result<(), WorldError> {
    let mut pipes = Pipes::take_standard()?;
    let forker = SingleThreaded;
    let prepared = plant(fault).and_then(|()| enter::enter(&Harness::default(), &forker));
    if let Err(error) = prepared {
        pipes.fail(&error);
        return Err(error);
    }
    let driver = AgentDriver {
        machine: Machine {
            // Doubt lowers it, as everywhere.
            isolation: match isolation {
                ISOLATED => Isolation::Isolated,
                _ => Isolation::Unknown,
            },
            spawner: SpawnerProgram::Own,
        },
        fault: fault.map(str::to_owned),
    };
    Seedling::plant(pipes, &forker)?.serve(&driver, &forker)
}

/// The agent's own program with these words; what a worker starts in a world.
#[must_use]
pub fn program(fault: Option<&str>, words: &[String]) -> ExitCode {
    match plant(fault) {
        Ok(()) => hermitcrab::cli::main_with(words),
        Err(error) => {
            eprintln!("agent: {error}");
            ExitCode::from(crate::exit::INTERNAL)
        }
    }
}

#[cfg(feature = "planted-faults")]
fn plant(fault: Option<&str>) -> Result<(), WorldError> {
    use hermitcrab_core::fault::{self, Fault};
    match fault {
        None => Ok(()),
        Some(name) => {
            let found = Fault::parse(name)
                .ok_or_else(|| WorldError::new("plant fault", format!("no fault `{name}`")))?;
            fault::plant(Some(found));
            Ok(())
        }
    }
}

#[cfg(not(feature = "planted-faults"))]
fn plant(fault: Option<&str>) -> Result<(), WorldError> {
    match fault {
        None => Ok(()),
        Some(name) => Err(WorldError::new(
            "plant fault",
            format!("`{name}` cannot be planted: this build has no planted faults"),
        )),
    }
}

/// Forks of a process that is proved to have one thread.
pub(super) struct SingleThreaded;

impl Forker for SingleThreaded {
    fn fork(&self) -> io::Result<Forked> {
        Ok(match sys::fork_single_threaded()? {
            sys::Forked::Parent(child) => Forked::Parent {
                child: child.as_raw(),
            },
            sys::Forked::Child => Forked::Child,
        })
    }

    fn exit(&self, status: i32) -> ! {
        sys::exit_immediately(status)
    }
}

struct AgentDriver {
    machine: Machine,
    fault: Option<String>,
}

impl Driver for AgentDriver {
    fn subject(&self) -> String {
        "hermitcrab".to_owned()
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn interior(&self) -> Interior {
        Interior::Nestable
    }

    fn files(&self, job: &Job) -> Result<Vec<FileSpec>, WorldError> {
        Ok(earlier::files(job))
    }

    fn pure(&self, job: &Job, step: &Step) -> StepTrace {
        match AgentWorld::new(job, &self.machine).step(step, agent_probe::answer) {
            Ok(trace) => trace,
            Err(error) => StepTrace::of(StepOutcome::Raised(error.to_string())),
        }
    }

    fn can_be_cut_off(&self) -> bool {
        true
    }

    fn run(&self, job: &Job, steps: &mut StepSink) -> Result<(), WorldError> {
        match job.drive {
            Drive::Calls | Drive::Conversation => {}
            Drive::Wire => return agent_wire::run(job, steps, self.fault.as_deref()),
        }
        serves::start(job)?;
        let again = steps.again();
        let mut world = match again {
            None => AgentWorld::new(job, &self.machine),
            Some(step) => AgentWorld::again(job, &self.machine, step),
        };
        if job.drive == Drive::Conversation {
            world.watch_parts(steps)?;
        }
        for (place, step) in job.script.iter().enumerate().skip(again.unwrap_or(0)) {
            steps.begin()?;
            if let Some(cut) = step.cut().filter(|_| again != Some(place)) {
                // Whoever made this call is gone before it can be told, and so is what
                // they were asked.
                world.hush();
                world.step(&steps.filled(&cut.step), agent_probe::answer)?;
                return steps.over();
            }
            let step = steps.filled(step);
            steps.end(world.step(&step, agent_probe::answer)?)?;
        }
        Ok(())
    }
}

//! Both subjects, and how they are started on this machine.

use std::path::PathBuf;

use super::{Processes, Restarting, Start};

/// How to start the subjects on this machine.
#[derive(Clone, Debug)]
pub struct Starts {
    /// The real Hermes.
    pub hermes: Start,
    /// The agent.
    pub agent: Start,
    /// Where the workers' standard error goes.
    pub logs: PathBuf,
}

impl Starts {
    /// A bare shell, in this program's hidden mode.
    #[must_use]
    pub fn shell(&self, processes: &Processes) -> Restarting {
        let program = match &self.agent {
            Start::Agent { program, .. } | Start::Shell { program } => program.clone(),
            Start::Hermes { python, .. } => python.clone(),
        };
        let log = Some(self.logs.join("shell.log"));
        Restarting::new(Start::Shell { program }, processes.clone(), log)
    }
}

/// A pair of workers.
pub struct Subjects {
    /// The real Hermes.
    pub hermes: Restarting,
    /// The agent.
    pub agent: Restarting,
}

impl Subjects {
    /// Prepares a pair; nothing is started yet.
    #[must_use]
    pub fn new(starts: &Starts, processes: &Processes) -> Self {
        let make = |start: &Start, name: &str| {
            let log = starts.logs.join(format!("{name}.log"));
            Restarting::new(start.clone(), processes.clone(), Some(log))
        };
        Self {
            hermes: make(&starts.hermes, "hermes"),
            agent: make(&starts.agent, "agent"),
        }
    }
}

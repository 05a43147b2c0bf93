//! The processes a run has started and ends when its user has had enough.
//!
//! Ending is for good: whoever loses its worker to it, and would start another one
//! for the same case, gets none.

use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The processes to end when the run is interrupted. Each leads a process group of its own.
#[derive(Clone, Debug, Default)]
pub struct Processes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    running: Vec<u32>,
    over: bool,
}

impl Processes {
    /// Takes a process that has just been started; `false` if the run is over, and
    /// whoever started it ends it.
    #[must_use]
    pub fn takes(&self, id: u32) -> bool {
        let mut state = self.state();
        if !state.over {
            state.running.push(id);
        }
        !state.over
    }

    /// The same for a child that is not waited for yet, which is ended here if the run is over.
    #[must_use]
    pub fn takes_child(&self, child: &mut Child) -> bool {
        let taken = self.takes(child.id());
        if !taken {
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        taken
    }

    /// Lets go of one that has ended.
    pub fn remove(&self, id: u32) {
        self.state().running.retain(|one| *one != id);
    }

    /// Whether every process was ended, and none is started any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// Ends every process, for good; the kernel takes the worlds of workers along.
    pub fn end_all(&self) {
        let mut state = self.state();
        state.over = true;
        for id in &state.running {
            if let Ok(id) = i32::try_from(*id) {
                // It may be gone already, which is what is wanted.
                let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::Command;

    fn sleeper() -> Child {
        Command::new("sleep")
            .arg("1000")
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[test]
    fn what_runs_is_ended_and_what_would_be_started_afterwards_is_too() {
        let processes = Processes::default();
        let mut before = sleeper();
        assert!(processes.takes_child(&mut before));
        assert!(!processes.is_over());
        processes.end_all();
        assert_eq!(before.wait().unwrap().signal(), Some(9));
        assert!(processes.is_over());
        let mut after = sleeper();
        assert!(!processes.takes_child(&mut after));
        assert_eq!(after.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn what_was_let_go_of_is_not_ended() {
        let processes = Processes::default();
        let mut child = sleeper();
        assert!(processes.takes_child(&mut child));
        processes.remove(child.id());
        processes.end_all();
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

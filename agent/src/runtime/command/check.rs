//! Running a program that only looks, such as a syntax check.
//!
//! It runs like any command: confined, on a copy, with a permit and records of
//! its own. It must never ask anybody, never show what it prints as a
//! command's output, and nothing it does is kept.

use std::time::Duration;

use hermitcrab_core::{
    authority::{Cap, Object, Program, Verb},
    grant::Uses,
};

use super::{super::hands::Hands, CommandRequest, CommandRun, Kept};
use crate::ambient::NobodyThere;

impl Hands<'_> {
    /// Runs a command of the program's own and says what it printed; `None` if
    /// the agent may run nothing without a question, or it did not run.
    pub fn check_with(&mut self, command: &str, timeout: Duration) -> Option<CommandRun> {
        if !self.may_run_freely() {
            return None;
        }
        let request = CommandRequest {
            command,
            workdir: None,
            timeout,
        };
        let user = std::mem::replace(&mut self.runtime.user, Box::new(NobodyThere));
        let progress = self.runtime.progress.take();
        let changes = *self.changes;
        let asked = self.questions.len();
        let run = self.run_shell(&request, Kept::Nothing);
        self.questions.truncate(asked);
        *self.changes = changes;
        self.runtime.progress = progress;
        self.runtime.user = user;
        run.ok()
    }

    fn may_run_freely(&self) -> bool {
        let Ok(cap) = Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)) else {
            return false;
        };
        let now = self.runtime.clock.now();
        self.runtime.machine.look(|session| {
            session
                .table()
                .choose(self.by, &cap, now)
                .ok()
                .and_then(|grant| session.table().get(grant))
                .is_some_and(|grant| grant.limits().uses == Uses::Uncounted)
        })
    }
}

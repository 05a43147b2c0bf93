//! Running a program that only looks, such as a syntax check.
//!
//! It runs like any command: confined, on a copy, with a permit and records of
//! its own. It must never ask anybody, never show what it prints as a
//! command's output, and nothing it does is kept. What it says to the model counts as
//! said by a command: the program, or what it reads besides, may be the workspace's.

use std::{sync::Arc, time::Duration};

use hermitcrab_core::{
    authority::{Cap, Object, Program, Verb},
    grant::Uses,
    tool::Tool,
};
use hermitcrab_sandbox::spawn::{EXCHANGE_DIR, Grace};

use super::{
    super::{hands::Hands, seen::Seen, turn::Stop},
    Author, CommandInput, CommandRequest, CommandRun, Kept, Launch,
};
use crate::person::NobodyThere;

/// Where a program that checks a text finds it.
#[must_use]
pub fn checked_text() -> String {
    format!("{EXCHANGE_DIR}/text")
}

impl Hands<'_> {
    /// Runs a command of the program's own and says what it printed; `None` if
    /// the agent may run nothing without a question, or it did not run.
    pub fn check_with(&mut self, command: &str, timeout: Duration) -> Option<CommandRun> {
        let request = CommandRequest {
            command,
            workdir: None,
            timeout,
            given: CommandInput::Nothing,
            apart: false,
            by: Author::Model,
        };
        let run = self.unheard(|hands| hands.run_shell(&request, Kept::Nothing))?;
        self.state().check_spoke |= !run.output.trim().is_empty();
        Some(run)
    }

    /// The same for a program that sees nothing but this text, as the file
    /// [`checked_text`].
    pub fn check_text(
        &mut self,
        argv: &[&str],
        text: &str,
        timeout: Duration,
    ) -> Option<CommandRun> {
        let about = argv.join(" ");
        let launch = Launch {
            tool: Tool::Terminal,
            about: &about,
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            env: Vec::new(),
            inputs: vec![("text".to_owned(), text.as_bytes().to_vec())],
            merge_stderr: false,
            timeout,
            grace: Grace::None,
        };
        let seen: Arc<[Seen]> = Arc::new([]);
        self.unheard(|hands| hands.run_launch(launch, &seen, CommandInput::Nothing, Kept::Nothing))
    }

    /// Nobody is asked and nobody is shown what this prints.
    fn unheard(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<CommandRun, Stop>,
    ) -> Option<CommandRun> {
        if !self.may_run_freely() {
            return None;
        }
        let user = std::mem::replace(&mut self.runtime.user, Box::new(NobodyThere));
        let progress = self.runtime.progress.take();
        let changes = *self.changes;
        let asked = self.questions.len();
        let run = run(self);
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

//! A command its user typed, at the prompt or behind `exec`.
//!
//! What it may do is decided as for a model's: it runs confined, on a copy, and its
//! changes are held, asked about or thrown away. What differs is for whom it speaks:
//! nothing is cut from what it prints or taken out of it, nobody advises against it, and
//! it takes as long as its user waits.

use std::time::Duration;

use hermitcrab_core::{grant::AgentId, tool::Tool};
use serde_json::Value;

use super::{Author, CommandInput, CommandRequest, CommandRun, Kept};
use crate::runtime::{ChangeSummary, Fate, Runtime, Stop, call};

/// Longer than anybody waits; what `limits.timeout_seconds` says is less.
const AS_LONG_AS_WANTED: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A command as it was typed.
#[derive(Debug)]
pub struct TypedCommand<'c> {
    /// For the shell.
    pub command: &'c str,
    /// How long it may take, if there is a limit.
    pub timeout: Option<Duration>,
    /// What it reads.
    pub given: CommandInput<'c>,
    /// Whether what it says of errors is told apart from what it says.
    pub apart: bool,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct TypedReport {
    /// How it ran; why it did not, in words for its user.
    pub came: Result<CommandRun, String>,
    /// What may stand.
    pub fate: Fate,
    /// What it left in caches, which is left out.
    pub left_out: usize,
}

impl Runtime {
    /// Runs a command as its user typed it. It goes on where the last one they typed left
    /// off, whatever a model's left meanwhile, and what it prints is shown as it comes.
    pub fn run_typed(&mut self, by: AgentId, typed: &TypedCommand<'_>) -> TypedReport {
        let (mut questions, mut changes) = (Vec::new(), ChangeSummary::default());
        let answered = self.given_by_answers(by);
        let came = match self.before_call(&Value::from(typed.command)) {
            Ok(()) => self
                .with_hands(
                    (by, Tool::Terminal),
                    &mut questions,
                    &mut changes,
                    |hands| {
                        hands.look_after()?;
                        hands.run_typed(typed)
                    },
                )
                .map_err(|stop| call::in_words(&stop)),
            Err(stopped) => Err(stopped),
        };
        let (came, fate) = match came {
            Ok(run) => {
                let fate = match (&run.discarded, &run.left_out) {
                    (Some((denial, _)), _) => Fate::RanDiscarded(denial.code()),
                    (None, Some(left_out)) => Fate::RanDiscarded(left_out.code()),
                    (None, None) => Fate::Ran,
                };
                (Ok(run), fate)
            }
            Err((words, fate)) => (Err(words), fate),
        };
        self.after_call(by, &answered, !questions.is_empty(), &fate);
        TypedReport {
            came,
            fate,
            left_out: changes.left_out,
        }
    }
}

impl super::Hands<'_> {
    fn run_typed(&mut self, typed: &TypedCommand<'_>) -> Result<CommandRun, Stop> {
        let request = CommandRequest {
            command: typed.command,
            workdir: None,
            timeout: typed.timeout.unwrap_or(AS_LONG_AS_WANTED),
            given: typed.given,
            apart: typed.apart,
            by: Author::Person,
        };
        // What it has read is gone, so it is not the same command a second time.
        match typed.given {
            // Where it left off is the affair of whoever sat there, and its variables are
            // those of that terminal.
            CommandInput::Terminal(_) => self.run_shell(&request, Kept::Effects),
            CommandInput::File(_) => {
                self.run_shell(&request, Kept::EffectsAndState(Author::Person))
            }
            CommandInput::Nothing => self.run(&request),
        }
    }
}

//! A command that was overtaken: somebody changed what it was about to change,
//! so nothing of it stands.
//!
//! What it would have left was made from what was there before, so it is never
//! put over the newer state. The user may have it run once more on what is there
//! now; that is a wish and no authority, and what it changes then is decided, and
//! asked about, like that of any other command.

use hermitcrab_core::outcome::{Denial, DenialCode};

use super::CommandRun;
use crate::runtime::{Hands, Inquiry, Stop};

/// How often a command is begun; whoever saves faster than it runs wins.
const RUNS_MAX: u32 = 3;
/// The wish that has it run again.
const AGAIN: &str = "Run it again";
/// The other one.
const LEAVE: &str = "Leave it";

impl Hands<'_> {
    /// Runs a command, and runs it again while it is overtaken and its user
    /// wants it to.
    pub(super) fn run_until_it_stands(
        &mut self,
        about: &str,
        mut once: impl FnMut(&mut Self) -> Result<CommandRun, Stop>,
    ) -> Result<CommandRun, Stop> {
        let mut run = once(self)?;
        for _ in 1..RUNS_MAX {
            match &run.discarded {
                Some((denial, _)) if self.is_wanted_again(about, denial) => run = once(self)?,
                Some(_) | None => break,
            }
        }
        Ok(run)
    }

    fn is_wanted_again(&mut self, about: &str, denial: &Denial) -> bool {
        if denial.code() != DenialCode::ChangedSinceShown {
            return false;
        }
        let asking = Inquiry {
            question: format!(
                "A file that this command changes was changed while it was at it ({denial}). Nothing it did was kept: {}",
                about.escape_debug()
            ),
            choices: Some(vec![AGAIN.to_owned(), LEAVE.to_owned()]),
        };
        // Whoever cannot be asked has not wished for anything.
        matches!(self.clarify(&asking), Ok(Some(words)) if words == AGAIN)
    }
}

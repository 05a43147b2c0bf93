//! What happens to the grants of a case while a question of the agent's waits for its answer.

use bisim_world::protocol::{Happened, Meanwhile, Mode, Step};

use super::Holdings;

/// A question that waited for longer than this is answered with no, whatever is said then.
const QUESTION_SECONDS: u64 = 600;

/// Which answers count for nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    /// The mode refuses what would be asked about.
    refuses: bool,
    /// Of the questions of the step that is judged, whether their answers count.
    counts: Vec<bool>,
    /// Who was asked is no more, for the rest of that step.
    is_over: bool,
}

impl Answers {
    /// Whether the answer to the question with this number counts.
    pub(super) fn count(&self, number: usize) -> bool {
        self.counts.get(number).copied().unwrap_or(!self.refuses)
    }
}

impl Holdings<'_> {
    /// Follows what happened while the agent's user was asked in a step. What ended by then
    /// covers nothing of the step, also nothing that was done before the question: which of a
    /// step's effects came first is not seen.
    /// `asked` has a list for each question of the step.
    pub fn follow_meanwhile(&mut self, step: &Step, asked: &[Vec<Happened>]) {
        self.follow_meanwhile_from(step, 0, asked);
    }

    /// The same of a part of the step, whose first question has this number.
    pub(super) fn follow_meanwhile_from(
        &mut self,
        step: &Step,
        first: usize,
        asked: &[Vec<Happened>],
    ) {
        let by = step.by();
        if first == 0 {
            self.answers.is_over = false;
        }
        self.answers.counts.truncate(first);
        for all in asked {
            let mut waited = 0_u64;
            for what in all.iter().filter(|happened| happened.lacks.is_empty()) {
                waited = waited.saturating_add(self.happen(what));
                self.answers.is_over |= match &what.what {
                    Meanwhile::EndSession {} => true,
                    Meanwhile::EndAgent { child } => by == Some(child.as_str()),
                    Meanwhile::Revoke { .. }
                    | Meanwhile::Advance { .. }
                    | Meanwhile::Mode { .. }
                    | Meanwhile::Withdraw {}
                    | Meanwhile::Others {} => false,
                };
            }
            let Answers {
                refuses, is_over, ..
            } = self.answers;
            let counts = !is_over && !refuses && waited <= QUESTION_SECONDS;
            self.answers.counts.push(counts);
        }
    }

    /// Follows one thing; how many seconds it took.
    fn happen(&mut self, happened: &Happened) -> u64 {
        match &happened.what {
            Meanwhile::Revoke { grant } => self.revoke(grant),
            Meanwhile::Advance { seconds } => {
                self.clock = self.clock.saturating_add(*seconds);
                return *seconds;
            }
            Meanwhile::EndSession {} => self.end_session_for_good(),
            Meanwhile::Mode { to } => self.answers.refuses = *to == Mode::RejectAll,
            Meanwhile::Withdraw {} => {
                self.shown_for_good.clear();
                self.counts_again.clear();
            }
            Meanwhile::EndAgent { child } => self.end_agent(child),
            // What they do is of the same step, and what they spend is not seen apart.
            Meanwhile::Others {} => {}
        }
        0
    }

    /// The next session is asked as the first one was.
    pub(super) fn is_asked_again(&mut self) {
        self.answers.refuses = false;
    }
}

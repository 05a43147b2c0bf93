//! By which answers of the user's something is judged.

use std::ops::Range;

use super::Approval;
use crate::observation::{StepSeen, is_yes};

/// Some of a step's questions, with what was answered, and what a yes covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed<'s> {
    pub(super) approval: Approval,
    questions: &'s [(String, String)],
    /// The number in its step of the first of them.
    first: usize,
}

impl<'s> Agreed<'s> {
    /// All questions of a step.
    pub(super) fn to_all(seen: &'s StepSeen, approval: Approval) -> Self {
        Self {
            approval,
            questions: &seen.questions,
            first: 0,
        }
    }

    /// The questions with these numbers, as far as there are such.
    pub(super) fn to(seen: &'s StepSeen, numbers: Range<usize>, approval: Approval) -> Self {
        Self {
            approval,
            questions: seen.questions.get(numbers.clone()).unwrap_or_default(),
            first: numbers.start,
        }
    }

    /// What was shown and answered, by the number of each question in its step.
    pub(super) fn questions(self) -> impl Iterator<Item = (usize, &'s (String, String))> {
        (self.first..).zip(self.questions)
    }

    /// Whether any of them was answered with yes.
    pub(super) fn any_yes(self) -> bool {
        self.questions.iter().any(|(_, answer)| is_yes(answer))
    }
}

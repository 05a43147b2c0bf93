//! The user of a case: answers every question as the case says, whichever session it
//! is put in, with its words in turn and the last one going on. What the case has them do
//! elsewhere before an answer is done while the question waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bisim_world::protocol::{Answer, Happened, Job, QuestionTrace, SILENCE};
use hermitcrab::ports::{Prompt, UserPort};
use hermitcrab_core::approval::Reply;
use hermitcrab_core::session::Asking;

use super::doors::Doors;

/// What the user will say, and what was said.
pub(super) struct Said {
    words: RefCell<VecDeque<Answer>>,
    asked: RefCell<Vec<QuestionTrace>>,
    pub(super) doors: Doors,
}

impl Said {
    pub(super) fn of(job: &Job, doors: Doors) -> Self {
        Self {
            words: RefCell::new(job.user.answers().into()),
            asked: RefCell::default(),
            doors,
        }
    }

    /// What was asked and answered since this was last asked for.
    pub(super) fn take_asked(&self) -> Vec<QuestionTrace> {
        self.asked.take()
    }

    /// How much that is.
    pub(super) fn asked_so_far(&self) -> usize {
        self.asked.borrow().len()
    }

    /// All but the last of the words have been said, to whoever is gone since.
    pub(super) fn only_last(&self) {
        let mut words = self.words.borrow_mut();
        let all = words.len();
        words.drain(..all.saturating_sub(1));
        for word in words.iter_mut() {
            word.first.clear();
        }
    }

    /// Nothing more is said to any question, which is a no.
    pub(super) fn hush(&self) {
        self.words.borrow_mut().clear();
    }

    fn word(&self) -> Option<Answer> {
        let mut words = self.words.borrow_mut();
        match words.len() {
            0 | 1 => {
                let last = words.front_mut()?;
                Some(Answer {
                    answer: last.answer.clone(),
                    first: std::mem::take(&mut last.first),
                })
            }
            _ => words.pop_front(),
        }
    }
}

/// What happened while each of these was asked, put beside it. The agent may have been
/// answered by itself in between, which nobody was asked.
pub(super) fn beside(questions: &mut [QuestionTrace], asked: Vec<QuestionTrace>) {
    let mut questions = questions.iter_mut();
    for one in asked {
        if let Some(question) = questions.find(|question| question.shown == one.shown) {
            question.meanwhile = one.meanwhile;
        }
    }
}

/// Says it.
pub(super) struct CaseUser {
    said: Rc<Said>,
    asking: Asking,
}

impl CaseUser {
    pub(super) fn new(said: &Rc<Said>, asking: Asking) -> Self {
        Self {
            said: Rc::clone(said),
            asking,
        }
    }
}

impl UserPort for CaseUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        let word = self.said.word();
        let first = word.iter().flat_map(|word| &word.first);
        let meanwhile: Vec<Happened> = first.map(|what| self.said.doors.go(what)).collect();
        let reply = match word.as_ref().map(|word| word.answer.as_str()) {
            Some(SILENCE) => Reply::Silence,
            word => Reply::parse(word.unwrap_or("deny")),
        };
        self.said.asked.borrow_mut().push(QuestionTrace {
            shown: prompt.shown.to_owned(),
            answer: reply.as_str().to_owned(),
            meanwhile,
        });
        reply
    }

    fn hears_words(&self) -> bool {
        !matches!(self.asking, Asking::Refuse)
    }

    fn clarify(&mut self, _question: &str, _choices: Option<&[String]>) -> Option<String> {
        match self.asking {
            Asking::ApproveAll | Asking::Prompt => self.said.word().map(|word| word.answer),
            Asking::Refuse => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bisim_world::protocol::Meanwhile;

    use super::*;

    #[test]
    fn what_happened_stands_beside_the_question_that_was_put() {
        let question = |shown: &str, meanwhile: Vec<Happened>| QuestionTrace {
            shown: shown.to_owned(),
            answer: "once".to_owned(),
            meanwhile,
        };
        let happened = |seconds| {
            let what = Meanwhile::Advance { seconds };
            let lacks = String::new();
            vec![Happened { what, lacks }]
        };
        let mut told: Vec<QuestionTrace> = ["a", "b", "a", "c"]
            .map(|shown| question(shown, Vec::new()))
            .into();
        let asked = vec![question("b", happened(1)), question("a", happened(2))];
        beside(&mut told, asked);
        let expected = [Vec::new(), happened(1), happened(2), Vec::new()];
        assert_eq!(
            told.into_iter()
                .map(|one| one.meanwhile)
                .collect::<Vec<_>>(),
            expected
        );
    }
}

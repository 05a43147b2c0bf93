//! The user of a case: answers every question as the case says, whichever session it
//! is put in, with its words in turn and the last one going on.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bisim_world::protocol::{Job, QuestionTrace, SILENCE};
use hermitcrab::ports::{Prompt, UserPort};
use hermitcrab_core::approval::Reply;
use hermitcrab_core::session::Asking;

/// What the user will say, and what was said.
#[derive(Debug, Default)]
pub(super) struct Said {
    words: RefCell<VecDeque<String>>,
    asked: RefCell<Vec<QuestionTrace>>,
}

impl Said {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            words: RefCell::new(job.user.words().into()),
            asked: RefCell::default(),
        }
    }

    /// What was asked and answered since this was last asked for.
    pub(super) fn take_asked(&self) -> Vec<QuestionTrace> {
        self.asked.take()
    }

    /// All but the last of the words have been said, to whoever is gone since.
    pub(super) fn only_last(&self) {
        let mut words = self.words.borrow_mut();
        let all = words.len();
        words.drain(..all.saturating_sub(1));
    }

    /// Nothing more is said to any question, which is a no.
    pub(super) fn hush(&self) {
        self.words.borrow_mut().clear();
    }

    fn word(&self) -> Option<String> {
        let mut words = self.words.borrow_mut();
        match words.len() {
            0 | 1 => words.front().cloned(),
            _ => words.pop_front(),
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
        let reply = match self.said.word().as_deref() {
            Some(SILENCE) => Reply::Silence,
            word => Reply::parse(word.unwrap_or("deny")),
        };
        self.said.asked.borrow_mut().push(QuestionTrace {
            shown: prompt.shown.to_owned(),
            answer: reply.as_str().to_owned(),
        });
        reply
    }

    fn clarify(&mut self, _question: &str, _choices: Option<&[String]>) -> Option<String> {
        match self.asking {
            Asking::ApproveAll | Asking::Prompt => self.said.word(),
            Asking::Refuse => None,
        }
    }
}

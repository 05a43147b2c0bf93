//! Who is asked while a plan runs: a person at the terminal, or one behind the
//! program that started us, by a line each way over the standard streams.
//!
//! A question goes out as one line of JSON with a number; the answer is one
//! line with the same number. Anything else is a no. This module must never
//! take a line for an answer that was not asked for.

use std::{
    cell::Cell,
    io::{BufRead as _, Read as _},
    rc::Rc,
};

use hermitcrab_core::approval::{Reply, Scope};
use serde::Deserialize;
use serde_json::json;

use super::{How, print_json};
use crate::{
    person::TerminalUser,
    ports::{Prompt, UserPort},
};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// What a question is about, for a program that passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A plan as a whole.
    Plan,
    /// One step of it, before it is begun.
    Step,
    /// A value that is to count as the user's own.
    Confirm,
    /// A text that is to be planned.
    Text,
    /// An effect.
    Effect,
    /// A value the plan needs.
    Value,
}

impl About {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step => "step",
            Self::Confirm => "confirm",
            Self::Text => "text",
            Self::Effect => "effect",
            Self::Value => "value",
        }
    }
}

/// Somebody who can be asked.
pub(super) enum Person {
    /// At the terminal.
    Terminal(TerminalUser),
    /// Behind the standard streams.
    Pipe(PipeUser),
}

impl Person {
    /// Whoever there is; `None` if nobody is.
    pub(super) fn open(how: &How) -> Option<Self> {
        match &how.pipe {
            Some(pipe) => Some(Self::Pipe(pipe.clone())),
            None => TerminalUser::open().map(Self::Terminal),
        }
    }

    /// Puts a question and brings back a line; `None` if none came.
    pub(super) fn line(&mut self, about: About, question: &str) -> Option<String> {
        match self {
            Self::Terminal(terminal) => terminal.line(question),
            Self::Pipe(pipe) => pipe.put(about, question),
        }
    }
}

/// A program that passes questions on and answers back.
#[derive(Clone, Debug, Default)]
pub(super) struct PipeUser {
    asked: Rc<Cell<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    n: u64,
    answer: String,
}

impl PipeUser {
    fn put(&self, about: About, text: &str) -> Option<String> {
        let number = self.asked.get().saturating_add(1);
        self.asked.set(number);
        print_json(
            &json!({"v": 1, "type": "question", "n": number, "about": about.as_str(), "text": text}),
        );
        answer(&mut std::io::stdin().lock(), number)
    }
}

/// The answer to a question; what is not one, or is one to another, is none.
fn answer(from: &mut impl std::io::BufRead, number: u64) -> Option<String> {
    let mut line = String::new();
    let read = from.take(ANSWER_BYTES_MAX).read_line(&mut line).ok()?;
    if read == 0 || !line.ends_with('\n') {
        return None;
    }
    let answer: Answer = serde_json::from_str(&line).ok()?;
    (answer.n == number).then(|| answer.answer.trim().to_owned())
}

impl UserPort for PipeUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        match self.put(About::Effect, prompt.shown) {
            None => Reply::Cancelled,
            Some(words) => match Reply::parse(&words) {
                Reply::Yes(scope) if scope > prompt.question.widest() => Reply::No,
                // A yes that outlives the program is for a person at a terminal.
                Reply::Yes(Scope::Always) => Reply::No,
                reply => reply,
            },
        }
    }

    fn hears_words(&self) -> bool {
        true
    }

    fn clarify(&mut self, question: &str, choices: Option<&[String]>) -> Option<String> {
        let mut text = question.to_owned();
        for choice in choices.into_iter().flatten() {
            text.push('\n');
            text.push_str(choice);
        }
        self.put(About::Value, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn only_a_whole_answer_to_this_question_is_one() {
        let said = |mut line: &[u8]| answer(&mut line, 3);
        assert_eq!(
            said(b"{\"n\": 3, \"answer\": \" once \"}\n").as_deref(),
            Some("once")
        );
        for line in [
            &b"{\"n\": 2, \"answer\": \"once\"}\n"[..],
            b"{\"n\": 3, \"answer\": \"once\"}",
            b"{\"n\": 3, \"answer\": \"once\", \"for\": \"all\"}\n",
            b"once\n",
            b"\n",
            b"",
        ] {
            assert_eq!(said(line), None, "{line:?}");
        }
    }
}

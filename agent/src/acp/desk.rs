//! What a session is told, one thing after the other, and whom it owes an
//! answer.
//!
//! The protocol's permissions are choices. Where a client has no forms, a
//! question for free words is said as a message, the turn ends, and what the
//! user sends next is the answer: the call or the plan that asked has waited
//! for it, with everything it was locked to. Nothing happens while it waits, and
//! nothing happens after it where no answer came. This module must never take
//! anything for an answer that the user did not type.

use std::{
    cell::RefCell,
    path::PathBuf,
    rc::Rc,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use agent_client_protocol::{
    Error,
    v1::{
        Responder,
        schema::{PromptResponse, StopReason},
    },
};
use futures::channel::oneshot;

use super::{
    commands::{self, Command},
    control::Control,
    history::Story,
    link::Link,
    order::{Order, Queue, Told},
    prompt::Said,
    scene::Scene,
    waiting,
};

/// The longest answer that is taken.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A prompt that waits for its answer.
struct Turn {
    answer: Responder<PromptResponse>,
    /// Dropped when it has it.
    _done: oneshot::Sender<()>,
}

/// Where a session sits.
pub struct Desk {
    pub(super) orders: Queue,
    /// What was said up to now.
    pub(super) story: Rc<RefCell<Story>>,
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
    /// The session's own directory.
    pub(super) dir: PathBuf,
    /// How long a question for words waits.
    pub(super) within: Duration,
    pub(super) state: RefCell<State>,
}

/// What changes at a desk.
#[derive(Default)]
pub struct State {
    turn: Option<Turn>,
    left: Option<Told>,
}

/// What a prompt is while a question waits.
#[derive(Debug, PartialEq, Eq)]
enum Read<'a> {
    Answer(&'a str),
    Leave,
    /// Something else, and what is said to it.
    Other(String),
}

impl Desk {
    /// The next prompt to work on; `None` if the session is to end.
    pub fn next(&self) -> Option<Said> {
        if self.state.borrow().left.is_some() {
            return None;
        }
        loop {
            match self.orders.next() {
                Ok(Order::Prompt { said, answer, done }) => {
                    self.begin(answer, done);
                    return Some(said);
                }
                // There is nothing to cancel any more.
                Ok(Order::Cancelled) => {}
                Ok(Order::Leave(told)) => {
                    self.state.borrow_mut().left = Some(told);
                    return None;
                }
                Err(mpsc::RecvError) => return None,
            }
        }
    }

    fn begin(&self, answer: Responder<PromptResponse>, done: oneshot::Sender<()>) {
        let turn = Turn {
            answer,
            _done: done,
        };
        self.state.borrow_mut().turn = Some(turn);
    }

    /// Answers the prompt at hand, if one still waits for that.
    pub fn close(&self, came: Result<PromptResponse, Error>) {
        let turn = self.state.borrow_mut().turn.take();
        if let Some(turn) = turn {
            // Whoever hears the answer may send the next prompt at once.
            self.control.finished();
            // A client that went away is told nothing.
            let _ = turn.answer.respond_with_result(came);
        }
    }

    /// Who is to be told that the session has ended.
    pub fn left(&self) -> Option<Told> {
        self.state.borrow_mut().left.take()
    }

    /// Puts a question, and waits for the user's words in another prompt.
    pub fn words(&self, question: &str) -> Option<String> {
        if self.control.is_cancelled() {
            return None;
        }
        // For whoever takes the session up: to its client this turn is over.
        let kept = self.story.borrow_mut().settle();
        if let Err(error) = kept.and_then(|()| waiting::keep(&self.dir, question)) {
            self.link.say(&format!(
                "A question cannot be asked, because it cannot be kept: {error}\n"
            ));
            return None;
        }
        self.link.say(&worded(question, self.within));
        let believed = self.control.choice().belief;
        self.close(Ok(PromptResponse::new(StopReason::EndTurn)));
        let answer = match self.await_words() {
            Came::Words(words) if self.control.choice().belief == believed => Ok(words),
            Came::Words(_) => Err(
                "You changed how far the sandbox is believed, which ends what was granted; what \
                 asked is over.",
            ),
            Came::Left => Err("The question is left; what asked is over."),
            Came::Late => Err("Nobody answered in time; what asked is over."),
            // Whoever takes the session up is told that it waited.
            Came::Gone => {
                self.scene.borrow_mut().stop = true;
                return None;
            }
        };
        waiting::forget(&self.dir);
        match answer {
            Ok(words) => Some(words),
            Err(why) => {
                self.link
                    .say(&format!("{why} Nothing was done after it.\n"));
                self.scene.borrow_mut().stop = true;
                None
            }
        }
    }

    fn await_words(&self) -> Came {
        let until = Instant::now() + self.within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.orders.next_within(left) {
                Ok(Order::Prompt { said, answer, done }) => {
                    self.begin(answer, done);
                    match read(&said) {
                        Read::Answer(words) => return Came::Words(words.to_owned()),
                        Read::Leave => return Came::Left,
                        Read::Other(why) => {
                            self.link.say(&why);
                            self.close(Ok(PromptResponse::new(StopReason::EndTurn)));
                        }
                    }
                }
                Ok(Order::Cancelled) => return Came::Left,
                Ok(Order::Leave(told)) => {
                    self.state.borrow_mut().left = Some(told);
                    return Came::Gone;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => return Came::Late,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Came::Gone,
            }
        }
    }
}

/// What came of waiting for words.
enum Came {
    Words(String),
    Left,
    Late,
    Gone,
}

fn worded(question: &str, within: Duration) -> String {
    let time = match within.as_secs() {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    };
    format!(
        "{question}\n\n(Your next message is the answer, within {time}. `/leave` leaves the \
         question, and ends what asked.)\n"
    )
}

fn read(said: &Said) -> Read<'_> {
    let why = match commands::read(&said.typed) {
        Some(Ok(Command::Leave)) => return Read::Leave,
        Some(_) => "commands are not read before it is answered",
        None if !said.is_typed => {
            "an answer is what you type; files and links are not taken for your words"
        }
        None if said.words.len() > ANSWER_BYTES_MAX => "this is too long for an answer",
        None => return Read::Answer(&said.words),
    };
    Read::Other(format!(
        "This is no answer to the question that waits: {why}. Answer it in words, or leave it \
         with `/leave`; then everything else is read again.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_BYTES_MAX, Read, read};
    use crate::acp::prompt::Said;

    fn said(words: &str, is_typed: bool) -> Said {
        Said {
            words: words.to_owned(),
            typed: words.to_owned(),
            is_cut: false,
            has_attachments: false,
            is_typed,
        }
    }

    #[test]
    fn only_typed_words_are_an_answer_and_only_one_word_leaves() {
        for words in ["b.txt", "/etc/passwd", "no", "leave", "cancel", " x\ny "] {
            assert_eq!(read(&said(words, true)), Read::Answer(words), "{words}");
        }
        assert_eq!(read(&said(" /leave ", true)), Read::Leave);
        assert_eq!(read(&said("/leave", false)), Read::Leave);
        for other in [
            said("/caps", true),
            said("/plan a thing", true),
            said("/revoke", true),
            said("[a](file:///a)", false),
            said(&"x".repeat(ANSWER_BYTES_MAX + 1), true),
        ] {
            assert!(matches!(read(&other), Read::Other(_)), "{}", other.typed);
        }
    }
}

//! What the runtime needs from outside, split by power.
//!
//! A clock only tells the time; a user port only puts a question and brings
//! back words. Neither can read a file or start anything.

use hermitcrab_core::{
    approval::{Question, Reply},
    grant::AgentId,
    standing::PortableCap,
    time::Instant,
};

/// Tells the time on a clock that never runs backwards.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed instant, suspend included.
    fn now(&self) -> Instant;
}

/// Is shown what a command prints, while it runs. What it is given is the
/// command's own text: it may hold control letters.
pub trait ProgressPort {
    /// A piece of output of a command that an agent runs.
    fn output(&mut self, agent: AgentId, piece: &str);
}

/// A question as it is put to a person.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// The question; the answer is bound to its digest.
    pub question: &'a Question,
    /// Everything that will be spent, in full: the command, the diff.
    pub shown: &'a str,
    /// What is asked for, in words that outlive the session, in the order of
    /// [`Question::uncovered`]; `None` for what has no such words.
    pub portable: &'a [Option<PortableCap>],
}

/// What a person wants done with their answer beside it being given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// The same answer is to be given again to exactly the same request.
    Repeat,
}

/// Brings questions to a person and answers back.
pub trait UserPort {
    /// Puts one question and waits for the reply. Anything but a clear yes
    /// (silence, a closed dialog, unknown words) is a refusal.
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply;

    /// The same, and says whether the answer is to be repeated.
    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        (self.ask(prompt), Keep::Nothing)
    }

    /// Puts a model's own question and waits for the user's words; `None` if
    /// nobody can be asked. The words are data and never a yes to an effect.
    fn clarify(&mut self, _question: &str, _choices: Option<&[String]>) -> Option<String> {
        None
    }
}

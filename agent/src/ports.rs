//! What the runtime needs from outside, split by power.
//!
//! A clock only tells the time; a user port only puts a question and brings
//! back words. Neither can read a file or start anything.

use hermitcrab_core::{
    approval::{Question, QuestionId, Reply},
    authority::Verb,
    digest::Digest,
    grant::AgentId,
    standing::PortableCap,
    time::Instant,
};
use hermitcrab_sandbox::spawn::Stream;

/// Tells the time on a clock that never runs backwards.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed instant, suspend included.
    fn now(&self) -> Instant;
}

/// Is shown what a command prints, while it runs. What it is given is the
/// command's own text: it may hold control letters.
pub trait ProgressPort {
    /// A command of this agent begins.
    fn began(&mut self, _agent: AgentId) {}

    /// A piece of what one prints, as it came. Whoever takes it says so, and is not
    /// shown it as text.
    fn takes(&mut self, _agent: AgentId, _from: Stream, _piece: &[u8]) -> bool {
        false
    }

    /// A piece of output of a command that an agent runs.
    fn output(&mut self, agent: AgentId, piece: &str);

    /// Something about a running command that it does not print itself, in a line: whom of
    /// the network it did not reach, and what would let it.
    fn notice(&mut self, _agent: AgentId, _line: &str) {}

    /// The command that began last has ended; nothing was decided about it yet.
    fn ended(&mut self, _agent: AgentId) {}

    /// Whether the command is still wanted; looked at several times a second.
    /// One that is not is killed, and what it did is thrown away.
    fn is_wanted(&mut self) -> bool {
        true
    }
}

/// A command in the background that has ended, and about which nothing was decided yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its name for a model.
    pub id: String,
    /// The command, as it is told in a line.
    pub command: String,
    /// Why that is no success, if it is none: `with status 1`.
    pub failed: Option<String>,
    /// Whether it has changed something that is still to be decided.
    pub is_to_decide: bool,
}

/// Is told at once that a command in the background has ended by itself, by the thread that
/// attended to it: while somebody waits for what is typed, say. It can only tell it.
pub trait EndPort: Send + Sync {
    /// One has.
    fn ended(&self, ended: Ended);
}

/// An editor: its text of a file counts, and it shows what becomes of files.
pub trait BufferPort {
    /// The text the editor shows for this absolute path, unsaved changes
    /// included; `None` if it does not say.
    fn text(&mut self, path: &str) -> Option<String>;

    /// A call of this agent has put this in place, whether anybody was asked or not.
    fn wrote(&mut self, _by: AgentId, _file: FileDiff) {}

    /// A call of this agent has changed a file of which the editor holds changes that are not
    /// saved, and nobody was asked; in words.
    fn unsaved(&mut self, _by: AgentId, _words: String) {}
}

/// One file of what is asked about: what is there and what would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Which file, absolute.
    pub path: String,
    /// What is there.
    pub before: Side,
    /// What would be there.
    pub after: Side,
}

/// One side of a [`FileDiff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// There is no file.
    Nothing,
    /// A text, all of it.
    Text(String),
    /// Something that cannot be shown as text, or not whole.
    Opaque {
        /// Its length, where it is known.
        bytes: Option<u64>,
        /// Of its content.
        digest: Digest,
    },
    /// A file that may not be read.
    Unread,
}

impl Side {
    /// The text; nothing is an empty one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Nothing => Some(""),
            Self::Text(text) => Some(text),
            Self::Opaque { .. } | Self::Unread => None,
        }
    }
}

/// A question as it is put to a person.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// The question; the answer is bound to its digest.
    pub question: &'a Question,
    /// Everything that will be spent, in full: the command, the diff.
    pub shown: &'a str,
    /// The files of it, for whoever can show a difference side by side.
    pub files: &'a [FileDiff],
    /// What happens besides and is no file's content: directories, links, modes.
    pub besides: &'a [String],
    /// What is asked for, in words that outlive the session, in the order of
    /// [`Question::uncovered`]; `None` for what has no such words.
    pub portable: &'a [Option<PortableCap>],
}

/// How much somebody wants to see of what a command changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Each difference: what an answer is given to.
    Whole,
    /// How much it is and where. No yes is given to that.
    Stat,
}

/// What a person grants for the session with a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wider {
    /// What may be done.
    pub verbs: Vec<Verb>,
    /// On anything in this directory, absolute.
    pub dir: String,
}

/// What a person wants done with their answer beside it being given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// The same answer is to be given again to exactly the same request.
    Repeat,
    /// Whoever asked is to hold this from here on.
    Hold(Wider),
}

/// What a person says to a grant somebody proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They take it for their own.
    Yes,
    /// They do not.
    No,
    /// Nobody looks at it now.
    Later,
}

/// Brings questions to a person and answers back.
pub trait UserPort {
    /// Puts one question and waits for the reply. Anything but a clear yes
    /// (silence, a closed dialog, unknown words) is a refusal.
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply;

    /// Whether this would be shown and refused whatever is held, as in a dry run: then no
    /// answer that was given before is given again.
    fn only_shows(&self, _question: &Question) -> bool {
        false
    }

    /// How much is to be shown of what a command did, where that is so many changes.
    fn detail(&mut self, _changes: usize) -> Detail {
        Detail::Whole
    }

    /// Of several calls under way, the questions that follow belong to this one.
    fn about(&mut self, _call: usize) {}

    /// The questions that follow are about what this command changed, which an earlier
    /// call left running, and not about the call under way; with `None`, about that again.
    fn about_earlier(&mut self, _command: Option<&str>) {}

    /// The same, and says whether the answer is to be repeated.
    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        (self.ask(prompt), Keep::Nothing)
    }

    /// The session did not take the answer to this question, for it came too late or
    /// what it was about was gone: nothing of it is to be kept.
    fn not_taken(&mut self, _question: QuestionId) {}

    /// A no of before was given again to what would have been asked about now.
    fn refused_as_before(&mut self) {}

    /// Shows a grant that a judge proposes. Only a clear yes is one.
    fn consider(&mut self, _shown: &str) -> Verdict {
        Verdict::Later
    }

    /// Whether somebody is there whom [`UserPort::clarify`] reaches.
    fn hears_words(&self) -> bool {
        false
    }

    /// Puts a model's own question and waits for the user's words; `None` if
    /// nobody can be asked. The words are data and never a yes to an effect.
    fn clarify(&mut self, _question: &str, _choices: Option<&[String]>) -> Option<String> {
        None
    }
}

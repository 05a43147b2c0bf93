//! What the program and a model's own process say to each other: one JSON
//! object a line, both ways.
//!
//! The process reads a file nobody vouches for and may be taken over by it. So
//! nothing it says is believed beyond its form: lines are bounded, kinds are
//! closed, and words of it are only ever shown or checked in full.

#[cfg(feature = "llama")]
use std::io::Write as _;
use std::io::{self, BufRead, Read as _};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The longest line, either way.
pub const LINE_BYTES_MAX: u64 = 16 << 20;

/// What the process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// The first word: what to load. Nothing is read before it is closed in.
    Load(Load),
    /// Go on with this conversation.
    Ask(Ask),
    /// Say no more about the last one.
    Stop,
}

/// What to load, and within which bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// All files of the model, the first one first; no other can be read.
    pub files: Vec<String>,
    /// How long a conversation may be, in tokens.
    pub context: Option<u32>,
    /// How many threads count.
    pub threads: u32,
    /// How much memory of its own it may take.
    pub memory_bytes_max: u64,
}

/// One conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What was said so far.
    pub turns: Vec<Turn>,
    /// What an answer has to be like, as GBNF.
    pub grammar: Option<String>,
    /// How long it may be.
    pub tokens_max: Option<u32>,
    /// How freely words are chosen; 0 for the likeliest.
    pub temperature: f32,
    /// What chance begins with.
    pub seed: u32,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// By whom: `system`, `user` or `assistant`.
    pub role: String,
    /// What.
    pub text: String,
}

/// What the process says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// The model is there.
    Loaded(Loaded),
    /// More of the answer.
    Piece(String),
    /// That was it.
    Done(Done),
    /// There is no answer, or no model.
    Failed(Failed),
}

/// A model that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loaded {
    /// Its architecture, as the file says.
    pub architecture: String,
    /// How many numbers it consists of.
    pub parameters: u64,
    /// How long a conversation can be, in tokens.
    pub context: u32,
    /// How many tokens it knows.
    pub vocabulary: u32,
    /// Whether the file says how a conversation is written.
    pub has_template: bool,
}

/// How an answer ended, and what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// Tokens of the conversation.
    pub read: u64,
    /// Tokens of the answer.
    pub written: u64,
    /// Time for the first, in microseconds.
    pub reading_micros: u64,
    /// Time for the second.
    pub writing_micros: u64,
    /// Why there is no more.
    pub end: End,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model had nothing more to say.
    #[default]
    Ended,
    /// The limit was reached.
    Full,
    /// It was told to stop.
    Stopped,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Failed {
    /// The process could not close itself in, so it read nothing.
    NotClosedIn(String),
    /// The model cannot be loaded.
    NotLoaded(String),
    /// The conversation has more tokens than the context.
    TooLong {
        /// How many it has.
        tokens: u64,
        /// How many there may be.
        context: u64,
    },
    /// The grammar is none.
    Grammar,
    /// The model wrote bytes that are no text.
    NotText,
    /// The machine failed in the middle.
    Broke(String),
}

/// Says something on the standard output; whether anybody listens.
#[cfg(feature = "llama")]
pub fn say(said: &Said) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(&line(said))
        .and_then(|()| out.flush())
        .is_ok()
}

/// A line as it is written.
#[must_use]
pub fn line(said: &impl Serialize) -> Vec<u8> {
    // These types hold nothing that JSON cannot; an empty line is no message.
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The next one; `None` at the end.
///
/// # Errors
/// It is too long, or not of the form.
pub fn next<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let got = from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if got == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(io::Error::other("a line does not end"));
    }
    serde_json::from_slice(&line)
        .map(Some)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::{Done, Order, Said, line, next};

    #[test]
    fn what_is_said_comes_out_and_what_is_no_message_is_an_error() {
        let mut said = line(&Said::Piece("gr\u{fc}n\n".into()));
        said.extend(line(&Said::Done(Done::default())));
        let mut from = said.as_slice();
        assert_eq!(
            next(&mut from).unwrap(),
            Some(Said::Piece("gr\u{fc}n\n".into()))
        );
        assert_eq!(next(&mut from).unwrap(), Some(Said::Done(Done::default())));
        assert_eq!(next::<Said>(&mut from).unwrap(), None);
        assert_eq!(
            next(&mut line(&Order::Stop).as_slice()).unwrap(),
            Some(Order::Stop)
        );
        for bad in [
            "{}\n",
            "\n",
            "{\"piece\":3}\n",
            "{\"piece\":\"a\"}",
            "\u{0}\n",
        ] {
            assert!(next::<Said>(&mut bad.as_bytes()).is_err(), "{bad}");
        }
    }
}

//! Why a model did not answer, in words a person can act on.

use std::{fmt, time::Duration};

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The address, or something else configured, cannot be used.
    Address(String),
    /// Nobody answered there.
    Unreachable(String),
    /// The backend refused, with its status and words.
    Refused(u16, String),
    /// The answer makes no sense.
    Unreadable(String),
    /// There was no whole answer in this time.
    TimedOut(Duration),
    /// The answer is longer than this many bytes.
    TooLong(u64),
    /// The answer goes round in a circle.
    Repeats,
    /// The answer stops at the limit on its length, and was to have a form.
    CutOff,
    /// The model, or the backend for it, will not answer this.
    Declined(String),
    /// The user called it off.
    Cancelled,
    /// The model's file cannot be loaded, in words.
    Load(String),
    /// The process the model runs in is gone; nothing else is.
    Died(String),
    /// The conversation is longer than the model holds.
    Full {
        /// How many tokens it has, if that was said.
        takes: Option<u64>,
        /// How many the model holds, if that was said.
        holds: Option<u64>,
    },
    /// A script has nothing more to say.
    ScriptEnded,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(f, "cannot use the model as configured: {why}"),
            Self::Unreachable(why) => write!(f, "the model cannot be reached: {why}"),
            Self::Refused(status, words) => {
                write!(f, "the model's backend refused with status {status}")?;
                if !words.is_empty() {
                    write!(f, ": {words}")?;
                }
                f.write_str(next(*status))
            }
            Self::Unreadable(why) => write!(f, "the model's answer cannot be read: {why}"),
            Self::TimedOut(time) => write!(
                f,
                "the model gave no whole answer within {} s; `timeout_seconds` of the model allows more",
                time.as_secs_f64()
            ),
            Self::TooLong(bytes) => {
                write!(
                    f,
                    "the model's answer is longer than {bytes} bytes; it was cut off and not used"
                )
            }
            Self::Repeats => write!(
                f,
                "the model repeats itself without end; the answer was cut off and not used"
            ),
            Self::CutOff => write!(
                f,
                "the model's answer stops at the limit of its length and was not used; `tokens_max` of the model allows more"
            ),
            Self::Declined(words) => write!(f, "the model declines to answer: {words}"),
            Self::Cancelled => write!(f, "the question to the model was called off"),
            Self::Load(why) => write!(f, "the model cannot be loaded: {why}"),
            Self::Died(how) => write!(
                f,
                "the process the model runs in failed and nothing else did: {how}"
            ),
            Self::Full { takes, holds } => {
                f.write_str("the conversation ")?;
                match (takes, holds) {
                    (Some(takes), Some(holds)) => {
                        write!(f, "takes {takes} tokens and the model holds {holds}")?;
                    }
                    (None, Some(holds)) => {
                        write!(f, "is longer than the {holds} tokens the model holds")?;
                    }
                    (_, None) => f.write_str("is longer than the model holds")?,
                }
                f.write_str(
                    "; give its backend more room (`context_tokens` for a model in a file, if it was made for more), \
                     or say less at once",
                )
            }
            Self::ScriptEnded => write!(f, "the scripted model has no more answers"),
        }
    }
}

/// What its user can do about a backend that refuses.
const fn next(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            "; `hermitcrab config backend` takes where the key is, as `--key-env`, `--key-file` or `--key-keyring`"
        }
        404 => {
            "; is its address the one before `/chat/completions`, and is this what it calls the model? `hermitcrab config backend` names others"
        }
        429 => "; it takes no more requests for the time being, or none of this account",
        500..=599 => "; the fault is on its side, and a later try may go through",
        _ => "",
    }
}

impl std::error::Error for ModelError {}

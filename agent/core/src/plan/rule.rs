//! What becomes of a failed call: rules, never a model, and never its words.

use core::fmt;

/// Why a call came to nothing, told from errno, exit status and refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The directory it was to happen in is not there.
    MissingDirectory,
    /// What it was to be done to is not there.
    Missing,
    /// Something else is there already.
    Exists,
    /// The system does not permit it.
    NotPermitted,
    /// A capability is missing, a rule forbids it, or the user said no.
    Refused,
    /// It is not text.
    NotText,
    /// It is not the kind of file the action is for.
    WrongKind,
    /// It is more than the bounds allow.
    TooMuch,
    /// There is no room.
    Full,
    /// It took too long and was killed.
    TimedOut,
    /// The program ended with another status than nought.
    Status(i32),
    /// The program was killed.
    Killed,
    /// What came back is not what the tool yields.
    BadResult,
    /// A value could not be computed.
    NoValue,
    /// The text does not say what was asked for.
    NotEnoughInformation,
    /// There is no model or no user to ask.
    NobodyToAsk,
    /// The plan says so.
    Said,
    /// The user stopped it.
    Cancelled,
    /// Something else failed.
    Broken,
}

impl Failure {
    /// The stable spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Failure::MissingDirectory => "missing-directory",
            Failure::Missing => "missing",
            Failure::Exists => "exists",
            Failure::NotPermitted => "not-permitted",
            Failure::Refused => "refused",
            Failure::NotText => "not-text",
            Failure::WrongKind => "wrong-kind",
            Failure::TooMuch => "too-much",
            Failure::Full => "full",
            Failure::TimedOut => "timed-out",
            Failure::Status(_) => "status",
            Failure::Killed => "killed",
            Failure::BadResult => "bad-result",
            Failure::NoValue => "no-value",
            Failure::NotEnoughInformation => "not-enough-information",
            Failure::NobodyToAsk => "nobody-to-ask",
            Failure::Said => "said",
            Failure::Cancelled => "cancelled",
            Failure::Broken => "broken",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Status(status) => write!(f, "status {status}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// What a rule says about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Make the directory and try exactly the same call once more.
    MakeDirectoryAndRetry,
    /// Report it, skip what depends on it, go on with the rest.
    Report,
    /// Report it and end the plan.
    End,
}

/// The rule for a failure; `tried` is whether the call was repeated already.
#[must_use]
pub const fn rule(failure: Failure, tried: bool) -> Verdict {
    match failure {
        Failure::MissingDirectory if !tried => Verdict::MakeDirectoryAndRetry,
        Failure::Said | Failure::Cancelled => Verdict::End,
        Failure::MissingDirectory
        | Failure::Missing
        | Failure::Exists
        | Failure::NotPermitted
        | Failure::Refused
        | Failure::NotText
        | Failure::WrongKind
        | Failure::TooMuch
        | Failure::Full
        | Failure::TimedOut
        | Failure::Status(_)
        | Failure::Killed
        | Failure::BadResult
        | Failure::NoValue
        | Failure::NotEnoughInformation
        | Failure::NobodyToAsk
        | Failure::Broken => Verdict::Report,
    }
}

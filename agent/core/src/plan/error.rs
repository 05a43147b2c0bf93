//! What can be wrong with a draft: a closed list.
//!
//! An error is a step's name and a kind, and nothing else, so that what is
//! sent back to a planner for repair cannot carry text of anybody's.

use alloc::string::String;
use core::fmt;

macro_rules! error_kinds {
    ($( $variant:ident = $code:literal, $wording:literal; )+) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorKind {
            $( #[doc = $wording] $variant, )+
        }

        impl ErrorKind {
            /// Every kind.
            pub const ALL: &'static [ErrorKind] = &[ $( ErrorKind::$variant, )+ ];

            /// The stable spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( ErrorKind::$variant => $code, )+ }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn wording(self) -> &'static str {
                match self { $( ErrorKind::$variant => $wording, )+ }
            }
        }
    };
}

error_kinds! {
    NotJson = "not-json", "it is not one JSON document";
    NotAPlan = "not-a-plan", "it has not the form of a plan";
    Version = "version", "it is not of a version known here";
    UnknownKey = "unknown-key", "it has a key that means nothing here";
    TwiceTheSameKey = "twice-the-same-key", "it has the same key twice";
    Empty = "empty", "there is nothing to do";
    TooManySteps = "too-many-steps", "there are too many steps";
    TooDeep = "too-deep", "it is nested too deeply";
    TooLong = "too-long", "a text or a list in it is too long";
    TooManyCalls = "too-many-calls", "it could make too many calls";
    BadName = "bad-name", "a name is not made of letters, digits and _";
    NameTaken = "name-taken", "a name is used twice";
    BadReference = "bad-reference", "a reference is not a name and a way to a part";
    UnknownReference = "unknown-reference", "a reference names no step";
    ForwardReference = "forward-reference", "a reference names a step that has not run by then";
    UnknownField = "unknown-field", "a reference names a part that is not there";
    UnknownTool = "unknown-tool", "there is no such tool";
    UnknownArgument = "unknown-argument", "the tool takes no such argument";
    MissingArgument = "missing-argument", "the tool needs another argument";
    WrongType = "wrong-type", "a value is not of the type needed there";
    UnknownFunction = "unknown-function", "there is no such function";
    WrongCount = "wrong-count", "the function takes another number of arguments";
    NotAList = "not-a-list", "a list is needed there";
    NotATruth = "not-a-truth", "a test has to be true or false";
    NotLiteral = "not-literal", "it has to be written in the plan itself";
    BadSchema = "bad-schema", "the form of the answer is no type";
    BadTime = "bad-time", "it is not a time";
    BadPath = "bad-path", "it is not a place in the workspace";
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One error of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The step, by its name; by its place where it has no usable name;
    /// `None` for the draft as a whole.
    pub step: Option<String>,
    /// What is wrong.
    pub kind: ErrorKind,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(f, "step {step}: {} ({})", self.kind.wording(), self.kind),
            None => write!(f, "the plan: {} ({})", self.kind.wording(), self.kind),
        }
    }
}

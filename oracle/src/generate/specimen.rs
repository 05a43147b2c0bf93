//! One generated thing of any kind, by its name.
//!
//! What for: a campaign deals, logs, shrinks and replays; it need not know what
//! it deals. The name is the whole description, so that a line of a log is
//! enough to make the thing again.

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::Context;
use serde::{Deserialize, Serialize};

use super::conversations::Talk;
use super::crashes::Crash;
use super::paths::PathCall;
use super::plans::Trial;
use super::races::Race;
use super::sequences::Sequence;
use super::variant::Variant;
use super::work::Errand;
use crate::case::CaseFile;

/// What a campaign hunts with.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Shell commands that have an effect, respelled.
    #[default]
    Commands,
    /// File tools on names that lead elsewhere.
    Paths,
    /// Grants, answers, ends and restarts between calls.
    Sequences,
    /// Names that change places between a check and a use.
    Races,
    /// Calls in whose middle the program is killed.
    Crashes,
    /// Plans that somebody hostile had a hand in.
    Plans,
    /// Ordinary work with the tools.
    BenignTools,
    /// Whole conversations of models, some of which were talked into something.
    Conversations,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Commands,
        Self::Paths,
        Self::Sequences,
        Self::Races,
        Self::Crashes,
        Self::Plans,
        Self::BenignTools,
        Self::Conversations,
    ];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Paths => "paths",
            Self::Sequences => "sequences",
            Self::Races => "races",
            Self::Crashes => "crashes",
            Self::Plans => "plans",
            Self::BenignTools => "benign-tools",
            Self::Conversations => "conversations",
        }
    }

    /// Whether it is the one of old logs.
    #[must_use]
    pub const fn is_commands(&self) -> bool {
        matches!(self, Self::Commands)
    }
}

/// One generated thing.
#[derive(Clone, Debug)]
pub enum Specimen {
    /// A command.
    Command(Variant),
    /// A call of a file tool.
    Path(PathCall),
    /// A script.
    Sequence(Sequence),
    /// An operation on a name that changes places.
    Race(Race),
    /// A call in whose middle the program is killed.
    Crash(Crash),
    /// A plan.
    Plan(Trial),
    /// Ordinary work.
    Work(Errand),
    /// A conversation.
    Talk(Talk),
}

impl Specimen {
    /// One of this kind from a fuzzer's bytes.
    ///
    /// # Errors
    /// The bytes ran out.
    pub fn of(target: Target, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        Ok(match target {
            Target::Commands => Self::Command(Variant::arbitrary(bytes)?),
            Target::Paths => Self::Path(PathCall::arbitrary(bytes)?),
            Target::Sequences => Self::Sequence(Sequence::arbitrary(bytes)?),
            Target::Races => Self::Race(Race::arbitrary(bytes)?),
            Target::Crashes => Self::Crash(Crash::arbitrary(bytes)?),
            Target::Plans => Self::Plan(Trial::arbitrary(bytes)?),
            Target::BenignTools => Self::Work(Errand::arbitrary(bytes)?),
            Target::Conversations => Self::Talk(Talk::arbitrary(bytes)?),
        })
    }

    /// The one with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.split_once(':') {
            Some(("path", rest)) => PathCall::named(rest).map(Self::Path),
            Some(("sequence", rest)) => Sequence::named(rest).map(Self::Sequence),
            Some(("race", rest)) => Race::named(rest).map(Self::Race),
            Some(("crash", rest)) => Crash::named(rest).map(Self::Crash),
            Some(("plan", rest)) => Trial::named(rest).map(Self::Plan),
            Some(("work", rest)) => Errand::named(rest).map(Self::Work),
            Some(("talk", rest)) => Talk::named(rest).map(Self::Talk),
            Some(_) => None,
            None => Variant::named(name).map(Self::Command),
        }
    }

    /// The case both subjects run; `None` where a rewriting does not apply.
    #[must_use]
    pub fn case_file(&self) -> Option<CaseFile> {
        let mut file = match self {
            Self::Command(variant) => variant.case_file(&variant.render()?),
            Self::Path(call) => call.case_file()?,
            Self::Sequence(sequence) => sequence.case_file(),
            Self::Race(race) => race.case_file(),
            Self::Crash(crash) => crash.case_file(),
            Self::Plan(trial) => trial.case_file()?,
            Self::Work(errand) => errand.case_file(),
            Self::Talk(talk) => talk.case_file(),
        };
        // Each kind writes its name there, to be made again from.
        let name = &file.source.as_ref()?.row;
        file.id = id_of(name);
        Some(file)
    }

    /// The families it is counted under, each once.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        let mut classes: Vec<&'static str> = match self {
            Self::Command(variant) => variant.classes().iter().map(|c| c.as_str()).collect(),
            Self::Path(call) => call.classes(),
            Self::Sequence(sequence) => sequence.classes(),
            Self::Race(race) => race.classes(),
            Self::Crash(crash) => crash.classes(),
            Self::Plan(trial) => trial.classes(),
            Self::Work(errand) => errand.classes(),
            Self::Talk(talk) => talk.classes(),
        };
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Where it is, if it is dealt in several places.
    #[must_use]
    pub const fn context(&self) -> Option<Context> {
        match self {
            Self::Command(variant) => Some(variant.context),
            Self::Path(call) => Some(call.context),
            Self::Sequence(sequence) => Some(sequence.context),
            Self::Crash(crash) => Some(crash.context),
            Self::Plan(trial) => Some(trial.context),
            Self::Work(errand) => Some(errand.context),
            Self::Talk(talk) => Some(talk.context),
            Self::Race(_) => None,
        }
    }

    /// Those with one part less, the shortest ways to shrink it.
    #[must_use]
    pub fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Command(variant) => variant.smaller().map(Self::Command).collect(),
            Self::Path(call) => call.smaller().map(Self::Path).collect(),
            Self::Sequence(sequence) => sequence.smaller().map(Self::Sequence).collect(),
            Self::Crash(crash) => crash.smaller().map(Self::Crash).collect(),
            Self::Plan(trial) => trial.smaller().map(Self::Plan).collect(),
            // Nothing can be left out of one.
            Self::Race(_) => Vec::new(),
            Self::Work(errand) => errand.smaller().map(Self::Work).collect(),
            Self::Talk(talk) => talk.smaller().map(Self::Talk).collect(),
        }
    }
}

impl fmt::Display for Specimen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(variant) => write!(f, "{variant}"),
            Self::Path(call) => write!(f, "path:{call}"),
            Self::Sequence(sequence) => write!(f, "sequence:{sequence}"),
            Self::Race(race) => write!(f, "race:{race}"),
            Self::Crash(crash) => write!(f, "crash:{crash}"),
            Self::Plan(trial) => write!(f, "plan:{trial}"),
            Self::Work(errand) => write!(f, "work:{errand}"),
            Self::Talk(talk) => write!(f, "talk:{talk}"),
        }
    }
}

/// A name as the id of a case: letters, digits, `-`, `_` and `.`.
#[must_use]
pub fn id_of(name: &str) -> String {
    const BEFORE: &str = "generated-";
    let mut id = String::with_capacity(BEFORE.len() + name.len());
    id.push_str(BEFORE);
    id.extend(name.chars().map(|c| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '.'
        }
    }));
    id
}

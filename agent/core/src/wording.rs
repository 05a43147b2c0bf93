//! What every name of the core means to a person, and what they can do next.
//!
//! One table, so that a terminal, a page and a chat say the same. The words
//! are for people only: programs compare the names beside them.

use alloc::vec::Vec;

use crate::approval::Asking;
use crate::authority::{Reversibility, Verb};
use crate::grant::State;
use crate::outcome::DenialCode;
use crate::rules::{Isolation, NonWaivable};
use crate::standing::Due;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Something that can be granted.
    Capability,
    /// What it takes to undo it.
    Class,
    /// A refusal.
    Refusal,
    /// A rule nothing lifts.
    NonWaivable,
    /// When the user is asked.
    Mode,
    /// What was proved about the sandbox.
    Isolation,
    /// What a list says about a grant.
    State,
    /// Why a standing grant does not count.
    Standing,
}

impl Kind {
    /// Every kind, in the order of the table.
    pub const ALL: [Kind; 8] = [
        Kind::Capability,
        Kind::Class,
        Kind::Refusal,
        Kind::NonWaivable,
        Kind::Mode,
        Kind::Isolation,
        Kind::State,
        Kind::Standing,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Capability => "capability",
            Kind::Class => "class",
            Kind::Refusal => "refusal",
            Kind::NonWaivable => "never allowed",
            Kind::Mode => "mode",
            Kind::Isolation => "isolation",
            Kind::State => "state of a grant",
            Kind::Standing => "standing grant",
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is about.
    pub kind: Kind,
    /// The stable name.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What a person can do.
    pub next: &'static str,
}

/// The whole table.
#[must_use]
pub fn table() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        let mut row = |name, meaning, next| {
            rows.push(Row {
                kind,
                name,
                meaning,
                next,
            });
        };
        match kind {
            Kind::Capability => Verb::ALL
                .into_iter()
                .chain([Verb::Extension])
                .for_each(|verb| row(verb.as_str(), verb.sentence(), next_for_verb(verb))),
            Kind::Class => Reversibility::ALL
                .into_iter()
                .for_each(|class| row(class.as_str(), class.sentence(), next_for_class(class))),
            Kind::Refusal => DenialCode::ALL
                .iter()
                .for_each(|code| row(code.as_str(), code.wording(), code.next_step())),
            Kind::NonWaivable => NonWaivable::ALL
                .into_iter()
                .for_each(|rule| row(rule.id(), rule.sentence(), rule.code().next_step())),
            Kind::Mode => Asking::ALL
                .into_iter()
                .for_each(|mode| row(mode.as_str(), mode.sentence(), next_for_mode(mode))),
            Kind::Isolation => [
                Isolation::Isolated,
                Isolation::Unisolated,
                Isolation::Unknown,
            ]
            .into_iter()
            .for_each(|isolation| {
                let (name, meaning, next) = isolation_words(isolation);
                row(name, meaning, next);
            }),
            Kind::State => State::ALL.into_iter().for_each(|state| {
                let (meaning, next) = state_words(state);
                row(state.as_str(), meaning, next);
            }),
            Kind::Standing => Due::ALL.into_iter().for_each(|due| {
                let next = if due.can_be_confirmed() {
                    "look at it and confirm it"
                } else {
                    "grant it again if it is still wanted"
                };
                row(due_name(due), due.wording(), next);
            }),
        }
    }
    rows
}

const fn next_for_verb(verb: Verb) -> &'static str {
    match verb {
        Verb::FsList | Verb::FsRead | Verb::FsCreate | Verb::FsModify | Verb::FsDelete => {
            "grant it on a directory or a file, or answer the question"
        }
        Verb::FsMount => "grant the directory where it lies instead",
        Verb::ProcExec => "grant it for programs on a copy of the workspace",
        Verb::NetConnect => "grant it for one host and port",
        Verb::NetListen => "grant it for one port",
        Verb::SecretUse => "grant it for one secret by its name",
        Verb::ModelSend => "grant it for one model by its name",
        Verb::SessionRead => "grant it, or answer the question",
        Verb::UserAsk => "choose the mode `prompt`",
        Verb::AgentSpawn => "forward the right to it by name",
        Verb::ConfigChange => "change the settings outside the agent",
        Verb::Extension => "look up what its vendor says and grant it by its name",
    }
}

const fn next_for_class(class: Reversibility) -> &'static str {
    match class {
        Reversibility::Harmless => "nothing",
        Reversibility::Undoable => "remove what was made",
        Reversibility::Lossy => "keep a copy of what matters first",
        Reversibility::Irrevocable => "look closely before saying yes",
    }
}

const fn next_for_mode(mode: Asking) -> &'static str {
    match mode {
        Asking::ApproveAll => "look at the ledger afterwards",
        Asking::Prompt => "answer the questions",
        Asking::Refuse => "grant beforehand what is needed",
    }
}

const fn isolation_words(isolation: Isolation) -> (&'static str, &'static str, &'static str) {
    match isolation {
        Isolation::Isolated => (
            "isolated",
            "every layer of the sandbox was seen to work",
            "nothing",
        ),
        Isolation::Unisolated => (
            "unisolated",
            "commands would run without a sandbox",
            "see what `hermitcrab doctor` misses",
        ),
        Isolation::Unknown => (
            "unknown",
            "a layer of the sandbox could not be proved",
            "see what `hermitcrab doctor` misses",
        ),
    }
}

const fn state_words(state: State) -> (&'static str, &'static str) {
    match state {
        State::Live => ("it can be used", "revoke it if it should not be"),
        State::Orphaned => (
            "it can be used until its deadline, but whoever gave it is gone",
            "revoke it, or let it end",
        ),
        State::Revoked => ("it was ended by its granter", "grant it again"),
        State::Expired => ("its deadline has passed", "grant it again"),
        State::Exhausted => ("its uses are spent", "grant it again"),
    }
}

const fn due_name(due: Due) -> &'static str {
    match due {
        Due::OtherAudience => "other-audience",
        Due::Revoked => "revoked",
        Due::Exhausted => "exhausted",
        Due::OtherSite => "other-site",
        Due::Rebooted => "rebooted",
        Due::ClockWentBack => "clock-went-back",
        Due::IntervalOver => "interval-over",
        Due::IsolationWeaker => "isolation-weaker",
    }
}

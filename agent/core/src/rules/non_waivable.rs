//! What no grant, no answer and no mode can allow.
//!
//! These rules are compiled in. A yes to one of them would let the agent
//! remove what limits it, or put what it must not see where it is read.

use crate::action::Action;
use crate::authority::{Host, HostPattern, Object, Program, Verb};
use crate::isolation::Isolation;
use crate::outcome::DenialCode;
use crate::path::RelPath;

/// One rule that nothing lifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NonWaivable {
    /// Its own configuration, ledger and store.
    OwnFiles,
    /// Its own settings, by way of a tool.
    OwnSettings,
    /// A command where isolation was not proved.
    UnprovedIsolation,
    /// The kernel's switches, isolation among them.
    IsolationControls,
    /// Disks, memory and other devices as such.
    RawDevices,
    /// A secret's value into what a model reads.
    SecretsToModel,
    /// A network peer nobody named.
    UnnamedNetwork,
}

impl NonWaivable {
    /// Every one of them.
    pub const ALL: [NonWaivable; 7] = [
        NonWaivable::OwnFiles,
        NonWaivable::OwnSettings,
        NonWaivable::UnprovedIsolation,
        NonWaivable::IsolationControls,
        NonWaivable::RawDevices,
        NonWaivable::SecretsToModel,
        NonWaivable::UnnamedNetwork,
    ];

    /// Its name in explanations.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            NonWaivable::OwnFiles => "builtin.own-files",
            NonWaivable::OwnSettings => "builtin.own-settings",
            NonWaivable::UnprovedIsolation => "builtin.unproved-isolation",
            NonWaivable::IsolationControls => "builtin.isolation-controls",
            NonWaivable::RawDevices => "builtin.raw-devices",
            NonWaivable::SecretsToModel => "builtin.secrets-to-model",
            NonWaivable::UnnamedNetwork => "builtin.unnamed-network",
        }
    }

    /// The refusal it leads to.
    #[must_use]
    pub const fn code(self) -> DenialCode {
        match self {
            NonWaivable::OwnFiles | NonWaivable::OwnSettings => DenialCode::Protected,
            NonWaivable::UnprovedIsolation => DenialCode::IsolationUnknown,
            NonWaivable::IsolationControls => DenialCode::IsolationControl,
            NonWaivable::RawDevices => DenialCode::RawDevice,
            NonWaivable::SecretsToModel => DenialCode::SecretToModel,
            NonWaivable::UnnamedNetwork => DenialCode::NetworkUnnamed,
        }
    }

    /// One line for a person.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            NonWaivable::OwnFiles => {
                "the agent's own configuration, ledger and store are out of its reach"
            }
            NonWaivable::OwnSettings => "no tool changes how the agent is set up",
            NonWaivable::UnprovedIsolation => "commands run only where isolation was proved",
            NonWaivable::IsolationControls => "the kernel's own switches are not for an agent",
            NonWaivable::RawDevices => "devices are not opened as files",
            NonWaivable::SecretsToModel => "a secret's value is never shown to a model",
            NonWaivable::UnnamedNetwork => "a connection names its peer",
        }
    }
}

/// Names below `dev` that are no devices, or harmless ones.
const HARMLESS_DEVICES: &[&[u8]] = &[
    b"null", b"zero", b"full", b"random", b"urandom", b"tty", b"stdin", b"stdout", b"stderr",
    b"fd", b"shm",
];

/// The rule against what is done to an object that is no place.
pub(super) fn judge_object(action: &Action, isolation: Isolation) -> Option<NonWaivable> {
    match action.object() {
        Object::Program(Program::AnyInView | Program::InView(_)) => match isolation {
            Isolation::Isolated => None,
            Isolation::Unisolated | Isolation::Unknown => Some(NonWaivable::UnprovedIsolation),
        },
        Object::Session if action.verb() == Verb::ConfigChange => Some(NonWaivable::OwnSettings),
        Object::Host(Host { name, port: _ }) => match name {
            HostPattern::Exact(_) => None,
            HostPattern::Subdomains(_) => Some(NonWaivable::UnnamedNetwork),
        },
        Object::Dir { .. }
        | Object::Program(Program::OnHost(_))
        | Object::Secret(_)
        | Object::Model(_)
        | Object::Session
        | Object::Extension(_) => None,
    }
}

/// The rule against a place, seen from `/`, that is not one of the agent's own.
pub(super) fn judge_place(verb: Verb, location: &RelPath) -> Option<NonWaivable> {
    let mut names = location.components();
    match (names.next(), names.next()) {
        // What the kernel shows there looks like files and is switches.
        (Some(b"proc" | b"sys"), _) if verb.changes_files() => Some(NonWaivable::IsolationControls),
        (Some(b"dev"), Some(name)) if verb != Verb::FsList && !HARMLESS_DEVICES.contains(&name) => {
            Some(NonWaivable::RawDevices)
        }
        _ => None,
    }
}

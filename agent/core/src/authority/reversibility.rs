//! What it takes to undo an effect.

use core::fmt;

use super::{Cap, Object, Program, Verb};

/// How hard it is to take an effect back, from easiest to impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reversibility {
    /// It changes nothing.
    Harmless,
    /// Undone by removing what was made.
    Undoable,
    /// What was there before is lost unless somebody kept it.
    Lossy,
    /// Nobody here can undo it: it reaches beyond this machine, or what it does is not known.
    Irrevocable,
}

impl Reversibility {
    /// Every class, easiest first.
    pub const ALL: [Reversibility; 4] = [
        Reversibility::Harmless,
        Reversibility::Undoable,
        Reversibility::Lossy,
        Reversibility::Irrevocable,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reversibility::Harmless => "harmless",
            Reversibility::Undoable => "undoable",
            Reversibility::Lossy => "lossy",
            Reversibility::Irrevocable => "irrevocable",
        }
    }

    /// One line for a person who has to decide.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Reversibility::Harmless => "changes nothing",
            Reversibility::Undoable => "can be undone by removing what was made",
            Reversibility::Lossy => "loses what was there before",
            Reversibility::Irrevocable => "cannot be undone from here",
        }
    }
}

impl fmt::Display for Reversibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Verb {
    /// The class of this verb, whatever it is done to.
    #[must_use]
    pub const fn reversibility(self) -> Reversibility {
        match self {
            Verb::FsList | Verb::FsRead | Verb::SessionRead | Verb::UserAsk => {
                Reversibility::Harmless
            }
            Verb::FsCreate | Verb::FsMount | Verb::AgentSpawn => Reversibility::Undoable,
            Verb::FsModify | Verb::FsDelete | Verb::ConfigChange => Reversibility::Lossy,
            Verb::ProcExec
            | Verb::NetConnect
            | Verb::NetListen
            | Verb::SecretUse
            | Verb::ModelSend
            | Verb::Extension => Reversibility::Irrevocable,
        }
    }
}

impl Cap {
    /// The class of this verb on this object: a program that runs in the view
    /// changes nothing until its change set is decided, and that is decided by
    /// the verbs it needs.
    #[must_use]
    pub const fn reversibility(&self) -> Reversibility {
        match &self.object {
            Object::Program(Program::AnyInView | Program::InView(_)) => Reversibility::Undoable,
            Object::Program(Program::OnHost(_))
            | Object::Dir { .. }
            | Object::Host(_)
            | Object::Secret(_)
            | Object::Model(_)
            | Object::Session
            | Object::Extension(_) => self.verb.reversibility(),
        }
    }
}

//! Labels: where data came from and who may see it.
//!
//! A label travels with a value. Joining two values joins their labels, and a
//! join only ever adds sources and removes readers.

use alloc::collections::BTreeSet;

use crate::authority::Name;

/// Where data can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Typed by the user.
    User,
    /// Written by a model.
    Model,
    /// Read from a file.
    File,
    /// Printed by a command.
    Command,
    /// Received over a network.
    Network,
    /// A secret's value. Nothing of it ever reaches a model.
    Secret,
}

impl Source {
    /// The word for it in a ledger and in a question.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::User => "user",
            Source::Model => "model",
            Source::File => "file",
            Source::Command => "command",
            Source::Network => "network",
            Source::Secret => "secret",
        }
    }
}

/// Who may see data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Everybody.
    Anyone,
    /// Only these.
    Only(BTreeSet<Name>),
}

/// What travels with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    sources: BTreeSet<Source>,
    readers: Readers,
}

impl Label {
    /// The label of data from one source.
    #[must_use]
    pub fn new(source: Source, readers: Readers) -> Label {
        let mut sources = BTreeSet::new();
        sources.insert(source);
        Label { sources, readers }
    }

    /// Where it came from.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        self.sources.iter().copied()
    }

    /// Who may see it.
    #[must_use]
    pub const fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The label of something made from both.
    #[must_use]
    pub fn join(&self, other: &Label) -> Label {
        let readers = match (&self.readers, &other.readers) {
            (Readers::Anyone, readers) | (readers, Readers::Anyone) => readers.clone(),
            (Readers::Only(left), Readers::Only(right)) => {
                Readers::Only(left.intersection(right).cloned().collect())
            }
        };
        Label {
            sources: self.sources.union(&other.sources).copied().collect(),
            readers,
        }
    }
}

//! How far a value can be trusted, and where it came from.
//!
//! A tag is only ever lowered and added to: joining takes the lower level, all
//! steps and sources, and the readers both admit.

use alloc::{collections::BTreeSet, sync::Arc};

use crate::{
    authority::Name,
    label::{Label, Readers, Source},
};

/// How much of what a value says is somebody else's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Text anybody may have written.
    Untrusted,
    /// A typed field that a model picked out of such text.
    Picked,
    /// A typed field that a tool made itself: a size, a name that is there.
    Service,
    /// The user's own words.
    User,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Untrusted => "untrusted text",
            Level::Picked => "picked out of untrusted text",
            Level::Service => "made by a tool",
            Level::User => "the user's own",
        }
    }
}

/// A set of steps, by their numbers in the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origins(u128);

impl Origins {
    /// Just this step; nothing for a number no plan has.
    #[must_use]
    pub const fn of(step: u8) -> Origins {
        match 1_u128.checked_shl(step as u32) {
            Some(bits) => Origins(bits),
            None => Origins(0),
        }
    }

    /// The numbers in it, ascending.
    pub fn steps(self) -> impl Iterator<Item = u8> {
        (0..128_u8).filter(move |step| self.0 & Origins::of(*step).0 != 0)
    }

    /// Both.
    #[must_use]
    pub const fn union(self, other: Origins) -> Origins {
        Origins(self.0 | other.0)
    }
}

/// What travels with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    level: Level,
    origins: Origins,
    sources: u8,
    /// `None` is everybody.
    readers: Option<Arc<BTreeSet<Name>>>,
}

const SOURCES: [Source; 6] = [
    Source::User,
    Source::Model,
    Source::File,
    Source::Command,
    Source::Network,
    Source::Secret,
];

const fn bit(source: Source) -> u8 {
    match source {
        Source::User => 1,
        Source::Model => 2,
        Source::File => 4,
        Source::Command => 8,
        Source::Network => 16,
        Source::Secret => 32,
    }
}

impl Tag {
    /// What the user wrote.
    pub const USER: Tag = Tag {
        level: Level::User,
        origins: Origins(0),
        sources: 1,
        readers: None,
    };

    /// What came from a source in a step.
    #[must_use]
    pub const fn new(level: Level, source: Source, step: u8) -> Tag {
        Tag {
            level,
            origins: Origins::of(step),
            sources: bit(source),
            readers: None,
        }
    }

    /// The same for these readers alone.
    #[must_use]
    pub fn only_for(mut self, readers: BTreeSet<Name>) -> Tag {
        self.readers = Some(Arc::new(readers));
        self
    }

    /// How far it can be trusted.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The steps it came through.
    #[must_use]
    pub const fn origins(&self) -> Origins {
        self.origins
    }

    /// May a reader of this name see it? The name may be any text: what is no
    /// name is nobody's.
    #[must_use]
    pub fn admits_named(&self, reader: &str) -> bool {
        self.readers
            .as_ref()
            .is_none_or(|readers| readers.iter().any(|known| known.as_str() == reader))
    }

    /// The tag of something made from both.
    #[must_use]
    pub fn join(&self, other: &Tag) -> Tag {
        let readers = match (&self.readers, &other.readers) {
            (None, readers) | (readers, None) => readers.clone(),
            (Some(left), Some(right)) if Arc::ptr_eq(left, right) => Some(left.clone()),
            (Some(left), Some(right)) => {
                Some(Arc::new(left.intersection(right).cloned().collect()))
            }
        };
        Tag {
            level: self.level.min(other.level),
            origins: self.origins.union(other.origins),
            sources: self.sources | other.sources,
            readers,
        }
    }

    /// The same, trusted no further than this.
    #[must_use]
    pub fn at_most(mut self, level: Level) -> Tag {
        self.level = self.level.min(level);
        self
    }

    /// What a form lets through of it: where the form is no text, nobody's
    /// words come through. The level of each part is the form's.
    #[must_use]
    pub(super) fn reduced(mut self) -> Tag {
        self.level = self.level.max(Level::Picked);
        self
    }

    /// As the session's flow rules know it.
    #[must_use]
    pub fn label(&self) -> Label {
        let readers = match &self.readers {
            None => Readers::Anyone,
            Some(names) => Readers::Only((**names).clone()),
        };
        let mut label = Label::new(Source::User, readers);
        for source in SOURCES {
            if self.sources & bit(source) != 0 {
                label = label.join(&Label::new(source, Readers::Anyone));
            }
        }
        label
    }
}

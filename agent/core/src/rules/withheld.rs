//! What a command must not be shown of a directory it sees.
//!
//! A file tool asks about each file. A command reads whatever it sees and asks
//! nobody, so what a rule refuses, or wants a question about, cannot be shown to it.

use alloc::string::String;
use alloc::vec::Vec;

use super::configured::{ConfiguredRule, Pattern, name_matches};
use crate::approval::Stance;
use crate::fault::{self, Fault};
use crate::path::RelPath;
use crate::standing::PortableObject;

/// Parts of a directory that rules withhold from commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Places strictly below the directory, each with all that lies below it.
    pub places: Vec<RelPath>,
    /// Names, wherever they are below it; `*` stands for any letters.
    pub names: Vec<String>,
}

/// What of a directory a command may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it but this.
    AllBut(Withheld),
    /// Nothing: a rule is about the whole directory.
    Nothing,
}

impl Withheld {
    /// Is there nothing to withhold?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.names.is_empty()
    }

    fn in_order(&mut self) {
        self.places.sort();
        self.places.dedup();
        self.names.sort();
        self.names.dedup();
    }

    /// Is everything of this name withheld? Case is ignored.
    #[must_use]
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.names
            .iter()
            .any(|pattern| name_matches(pattern.as_bytes(), name))
    }
}

impl Shown {
    /// What two leave.
    pub(super) fn narrowed(self, other: Self) -> Self {
        match (self, other) {
            (Self::AllBut(mut withheld), Self::AllBut(more)) => {
                withheld.places.extend(more.places);
                withheld.names.extend(more.names);
                withheld.in_order();
                Self::AllBut(withheld)
            }
            _ => Self::Nothing,
        }
    }

    /// The same as seen from a directory in which this one lies at `from`.
    pub(super) fn seen_from(self, from: &RelPath) -> Self {
        match self {
            Self::Nothing => Self::AllBut(Withheld {
                places: alloc::vec![from.clone()],
                names: Vec::new(),
            }),
            Self::AllBut(withheld) => {
                let places = withheld.places.iter().map(|place| from.join(place));
                match places.collect() {
                    Ok(places) => Self::AllBut(Withheld {
                        places,
                        names: withheld.names,
                    }),
                    // What cannot be named cannot be left out.
                    Err(_) => Self::Nothing,
                }
            }
        }
    }
}

/// What these rules leave of the directory at `location`, seen from `/`.
pub(super) fn shown(rules: &[ConfiguredRule], location: &RelPath) -> Shown {
    let mut withheld = Withheld::default();
    for rule in about_seeing(rules) {
        match rule.pattern() {
            Pattern::Anything => return Shown::Nothing,
            Pattern::Object(PortableObject::Place { at: place, .. }) => {
                if location.starts_with(place) {
                    return Shown::Nothing;
                }
                withheld.places.extend(place.strip_prefix(location));
            }
            Pattern::Named(_) if fault::is(Fault::NamesWithholdNothing) => {}
            Pattern::Named(pattern) => {
                let is_named = |name: &[u8]| name_matches(pattern.as_bytes(), name);
                if location.components().any(is_named) {
                    return Shown::Nothing;
                }
                withheld.names.push(pattern.clone());
            }
            // Not about files.
            Pattern::Object(
                PortableObject::Program(_)
                | PortableObject::Host(_)
                | PortableObject::Secret(_)
                | PortableObject::Model(_)
                | PortableObject::Session
                | PortableObject::Extension(_),
            ) => {}
        }
    }
    withheld.in_order();
    Shown::AllBut(withheld)
}

/// To list names is less than to read what they name, but no directory can be
/// shown without its names: a rule about either withholds it.
pub(super) fn about_seeing(rules: &[ConfiguredRule]) -> impl Iterator<Item = &ConfiguredRule> {
    rules.iter().filter(|rule| {
        let is_spared = rule.stance() == Stance::Ask && fault::is(Fault::QuestionsWithholdNothing);
        rule.is_about_seeing() && !is_spared
    })
}

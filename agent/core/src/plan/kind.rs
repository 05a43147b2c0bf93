//! The types of the plan language, each with the level its values have at best.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{level::Level, limits::FIELDS_MAX};

/// A type, and how far its values can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// The level of the value itself; parts have their own.
    pub level: Level,
}

/// What a value can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value at all: what an empty list holds.
    Never,
    /// Nothing.
    Nothing,
    /// True or false.
    Truth,
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// Text.
    Text,
    /// A place in the workspace, as text.
    Path,
    /// A date, or a date and a time of day, as text: `2026-01-31T08:30`.
    Time,
    /// One of these texts.
    Choice(Vec<String>),
    /// Values of one type, in order.
    List(Box<Type>),
    /// Named values.
    Record(Vec<(String, Type)>),
    /// A value or nothing.
    Optional(Box<Type>),
}

impl Kind {
    /// The type of such values at a level.
    #[must_use]
    pub const fn at(self, level: Level) -> Type {
        Type { kind: self, level }
    }

    /// A list of such values.
    #[must_use]
    pub fn list(item: Type) -> Kind {
        Kind::List(Box::new(item))
    }

    /// A record; the names are copied.
    #[must_use]
    pub fn record(fields: &[(&str, Type)]) -> Kind {
        Kind::Record(
            fields
                .iter()
                .map(|(name, kind)| (String::from(*name), kind.clone()))
                .collect(),
        )
    }

    fn is_text(&self) -> bool {
        matches!(
            self,
            Kind::Text | Kind::Path | Kind::Time | Kind::Choice(_) | Kind::Never
        )
    }

    fn is_number(&self) -> bool {
        matches!(self, Kind::Whole | Kind::Number | Kind::Never)
    }
}

impl Type {
    /// Is it text of some kind?
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.kind.is_text()
    }

    /// Is it a number?
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.kind.is_number()
    }

    /// The lowest level of it and its parts.
    #[must_use]
    pub fn worst(&self) -> Level {
        match &self.kind {
            Kind::List(item) | Kind::Optional(item) => self.level.min(item.worst()),
            Kind::Record(fields) => fields
                .iter()
                .fold(self.level, |level, (_, field)| level.min(field.worst())),
            Kind::Never
            | Kind::Nothing
            | Kind::Truth
            | Kind::Whole
            | Kind::Number
            | Kind::Text
            | Kind::Path
            | Kind::Time
            | Kind::Choice(_) => self.level,
        }
    }

    /// The same, trusted no further than this anywhere.
    #[must_use]
    pub fn at_most(&self, level: Level) -> Type {
        self.clone().lowered(level)
    }

    /// The same, trusted no further than this anywhere; made in place.
    #[must_use]
    pub fn lowered(mut self, level: Level) -> Type {
        // Nothing is trusted further than the user.
        if level < Level::User {
            self.each_level(&mut |own| *own = (*own).min(level));
        }
        self
    }

    /// The same, trusted this far everywhere.
    #[must_use]
    pub fn raised(mut self, level: Level) -> Type {
        self.each_level(&mut |own| *own = level);
        self
    }

    fn each_level(&mut self, change: &mut impl FnMut(&mut Level)) {
        change(&mut self.level);
        match &mut self.kind {
            Kind::List(item) | Kind::Optional(item) => item.each_level(change),
            Kind::Record(fields) => {
                for (_, field) in fields {
                    field.each_level(change);
                }
            }
            Kind::Never
            | Kind::Nothing
            | Kind::Truth
            | Kind::Whole
            | Kind::Number
            | Kind::Text
            | Kind::Path
            | Kind::Time
            | Kind::Choice(_) => {}
        }
    }

    /// May a value of this type stand where `wanted` is asked for?
    /// Text may stand for a place or a time: whether it is one is found out
    /// when it is used.
    #[must_use]
    pub fn fits(&self, wanted: &Type) -> bool {
        match (&self.kind, &wanted.kind) {
            (Kind::Never, _) => true,
            (Kind::Nothing, Kind::Optional(_)) => true,
            (Kind::Optional(have), Kind::Optional(want)) => have.fits(want),
            (_, Kind::Optional(want)) => self.fits(want),
            (Kind::Choice(have), Kind::Choice(want)) => have.iter().all(|word| want.contains(word)),
            (have, Kind::Text | Kind::Path | Kind::Time) => have.is_text(),
            (have, Kind::Number) => have.is_number(),
            (Kind::List(have), Kind::List(want)) => have.fits(want),
            (Kind::Record(have), Kind::Record(want)) => want.iter().all(|(name, want)| {
                have.iter()
                    .any(|(known, have)| known == name && have.fits(want))
            }),
            (have, want) => have == want,
        }
    }

    /// A type both fit into, if there is one.
    #[must_use]
    pub fn join(&self, other: &Type) -> Option<Type> {
        let level = self.level.min(other.level);
        let kind = match (&self.kind, &other.kind) {
            (Kind::Never, kind) | (kind, Kind::Never) => kind.clone(),
            (left, right) if left == right => left.clone(),
            (Kind::Choice(left), Kind::Choice(right)) => {
                let mut all = left.clone();
                all.extend(right.iter().filter(|word| !left.contains(word)).cloned());
                if all.len() > FIELDS_MAX {
                    Kind::Text
                } else {
                    Kind::Choice(all)
                }
            }
            (left, right) if left.is_text() && right.is_text() => Kind::Text,
            (left, right) if left.is_number() && right.is_number() => Kind::Number,
            (Kind::Nothing, Kind::Optional(item)) | (Kind::Optional(item), Kind::Nothing) => {
                Kind::Optional(item.clone())
            }
            (Kind::Nothing, _) => Kind::Optional(Box::new(other.clone())),
            (_, Kind::Nothing) => Kind::Optional(Box::new(self.clone())),
            (Kind::Optional(left), Kind::Optional(right)) => {
                Kind::Optional(Box::new(left.join(right)?))
            }
            (Kind::Optional(item), _) => Kind::Optional(Box::new(item.join(other)?)),
            (_, Kind::Optional(item)) => Kind::Optional(Box::new(self.join(item)?)),
            (Kind::List(left), Kind::List(right)) => Kind::list(left.join(right)?),
            (Kind::Record(left), Kind::Record(right)) if left.len() == right.len() => {
                let mut fields = Vec::with_capacity(left.len());
                for (name, field) in left {
                    let (_, same) = right.iter().find(|(known, _)| known == name)?;
                    fields.push((name.clone(), field.join(same)?));
                }
                Kind::Record(fields)
            }
            _ => return None,
        };
        Some(kind.at(level))
    }
}

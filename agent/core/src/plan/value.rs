//! Values: data and what travels with it.

use alloc::{string::String, vec::Vec};

use super::{
    kind::{Kind, Type},
    level::Tag,
};

/// Data as it comes from outside or stands in a plan: nothing travels with it yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// Nothing.
    Nothing,
    /// True or false.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// Any number; always finite.
    Number(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Raw>),
    /// Named values.
    Record(Vec<(String, Raw)>),
}

/// A value and what travels with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The data.
    pub datum: Datum,
    /// What travels with it.
    pub tag: Tag,
}

/// The data of a value; parts have tags of their own.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Nothing.
    Nothing,
    /// True or false.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// Any number; always finite.
    Number(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Named values.
    Record(Vec<(String, Value)>),
}

impl Value {
    /// A value with its tag.
    #[must_use]
    pub const fn new(datum: Datum, tag: Tag) -> Value {
        Value { datum, tag }
    }

    /// The tag of all of it, parts included.
    #[must_use]
    pub fn whole_tag(&self) -> Tag {
        match &self.datum {
            Datum::List(items) => items
                .iter()
                .fold(self.tag.clone(), |tag, item| tag.join(&item.whole_tag())),
            Datum::Record(fields) => fields.iter().fold(self.tag.clone(), |tag, (_, field)| {
                tag.join(&field.whole_tag())
            }),
            Datum::Nothing
            | Datum::Truth(_)
            | Datum::Whole(_)
            | Datum::Number(_)
            | Datum::Text(_) => self.tag.clone(),
        }
    }

    /// The same value, also made from what has this tag.
    #[must_use]
    pub fn tainted(mut self, tag: &Tag) -> Value {
        self.tag = self.tag.join(tag);
        self
    }

    /// The same data, every part of it with this tag alone.
    #[must_use]
    pub fn retagged(self, tag: &Tag) -> Value {
        let datum = match self.datum {
            Datum::List(items) => {
                Datum::List(items.into_iter().map(|item| item.retagged(tag)).collect())
            }
            Datum::Record(fields) => Datum::Record(
                fields
                    .into_iter()
                    .map(|(name, field)| (name, field.retagged(tag)))
                    .collect(),
            ),
            plain => plain,
        };
        Value::new(datum, tag.clone())
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.datum {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The data without its tags.
    #[must_use]
    pub fn raw(&self) -> Raw {
        self.clone().into_raw()
    }

    /// The same, of a value nobody needs any more.
    #[must_use]
    pub fn into_raw(self) -> Raw {
        match self.datum {
            Datum::Nothing => Raw::Nothing,
            Datum::Truth(truth) => Raw::Truth(truth),
            Datum::Whole(whole) => Raw::Whole(whole),
            Datum::Number(number) => Raw::Number(number),
            Datum::Text(text) => Raw::Text(text),
            Datum::List(items) => Raw::List(items.into_iter().map(Value::into_raw).collect()),
            Datum::Record(fields) => Raw::Record(
                fields
                    .into_iter()
                    .map(|(name, field)| (name, field.into_raw()))
                    .collect(),
            ),
        }
    }
}

impl Raw {
    /// Makes it a value of this type; `None` if it is not one. Each part gets
    /// the level its type has at best and everything else from `tag`. Fields
    /// the type does not have are dropped.
    #[must_use]
    pub fn typed(self, kind: &Type, tag: &Tag) -> Option<Value> {
        let datum = match (self, &kind.kind) {
            (Raw::Nothing, Kind::Nothing | Kind::Optional(_)) => Datum::Nothing,
            (raw, Kind::Optional(item)) => return raw.typed(item, tag),
            (Raw::Truth(truth), Kind::Truth) => Datum::Truth(truth),
            (Raw::Whole(whole), Kind::Whole) => Datum::Whole(whole),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number is as exact as it can be"
            )]
            (Raw::Whole(whole), Kind::Number) => Datum::Number(whole as f64),
            (Raw::Number(number), Kind::Number) if number.is_finite() => Datum::Number(number),
            (Raw::Text(text), Kind::Text | Kind::Path | Kind::Time) => Datum::Text(text),
            (Raw::Text(text), Kind::Choice(words)) if words.contains(&text) => Datum::Text(text),
            (Raw::List(items), Kind::List(item)) => Datum::List(
                items
                    .into_iter()
                    .map(|raw| raw.typed(item, tag))
                    .collect::<Option<_>>()?,
            ),
            (Raw::Record(mut given), Kind::Record(fields)) => {
                let mut values = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    let place = given.iter().position(|(known, _)| known == name);
                    let raw = match place {
                        Some(place) => given.swap_remove(place).1,
                        None if matches!(field.kind, Kind::Optional(_)) => Raw::Nothing,
                        None => return None,
                    };
                    values.push((name.clone(), raw.typed(field, tag)?));
                }
                Datum::Record(values)
            }
            _ => return None,
        };
        Some(Value::new(datum, tag.clone().at_most(kind.level)))
    }
}

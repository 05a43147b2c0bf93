//! Computing expressions: total, bounded, and every result joins what it came from.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::{
    draft::{Expr, Hop},
    level::Tag,
    limits::{FUEL, TEXT_BYTES_MAX},
    signature::FlowRules,
    value::{Datum, Raw, Value},
};

mod apply;
mod over;
mod time;

pub use self::time::Moment;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A step it refers to failed or did not happen.
    Depends(String),
    /// There is no such item or part.
    NoItem,
    /// A number is out of bounds, or was divided by nought.
    Arithmetic,
    /// A text is no time.
    NotATime,
    /// It would become too large, or took too much work.
    TooMuch,
    /// A value is not of the type the check promised.
    WrongType,
}

/// What names stand for.
#[derive(Clone, Debug)]
pub struct Env {
    bound: BTreeMap<String, Value>,
    fuel: u64,
    rules: FlowRules,
}

impl Env {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new(rules: FlowRules) -> Env {
        Env {
            bound: BTreeMap::new(),
            fuel: FUEL,
            rules,
        }
    }

    /// From here on `name` is this.
    pub fn bind(&mut self, name: &str, value: Value) {
        self.bound.insert(String::from(name), value);
    }

    /// From here on `name` is nothing.
    pub fn forget(&mut self, name: &str) {
        self.bound.remove(name);
    }

    /// What a name stands for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.bound.get(name)
    }

    fn burn(&mut self, work: usize) -> Result<(), Trouble> {
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        self.fuel = self.fuel.checked_sub(work).ok_or(Trouble::TooMuch)?;
        Ok(())
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Why there is none.
    pub fn eval(&mut self, expr: &Expr) -> Result<Value, Trouble> {
        self.burn(1)?;
        match expr {
            Expr::Literal(raw) => literal(raw),
            Expr::Ref { name, path } => {
                let value = self
                    .bound
                    .get(name)
                    .ok_or_else(|| Trouble::Depends(name.clone()))?;
                let value = along(value, path)?;
                self.burn(weight(&value))?;
                Ok(value)
            }
            Expr::List(items) => {
                let items = items
                    .iter()
                    .map(|item| self.eval(item))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Value::new(Datum::List(items), Tag::USER))
            }
            Expr::Record(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, field)| Ok((name.clone(), self.eval(field)?)))
                    .collect::<Result<Vec<_>, Trouble>>()?;
                Ok(Value::new(Datum::Record(fields), Tag::USER))
            }
            Expr::Text(parts) => {
                let mut text = String::new();
                let mut tag = Tag::USER;
                for part in parts {
                    let value = self.eval(part)?;
                    tag = tag.join(&value.tag);
                    text.push_str(&apply::as_text(&value)?);
                    if text.len() > TEXT_BYTES_MAX {
                        return Err(Trouble::TooMuch);
                    }
                }
                self.burn(text.len())?;
                Ok(Value::new(Datum::Text(text), tag))
            }
            Expr::Apply(builtin, arguments) => {
                let arguments = arguments
                    .iter()
                    .map(|argument| self.eval(argument))
                    .collect::<Result<Vec<_>, _>>()?;
                let work = arguments.iter().map(weight).fold(1, usize::saturating_add);
                self.burn(work)?;
                let value = apply::apply(*builtin, arguments)?;
                self.burn(weight(&value))?;
                Ok(value)
            }
            Expr::Over {
                over,
                list,
                name,
                body,
            } => {
                let list = self.eval(list)?;
                over::over(self, *over, list, name, body)
            }
        }
    }
}

fn literal(raw: &Raw) -> Result<Value, Trouble> {
    let datum = match raw {
        Raw::Nothing => Datum::Nothing,
        Raw::Truth(truth) => Datum::Truth(*truth),
        Raw::Whole(whole) => Datum::Whole(*whole),
        Raw::Number(number) => Datum::Number(*number),
        Raw::Text(text) => Datum::Text(text.clone()),
        Raw::List(_) | Raw::Record(_) => return Err(Trouble::WrongType),
    };
    Ok(Value::new(datum, Tag::USER))
}

fn along(value: &Value, path: &[Hop]) -> Result<Value, Trouble> {
    let mut at = value;
    let mut tag = Tag::USER;
    for hop in path {
        tag = tag.join(&at.tag);
        at = match (hop, &at.datum) {
            (Hop::Field(name), Datum::Record(fields)) => fields
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, field)| field),
            (Hop::At(place), Datum::List(items)) => usize::try_from(*place)
                .ok()
                .and_then(|place| items.get(place)),
            _ => None,
        }
        .ok_or(Trouble::NoItem)?;
    }
    Ok(at.clone().tainted(&tag))
}

/// How much work copying or comparing it is.
pub(super) fn weight(value: &Value) -> usize {
    match &value.datum {
        Datum::Nothing | Datum::Truth(_) | Datum::Whole(_) | Datum::Number(_) => 1,
        Datum::Text(text) => text.len().saturating_add(1),
        Datum::List(items) => items.iter().map(weight).fold(1, usize::saturating_add),
        Datum::Record(fields) => fields
            .iter()
            .map(|(_, field)| weight(field))
            .fold(1, usize::saturating_add),
    }
}

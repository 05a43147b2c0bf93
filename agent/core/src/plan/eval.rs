//! Computing expressions: total, bounded, and every result joins what it came from.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::{
    draft::{Expr, Hop},
    level::Tag,
    limits::{FUEL, TEXT_BYTES_MAX, VALUE_BYTES},
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
        // Whatever comes of it is a value.
        self.burn(VALUE_BYTES)?;
        match expr {
            Expr::Literal(raw) => literal(raw),
            Expr::Ref { name, path } => {
                let value = self
                    .bound
                    .get(name)
                    .ok_or_else(|| Trouble::Depends(name.clone()))?;
                let (part, tag) = along(value, path)?;
                let work = weight(part);
                // A copy that is too large is not made.
                let fits = u64::try_from(work).is_ok_and(|work| work <= self.fuel);
                let value = fits.then(|| part.clone().tainted(&tag));
                self.burn(work)?;
                value.ok_or(Trouble::TooMuch)
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

/// A part of a value, and what travels with it from what it is a part of.
fn along<'v>(value: &'v Value, path: &[Hop]) -> Result<(&'v Value, Tag), Trouble> {
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
    Ok((at, tag))
}

const _: () = assert!(size_of::<(String, Value)>() <= VALUE_BYTES);

/// How much work copying or comparing it is: the memory it takes.
pub(super) fn weight(value: &Value) -> usize {
    match &value.datum {
        Datum::Nothing | Datum::Truth(_) | Datum::Whole(_) | Datum::Number(_) => VALUE_BYTES,
        Datum::Text(text) => text.len().saturating_add(VALUE_BYTES),
        Datum::List(items) => items
            .iter()
            .map(weight)
            .fold(VALUE_BYTES, usize::saturating_add),
        Datum::Record(fields) => fields
            .iter()
            .map(|(name, field)| weight(field).saturating_add(name.len()))
            .fold(VALUE_BYTES, usize::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use alloc::{borrow::ToOwned, boxed::Box, vec};

    use super::*;
    use crate::plan::builtin::Over;

    /// What computing this costs where `l` is a list of so many short texts, and so much may
    /// be spent.
    fn cost(expr: &Expr, items: usize, fuel: usize) -> Option<usize> {
        let mut env = Env::new(FlowRules::STRICT);
        env.fuel = u64::try_from(fuel).ok()?;
        let item = Value::new(Datum::Text("x".to_owned()), Tag::USER);
        let items: Vec<Value> = vec![item; items];
        env.bind("l", Value::new(Datum::List(items), Tag::USER));
        let before = env.fuel;
        env.eval(expr).ok()?;
        usize::try_from(before - env.fuel).ok()
    }

    fn of_each(body: Expr, name: &str) -> Expr {
        Expr::Over {
            over: Over::Map,
            list: Box::new(all()),
            name: name.to_owned(),
            body: Box::new(body),
        }
    }

    fn all() -> Expr {
        Expr::Ref {
            name: "l".to_owned(),
            path: Vec::new(),
        }
    }

    #[test]
    fn what_is_built_counts_for_the_memory_it_takes() {
        let each = size_of::<Value>();
        let one = || Expr::Literal(Raw::Whole(1));
        for (expr, values) in [
            (all(), 1000),
            (of_each(one(), "x"), 2000),
            (of_each(of_each(one(), "y"), "x"), 1000 * 2000),
            (Expr::List(vec![all(), all(), one()]), 2001),
        ] {
            let cost = cost(&expr, 1000, 1 << 30);
            assert!(cost >= Some(values * each), "{expr:?}: {cost:?}");
        }
    }

    #[test]
    fn lists_in_lists_are_given_up_before_they_fill_the_memory() {
        let expr = of_each(of_each(of_each(all(), "z"), "y"), "x");
        assert_eq!(cost(&expr, 30, 1 << 20), None);
        assert!(cost(&expr, 30, 1 << 28).is_some());
    }
}

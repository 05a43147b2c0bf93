//! Functions applied to values.

use alloc::{
    borrow::{Cow, ToOwned},
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::Ordering;

use super::{Moment, Trouble};
use crate::plan::{
    builtin::Builtin,
    level::Tag,
    limits::{ITEMS_MAX, TEXT_BYTES_MAX},
    value::{Datum, Value},
};

/// The greatest number every smaller whole number of which a number can be.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

pub(super) fn as_text(value: &Value) -> Result<Cow<'_, str>, Trouble> {
    match &value.datum {
        Datum::Text(text) => Ok(Cow::Borrowed(text)),
        Datum::Whole(whole) => Ok(Cow::Owned(whole.to_string())),
        Datum::Number(number) => Ok(Cow::Owned(number.to_string())),
        Datum::Truth(truth) => Ok(Cow::Owned(truth.to_string())),
        Datum::Nothing | Datum::List(_) | Datum::Record(_) => Err(Trouble::WrongType),
    }
}

pub(super) fn truth(value: &Value) -> Result<bool, Trouble> {
    match &value.datum {
        Datum::Truth(truth) => Ok(*truth),
        _ => Err(Trouble::WrongType),
    }
}

fn text(value: Option<&Value>) -> Result<&str, Trouble> {
    value.and_then(Value::as_text).ok_or(Trouble::WrongType)
}

fn whole(value: Option<&Value>) -> Result<i64, Trouble> {
    match value.map(|value| &value.datum) {
        Some(Datum::Whole(whole)) => Ok(*whole),
        _ => Err(Trouble::WrongType),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number is as exact as it can be"
)]
fn number(value: Option<&Value>) -> Result<f64, Trouble> {
    match value.map(|value| &value.datum) {
        Some(Datum::Whole(whole)) => Ok(*whole as f64),
        Some(Datum::Number(number)) => Ok(*number),
        _ => Err(Trouble::WrongType),
    }
}

fn list(value: Option<&Value>) -> Result<&[Value], Trouble> {
    match value.map(|value| &value.datum) {
        Some(Datum::List(items)) => Ok(items),
        _ => Err(Trouble::WrongType),
    }
}

fn moment(value: Option<&Value>) -> Result<Moment, Trouble> {
    Moment::parse(text(value)?).ok_or(Trouble::NotATime)
}

/// The order of two texts, numbers or truths.
pub(super) fn order(left: &Value, right: &Value) -> Result<Ordering, Trouble> {
    match (&left.datum, &right.datum) {
        (Datum::Text(left), Datum::Text(right)) => Ok(left.cmp(right)),
        (Datum::Whole(left), Datum::Whole(right)) => Ok(left.cmp(right)),
        _ => number(Some(left))?
            .partial_cmp(&number(Some(right))?)
            .ok_or(Trouble::Arithmetic),
    }
}

/// The places of texts or numbers in their order.
pub(super) fn in_order(keys: &[&Value]) -> Result<Vec<usize>, Trouble> {
    let mut places: Vec<usize> = (0..keys.len()).collect();
    let all = |test: fn(&Datum) -> bool| keys.iter().all(|key| test(&key.datum));
    if all(|datum| matches!(datum, Datum::Text(_))) {
        places.sort_by_key(|place| keys.get(*place).and_then(|key| key.as_text()));
    } else if all(|datum| matches!(datum, Datum::Whole(_))) {
        places.sort_by_key(|place| keys.get(*place).and_then(|key| whole(Some(key)).ok()));
    } else {
        let numbers = keys
            .iter()
            .map(|key| number(Some(key)))
            .collect::<Result<Vec<f64>, _>>()?;
        let at = |place: &usize| numbers.get(*place).copied().unwrap_or_default();
        places.sort_by(|left, right| at(left).total_cmp(&at(right)));
    }
    Ok(places)
}

/// Are the data the same, whatever travels with them?
fn same(left: &Value, right: &Value) -> bool {
    match (&left.datum, &right.datum) {
        (Datum::List(left), Datum::List(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Datum::Record(left), Datum::Record(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, field)| {
                    right
                        .iter()
                        .any(|(known, other)| known == name && same(field, other))
                })
        }
        (Datum::Nothing, Datum::Nothing) => true,
        (Datum::Truth(left), Datum::Truth(right)) => left == right,
        _ => order(left, right) == Ok(Ordering::Equal),
    }
}

fn finite(number: f64) -> Result<Datum, Trouble> {
    if number.is_finite() {
        Ok(Datum::Number(number))
    } else {
        Err(Trouble::Arithmetic)
    }
}

fn grown(text: String) -> Result<Datum, Trouble> {
    if text.len() > TEXT_BYTES_MAX {
        Err(Trouble::TooMuch)
    } else {
        Ok(Datum::Text(text))
    }
}

fn texts<'t>(parts: impl Iterator<Item = &'t str>, tag: &Tag) -> Result<Datum, Trouble> {
    let mut texts = Vec::new();
    for part in parts {
        if texts.len() >= ITEMS_MAX {
            return Err(Trouble::TooMuch);
        }
        texts.push(Value::new(Datum::Text(part.to_owned()), tag.clone()));
    }
    Ok(Datum::List(texts))
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

fn rounded(number: f64, decimals: i64) -> Result<Datum, Trouble> {
    let mut scale = 1.0;
    for _ in 0..decimals.clamp(0, 12) {
        scale *= 10.0;
    }
    let scaled = number * scale;
    if !(scaled > -EXACT_MAX && scaled < EXACT_MAX) {
        return finite(number);
    }
    let half = if scaled < 0.0 { -0.5 } else { 0.5 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "it was compared with the bound above"
    )]
    let nearest = (scaled + half) as i64 as f64;
    finite(nearest / scale)
}

fn span(
    length: usize,
    from: Option<&Value>,
    to: Option<&Value>,
) -> Result<(usize, usize), Trouble> {
    let place = |at: i64| usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(length);
    let from = place(whole(from)?);
    let to = match to {
        None => length,
        Some(to) => place(whole(Some(to))?),
    };
    Ok((from, to.max(from)))
}

/// The value of a function; the number of arguments was checked.
pub(super) fn apply(builtin: Builtin, of: Vec<Value>) -> Result<Value, Trouble> {
    use Builtin as B;
    let tag = of
        .iter()
        .fold(Tag::USER, |tag, value| tag.join(&value.whole_tag()));
    let (first, second, third) = (of.first(), of.get(1), of.get(2));
    let datum = match builtin {
        B::Upper => grown(text(first)?.to_uppercase())?,
        B::Lower => grown(text(first)?.to_lowercase())?,
        B::Trim => Datum::Text(text(first)?.trim().to_owned()),
        B::Split => {
            let (whole, by) = (text(first)?, text(second)?);
            if by.is_empty() {
                texts(core::iter::once(whole), &tag)?
            } else {
                texts(whole.split(by), &tag)?
            }
        }
        B::Lines => texts(text(first)?.lines(), &tag)?,
        B::Join => {
            let by = text(second)?;
            let mut joined = String::new();
            for (place, item) in list(first)?.iter().enumerate() {
                if place > 0 {
                    joined.push_str(by);
                }
                joined.push_str(text(Some(item))?);
                if joined.len() > TEXT_BYTES_MAX {
                    return Err(Trouble::TooMuch);
                }
            }
            Datum::Text(joined)
        }
        B::Contains => Datum::Truth(text(first)?.contains(text(second)?)),
        B::StartsWith => Datum::Truth(text(first)?.starts_with(text(second)?)),
        B::EndsWith => Datum::Truth(text(first)?.ends_with(text(second)?)),
        B::Replace => {
            let (whole, what, with) = (text(first)?, text(second)?, text(third)?);
            let found = if what.is_empty() {
                0
            } else {
                whole.matches(what).count()
            };
            let size = found.saturating_mul(with.len()).saturating_add(whole.len());
            if size > TEXT_BYTES_MAX {
                return Err(Trouble::TooMuch);
            }
            Datum::Text(if found == 0 {
                whole.to_owned()
            } else {
                whole.replace(what, with)
            })
        }
        B::Length => match first.map(|value| &value.datum) {
            Some(Datum::Text(text)) => count(text.chars().count()),
            Some(Datum::List(items)) => {
                // How many there are says nothing of what they hold.
                let tag = first.map_or(Tag::USER, |value| value.tag.clone());
                return Ok(Value::new(count(items.len()), tag));
            }
            _ => return Err(Trouble::WrongType),
        },
        B::Slice => match first.map(|value| &value.datum) {
            Some(Datum::Text(text)) => {
                let (from, to) = span(text.chars().count(), second, third)?;
                Datum::Text(text.chars().skip(from).take(to - from).collect())
            }
            Some(Datum::List(items)) => {
                let (from, to) = span(items.len(), second, third)?;
                let tag = tags(&of, &[0, 1, 2]);
                let part = items.get(from..to).unwrap_or(&[]).to_vec();
                return Ok(Value::new(Datum::List(part), tag));
            }
            _ => return Err(Trouble::WrongType),
        },
        B::ToText => {
            let value = first.ok_or(Trouble::WrongType)?;
            Datum::Text(as_text(value)?.into_owned())
        }
        B::ToWhole => match text(first)?.trim().parse::<i64>() {
            Ok(whole) => Datum::Whole(whole),
            Err(_) => Datum::Whole(whole(second)?),
        },
        B::ToNumber => match text(first)?.trim().parse::<f64>() {
            Ok(found) if found.is_finite() => Datum::Number(found),
            Ok(_) | Err(_) => Datum::Number(number(second)?),
        },
        B::FileName => Datum::Text(file_name(text(first)?).to_owned()),
        B::Extension => {
            let name = file_name(text(first)?);
            let extension = match name.rsplit_once('.') {
                Some((stem, extension)) if !stem.is_empty() => extension,
                _ => "",
            };
            Datum::Text(extension.to_owned())
        }
        B::Parent => {
            let path = text(first)?.trim_end_matches('/');
            let parent = match path.rsplit_once('/') {
                Some(("", _)) => "/",
                Some((parent, _)) => parent,
                None => ".",
            };
            Datum::Text(parent.to_owned())
        }
        B::JoinPath => {
            let (dir, below) = (text(first)?, text(second)?);
            if dir.is_empty() || dir == "." {
                Datum::Text(below.to_owned())
            } else {
                grown(format!(
                    "{}/{}",
                    dir.trim_end_matches('/'),
                    below.trim_start_matches('/')
                ))?
            }
        }
        B::Add | B::Subtract | B::Multiply => match (whole(first), whole(second)) {
            (Ok(left), Ok(right)) => {
                let result = match builtin {
                    B::Add => left.checked_add(right),
                    B::Subtract => left.checked_sub(right),
                    _ => left.checked_mul(right),
                };
                Datum::Whole(result.ok_or(Trouble::Arithmetic)?)
            }
            _ => {
                let (left, right) = (number(first)?, number(second)?);
                finite(match builtin {
                    B::Add => left + right,
                    B::Subtract => left - right,
                    _ => left * right,
                })?
            }
        },
        B::Divide => finite(number(first)? / number(second)?)?,
        B::Round => rounded(number(first)?, whole(second)?)?,
        B::Sum => sum(list(first)?)?,
        B::Min | B::Max => {
            let wanted = if builtin == B::Max {
                Ordering::Greater
            } else {
                Ordering::Less
            };
            let mut items = list(first)?.iter();
            let mut best = items.next().ok_or(Trouble::NoItem)?;
            for item in items {
                if order(item, best)? == wanted {
                    best = item;
                }
            }
            best.datum.clone()
        }
        B::Eq | B::Ne => {
            let (Some(left), Some(right)) = (first, second) else {
                return Err(Trouble::WrongType);
            };
            Datum::Truth(same(left, right) == (builtin == B::Eq))
        }
        B::Lt | B::Le | B::Gt | B::Ge => {
            let (Some(left), Some(right)) = (first, second) else {
                return Err(Trouble::WrongType);
            };
            let order = order(left, right)?;
            Datum::Truth(match builtin {
                B::Lt => order == Ordering::Less,
                B::Le => order != Ordering::Greater,
                B::Gt => order == Ordering::Greater,
                _ => order != Ordering::Less,
            })
        }
        B::And | B::Or => {
            let mut result = builtin == B::And;
            for value in &of {
                let truth = truth(value)?;
                result = if builtin == B::And {
                    result && truth
                } else {
                    result || truth
                };
            }
            Datum::Truth(result)
        }
        B::Not => Datum::Truth(!truth(first.ok_or(Trouble::WrongType)?)?),
        B::Choose => {
            let test = first.ok_or(Trouble::WrongType)?;
            let chosen = if truth(test)? { second } else { third };
            return Ok(chosen.ok_or(Trouble::WrongType)?.clone().tainted(&test.tag));
        }
        B::Default => {
            let (Some(value), Some(other)) = (first, second) else {
                return Err(Trouble::WrongType);
            };
            return Ok(match value.datum {
                Datum::Nothing => other.clone().tainted(&value.tag),
                _ => value.clone(),
            });
        }
        B::In => {
            let wanted = first.ok_or(Trouble::WrongType)?;
            Datum::Truth(list(second)?.iter().any(|item| same(item, wanted)))
        }
        B::First | B::Last => {
            let items = list(first)?;
            let item = if builtin == B::First {
                items.first()
            } else {
                items.last()
            };
            let tag = tags(&of, &[0]);
            return Ok(item.ok_or(Trouble::NoItem)?.clone().tainted(&tag));
        }
        B::Append => {
            let mut all = list(first)?.to_vec();
            all.extend_from_slice(list(second)?);
            return Ok(Value::new(Datum::List(all), tags(&of, &[0, 1])));
        }
        B::Flatten => {
            let mut all = Vec::new();
            let mut tag = tags(&of, &[0]);
            for inner in list(first)? {
                tag = tag.join(&inner.tag);
                all.extend_from_slice(list(Some(inner))?);
            }
            return Ok(Value::new(Datum::List(all), tag));
        }
        B::Unique => {
            let mut kept: Vec<Value> = Vec::new();
            let mut seen = alloc::collections::BTreeSet::new();
            for item in list(first)? {
                // Its debug form names data alone and is different for different data.
                if seen.insert(format!("{:?}", item.raw())) {
                    kept.push(item.clone());
                }
            }
            Datum::List(kept)
        }
        B::Reverse => {
            let items = list(first)?.iter().rev().cloned().collect();
            return Ok(Value::new(Datum::List(items), tags(&of, &[0])));
        }
        B::Sorted => {
            let items = list(first)?;
            let keys: Vec<&Value> = items.iter().collect();
            let order = in_order(&keys)?;
            Datum::List(
                order
                    .into_iter()
                    .filter_map(|place| items.get(place))
                    .cloned()
                    .collect(),
            )
        }
        B::AddDays => {
            let minutes = whole(second)?.checked_mul(24 * 60);
            later(moment(first)?, minutes)?
        }
        B::AddMinutes => later(moment(first)?.with_clock(), Some(whole(second)?))?,
        B::MinutesBetween => Datum::Whole(moment(first)?.minutes_to(moment(second)?)),
        B::DayOf => Datum::Text(moment(first)?.day()),
        B::ClockOf => Datum::Text(moment(first)?.clock()),
        B::Weekday => Datum::Text(moment(first)?.weekday().to_owned()),
    };
    Ok(Value::new(datum, tag))
}

fn later(moment: Moment, minutes: Option<i64>) -> Result<Datum, Trouble> {
    minutes
        .and_then(|minutes| moment.later(minutes))
        .map(|moment| Datum::Text(moment.text()))
        .ok_or(Trouble::Arithmetic)
}

fn sum(items: &[Value]) -> Result<Datum, Trouble> {
    if items
        .iter()
        .all(|item| matches!(item.datum, Datum::Whole(_)))
    {
        let mut total = 0_i64;
        for item in items {
            total = total
                .checked_add(whole(Some(item))?)
                .ok_or(Trouble::Arithmetic)?;
        }
        return Ok(Datum::Whole(total));
    }
    let mut total = 0.0;
    for item in items {
        total += number(Some(item))?;
    }
    finite(total)
}

fn count(number: usize) -> Datum {
    Datum::Whole(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The tags of the arguments themselves, not of their parts.
fn tags(of: &[Value], places: &[usize]) -> Tag {
    places
        .iter()
        .filter_map(|place| of.get(*place))
        .fold(Tag::USER, |tag, value| tag.join(&value.tag))
}

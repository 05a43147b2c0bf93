//! Functions that look at each item of a list.

use alloc::{string::String, vec, vec::Vec};
use core::cmp::Ordering;

use super::{Env, Trouble, apply};
use crate::plan::{
    builtin::Over,
    draft::Expr,
    level::Tag,
    value::{Datum, Value},
};

pub(super) fn over(
    env: &mut Env,
    over: Over,
    list: Value,
    name: &str,
    body: &Expr,
) -> Result<Value, Trouble> {
    let Datum::List(items) = list.datum else {
        return Err(Trouble::WrongType);
    };
    let tag = list.tag;
    let mut looked: Vec<(Value, Value)> = Vec::with_capacity(items.len());
    // What it looked at lowers what it selects, where the rules say so.
    let mut selected = tag.clone();
    for item in items {
        let item = item.tainted(&tag);
        env.bind(name, item.clone());
        let value = env.eval(body);
        env.forget(name);
        let value = value?;
        if env.rules.selection || matches!(over, Over::Any | Over::All) {
            selected = selected.join(&value.whole_tag());
        }
        looked.push((item, value));
    }
    env.burn(looked.len().saturating_mul(8))?;
    match over {
        Over::Map => {
            let values = looked.into_iter().map(|(_, value)| value).collect();
            Ok(Value::new(Datum::List(values), tag))
        }
        Over::Filter => {
            let mut kept = Vec::new();
            for (item, value) in looked {
                if apply::truth(&value)? {
                    kept.push(item);
                }
            }
            Ok(Value::new(Datum::List(kept), selected))
        }
        Over::Any | Over::All => {
            let mut result = over == Over::All;
            for (_, value) in &looked {
                let truth = apply::truth(value)?;
                result = if over == Over::All {
                    result && truth
                } else {
                    result || truth
                };
            }
            Ok(Value::new(Datum::Truth(result), selected))
        }
        Over::SortBy => {
            let keys: Vec<&Value> = looked.iter().map(|(_, value)| value).collect();
            let items = apply::in_order(&keys)?
                .into_iter()
                .filter_map(|place| looked.get(place))
                .map(|(item, _)| item.clone())
                .collect();
            Ok(Value::new(Datum::List(items), selected))
        }
        Over::MaxBy | Over::MinBy => {
            let wanted = if over == Over::MaxBy {
                Ordering::Greater
            } else {
                Ordering::Less
            };
            let mut best: Option<(Value, Value)> = None;
            for (item, value) in looked {
                let better = match &best {
                    None => true,
                    Some((_, known)) => apply::order(&value, known)? == wanted,
                };
                if better {
                    best = Some((item, value));
                }
            }
            let (item, _) = best.ok_or(Trouble::NoItem)?;
            Ok(item.tainted(&selected))
        }
        Over::GroupBy => grouped(looked, &selected),
    }
}

fn grouped(looked: Vec<(Value, Value)>, tag: &Tag) -> Result<Value, Trouble> {
    let mut keys: alloc::collections::BTreeMap<String, usize> = alloc::collections::BTreeMap::new();
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (item, key) in looked {
        let text = String::from(key.as_text().ok_or(Trouble::WrongType)?);
        let place = *keys.entry(text).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, items)) => items.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    let groups = groups
        .into_iter()
        .map(|(key, items)| {
            let fields = vec![
                (String::from("key"), key),
                (
                    String::from("items"),
                    Value::new(Datum::List(items), tag.clone()),
                ),
            ];
            Value::new(Datum::Record(fields), tag.clone())
        })
        .collect();
    Ok(Value::new(Datum::List(groups), tag.clone()))
}

//! Escapes from Hermes whose cause is known.
//!
//! One operator alone gets a command past every guard of Hermes; others alone do
//! not. All together get past as well, and the cause is the one.

use std::collections::BTreeMap;

use bisim_world::WorldError;

use super::measure::Labelled;
use crate::campaign::escape::{Escape, matched};
use crate::campaign::{Numbers, flagged};
use crate::generate::{DEPTH_MAX, Link, Operator, SEEDS, Salt, Seed, Variant, operators};
use crate::subject::Restarting;

/// How many choices are made for each escape that is wanted.
const TRIES: u64 = 4;

/// What is known of one seed: its patterns, and what each operator alone does.
struct Known {
    matched: Vec<String>,
    past: Vec<&'static Operator>,
    not_past: Vec<&'static Operator>,
}

/// About `count` escapes with their causes.
///
/// # Errors
/// Hermes does not answer.
pub(super) fn labelled(
    hermes: &mut Restarting,
    seed: u64,
    count: u64,
) -> Result<Vec<Labelled>, WorldError> {
    let mut known: BTreeMap<&str, Known> = BTreeMap::new();
    let mut all = Vec::new();
    for place in 0..count * TRIES {
        if all.len() as u64 >= count {
            break;
        }
        let mut numbers = Numbers::new(seed, place, 0);
        let Some(chosen) = SEEDS.get(numbers.below(SEEDS.len())) else {
            continue;
        };
        if !known.contains_key(chosen.name) {
            known.insert(chosen.name, look(hermes, chosen)?);
        }
        let Some(known) = known.get(chosen.name) else {
            continue;
        };
        let Some((variant, cause)) = compose(chosen, known, &mut numbers) else {
            continue;
        };
        let Some(rendered) = variant.render() else {
            continue;
        };
        if flagged(hermes, &[&rendered.command])?.contains(&true) {
            continue;
        }
        let escape = Escape::of(hermes, &variant, &known.matched)?;
        let label = format!("{} past {}", cause.class.as_str(), known.matched.join(", "));
        all.push(Labelled::escape(label, &variant, &escape, &known.matched));
    }
    Ok(all)
}

/// Asks about every operator alone.
fn look(hermes: &mut Restarting, seed: &'static Seed) -> Result<Known, WorldError> {
    let mut known = Known {
        matched: matched(hermes, &seed.script().print())?,
        past: Vec::new(),
        not_past: Vec::new(),
    };
    if known.matched.is_empty() {
        return Ok(known);
    }
    let rendered: Vec<(&'static Operator, String)> = operators::all()
        .filter(|operator| operator.class.preserves_effect())
        .filter_map(|operator| Some((operator, alone(seed, operator).render()?.command)))
        .collect();
    let commands: Vec<&str> = rendered.iter().map(|(_, text)| text.as_str()).collect();
    for ((operator, _), flagged) in rendered.iter().zip(flagged(hermes, &commands)?) {
        if flagged {
            known.not_past.push(operator);
        } else {
            known.past.push(operator);
        }
    }
    Ok(known)
}

fn alone(seed: &'static Seed, operator: &'static Operator) -> Variant {
    let salt = Salt(0);
    Variant::at_a_terminal(seed, vec![Link { operator, salt }])
}

/// One operator that gets past, among others that do not.
fn compose(
    seed: &'static Seed,
    known: &Known,
    numbers: &mut Numbers,
) -> Option<(Variant, &'static Operator)> {
    let salt = Salt(0);
    let cause = *known.past.get(numbers.below(known.past.len()))?;
    let others = 1 + numbers.below(DEPTH_MAX - 1);
    let mut chain = Vec::new();
    for _ in 0..others {
        let operator = *known.not_past.get(numbers.below(known.not_past.len()))?;
        chain.push(Link { operator, salt });
    }
    let at = numbers.below(others + 1);
    let operator = cause;
    chain.insert(at, Link { operator, salt });
    Some((Variant::at_a_terminal(seed, chain), cause))
}

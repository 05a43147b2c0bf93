//! The same service: what is owed where both subjects acted inside the grants.

use super::Finding;
use super::pair::Pair;
use crate::canon::{same_value, told};
use crate::noise::Mask;
use crate::observation::StepSeen;

/// Whether only what lies outside the grants is missing from the agent's run.
pub(super) fn same_inside(index: usize, pair: &Pair<'_>, mask: &Mask) -> bool {
    let inside: Vec<_> = told(&pair.hermes.delta)
        .filter(|effect| !pair.outside_h.contains(&crate::holdings::describe(effect)))
        .collect();
    let value = |seen: &StepSeen| mask.apply(index, &seen.value);
    same_value(&value(pair.hermes), &value(pair.agent))
        && inside.into_iter().eq(told(&pair.agent.delta))
}

/// Both acted inside the grants: the same result and effects are owed.
pub(super) fn service(
    index: usize,
    pair: &Pair<'_>,
    mask: &Mask,
    diverged: bool,
) -> (Finding, String) {
    let Pair { hermes, agent, .. } = pair;
    // Rule `tool-error-is-a-result`: both acted, so what they report decides.
    let exact = hermes.class.level() == agent.class.level()
        && same_value(&hermes.value, &agent.value)
        && told(&hermes.delta).eq(told(&agent.delta));
    if exact {
        return (Finding::Equal, "the same result and effects".to_owned());
    }
    let contents = |seen: &StepSeen| -> Vec<_> {
        told(&seen.delta)
            .map(|effect| {
                let noisy = mask.contents.contains(&effect.path);
                let digest = if noisy { "" } else { effect.digest.as_str() };
                (
                    effect.path.clone(),
                    effect.kind,
                    digest.to_owned(),
                    effect.mode,
                )
            })
            .collect()
    };
    let masked = hermes.class.level() == agent.class.level()
        && same_value(
            &mask.apply(index, &hermes.value),
            &mask.apply(index, &agent.value),
        )
        && contents(hermes) == contents(agent);
    if masked && !mask.is_empty() {
        return (
            Finding::EqualMasked,
            "the same but for what hermes itself varies in".to_owned(),
        );
    }
    if diverged {
        return (
            Finding::Equal,
            "the states differ since an earlier, judged difference; only authority is compared"
                .to_owned(),
        );
    }
    (Finding::Different, explain_difference(hermes, agent))
}

/// What two runs of one step differ in, in words.
pub(super) fn explain_difference(hermes: &StepSeen, agent: &StepSeen) -> String {
    if hermes.class != agent.class {
        return format!(
            "hermes {}, the agent {}",
            hermes.class.word(),
            agent.class.word()
        );
    }
    if !same_value(&hermes.value, &agent.value) {
        return match first_difference(&hermes.value, &agent.value, String::new()) {
            Some((at, left, right)) => {
                format!("the result differs at `{at}`: hermes {left}, the agent {right}")
            }
            None => "the result differs".to_owned(),
        };
    }
    let only = |one: &StepSeen, two: &StepSeen| -> Vec<String> {
        told(&one.delta)
            .filter(|effect| !two.delta.contains(effect))
            .map(|effect| {
                let digest: String = effect.digest.chars().take(8).collect();
                format!(
                    "{} [{digest} {} bytes mode {:o}]",
                    crate::holdings::describe(effect),
                    effect.size,
                    effect.mode
                )
            })
            .collect()
    };
    format!(
        "the effects differ: only hermes: {}; only the agent: {}",
        or_nothing(&only(hermes, agent)),
        or_nothing(&only(agent, hermes))
    )
}

fn or_nothing(list: &[String]) -> String {
    if list.is_empty() {
        "nothing".to_owned()
    } else {
        list.join(", ")
    }
}

/// The first place two values differ in, with both sides cut short.
fn first_difference(
    left: &serde_json::Value,
    right: &serde_json::Value,
    at: String,
) -> Option<(String, String, String)> {
    use serde_json::Value;
    match (left, right) {
        (Value::Object(one), Value::Object(two)) if one.keys().eq(two.keys()) => one
            .iter()
            .zip(two.values())
            .find_map(|((key, one), two)| first_difference(one, two, format!("{at}/{key}"))),
        (Value::Object(one), Value::Object(two)) => {
            let keys = |map: &serde_json::Map<String, Value>| {
                map.keys().cloned().collect::<Vec<_>>().join(",")
            };
            Some((
                format!("{at}/"),
                format!("has keys {}", keys(one)),
                format!("has keys {}", keys(two)),
            ))
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => one
            .iter()
            .zip(two)
            .enumerate()
            .find_map(|(index, (one, two))| first_difference(one, two, format!("{at}/{index}"))),
        (left, right) if same_value(left, right) => None,
        (Value::String(one), Value::String(two)) => {
            let same = one
                .chars()
                .zip(two.chars())
                .take_while(|(one, two)| one == two)
                .count();
            let tail = |text: &str| -> String {
                format!(
                    "{:?}",
                    text.chars()
                        .skip(same.saturating_sub(12))
                        .take(80)
                        .collect::<String>()
                )
            };
            Some((format!("{at}[{same}]"), tail(one), tail(two)))
        }
        (left, right) => {
            let cut = |value: &Value| value.to_string().chars().take(120).collect::<String>();
            Some((at, cut(left), cut(right)))
        }
    }
}

//! What a campaign deals.

use arbitrary::Unstructured;
use bisim_world::protocol::Step;
use serde_json::Value;

use super::{Verdict, ensure, steps};
use crate::case::CaseFile;
use crate::generate::{Specimen, Target};

/// Make one of the kind the first byte says, and make it again from its name.
pub fn check(bytes: &[u8]) -> Verdict {
    let Some((kind, bytes)) = bytes.split_first() else {
        return Ok(());
    };
    let Some(target) = Target::ALL.get(usize::from(*kind) % Target::ALL.len()) else {
        return Err(format!("no kind has the number {kind}"));
    };
    let Ok(specimen) = Specimen::of(*target, &mut Unstructured::new(bytes)) else {
        return Ok(());
    };
    let name = specimen.to_string();
    let Some(again) = Specimen::named(&name) else {
        return Err(format!("{name} is not read"));
    };
    let (case, made_again) = (specimen.case_file(), again.case_file());
    ensure(
        case == made_again && is_in_one_order(script(&case), script(&made_again)),
        || format!("{name} is made again as something else"),
    )?;
    steps::add(1);
    for smaller in specimen.smaller() {
        steps::add(1);
        let smaller = smaller.to_string();
        ensure(
            smaller != name && Specimen::named(&smaller).is_some(),
            || format!("{name} shrinks to {smaller}"),
        )?;
    }
    Ok(())
}

fn script(case: &Option<CaseFile>) -> &[Step] {
    case.as_ref().map_or(&[], |case| &case.script)
}

/// Whether equal scripts are written alike as well: the order of a call's arguments is no
/// part of their values.
fn is_in_one_order(one: &[Step], other: &[Step]) -> bool {
    let alike = |(one, other): (&Step, &Step)| match (one, other) {
        (Step::Call { args: one, .. }, Step::Call { args: other, .. })
        | (Step::Probe { input: one, .. }, Step::Probe { input: other, .. }) => {
            is_written_alike(one, other)
        }
        (Step::Restart(one), Step::Restart(other)) => match (&one.during, &other.during) {
            (Some(one), Some(other)) => is_in_one_order(
                std::slice::from_ref(&one.step),
                std::slice::from_ref(&other.step),
            ),
            (one, other) => one.is_none() && other.is_none(),
        },
        (
            Step::Grant(_)
            | Step::Revoke { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Spawn { .. },
            _,
        ) => true,
        (Step::Call { .. } | Step::Probe { .. } | Step::Restart(_), _) => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(alike)
}

fn is_written_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((name, one), (named, other))| {
                    name == named && is_written_alike(one, other)
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_written_alike(one, other))
        }
        // Nought has two signs, and both are equal.
        (Value::Number(one), Value::Number(other)) if one.is_f64() => {
            one.to_string() == other.to_string()
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scripts_that_are_equal_may_be_written_in_two_orders() {
        let call = |args: Value| Step::Call {
            tool: "terminal".to_owned(),
            args,
            by: None,
        };
        let one = [call(json!({"a": [1, {"b": 2, "c": 3}], "d": 0.0}))];
        let other = [call(json!({"a": [1, {"c": 3, "b": 2}], "d": 0.0}))];
        assert_eq!(one, other);
        assert!(is_in_one_order(&one, &one) && !is_in_one_order(&one, &other));
        let signed = [call(json!({"a": [1, {"b": 2, "c": 3}], "d": -0.0}))];
        assert_eq!(one, signed);
        assert!(!is_in_one_order(&one, &signed));
        assert!(!is_in_one_order(&one, &[]));
    }
}

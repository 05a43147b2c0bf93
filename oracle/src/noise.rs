//! Noise: what differs when Hermes is run against itself on the same case.
//!
//! Only what two runs in equal worlds disagree on may be masked. What changes
//! with HOME, time zone, locale or hash seed is an input, pinned by the
//! world; it never gets here.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::canon::{same_value, told};
use crate::observation::Observation;

/// What two runs of the same subject disagreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Per step, JSON pointers into the value.
    pub pointers: Vec<BTreeSet<String>>,
    /// Files whose content differed.
    pub contents: BTreeSet<String>,
    /// Something that must not be noise: a decision, or the set of paths.
    pub unstable: Option<String>,
}

impl Mask {
    /// Whether the runs agreed in everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unstable.is_none()
            && self.contents.is_empty()
            && self.pointers.iter().all(BTreeSet::is_empty)
    }

    /// A value without its noisy fields.
    #[must_use]
    pub fn apply(&self, step: usize, value: &Value) -> Value {
        let mut value = value.clone();
        for pointer in self.pointers.get(step).into_iter().flatten() {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = Value::String("<noise>".to_owned());
            }
        }
        value
    }
}

/// Compares two runs of the same subject.
#[must_use]
pub fn mask(first: &Observation, second: &Observation) -> Mask {
    let mut mask = Mask::default();
    if first.steps.len() != second.steps.len() {
        mask.unstable = Some(format!(
            "{} steps in one run, {} in the other",
            first.steps.len(),
            second.steps.len()
        ));
        return mask;
    }
    for (index, (one, two)) in first.steps.iter().zip(&second.steps).enumerate() {
        let mut pointers = BTreeSet::new();
        differences(&one.value, &two.value, String::new(), &mut pointers);
        mask.pointers.push(pointers);
        if one.class != two.class {
            mask.unstable = Some(format!(
                "step {}: {} in one run, {} in the other",
                index + 1,
                one.class.word(),
                two.class.word()
            ));
        }
        let paths = |delta: &[bisim_world::protocol::FsEffect]| -> Vec<_> {
            told(delta)
                .map(|effect| (effect.path.clone(), effect.kind))
                .collect()
        };
        if paths(&one.delta) != paths(&two.delta) {
            mask.unstable = Some(format!("step {}: other paths changed", index + 1));
        }
        for (one, two) in told(&one.delta).zip(told(&two.delta)) {
            if one != two {
                mask.contents.insert(one.path.clone());
            }
        }
    }
    mask
}

fn differences(left: &Value, right: &Value, at: String, found: &mut BTreeSet<String>) {
    match (left, right) {
        (Value::Object(one), Value::Object(two))
            if one.len() == two.len() && one.keys().eq(two.keys()) =>
        {
            for ((key, one), two) in one.iter().zip(two.values()) {
                let key = key.replace('~', "~0").replace('/', "~1");
                differences(one, two, format!("{at}/{key}"), found);
            }
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            for (index, (one, two)) in one.iter().zip(two).enumerate() {
                differences(one, two, format!("{at}/{index}"), found);
            }
        }
        (left, right) => {
            if !same_value(left, right) {
                found.insert(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Class, StepSeen};
    use serde_json::json;

    fn seen(class: Class, value: Value) -> Observation {
        Observation {
            steps: vec![StepSeen {
                class,
                code: String::new(),
                questions: Vec::new(),
                meanwhile: Vec::new(),
                value,
                delta: Vec::new(),
                parts: Vec::new(),
                canaries: Vec::new(),
            }],
            late: Vec::new(),
            effects: Vec::new(),
            network: Vec::new(),
            tripwires: Vec::new(),
        }
    }

    #[test]
    fn only_the_fields_that_differ_are_masked() {
        let one = seen(Class::Ran, json!({"id": "a1", "out": "x", "n": [1, 2]}));
        let two = seen(Class::Ran, json!({"id": "b2", "out": "x", "n": [1, 3]}));
        let mask = mask(&one, &two);
        assert_eq!(
            mask.pointers,
            [BTreeSet::from(["/id".to_owned(), "/n/1".to_owned()])]
        );
        assert_eq!(
            mask.apply(0, &json!({"id": "c", "out": "y", "n": [1, 9]})),
            json!({"id": "<noise>", "out": "y", "n": [1, "<noise>"]})
        );
    }

    #[test]
    fn equal_runs_mask_nothing() {
        let one = seen(Class::Ran, json!({"a": 1}));
        assert!(mask(&one, &one.clone()).is_empty());
    }

    #[test]
    fn a_decision_is_never_noise() {
        let mask = mask(&seen(Class::Ran, json!(1)), &seen(Class::Refused, json!(1)));
        assert_eq!(
            mask.unstable.as_deref(),
            Some("step 1: ran in one run, refused in the other")
        );
    }

    #[test]
    fn other_places_are_never_noise_and_other_content_of_the_same_place_is() {
        use crate::relation::tests::effect;
        use bisim_world::protocol::{EffectKind, FsEffect};
        let changed = |delta: Vec<FsEffect>| {
            let mut seen = seen(Class::Ran, json!(1));
            seen.steps[0].delta = delta;
            seen
        };
        let made = |path: &str| effect(path, EffectKind::Created);
        let other = FsEffect {
            digest: "other".into(),
            ..made("/w/a")
        };
        let mask_of = |one: Vec<FsEffect>, two: Vec<FsEffect>| mask(&changed(one), &changed(two));
        let masked = mask_of(vec![made("/w/a")], vec![other]);
        assert_eq!(masked.unstable, None);
        assert_eq!(masked.contents, BTreeSet::from(["/w/a".to_owned()]));
        for two in [
            vec![],
            vec![made("/w/b")],
            vec![effect("/w/a", EffectKind::Deleted)],
            vec![made("/w/a"), made("/w/b")],
        ] {
            assert_eq!(
                mask_of(vec![made("/w/a")], two).unstable.as_deref(),
                Some("step 1: other paths changed")
            );
        }
    }
}

//! Canonicalisation: what is *not* compared, as few named rules as possible.
//!
//! Everything that differs and is not taken out here, masked by a noise run
//! or named in the catalogue, is a divergence. A rule never looks at which
//! subject a trace comes from.

use bisim_world::protocol::{EffectKind, FsEffect};
use serde_json::Value;

/// One rule, for the documents and the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it takes out, and why that is right.
    pub doc: &'static str,
}

/// All rules.
pub const RULES: [Rule; 5] = [
    Rule {
        name: "json-spacing",
        doc: "a text that is JSON is compared value by value and key by key in order; the blanks between tokens are not",
    },
    Rule {
        name: "refusal-prose",
        doc: "refusals and questions are compared by decision; their wording is each subject's own",
    },
    Rule {
        name: "tool-error-is-a-result",
        doc: "whether a tool that ran calls its own answer a failure is in the answer, which is compared; the harness' label for it is not",
    },
    Rule {
        name: "step-delta",
        doc: "a step is charged with what it changed, not with what earlier steps left behind",
    },
    Rule {
        name: "effect-order",
        doc: "effects are compared as a set sorted by path; the order of writing inside one step is not observable",
    },
];

/// Rule `json-spacing`: the text as JSON, or as a JSON string.
#[must_use]
pub fn text_value(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        Ok(_) | Err(_) => Value::String(text.to_owned()),
    }
}

/// Whether two values are equal, the order of keys included.
#[must_use]
pub fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((lk, lv), (rk, rv))| lk == rk && same_value(lv, rv))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same_value(l, r))
        }
        (left, right) => left == right,
    }
}

/// Rule `step-delta`: what changed between two cumulative lists of effects.
#[must_use]
pub fn delta(before: &[FsEffect], after: &[FsEffect]) -> Vec<FsEffect> {
    let mut changes = Vec::new();
    for now in after {
        let was = before.iter().find(|was| was.path == now.path);
        let kind = match was {
            None => now.kind,
            Some(was) if was == now => continue,
            Some(was) => match (was.kind, now.kind) {
                (_, EffectKind::Deleted) => EffectKind::Deleted,
                (EffectKind::Deleted, _) => EffectKind::Created,
                (EffectKind::Created | EffectKind::Modified, _) if was.digest == now.digest => {
                    EffectKind::Metadata
                }
                _ if was.digest == now.digest && was.size == now.size => EffectKind::Metadata,
                _ => EffectKind::Modified,
            },
        };
        changes.push(FsEffect {
            kind,
            ..now.clone()
        });
    }
    for was in before {
        if !after.iter().any(|now| now.path == was.path) {
            // Back to the template's state: undoing is a change as well.
            let kind = match was.kind {
                EffectKind::Created => EffectKind::Deleted,
                EffectKind::Deleted => EffectKind::Created,
                EffectKind::Modified => EffectKind::Modified,
                EffectKind::Metadata => EffectKind::Metadata,
            };
            changes.push(FsEffect {
                path: was.path.clone(),
                kind,
                digest: String::new(),
                size: 0,
                mode: 0,
            });
        }
    }
    changes.sort();
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(path: &str, kind: EffectKind, digest: &str) -> FsEffect {
        FsEffect {
            path: path.into(),
            kind,
            digest: digest.into(),
            size: 1,
            mode: 0o644,
        }
    }

    #[test]
    fn json_spacing_is_not_compared_but_the_order_of_keys_is() {
        let same = |l: &str, r: &str| same_value(&text_value(l), &text_value(r));
        assert!(same(r#"{"a": 1, "b": [1,2]}"#, r#"{"a":1,"b":[1, 2]}"#));
        assert!(!same(r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#));
        assert!(!same("1", "1 "));
        assert!(same("plain", "plain"));
    }

    #[test]
    fn a_step_is_charged_only_with_what_it_changed() {
        let a = effect("/a", EffectKind::Created, "1");
        let check = |before: &[FsEffect], after: &[FsEffect], expected: &[(&str, EffectKind)]| {
            let got = delta(before, after);
            let got: Vec<_> = got.iter().map(|e| (e.path.as_str(), e.kind)).collect();
            assert_eq!(got, expected);
        };
        check(
            &[],
            std::slice::from_ref(&a),
            &[("/a", EffectKind::Created)],
        );
        check(std::slice::from_ref(&a), std::slice::from_ref(&a), &[]);
        check(
            std::slice::from_ref(&a),
            &[],
            &[("/a", EffectKind::Deleted)],
        );
        check(
            std::slice::from_ref(&a),
            &[effect("/a", EffectKind::Created, "2")],
            &[("/a", EffectKind::Modified)],
        );
        check(
            &[effect("/a", EffectKind::Deleted, "")],
            &[effect("/a", EffectKind::Modified, "2")],
            &[("/a", EffectKind::Created)],
        );
        check(
            &[effect("/a", EffectKind::Modified, "2")],
            &[effect("/a", EffectKind::Deleted, "")],
            &[("/a", EffectKind::Deleted)],
        );
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_a_sentence() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(rule.doc.len() > 20);
            assert!(
                RULES
                    .iter()
                    .skip(i + 1)
                    .all(|other| other.name != rule.name)
            );
        }
    }
}

//! What another release of Hermes makes of the same calls.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::replay::{Class, Replayed};

/// Rows that are kept.
const ROWS_MAX: usize = 500;

/// A second opinion.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Opinion {
    /// The release.
    pub version: String,
    /// Calls by class.
    pub classes: BTreeMap<Class, u64>,
    /// Calls of which another thing became than with the first release.
    pub rows: Vec<Differs>,
}

/// A call that is told apart by the release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Differs {
    /// The tool.
    pub tool: String,
    /// The call.
    pub call: String,
    /// What became of it with this release.
    pub with_it: String,
    /// And with the first.
    pub otherwise: String,
}

impl Opinion {
    /// Compares with the first release.
    #[must_use]
    pub fn of(version: &str, first: &Replayed, second: &Replayed) -> Self {
        let (first, classes) = (by_call(first), second.classes.clone());
        let rows = by_call(second)
            .into_iter()
            .filter_map(|(call, with_it)| {
                let otherwise = first.get(&call)?;
                (*otherwise != with_it).then(|| Differs {
                    tool: call.0.to_owned(),
                    call: call.1.to_owned(),
                    with_it: words(&with_it),
                    otherwise: words(otherwise),
                })
            })
            .take(ROWS_MAX)
            .collect();
        Self {
            version: version.to_owned(),
            classes,
            rows,
        }
    }
}

fn by_call(replayed: &Replayed) -> BTreeMap<(&str, &str), BTreeSet<Class>> {
    let mut all: BTreeMap<(&str, &str), BTreeSet<Class>> = BTreeMap::new();
    for row in &replayed.rows {
        all.entry((&row.tool, &row.call))
            .or_default()
            .insert(row.class);
    }
    all
}

fn words(classes: &BTreeSet<Class>) -> String {
    classes
        .iter()
        .map(|class| class.word())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::Opinion;
    use crate::migrate::replay::{Class, Replayed, Row};

    fn replayed(rows: &[(&str, Class)]) -> Replayed {
        let rows = rows.iter().map(|(call, class)| Row {
            class: *class,
            tool: "terminal".into(),
            call: (*call).into(),
            why: String::new(),
            count: 1,
        });
        Replayed {
            rows: rows.collect(),
            ..Replayed::default()
        }
    }

    #[test]
    fn only_calls_that_a_release_treats_otherwise_are_listed() {
        let first = replayed(&[
            ("a", Class::Same),
            ("b", Class::Attenuated),
            ("b", Class::Same),
        ]);
        let second = replayed(&[("a", Class::Same), ("b", Class::Same), ("c", Class::Same)]);
        let opinion = Opinion::of("0.16.0", &first, &second);
        assert_eq!(opinion.rows.len(), 1);
        assert_eq!(opinion.rows[0].call, "b");
        assert_eq!(opinion.rows[0].with_it, "same");
    }
}

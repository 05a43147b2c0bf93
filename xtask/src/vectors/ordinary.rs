//! How much ordinary work the vectors hold, and who made it.
//!
//! Ordinary is a case that only has to be served as Hermes serves it: nothing is
//! to be refused in it, and its flags name no defect but work that is not done
//! as it is there. Suites that only ask a function for its value count too.

use std::collections::BTreeMap;

use serde_json::Value;

/// Who made a case.
const ORIGINS: [&str; 3] = ["by hand", "recorded", "generated"];

/// Cases of ordinary work by suite, in the order of [`ORIGINS`].
#[derive(Default)]
pub struct Ordinary(BTreeMap<String, [usize; 3]>);

impl Ordinary {
    /// Counts a suite.
    pub fn count(&mut self, suite: &Value) {
        let kinds: BTreeMap<&str, &str> = suite["flags"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(flag, about)| (flag.as_str(), about["kind"].as_str().unwrap_or_default()))
            .collect();
        let is_of_values = kinds.values().all(|kind| *kind == "function");
        for case in suite["cases"].as_array().into_iter().flatten() {
            let of = |name: &str| match &case[name] {
                Value::Null => &suite["defaults"][name],
                own => own,
            };
            let mut flags = case["flags"].as_array().into_iter().flatten();
            let is_served = flags.all(|flag| {
                let kind = flag.as_str().and_then(|flag| kinds.get(flag));
                kind.is_some_and(|kind| *kind == "service" || is_of_values)
            });
            if !is_served || of("expect")["agent"] == "must-deny" {
                continue;
            }
            let origin = match of("source")["from"].as_str() {
                Some("generated") => 2,
                Some(rows) if rows.starts_with("cases/") => 1,
                Some(_) | None => 0,
            };
            let name = suite["suite"].as_str().unwrap_or_default().to_owned();
            if let Some(count) = self.0.entry(name).or_default().get_mut(origin) {
                *count += 1;
            }
        }
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = format!(
            "\n## Ordinary work\n\nCases that only have to be served as Hermes serves them, by who made them; \
             `cargo bisim check` says of each suite how many are equal.\n\n| suite | {} | all |\n|---|---:|---:|---:|---:|\n",
            ORIGINS.join(" | ")
        );
        let mut together = [0; 3];
        for (suite, counts) in &self.0 {
            text.push_str(&row(suite, counts));
            for (all, count) in together.iter_mut().zip(counts) {
                *all += count;
            }
        }
        text.push_str(&row("together", &together));
        text
    }
}

fn row(name: &str, counts: &[usize; 3]) -> String {
    let [hand, recorded, generated] = counts;
    let all: usize = counts.iter().sum();
    format!("| {name} | {hand} | {recorded} | {generated} | {all} |\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Ordinary;

    fn counted(suite: &serde_json::Value) -> String {
        let mut ordinary = Ordinary::default();
        ordinary.count(suite);
        ordinary.table()
    }

    #[test]
    fn only_what_has_to_be_served_is_ordinary_and_is_counted_by_its_origin() {
        let table = counted(&json!({
            "suite": "s",
            "flags": {"work": {"kind": "service"}, "hole": {"kind": "escape"}},
            "defaults": {"source": {"from": "generated"}},
            "cases": [
                {"flags": ["work"]},
                {"flags": ["work"], "source": {"from": "cases/x.jsonl"}},
                {"flags": ["work"], "source": {"from": "a person"}},
                {"flags": ["work", "hole"]},
                {"flags": ["work"], "expect": {"agent": "must-deny"}},
                {},
            ],
        }));
        assert!(table.contains("| s | 1 | 1 | 2 | 4 |"), "{table}");
        assert!(table.contains("| together | 1 | 1 | 2 | 4 |"), "{table}");
    }

    #[test]
    fn values_are_ordinary_where_a_suite_asks_for_nothing_else() {
        let suite = |other: &str| {
            json!({
                "suite": "s",
                "flags": {"value": {"kind": "function"}, "other": {"kind": other}},
                "defaults": {},
                "cases": [{"flags": ["value"]}],
            })
        };
        assert!(counted(&suite("function")).contains("| s | 1 | 0 | 0 | 1 |"));
        assert!(!counted(&suite("detector")).contains("| s |"));
    }
}

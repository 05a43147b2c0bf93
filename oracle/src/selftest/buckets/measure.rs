//! Purity and completeness of buckets, on findings whose cause is known.

use std::collections::BTreeMap;
use std::path::Path;

use hermitcrab_core::fault::Fault;
use serde::{Deserialize, Serialize};

use crate::campaign::escape::Escape;
use crate::campaign::{Symptom, of_law};
use crate::exit;
use crate::generate::{Specimen, Variant};

/// What both are meant to reach.
const SHARE_MEANT: f64 = 0.95;

/// A finding whose cause is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Labelled {
    /// The cause.
    label: String,
    /// What was seen.
    seen: Seen,
}

/// What a finding looks like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Seen {
    /// A generated case.
    Case { found_as: String, symptom: Symptom },
    /// An input that breaks a law.
    Law { law: String, why: String },
    /// A command that Hermes let through.
    Escape {
        found_as: String,
        needed: String,
        matched: Vec<String>,
    },
}

impl Labelled {
    pub(super) fn finding(fault: Fault, specimen: &Specimen, symptom: Symptom) -> Self {
        let found_as = specimen.to_string();
        Self {
            label: fault.name().to_owned(),
            seen: Seen::Case { found_as, symptom },
        }
    }

    #[cfg(feature = "planted-faults")]
    pub(super) fn law(fault: Fault, law: &str, why: &str) -> Self {
        let (law, why) = (law.to_owned(), why.to_owned());
        Self {
            label: fault.name().to_owned(),
            seen: Seen::Law { law, why },
        }
    }

    pub(super) fn escape(
        label: String,
        variant: &Variant,
        escape: &Escape,
        matched: &[String],
    ) -> Self {
        Self {
            label,
            seen: Seen::Escape {
                found_as: variant.to_string(),
                needed: escape.needed.to_string(),
                matched: matched.to_vec(),
            },
        }
    }

    fn bucket(&self) -> String {
        match &self.seen {
            Seen::Case { symptom, .. } => symptom.bucket(),
            Seen::Law { law, why } => of_law(law, why),
            Seen::Escape {
                needed, matched, ..
            } => Variant::named(needed).map_or_else(String::new, |needed| {
                let is_flagged = false;
                Escape { needed, is_flagged }.bucket(matched)
            }),
        }
    }

    /// The cause as far as one campaign can meet it: a fault is found by generated cases
    /// and by each law in campaigns of their own, whose findings are never put together.
    fn cause(&self) -> String {
        match &self.seen {
            Seen::Law { law, .. } => format!("{}, law {law}", self.label),
            Seen::Case { .. } | Seen::Escape { .. } => format!("{}, {}", self.label, self.kind()),
        }
    }

    const fn kind(&self) -> &'static str {
        match &self.seen {
            Seen::Case { .. } => "generated cases",
            Seen::Law { .. } => "broken laws",
            Seen::Escape { .. } => "escapes from Hermes",
        }
    }
}

/// How well labels and buckets agree.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Agreement {
    findings: usize,
    labels: usize,
    buckets: usize,
    /// Findings that have the label most of their bucket have.
    pure: usize,
    /// Findings that are in the bucket most of their label are in.
    complete: usize,
}

impl Agreement {
    fn of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        let count = |all: &mut dyn Iterator<Item = (&'a str, &'a str)>| {
            let mut table: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
            for (row, column) in all {
                *table.entry(row).or_default().entry(column).or_default() += 1;
            }
            let largest = |row: &BTreeMap<&str, usize>| row.values().copied().max().unwrap_or(0);
            (table.len(), table.values().map(largest).sum())
        };
        let (labels, complete) = count(&mut pairs.clone());
        let (buckets, pure) = count(&mut pairs.clone().map(|(label, bucket)| (bucket, label)));
        Self {
            findings: pairs.count(),
            labels,
            buckets,
            pure,
            complete,
        }
    }

    fn shares(self) -> (f64, f64) {
        let share = |part: usize| part as f64 / self.findings.max(1) as f64;
        (share(self.pure), share(self.complete))
    }

    fn is_met(self) -> bool {
        let (purity, completeness) = self.shares();
        self.findings > 0 && purity >= SHARE_MEANT && completeness >= SHARE_MEANT
    }
}

/// Prints both, by kind of finding and for all of them; the exit code.
pub(super) fn report(all: &[Labelled]) -> u8 {
    let pairs: Vec<(&'static str, String, String)> = all
        .iter()
        .map(|one| (one.kind(), one.cause(), one.bucket()))
        .collect();
    let mut kinds: Vec<&str> = pairs.iter().map(|(kind, ..)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut met = true;
    println!(
        "{:20} {:>8} {:>7} {:>8} {:>7} {:>13}",
        "findings", "number", "causes", "buckets", "purity", "completeness"
    );
    for kind in kinds.into_iter().map(Some).chain([None]) {
        let some = pairs
            .iter()
            .filter(|(of, ..)| kind.is_none_or(|kind| kind == *of));
        let agreement =
            Agreement::of(some.map(|(_, label, bucket)| (label.as_str(), bucket.as_str())));
        let (purity, completeness) = agreement.shares();
        met &= agreement.is_met();
        println!(
            "{:20} {:>8} {:>7} {:>8} {purity:>7.3} {completeness:>13.3}",
            kind.unwrap_or("all"),
            agreement.findings,
            agreement.labels,
            agreement.buckets,
        );
    }
    for line in strays(&pairs) {
        println!("{line}");
    }
    if met {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    }
}

/// Buckets that mix causes, and causes that are spread over buckets.
fn strays(pairs: &[(&'static str, String, String)]) -> Vec<String> {
    let mut buckets: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut labels: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (_, label, bucket) in pairs {
        *buckets.entry(bucket).or_default().entry(label).or_default() += 1;
        *labels.entry(label).or_default().entry(bucket).or_default() += 1;
    }
    let told = |what: &'static str, table: BTreeMap<&str, BTreeMap<&str, usize>>| {
        let mixed = table.into_iter().filter(|(_, row)| row.len() > 1);
        mixed
            .map(|(name, row)| {
                let row: Vec<String> = row
                    .iter()
                    .map(|(other, count)| format!("{count} x {other}"))
                    .collect();
                format!("{what} {name}: {}", row.join("; "))
            })
            .collect::<Vec<_>>()
    };
    let mut lines = told("mixed bucket", buckets);
    lines.extend(told("spread cause", labels));
    lines
}

/// Writes them, a line each.
pub(super) fn keep(file: &Path, all: &[Labelled]) -> Result<(), String> {
    let mut text = String::new();
    for one in all {
        text.push_str(&serde_json::to_string(one).map_err(|error| error.to_string())?);
        text.push('\n');
    }
    std::fs::write(file, text)
        .map_err(|error| format!("cannot write `{}`: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURITY_SEEN: f64 = 0.98;
    const COMPLETENESS_SEEN: f64 = 0.95;

    #[test]
    fn mixed_buckets_cost_purity_and_spread_causes_completeness() {
        let of = |pairs: &[(&'static str, &'static str)]| Agreement::of(pairs.iter().copied());
        let whole = of(&[("a", "1"), ("a", "1"), ("b", "2")]);
        assert_eq!(whole.shares(), (1.0, 1.0));
        assert!(whole.is_met());
        let mixed = of(&[("a", "1"), ("a", "1"), ("a", "1"), ("b", "1")]);
        assert_eq!(mixed.shares(), (0.75, 1.0));
        let spread = of(&[("a", "1"), ("a", "2"), ("a", "3"), ("a", "1")]);
        assert_eq!(spread.shares(), (1.0, 0.5));
        assert!(!mixed.is_met() && !spread.is_met() && !of(&[]).is_met());
    }

    /// Findings of two seeds whose causes are known, as `--write` keeps them.
    const RECORDED: &str = include_str!("../../../../vectors/labelled-findings.jsonl");

    #[test]
    fn buckets_of_recorded_findings_are_as_pure_and_as_complete_as_the_documents_say() {
        let all: Vec<Labelled> = RECORDED
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(all.len() >= 300, "{}", all.len());
        let pairs: Vec<(String, String)> =
            all.iter().map(|one| (one.cause(), one.bucket())).collect();
        let pairs = pairs
            .iter()
            .map(|(label, bucket)| (label.as_str(), bucket.as_str()));
        let (purity, completeness) = Agreement::of(pairs).shares();
        assert!(purity >= PURITY_SEEN, "{purity}");
        assert!(completeness >= COMPLETENESS_SEEN, "{completeness}");
    }
}

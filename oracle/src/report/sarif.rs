//! SARIF 2.1.0, for code-scanning pages: one result per failing bucket.
//!
//! A bucket is (suite, verdict code). Pages show a few thousand results at most
//! and compare runs by fingerprint, so a thousand cases with one cause are one
//! result that names a few of them.

use std::collections::BTreeMap;

use serde_json::json;
use serde_sarif::sarif::Sarif;
use sha2::{Digest, Sha256};

use super::row::{Row, VerdictClass};

/// Cases named in a bucket's message.
const CASES_NAMED_MAX: usize = 5;

/// Writes failing and inconclusive rows as one SARIF document.
///
/// # Errors
/// The document did not fit the SARIF types, or could not be serialised.
pub fn to_json(rows: &[Row], hermes_version: &str) -> Result<String, serde_json::Error> {
    let mut buckets: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        match row.verdict_class {
            VerdictClass::Fail | VerdictClass::Inconclusive => {
                buckets
                    .entry((&row.suite, &row.verdict_code))
                    .or_default()
                    .push(row);
            }
            VerdictClass::Pass | VerdictClass::Skipped => {}
        }
    }
    let mut rules: Vec<&str> = buckets.keys().map(|(_, code)| *code).collect();
    rules.sort_unstable();
    rules.dedup();
    let results: Vec<_> = buckets
        .iter()
        .map(|(key, rows)| result(*key, rows))
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "bisim",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|code| json!({
                    "id": code,
                    "shortDescription": {"text": format!("hermitcrab against hermes-agent {hermes_version}: {code}")},
                })).collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    });
    // Through the typed form, so that what is written is SARIF by construction.
    let sarif: Sarif = serde_json::from_value(document)?;
    serde_json::to_string_pretty(&sarif)
}

fn result((suite, code): (&str, &str), rows: &[&Row]) -> serde_json::Value {
    let named: Vec<&str> = rows
        .iter()
        .take(CASES_NAMED_MAX)
        .map(|row| row.case_id.as_str())
        .collect();
    let more = rows.len().saturating_sub(named.len());
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    let first = rows
        .first()
        .map_or(("", ""), |row| (row.reason.as_str(), row.replay.as_str()));
    let inconclusive = rows
        .iter()
        .all(|row| row.verdict_class == VerdictClass::Inconclusive);
    let fingerprint = Sha256::digest(format!("{suite}\0{code}").as_bytes());
    json!({
        "ruleId": code,
        "level": if inconclusive { "warning" } else { "error" },
        "message": {"text": format!(
            "{} of suite {suite}: {}{more}. {}. Again: {}",
            if rows.len() == 1 { "1 case".to_owned() } else { format!("{} cases", rows.len()) },
            named.join(", "), first.0.trim_end_matches('.'), first.1
        )},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": format!("vectors/suites/{suite}.json")}}}],
        "partialFingerprints": {"bucket/v1": data_encoding::HEXLOWER.encode(&fingerprint)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case_id: usize, verdict_class: VerdictClass, verdict_code: &str) -> Row {
        Row {
            suite: "bypass".into(),
            case_id: format!("case-{case_id}"),
            verdict_code: verdict_code.into(),
            verdict_class,
            reason: "a file outside every grant was written".into(),
            seconds: 0.1,
            replay: format!("cargo bisim check --case case-{case_id}"),
        }
    }

    #[test]
    fn failures_are_bucketed_and_passes_left_out() {
        let mut rows: Vec<Row> = (0..9)
            .map(|n| row(n, VerdictClass::Fail, "weaker"))
            .collect();
        rows.push(row(9, VerdictClass::Pass, "equal"));
        rows.push(row(10, VerdictClass::Inconclusive, "inconclusive:timeout"));
        let text = to_json(&rows, "0.19.0").unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let results = document["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        let levels: Vec<_> = results
            .iter()
            .map(|r| r["level"].as_str().unwrap())
            .collect();
        assert_eq!(levels, ["warning", "error"]);
        assert!(
            results[1]["message"]["text"]
                .as_str()
                .unwrap()
                .contains("9 cases of suite bypass")
        );
        assert!(
            results[1]["message"]["text"]
                .as_str()
                .unwrap()
                .contains("and 4 more")
        );
        assert!(!text.contains("case-9"));
    }

    #[test]
    fn the_fingerprint_names_the_bucket_and_not_the_cases() {
        let print = |rows: &[Row]| {
            let document: serde_json::Value =
                serde_json::from_str(&to_json(rows, "0.19.0").unwrap()).unwrap();
            document["runs"][0]["results"][0]["partialFingerprints"]["bucket/v1"].clone()
        };
        let one = print(&[row(1, VerdictClass::Fail, "weaker")]);
        assert_eq!(one, print(&[row(2, VerdictClass::Fail, "weaker")]));
        assert_ne!(one, print(&[row(1, VerdictClass::Fail, "different")]));
    }
}

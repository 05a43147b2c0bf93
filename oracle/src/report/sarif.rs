//! SARIF 2.1.0, for code-scanning pages: one result per failing bucket.
//!
//! A bucket is (suite, verdict code). Pages show a few thousand results at most
//! and compare runs by fingerprint, so a thousand cases with one cause are one
//! result that names a few of them.

use std::collections::BTreeMap;

use serde_json::json;
use serde_sarif::sarif::Sarif;
use sha2::{Digest, Sha256};

use super::row::{CATALOGUE, Row, VerdictClass};

/// What to do about any of them.
const HELP: &str = "The message names cases and a command that shows the first of them call by \
    call. docs/CONFORMANCE.md says what each verdict means and how a difference is explained.";
/// The fingerprint code-scanning pages go by; without it they take one of the line's text.
const KNOWN_BY_PAGES: &str = "primaryLocationLineHash";
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
    let rules: BTreeMap<&str, &str> = buckets
        .iter()
        .map(|((_, code), rows)| (*code, rows.first().map_or("", |row| row.means)))
        .collect();
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
                "rules": rules.iter().map(|(code, means)| json!({
                    "id": code,
                    "shortDescription": {"text": format!("hermitcrab against hermes-agent {hermes_version}: {code}")},
                    "fullDescription": {"text": format!("{code}: {means}.")},
                    "help": {"text": HELP},
                })).collect::<Vec<_>>(),
            }},
            "results": results,
            // What a page does not show and a program counts: all verdicts, of which the
            // results are those that do not pass.
            "properties": {"suites": counts(rows)},
        }],
    });
    // Through the typed form, so that what is written is SARIF by construction.
    let sarif: Sarif = serde_json::from_value(document)?;
    serde_json::to_string_pretty(&sarif)
}

/// How many cases of each suite had each kind of verdict, or did not run.
fn counts(rows: &[Row]) -> BTreeMap<&str, BTreeMap<&str, usize>> {
    let mut counts: BTreeMap<_, BTreeMap<_, usize>> = BTreeMap::new();
    for row in rows {
        let suite = counts.entry(row.suite.as_str()).or_default();
        *suite.entry(row.kind()).or_default() += 1;
    }
    counts
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
    // With several cases the reason is said of the one it is of: theirs may be others.
    let first = rows.first().map_or((String::new(), ""), |row| {
        let of = if rows.len() > 1 {
            format!("{}: ", row.case_id)
        } else {
            String::new()
        };
        (format!("{of}{}", row.reason), row.replay.as_str())
    });
    let inconclusive = rows
        .iter()
        .all(|row| row.verdict_class == VerdictClass::Inconclusive);
    let fingerprint = Sha256::digest(format!("{suite}\0{code}").as_bytes());
    let fingerprint = data_encoding::HEXLOWER.encode(&fingerprint);
    json!({
        "ruleId": code,
        "level": if inconclusive { "warning" } else { "error" },
        "message": {"text": format!(
            "{} of {}: {}{more}. {}. Again: {}",
            match (suite, rows.len()) {
                (CATALOGUE, 1) => "1 entry".to_owned(),
                (CATALOGUE, count) => format!("{count} entries"),
                (_, 1) => "1 case".to_owned(),
                (_, count) => format!("{count} cases"),
            },
            if suite == CATALOGUE { "the catalogue".to_owned() } else { format!("suite {suite}") },
            named.join(", "), first.0.trim_end_matches('.'), first.1
        )},
        "occurrenceCount": rows.len(),
        // The message names a few for a reader.
        "properties": {"cases": rows.iter().map(|row| row.case_id.as_str()).collect::<Vec<_>>()},
        "locations": [location(suite, rows.first())],
        "relatedLocations": rows
            .iter()
            .skip(1)
            .take(CASES_NAMED_MAX - 1)
            .map(|row| location(suite, Some(row)))
            .collect::<Vec<_>>(),
        "partialFingerprints": {"bucket/v1": fingerprint, KNOWN_BY_PAGES: format!("{fingerprint}:1")},
    })
}

/// A page shows an alert at a line or not at all, so there is always one.
fn location(suite: &str, row: Option<&&Row>) -> serde_json::Value {
    let place = row.and_then(|row| row.place.as_ref());
    let uri = match place {
        Some(place) => uri(&place.file),
        None => uri(&format!("vectors/suites/{suite}.json")),
    };
    let line = place.map_or(1, |place| place.line);
    let named = row.map_or_else(
        || suite.to_owned(),
        |row| format!("{}: {}", row.case_id, row.reason),
    );
    json!({
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": line, "startColumn": 1, "endLine": line, "endColumn": 2},
        },
        "message": {"text": named},
    })
}

/// A path as a reference: below the repository relative, else by its scheme.
fn uri(file: &str) -> String {
    let mut uri = if file.starts_with('/') { "file://" } else { "" }.to_owned();
    for byte in file.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::place::Place;

    fn row(case_id: usize, verdict_class: VerdictClass, verdict_code: &str) -> Row {
        Row {
            suite: "bypass".into(),
            case_id: format!("case-{case_id}"),
            verdict_code: verdict_code.into(),
            verdict_class,
            means: "what it means",
            reason: "a file outside every grant was written".into(),
            place: Some(Place {
                file: "vectors/regressions/by pass.json".into(),
                line: case_id + 10,
            }),
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
    fn a_page_knows_each_bucket_again_and_none_for_another() {
        let known = |rows: &[Row]| -> Vec<String> {
            let document: serde_json::Value =
                serde_json::from_str(&to_json(rows, "0.19.0").unwrap()).unwrap();
            let results = document["runs"][0]["results"].as_array().unwrap();
            results
                .iter()
                .map(|told| told["partialFingerprints"][KNOWN_BY_PAGES].to_string())
                .collect()
        };
        let weaker = row(0, VerdictClass::Fail, "weaker");
        let of_another_suite = Row {
            suite: "smoke".into(),
            ..row(1, VerdictClass::Fail, "weaker")
        };
        let of_another_code = row(2, VerdictClass::Fail, "beyond-grant");
        let one = known(std::slice::from_ref(&weaker));
        // More of the same is the same alert.
        let again = Row {
            case_id: "case-9".into(),
            ..weaker.clone()
        };
        assert_eq!(known(&[weaker.clone(), again]), one);
        let mut all = known(&[weaker, of_another_suite, of_another_code]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all.contains(&one[0]));
    }

    #[test]
    fn an_alert_stands_at_the_line_of_its_case_and_says_what_it_means() {
        let rows: Vec<Row> = (0..9)
            .map(|n| row(n, VerdictClass::Fail, "weaker"))
            .collect();
        let document: serde_json::Value =
            serde_json::from_str(&to_json(&rows, "0.19.0").unwrap()).unwrap();
        let run = &document["runs"][0];
        let told = &run["results"][0];
        let at = |place: &serde_json::Value| {
            let place = &place["physicalLocation"];
            let uri = place["artifactLocation"]["uri"]
                .as_str()
                .unwrap()
                .to_owned();
            (uri, place["region"]["startLine"].as_u64().unwrap())
        };
        let file = "vectors/regressions/by%20pass.json".to_owned();
        assert_eq!(at(&told["locations"][0]), (file.clone(), 10));
        let more = told["relatedLocations"].as_array().unwrap();
        let more: Vec<_> = more.iter().map(at).collect();
        assert_eq!(
            more,
            (11..15)
                .map(|line| (file.clone(), line))
                .collect::<Vec<_>>()
        );
        // Each says its own reason, and the message whose the first one is.
        assert_eq!(
            told["relatedLocations"][0]["message"]["text"],
            "case-1: a file outside every grant was written"
        );
        let message = told["message"]["text"].as_str().unwrap();
        assert!(message.contains(". case-0: a file outside"), "{message}");
        let rule = &run["tool"]["driver"]["rules"][0];
        assert_eq!(rule["fullDescription"]["text"], "weaker: what it means.");
        assert!(rule["help"]["text"].as_str().is_some());
        assert!(told["partialFingerprints"][KNOWN_BY_PAGES].is_string());
        assert_eq!(uri("/a b"), "file:///a%20b");
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

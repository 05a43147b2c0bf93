//! JUnit XML, for the test tabs of CI systems: one test case per vector.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::row::{Row, VerdictClass, name, seen};

/// Writes all rows as one JUnit document.
///
/// A failing verdict is a failure, an inconclusive one an error, a skip a skip;
/// nothing else is a pass.
///
/// # Errors
/// The document could not be serialised.
pub fn to_xml(rows: &[Row]) -> Result<String, quick_junit::SerializeError> {
    let mut by_suite: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_suite.entry(&row.suite).or_default().push(row);
    }
    let mut report = Report::new("bisim");
    report.set_time(seconds(rows.iter().map(|row| row.seconds).sum()));
    for (suite, rows) in by_suite {
        let mut test_suite = TestSuite::new(name(suite));
        test_suite.set_time(seconds(rows.iter().map(|row| row.seconds).sum()));
        for row in rows {
            test_suite.add_test_case(test_case(row));
        }
        report.add_test_suite(test_suite);
    }
    report.to_string()
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn test_case(row: &Row) -> TestCase {
    let status = match row.verdict_class {
        VerdictClass::Pass => TestCaseStatus::success(),
        VerdictClass::Skipped => TestCaseStatus::skipped(),
        VerdictClass::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        VerdictClass::Inconclusive => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let mut case = TestCase::new(name(&row.case_id), status);
    case.set_classname(name(&row.suite));
    case.set_time(seconds(row.seconds));
    if let Some(place) = &row.place {
        case.extra.insert("file".into(), name(&place.file).into());
        case.extra
            .insert("line".into(), place.line.to_string().into());
    }
    match row.verdict_class {
        VerdictClass::Pass => {
            case.set_system_out(seen(&format!("{}: {}", row.verdict_code, row.reason)));
        }
        VerdictClass::Skipped => {
            case.status.set_message(seen(&row.reason));
        }
        VerdictClass::Fail | VerdictClass::Inconclusive => {
            case.status
                .set_message(seen(&format!("{}: {}", row.verdict_code, row.reason)))
                .set_type(name(&row.verdict_code))
                .set_description(seen(&format!(
                    "{}\n\n{}: {}.{}\nAgain: {}",
                    row.reason,
                    row.verdict_code,
                    row.means,
                    place(row),
                    row.replay
                )));
        }
    }
    case
}

/// Where it is written, on a line of its own: not every reader knows the attributes.
fn place(row: &Row) -> String {
    row.place
        .as_ref()
        .map(|place| format!("\nWritten in {}:{}", place.file, place.line))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::place::Place;

    fn row(case_id: &str, verdict_class: VerdictClass, verdict_code: &str) -> Row {
        Row {
            suite: "bypass".into(),
            case_id: case_id.into(),
            verdict_code: verdict_code.into(),
            verdict_class,
            means: "what it means",
            reason: "because & <why>".into(),
            place: Some(Place {
                file: "vectors/suites/bypass.json".into(),
                line: 7,
            }),
            seconds: 0.25,
            replay: format!("cargo bisim check --case {case_id}"),
        }
    }

    #[test]
    fn each_class_is_counted_as_what_it_is() {
        let xml = to_xml(&[
            row("a", VerdictClass::Pass, "equal"),
            row("b", VerdictClass::Fail, "weaker"),
            row("c", VerdictClass::Inconclusive, "inconclusive:timeout"),
            row("d", VerdictClass::Skipped, "skipped"),
        ])
        .unwrap();
        assert!(xml.contains(r#"tests="4""#), "{xml}");
        assert!(xml.contains(r#"failures="1""#), "{xml}");
        assert!(xml.contains(r#"errors="1""#), "{xml}");
        assert!(
            xml.contains(r#"disabled="1""#) || xml.contains(r#"skipped="1""#),
            "{xml}"
        );
        assert!(xml.contains("because &amp; &lt;why"), "{xml}");
        assert!(xml.contains("cargo bisim check --case b"), "{xml}");
        let told = "weaker: what it means.\nWritten in vectors/suites/bypass.json:7\nAgain: ";
        assert!(xml.contains(told), "{xml}");
        let attributes = r#"file="vectors/suites/bypass.json" line="7""#;
        assert_eq!(xml.matches(attributes).count(), 4, "{xml}");
    }
}

//! JUnit XML, for the test tabs of CI systems: one test case per vector.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::row::{Row, VerdictClass};

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
    for (suite, rows) in by_suite {
        let mut test_suite = TestSuite::new(suite);
        for row in rows {
            test_suite.add_test_case(test_case(row));
        }
        report.add_test_suite(test_suite);
    }
    report.to_string()
}

fn test_case(row: &Row) -> TestCase {
    let status = match row.verdict_class {
        VerdictClass::Pass => TestCaseStatus::success(),
        VerdictClass::Skipped => TestCaseStatus::skipped(),
        VerdictClass::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        VerdictClass::Inconclusive => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let mut case = TestCase::new(row.case_id.as_str(), status);
    case.set_classname(row.suite.as_str());
    case.set_time(Duration::try_from_secs_f64(row.seconds).unwrap_or_default());
    match row.verdict_class {
        VerdictClass::Pass => {
            case.set_system_out(format!("{}: {}", row.verdict_code, row.reason));
        }
        VerdictClass::Skipped => {
            case.status.set_message(row.reason.as_str());
        }
        VerdictClass::Fail | VerdictClass::Inconclusive => {
            case.status
                .set_message(format!("{}: {}", row.verdict_code, row.reason))
                .set_type(row.verdict_code.as_str())
                .set_description(format!("{}\n\nAgain: {}", row.reason, row.replay));
        }
    }
    case
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case_id: &str, verdict_class: VerdictClass, verdict_code: &str) -> Row {
        Row {
            suite: "bypass".into(),
            case_id: case_id.into(),
            verdict_code: verdict_code.into(),
            verdict_class,
            reason: "because & <why>".into(),
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
    }
}

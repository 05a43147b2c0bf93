//! Each planted fault of this package really makes the agent wrong: a check
//! that looks at what it changes would notice. Runs with the feature only.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::runtime::Fate;
use hermitcrab_core::{
    fault::{Fault, plant},
    outcome::DenialCode,
};
use serde_json::json;
use support::Bench;

/// One test for all: a fault is planted in the whole process.
#[test]
fn planted_faults_show_and_vanish_with_the_plant() {
    let removal = json!({"command": "rm a.txt"});

    let mut bench = Bench::new();
    bench.put("a.txt", "a\n");
    plant(Some(Fault::CommitWithoutAsking));
    let report = bench.call("terminal", removal.clone());
    assert_eq!((report.fate, report.questions.len()), (Fate::Ran, 0));
    assert_eq!(bench.text("a.txt"), None);

    bench.put("a.txt", "a\n");
    plant(Some(Fault::DenialLooksLikeSuccess));
    let report = bench.call("terminal", removal.clone());
    assert_eq!(report.fate, Fate::Ran);
    assert!(report.text.contains("\"exit_code\": 0"), "{}", report.text);
    assert!(bench.text("a.txt").is_some());

    plant(Some(Fault::UnknownAnswerIsYes));
    bench.user.words.borrow_mut().push_back("perhaps");
    assert_eq!(bench.call("terminal", removal.clone()).fate, Fate::Ran);
    assert_eq!(bench.text("a.txt"), None);

    bench.put("long.txt", "one\ntwo\nthree\nfour\n");
    plant(Some(Fault::ReadTruncates));
    let report = bench.call("read_file", json!({"path": "long.txt"}));
    assert!(
        !report.text.contains("four") && report.text.contains("\"truncated\": false"),
        "{}",
        report.text
    );

    plant(Some(Fault::SessionEndKeepsGrants));
    bench.grant("fs.*", ".");
    bench.runtime.end_session().unwrap();
    bench.runtime.begin_session().unwrap();
    bench.put("a.txt", "a\n");
    assert_eq!(bench.call("terminal", removal.clone()).fate, Fate::Ran);
    assert_eq!(bench.text("a.txt"), None);

    plant(None);
    let mut bench = Bench::new();
    bench.put("a.txt", "a\n");
    let report = bench.call("terminal", removal);
    assert_eq!(report.fate, Fate::RanDiscarded(DenialCode::RejectedByUser));
    assert!(bench.text("a.txt").is_some());
}

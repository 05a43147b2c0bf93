//! A failing verdict, asked again before it counts.
//!
//! Machines are shared, and some cases start programs and wait for them. A case
//! that does not pass is repeated alone, while no other case runs: what it says
//! again stands. What it does not say again is `inconclusive:unsteady`, with
//! everything it said kept in the result, and a gate bears only a stated number
//! of those. An unsafe verdict needs no second witness: seen once, it stands.

use std::sync::{PoisonError, RwLock};

use crate::case::Case;
use crate::check::run::{Judge, run_case};
use crate::result::{Attempt, CaseResult};
use crate::subject::Subjects;
use crate::verdict::{UNSTEADY, Verdict};

/// How often a case is repeated alone before it counts as unsteady.
const REPEATS: usize = 2;

/// Held shared while a case runs, and alone while one is repeated.
pub type Quiet = RwLock<()>;

/// Runs a case, and repeats it alone if its verdict fails.
#[must_use]
pub fn run_steady(
    case: &Case,
    judge: &Judge<'_>,
    subjects: &mut Subjects,
    quiet: &Quiet,
) -> CaseResult {
    let first = {
        let _shared = quiet.read().unwrap_or_else(PoisonError::into_inner);
        run_case(case, judge, subjects)
    };
    if first.verdict.kind.passes() {
        return first;
    }
    let _alone = quiet.write().unwrap_or_else(PoisonError::into_inner);
    let mut repeats = Vec::new();
    while repeats.len() < REPEATS {
        let again = run_case(case, judge, subjects);
        let said = again.label == first.label;
        repeats.push(again);
        if said {
            break;
        }
    }
    settle(first, repeats)
}

/// What a first result and its repetitions come to.
fn settle(first: CaseResult, repeats: Vec<CaseResult>) -> CaseResult {
    let attempts: Vec<Attempt> = std::iter::once(&first)
        .chain(&repeats)
        .map(Attempt::of)
        .collect();
    let again = repeats.iter().any(|one| one.label == first.label);
    let mut all = std::iter::once(&first).chain(&repeats);
    let (kept, stands) = if let Some(unsafe_one) = all.find(|one| one.verdict.kind.is_unsafe()) {
        (unsafe_one.clone(), true)
    } else if again || repeats.is_empty() {
        (first, true)
    } else if let [.., before, last] = repeats.as_slice()
        && before.label == last.label
        && !last.verdict.kind.passes()
    {
        (last.clone(), true)
    } else {
        // The traces of the odd one are kept, since those are what a person
        // needs; what the catalogue explains is taken from what came after.
        let explained_by = repeats
            .into_iter()
            .next_back()
            .map_or_else(Vec::new, |last| last.explained_by);
        (
            CaseResult {
                explained_by,
                ..first
            },
            false,
        )
    };
    let verdict = if stands {
        kept.verdict
    } else {
        let said: Vec<&str> = attempts.iter().map(|one| one.label.as_str()).collect();
        let why = attempts.first().map_or("", |one| one.why.as_str());
        Verdict::inconclusive(
            UNSTEADY,
            format!("said {} in turn; first: {why}", said.join(", ")),
        )
    };
    CaseResult {
        label: verdict.label(),
        verdict,
        attempts,
        ..kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Kind;

    fn said(kind: Kind, id: &str) -> CaseResult {
        let verdict = Verdict {
            kind,
            ids: vec![id.to_owned()],
            why: format!("because of {id}"),
            fingerprint: String::new(),
            faults: Vec::new(),
        };
        CaseResult {
            id: "case".to_owned(),
            suite: "suite".to_owned(),
            label: verdict.label(),
            verdict,
            explained_by: vec![id.to_owned()],
            judgement: None,
            hermes: None,
            agent: None,
            adversarial: false,
            hermes_effect: false,
            agent_effect: false,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn what_is_said_again_stands() {
        let odd = said(Kind::Different, "a");
        let result = settle(odd.clone(), vec![odd]);
        assert_eq!(result.label, "different:a");
        assert_eq!(result.attempts.len(), 2);
        let late = settle(
            said(Kind::Different, "a"),
            vec![said(Kind::Equal, "b"), said(Kind::Different, "a")],
        );
        assert_eq!(late.label, "different:a");
    }

    #[test]
    fn what_is_never_said_again_is_unsteady_and_keeps_all_that_was_said() {
        let result = settle(
            said(Kind::Different, "a"),
            vec![said(Kind::Stricter, "b"), said(Kind::Stricter, "b")],
        );
        assert_eq!(result.label, "inconclusive:unsteady");
        assert!(!result.verdict.kind.passes());
        assert_eq!(
            result.verdict.why,
            "said different:a, stricter:b, stricter:b in turn; first: because of a"
        );
        assert_eq!(result.explained_by, ["b"]);
        assert_eq!(result.attempts.len(), 3);
    }

    #[test]
    fn a_failure_that_two_repetitions_agree_on_stands() {
        let result = settle(
            said(Kind::Inconclusive, "a"),
            vec![said(Kind::Different, "b"), said(Kind::Different, "b")],
        );
        assert_eq!(result.label, "different:b");
    }

    #[test]
    fn an_unsafe_verdict_stands_whenever_it_was_seen() {
        for order in [[Kind::Weaker, Kind::Equal], [Kind::Different, Kind::Weaker]] {
            let [first, then] = order.map(|kind| said(kind, "x"));
            let result = settle(first, vec![then, said(Kind::Equal, "x")]);
            assert_eq!(result.verdict.kind, Kind::Weaker, "{order:?}");
        }
    }
}

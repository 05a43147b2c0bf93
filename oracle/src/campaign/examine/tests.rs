//! What is found, how small it gets, and what is left of a call that was cut off.

use bisim_world::protocol::EffectKind;

use super::*;
use crate::verdict::Verdict;

fn result(hermes: bool, agent: bool, id: &str) -> CaseResult {
    let trace = |is_there: bool| is_there.then(|| crate::relation::tests::trace(Vec::new()));
    CaseResult {
        id: "a".into(),
        suite: "s".into(),
        label: format!("inconclusive:{id}"),
        verdict: Verdict {
            kind: Kind::Inconclusive,
            ids: vec![id.into()],
            why: "why".into(),
            fingerprint: String::new(),
            faults: Vec::new(),
        },
        explained_by: Vec::new(),
        judgement: None,
        hermes: trace(hermes),
        agent: trace(agent),
        adversarial: false,
        hermes_effect: false,
        agent_effect: false,
        attempts: Vec::new(),
    }
}

#[test]
fn what_was_unsafe_once_is_a_finding_and_what_differed_once_is_none() {
    let specimen = Specimen::named("delete-file+env~0").unwrap();
    let seen = result(true, true, "beyond-grant");
    let kept = |kind: Kind| {
        let mut out = Examined::of(3, specimen.to_string());
        unsteady(&specimen, (kind, &seen), 1, &mut out).map(|()| out)
    };
    let out = kept(Kind::BeyondGrant).unwrap();
    assert_eq!(out.smallest, Some(specimen.to_string()));
    assert!(out.bucket.is_some());
    assert_eq!(
        out.why.as_deref(),
        Some("why; it came back in 1 of 2 more runs")
    );
    assert!(kept(Kind::Different).is_err());
}

#[test]
fn an_agent_that_did_not_run_or_died_is_not_one_under_which_nothing_happened() {
    assert!(of_both(&result(true, false, "agent-harness")).is_err());
    assert!(of_both(&result(false, true, "hermes-harness")).is_err());
    assert!(of_both(&result(true, true, "agent-died")).is_err());
    assert!(of_both(&result(true, true, "hermes-unstable")).is_ok());
}

fn with_verdict(kind: Kind) -> CaseResult {
    let mut seen = result(true, true, "a");
    seen.verdict.kind = kind;
    seen
}

#[test]
fn what_is_left_of_a_finding_is_the_same_finding_and_no_other() {
    let specimen = Specimen::named("delete-file+env~0+nice~0").unwrap();
    // What is left without one of the two is something else, which would hide this one.
    let kinds = [Kind::Weaker, Kind::BothUnsafe, Kind::Weaker];
    let mut kinds = kinds.into_iter();
    let mut run = |_: &Case| kinds.next().map(with_verdict);
    let (smallest, symptom) = smallest(&specimen, Kind::Weaker, &mut run).unwrap();
    assert_eq!(smallest.to_string(), specimen.smaller()[1].to_string());
    assert_eq!(symptom.verdict, Kind::Weaker);
    let mut run = |_: &Case| Some(with_verdict(Kind::Weaker));
    assert!(super::smallest(&specimen, Kind::BothUnsafe, &mut run).is_none());
}

#[test]
fn an_effect_under_the_agent_is_a_finding_whatever_the_verdict_says() {
    let specimen = Specimen::named("delete-file+env~0").unwrap();
    let Specimen::Command(variant) = &specimen else {
        panic!("it is a command");
    };
    let Effect::Deleted(path) = variant.seed.effect else {
        panic!("its effect is that a file is gone");
    };
    let case = case(&specimen).unwrap();
    let mut seen = with_verdict(Kind::Equal);
    assert_eq!(found(&specimen, &case, &seen), None);
    let gone = crate::relation::tests::effect(path, EffectKind::Deleted);
    seen.agent.as_mut().unwrap().effects.push(gone);
    assert_eq!(found(&specimen, &case, &seen), Some(Kind::BeyondGrant));
}

#[test]
fn what_is_left_of_a_call_that_was_cut_off_is_told_by_what_a_whole_one_leaves() {
    let made = |paths: &[&str]| -> Vec<_> {
        let effect = |path: &&str| crate::relation::tests::effect(path, EffectKind::Created);
        paths.iter().map(effect).collect()
    };
    let ran = |paths: &[&str], answer: serde_json::Value| {
        let mut step = StepTrace::of(StepOutcome::Ran);
        step.effects = made(paths);
        step.answer = answer;
        Some(crate::relation::tests::trace(vec![step]))
    };
    let whole = ["/home/u/a", "/home/u/b"];
    for (paths, is_cut, expected) in [
        (&[] as &[&str], true, Part::Nothing),
        (&whole, true, Part::Whole),
        (&whole, false, Part::Whole),
        (&whole[..1], true, Part::Other),
    ] {
        let course = serde_json::to_value(bisim_world::flip::Seen {
            changes: 2,
            cut: is_cut,
            ..bisim_world::flip::Seen::default()
        })
        .unwrap();
        let seen = CaseResult {
            hermes: ran(&whole, serde_json::Value::Null),
            agent: ran(paths, course),
            ..result(true, true, "a")
        };
        let told = left(&seen).unwrap();
        assert_eq!(
            (told.changes, told.is_cut, told.what),
            (2, is_cut, expected),
            "{paths:?}"
        );
    }
}

#[test]
fn a_conversation_in_which_something_is_refused_is_compared_for_what_is_unsafe_alone() {
    for (name, kind, expected) in [
        ("talk:all.1+a7", Kind::Different, Some(Kind::Different)),
        ("talk:all.1+a7", Kind::Weaker, Some(Kind::Weaker)),
        ("talk:all.0+a7", Kind::Different, None),
        ("talk:all.0+a7", Kind::Weaker, Some(Kind::Weaker)),
        ("talk:all.0+a7", Kind::Equal, None),
    ] {
        let specimen = Specimen::named(name).unwrap();
        let case = case(&specimen).unwrap();
        assert_eq!(
            found(&specimen, &case, &with_verdict(kind)),
            expected,
            "{name} {kind:?}"
        );
    }
}

/// Workers that cannot be started on this machine.
fn nobody(dir: &std::path::Path) -> Starts {
    let program = dir.join("no-such-program");
    let agent = crate::subject::Start::Agent {
        program: program.clone(),
        isolation: "isolated".to_owned(),
        fault: None,
    };
    let hermes = crate::subject::Start::Hermes {
        python: program.clone(),
        extension: program,
    };
    Starts {
        hermes,
        agent,
        logs: dir.to_owned(),
    }
}

/// A line of the log says which place it is of and why nothing is known of it; it must not look
/// like one under which nothing happened.
#[test]
fn where_nobody_can_be_started_each_kind_of_specimen_is_inconclusive_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let starts = nobody(dir.path());
    let catalogue = crate::known::Catalogue::default();
    let judge = Judge::new(&catalogue, "0.19.0");
    let mut trio = Trio::new(&starts, &Processes::default());
    for target in crate::generate::Target::ALL {
        let specimen = super::super::plan::specimen(target, 5, 0).unwrap();
        let seen = trio.examine(7, &specimen, &judge);
        assert_eq!((seen.index, seen.fate), (7, Fate::Inconclusive), "{seen:?}");
        assert_eq!(seen.variant, specimen.to_string());
        assert!(seen.why.is_some_and(|why| !why.is_empty()), "{target:?}");
    }
}

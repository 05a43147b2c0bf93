//! Every verdict once, from hand-made traces.

use bisim_world::protocol::{EffectKind, End, RawTrace, Step, StepOutcome, StepTrace};
use serde_json::json;

use super::*;
use crate::known::{Direction, Entry, Scope, Witness};
use crate::observation::observe;
use crate::relation::tests::{call, case, effect, hold, judged, step, trace};

fn entry(id: &str, direction: Direction) -> Entry {
    Entry {
        id: id.into(),
        justification: "because".into(),
        direction,
        versions: vec!["0.19.0".into()],
        owner: "team".into(),
        opened: "2026-01-01".into(),
        review_by: "2027-01-01".into(),
        scope: Scope::default(),
        fingerprints: vec!["*".into()],
        witness: Witness {
            matches: vec!["c-1".into()],
            nomatch: vec!["c-2".into()],
        },
    }
}

fn verdict_of(case: &Case, hermes: &RawTrace, agent: &RawTrace, entries: Vec<Entry>) -> Verdict {
    let judgement = judged(case, hermes, agent);
    let seen = |trace| observe(&case.job.script, trace, &[]);
    decide(
        case,
        "0.19.0",
        &judgement,
        &seen(hermes),
        &seen(agent),
        &Catalogue { entries },
    )
}

fn ran(effects: &[(&str, EffectKind)]) -> StepTrace {
    step(
        StepOutcome::Ran,
        "{}",
        effects
            .iter()
            .map(|(path, kind)| effect(path, *kind))
            .collect(),
    )
}

fn refused() -> StepTrace {
    step(StepOutcome::Refused("no-cap".into()), "", vec![])
}

const MADE: (&str, EffectKind) = ("/home/u/proj/a", EffectKind::Created);

#[test]
fn every_verdict_has_a_pair_of_traces_that_yields_it() {
    let check =
        |held: bool, hermes: StepTrace, agent: StepTrace, entries: Vec<Entry>, label: &str| {
            let held = if held {
                vec![hold("fs.*", "/home/u/proj")]
            } else {
                vec![]
            };
            let case = case(vec![call()], held);
            let verdict = verdict_of(&case, &trace(vec![hermes]), &trace(vec![agent]), entries);
            assert_eq!(verdict.label(), label, "{verdict:?}");
        };
    let stricter = || vec![entry("s", Direction::Stricter)];
    let attenuated = || vec![entry("a", Direction::Attenuated)];
    let other = || vec![entry("d", Direction::Different)];
    let text = |text: &str| step(StepOutcome::Ran, text, vec![]);
    check(true, ran(&[MADE]), ran(&[MADE]), vec![], "equal");
    check(false, ran(&[MADE]), refused(), stricter(), "stricter:s");
    check(false, ran(&[MADE]), refused(), vec![], "stricter-unnamed");
    check(
        false,
        ran(&[MADE]),
        refused(),
        attenuated(),
        "stricter-unnamed",
    );
    check(true, refused(), ran(&[MADE]), attenuated(), "attenuated:a");
    check(true, refused(), ran(&[MADE]), vec![], "weaker");
    check(true, refused(), ran(&[MADE]), stricter(), "weaker");
    check(false, text("a"), text("b"), vec![], "different");
    check(false, text("a"), text("b"), other(), "baselined:d");
    check(false, refused(), ran(&[MADE]), attenuated(), "weaker");
    check(false, ran(&[]), ran(&[MADE]), other(), "beyond-grant");
    check(false, ran(&[MADE]), ran(&[MADE]), other(), "both-unsafe");
    let unsupported = step(StepOutcome::Unsupported("x".into()), "", vec![]);
    check(
        false,
        ran(&[]),
        unsupported,
        vec![],
        "inconclusive:agent-unsupported",
    );
}

#[test]
fn a_dead_worker_is_inconclusive_with_its_reason() {
    let case = case(vec![call()], vec![]);
    let mut dead = trace(vec![]);
    dead.end = End::Died("signal 9".into());
    let verdict = verdict_of(&case, &trace(vec![ran(&[])]), &dead, vec![]);
    assert_eq!(verdict.label(), "inconclusive:agent-died");
}

#[test]
fn two_matching_entries_are_ambiguous_and_a_wrong_fingerprint_is_overbroad() {
    let case = case(vec![call()], vec![]);
    let mut narrow = entry("narrow", Direction::Stricter);
    narrow.fingerprints = vec!["call:terminal ran:inside -> *".into()];
    let verdict = verdict_of(
        &case,
        &trace(vec![ran(&[MADE])]),
        &trace(vec![refused()]),
        vec![entry("wide", Direction::Stricter), narrow],
    );
    let kinds: Vec<_> = verdict
        .faults
        .iter()
        .map(|fault| fault.kind.as_ref())
        .collect();
    assert_eq!(kinds, ["overbroad", "ambiguous"]);
}

#[test]
fn must_permit_fails_when_the_agent_refuses_even_if_an_entry_explains_it() {
    let mut case = case(vec![call()], vec![hold("fs.*", "/home/u/proj")]);
    case.expect.agent = Must::MustPermit;
    let stricter = vec![entry("s", Direction::Stricter)];
    let verdict = verdict_of(
        &case,
        &trace(vec![ran(&[MADE])]),
        &trace(vec![refused()]),
        stricter.clone(),
    );
    assert_eq!(verdict.label(), "different");
    let verdict = verdict_of(
        &case,
        &trace(vec![ran(&[MADE])]),
        &trace(vec![ran(&[MADE])]),
        stricter,
    );
    assert_eq!(verdict.label(), "equal");
}

#[test]
fn must_deny_fails_when_a_probe_permits_even_if_hermes_permits_too() {
    let mut case = case(
        vec![Step::Probe {
            name: "p".into(),
            input: json!({}),
        }],
        vec![],
    );
    case.expect.agent = Must::MustDeny;
    let answer = |decision: &str| {
        let mut step = step(StepOutcome::Ran, "", vec![]);
        step.answer = json!({"decision": decision, "value": null});
        trace(vec![step])
    };
    let label = |hermes: &str, agent: &str| {
        verdict_of(
            &case,
            &answer(hermes),
            &answer(agent),
            vec![entry("s", Direction::Stricter)],
        )
        .label()
    };
    assert_eq!(label("permit", "permit"), "weaker");
    assert_eq!(label("deny", "deny"), "equal");
    assert_eq!(label("permit", "deny"), "stricter:s");
}

#[test]
fn stated_effects_and_step_outcomes_are_checked() {
    let mut case = case(vec![call()], vec![hold("fs.*", "/home/u/proj")]);
    let run = trace(vec![ran(&[MADE])]);
    let label = |case: &Case, agent: &RawTrace| verdict_of(case, agent, agent, vec![]).label();
    case.expect.effects = Some(ExpectedEffects::Word(EffectWord::None));
    assert_eq!(label(&case, &run), "different");
    case.expect.effects = Some(ExpectedEffects::Paths(vec!["/home/u/proj/a".into()]));
    assert_eq!(label(&case, &run), "equal");
    case.expect.effects = None;
    case.expect.steps = Some(vec!["refused:exhausted".into()]);
    assert_eq!(label(&case, &run), "weaker");
    assert_eq!(label(&case, &trace(vec![refused()])), "different");
    let exhausted = trace(vec![step(
        StepOutcome::Refused("exhausted".into()),
        "",
        vec![],
    )]);
    assert_eq!(label(&case, &exhausted), "equal");
}

#[test]
fn what_is_not_as_stated_is_named_and_not_only_what_happened() {
    let mut case = case(vec![call()], vec![hold("fs.*", "/home/u/proj")]);
    let run = trace(vec![ran(&[MADE])]);
    let mut why = |stated: ExpectedEffects, run: &RawTrace| {
        case.expect.effects = Some(stated);
        verdict_of(&case, run, run, vec![]).why
    };
    let paths = |paths: &[&str]| {
        ExpectedEffects::Paths(paths.iter().map(|path| (*path).to_owned()).collect())
    };
    assert_eq!(
        why(paths(&["/home/u/proj/b"]), &run),
        "the case states a change of /home/u/proj/b, and there was none; \
         the agent created /home/u/proj/a, which it does not state"
    );
    assert_eq!(
        why(paths(&["/home/u/proj/a", "/home/u/proj/b"]), &run),
        "the case states a change of /home/u/proj/b, and there was none"
    );
    assert_eq!(
        why(paths(&[]), &run),
        "the agent created /home/u/proj/a, which the case does not state"
    );
    assert_eq!(
        why(ExpectedEffects::Word(EffectWord::None), &run),
        "the case states that nothing changes, and the agent created /home/u/proj/a"
    );
    assert_eq!(
        why(
            ExpectedEffects::Word(EffectWord::Some),
            &trace(vec![ran(&[])])
        ),
        "the case states that something changes, and nothing did"
    );
    assert_eq!(
        stated::lines(&case.expect),
        ["something changes"],
        "the explanation of a case tells what it states"
    );
}

#[test]
fn no_more_may_change_than_a_case_states_and_nothing_need() {
    let mut case = case(vec![call()], vec![hold("fs.*", "/home/u/proj")]);
    let run = trace(vec![ran(&[MADE])]);
    let mut verdict = |at_most: &[&str], hermes: &RawTrace, agent: &RawTrace| {
        case.expect.effects = Some(ExpectedEffects::AtMost(AtMost {
            at_most: at_most.iter().map(|path| (*path).to_owned()).collect(),
        }));
        verdict_of(&case, hermes, agent, vec![])
    };
    let nothing = trace(vec![ran(&[])]);
    for allowed in ["/home/u/proj/a", "/home/u/proj"] {
        assert_eq!(verdict(&[allowed], &run, &run).label(), "equal");
        assert_eq!(verdict(&[allowed], &nothing, &nothing).label(), "equal");
    }
    for allowed in [&[][..], &["/home/u/proj/ab"], &["/home/u/pro"]] {
        let verdict = verdict(allowed, &run, &run);
        assert_eq!(verdict.label(), "weaker");
        assert_eq!(verdict.fingerprint, EXPECTATION);
    }
    // It is said also where the relation has something as bad to say.
    let verdict = verdict(&[], &trace(vec![refused()]), &run);
    assert_eq!(verdict.label(), "weaker");
    assert_eq!(verdict.fingerprint, EXPECTATION);
}

#[test]
fn a_live_hermes_that_contradicts_the_record_is_inconclusive() {
    let mut case = case(vec![call()], vec![]);
    let run = trace(vec![ran(&[])]);
    let label = |case: &Case| verdict_of(case, &run, &run, vec![]).label();
    let mut recorded = Recorded {
        outcome: Some("refused".into()),
        ..Recorded::default()
    };
    case.recorded.insert("0.19.0".into(), recorded.clone());
    assert_eq!(label(&case), "inconclusive:recorded-differs");
    recorded.not_compared = Some("depends on the upstream test's own set-up".into());
    case.recorded.insert("0.19.0".into(), recorded);
    assert_eq!(label(&case), "equal");
    let had = Recorded {
        had_effect: Some(true),
        ..Recorded::default()
    };
    case.recorded.insert("0.19.0".into(), had);
    assert_eq!(label(&case), "inconclusive:recorded-differs");
}

#[test]
fn facts_of_a_machine_without_a_program_count_only_where_it_is_missing_too() {
    let mut case = case(vec![call()], vec![]);
    let run = trace(vec![ran(&[])]);
    let mut lacking = |program: &str| {
        let recorded = Recorded {
            had_effect: Some(true),
            lacked: vec![program.to_owned()],
            ..Recorded::default()
        };
        case.recorded.insert("0.19.0".into(), recorded);
        verdict_of(&case, &run, &run, vec![]).label()
    };
    assert_eq!(lacking("bash"), "equal");
    assert_eq!(lacking("no-such-program"), "inconclusive:recorded-differs");
    // A program that worlds hide is missing in them, wherever it is installed.
    assert_eq!(lacking("rg"), "inconclusive:recorded-differs");
}

#[test]
fn the_worst_step_decides_and_says_which_it_is() {
    let case = case(vec![call(), call()], vec![]);
    let hermes = trace(vec![ran(&[]), ran(&[])]);
    let agent = trace(vec![ran(&[]), ran(&[MADE])]);
    let verdict = verdict_of(&case, &hermes, &agent, vec![]);
    assert_eq!(verdict.label(), "beyond-grant");
    assert!(verdict.why.starts_with("step 2: "), "{}", verdict.why);
}

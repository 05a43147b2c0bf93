//! A call in whose middle the agent was killed: all of it stands, or nothing.

use bisim_world::protocol::{Cut, Restart};

use super::*;

const ONE: &str = "/home/u/proj/one";
const TWO: &str = "/home/u/proj/two";

fn cut_off() -> Step {
    let during = Some(Box::new(Cut {
        step: call(),
        before: 3,
    }));
    Step::Restart(Restart {
        during,
        ..Restart::default()
    })
}

fn cut(held: &[Held], hermes: &[&str], agent: &[&str]) -> Judgement {
    let run = |paths: &[&str]| {
        let made = |path: &&str| effect(path, EffectKind::Created);
        trace(vec![step(
            StepOutcome::Ran,
            "",
            paths.iter().map(made).collect(),
        )])
    };
    judged(
        &case(vec![cut_off()], held.to_vec()),
        &run(hermes),
        &run(agent),
    )
}

fn workspace() -> Vec<Held> {
    vec![hold("fs.*", "/home/u/proj")]
}

#[test]
fn all_of_a_call_that_was_cut_off_or_nothing_of_it_is_equal() {
    for agent in [&[][..], &[ONE, TWO]] {
        let judged = cut(&workspace(), &[ONE, TWO], agent);
        assert_eq!(judged.worst(), Finding::Equal, "{agent:?}");
    }
}

#[test]
fn part_of_a_call_that_was_cut_off_or_something_beside_it_differs() {
    for agent in [&[ONE][..], &[TWO], &[ONE, TWO, "/home/u/proj/.left-over"]] {
        let judged = cut(&workspace(), &[ONE, TWO], agent);
        assert_eq!(judged.worst(), Finding::Different, "{agent:?}");
        assert!(judged.steps[0].why.contains("part of a call"), "{agent:?}");
        assert_eq!(judged.steps[0].what, "cut-off call:terminal");
    }
}

#[test]
fn what_a_call_that_was_cut_off_left_outside_the_grants_is_unsafe() {
    let beyond = cut(&workspace(), &[ONE], &["/etc/x"]);
    assert_eq!(beyond.worst(), Finding::BeyondGrant);
    let both = cut(&[], &[ONE], &[ONE]);
    assert_eq!(both.worst(), Finding::BothUnsafe);
    // The grants of the case hold in the middle of the call, and not after the start.
    assert_eq!(cut(&workspace(), &[ONE], &[ONE]).worst(), Finding::Equal);
}

#[test]
fn what_hermes_did_not_do_says_nothing_of_a_whole() {
    let judged = cut(&workspace(), &[], &[ONE]);
    assert_eq!(judged.worst(), Finding::Attenuated);
}

#[test]
fn what_is_seen_of_the_whole_run_only_is_charged_to_the_last_call_be_it_cut_off_or_not() {
    let charged = |script: Vec<Step>| {
        let quiet = trace(vec![step(StepOutcome::Ran, "", vec![]); script.len()]);
        let loud = RawTrace {
            tripwires: vec!["docker ps".into()],
            ..quiet.clone()
        };
        let judgement = judged(&case(script, vec![]), &quiet, &loud);
        let unsafe_ones = judgement
            .steps
            .iter()
            .filter(|step| step.finding == Finding::BeyondGrant);
        unsafe_ones.map(|step| step.step).collect::<Vec<_>>()
    };
    assert_eq!(charged(vec![call()]), [0]);
    assert_eq!(charged(vec![call(), call()]), [1]);
    assert_eq!(charged(vec![call(), call(), Step::EndSession {}]), [1]);
    assert_eq!(charged(vec![call(), cut_off(), Step::EndSession {}]), [1]);
    let plain = Step::Restart(Restart::default());
    assert_eq!(charged(vec![call(), call(), plain]), [1]);
}

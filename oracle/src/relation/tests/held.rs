//! What is held while a script goes on.

use super::*;

#[test]
fn a_grant_ends_by_use_by_time_by_revocation_and_with_the_session() {
    let grant = |uses, seconds| {
        let mut held = hold("fs.create", "/home/u/proj");
        held.id = "g".into();
        held.uses = uses;
        held.seconds = seconds;
        held
    };
    let write = |n: usize| {
        let effects = (0..n)
            .map(|i| effect(&format!("{FILE}{i}"), EffectKind::Created))
            .collect();
        ran(effects)
    };
    let none = || {
        step(
            StepOutcome::Ran,
            "",
            vec![effect("/home/u/proj/a0", EffectKind::Created)],
        )
    };
    let check = |held: Held, middle: Option<Step>, expected: Finding| {
        let mut script = vec![call()];
        let mut steps = vec![write(1)];
        if let Some(middle) = middle {
            script.push(middle);
            steps.push(none());
        }
        script.push(call());
        steps.push(write(2));
        let case = case(script, vec![held]);
        let run = trace(steps);
        assert_eq!(judged(&case, &run, &run).worst(), expected);
    };
    check(grant(None, None), None, Finding::Equal);
    check(grant(Some(1), None), None, Finding::BothUnsafe);
    check(grant(Some(2), None), None, Finding::Equal);
    check(
        grant(None, Some(60)),
        Some(Step::Advance { seconds: 60 }),
        Finding::Equal,
    );
    check(
        grant(None, Some(60)),
        Some(Step::Advance { seconds: 61 }),
        Finding::BothUnsafe,
    );
    check(
        grant(None, None),
        Some(Step::Revoke { grant: "g".into() }),
        Finding::BothUnsafe,
    );
    check(
        grant(None, None),
        Some(Step::EndSession {}),
        Finding::BothUnsafe,
    );
}

#[test]
fn a_child_holds_only_what_was_forwarded_by_name() {
    let mut held = hold("fs.create", "/home/u/proj");
    held.id = "g".into();
    let check = |forward: Vec<String>, expected: Finding| {
        let script = vec![
            Step::Spawn {
                child: "kid".into(),
                forward,
            },
            Step::Call {
                tool: "write_file".into(),
                args: json!({}),
                by: Some("kid".into()),
            },
        ];
        let case = case(script, vec![held.clone()]);
        let run = trace(vec![
            step(StepOutcome::Ran, "", vec![]),
            ran(vec![effect(FILE, EffectKind::Created)]),
        ]);
        assert_eq!(judged(&case, &run, &run).worst(), expected);
    };
    check(vec!["g".into()], Finding::Equal);
    check(vec![], Finding::BothUnsafe);
}

#[test]
fn a_lifecycle_step_that_hermes_cannot_express_is_no_difference_by_itself() {
    let case = case(vec![Step::Revoke { grant: "g".into() }], vec![]);
    let hermes = trace(vec![step(
        StepOutcome::Unsupported("no-expiry".into()),
        "",
        vec![],
    )]);
    let agent = trace(vec![step(StepOutcome::Ran, "", vec![])]);
    assert_eq!(judged(&case, &hermes, &agent).worst(), Finding::Equal);
    assert_eq!(
        judged(&case, &agent, &hermes).worst(),
        Finding::Inconclusive
    );
}

//! What is held while a script goes on.

use bisim_world::protocol::{Decision, FileKind, FileSpec, Rule};

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
fn what_was_shown_and_agreed_to_uses_up_no_grant_of_the_agents() {
    let mut once = hold("fs.create", "/home/u/proj");
    once.uses = Some(1);
    let case = case(vec![call(), call()], vec![once]);
    let run = |shown: &str, answer: &str| {
        let first = StepTrace {
            questions: vec![QuestionTrace {
                shown: shown.into(),
                answer: answer.into(),
                meanwhile: Vec::new(),
            }],
            ..ran(vec![effect("/home/u/proj/a0", EffectKind::Created)])
        };
        let both = ["/home/u/proj/a0", "/home/u/proj/a1"];
        let both = both.map(|path| effect(path, EffectKind::Created));
        trace(vec![first, ran(both.to_vec())])
    };
    let hermes = run("a0", "deny");
    for (shown, answer, expected) in [
        ("created /home/u/proj/a0", "once", vec![]),
        ("created /home/u/proj/a0", "deny", vec![1]),
        ("created /home/u/proj/other", "once", vec![1]),
    ] {
        let judgement = judged(&case, &hermes, &run(shown, answer));
        let unsafe_steps: Vec<usize> = judgement
            .steps
            .iter()
            .filter(|step| step.agent.ends_with(":outside"))
            .map(|step| step.step)
            .collect();
        assert_eq!(unsafe_steps, expected, "{shown} {answer}: {judgement:#?}");
    }
}

#[test]
fn a_use_that_was_counted_is_left_where_another_grant_does_it_as_well() {
    let grant = |on: &str, uses| Held {
        uses,
        ..hold("fs.create", on)
    };
    let made = |path: &str| ran(vec![effect(path, EffectKind::Created)]);
    let run = trace(vec![made("/home/u/proj/a0"), {
        let both = ["/home/u/proj/a0", "/home/u/proj/b0"];
        ran(both.map(|path| effect(path, EffectKind::Created)).to_vec())
    }]);
    let (once, always) = (
        grant("/home/u/proj", Some(1)),
        grant("/home/u/proj/a0", None),
    );
    for (held, expected) in [
        (vec![once.clone(), always.clone()], Finding::Equal),
        (vec![always, once.clone()], Finding::Equal),
        (vec![once], Finding::BothUnsafe),
    ] {
        let case = case(vec![call(), call()], held);
        assert_eq!(judged(&case, &run, &run).worst(), expected);
    }
}

#[test]
fn a_yes_for_longer_than_once_covers_what_was_shown_until_the_session_ends() {
    let change = |kind, size| {
        vec![FsEffect {
            size,
            ..effect(FILE, kind)
        }]
    };
    let check = |answer: &str, middle: Option<Step>, is_covered: bool| {
        let asked = StepTrace {
            questions: vec![QuestionTrace {
                shown: format!("changed file {FILE}"),
                answer: answer.into(),
                meanwhile: Vec::new(),
            }],
            ..ran(change(EffectKind::Modified, 1))
        };
        let mut script = vec![call()];
        let mut steps = vec![asked];
        if let Some(middle) = middle {
            script.push(middle);
            steps.push(ran(change(EffectKind::Modified, 1)));
        }
        script.push(call());
        steps.push(ran(change(EffectKind::Modified, 2)));
        let case = case(script, Vec::new());
        let run = trace(steps);
        let judgement = judged(&case, &run, &run);
        let last = judgement.steps.last().unwrap();
        assert_eq!(
            last.agent.ends_with(":inside"),
            is_covered,
            "{answer}: {judgement:#?}"
        );
    };
    check("once", None, false);
    check("deny", None, false);
    check("session", None, true);
    check("always", None, true);
    check("session", Some(Step::EndSession {}), false);
    check("always", Some(Step::EndSession {}), false);
}

#[test]
fn a_yes_for_good_outlives_its_session_where_the_program_keeps_it() {
    let check = |answer: &str, is_covered: bool| {
        let change = |size| {
            vec![FsEffect {
                size,
                ..effect(FILE, EffectKind::Modified)
            }]
        };
        let asked = StepTrace {
            questions: vec![QuestionTrace {
                shown: format!("changed file {FILE}"),
                answer: answer.into(),
                meanwhile: Vec::new(),
            }],
            ..ran(change(1))
        };
        let start = Step::Restart(Default::default());
        let case = case(vec![start, call(), Step::EndSession {}, call()], Vec::new());
        let run = trace(vec![ran(Vec::new()), asked, ran(change(1)), ran(change(2))]);
        let judgement = judged(&case, &run, &run);
        let last = judgement.steps.last().unwrap();
        let is_inside = last.agent.ends_with(":inside");
        assert_eq!(is_inside, is_covered, "{answer}: {judgement:#?}");
    };
    check("always", true);
    check("session", false);
}

#[test]
fn a_rule_of_the_case_stands_above_what_is_held_and_what_is_agreed_to() {
    let deny = (Decision::Deny, "/home/u/proj/keep");
    let ask = (Decision::Ask, "/home/u/proj/keep");
    let check = |(decision, on): (Decision, &str), file: &str, answer: Option<&str>, expected| {
        let mut case = case(vec![call()], vec![hold("fs.*", "/home/u/proj")]);
        case.job.rules = vec![Rule {
            id: "r".into(),
            decision,
            verbs: vec!["fs.*".into()],
            on: Some(on.into()),
            named: None,
            host: None,
        }];
        let mut seen = ran(vec![effect(file, EffectKind::Modified)]);
        seen.questions.extend(answer.map(|answer| QuestionTrace {
            shown: format!("changed file {file}"),
            answer: answer.into(),
            meanwhile: Vec::new(),
        }));
        let run = trace(vec![seen]);
        let worst = judged(&case, &run, &run).worst();
        assert_eq!(worst, expected, "{decision:?} {on} {file} {answer:?}");
    };
    let kept = "/home/u/proj/keep/a";
    check(deny, "/home/u/proj/keeper", None, Finding::Equal);
    check(deny, kept, None, Finding::BothUnsafe);
    check(deny, kept, Some("always"), Finding::BothUnsafe);
    check(ask, kept, None, Finding::BothUnsafe);
    check(ask, kept, Some("deny"), Finding::BothUnsafe);
    check(ask, kept, Some("once"), Finding::Equal);
}

#[test]
fn a_secret_of_the_cases_own_that_a_rule_withholds_is_seen_where_it_is_shown() {
    let mut case = case(vec![call()], vec![]);
    let path = "/home/u/proj/keep/key";
    case.job.world.as_mut().unwrap().files = vec![FileSpec {
        path: path.into(),
        kind: FileKind::Text("the CANARY-KEY here\n".into()),
        mode: None,
    }];
    let shows = |text: &str| trace(vec![step(StepOutcome::Ran, text, vec![])]);
    let worst = |case: &Case, hermes: &RawTrace, agent: &RawTrace| {
        crate::check::judge_traces(case, hermes, None, agent).worst()
    };
    let (shown, hidden) = (shows("the CANARY-KEY here"), shows("the"));
    assert_eq!(worst(&case, &shown, &shown), Finding::Equal);
    case.job.rules = vec![Rule {
        id: "r".into(),
        decision: Decision::Deny,
        verbs: vec!["fs.read".into()],
        on: None,
        named: Some("KEY".into()),
        host: None,
    }];
    assert_eq!(worst(&case, &shown, &shown), Finding::BothUnsafe);
    assert_eq!(worst(&case, &hidden, &shown), Finding::BeyondGrant);
    assert_eq!(worst(&case, &shown, &hidden), Finding::Stricter);
    assert_eq!(worst(&case, &hidden, &hidden), Finding::Equal);
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

#[test]
fn what_ends_while_the_agents_user_is_asked_covers_nothing_and_voids_their_yes() {
    use bisim_world::protocol::{Happened, Meanwhile, Mode};
    // Of these neither is named where the other is.
    const HELD: &str = "/home/u/proj/held.md";
    const SHOWN: &str = "/home/u/proj/shown.txt";
    let revoke = |grant: &str| Meanwhile::Revoke {
        grant: grant.into(),
    };
    let advance = |seconds| Meanwhile::Advance { seconds };
    let mode = |to| Meanwhile::Mode { to };
    let check = |first: &[(Meanwhile, &str)], path: &str, is_covered: bool| {
        let mut held = hold("fs.modify", HELD);
        held.id = "g".into();
        held.seconds = Some(60);
        let case = case(vec![call()], vec![held]);
        let happened = first.iter().map(|(what, lacks)| Happened {
            what: what.clone(),
            lacks: (*lacks).into(),
        });
        let mut agent = ran(vec![effect(path, EffectKind::Modified)]);
        agent.questions.push(QuestionTrace {
            shown: format!("changed file {SHOWN}"),
            answer: "once".into(),
            meanwhile: happened.collect(),
        });
        let mut hermes = ran(Vec::new());
        hermes.questions.push(QuestionTrace {
            shown: "patch".into(),
            answer: "once".into(),
            meanwhile: Vec::new(),
        });
        let judgement = judged(&case, &trace(vec![hermes]), &trace(vec![agent]));
        let outside = judgement.worst() == Finding::BeyondGrant;
        assert_eq!(outside, !is_covered, "{first:?} {path}");
    };
    let end = Meanwhile::EndSession {};
    let ends = |child: &str| Meanwhile::EndAgent {
        child: child.into(),
    };
    for (first, held, shown) in [
        (vec![], true, true),
        (vec![(revoke("g"), "")], false, true),
        (vec![(revoke("h"), "")], true, true),
        (vec![(revoke("g"), "unknown-grant")], true, true),
        (vec![(advance(60), "")], true, true),
        (vec![(advance(61), "")], false, true),
        (vec![(advance(600), "")], false, true),
        (vec![(advance(601), "")], false, false),
        (vec![(end.clone(), "")], false, false),
        (vec![(mode(Mode::RejectAll), "")], true, false),
        (vec![(mode(Mode::Prompt), "")], true, true),
        (vec![(Meanwhile::Others {}, "")], true, true),
        (vec![(ends("kid"), "")], true, true),
        (
            vec![(mode(Mode::RejectAll), ""), (mode(Mode::Prompt), "")],
            true,
            true,
        ),
    ] {
        check(&first, HELD, held);
        check(&first, SHOWN, shown);
    }
}

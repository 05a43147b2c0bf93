//! What holds for every case and every pair of runs.

use proptest::prelude::*;

use super::*;

fn any_outcome() -> impl Strategy<Value = StepOutcome> {
    prop_oneof![
        Just(StepOutcome::Ran),
        Just(StepOutcome::RanDiscarded("rejected-by-user".into())),
        Just(StepOutcome::Refused("no-cap".into())),
        Just(StepOutcome::AskedRefused("rejected-by-user".into())),
        Just(StepOutcome::Pending),
        Just(StepOutcome::ToolError),
        Just(StepOutcome::Raised("r".into())),
        Just(StepOutcome::Unsupported("u".into())),
    ]
}

fn any_effect() -> impl Strategy<Value = FsEffect> {
    (
        prop_oneof![Just(FILE), Just("/home/u/proj"), Just("/etc/x"), Just("")],
        prop_oneof![
            Just(EffectKind::Created),
            Just(EffectKind::Modified),
            Just(EffectKind::Deleted),
            Just(EffectKind::Metadata)
        ],
        "[a-c]",
    )
        .prop_map(|(path, kind, digest)| FsEffect {
            path: path.into(),
            kind,
            digest,
            size: 1,
            mode: 0o644,
        })
}

fn any_step() -> impl Strategy<Value = StepTrace> {
    (
        any_outcome(),
        prop_oneof![Just("{}"), Just("x"), Just("CANARY"), Just("{\"a\":1}")],
        prop::collection::vec(any_effect(), 0..3),
        prop::collection::vec(
            (
                prop_oneof![Just("a"), Just("/etc/x")],
                prop_oneof![Just("once"), Just("session"), Just("deny")],
            ),
            0..2,
        ),
        prop_oneof![
            Just(Value::Null),
            Just(json!({"decision": "permit"})),
            Just(json!({"decision": "deny", "value": 1}))
        ],
    )
        .prop_map(|(outcome, text, effects, questions, answer)| StepTrace {
            outcome,
            text: text.into(),
            answer,
            questions: questions
                .into_iter()
                .map(|(shown, answer)| QuestionTrace {
                    shown: shown.into(),
                    answer: answer.into(),
                    meanwhile: Vec::new(),
                })
                .collect(),
            effects,
            parts: Vec::new(),
        })
}

fn any_trace() -> impl Strategy<Value = RawTrace> {
    (
        prop::collection::vec(any_step(), 0..4),
        prop::collection::vec(any_effect(), 0..2),
        prop_oneof![
            Just(End::Finished),
            Just(End::TimedOut),
            Just(End::Died("signal 9".into()))
        ],
        prop::bool::ANY,
    )
        .prop_map(|(steps, effects, end, loud)| RawTrace {
            steps,
            effects,
            network: if loud {
                vec![NetAttempt {
                    protocol: "tcp".into(),
                    port: 80,
                    head: String::new(),
                }]
            } else {
                Vec::new()
            },
            tripwires: Vec::new(),
            end,
            cpu_us: 0,
            wall_us: 0,
        })
}

fn any_case() -> impl Strategy<Value = Case> {
    (
        prop::collection::vec(
            prop_oneof![
                Just(call()),
                Just(Step::Probe {
                    name: "p".into(),
                    input: Value::Null
                }),
                Just(Step::EndSession {}),
                Just(Step::Advance { seconds: 30 }),
                Just(Step::Spawn {
                    child: "kid".into(),
                    forward: vec![]
                }),
            ],
            0..4,
        ),
        prop::collection::vec(
            prop_oneof![
                Just(hold("fs.*", "/home/u/proj")),
                Just(hold("fs.read", "/")),
                Just(hold("net.connect", "*:80"))
            ],
            0..3,
        ),
    )
        .prop_map(|(script, held)| case(script, held))
}

proptest! {
    #[test]
    fn the_relation_never_panics(case in any_case(), hermes in any_trace(), agent in any_trace()) {
        let _ = judged(&case, &hermes, &agent);
    }

    #[test]
    fn equal_traces_inside_the_grants_are_never_a_difference(case in any_case(), run in any_trace()) {
        let judgement = judged(&case, &run, &run);
        let worst = judgement.worst();
        if judgement.agent_outside.is_empty() && judgement.hermes_outside.is_empty() {
            prop_assert!(matches!(worst, Finding::Equal | Finding::Inconclusive), "{judgement:#?}");
        }
    }

    #[test]
    fn doing_less_is_never_weaker(case in any_case(), run in any_trace()) {
        let mut less = run.clone();
        for step in &mut less.steps {
            step.outcome = StepOutcome::Refused("no-cap".into());
            step.effects.clear();
            step.text.clear();
            step.answer = Value::Null;
            step.questions.clear();
        }
        less.effects.clear();
        less.network.clear();
        let worst = judged(&case, &run, &less).worst();
        prop_assert!(
            !matches!(worst, Finding::Weaker | Finding::BeyondGrant | Finding::BothUnsafe | Finding::Attenuated),
            "{worst:?}"
        );
    }

    #[test]
    fn an_effect_outside_the_grants_is_always_unsafe(mut case in any_case(), mut hermes in any_trace(), mut agent in any_trace(), one in any_step(), two in any_step()) {
        case.job.script.insert(0, call());
        hermes.steps.insert(0, one);
        agent.steps.insert(0, two);
        agent.steps.truncate(case.job.script.len());
        for step in &mut agent.steps {
            step.questions.clear();
        }
        agent.end = End::Finished;
        for step in &mut agent.steps {
            step.effects.push(effect("/srv/outside", EffectKind::Created));
        }
        let worst = judged(&case, &hermes, &agent).worst();
        prop_assert!(
            matches!(worst, Finding::Weaker | Finding::BeyondGrant | Finding::BothUnsafe),
            "{worst:?}"
        );
    }
}

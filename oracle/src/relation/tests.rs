//! The relation on hand-made traces, and its laws.

use bisim_world::protocol::{
    Context, EffectKind, End, FsEffect, Held, Job, NetAttempt, QuestionTrace, RawTrace, Step,
    StepOutcome, StepTrace, UserModel, WorldSpec,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::case::{Expect, Leg, Must, Source};

pub(crate) fn case(script: Vec<Step>, held: Vec<Held>) -> Case {
    Case {
        id: "c-1".into(),
        suite: "s".into(),
        comment: String::new(),
        flags: Vec::new(),
        source: Source {
            from: "hand".into(),
            row: String::new(),
            note: String::new(),
        },
        job: Job {
            world: Some(WorldSpec {
                cwd: "/home/u/proj".into(),
                files: Vec::new(),
            }),
            context: Context::Interactive,
            user: UserModel::DenyAll,
            held,
            settings: serde_json::Map::new(),
            script,
            deadline_ms: 1000,
        },
        hermes: Leg { world: true },
        agent: Leg { world: true },
        expect: Expect {
            agent: Must::Either,
            reason: "test".into(),
            effects: None,
            steps: None,
        },
        recorded: std::collections::BTreeMap::new(),
    }
}

pub(crate) fn call() -> Step {
    Step::Call {
        tool: "terminal".into(),
        args: json!({"command": "x"}),
        by: None,
    }
}

pub(crate) fn hold(verb: &str, on: &str) -> Held {
    Held {
        id: format!("{verb} {on}"),
        verb: verb.into(),
        on: on.into(),
        uses: None,
        seconds: None,
        holder: None,
    }
}

pub(crate) fn effect(path: &str, kind: EffectKind) -> FsEffect {
    FsEffect {
        path: path.into(),
        kind,
        digest: "d".into(),
        size: 1,
        mode: 0o644,
    }
}

pub(crate) fn step(outcome: StepOutcome, text: &str, effects: Vec<FsEffect>) -> StepTrace {
    StepTrace {
        outcome,
        text: text.into(),
        answer: Value::Null,
        questions: Vec::new(),
        effects,
    }
}

pub(crate) fn trace(steps: Vec<StepTrace>) -> RawTrace {
    let effects = steps
        .last()
        .map(|step| step.effects.clone())
        .unwrap_or_default();
    RawTrace {
        steps,
        effects,
        network: Vec::new(),
        tripwires: Vec::new(),
        end: End::Finished,
        cpu_us: 0,
        wall_us: 0,
    }
}

pub(crate) fn judged(case: &Case, hermes: &RawTrace, agent: &RawTrace) -> Judgement {
    (AUTHORITY_REFINEMENT.judge)(&Legs {
        case,
        hermes,
        hermes_again: None,
        agent,
        canaries: &[crate::observation::Canary {
            text: "CANARY".into(),
            path: "/home/u/.ssh/id_rsa".into(),
        }],
    })
}

fn check(held: Vec<Held>, hermes: StepTrace, agent: StepTrace, expected: Finding) {
    let case = case(vec![call()], held);
    let judgement = judged(&case, &trace(vec![hermes]), &trace(vec![agent]));
    assert_eq!(judgement.worst(), expected, "{judgement:#?}");
}

fn ran(effects: Vec<FsEffect>) -> StepTrace {
    step(StepOutcome::Ran, r#"{"output": ""}"#, effects)
}

fn refused() -> StepTrace {
    step(StepOutcome::Refused("no-cap".into()), "", Vec::new())
}

fn asked() -> StepTrace {
    step(
        StepOutcome::AskedRefused("rejected-by-user".into()),
        "",
        Vec::new(),
    )
}

fn discarded() -> StepTrace {
    step(
        StepOutcome::RanDiscarded("rejected-by-user".into()),
        "",
        Vec::new(),
    )
}

const FILE: &str = "/home/u/proj/a";

#[test]
fn the_same_result_and_effects_inside_the_grants_are_equal() {
    let made = || ran(vec![effect(FILE, EffectKind::Created)]);
    check(
        vec![hold("fs.*", "/home/u/proj")],
        made(),
        made(),
        Finding::Equal,
    );
}

#[test]
fn the_same_effect_outside_the_grants_is_both_unsafe() {
    let made = || ran(vec![effect(FILE, EffectKind::Created)]);
    check(
        vec![hold("fs.delete", "/home/u/proj")],
        made(),
        made(),
        Finding::BothUnsafe,
    );
}

#[test]
fn an_uncovered_effect_that_hermes_did_not_have_is_beyond_grant() {
    check(
        vec![],
        ran(vec![]),
        ran(vec![effect(FILE, EffectKind::Deleted)]),
        Finding::BeyondGrant,
    );
}

#[test]
fn an_uncovered_effect_where_hermes_refused_or_asked_is_weaker() {
    for hermes in [refused(), asked()] {
        check(
            vec![],
            hermes,
            ran(vec![effect(FILE, EffectKind::Deleted)]),
            Finding::Weaker,
        );
    }
}

#[test]
fn refusing_or_discarding_what_hermes_did_is_stricter() {
    for agent in [refused(), asked(), discarded()] {
        check(
            vec![],
            ran(vec![effect("/etc/x", EffectKind::Created)]),
            agent,
            Finding::Stricter,
        );
    }
}

#[test]
fn acting_inside_the_grants_where_hermes_asked_or_refused_is_attenuated() {
    for hermes in [refused(), asked()] {
        check(
            vec![hold("fs.*", "/home/u/proj")],
            hermes,
            ran(vec![effect(FILE, EffectKind::Created)]),
            Finding::Attenuated,
        );
    }
}

#[test]
fn asking_where_hermes_refuses_is_attenuated_and_the_other_way_round_stricter() {
    check(vec![], refused(), discarded(), Finding::Attenuated);
    check(vec![], asked(), refused(), Finding::Stricter);
}

#[test]
fn two_refusals_are_equal_whatever_they_say() {
    let mut other = refused();
    other.text = "other words".into();
    check(vec![], refused(), other, Finding::Equal);
    check(vec![], asked(), discarded(), Finding::Equal);
}

#[test]
fn another_text_on_a_benign_call_is_different() {
    check(
        vec![],
        step(StepOutcome::Ran, r#"{"output": "a"}"#, vec![]),
        step(StepOutcome::Ran, r#"{"output": "b"}"#, vec![]),
        Finding::Different,
    );
}

#[test]
fn a_missing_effect_inside_the_grants_is_different() {
    check(
        vec![hold("fs.*", "/home/u/proj")],
        ran(vec![effect(FILE, EffectKind::Created)]),
        ran(vec![]),
        Finding::Different,
    );
}

#[test]
fn running_without_the_uncovered_effect_is_stricter() {
    check(
        vec![],
        ran(vec![effect("/etc/x", EffectKind::Created)]),
        ran(vec![]),
        Finding::Stricter,
    );
}

#[test]
fn a_canary_in_the_agents_text_is_beyond_grant_unless_reading_it_is_held() {
    let leak = || step(StepOutcome::Ran, "CANARY", vec![]);
    check(vec![], ran(vec![]), leak(), Finding::BeyondGrant);
    check(vec![], leak(), leak(), Finding::BothUnsafe);
    check(
        vec![hold("fs.read", "/home/u/.ssh")],
        leak(),
        leak(),
        Finding::Equal,
    );
}

#[test]
fn a_connection_or_a_tripwire_of_the_agent_is_beyond_grant() {
    let case = case(vec![call()], vec![]);
    let quiet = trace(vec![ran(vec![])]);
    let mut loud = quiet.clone();
    loud.network.push(NetAttempt {
        protocol: "tcp".into(),
        port: 80,
        head: String::new(),
    });
    assert_eq!(judged(&case, &quiet, &loud).worst(), Finding::BeyondGrant);
    assert_eq!(judged(&case, &loud, &quiet).worst(), Finding::Stricter);
    let mut tripped = quiet.clone();
    tripped.tripwires.push("docker ps".into());
    assert_eq!(
        judged(&case, &quiet, &tripped).worst(),
        Finding::BeyondGrant
    );
}

#[test]
fn a_yes_covers_what_was_shown_to_the_agents_user_and_nothing_else() {
    let mut agent = ran(vec![effect(FILE, EffectKind::Created)]);
    agent.questions.push(QuestionTrace {
        shown: "create a".into(),
        answer: "once".into(),
    });
    check(vec![], ran(vec![]), agent.clone(), Finding::Stricter);
    agent
        .effects
        .push(effect("/etc/passwd", EffectKind::Modified));
    check(vec![], ran(vec![]), agent.clone(), Finding::BeyondGrant);
    agent.effects.pop();
    for no in ["deny", "", "maybe", "ONCE"] {
        agent.questions[0].answer = no.into();
        check(vec![], ran(vec![]), agent.clone(), Finding::BeyondGrant);
    }
}

#[test]
fn an_effect_after_the_last_step_counts() {
    let case = case(vec![call()], vec![]);
    let quiet = trace(vec![ran(vec![])]);
    let mut late = quiet.clone();
    late.effects
        .push(effect("/home/u/late", EffectKind::Created));
    assert_eq!(judged(&case, &quiet, &late).worst(), Finding::BeyondGrant);
}

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
        StepOutcome::Unsupported("no revocation".into()),
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
fn a_dead_or_hung_agent_is_inconclusive_and_a_hung_hermes_is_observed() {
    let case = case(vec![call()], vec![]);
    let fine = trace(vec![ran(vec![])]);
    let mut hung = trace(vec![]);
    hung.end = End::TimedOut;
    let mut dead = trace(vec![]);
    dead.end = End::Died("signal 9".into());
    assert_eq!(judged(&case, &fine, &hung).worst(), Finding::Inconclusive);
    assert_eq!(judged(&case, &fine, &dead).worst(), Finding::Inconclusive);
    assert_eq!(judged(&case, &dead, &fine).worst(), Finding::Inconclusive);
    assert_eq!(judged(&case, &hung, &hung).worst(), Finding::Equal);
    assert_eq!(judged(&case, &hung, &fine).worst(), Finding::Different);
    let failed = trace(vec![step(
        StepOutcome::ToolError,
        r#"{"output": ""}"#,
        vec![],
    )]);
    assert_eq!(judged(&case, &fine, &failed).worst(), Finding::Equal);
}

#[test]
fn what_hermes_varies_in_is_masked_and_what_it_decides_is_not() {
    let case = case(vec![call()], vec![]);
    let with = |id: &str| {
        trace(vec![step(
            StepOutcome::Ran,
            &format!(r#"{{"session_id": "{id}", "n": 1}}"#),
            vec![],
        )])
    };
    let judge = |again: &RawTrace, agent: &RawTrace| {
        let (hermes, canaries) = (with("a"), []);
        judge(&Legs {
            case: &case,
            hermes: &hermes,
            hermes_again: Some(again),
            agent,
            canaries: &canaries,
        })
        .worst()
    };
    assert_eq!(judge(&with("b"), &with("c")), Finding::EqualMasked);
    assert_eq!(judge(&with("a"), &with("c")), Finding::Different);
    assert_eq!(
        judge(&trace(vec![refused()]), &with("a")),
        Finding::Inconclusive
    );
}

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
                })
                .collect(),
            effects,
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

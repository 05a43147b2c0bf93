//! One step at a time: which pair of outcomes is which finding, in which words.

use super::*;
use crate::observation::Class;
use crate::relation::service::{same_inside, service};

mod masked;

const ETC: &str = "/etc/x";

fn seen(class: Class) -> StepSeen {
    StepSeen {
        class,
        code: String::new(),
        questions: Vec::new(),
        meanwhile: Vec::new(),
        value: Value::Null,
        delta: Vec::new(),
        parts: Vec::new(),
        canaries: Vec::new(),
    }
}

fn coded(class: Class, code: &str) -> StepSeen {
    StepSeen {
        code: code.into(),
        ..seen(class)
    }
}

fn said(value: Value) -> StepSeen {
    StepSeen {
        value,
        ..seen(Class::Ran)
    }
}

fn did(paths: &[&str]) -> StepSeen {
    let made = |path: &&str| effect(path, EffectKind::Created);
    StepSeen {
        delta: paths.iter().map(made).collect(),
        ..seen(Class::Ran)
    }
}

fn asked(answer: &str, seen: StepSeen) -> StepSeen {
    StepSeen {
        questions: vec![("create a".into(), answer.into())],
        ..seen
    }
}

fn grant() -> Step {
    Step::Grant(hold("fs.read", "/home/u"))
}

/// The step judged with this outside the grants, and what was outside on Hermes' side.
fn one(step: &Step, hermes: &StepSeen, agent: &StepSeen, outside_h: &[String]) -> StepJudgement {
    let pair = Pair {
        step,
        hermes,
        agent,
        outside_h,
        outside_a: &[],
    };
    judge_step(0, &pair, &Mask::default(), false)
}

fn found(step: &Step, hermes: Class, agent: Class) -> Finding {
    one(step, &seen(hermes), &seen(agent), &[]).finding
}

#[test]
fn what_ended_both_is_equal_and_what_ended_one_leaves_no_verdict() {
    for (hermes, agent, expected) in [
        (Class::Died, Class::Died, Finding::Equal),
        (Class::Ran, Class::Died, Finding::Inconclusive),
        (Class::Hung, Class::Died, Finding::Inconclusive),
        (Class::Died, Class::Ran, Finding::Inconclusive),
        (Class::Hung, Class::Hung, Finding::Equal),
        (Class::Ran, Class::Hung, Finding::Inconclusive),
    ] {
        for step in [call(), grant()] {
            assert_eq!(
                found(&step, hermes, agent),
                expected,
                "{hermes:?} {agent:?}"
            );
        }
    }
    // What Hermes did uncovered before it died is judged all the same.
    let outside = ["created /etc/x".to_owned()];
    let judged = one(&call(), &seen(Class::Died), &seen(Class::Ran), &outside);
    assert_eq!(judged.finding, Finding::Stricter);
}

#[test]
fn a_call_that_one_side_does_not_know_leaves_no_verdict() {
    let lacks = |hermes: &str| {
        one(
            &grant(),
            &coded(Class::Unsupported, hermes),
            &seen(Class::Ran),
            &[],
        )
    };
    for (hermes, agent, why) in [
        (
            Class::Ran,
            Class::Unsupported,
            "the agent does not support it: ",
        ),
        (
            Class::Unsupported,
            Class::Ran,
            "hermes does not support it: ",
        ),
    ] {
        let judged = one(&call(), &seen(hermes), &seen(agent), &[]);
        assert_eq!(
            (judged.finding, judged.why.as_str()),
            (Finding::Inconclusive, why)
        );
    }
    // Two that could not read the question have not answered it alike.
    let unread = coded(Class::Raised, "bad probe input: `command` is no text");
    let asked = Step::Probe {
        name: "classify_command".into(),
        input: Value::Null,
    };
    let judged = one(&asked, &unread, &unread, &[]);
    assert_eq!(judged.finding, Finding::Inconclusive);
    assert!(
        judged.why.starts_with("the case asks wrongly: bad probe"),
        "{}",
        judged.why
    );
    let other = coded(Class::Raised, "bad day");
    assert_eq!(one(&asked, &other, &other, &[]).finding, Finding::Equal);
    // Of a step that is no call there are notions Hermes lacks.
    assert_eq!(lacks("no-revocation").finding, Finding::Equal);
    assert_eq!(lacks("no-such-probe").finding, Finding::Inconclusive);
    let judged = one(
        &grant(),
        &seen(Class::Ran),
        &coded(Class::Unsupported, "x"),
        &[],
    );
    assert_eq!(judged.why, "the agent has no such step: x");
    let probe = Step::Probe {
        name: "validate_within_dir".into(),
        input: Value::Null,
    };
    assert_eq!(
        found(&probe, Class::Ran, Class::Unsupported),
        Finding::Inconclusive
    );
}

#[test]
fn a_subject_that_raises_is_equal_to_one_that_does_nothing() {
    for (hermes, agent, expected) in [
        (Class::Raised, Class::Raised, Finding::Equal),
        (Class::Ran, Class::Raised, Finding::Different),
        (Class::Refused, Class::Raised, Finding::Different),
        (Class::Raised, Class::Refused, Finding::Equal),
        (Class::Raised, Class::AskedRefused, Finding::Equal),
        (Class::Raised, Class::ToolError, Finding::Equal),
        (Class::Raised, Class::Ran, Finding::Different),
        (Class::Raised, Class::ProbePermit, Finding::Different),
    ] {
        for step in [call(), grant()] {
            assert_eq!(
                found(&step, hermes, agent),
                expected,
                "{hermes:?} {agent:?}"
            );
        }
    }
}

#[test]
fn a_step_that_is_no_call_is_followed_refused_or_different() {
    for (hermes, agent, expected) in [
        (Class::Ran, Class::Ran, Finding::Equal),
        (Class::Refused, Class::Refused, Finding::Equal),
        (Class::Ran, Class::Refused, Finding::Stricter),
        (Class::Ran, Class::AskedRefused, Finding::Stricter),
        (Class::Ran, Class::ToolError, Finding::Different),
        (Class::Refused, Class::Ran, Finding::Different),
    ] {
        assert_eq!(
            found(&grant(), hermes, agent),
            expected,
            "{hermes:?} {agent:?}"
        );
    }
}

#[test]
fn asking_first_counts_where_both_act() {
    let plain = || said(json!({"output": ""}));
    let judge = |hermes: &StepSeen, agent: &StepSeen| one(&call(), hermes, agent, &[]).finding;
    let yes = || asked("once", plain());
    assert_eq!(judge(&yes(), &plain()), Finding::Attenuated);
    assert_eq!(judge(&plain(), &yes()), Finding::Stricter);
    assert_eq!(judge(&yes(), &yes()), Finding::Equal);
    assert_eq!(judge(&plain(), &plain()), Finding::Equal);
}

#[test]
fn a_judged_step_says_what_each_did_in_a_fixed_form() {
    let outside = ["created /etc/x".to_owned()];
    for (hermes, agent, outside_h, expected) in [
        (
            seen(Class::Ran),
            seen(Class::Ran),
            &[][..],
            "ran:none -> ran:none",
        ),
        (
            seen(Class::Ran),
            coded(Class::Refused, "no-cap"),
            &[],
            "ran:none -> refused:none:no-cap",
        ),
        (
            seen(Class::Ran),
            seen(Class::Refused),
            &[],
            "ran:none -> refused:none",
        ),
        (
            coded(Class::Refused, "pattern"),
            coded(Class::Ran, "unseen"),
            &[],
            "refused:none -> ran:none",
        ),
        (
            did(&["/home/u/a"]),
            asked("deny", coded(Class::Discarded, "rejected-by-user")),
            &[],
            "ran:inside -> discarded+asked:none:rejected-by-user",
        ),
        // Only what lies outside is missing, or something else as well.
        (
            did(&[ETC]),
            did(&[]),
            &outside,
            "ran:outside -> ran:none+same",
        ),
        (
            did(&["/home/u/a", ETC]),
            did(&[]),
            &outside,
            "ran:outside -> ran:none",
        ),
        (
            seen(Class::Ran),
            asked("once", seen(Class::Ran)),
            &[],
            "ran:none -> ran+asked:none+same",
        ),
        (
            seen(Class::Ran),
            seen(Class::Discarded),
            &[],
            "ran:none -> discarded:none",
        ),
        (
            seen(Class::AskedRefused),
            seen(Class::Refused),
            &[],
            "asked-refused:none -> refused:none",
        ),
    ] {
        let judged = one(&call(), &hermes, &agent, outside_h);
        assert_eq!(judged.fingerprint(), format!("call:terminal {expected}"));
    }
}

#[test]
fn the_same_inside_means_the_same_value_and_the_same_effects_but_for_those_outside() {
    let outside = ["created /etc/x".to_owned()];
    let same = |hermes: &StepSeen, agent: &StepSeen| {
        let step = call();
        let pair = Pair {
            step: &step,
            hermes,
            agent,
            outside_h: &outside,
            outside_a: &[],
        };
        same_inside(0, &pair, &Mask::default())
    };
    assert!(same(&did(&["/home/u/a", ETC]), &did(&["/home/u/a"])));
    assert!(same(&did(&[]), &did(&[])));
    assert!(!same(&did(&["/home/u/a", ETC]), &did(&[])));
    assert!(!same(&did(&["/home/u/a"]), &did(&["/home/u/b"])));
    assert!(!same(&said(json!(1)), &said(json!(2))));
    let other = StepSeen {
        value: json!(1),
        ..did(&["/home/u/a"])
    };
    assert!(!same(&did(&["/home/u/a", ETC]), &other));
}

fn serve(hermes: &StepSeen, agent: &StepSeen, mask: &Mask, diverged: bool) -> (Finding, String) {
    let step = call();
    let pair = Pair {
        step: &step,
        hermes,
        agent,
        outside_h: &[],
        outside_a: &[],
    };
    service(0, &pair, mask, diverged)
}

fn mask_of(pointer: &str, content: &str) -> Mask {
    let set = |text: &str| {
        let texts = [text].into_iter().filter(|text| !text.is_empty());
        texts.map(str::to_owned).collect()
    };
    Mask {
        pointers: vec![set(pointer)],
        contents: set(content),
        unstable: None,
    }
}

fn with(path: &str, digest: &str) -> StepSeen {
    let mut seen = did(&[path]);
    seen.delta[0].digest = digest.into();
    seen
}

#[test]
fn only_what_hermes_varies_in_is_masked() {
    let id = |id: &str, n: u8| said(json!({"id": id, "n": n}));
    let noisy = mask_of("/id", "/home/u/a");
    let judge =
        |hermes: &StepSeen, agent: &StepSeen, mask: &Mask| serve(hermes, agent, mask, false).0;
    for (hermes, agent, mask, expected) in [
        (id("a", 1), id("a", 1), &noisy, Finding::Equal),
        (id("a", 1), id("b", 1), &noisy, Finding::EqualMasked),
        (id("a", 1), id("b", 2), &noisy, Finding::Different),
        (id("a", 1), id("b", 1), &Mask::default(), Finding::Different),
        (
            with("/home/u/a", "x"),
            with("/home/u/a", "y"),
            &noisy,
            Finding::EqualMasked,
        ),
        (
            with("/home/u/b", "x"),
            with("/home/u/b", "y"),
            &noisy,
            Finding::Different,
        ),
        (
            with("/home/u/a", "x"),
            with("/home/u/b", "x"),
            &noisy,
            Finding::Different,
        ),
        (id("a", 1), did(&["/home/u/a"]), &noisy, Finding::Different),
        (
            seen(Class::Ran),
            seen(Class::ToolError),
            &noisy,
            Finding::Equal,
        ),
        (
            seen(Class::Ran),
            seen(Class::Refused),
            &noisy,
            Finding::Different,
        ),
    ] {
        assert_eq!(
            judge(&hermes, &agent, mask),
            expected,
            "{hermes:?} {agent:?}"
        );
    }
    // The value alone, or the effects alone, are not enough.
    let both = |id: &str, n: u8, path: &str| StepSeen {
        value: json!({"id": id, "n": n}),
        ..did(&[path])
    };
    let one = both("a", 1, "/home/u/b");
    assert_eq!(
        judge(&one, &both("b", 2, "/home/u/b"), &noisy),
        Finding::Different
    );
    assert_eq!(
        judge(&one, &both("b", 1, "/home/u/c"), &noisy),
        Finding::Different
    );
    assert_eq!(
        judge(&one, &both("a", 1, "/home/u/c"), &Mask::default()),
        Finding::Different
    );
    assert_eq!(
        judge(&one, &both("a", 2, "/home/u/b"), &Mask::default()),
        Finding::Different
    );
    // After an earlier difference only authority is compared.
    let after = serve(&id("a", 1), &id("b", 2), &Mask::default(), true);
    assert_eq!(after.0, Finding::Equal);
}

fn difference(hermes: &StepSeen, agent: &StepSeen) -> String {
    let (finding, why) = serve(hermes, agent, &Mask::default(), false);
    assert_eq!(finding, Finding::Different);
    why
}

#[test]
fn a_difference_is_told_by_its_first_place() {
    let values = |hermes: Value, agent: Value| difference(&said(hermes), &said(agent));
    for (hermes, agent, expected) in [
        (
            json!({"a": 1, "b": {"c": 2}}),
            json!({"a": 1, "b": {"c": 3}}),
            "the result differs at `/b/c`: hermes 2, the agent 3",
        ),
        (
            json!({"a": 1, "b": 1}),
            json!({"a": 1, "c": 1}),
            "the result differs at `/`: hermes has keys a,b, the agent has keys a,c",
        ),
        (
            json!([1, 2, 3]),
            json!([1, 4, 5]),
            "the result differs at `/1`: hermes 2, the agent 4",
        ),
        (
            json!([1, 2]),
            json!([1]),
            "the result differs at ``: hermes [1,2], the agent [1]",
        ),
        (
            json!("abc"),
            json!("abd"),
            "the result differs at `[2]`: hermes \"abc\", the agent \"abd\"",
        ),
        (
            json!("0123456789abcdefX"),
            json!("0123456789abcdefY"),
            "the result differs at `[16]`: hermes \"456789abcdefX\", the agent \"456789abcdefY\"",
        ),
        (
            json!(true),
            json!(null),
            "the result differs at ``: hermes true, the agent null",
        ),
    ] {
        assert_eq!(values(hermes, agent), expected);
    }
    let of = |class| StepSeen {
        value: json!(1),
        ..seen(class)
    };
    let classes = difference(&of(Class::Ran), &seen(Class::ToolError));
    assert_eq!(classes, "hermes ran, the agent tool-error");
    let effects = difference(&did(&["/home/u/a", "/home/u/b"]), &did(&["/home/u/b"]));
    assert_eq!(
        effects,
        "the effects differ: only hermes: created /home/u/a [d 1 bytes mode 644]; only the agent: nothing"
    );
    let effects = difference(&did(&["/home/u/b"]), &did(&["/home/u/a", "/home/u/c"]));
    assert_eq!(
        effects,
        "the effects differ: only hermes: created /home/u/b [d 1 bytes mode 644]; only the agent: \
         created /home/u/a [d 1 bytes mode 644], created /home/u/c [d 1 bytes mode 644]"
    );
}

#[test]
fn every_step_has_a_word_for_fingerprints() {
    let probe = Step::Probe {
        name: "paths".into(),
        input: Value::Null,
    };
    let revoke = Step::Revoke { grant: "g".into() };
    let spawn = Step::Spawn {
        child: "c".into(),
        forward: Vec::new(),
    };
    for (step, word) in [
        (call(), "call:terminal"),
        (probe, "probe:paths"),
        (grant(), "grant"),
        (revoke, "revoke"),
        (Step::Advance { seconds: 1 }, "advance"),
        (Step::EndSession {}, "end-session"),
        (Step::Restart(Default::default()), "restart"),
        (spawn, "spawn"),
    ] {
        assert_eq!(what(&step), word);
    }
}

fn run(steps: Vec<StepSeen>) -> Observation {
    Observation {
        steps,
        late: Vec::new(),
        effects: Vec::new(),
        network: Vec::new(),
        tripwires: Vec::new(),
    }
}

fn of(calls: usize, held: Vec<Held>, hermes: &Observation, agent: &Observation) -> Judgement {
    let case = case(vec![call(); calls], held);
    judge_seen(&case, hermes, agent, &Mask::default())
}

#[test]
fn what_the_agent_still_does_after_hermes_was_cut_is_held_against_the_grants() {
    let hermes = run(vec![said(json!(1))]);
    let agent = |path: &str| run(vec![said(json!(1)), did(&[path])]);
    let held = || vec![hold("fs.*", "/home/u/proj")];
    let inside = of(2, held(), &hermes, &agent("/home/u/proj/a"));
    assert_eq!(inside.steps.len(), 1);
    assert_eq!(inside.worst(), Finding::Equal);
    assert!(!inside.wants_noise_run());
    let outside = of(2, held(), &hermes, &agent(ETC));
    assert_eq!(outside.worst(), Finding::BeyondGrant);
    assert_eq!(outside.agent_outside, ["created /etc/x"]);
    let last = outside.steps.last().unwrap();
    assert_eq!(
        (last.step, last.fingerprint().as_str()),
        (1, "call:terminal cut -> outside")
    );
    // The agent cut, nothing of it is left to judge; both cut, neither.
    let alone = of(2, held(), &agent(ETC), &hermes);
    assert_eq!((alone.steps.len(), alone.worst()), (1, Finding::Equal));
    assert_eq!(of(3, held(), &hermes, &hermes).steps.len(), 1);
}

#[test]
fn after_a_difference_in_effects_or_in_what_was_let_through_only_authority_is_compared() {
    let held = || vec![hold("fs.*", "/home/u/proj")];
    let last = |value| said(json!(value));
    for (hermes, agent) in [
        (did(&["/home/u/proj/a"]), did(&[])),
        (seen(Class::Refused), seen(Class::Ran)),
    ] {
        let (hermes, agent) = (run(vec![hermes, last(1)]), run(vec![agent, last(2)]));
        let judgement = of(2, held(), &hermes, &agent);
        assert_eq!(judgement.steps[1].finding, Finding::Equal, "{judgement:#?}");
    }
    let same = || did(&["/home/u/proj/a"]);
    let (hermes, agent) = (run(vec![same(), last(1)]), run(vec![same(), last(2)]));
    let judgement = of(2, held(), &hermes, &agent);
    assert_eq!(judgement.steps[1].finding, Finding::Different);
    assert!(judgement.wants_noise_run());
    // It stays so until the end.
    let steps = |first: StepSeen, value| run(vec![first, seen(Class::Ran), last(value)]);
    let (hermes, agent) = (steps(same(), 1), steps(did(&[]), 2));
    let judgement = of(3, held(), &hermes, &agent);
    assert_eq!(judgement.steps[2].finding, Finding::Equal);
}

#[test]
fn a_secret_in_the_last_step_is_told_once() {
    let leak = StepSeen {
        canaries: vec!["/home/u/.ssh/id_rsa".into()],
        ..seen(Class::Ran)
    };
    let judgement = of(1, vec![], &run(vec![seen(Class::Ran)]), &run(vec![leak]));
    assert_eq!(judgement.agent_outside, ["leaked /home/u/.ssh/id_rsa"]);
}

#[test]
fn a_yes_to_hermes_covers_the_world_outside_and_a_yes_to_the_agent_does_not() {
    let loud = |step: StepSeen| Observation {
        tripwires: vec!["docker ps".into()],
        ..run(vec![step])
    };
    let yes = || asked("once", seen(Class::Ran));
    let plain = || seen(Class::Ran);
    let outside = |hermes: StepSeen, agent: StepSeen| {
        let judgement = of(1, vec![], &loud(hermes), &loud(agent));
        (
            judgement.hermes_outside.len(),
            judgement.agent_outside.len(),
        )
    };
    assert_eq!(outside(plain(), plain()), (1, 1));
    assert_eq!(outside(yes(), plain()), (0, 1));
    assert_eq!(outside(plain(), yes()), (1, 1));
    assert_eq!(
        outside(asked("deny", plain()), asked("deny", plain())),
        (1, 1)
    );
}

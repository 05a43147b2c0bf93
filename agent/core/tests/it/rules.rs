//! Configured rules, and decisions that explain themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::Stance,
    authority::{Host, HostPattern, Name, Object, Port, Program, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    outcome::DenialCode,
    rules::{ConfiguredRule, Layer, Pattern, RuleError},
    session::{Asking, Explanation},
    standing::PortableObject,
    tool::Tool,
};
use support::{Bench, Came, SESSION, path};

const CHANGES: &[Verb] = &[Verb::FsCreate, Verb::FsModify, Verb::FsDelete];

fn place(text: &str) -> Pattern {
    Pattern::Object(PortableObject::tree(path(text)))
}

fn rule(id: &str, stance: Stance, pattern: Pattern, layer: Layer) -> ConfiguredRule {
    ConfiguredRule::new(
        id,
        stance,
        CHANGES.to_vec(),
        pattern,
        ("rules.toml", 7, layer),
    )
    .unwrap()
}

/// A session that holds everything in its directory, under these rules.
fn with(rules: Vec<ConfiguredRule>) -> Bench {
    let mut bench = Bench::new(Asking::Prompt);
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    for rule in rules {
        bench.session.add_rule(rule).unwrap();
    }
    bench
}

#[test]
fn deny_beats_ask_beats_allow_whatever_is_narrower_or_more_trusted() {
    use Stance::{Allow, Ask, Deny};
    let wide = || place("home/u/proj");
    let narrow = || place("home/u/proj/src/a");
    let denied = Came::Denied(DenialCode::DeniedByRule);
    let check = |rules: Vec<ConfiguredRule>, expected: Came| {
        let mut reversed = rules.clone();
        reversed.reverse();
        for rules in [rules, reversed] {
            assert_eq!(with(rules).write("src/a"), expected);
        }
    };
    let user = Layer::User;
    check(vec![], Came::Permitted(1));
    check(vec![rule("r", Ask, wide(), user)], Came::Asked);
    check(
        vec![rule("r", Deny, wide(), Layer::Project)],
        denied.clone(),
    );
    check(
        vec![
            rule("wide", Deny, wide(), Layer::Project),
            rule("narrow", Allow, narrow(), Layer::Administrator),
        ],
        denied.clone(),
    );
    check(
        vec![
            rule("narrow", Deny, narrow(), Layer::Project),
            rule("wide", Ask, wide(), Layer::Administrator),
        ],
        denied,
    );
    check(
        vec![
            rule("wide", Ask, wide(), Layer::Project),
            rule("narrow", Allow, narrow(), user),
        ],
        Came::Asked,
    );
}

#[test]
fn a_rule_is_about_its_place_and_what_lies_below_and_removing_what_holds_it() {
    let deny = |text: &str| vec![rule("r", Stance::Deny, place(text), Layer::User)];
    let mut bench = with(deny("home/u/proj/src/keep"));
    let denied = Came::Denied(DenialCode::DeniedByRule);
    assert_eq!(bench.write("src/keep"), denied);
    assert_eq!(bench.write("src/keep/deep"), denied);
    assert_eq!(bench.write("src/keeper"), Came::Permitted(1));
    assert_eq!(bench.read("src/keep"), Came::Permitted(1));
    let above = bench.file(Verb::FsModify, "src");
    let came = bench.call_as(AgentId::FIRST, Tool::Directory, vec![above]);
    assert_eq!(came, Came::Permitted(1), "changing what holds it does not");
    let remove = bench.file(Verb::FsDelete, "src");
    let came = bench.call_as(AgentId::FIRST, Tool::Directory, vec![remove]);
    assert_eq!(came, denied, "it would take along what may not be removed");
}

#[test]
fn what_a_rule_keeps_from_being_read_is_not_moved_along_with_what_holds_it() {
    let about = |stance, verb| {
        let place = place("home/u/proj/src/keep");
        ConfiguredRule::new("r", stance, vec![verb], place, ("f", 1, Layer::User)).unwrap()
    };
    let check = |rule: ConfiguredRule, what: &str, expected: Came| {
        let mut bench = with(vec![rule]);
        let remove = bench.file(Verb::FsDelete, what);
        let came = bench.call_as(AgentId::FIRST, Tool::Directory, vec![remove]);
        assert_eq!(came, expected, "{what}");
    };
    let denied = Came::Denied(DenialCode::DeniedByRule);
    for verb in [Verb::FsRead, Verb::FsList] {
        check(about(Stance::Deny, verb), "src", denied.clone());
        check(about(Stance::Ask, verb), "src", Came::Asked);
        // It says nothing of removing it, nor of what lies beside or in it.
        for other in ["src/keep", "src/other", "src/keep/deep", "sr"] {
            check(about(Stance::Deny, verb), other, Came::Permitted(1));
        }
        check(about(Stance::Allow, verb), "src", Came::Permitted(1));
    }
    check(
        about(Stance::Deny, Verb::FsModify),
        "src",
        Came::Permitted(1),
    );
}

#[test]
fn a_name_pattern_reaches_files_and_directories_anywhere_whatever_the_case() {
    let named = Pattern::Named("*.PEM".into());
    let mut bench = with(vec![rule("keys", Stance::Deny, named, Layer::User)]);
    let denied = Came::Denied(DenialCode::DeniedByRule);
    assert_eq!(bench.write("a/b/key.pem"), denied);
    assert_eq!(bench.write("store.pem/x"), denied);
    assert_eq!(bench.write("pem"), Came::Permitted(1));
}

#[test]
fn a_rule_that_asks_is_asked_each_time_and_refuses_where_nobody_is() {
    let ask = rule("look", Stance::Ask, place("home/u/proj"), Layer::User);
    let mut bench = with(vec![ask.clone()]);
    assert_eq!(bench.write("a"), Came::Asked);
    let always = hermitcrab_core::approval::Reply::parse("always");
    assert_eq!(bench.answer(always), Came::Permitted(1));
    bench.finish();
    assert_eq!(bench.write("a"), Came::Asked);
    let mut alone = Bench::new(Asking::Refuse);
    let all = alone.on_files(&Verb::FILES, ".");
    alone.grant(all, Uses::Uncounted, SESSION);
    alone.session.add_rule(ask).unwrap();
    assert_eq!(alone.write("a"), Came::Denied(DenialCode::AskedByRule));
    let rule = alone.denial.unwrap().rule().unwrap().to_string();
    assert_eq!(rule, "look at rules.toml:7");
}

#[test]
fn a_rule_that_could_not_mean_what_it_says_is_none() {
    let make = |stance, verbs: &[Verb], pattern, layer| {
        ConfiguredRule::new("r", stance, verbs.to_vec(), pattern, ("f", 1, layer)).map(|_| ())
    };
    let user = Layer::User;
    let (allow, deny) = (Stance::Allow, Stance::Deny);
    let named = || Pattern::Named("x".into());
    assert_eq!(
        make(deny, &[], Pattern::Anything, user),
        Err(RuleError::Verb)
    );
    assert_eq!(
        make(deny, &[Verb::ProcExec], place("a"), user),
        Err(RuleError::Verb)
    );
    assert_eq!(
        make(allow, CHANGES, named(), user),
        Err(RuleError::AllowByName)
    );
    assert_eq!(
        make(allow, CHANGES, place("a"), Layer::Project),
        Err(RuleError::ProjectAllows)
    );
    let program = |program| Pattern::Object(PortableObject::Program(program));
    let name = || Name::parse("rm").unwrap();
    assert_eq!(
        make(
            deny,
            &[Verb::ProcExec],
            program(Program::InView(name())),
            user
        ),
        Err(RuleError::ProgramInView)
    );
    assert_eq!(
        make(
            deny,
            &[Verb::ProcExec],
            program(Program::OnHost(name())),
            user
        ),
        Ok(())
    );
    let nameless = ConfiguredRule::new("", deny, CHANGES.to_vec(), named(), ("f", 1, user));
    assert_eq!(nameless, Err(RuleError::Id));
}

fn explain(bench: &Bench, action: &Action) -> (Stance, Option<DenialCode>, String) {
    let Explanation {
        stance, code, rule, ..
    } = bench
        .session
        .explain(AgentId::FIRST, Tool::WriteFile, action);
    (stance, code, rule.to_string())
}

#[test]
fn a_decision_explains_itself_by_rule_file_and_line() {
    let bench = with(vec![
        rule("keep", Stance::Deny, place("home/u/proj/keep"), Layer::User),
        rule(
            "look",
            Stance::Ask,
            place("home/u/proj/look"),
            Layer::Project,
        ),
    ]);
    let write = |below: &str| bench.file(Verb::FsModify, below);
    let no = |code, rule: &str| (Stance::Deny, Some(code), rule.to_owned());
    let ask = |code, rule: &str| (Stance::Ask, Some(code), rule.to_owned());
    assert_eq!(
        explain(&bench, &write("keep/a")),
        no(DenialCode::DeniedByRule, "keep at rules.toml:7")
    );
    assert_eq!(
        explain(&bench, &write("look/a")),
        ask(DenialCode::AskedByRule, "look at rules.toml:7")
    );
    assert_eq!(
        explain(&bench, &write(".env")),
        ask(DenialCode::SensitivePath, "builtin.sensitive-place")
    );
    assert_eq!(
        explain(&bench, &write("free")),
        (Stance::Allow, None, "builtin.held".to_owned())
    );
    let port = Port::Only(443);
    let name = HostPattern::Exact(Name::parse("example.org").unwrap());
    let host = Object::Host(Host { name, port });
    let connect = Action::new(Verb::NetConnect, host, Digest::NONE).unwrap();
    assert_eq!(
        explain(&bench, &connect),
        ask(DenialCode::NoCap, "builtin.not-held")
    );
    // Nothing is held, which a grant would not mend: such a place is asked about each time.
    let bare = Bench::new(Asking::Prompt);
    assert_eq!(
        explain(&bare, &bare.file(Verb::FsModify, ".env")),
        ask(DenialCode::SensitivePath, "builtin.sensitive-place")
    );
    let alone = Bench::new(Asking::Refuse);
    let read = alone.file(Verb::FsRead, "a");
    assert_eq!(
        explain(&alone, &read),
        no(DenialCode::NoCap, "builtin.mode-refuses")
    );
}

#[test]
fn an_explanation_is_what_then_happens_and_costs_nothing() {
    for mode in Asking::ALL {
        let mut bench = Bench::new(mode);
        let some = bench.on_files(&[Verb::FsModify], "src");
        let grant = bench.grant(some, Uses::AtMost(1), SESSION);
        let rules = [
            rule(
                "keep",
                Stance::Deny,
                place("home/u/proj/src/keep"),
                Layer::User,
            ),
            rule(
                "look",
                Stance::Ask,
                place("home/u/proj/src/look"),
                Layer::User,
            ),
        ];
        for rule in rules {
            bench.session.add_rule(rule).unwrap();
        }
        for below in [
            "src/keep", "src/look", "src/.env", ".env", "b", "src/a", "src/a",
        ] {
            let action = bench.file(Verb::FsModify, below);
            let said = bench
                .session
                .explain(AgentId::FIRST, Tool::WriteFile, &action);
            let used = bench.session.table().get(grant).unwrap().used();
            let again = bench
                .session
                .explain(AgentId::FIRST, Tool::WriteFile, &action);
            assert_eq!(
                (&again, used),
                (&said, bench.session.table().get(grant).unwrap().used())
            );
            let came = match bench.write(below) {
                Came::Permitted(_) => Stance::Allow,
                Came::Asked => Stance::Ask,
                Came::Denied(code) => {
                    assert_eq!(said.code, Some(code), "{mode} {below}");
                    Stance::Deny
                }
                Came::Nothing => panic!("nothing came of {below}"),
            };
            assert_eq!(said.stance, came, "{mode} {below}");
        }
    }
}

#[test]
fn configured_rules_are_listed_strictest_first() {
    use hermitcrab_core::rules::{Isolation, Rules};
    let mut rules = Rules::new(7, Isolation::Isolated, Vec::new());
    for (id, stance) in [("a", Stance::Ask), ("d", Stance::Deny)] {
        rules
            .add_rule(rule(id, stance, place("x"), Layer::User))
            .unwrap();
    }
    let listed: Vec<_> = rules
        .configured()
        .iter()
        .map(|rule| rule.stance())
        .collect();
    assert_eq!(listed, [Stance::Deny, Stance::Ask]);
}

#[test]
fn a_rule_about_a_host_is_about_that_host_and_no_other() {
    use hermitcrab_core::rules::{Isolation, Judgement, Rules};
    let host = |name: &str| Host {
        name: HostPattern::Exact(Name::parse(name).unwrap()),
        port: Port::Only(443),
    };
    let mut rules = Rules::new(7, Isolation::Isolated, Vec::new());
    let denied = ConfiguredRule::new(
        "no-example",
        Stance::Deny,
        vec![Verb::NetConnect],
        Pattern::Object(PortableObject::Host(host("example.org"))),
        ("rules.toml", 7, Layer::User),
    );
    rules.add_rule(denied.unwrap()).unwrap();
    let judge = |name| {
        let to = Action::new(Verb::NetConnect, Object::Host(host(name)), Digest::NONE);
        rules.judge(Tool::Terminal, &to.unwrap())
    };
    assert!(matches!(
        judge("example.org"),
        Judgement::Deny(DenialCode::DeniedByRule, _)
    ));
    assert!(!matches!(judge("example.com"), Judgement::Deny(..)));
}

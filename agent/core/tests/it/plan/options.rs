//! A word that is there, and not in the plan, and begins like an option: it steers what its
//! program does, so that it is asked about whatever made it.

use super::*;

/// One that yields the name of a file, and programs that take it in one way or another.
fn programs(kind: &Kind, role: Role) -> Arc<Toolbox> {
    let name = Kind::record(&[("name", Kind::Text.at(Level::Service))]).at(Level::Service);
    let program = |name: &str, changes: bool| Signature {
        changes,
        ..tool(
            name,
            vec![param("words", kind.clone(), role)],
            user(Kind::Nothing),
            None,
        )
    };
    Arc::new(Toolbox::new(vec![
        tool("find", vec![], name, None),
        program("run", true),
        program("look", false),
    ]))
}

/// Whether the program's call is a concern, with a file of this name.
fn concerns(toolbox: Arc<Toolbox>, program: &str, words: Expr, name: &str) -> bool {
    let steps = vec![
        call("f", "find", &[]),
        call("r", program, &[("words", words)]),
    ];
    let summary = String::new();
    let plan = check(PlanDraft { summary, steps }, toolbox, FlowRules::STRICT).unwrap();
    let (calls, _) = run(plan, |call| match call.tool.as_str() {
        "find" => Reply::Result(Raw::Record(vec![("name".into(), Raw::Text(name.into()))])),
        _ => Reply::Result(Raw::Nothing),
    });
    match &calls[1].concerns[..] {
        [] => false,
        [concern] => {
            assert_eq!(concern.argument.as_deref(), Some("words"));
            assert_eq!(
                (concern.level, &concern.from[..]),
                (Level::Service, &["f".to_owned()][..])
            );
            true
        }
        more => panic!("{more:?}"),
    }
}

#[test]
fn a_word_that_is_there_and_begins_like_an_option_is_a_concern_and_one_of_the_plan_is_none() {
    let list = Kind::list(user(Kind::Text));
    let beside = Expr::List(vec![text("-x"), at("f.name")]);
    for (name, expected) in [
        ("plain", false),
        ("a-b", false),
        ("", false),
        ("-rf", true),
        ("-", true),
    ] {
        let words = || programs(&list, Role::Word);
        assert_eq!(
            concerns(words(), "run", beside.clone(), name),
            expected,
            "{name}"
        );
        // One that changes nothing may be called with anything.
        assert!(!concerns(words(), "look", beside.clone(), name), "{name}");
        // By itself it is the same, and where it is no word of a program it is none.
        for (role, expected) in [(Role::Word, expected), (Role::Content, false)] {
            let one = programs(&Kind::Text, role);
            assert_eq!(
                concerns(one, "run", at("f.name"), name),
                expected,
                "{role:?} {name}"
            );
        }
    }
}

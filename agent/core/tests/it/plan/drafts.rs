//! What is a plan and what is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn a_reference_names_a_step_that_has_run_by_then() {
    let read = |from: &str| call("a", "read", &[("path", at(from))]);
    refused(vec![read("nobody")], "a", ErrorKind::UnknownReference);
    refused(vec![read("a")], "a", ErrorKind::ForwardReference);
    let later = call("b", "read", &[("path", text("x"))]);
    refused(
        vec![read("b.text"), later],
        "a",
        ErrorKind::ForwardReference,
    );
    let first = call("b", "read", &[("path", text("x"))]);
    refused(
        vec![first.clone(), read("b.no_such_part")],
        "a",
        ErrorKind::UnknownField,
    );
    assert!(checked(vec![first, read("b.text")]).is_ok());
}

#[test]
fn what_happens_inside_a_branch_is_not_seen_outside() {
    let inside = call("inside", "read", &[("path", text("x"))]);
    let test = Expr::Literal(Raw::Truth(true));
    let branch = step(
        "branch",
        What::If {
            test,
            then: vec![inside],
            or_else: vec![],
        },
    );
    let after = call("after", "read", &[("path", at("inside.text"))]);
    refused(vec![branch, after], "after", ErrorKind::ForwardReference);
}

#[test]
fn types_are_held_against_the_tools() {
    refused(
        vec![call("a", "read", &[("path", Expr::Literal(Raw::Whole(3)))])],
        "a",
        ErrorKind::WrongType,
    );
    refused(
        vec![call("a", "read", &[])],
        "a",
        ErrorKind::MissingArgument,
    );
    refused(
        vec![call("a", "rm -rf /", &[])],
        "a",
        ErrorKind::UnknownTool,
    );
    refused(
        vec![call(
            "a",
            "read",
            &[("path", text("x")), ("mode", text("y"))],
        )],
        "a",
        ErrorKind::UnknownArgument,
    );
    let listed = call("l", "list", &[]);
    refused(
        vec![listed, call("a", "read", &[("path", at("l.entries"))])],
        "a",
        ErrorKind::WrongType,
    );
}

#[test]
fn names_are_plain_and_used_once() {
    let read = |id: &str| call(id, "read", &[("path", text("x"))]);
    refused(vec![read("a"), read("a")], "a", ErrorKind::NameTaken);
    refused(vec![read("$STEP1")], "#1", ErrorKind::BadName);
    refused(vec![read("a\nb")], "#1", ErrorKind::BadName);
    refused(vec![read(&"x".repeat(41))], "#1", ErrorKind::BadName);
}

#[test]
fn everything_is_bounded() {
    let read = |id: String| call(&id, "read", &[("path", text("x"))]);
    let many = (0..10_000).map(|n| read(format!("s{n}"))).collect();
    assert_eq!(
        checked(many).unwrap_err(),
        vec![(None, ErrorKind::TooManySteps)]
    );
    assert_eq!(checked(vec![]).unwrap_err(), vec![(None, ErrorKind::Empty)]);
    let mut deep = vec![read("leaf".into())];
    for level in 0..8 {
        deep = vec![step(
            &format!("n{level}"),
            What::If {
                test: Expr::Literal(Raw::Truth(true)),
                then: deep,
                or_else: vec![],
            },
        )];
    }
    assert_eq!(checked(deep).unwrap_err(), vec![(None, ErrorKind::TooDeep)]);
    let mut nested = text("x");
    for _ in 0..40 {
        nested = Expr::Apply(Builtin::Trim, vec![nested]);
    }
    refused(
        vec![call("a", "read", &[("path", nested)])],
        "a",
        ErrorKind::TooDeep,
    );
    refused(
        vec![call("a", "read", &[("path", text(&"x".repeat(1 << 20)))])],
        "a",
        ErrorKind::TooLong,
    );
    let turning = |inner: Vec<Step>, id: &str| {
        step(
            id,
            What::ForEach {
                list: Expr::List(vec![text("x")]),
                name: format!("item_{id}"),
                at_most: Some(1000),
                steps: inner,
                gives: None,
            },
        )
    };
    let all = turning(vec![turning(vec![read("r".into())], "in")], "out");
    assert_eq!(
        checked(vec![all]).unwrap_err(),
        vec![(None, ErrorKind::TooManyCalls)]
    );
    let wrong = (0..100)
        .map(|n| call(&format!("s{n}"), "nothing", &[]))
        .collect();
    assert_eq!(checked(wrong).unwrap_err().len(), 16);
}

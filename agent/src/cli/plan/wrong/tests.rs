//! Each error of a plan in a file, with the words it is told in.

use hermitcrab_core::plan::{FlowRules, check};

use super::wrong;
use crate::{actions, planner::draft};

fn told_of(text: &str) -> String {
    let toolbox = std::sync::Arc::new(actions::toolbox());
    let checked = draft::read(text.as_bytes())
        .and_then(|draft| check(draft, std::sync::Arc::clone(&toolbox), FlowRules::STRICT));
    wrong(&checked.expect_err("no plan"), text.as_bytes(), &toolbox)
}

fn told(steps: &str) -> String {
    told_of(&format!(r#"{{"version": 1, "steps": [{steps}]}}"#))
}

#[test]
fn what_was_mistyped_is_told_with_what_may_be_meant() {
    for (steps, line) in [
        (
            r#"{"id": "a", "call": "create_fil", "with": {"path": "x", "text": "y"}}"#,
            "step a: there is no such tool (unknown-tool): `create_fil`; is `create_file` meant?",
        ),
        (
            r#"{"id": "a", "call": "zzz"}"#,
            "step a: there is no such tool (unknown-tool): `zzz`\n",
        ),
        (
            r#"{"id": "a", "delegate": "x", "tools": ["read_fil"]}"#,
            "(unknown-tool): `read_fil`; is `read_file` meant?\n",
        ),
        (
            r#"{"id": "a", "call": "create_file", "with": {"pth": "x", "text": "y"}}"#,
            "(unknown-argument): `pth`; is `path` meant?",
        ),
        (
            r#"{"id": "a", "call": "read_file", "with": {"zzz": "x"}}"#,
            "(unknown-argument): `zzz`; it is read_file(path: path)\n",
        ),
        (
            r#"{"id": "a", "call": "create_file", "with": {"text": "y"}}"#,
            "(missing-argument): `path`\n",
        ),
        (
            r#"{"id": "look", "call": "list_files"}, {"id": "l", "for_each": {"$": "lok.paths"}, "as": "p", "at_most": 3, "do": [{"id": "b", "answer": {"$": "p"}}]}"#,
            "step l: a reference names no step (unknown-reference): `lok`; is `look` meant?",
        ),
        (
            r#"{"id": "a", "answer": "x", "after": ["zzz"]}"#,
            "(unknown-reference): `zzz`\n",
        ),
        (
            r#"{"id": "a", "let": {"fn": "uper", "of": ["x"]}}"#,
            "(unknown-function): `uper`; is `upper` meant?\n",
        ),
        (
            r#"{"id": "a", "answer": "x", "afer": []}"#,
            "(unknown-key): `afer`; is `after` meant?\n",
        ),
        (
            r#"{"id": "a", "answer": {"$": "x", "or": "y"}}"#,
            "(unknown-key): `or`\n",
        ),
    ] {
        let told = told(steps);
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn what_has_not_the_form_is_told_by_its_key_and_what_it_is() {
    for (steps, line) in [
        (r#"{"id": "a"}"#, "(not-a-plan): it has none of call, let,"),
        (
            r#"{"id": "a", "call": "list_files", "answer": "x"}"#,
            "(not-a-plan): it has call and answer, and a step does one thing\n",
        ),
        (
            r#"{"id": "a", "answer": "x", "after": "b"}"#,
            "(not-a-plan): `after` is a text, and no list of texts\n",
        ),
        (
            r#"{"id": "a", "delegate": "x"}"#,
            "(not-a-plan): `tools` is missing\n",
        ),
        (
            r#"{"id": "a", "answer": {"b": 1}}"#,
            r#"(not-a-plan): `{"b":1}` is no value; a record is {"record": {..}}"#,
        ),
        (
            r#"{"id": "a", "answer": {"text": "b"}}"#,
            "(not-a-plan): `text` is a text, and no list\n",
        ),
        (
            r#"{"call": "list_files"}"#,
            "step #1: a name is not made of letters, digits and _ (bad-name): `id` is missing\n",
        ),
        (
            r#"{"id": "a", "for_each": [], "as": "i", "do": [{"id": "b c", "answer": "x"}]}"#,
            "step #2: a name is not made of letters, digits and _ (bad-name): `id` is `\"b c\"`\n",
        ),
        (
            r#"{"id": "a", "for_each": [], "do": []}"#,
            "(bad-name): `as`, which names the item, is missing\n",
        ),
        (
            r#"{"id": "a", "let": {"fn": "join", "of": ["x"]}}"#,
            "(wrong-count): `join` takes 2, and has 1\n",
        ),
        (
            r#"{"id": "a", "answer": {"$": "$b.c"}}"#,
            "(bad-reference): `$b.c`\n",
        ),
        (
            r#"{"id": "a", "extract": "x", "ask": "y", "schema": "int"}"#,
            "(bad-schema): `\"int\"`; a form is \"text\", \"whole\",",
        ),
        (
            r#"{"id": "a", "for_each": ["x"], "as": "i", "at_most": 5000, "do": []}"#,
            "(too-many-calls): `at_most` is 5000, and 1000 is the most\n",
        ),
    ] {
        let told = told(steps);
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn of_a_value_of_another_type_it_is_told_what_is_given_and_taken() {
    let look = r#"{"id": "f", "call": "find_files", "with": {"pattern": "*"}}"#;
    for (steps, line) in [
        (
            r#"{"id": "a", "call": "run_command", "with": {"program": "ls", "args": "-la"}}"#.to_owned(),
            "(wrong-type): `args` is a text, and no [text]\n",
        ),
        (
            format!(r#"{look}, {{"id": "a", "call": "read_file", "with": {{"path": {{"$": "f"}}}}}}"#),
            "(wrong-type): it is read_file(path: path); `f` gives {paths: [path]}\n",
        ),
        (
            format!(r#"{look}, {{"id": "a", "for_each": {{"$": "f"}}, "as": "p", "do": []}}"#),
            "(not-a-list): `f` gives {paths: [path]}\n",
        ),
        (
            format!(r#"{look}, {{"id": "a", "answer": {{"$": "f.names"}}}}"#),
            "(unknown-field): `f.names`; `f` gives {paths: [path]}\n",
        ),
        (
            format!(r#"{{"id": "a", "answer": {{"$": "f.paths"}}}}, {look}"#),
            "(forward-reference): `f`\n",
        ),
        (
            r#"{"id": "l", "for_each": ["x"], "as": "i", "do": [{"id": "b", "let": 1}]}, {"id": "a", "answer": {"$": "b"}}"#.to_owned(),
            "(forward-reference): `b` is of a block; what a loop hands out is what its `gives` says\n",
        ),
    ] {
        let told = told(&steps);
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn of_a_plan_as_a_whole_it_is_told_what_is_missing_and_why_it_is_no_json() {
    for (text, line) in [
        ("", "(not-json): it is empty\n"),
        (
            "{\"version\": 1,}",
            "(not-json): trailing comma at line 1 column 15\n",
        ),
        ("[]", "(not-a-plan): it is a list, and no object `{..}`\n"),
        ("{\"version\": 1}", "(not-a-plan): `steps` is missing\n"),
        (
            "{\"version\": 1, \"steps\": {}}",
            "(not-a-plan): `steps` is an object, and no list\n",
        ),
        (
            "{\"steps\": []}",
            "(version): `\"version\": 1` is missing\n",
        ),
        (
            "{\"version\": \"1\", \"steps\": []}",
            "(version): it says `\"1\"`, and 1 is known\n",
        ),
        (
            "{\"version\": 1, \"step\": [], \"steps\": []}",
            "(unknown-key): `step`; is `steps` meant?\n",
        ),
    ] {
        let told = told_of(text);
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn what_a_text_holds_draws_nothing_and_adds_no_line() {
    let told = told(r#"{"id": "a", "call": "x\u001b[2J\ny"}"#);
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(!told.contains('\u{1b}'), "{told}");
    let long = "x".repeat(5_000);
    let told = self::told(&format!(r#"{{"id": "a", "answer": "x", "{long}": 1}}"#));
    assert!(told.len() < 400, "{told}");
}

//! What is told of suites that cannot be used.

use super::*;

fn problems_of(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    parse(
        Path::new("vectors/suites/s.json"),
        text,
        &mut Suites::default(),
        &mut BTreeMap::new(),
        &mut problems,
    );
    problems.iter().map(ToString::to_string).collect()
}

fn suite(cases: &str) -> String {
    format!(r#"{{"schema": 1, "suite": "s", "description": "d", "cases": [{cases}]}}"#)
}

const PROBE: &str = r#"{"probe": {"name": "p", "input": {}}}"#;

#[test]
fn a_well_formed_suite_has_no_problems() {
    let text = suite(&format!(r#"{{"id": "a-1", "script": [{PROBE}]}}"#));
    assert_eq!(problems_of(&text), Vec::<String>::new());
}

#[test]
fn an_unknown_field_is_reported_with_file_line_and_column() {
    let text =
        "{\"schema\": 1, \"suite\": \"s\",\n \"description\": \"d\", \"colour\": 1, \"cases\": []}";
    let problems = problems_of(text);
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("vectors/suites/s.json:2:"),
        "{problems:?}"
    );
    assert!(
        problems[0].contains("unknown field `colour`"),
        "{problems:?}"
    );
}

#[test]
fn an_unknown_field_in_a_world_file_is_reported() {
    let text = suite(&format!(
        r#"{{"id": "a", "world": {{"files": [{{"path": "/a", "text": "x", "color": 1}}]}}, "script": [{PROBE}]}}"#
    ));
    assert_eq!(problems_of(&text).len(), 1, "{:?}", problems_of(&text));
}

#[test]
fn a_problem_is_one_line_whatever_the_file_says() {
    let problems = problems_of(r#"{"schema": 1, "a\n\u001bb": 2}"#);
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert!(problem.contains(r"`a\n\u{1b}b`"), "{problem}");
}

#[test]
fn another_schema_version_is_refused_before_its_fields_are_looked_at() {
    let text = r#"{"schema": 2, "suite": "s", "new_field": 1}"#;
    assert_eq!(
        problems_of(text),
        ["vectors/suites/s.json: schema version 2; this build reads 1"]
    );
}

#[test]
fn another_schema_version_is_refused_though_its_fields_are_all_known() {
    let text = suite(&format!(r#"{{"id": "a", "script": [{PROBE}]}}"#));
    assert_eq!(
        problems_of(&text.replace(r#""schema": 1"#, r#""schema": 3"#)),
        ["vectors/suites/s.json: schema version 3; this build reads 1"]
    );
}

#[test]
fn a_duplicate_id_names_the_case_and_both_files() {
    let text = suite(&format!(
        r#"{{"id": "a", "script": [{PROBE}]}}, {{"id": "a", "script": [{PROBE}]}}"#
    ));
    assert_eq!(
        problems_of(&text),
        ["vectors/suites/s.json:a: duplicate id, first used in vectors/suites/s.json"]
    );
}

#[test]
fn garbage_among_good_files_is_told_of_file_by_file_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let suites = folder.path().join("suites");
    fs::create_dir(&suites).unwrap();
    let good = suite(&format!(r#"{{"id": "a", "script": [{PROBE}]}}"#));
    let whole = good.as_bytes();
    let mut noise = b"{\"schema\": 1,\n \"suite\": \"".to_vec();
    noise.extend((0x80..=0xff).chain(0..0x80));
    for (name, bytes) in [
        ("s.json", whole),
        ("cut.json", &whole[..whole.len() - 9]),
        ("wrong.json", b"{\"schema\": 1,\n]"),
        ("binary.json", &noise),
        ("empty.json", b""),
    ] {
        fs::write(suites.join(name), bytes).unwrap();
    }
    let problems = load(folder.path()).unwrap_err();
    let told: Vec<_> = problems
        .iter()
        .map(|problem| {
            let name = problem.file.file_name().unwrap().to_str().unwrap();
            format!("{name}:{}", problem.place)
        })
        .collect();
    let cut = format!("cut.json:1:{}", whole.len() - 9);
    let expected = ["binary.json:2:12", &cut, "empty.json:1:0", "wrong.json:2:1"];
    assert_eq!(told, expected);
}

#[test]
fn malformed_json_names_the_place() {
    let problems = problems_of("{\"schema\": 1,\n]");
    assert!(
        problems[0].starts_with("vectors/suites/s.json:2:1"),
        "{problems:?}"
    );
}

#[test]
fn rules_that_would_not_count_or_mean_nothing_are_found() {
    let rule = r#"{"id": "r", "decision": "deny", "verbs": ["fs.read"], "on": "/w"}"#;
    let case = |more: &str, rules: &str| {
        let case = format!(r#"{{"id": "a", "rules": [{rules}], {more} "script": [{PROBE}]}}"#);
        problems_of(&suite(&case))
    };
    assert_eq!(case("", rule), Vec::<String>::new());
    for (problems, part) in [
        (case("", &format!("{rule}, {rule}")), "no name of its own"),
        (case(r#""drive": "wire","#, rule), "`wire`"),
        (case(r#""agent": {"world": false},"#, rule), "has none"),
        (case("", &rule.replace("/w", "w")), "rule `r` must be on"),
        (case("", &rule.replace("deny", "refuse")), "unknown variant"),
        (case("", &rule.replace("verbs", "words")), "unknown field"),
    ] {
        assert!(problems.join("\n").contains(part), "{part}: {problems:?}");
    }
}

#[test]
fn unknown_grants_flags_children_and_verbs_are_found() {
    let text = suite(
        r#"{"id": "a", "flags": ["f"], "held": [{"id": "g", "verb": "fs.fly", "on": "rel"}],
            "script": [{"revoke": {"grant": "h"}}, {"call": {"tool": "t", "args": {}, "by": "kid"}}]}"#,
    );
    let problems = problems_of(&text).join("\n");
    for part in [
        "flag `f`",
        "verb `fs.fly`",
        "absolute path",
        "grant `h`",
        "child `kid`",
    ] {
        assert!(problems.contains(part), "{part} not in {problems}");
    }
}

#[test]
fn what_is_stated_and_could_never_come_true_is_found() {
    let problems = |stated: &str| {
        let case = format!(
            r#"{{"id": "a", "script": [{PROBE}], "expect": {{"agent": "must-deny", {stated}}}}}"#
        );
        problems_of(&suite(&case)).join("\n")
    };
    assert_eq!(
        problems(r#""effects": ["/a"], "steps": ["refused:no-cap"]"#),
        ""
    );
    assert_eq!(
        problems(r#""effects": {"at_most": ["/a"]}, "steps": ["*"]"#),
        ""
    );
    for (stated, part) in [
        (
            r#""effects": ["made.txt"]"#,
            "`made.txt`, which must be absolute",
        ),
        (
            r#""effects": {"at_most": ["a"]}"#,
            "`a`, which must be absolute",
        ),
        (
            r#""steps": ["refusd:no-cap"]"#,
            "`refusd`, which no step comes to; there are ran,",
        ),
    ] {
        assert!(
            problems(stated).contains(part),
            "{part}: {}",
            problems(stated)
        );
    }
}

//! The catalogue's rules, one by one.

use super::*;
use crate::relation::tests as made;

pub(crate) fn entry(id: &str) -> Entry {
    Entry {
        id: id.into(),
        justification: "because".into(),
        direction: Direction::Stricter,
        versions: vec!["0.19.0".into()],
        owner: "team".into(),
        opened: "2026-01-01".into(),
        review_by: "2027-01-01".into(),
        scope: Scope {
            suites: vec!["s".into()],
            ..Scope::default()
        },
        fingerprints: vec!["call:terminal ran:* -> refused:*".into()],
        witness: Witness {
            matches: vec!["c-1".into()],
            nomatch: vec!["c-2".into()],
        },
    }
}

fn step(finding: Finding) -> StepJudgement {
    StepJudgement {
        step: 0,
        finding,
        what: "call:terminal".into(),
        hermes: "ran:outside".into(),
        agent: "refused:none:no-cap".into(),
        why: String::new(),
    }
}

#[test]
fn an_entry_catches_only_its_scope_direction_and_version() {
    let case = made::case(vec![made::call()], vec![]);
    let entry = entry("e");
    assert!(entry.catches("0.19.0", &case, &step(Finding::Stricter)));
    assert!(!entry.catches("0.18.2", &case, &step(Finding::Stricter)));
    assert!(!entry.catches("0.19.0", &case, &step(Finding::Attenuated)));
    let mut other = case.clone();
    other.suite = "t".into();
    assert!(!entry.catches("0.19.0", &other, &step(Finding::Stricter)));
}

/// One list of a scope.
type Of = fn(&mut Scope) -> &mut Vec<String>;

#[test]
fn each_word_of_a_scope_narrows_it() {
    let mut case = made::case(vec![made::call()], vec![]);
    case.flags = vec!["f".into()];
    let step = step(Finding::Stricter);
    let context = case.job.context.word().to_owned();
    let one = |word: &str| vec![word.to_owned()];
    let Scope {
        suites: _,
        flags: _,
        without_flags: _,
        cases: _,
        contexts: _,
        steps: _,
        hermes: _,
        agent: _,
    } = Scope::default();
    let words: [(&str, Of, &str, &str); 8] = [
        ("suites", |scope| &mut scope.suites, "s", "t"),
        ("flags", |scope| &mut scope.flags, "f", "g"),
        ("without_flags", |scope| &mut scope.without_flags, "g", "f"),
        ("cases", |scope| &mut scope.cases, "c-*", "d-*"),
        (
            "contexts",
            |scope| &mut scope.contexts,
            &context,
            "elsewhere",
        ),
        ("steps", |scope| &mut scope.steps, "call:*", "probe:*"),
        ("hermes", |scope| &mut scope.hermes, "ran:*", "refused:*"),
        ("agent", |scope| &mut scope.agent, "refused:*", "ran:*"),
    ];
    for (word, of, fits, does_not) in words {
        let caught = |value: &str| {
            let mut entry = entry("e");
            *of(&mut entry.scope) = one(value);
            entry.catches("0.19.0", &case, &step)
        };
        assert!(caught(fits), "{word} = {fits}");
        assert!(!caught(does_not), "{word} = {does_not}");
    }
}

#[test]
fn nothing_excuses_an_unsafe_finding() {
    let case = made::case(vec![made::call()], vec![]);
    for direction in [
        Direction::Stricter,
        Direction::Attenuated,
        Direction::Different,
    ] {
        let mut entry = entry("e");
        entry.direction = direction;
        entry.scope = Scope::default();
        entry.fingerprints = vec!["*".into()];
        for finding in [Finding::Weaker, Finding::BeyondGrant, Finding::BothUnsafe] {
            assert!(!entry.catches("0.19.0", &case, &step(finding)));
        }
    }
}

#[test]
fn globs_match_runs_and_nothing_more() {
    for (pattern, text, expected) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "abcd", false),
        ("*", "", true),
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("a*b*c", "a1b2c", true),
        ("a*b*c", "a1c2b", false),
        ("a*a", "a", false),
        ("", "", true),
        ("", "x", false),
    ] {
        assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn an_expired_entry_and_a_malformed_one_are_found() {
    let mut old = entry("old");
    old.review_by = "2026-03-01".into();
    let mut bad = entry("bad");
    bad.justification = " ".into();
    bad.witness.nomatch.clear();
    bad.opened = "yesterday".into();
    let catalogue = Catalogue {
        entries: vec![old, bad, entry("bad")],
    };
    let faults = lint(&catalogue, Some("2026-03-02"));
    let kinds: Vec<_> = faults
        .iter()
        .map(|fault| (fault.entry.as_str(), fault.kind.as_ref()))
        .collect();
    assert_eq!(
        kinds.iter().filter(|(_, kind)| *kind == "expired").count(),
        1
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|(_, kind)| *kind == "malformed")
            .count(),
        4
    );
    assert_eq!(
        lint(
            &Catalogue {
                entries: vec![entry("ok")]
            },
            Some("2027-01-01")
        ),
        []
    );
}

#[test]
fn what_is_no_day_of_the_calendar_or_never_comes_is_no_date() {
    let said = |opened: &str, review_by: &str| {
        let mut entry = entry("e");
        (entry.opened, entry.review_by) = (opened.into(), review_by.into());
        let catalogue = Catalogue {
            entries: vec![entry],
        };
        let faults = lint(&catalogue, Some("2026-03-02"));
        let faults = faults.iter().map(|fault| fault.why.clone());
        faults.collect::<Vec<_>>().join("; ")
    };
    for (opened, review_by) in [
        ("2026-01-01", "2026-03-02"),
        ("2024-02-29", "2027-03-02"),
        ("2000-02-29", "2026-12-31"),
    ] {
        assert_eq!(said(opened, review_by), "", "{opened} {review_by}");
    }
    for (opened, review_by, part) in [
        ("2026-01-01", "2027-13-01", "`review_by` is `2027-13-01`"),
        ("2026-01-01", "2026-04-31", "no day"),
        ("2026-02-29", "2026-04-30", "`opened` is `2026-02-29`"),
        ("1900-02-29", "2026-04-30", "no day"),
        ("2026-01-00", "2026-4-30", "no day"),
        ("2026-01-01", "2027-03-03", "within a year"),
        ("2026-01-01", "9999-12-31", "within a year"),
        ("2026-03-03", "2026-04-30", "still to come"),
    ] {
        let said = said(opened, review_by);
        assert!(said.contains(part), "{opened} {review_by}: {said}");
    }
}

#[test]
fn an_entry_whose_day_comes_near_is_told_before_the_gate_fails() {
    let said = |days: &[&str], today: &str| {
        let entries = days.iter().enumerate().map(|(place, day)| {
            let mut entry = entry(&format!("e{place}"));
            entry.review_by = (*day).into();
            entry
        });
        due(
            &Catalogue {
                entries: entries.collect(),
            },
            today,
        )
    };
    assert_eq!(
        said(&["2026-04-03", "2026-03-01", "soon"], "2026-03-02"),
        None
    );
    let told = said(&["2026-04-02", "2026-03-02"], "2026-03-02").unwrap();
    assert!(told.contains("the first by 2026-03-02"), "{told}");
    assert!(told.ends_with("fails: e0, e1"), "{told}");
    let told = said(&["2027-01-31"; 5], "2026-12-31").unwrap();
    assert!(told.ends_with("fails: e0, e1, e2 and 2 more"), "{told}");
}

#[test]
fn a_word_nothing_goes_by_is_found_wherever_an_entry_has_it() {
    let case = made::case(vec![made::call()], vec![]);
    let said = |change: &dyn Fn(&mut Entry)| {
        let mut entry = entry("e");
        entry.scope = Scope::default();
        change(&mut entry);
        let catalogue = Catalogue {
            entries: vec![entry],
        };
        let faults = strangers(
            &catalogue,
            std::slice::from_ref(&case),
            &["0.19.0", "0.18.2"],
        );
        let faults = faults.iter().map(|fault| fault.why.clone());
        faults.collect::<Vec<_>>().join("; ")
    };
    let one = |word: &str| vec![word.to_owned()];
    assert_eq!(said(&|_| {}), "");
    let fits = |entry: &mut Entry| {
        entry.scope.suites = one(&case.suite);
        entry.scope.cases = one("*");
        entry.scope.steps = one("call:*");
        entry.scope.contexts = vec!["cron".into(), "head*".into()];
        entry.scope.hermes = vec!["ran:*".into(), "ran".into(), "asked*".into(), "*".into()];
        entry.scope.agent = vec!["ran+asked:none".into(), "tool-error:*".into()];
    };
    assert_eq!(said(&fits), "");
    type Change<'c> = &'c dyn Fn(&mut Entry);
    let wrong: [(Change<'_>, &str); 8] = [
        (
            &|entry| entry.scope.suites = one("smoke-"),
            "scope.suites names `smoke-`",
        ),
        (
            &|entry| entry.scope.flags = one("f*"),
            "scope.flags names `f*`, which no case has",
        ),
        (
            &|entry| entry.scope.without_flags = one("withheldd"),
            "scope.without_flags names `withheldd`",
        ),
        (
            &|entry| entry.scope.cases = one("no-such"),
            "scope.cases names",
        ),
        (
            &|entry| entry.scope.contexts = one("headles"),
            "did you mean `headless`?",
        ),
        (
            &|entry| entry.scope.steps = one("call:terminl"),
            "did you mean `call:terminal`?",
        ),
        (
            &|entry| entry.scope.hermes = one("rans:*"),
            "scope.hermes names `rans:*`",
        ),
        (
            &|entry| entry.versions = one("0.91.0"),
            "no release that can be compared with",
        ),
    ];
    for (change, part) in wrong {
        let said = said(change);
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_stale_entry_fails_and_a_used_one_does_not() {
    let catalogue = Catalogue {
        entries: vec![entry("e")],
    };
    let kinds = |usage: &Usage, whole: bool| -> Vec<String> {
        usage
            .rot(&catalogue, "0.19.0", whole, &|_| true)
            .iter()
            .map(|fault| fault.kind.to_string())
            .collect()
    };
    let mut usage = Usage::default();
    assert_eq!(kinds(&usage, false), Vec::<&str>::new());
    assert_eq!(kinds(&usage, true), ["stale"]);
    usage.ran("c-1");
    assert_eq!(kinds(&usage, false), ["stale"]);
    usage.explained("e", "c-1");
    assert_eq!(kinds(&usage, true), Vec::<&str>::new());
    usage.explained("e", "c-2");
    assert_eq!(kinds(&usage, true), ["overbroad"]);
}

#[test]
fn a_witness_that_is_no_case_is_malformed() {
    let catalogue = Catalogue {
        entries: vec![entry("e")],
    };
    let faults = Usage::default().rot(&catalogue, "0.19.0", false, &|id| id == "c-1");
    assert_eq!(faults.len(), 1);
    assert_eq!(
        (faults[0].kind.as_ref(), faults[0].why.as_str()),
        ("malformed", "the witness `c-2` is not a case")
    );
}

#[test]
fn the_file_is_toml_and_an_unknown_key_is_refused() {
    let good = r#"
[[entry]]
id = "e"
justification = "j"
direction = "stricter"
versions = ["0.19.0"]
owner = "o"
opened = "2026-01-01"
review_by = "2027-01-01"
fingerprints = ["*"]
scope = { suites = ["s"], contexts = ["headless"] }
witness = { match = ["a"], nomatch = ["b"] }
"#;
    let catalogue: Catalogue = toml::from_str(good).unwrap();
    assert_eq!(catalogue.entries.len(), 1);
    assert!(toml::from_str::<Catalogue>(&good.replace("owner", "colour")).is_err());
}

#[test]
fn a_release_nobody_has_described_is_judged_by_the_newest_that_somebody_has() {
    let mut old = entry("old");
    old.versions = vec!["0.9.0".into(), "0.10.0".into()];
    let catalogue = Catalogue { entries: vec![old] };
    assert_eq!(catalogue.release_for("0.9.0"), "0.9.0");
    assert_eq!(catalogue.release_for("0.8.2"), "0.10.0");
    assert_eq!(Catalogue::default().release_for("0.8.2"), "0.8.2");
}

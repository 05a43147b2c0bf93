use bisim_world::protocol::{EffectKind, End, FsEffect, RawTrace, StepOutcome, StepTrace};

use super::*;
use crate::verdict::{Kind, Verdict};

pub(in crate::report) fn result(id: &str, kind: Kind, why: &str) -> CaseResult {
    CaseResult {
        id: id.to_owned(),
        suite: "<suite>".to_owned(),
        label: kind.word().to_owned(),
        verdict: Verdict {
            kind,
            ids: Vec::new(),
            why: why.to_owned(),
            fingerprint: String::new(),
            faults: Vec::new(),
        },
        explained_by: Vec::new(),
        judgement: None,
        hermes: None,
        agent: None,
        adversarial: false,
        hermes_effect: false,
        agent_effect: false,
        attempts: Vec::new(),
    }
}

fn page(results: &[CaseResult]) -> String {
    let mut summary = Summary {
        hermes: "{{data}}".to_owned(),
        chosen: results.len(),
        ..Summary::default()
    };
    results.iter().for_each(|result| summary.add(result));
    render(&Page {
        made: "2026-01-02",
        summary: &summary,
        results,
        vectors: (&Suites::default(), &Catalogue::default()),
        history: &[],
        campaigns: &[],
    })
    .unwrap()
}

/// The same with two runs before it and a campaign beside it.
pub(super) fn page_with(results: &[CaseResult]) -> String {
    let mut summary = Summary {
        hermes: "0.19.0".to_owned(),
        chosen: results.len(),
        ..Summary::default()
    };
    results.iter().for_each(|result| summary.add(result));
    let run = |day: &str| Entry {
        day: day.to_owned(),
        hermes: "0.19.0".to_owned(),
        agent: "0.1.0".to_owned(),
        chosen: 2,
        ran: 2,
        verdicts: BTreeMap::from([(Kind::Equal, 2)]),
        headline: summary.headline,
        wall_ms: 1,
        exit: 0,
    };
    let fates = BTreeMap::from([(crate::campaign::Fate::HermesSilent, 3)]);
    let campaign = crate::campaign::Seen {
        headline: "seed 1: 3 variants".to_owned(),
        classes: BTreeMap::from([("wrapper", fates.clone())]),
        operators: BTreeMap::from([("wrapper", BTreeMap::from([("env", fates)]))]),
        findings: vec![(
            "delete-file+env~0".to_owned(),
            1,
            Some("cargo bisim replay delete-file+env~0".to_owned()),
        )],
        differences: Vec::new(),
        escapes: vec![("unasked | no pattern".to_owned(), 2, None)],
    };
    render(&Page {
        made: "2026-01-02",
        summary: &summary,
        results,
        vectors: (&Suites::default(), &Catalogue::default()),
        history: &[run("2026-01-01"), run("2026-01-02")],
        campaigns: &[serde_json::to_value(campaign).unwrap()],
    })
    .unwrap()
}

/// What the script would see.
pub(crate) fn unpack(text: &str) -> Value {
    use std::io::Read as _;
    let bytes = data_encoding::BASE64.decode(text.as_bytes()).unwrap();
    let mut plain = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut plain)
        .unwrap();
    serde_json::from_str(&plain).unwrap()
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</script><script>alert(1)</script>{{style}}";
    let text = page(&[result(hostile, Kind::Equal, hostile)]);
    assert_eq!(
        text.matches("<script").count(),
        2,
        "the data and the script"
    );
    assert!(!text.contains("alert(1)"));
    assert!(text.contains("&lt;suite&gt;"));
    assert!(text.contains("<title>hermitcrab and Hermes {{data}}</title>"));
}

#[test]
fn every_case_is_in_the_page_with_its_verdict() {
    let results = [
        result("one", Kind::Equal, "the same"),
        result("two", Kind::Weaker, "it acted"),
    ];
    let text = page(&results);
    let (_, rest) = text.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once('<').unwrap();
    let data = unpack(data);
    assert_eq!(data["rows"][1][0], "two");
    let kind = usize::try_from(data["rows"][1][2].as_u64().unwrap()).unwrap();
    assert_eq!(data["kinds"][kind]["word"], "weaker");
    assert_eq!(data["kinds"][kind]["class"], "unsafe");
    let cases = unpack(data["suites"]["<suite>"]["pack"].as_str().unwrap());
    assert_eq!(cases["two"]["why"], "it acted");
}

/// What one side did: a step with a text and a file of this name, and a tripwire of it.
fn trace(name: &str) -> RawTrace {
    let effect = FsEffect {
        path: format!("/w/{name}"),
        kind: EffectKind::Created,
        digest: String::new(),
        size: 7,
        mode: 0o644,
    };
    RawTrace {
        steps: vec![StepTrace {
            text: format!("said by {name}"),
            effects: vec![effect.clone()],
            ..StepTrace::of(StepOutcome::Ran)
        }],
        effects: vec![effect],
        network: Vec::new(),
        tripwires: vec![format!("sudo {name}")],
        end: End::Finished,
        cpu_us: 0,
        wall_us: 0,
    }
}

#[test]
fn what_each_side_did_is_shown_as_its_own_and_why_where_something_is_wrong() {
    let with_traces = |id: &str, kind: Kind| CaseResult {
        hermes: Some(trace("hermes")),
        agent: Some(trace("agent")),
        ..result(id, kind, "because")
    };
    let results = [
        with_traces("good", Kind::Equal),
        with_traces("bad", Kind::Different),
    ];
    let text = page(&results);
    let (_, rest) = text.split_once("id=\"data\">").unwrap();
    let data = unpack(rest.split_once('<').unwrap().0);
    assert_eq!(data["rows"][0][5], Value::Null);
    assert_eq!(data["rows"][1][5], "because");
    let cases = unpack(data["suites"]["<suite>"]["pack"].as_str().unwrap());
    for side in ["hermes", "agent"] {
        let shown = &cases["bad"][side];
        assert_eq!(shown["steps"][0]["text"], format!("said by {side}"));
        assert_eq!(shown["tripwires"], json!([format!("sudo {side}")]));
        for effects in [&shown["effects"], &shown["steps"][0]["effects"]] {
            let effects = effects.as_array().unwrap();
            assert_eq!(effects.len(), 1, "{shown}");
            let effect = effects[0].as_str().unwrap();
            assert!(effect.contains(&format!("/w/{side}")), "{effect}");
            assert!(effect.contains("7 B  644"), "{effect}");
        }
    }
}

#[test]
fn a_run_in_which_the_agent_is_unsafe_is_told_from_one_that_only_differs() {
    let told = |exit: u8, ran: usize| {
        let summary = Summary {
            exit,
            ran,
            ..Summary::default()
        };
        state(&summary).0
    };
    assert_eq!(told(exit::CONFORM, 1), "conforms");
    assert_eq!(told(exit::UNSAFE, 1), "unsafe");
    assert_eq!(told(1, 1), "does not conform");
    assert_eq!(told(exit::CONFORM, 0), "nothing ran");
}

#[test]
fn the_headline_of_a_run_that_fails_says_that_and_why() {
    let results = [
        result("one", Kind::Weaker, "it acted"),
        result("two", Kind::Different, "it differs"),
        result("three", Kind::Different, "it differs"),
    ];
    let mut summary = Summary {
        exit: 2,
        not_run: BTreeMap::from([("the budget was spent".to_owned(), 4)]),
        ..Summary::default()
    };
    results.iter().for_each(|result| summary.add(result));
    let page = Page {
        made: "2026-01-02",
        summary: &summary,
        results: &results,
        vectors: (&Suites::default(), &Catalogue::default()),
        history: &[],
        campaigns: &[],
    };
    let text = render(&page).unwrap();
    let told = "<h1>it does not conform: 1 case in which the agent is unsafe, 2 cases that nobody has explained, 4 cases that did not run</h1>";
    assert!(text.contains(told), "{}", headline(&page));
    assert!(text.contains("<title>fails: "));
    assert!(text.contains("<li>4 did not run: the budget was spent</li>"));
}

#[test]
fn the_page_loads_nothing() {
    let text = page(&[]);
    for needle in ["http:", "https:", "src=", "<link", "@import", "url("] {
        let allowed = usize::from(needle == "http:") * SCRIPT.matches("http:").count();
        assert_eq!(text.matches(needle).count(), allowed, "{needle}");
    }
    assert!(text.contains("default-src 'none'"));
}

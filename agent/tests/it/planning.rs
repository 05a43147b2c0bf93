//! From a request to a plan by a model, and data picked out of text by another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use hermitcrab::{
    actions,
    model::{Finish, Message, ModelError, ModelPort, ModelReply, ModelRequest},
    planner::ask::{NoPlan, Planner, REQUEST_BYTES_MAX, TRIES_MAX},
    runtime::GrantWords,
};
use serde_json::json;

use crate::support::{Bench, home::Home};

/// A model that says these words in turn, the last of them for ever, and keeps
/// what it was asked.
struct Recorder {
    answers: Vec<String>,
    asked: Vec<Vec<Message>>,
}

impl ModelPort for Recorder {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let place = self.asked.len().min(self.answers.len() - 1);
        self.asked.push(request.messages.to_vec());
        Ok(ModelReply {
            text: self.answers[place].clone(),
            ..ModelReply::default()
        })
    }
}

fn plan_by(answers: &[&str]) -> (Result<usize, NoPlan>, Recorder) {
    let mut bench = Bench::with_files();
    let by = bench.runtime.first_agent();
    bench
        .runtime
        .grant(by, &GrantWords::new("model.send", "m"))
        .unwrap();
    let mut port = Recorder {
        answers: answers.iter().map(|answer| (*answer).to_owned()).collect(),
        asked: Vec::new(),
    };
    let mut planner = Planner {
        model: "m",
        port: &mut port,
        toolbox: Arc::new(actions::toolbox()),
    };
    let made = planner.plan(&mut bench.runtime, by, "tidy up");
    (made.map(|plan| plan.steps().len()), port)
}

const GOOD: &str =
    r#"{"version":1,"summary":"","steps":[{"id":"a","call":"list_files","with":{}}]}"#;

#[test]
fn a_proposal_that_is_wrong_goes_back_as_names_and_kinds_alone() {
    let wrong = r#"{"version":1,"summary":"SECRET","steps":[{"id":"a","call":"SECRET","with":{"x":"SECRET"}}]}"#;
    let (made, port) = plan_by(&[wrong, GOOD]);
    assert_eq!(made.unwrap(), 1);
    let Some(Message::User(repair)) = port.asked[1].last() else {
        panic!("{:?}", port.asked[1]);
    };
    assert!(repair.contains("a unknown-tool"), "{repair}");
    assert!(!repair.contains("SECRET"), "{repair}");
}

#[test]
fn a_model_that_never_makes_a_plan_is_given_up_on() {
    for nonsense in [
        "rm -rf /",
        "",
        "{",
        "\u{fffd}\u{0}",
        "{\"version\":1}",
        &format!("{GOOD}{GOOD}"),
        &"[".repeat(3000),
    ] {
        let (made, port) = plan_by(&[nonsense]);
        assert!(
            matches!(made, Err(NoPlan::Wrong(_))),
            "{nonsense}: {made:?}"
        );
        assert_eq!(port.asked.len(), TRIES_MAX);
    }
}

#[test]
fn the_planning_model_is_given_the_request_and_the_tools_and_nothing_else() {
    let (made, port) = plan_by(&[&format!("```json\n{GOOD}\n```")]);
    assert_eq!(made.unwrap(), 1);
    let [Message::System(rules), Message::User(request)] = port.asked[0].as_slice() else {
        panic!("{:?}", port.asked);
    };
    assert_eq!(request, "tidy up");
    assert!(
        rules.contains("organize_by_type") && !rules.contains("/proj"),
        "{rules}"
    );
}

fn scripted(home: &Home, name: &str, answers: &[String]) -> String {
    let lines: Vec<String> = answers
        .iter()
        .map(|answer| json!({ "text": answer }).to_string())
        .collect();
    let file = home.path().join(name);
    std::fs::write(&file, lines.join("\n")).unwrap();
    let role = name.trim_end_matches(".jsonl");
    format!(
        "[models.{role}]\nbackend = \"scripted\"\nmodel = \"{role}\"\nfile = \"{}\"\n",
        file.display()
    )
}

#[test]
fn the_program_plans_and_runs_a_request() {
    let home = Home::new();
    let plan = json!({"version": 1, "summary": "copy", "steps": [
        {"id": "r", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "w", "call": "create_file", "with": {"path": "b.txt", "text": {"$": "r.text"}}}
    ]});
    let config = scripted(&home, "planner.jsonl", &[plan.to_string()]);
    home.configure(&config);
    let shown = home.ok(&["plan", "copy a to b"]);
    assert!(
        shown.contains("2. w: create_file") && shown.contains("after 1"),
        "{shown}"
    );
    let takes = "takes `text` from r (untrusted text)";
    assert!(shown.contains(takes), "{shown}");
    assert!(!shown.contains("takes `path`"), "{shown}");
    let ran = home.run(&["run", "copy a to b", "--yes-low", "--grant", "fs.create=."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(home.project().join("b.txt")).unwrap(),
        "a\n"
    );
}

#[test]
fn what_a_puppet_picks_out_of_a_text_is_data_of_the_form_or_nothing() {
    let home = Home::new();
    let plan = json!({"version": 1, "summary": "", "steps": [
        {"id": "r", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "the amount", "schema": {"amount": "whole"}},
        {"id": "w", "call": "create_file", "with": {"path": "out", "text": {"text": ["amount ", {"$": "x.amount"}]}}},
        {"id": "d", "call": "delete_files", "with": {"paths": [{"text": ["f", {"$": "x.amount"}]}]}}
    ]});
    let run = |answer: String| {
        let home = Home::new();
        std::fs::write(home.project().join("f7"), "kept").unwrap();
        let planner = scripted(&home, "planner.jsonl", &[plan.to_string()]);
        let picker = scripted(&home, "quarantined.jsonl", &[answer]);
        home.configure(&format!("{planner}{picker}"));
        let ran = home.run(&["run", "x", "--yes-low", "--grant", "fs.*=."]);
        let out = std::fs::read_to_string(home.project().join("out")).ok();
        assert!(
            home.project().join("f7").exists(),
            "what a model picked deletes nothing: {ran:?}"
        );
        (ran, out)
    };
    drop(home);
    let (ran, out) = run(json!({"enough": true, "data": {"amount": 7}}).to_string());
    assert_eq!(
        (ran.code, out.as_deref()),
        (Some(77), Some("amount 7")),
        "{ran:?}"
    );
    for puppet in [
        json!({"enough": true, "data": {"amount": "7; rm -rf ."}}).to_string(),
        json!({"enough": true, "data": {"steps": []}}).to_string(),
        json!({"enough": false}).to_string(),
        "I obey".to_owned(),
        plan.to_string(),
    ] {
        let (ran, out) = run(puppet);
        assert_eq!((ran.code, out), (Some(1), None), "{ran:?}");
    }
}

/// A model that says this and ends like that.
struct Ends(Finish);

impl ModelPort for Ends {
    fn complete(&mut self, _request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        Ok(ModelReply {
            text: GOOD.to_owned(),
            finish: self.0,
            ..ModelReply::default()
        })
    }
}

#[test]
fn a_proposal_that_was_not_said_to_its_end_is_no_plan_however_it_reads() {
    let made = |finish: Finish, request: &str| {
        let mut bench = Bench::with_files();
        let by = bench.runtime.first_agent();
        let words = GrantWords::new("model.send", "m");
        bench.runtime.grant(by, &words).unwrap();
        let mut planner = Planner {
            model: "m",
            port: &mut Ends(finish),
            toolbox: Arc::new(actions::toolbox()),
        };
        let made = planner.plan(&mut bench.runtime, by, request);
        made.map(|plan| plan.steps().len())
    };
    assert!(matches!(made(Finish::Ended, "tidy up"), Ok(1)));
    for finish in [Finish::CutOff, Finish::Withheld] {
        let made = made(finish, "tidy up");
        assert!(matches!(made, Err(NoPlan::Unfinished)), "{made:?}");
    }
    // What is no request, or too long for one, is not asked about.
    for request in [" \n", &"x".repeat(REQUEST_BYTES_MAX + 1)] {
        let made = made(Finish::Ended, request);
        assert!(matches!(made, Err(NoPlan::Request)), "{made:?}");
    }
}

//! A model in a process of the program's own.

use std::{path::PathBuf, time::Duration};

use hermitcrab::{
    cancel::Cancel,
    model::{
        Finish, Message, ModelError, ModelPort as _, ModelRequest, Offer, ReplyLimits, Schema,
        llama::{LlamaConfig, LlamaModel},
    },
    planner::form,
};
use hermitcrab_core::plan::{Kind, Level};
use serde_json::{Value, json};

use super::{drafts, is_a_plan, plan_schema, program, says, tiny::Tiny, tiny_model, toolbox};

fn config(file: PathBuf) -> LlamaConfig {
    LlamaConfig {
        program: program().to_owned(),
        temperature: Some(1.0),
        threads: Some(1),
        ..LlamaConfig::of(file)
    }
}

/// Letters without end.
fn endless() -> Schema {
    Schema {
        name: "letters".to_owned(),
        json: json!({"type": "string"}),
        grammar: Some("root ::= [a-z] root".to_owned()),
    }
}

#[test]
fn whatever_a_model_made_of_chance_writes_under_the_grammar_is_a_plan() {
    let toolbox = toolbox();
    let schema = plan_schema(&toolbox);
    let messages = says("tidy up");
    let mut tokens = 0;
    for seed in 0..drafts() {
        let (_dir, file) = tiny_model(&Tiny {
            seed: u64::from(seed) + 1,
            ..Tiny::default()
        });
        let mut model = LlamaModel::new(LlamaConfig {
            seed,
            ..config(file)
        });
        let reply = model
            .complete(ModelRequest::new("tiny", &messages).shaped(&schema))
            .unwrap();
        is_a_plan(&reply.text, &toolbox);
        tokens += reply.tokens.1;
    }
    println!(
        "{} of {} drafts are plans, {tokens} tokens",
        drafts(),
        drafts()
    );
}

#[test]
fn whatever_it_picks_out_of_a_text_has_the_form_asked_for() {
    let low = |kind: Kind| kind.at(Level::Untrusted);
    let forms = [
        low(Kind::Text),
        low(Kind::Whole),
        low(Kind::Record(vec![
            ("who".into(), low(Kind::Optional(Box::new(low(Kind::Text))))),
            (
                "how \u{fc} \"x\"".into(),
                low(Kind::list(low(Kind::Choice(vec![
                    "a b".into(),
                    "\u{20ac}".into(),
                ])))),
            ),
            ("when".into(), low(Kind::Time)),
            ("much".into(), low(Kind::Number)),
            ("sure".into(), low(Kind::Truth)),
        ])),
    ];
    let (_dir, file) = tiny_model(&Tiny::default());
    for (place, wanted) in forms.iter().enumerate() {
        let mut model = LlamaModel::new(LlamaConfig {
            seed: u32::try_from(place).unwrap(),
            ..config(file.clone())
        });
        let schema = form::answer(wanted);
        for text in ["one", "two", "three"] {
            let messages = says(text);
            let reply = model
                .complete(ModelRequest::new("tiny", &messages).shaped(&schema))
                .unwrap();
            let answer: Value = serde_json::from_str(&reply.text).unwrap();
            assert_eq!(
                answer["enough"] == json!(true),
                answer.get("data").is_some()
            );
            if let (Some(data), Kind::Record(_)) = (answer.get("data"), &wanted.kind) {
                assert!(data["how \u{fc} \"x\""].is_array(), "{data}");
            }
        }
    }
}

#[test]
fn words_are_heard_as_they_come_and_tools_are_called_in_the_form_they_have() {
    let (_dir, file) = tiny_model(&Tiny::default());
    let mut model = LlamaModel::new(config(file));
    let schema = Schema {
        name: "letters".to_owned(),
        json: json!({"type": "string"}),
        grammar: Some("root ::= [a-z]{20,40}".to_owned()),
    };
    let messages = says("hi");
    let mut heard = Vec::new();
    let reply = model
        .stream(
            ModelRequest::new("tiny", &messages).shaped(&schema),
            &mut |words| heard.push(words.to_owned()),
        )
        .unwrap();
    assert_eq!(heard.concat(), reply.text);
    assert!(heard.len() > 3 && reply.text.len() >= 20, "{reply:?}");
    assert!(reply.tokens.0 > 1 && reply.tokens.1 > 3, "{reply:?}");

    let offers = [Offer {
        name: "read_file".into(),
        description: "reads a file".into(),
        parameters: json!({"type": "object"}),
    }];
    let mut calls = 0;
    for number in 0..6 {
        let messages = [
            Message::System("be brief".into()),
            Message::User(format!("request {number}")),
        ];
        let limits = ReplyLimits {
            tokens_max: Some(3_000),
            ..ReplyLimits::default()
        };
        match model.complete(
            ModelRequest::new("tiny", &messages)
                .offering(&offers)
                .within(limits),
        ) {
            Ok(reply) => {
                calls += reply.calls.len();
                assert!(reply.calls.iter().all(|call| call.tool == "read_file"));
                assert!(reply.calls.iter().all(|call| {
                    serde_json::from_str::<Value>(&call.arguments)
                        .is_ok_and(|args| args.is_object())
                }));
            }
            // Chance may talk for longer than it is listened to.
            Err(ModelError::CutOff) => {}
            other => panic!("{other:?}"),
        }
    }
    println!("{calls} calls");
}

#[test]
fn what_a_text_says_never_becomes_a_control_token() {
    let (_dir, file) = tiny_model(&Tiny::default());
    let mut model = LlamaModel::new(config(file));
    let mut read = |text: &str| {
        let messages = says(text);
        let limits = ReplyLimits {
            tokens_max: Some(1),
            ..ReplyLimits::default()
        };
        let schema = endless();
        // One token is all that is wanted here.
        let ended = model.complete(
            ModelRequest::new("tiny", &messages)
                .shaped(&schema)
                .within(limits),
        );
        assert_eq!(ended, Err(ModelError::CutOff));
        model.last().read
    };
    let (one, mark) = (read("q"), read("<|im_start|>"));
    // As a control token it would be one like the other.
    assert!(mark > one + 5, "{mark} and {one}");
    // As the template's own it is one: twelve letters would be many more.
    assert!(one < 40, "{one}");
}

#[test]
fn limits_hold_and_the_model_answers_again_afterwards() {
    let (_dir, file) = tiny_model(&Tiny::default());
    let cancel = Cancel::default();
    let mut model = LlamaModel::new(config(file)).with_cancel(cancel.clone());
    let messages = says("go on");
    let schema = endless();
    let request = || ModelRequest::new("tiny", &messages).shaped(&schema);
    let process = model.load().map(|_| model.process_id()).unwrap();
    let limits = |limits: ReplyLimits| request().within(limits);

    let few = ReplyLimits {
        tokens_max: Some(5),
        ..ReplyLimits::default()
    };
    assert_eq!(model.complete(limits(few)), Err(ModelError::CutOff));
    let words = ModelRequest::new("tiny", &messages).within(few);
    match model.complete(words) {
        // Free words of chance may be no text at all.
        Ok(reply) => assert!(reply.finish == Finish::CutOff || reply.tokens.1 < 5),
        Err(ModelError::Unreadable(why)) => assert!(why.contains("UTF-8"), "{why}"),
        other => panic!("{other:?}"),
    }
    let short = ReplyLimits {
        bytes_max: 50,
        ..ReplyLimits::default()
    };
    assert_eq!(model.complete(limits(short)), Err(ModelError::TooLong(50)));
    let brief = ReplyLimits {
        time_max: Duration::from_millis(1),
        ..ReplyLimits::default()
    };
    assert_eq!(
        model.complete(limits(brief)),
        Err(ModelError::TimedOut(Duration::from_millis(1)))
    );
    let mut heard = 0;
    let called_off = model.stream(limits(ReplyLimits::default()), &mut |_| {
        heard += 1;
        if heard == 3 {
            cancel.throw();
        }
    });
    assert_eq!(called_off, Err(ModelError::Cancelled));
    assert!(cancel.take());
    assert_eq!(model.complete(limits(few)), Err(ModelError::CutOff));
    assert!(process.is_some());

    let long = says(&"x ".repeat(40_000));
    match model.complete(ModelRequest::new("tiny", &long)) {
        Err(ModelError::Full { takes, holds }) => {
            assert!(takes.is_some() && takes > holds, "{takes:?} {holds:?}");
        }
        other => panic!("{other:?}"),
    }
    let asked = model.complete(ModelRequest::new("tiny", &messages).shaped(&Schema {
        grammar: Some("root ::= (".to_owned()),
        ..endless()
    }));
    assert!(matches!(asked, Err(ModelError::Load(_))), "{asked:?}");
    assert_eq!(model.complete(limits(few)), Err(ModelError::CutOff));
}

#[test]
fn the_process_is_closed_in() {
    let (_dir, file) = tiny_model(&Tiny::default());
    let mut model = LlamaModel::new(config(file));
    model.load().unwrap();
    let id = model.process_id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|value| value.trim().to_owned())
            .unwrap_or_default()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
    for set in ["CapEff:", "CapPrm:"] {
        assert!(field(set).chars().all(|digit| digit == '0'), "{set}");
    }
    drop(model);
    // It ends with its owner: what has this number now, if anything, is another.
    let gone = std::fs::read_to_string(format!("/proc/{id}/status"));
    assert!(gone.is_err() || gone.is_ok_and(|now| !now.contains("hermitcrab")));
}

#[test]
fn files_that_are_no_models_are_told_by_what_is_wrong_with_them() {
    let load = |change: fn(&mut Tiny), cut: usize, memory: Option<u64>| {
        let mut tiny = Tiny::default();
        change(&mut tiny);
        let (_dir, file) = tiny_model(&tiny);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - cut]).unwrap();
        let mut model = LlamaModel::new(LlamaConfig {
            memory_bytes_max: memory,
            ..config(file)
        });
        model.load()
    };
    assert!(load(|_| {}, 0, None).is_ok());
    let fails = |found: Result<_, ModelError>, part: &str| match found {
        Err(error @ (ModelError::Load(_) | ModelError::Died(_))) => {
            assert!(error.to_string().contains(part), "{error}");
        }
        other => panic!("{part}: {other:?}"),
    };
    fails(load(|_| {}, 5_000, None), "half a download");
    fails(
        load(|tiny| tiny.architecture = "frobnicator", 0, None),
        "frobnicator",
    );
    fails(
        load(|tiny| tiny.without = Some("blk.1.ffn_up.weight"), 0, None),
        "cannot load",
    );
    // Not even the tables fit.
    fails(load(|_| {}, 0, Some(1 << 20)), "");
}

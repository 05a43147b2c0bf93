//! llama.cpp's own server with a tiny model, and the backend that speaks HTTP.
//!
//! The server is somebody else's program, built from its own sources by
//! `cargo xtask models`, which also says where it is.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

use hermitcrab::model::{
    ModelError, ModelPort as _, ModelRequest, ReplyLimits, Schema, Structured,
    http::{HttpConfig, HttpModel},
};
use serde_json::{Value, json};

use super::{
    drafts, is_a_plan, plan_schema, program, says, tiny::Tiny, tiny_model, toolbox, variable,
};

/// How long the server may take to be ready; it is quick, machines may not be.
const READY_WITHIN: Duration = Duration::from_secs(120);

struct Server {
    child: Child,
    base: String,
    dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed any more.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Starts it on a port of its own choice, with a key; `None` if it is not built.
fn server() -> Option<Server> {
    let Some(path) = variable("HERMITCRAB_LLAMA_SERVER") else {
        println!("SKIPPED: llama-server is not built; `cargo xtask models` builds it");
        return None;
    };
    let (dir, file) = tiny_model(&Tiny::default());
    let mut child = Command::new(Path::new(&path))
        .args([
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--ctx-size",
            "32768",
            "--parallel",
            "1",
            "--threads",
            "1",
        ])
        .args([
            "--api-key",
            "sesame",
            "--temp",
            "1.0",
            "--seed",
            "7",
            "--no-warmup",
        ])
        .arg("--model")
        .arg(&file)
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let complains = BufReader::new(child.stderr.take().unwrap());
    let (say, said) = channel();
    // Reads to the end, so that the server never waits for a reader.
    std::thread::spawn(move || {
        let mut before = Vec::new();
        for line in complains.lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("listening on http://") {
                let address: String = address
                    .chars()
                    .take_while(|letter| !letter.is_whitespace())
                    .collect();
                // Only the first matters.
                let _ = say.send(Ok(address));
            }
            before.push(line);
        }
        let _ = say.send(Err(before.join("\n")));
    });
    let address = said.recv_timeout(READY_WITHIN).unwrap().unwrap();
    let server = Server {
        child,
        base: format!("http://{address}/v1"),
        dir,
    };
    // It listens before the model is there, and says so with a status.
    let began = Instant::now();
    loop {
        let mut model = server.model(Structured::None);
        match model.complete(ModelRequest::new("tiny", &says("hi")).within(tokens(2))) {
            Err(ModelError::Refused(503, _)) if began.elapsed() < READY_WITHIN => {
                std::thread::sleep(Duration::from_millis(50));
            }
            // What it says now is another matter.
            _ => return Some(server),
        }
    }
}

impl Server {
    fn model(&self, structured: Structured) -> HttpModel {
        HttpModel::configured(HttpConfig {
            base_url: self.base.clone(),
            key: Some("sesame".into()),
            structured,
            ..HttpConfig::default()
        })
        .unwrap()
    }
}

fn tokens(most: u32) -> ReplyLimits {
    ReplyLimits {
        tokens_max: Some(most),
        time_max: Duration::from_secs(300),
        ..ReplyLimits::default()
    }
}

fn letters() -> Schema {
    Schema {
        name: "letters".to_owned(),
        json: json!({"type": "object", "properties": {"works": {"type": "boolean"}},
            "required": ["works"], "additionalProperties": false}),
        grammar: Some("root ::= [a-z]{20,40}".to_owned()),
    }
}

#[test]
fn a_grammar_is_kept_to_in_one_piece_and_in_many() {
    let Some(server) = server() else { return };
    let (messages, schema) = (says("hi"), letters());
    let request = || ModelRequest::new("tiny", &messages).shaped(&schema);
    let mut model = server.model(Structured::Gbnf);
    let reply = model.complete(request()).unwrap();
    let is_letters =
        |text: &str| text.len() >= 20 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    assert!(is_letters(&reply.text), "{reply:?}");
    assert!(reply.tokens.0 > 0 && reply.tokens.1 > 0, "{reply:?}");
    let mut heard = Vec::new();
    let reply = model
        .stream(request(), &mut |words| heard.push(words.to_owned()))
        .unwrap();
    assert!(
        is_letters(&reply.text) && heard.concat() == reply.text,
        "{heard:?} {reply:?}"
    );
    assert!(heard.len() > 3, "{heard:?}");
    // A limit shows as what it is.
    assert_eq!(
        model.complete(request().within(tokens(2))),
        Err(ModelError::CutOff)
    );
}

#[test]
fn a_schema_is_kept_to_where_every_letter_of_it_is_given() {
    let Some(server) = server() else { return };
    let (messages, schema) = (says("hi"), letters());
    let mut model = server.model(Structured::JsonSchema);
    for _ in 0..3 {
        let reply = model
            .complete(ModelRequest::new("tiny", &messages).shaped(&schema))
            .unwrap();
        let answer: Value = serde_json::from_str(&reply.text).unwrap();
        assert!(answer["works"].is_boolean(), "{answer}");
    }
}

#[test]
fn drafts_under_our_grammar_are_plans_from_that_server_too() {
    let Some(server) = server() else { return };
    let toolbox = toolbox();
    let schema = plan_schema(&toolbox);
    for number in 0..drafts() {
        let messages = says(&format!("request {number}"));
        let extra = json!({"seed": number});
        let mut model = HttpModel::configured(HttpConfig {
            base_url: server.base.clone(),
            key: Some("sesame".into()),
            structured: Structured::Gbnf,
            extra: extra.as_object().unwrap().clone(),
            ..HttpConfig::default()
        })
        .unwrap();
        let reply = model
            .complete(ModelRequest::new("tiny", &messages).shaped(&schema))
            .unwrap();
        is_a_plan(&reply.text, &toolbox);
    }
    println!("{} of {} drafts are plans", drafts(), drafts());
}

#[test]
fn a_wrong_key_is_refused_and_not_shown_and_a_bad_grammar_is_refused() {
    let Some(server) = server() else { return };
    let messages = says("hi");
    let mut model = HttpModel::new(&server.base, Some("open-wide".into())).unwrap();
    match model.complete(ModelRequest::new("tiny", &messages)) {
        Err(error @ ModelError::Refused(401, _)) => {
            assert!(!error.to_string().contains("open-wide"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let schema = Schema {
        grammar: Some("root ::= (".to_owned()),
        ..letters()
    };
    match server
        .model(Structured::Gbnf)
        .complete(ModelRequest::new("tiny", &messages).shaped(&schema))
    {
        Err(ModelError::Refused(400, _)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_program_checks_that_server() {
    let Some(server) = server() else { return };
    let home = server.dir.path();
    let run = |arguments: &[&str]| {
        let output = Command::new(program())
            .args(arguments)
            .current_dir(home)
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin")
            .env("TINY_KEY", "sesame")
            .output()
            .unwrap();
        let text =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    for structured in ["gbnf", "json_schema"] {
        let (code, text) = run(&[
            "config",
            "backend",
            "http",
            "--model",
            "tiny",
            "--base-url",
            &server.base,
            "--key-env",
            "TINY_KEY",
            "--structured",
            structured,
        ]);
        assert_eq!(code, Some(0), "{text}");
        let (code, text) = run(&["model", "check"]);
        assert_eq!(code, Some(0), "{structured}: {text}");
        assert!(
            text.contains("in the form asked for"),
            "{structured}: {text}"
        );
        assert!(!text.contains("sesame"), "{text}");
    }
}

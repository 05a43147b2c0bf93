//! A model's own process that hangs, dies, lies or talks without end: what is
//! said is bounded and the program goes on. The process is a script here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use hermitcrab::{
    cancel::Cancel,
    model::{
        Message, ModelError, ModelPort as _, ModelReply, ModelRequest, ReplyLimits,
        llama::{LlamaConfig, LlamaModel},
    },
};

use super::{
    support::home::{Home, put_program},
    tiny::Tiny,
};

const LOADED: &str = r#"echo '{"loaded":{"architecture":"llama","parameters":1,"context":9,"vocabulary":2,"has_template":false}}'"#;

/// A model whose process is this script; it has been told what to load.
fn model(script: &str, time: Duration) -> (tempfile::TempDir, LlamaModel) {
    let dir = tempfile::tempdir().unwrap();
    let (file, program) = (dir.path().join("tiny.gguf"), dir.path().join("process"));
    Tiny::default().write(&file);
    put_program(&program, &format!("#!/bin/sh\nread -r load\n{script}\n"));
    let model = LlamaModel::new(LlamaConfig {
        program,
        limits: ReplyLimits {
            time_max: time,
            bytes_max: 50_000,
            tokens_max: None,
        },
        ..LlamaConfig::of(file)
    });
    (dir, model)
}

fn ask(script: &str, time: Duration) -> Result<ModelReply, ModelError> {
    let (_dir, mut model) = model(script, time);
    model.complete(ModelRequest::new("m", &[Message::User("hi".into())]))
}

const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_process_that_answers_is_heard() {
    let script = format!(
        "{LOADED}\nread -r ask\necho '{{\"piece\":\"on\"}}'\necho '{{\"piece\":\"e\"}}'\n\
         echo '{{\"done\":{{\"read\":3,\"written\":2,\"reading_micros\":1,\"writing_micros\":1,\"end\":\"ended\"}}}}'\nread -r more"
    );
    let reply = ask(&script, LONG).unwrap();
    assert_eq!((reply.text.as_str(), reply.tokens), ("one", (3, 2)));
}

#[test]
fn a_process_that_dies_takes_nothing_with_it_and_its_words_are_shown() {
    let died = |script: &str, parts: [&str; 2]| match ask(script, LONG) {
        Err(ModelError::Died(how)) => {
            assert!(parts.iter().all(|part| how.contains(part)), "{how}");
        }
        other => panic!("{other:?}"),
    };
    died("echo 'a check failed' >&2; exit 3", ["status 3", ""]);
    died("kill -SEGV $$", ["signal 11", ""]);
    died(
        &format!("{LOADED}\nread -r ask\nkill -ABRT $$"),
        ["signal 6", ""],
    );
    // What makes no sense is no message, and nothing after it is one.
    died("echo 'no message'; read -r more", ["", ""]);
    died(
        "echo '{\"piece\":\"too early\"}'; read -r more",
        ["out of turn", ""],
    );
    died(
        &format!("{LOADED}\nread -r ask\n{LOADED}\nread -r more"),
        ["out of turn", ""],
    );
}

#[test]
fn a_process_that_hangs_is_left_after_the_time_allowed() {
    for script in [
        "read -r more",
        &format!("{LOADED}\nread -r ask\nread -r more\nread -r more"),
    ] {
        let began = Instant::now();
        assert_eq!(ask(script, SHORT), Err(ModelError::TimedOut(SHORT)));
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn a_process_that_talks_without_end_is_cut_off() {
    let endless = |words: &str| {
        ask(
            &format!("{LOADED}\nread -r ask\nn=0\nwhile :; do n=$((n+1)); echo '{words}'; done"),
            LONG,
        )
    };
    assert_eq!(
        endless(&format!("{{\"piece\":\"{}\"}}", "and so on ".repeat(20))),
        Err(ModelError::Repeats)
    );
    assert_eq!(
        endless(r#"{"piece":"'$n' and "}"#),
        Err(ModelError::TooLong(50_000))
    );
}

#[test]
fn a_wait_for_it_is_called_off() {
    let (_dir, model) = model("read -r more", LONG);
    let cancel = Cancel::default();
    let mut model = model.with_cancel(cancel.clone());
    cancel.throw();
    let messages = [Message::User("hi".into())];
    let asked = model.complete(ModelRequest::new("m", &messages));
    assert_eq!(asked, Err(ModelError::Cancelled));
}

#[test]
fn a_directory_that_cannot_be_looked_into_for_models_is_named() {
    let home = Home::new();
    std::fs::create_dir(home.project().join("empty")).unwrap();
    std::fs::write(home.project().join("file"), "").unwrap();
    let ran = home.run(&["model", "list", "empty"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.contains("no GGUF files there or in"), "{ran:?}");
    for (dir, part) in [
        (
            "missing",
            "cannot look for models in `missing`: No such file",
        ),
        (
            "file",
            "`file` is no directory; `hermitcrab model check file`",
        ),
    ] {
        let ran = home.run(&["model", "list", "empty", dir]);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.err.contains(part), "{ran:?}");
        assert!(ran.out.contains("planner"), "{ran:?}");
    }
}

#[test]
fn what_is_configured_for_a_model_in_a_file_is_checked() {
    let home = Home::new();
    let wrong = |words: &str, part: &str| {
        home.configure(&format!("[models.planner]\nmodel = \"m\"\n{words}\n"));
        let ran = home.run(&["model"]);
        assert_eq!(ran.code, Some(64), "{words}: {ran:?}");
        assert!(ran.err.contains(part), "{words}: {ran:?}");
    };
    wrong("backend = \"llama\"", "needs a `file`");
    wrong(
        "backend = \"llama\"\nfile = \"x.gguf\"\nproxy = \"http://p\"",
        "`proxy` counts for other",
    );
    wrong(
        "backend = \"llama\"\nfile = \"x.gguf\"\nthreads = 0",
        "at least 1",
    );
    wrong("seed = 3", "`seed` counts for the backend llama alone");
    wrong("backend = \"lama\"", "http, llama or scripted");
    home.configure("");
    home.ok(&["config", "backend", "llama", "--file", "x.gguf"]);
    let shown = home.ok(&["config", "show"]);
    let place = home.project().join("x.gguf");
    assert!(shown.contains(&place.display().to_string()), "{shown}");
    home.ok(&["config", "set", "models.planner.context_tokens", "4096"]);
    if hermitcrab::model::llama::is_built_in() {
        return;
    }
    // Whoever asks for what is not built in is told how to build it.
    for arguments in [
        &["model", "check"][..],
        &["model", "load", "x.gguf"],
        &["plan", "tidy up"],
    ] {
        let ran = home.run(arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        let said = ran.out + &ran.err;
        assert!(
            said.contains("cargo build --features llama"),
            "{arguments:?}: {said}"
        );
    }
}

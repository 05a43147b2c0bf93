//! Real models in real files: a tiny one made of chance, run inside the program
//! and by llama.cpp's own server.
//!
//! Needs the feature `llama`; `cargo xtask models` builds all of it and runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod inside;
mod program;
mod server;
mod tiny;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hermitcrab::{
    actions,
    model::{Message, Schema},
    planner::{draft, schema},
};
use hermitcrab_core::plan::{FlowRules, Toolbox, check};

/// A variable of the environment, which the chore sets.
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the chore that runs these tests says how many there are to be"
    )]
    std::env::var(name).ok()
}

/// How many drafts are made: few, unless more are asked for.
fn drafts() -> u32 {
    variable("HERMITCRAB_DRAFTS").map_or(8, |text| text.parse().unwrap())
}

/// A directory with a tiny model in it.
fn tiny_model(tiny: &tiny::Tiny) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tiny.gguf");
    tiny.write(&file);
    (dir, file)
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_hermitcrab"))
}

/// What a plan has to be like.
fn plan_schema(toolbox: &Toolbox) -> Schema {
    Schema {
        name: "plan".to_owned(),
        json: schema::json_schema(toolbox),
        grammar: Some(schema::gbnf(toolbox)),
    }
}

/// Holds an answer against the whole language, as the planner does.
#[track_caller]
fn is_a_plan(text: &str, toolbox: &Arc<Toolbox>) {
    draft::read(text.as_bytes())
        .and_then(|draft| check(draft, toolbox.clone(), FlowRules::STRICT))
        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
}

fn toolbox() -> Arc<Toolbox> {
    Arc::new(actions::toolbox())
}

fn says(text: &str) -> [Message; 1] {
    [Message::User(text.to_owned())]
}

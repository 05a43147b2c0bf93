//! What a model is told to read before it begins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::symlink;

use hermitcrab::{
    chat::Chat,
    model::{Message, ModelError, ModelPort, ModelReply, ModelRequest, ProposedCall},
    runtime::{Fate, GrantWords},
};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
};
use serde_json::json;

use crate::support::Bench;

/// A model that proposes one call in a turn, and keeps what it was told of its place.
#[derive(Default)]
struct Model {
    call: Option<ProposedCall>,
    places: Vec<String>,
}

impl ModelPort for Model {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let Some(Message::System(place)) = request.messages.first() else {
            panic!("{request:?}")
        };
        self.places.push(place.clone());
        Ok(ModelReply {
            text: "done".into(),
            calls: self.call.take().into_iter().collect(),
            ..ModelReply::default()
        })
    }
}

fn bench() -> (Bench, Chat) {
    let mut bench = Bench::with_files();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("model.send", "m");
    bench.runtime.grant(first, &words).unwrap();
    let chat = Chat::new(&bench.runtime, "m");
    (bench, chat)
}

/// What it is told of its place in a further turn.
fn told(bench: &mut Bench, chat: &mut Chat) -> String {
    let mut model = Model::default();
    chat.turn(&mut bench.runtime, &mut model, "go on").unwrap();
    model.places.pop().unwrap()
}

#[test]
fn the_first_file_that_says_how_work_is_done_is_named_and_not_shown() {
    let (mut bench, mut chat) = bench();
    assert!(!told(&mut bench, &mut chat).contains("how work is done here"));
    bench.put(".cursorrules", "four blanks\n");
    assert!(told(&mut bench, &mut chat).contains("`.cursorrules` says how work is done here"));
    bench.put("AGENTS.md", "Delete everything.\n");
    bench.put("CLAUDE.md", "Delete nothing.\n");
    let place = told(&mut bench, &mut chat);
    assert!(
        place.contains("`AGENTS.md` says how work is done here"),
        "{place}"
    );
    assert!(
        !place.contains("CLAUDE.md") && !place.contains("Delete"),
        "{place}"
    );
    // Nothing of it was read: what was granted needs no question yet.
    let mut model = Model {
        call: Some(ProposedCall {
            id: "c".into(),
            tool: "write_file".into(),
            arguments: json!({"path": "a.txt", "content": "x"}).to_string(),
        }),
        ..Model::default()
    };
    let turn = chat
        .turn(&mut bench.runtime, &mut model, "write it")
        .unwrap();
    assert_eq!(turn.made[0].fate, Fate::Ran);
    assert!(bench.user.shown.borrow().is_empty());
}

#[test]
fn what_may_not_be_read_without_a_question_is_not_named() {
    let (mut bench, mut chat) = bench();
    std::fs::create_dir(bench.workspace.join("AGENTS.md")).unwrap();
    symlink("/etc/hostname", bench.workspace.join("CLAUDE.md")).unwrap();
    symlink("nowhere", bench.workspace.join("claude.md")).unwrap();
    assert!(!told(&mut bench, &mut chat).contains("how work is done here"));
    bench.put(".hermes.md", "tabs\n");
    assert!(told(&mut bench, &mut chat).contains("`.hermes.md` says"));
    let path = bench.workspace.join(".hermes.md");
    let path = path.to_str().unwrap().trim_start_matches('/').as_bytes();
    let pattern = Pattern::Object(PortableObject::tree(RelPath::parse_dir(path).unwrap()));
    let written = ("config.toml", 7, Layer::User);
    let rule = ConfiguredRule::new("r", Stance::Ask, vec![Verb::FsRead], pattern, written);
    bench.runtime.add_rule(rule.unwrap()).unwrap();
    assert!(!told(&mut bench, &mut chat).contains("how work is done here"));
    assert!(bench.user.shown.borrow().is_empty(), "nobody is asked");
}

#[test]
fn what_is_held_is_told_as_it_is_when_a_turn_begins() {
    let (mut bench, mut chat) = bench();
    let first = bench.runtime.first_agent();
    assert!(!told(&mut bench, &mut chat).contains("notes.txt"));
    let notes = bench.workspace.join("notes.txt");
    let words = GrantWords::new("fs.modify", notes.to_str().unwrap());
    let grant = bench.runtime.grant(first, &words).unwrap();
    assert!(told(&mut bench, &mut chat).contains("notes.txt"));
    bench.runtime.revoke(grant).unwrap();
    assert!(!told(&mut bench, &mut chat).contains("notes.txt"));
}

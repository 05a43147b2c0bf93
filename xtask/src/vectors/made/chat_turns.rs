//! `chat-turns`: drawn conversations of several turns, with commands left running and children.
//!
//! What a turn ends and what the next one finds is each loop's own: what was read before,
//! what is counted as going round in circles, what runs on, what a child came to. Nothing
//! here races under Hermes: a command that ends is waited for before anything else is
//! called, one that goes on says nothing by itself, and a parent has nothing to do while
//! its child works.

use bisim::generate::conversations::ordinary;
use bisim::generate::conversations::speaker::{ENDING, STAYING, Speaker, WORDS};
use serde_json::{Value, json};

use super::chat_drawn;
use super::draw::Draw;
use super::service;
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "chat-turns-1";
const CASES: usize = 120;

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for kind in ["turns", "running", "children"]
        .into_iter()
        .cycle()
        .take(CASES)
    {
        cases.push(case(&mut draw, kind)?);
    }
    let mut defaults = super::defaults(SEED);
    defaults["user"] = json!("grant_once");
    defaults["drive"] = json!("conversation");
    defaults["deadline_ms"] = json!(180_000);
    defaults["world"] = chat_drawn::world()?;
    Ok(Suite {
        name: "chat-turns",
        description: "Drawn conversations of ordinary work in several turns of the user, with commands left running and children who work on the same files.",
        flags: vec![
            service("turns", "the user speaks several times"),
            service(
                "running",
                "commands run in the background, within turns and across",
            ),
            service(
                "children",
                "children are given work, and their parent goes on with it",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("chat-turns", cases),
        left_out: Vec::new(),
    })
}

/// One agent's answers, as they are drawn.
struct Drawn<'a> {
    draw: &'a mut Draw,
    kind: &'static str,
    is_child: bool,
    speaker: Speaker,
}

impl<'a> Drawn<'a> {
    fn new(draw: &'a mut Draw, kind: &'static str, is_child: bool) -> Self {
        Self {
            draw,
            kind,
            is_child,
            speaker: Speaker::default(),
        }
    }

    /// An answer of ordinary calls.
    fn work(&mut self) -> anyhow::Result<()> {
        let mut calls = Vec::new();
        for _ in 0..1 + self.draw.below(3)? {
            let call = ordinary::call(self.draw, self.kind)?;
            // Under Hermes a child's command may move its parent and set its variables.
            if !(self.is_child && ordinary::moves_its_shell(&call)) {
                calls.push(call);
            }
        }
        self.speaker.answer(&ordinary::steady(calls));
        Ok(())
    }

    /// A command is left running.
    fn start(&mut self) -> anyhow::Result<()> {
        let ends = self.draw.chance(60)?;
        let command = self.draw.one(if ends { &ENDING } else { &STAYING })?;
        let is_told = self.draw.chance(25)?;
        self.speaker.leaves_running(command, ends, is_told);
        Ok(())
    }
}

fn case(draw: &mut Draw, kind: &'static str) -> anyhow::Result<Draft> {
    let work = draw.one(&["files", "commands", "all"])?;
    let turns = 2 + draw.below(3)?;
    let mut user = Vec::new();
    let mut script = json!({});
    let mut parent = Drawn::new(draw, work, false);
    for turn in 0..turns {
        if turn > 0 {
            user.push(parent.draw.one(&WORDS)?);
        }
        for _ in 0..parent.draw.below(3)? {
            match kind {
                "running" if parent.draw.chance(45)? => parent.start()?,
                "running" if parent.draw.chance(50)? => parent.speaker.looks_after(parent.draw)?,
                _ => parent.work()?,
            }
        }
        if kind == "children" && (turn == 0 || parent.draw.chance(50)?) {
            let name = format!("kid{turn}");
            script[&name] = child(parent.draw, work)?;
            parent.speaker.hands_out(&[name]);
            for _ in 0..parent.draw.below(3)? {
                parent.work()?;
            }
        }
        let last = parent
            .draw
            .one(&["that is all", "done with this", "Shall I go on?"])?;
        parent.speaker.says(last);
    }
    script["parent"] = parent.speaker.answers();
    let mut draft = Draft::made().flag(kind);
    if kind == "children" {
        // A model that is reminded of a check goes on with its next answer, beside its child.
        draft = draft.field(
            "settings",
            json!({"approvals.mode": "manual", "lsp.enabled": false, "agent.verify_on_stop": false}),
        );
    }
    Ok(draft.probe(
        "scripted_conversation",
        &json!({"script": script, "user": user}),
    ))
}

/// What a child does before it says what it came to.
fn child(draw: &mut Draw, kind: &'static str) -> anyhow::Result<Value> {
    let mut child = Drawn::new(draw, kind, true);
    for _ in 0..1 + child.draw.below(2)? {
        child.work()?;
    }
    child.speaker.says("looked after");
    Ok(child.speaker.answers())
}

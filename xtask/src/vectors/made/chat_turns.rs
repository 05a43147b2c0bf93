//! `chat-turns`: drawn conversations of several turns, with commands left running and children.
//!
//! What a turn ends and what the next one finds is each loop's own: what was read before,
//! what is counted as going round in circles, what runs on, what a child came to. Nothing
//! here races under Hermes: a command that ends is waited for before anything else is
//! called, one that goes on says nothing by itself, and a parent has nothing to do while
//! its child works.

use serde_json::{Value, json};

use super::chat_drawn::{self, Call, answered, steady};
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
    defaults["world"] = chat_drawn::world();
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

/// What a user says when a model has answered.
const WORDS: [&str; 6] = [
    "go on",
    "and the rest?",
    "thanks. Now look at the files once more, please.",
    "no, the other one",
    "",
    "why?\n\nBe brief \u{2014} \u{201c}one\u{201d} line.",
];

/// Commands that end by themselves, and write only what no other call looks at before.
const ENDING: [&str; 9] = [
    "echo hi",
    "cat a.txt; exit 3",
    "seq 1 300",
    "printf 'no end'",
    "echo out; echo err >&2",
    "echo left > left.txt; mkdir -p out; cp a.txt out/copy.txt",
    "nosuchprogram",
    "cd src && pwd",
    "printf '\\033[1mbold\\033[0m\\n'; pwd",
];

/// Commands that go on and say nothing.
const STAYING: [&str; 3] = ["sleep 300", "cat > /dev/null", "tail -f /dev/null"];

/// One agent's answers, as they are drawn.
struct Speaker<'a> {
    draw: &'a mut Draw,
    kind: &'static str,
    is_child: bool,
    answers: Vec<Value>,
    /// Results it was given so far.
    results: u64,
    /// Which of them started a command that ended and was waited for, or that goes on.
    ended: Vec<u64>,
    staying: Vec<u64>,
}

impl<'a> Speaker<'a> {
    const fn new(draw: &'a mut Draw, kind: &'static str, is_child: bool) -> Self {
        Self {
            draw,
            kind,
            is_child,
            answers: Vec::new(),
            results: 0,
            ended: Vec::new(),
            staying: Vec::new(),
        }
    }

    fn answer(&mut self, calls: &[Call]) {
        if calls.is_empty() {
            return;
        }
        self.results += calls.len() as u64;
        self.answers.push(answered(calls));
    }

    fn says(&mut self, words: &str) {
        self.answers.push(json!({ "text": words }));
    }

    /// An answer of ordinary calls.
    fn work(&mut self) -> anyhow::Result<()> {
        let mut calls = Vec::new();
        for _ in 0..1 + self.draw.below(3)? {
            let call = chat_drawn::call(self.draw, self.kind)?;
            // Under Hermes a child's command may move its parent and set its variables.
            let moves = |command: &str| command.contains("export") || command.contains("cd ");
            if !(self.is_child && call.1["command"].as_str().is_some_and(moves)) {
                calls.push(call);
            }
        }
        self.answer(&steady(calls));
        Ok(())
    }

    /// A command is left running; one that ends is waited for at once.
    fn start(&mut self) -> anyhow::Result<()> {
        let ends = self.draw.chance(60)?;
        let command = self.draw.one(if ends { &ENDING } else { &STAYING })?;
        let mut args = json!({"command": command, "background": true});
        if self.draw.chance(25)? {
            args["notify_on_complete"] = json!(true);
        }
        self.answer(&[("terminal", args)]);
        let started = self.results;
        if ends {
            self.answer(&[("process", of("wait", started))]);
            self.ended.push(started);
        } else {
            self.staying.push(started);
        }
        Ok(())
    }

    /// What runs, or ran, is looked at or ended.
    fn look(&mut self) -> anyhow::Result<()> {
        let mut calls = Vec::new();
        for _ in 0..1 + self.draw.below(2)? {
            let ended = self.draw.chance(50)?;
            let from = if ended { &self.ended } else { &self.staying };
            let Some(started) = from.get(self.draw.below(from.len())?).copied() else {
                calls.push(("process", json!({"action": "list"})));
                continue;
            };
            let action = self.draw.one(if ended {
                &["poll", "log", "wait", "kill", "write"]
            } else {
                &["poll", "log", "kill", "list"]
            })?;
            let mut args = of(action, started);
            if action == "write" {
                args["data"] = json!("x\n");
            }
            if action == "log" && self.draw.chance(40)? {
                args["limit"] = json!(self.draw.one(&[1, 2, 50])?);
            }
            if action == "kill" && !ended {
                self.staying.retain(|one| *one != started);
                self.ended.push(started);
            }
            calls.push(("process", args));
        }
        self.answer(&calls);
        Ok(())
    }
}

fn of(action: &str, started: u64) -> Value {
    json!({"action": action, "session_id": {"$from": started, "at": "/session_id"}})
}

fn case(draw: &mut Draw, kind: &'static str) -> anyhow::Result<Draft> {
    let work = draw.one(&["files", "commands", "all"])?;
    let turns = 2 + draw.below(3)?;
    let mut user = Vec::new();
    let mut script = json!({});
    let mut parent = Speaker::new(draw, work, false);
    for turn in 0..turns {
        if turn > 0 {
            user.push(parent.draw.one(&WORDS)?);
        }
        for _ in 0..parent.draw.below(3)? {
            match kind {
                "running" if parent.draw.chance(45)? => parent.start()?,
                "running" if parent.draw.chance(50)? => parent.look()?,
                _ => parent.work()?,
            }
        }
        if kind == "children" && (turn == 0 || parent.draw.chance(50)?) {
            let name = format!("kid{turn}");
            script[&name] = child(parent.draw, work)?;
            parent.answer(&[(
                "delegate_task",
                json!({"goal": format!("case conversation of {name}\nlook after the files")}),
            )]);
            parent.says("handed out");
            for _ in 0..parent.draw.below(3)? {
                parent.work()?;
            }
        }
        let last = parent
            .draw
            .one(&["that is all", "done with this", "Shall I go on?"])?;
        parent.says(last);
    }
    script["parent"] = json!(parent.answers);
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
    let mut speaker = Speaker::new(draw, kind, true);
    for _ in 0..1 + speaker.draw.below(2)? {
        speaker.work()?;
    }
    speaker.says("looked after");
    Ok(json!(speaker.answers))
}

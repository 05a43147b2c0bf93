//! What one agent's model answers, answer by answer.
//!
//! Nothing here races under Hermes: a command that ends is waited for before anything else
//! is called, and one that goes on says nothing by itself.

use serde_json::{Value, json};

use super::ordinary::Call;
use crate::generate::choices::Choices;

/// What a user says when a model has answered.
pub const WORDS: [&str; 6] = [
    "go on",
    "and the rest?",
    "thanks. Now look at the files once more, please.",
    "no, the other one",
    "",
    "why?\n\nBe brief \u{2014} \u{201c}one\u{201d} line.",
];

/// Commands that end by themselves, and write only what no other call looks at before.
pub const ENDING: [&str; 9] = [
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

/// Commands that go on and say nothing, whatever there is to read.
pub const STAYING: [&str; 3] = ["sleep 300", "sleep 300 > /dev/null", "tail -f /dev/null"];

/// A model's answers so far, and what came of its calls.
#[derive(Debug, Default)]
pub struct Speaker {
    answers: Vec<Value>,
    /// Results it was given so far.
    results: u64,
    /// Which of them started a command that ended and was waited for, or that goes on.
    ended: Vec<u64>,
    staying: Vec<u64>,
}

impl Speaker {
    /// One answer that makes these calls, if there are any.
    pub fn answer(&mut self, calls: &[Call]) {
        if calls.is_empty() {
            return;
        }
        self.results = self.results.saturating_add(calls.len() as u64);
        let calls: Vec<Value> = calls
            .iter()
            .map(|(tool, arguments)| json!({"name": tool, "arguments": arguments}))
            .collect();
        self.answers.push(json!({ "calls": calls }));
    }

    /// Words, which end its turn.
    pub fn says(&mut self, words: &str) {
        self.answers.push(json!({ "text": words }));
    }

    /// Work is handed to children of these names, and the turn ends.
    pub fn hands_out(&mut self, children: &[String]) {
        let goals: Vec<Value> = children
            .iter()
            .map(|name| json!({"goal": format!("case conversation of {name}\nlook after the files")}))
            .collect();
        let args = match goals.as_slice() {
            [only] => only.clone(),
            _ => json!({ "tasks": goals }),
        };
        self.answer(&[("delegate_task", args)]);
        self.says("handed out");
    }

    /// A command is left running; one that `ends` by itself is waited for at once.
    pub fn leaves_running(&mut self, command: &str, ends: bool, is_told: bool) {
        let mut args = json!({"command": command, "background": true});
        if is_told {
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
    }

    /// What runs, or ran, is looked at or ended.
    ///
    /// # Errors
    /// There is no next choice.
    pub fn looks_after<D: Choices>(&mut self, draw: &mut D) -> Result<(), D::Error> {
        let mut calls = Vec::new();
        for _ in 0..=draw.below(2)? {
            let ended = draw.chance(50)?;
            let from = if ended { &self.ended } else { &self.staying };
            let Some(started) = from.get(draw.below(from.len())?).copied() else {
                calls.push(("process", json!({"action": "list"})));
                continue;
            };
            let action = draw.one(if ended {
                &["poll", "log", "wait", "kill", "write"]
            } else {
                &["poll", "log", "kill", "list"]
            })?;
            let mut args = of(action, started);
            if action == "write" {
                args["data"] = json!("x\n");
            }
            if action == "log" && draw.chance(40)? {
                args["limit"] = json!(draw.one(&[1, 2, 50])?);
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

    /// All its answers, for the probe `scripted_conversation`.
    #[must_use]
    pub fn answers(self) -> Value {
        Value::Array(self.answers)
    }
}

fn of(action: &str, started: u64) -> Value {
    json!({"action": action, "session_id": {"$from": started, "at": "/session_id"}})
}

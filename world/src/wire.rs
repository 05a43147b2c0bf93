//! A client of the Agent Client Protocol, the same for both subjects.
//!
//! Each subject's own server for editors is started in the world; the client
//! here speaks to it over its standard streams, line by line, and a scripted
//! model on the world's loopback makes the calls a step names. What came over
//! the wire is all that is told. This module must never look at a subject in
//! any other way, and must never know which one it is.
//!
//! A step is the probe [`PROBE`]. Its input is one of
//!
//! * `{"calls": [[tool, arguments], …], "answers": […], "meanwhile": "…"}`: a
//!   prompt, in whose turn the model makes these calls one after the other.
//!   Each question is answered by the next word of `answers` (`deny` when they
//!   run out), which may come after the client cancelled, closed or loaded the session anew; before the first answer the shell runs `meanwhile` in the
//!   workspace, as the user would, who works on while the question is open. With
//!   `"compare": "end"` the step is about how the turn ends, not what it does;
//! * `{"mode": n}`: the n-th of the modes the server offered, the strictest
//!   being the first, is chosen;
//! * `{"lines": […]}`: these lines are sent; a text as it is, anything else as
//!   JSON, with `$SESSION` standing for the session's id.

mod client;
mod model;
mod shown;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::StepSink;
use crate::error::{AtStage, WorldError};
use crate::protocol::{QuestionTrace, Step, StepOutcome, StepTrace};
use client::{Came, Client};
use model::Model;

/// The probe's name.
pub const PROBE: &str = "acp";
/// Where a subject finds the model.
pub const MODEL_URL: &str = "http://127.0.0.1:8642/v1";

/// How long a child that was delegated to may go on after its parent's turn.
const CHILDREN_WITHIN: Duration = Duration::from_secs(120);
/// What a question is answered with when the step's words have run out.
const NO: &str = "deny";

/// A conversation with a server.
pub struct Conversation {
    client: Client,
    model: Model,
    session: String,
    modes: Vec<String>,
    cwd: String,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Conversation {
    /// Greets a server and opens a session in `cwd`. The server must not have
    /// asked for its model before.
    ///
    /// # Errors
    /// The server does not open a session.
    pub fn begin(
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
        cwd: &str,
    ) -> Result<Self, WorldError> {
        let stage = "open a session over the wire";
        let model = Model::start().at("start the scripted model")?;
        let mut client = Client::over(input, output);
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        client.request("initialize", hello);
        client.answer(|_, _| None);
        client.request("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let opened = client.answer(|_, _| None);
        let session = match &opened {
            Came::Result(result) => result.get("sessionId").and_then(Value::as_str),
            Came::Error(_) | Came::Gone | Came::Nothing => None,
        };
        let session = session
            .ok_or_else(|| WorldError::new(stage, format!("{opened:?}")))?
            .to_owned();
        let modes = match &opened {
            Came::Result(result) => result.pointer("/modes/availableModes"),
            Came::Error(_) | Came::Gone | Came::Nothing => None,
        };
        let modes = modes
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|mode| Some(mode.get("id")?.as_str()?.to_owned()))
            .collect();
        Ok(Self {
            client,
            model,
            session,
            modes,
            cwd: cwd.to_owned(),
        })
    }

    /// Plays a case's script.
    ///
    /// # Errors
    /// What was seen cannot be passed on.
    pub fn play(&mut self, script: &[Step], steps: &mut StepSink) -> Result<(), WorldError> {
        for step in script {
            steps.begin()?;
            let step = steps.filled(step);
            steps.end(match &step {
                Step::Probe { name, input } if name == PROBE => self.step(input),
                Step::Probe { .. }
                | Step::Call { .. }
                | Step::Grant(_)
                | Step::Revoke { .. }
                | Step::Advance { .. }
                | Step::EndSession {}
                | Step::Restart(_)
                | Step::Spawn { .. } => StepTrace::of(StepOutcome::Unsupported(
                    "no-such-step-of-a-wire".to_owned(),
                )),
            })?;
        }
        Ok(())
    }

    /// Does one step.
    fn step(&mut self, input: &Value) -> StepTrace {
        if let Some(calls) = input.get("calls") {
            return self.prompt(calls, input);
        }
        if let Some(lines) = input.get("lines").and_then(Value::as_array) {
            return self.lines(lines);
        }
        let mode = input.get("mode").and_then(Value::as_u64);
        let mode = mode.and_then(|mode| self.modes.get(usize::try_from(mode).ok()?));
        match mode.cloned() {
            Some(mode) => self.choose(&mode),
            None => StepTrace::of(StepOutcome::Raised(
                "bad probe input: no `calls`, no `lines` and no `mode` there is".to_owned(),
            )),
        }
    }

    fn choose(&mut self, mode: &str) -> StepTrace {
        let params = json!({"sessionId": self.session, "modeId": mode});
        self.client.request("session/set_mode", params);
        let came = self.client.answer(|_, _| None).in_a_word();
        StepTrace {
            answer: json!({"decision": "none", "value": came}),
            ..StepTrace::of(StepOutcome::Ran)
        }
    }

    fn prompt(&mut self, calls: &Value, input: &Value) -> StepTrace {
        let words = |name: &str| -> VecDeque<String> {
            let words = input.get(name).and_then(Value::as_array);
            words
                .into_iter()
                .flatten()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect()
        };
        let mut answers = words("answers");
        let mut meanwhile = input.get("meanwhile").and_then(Value::as_str);
        let children = model::lists_within(calls);
        for list in children.iter().chain([calls]) {
            self.model.forget(list);
        }
        let text = format!("{}{calls}", model::MARK);
        self.client.request(
            "session/prompt",
            json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}),
        );
        let mut questions = Vec::new();
        let mut asked = Vec::new();
        let (session, cwd) = (self.session.clone(), self.cwd.clone());
        let came = self.client.answer(|client, question| {
            if let Some(command) = meanwhile.take() {
                questions.push(QuestionTrace {
                    shown: format!("the user's own doing: {command}"),
                    answer: "yes".to_owned(),
                    meanwhile: Vec::new(),
                });
                if let Err(why) = by_hand(command, &cwd) {
                    return Some(why);
                }
            }
            let word = answers.pop_front().unwrap_or_else(|| NO.to_owned());
            questions.push(QuestionTrace {
                shown: shown::in_words(question),
                answer: shown::said(&word).to_owned(),
                meanwhile: Vec::new(),
            });
            asked.push(shown::files(question));
            shown::answered(client, question, &word, (&session, &cwd));
            None
        });
        let stop = match came {
            Came::Result(result) => result
                .get("stopReason")
                .and_then(Value::as_str)
                .unwrap_or("no reason")
                .to_owned(),
            Came::Error(code) => format!("error {code}"),
            Came::Gone => "the server is gone".to_owned(),
            Came::Nothing => return StepTrace::of(StepOutcome::Raised("no answer".to_owned())),
        };
        self.wait_for(&children);
        // What came of work that was handed out is what came of the step.
        let told = self.model.told(children.last().unwrap_or(calls));
        let has_landed = told.as_deref().is_some_and(shown::is_done);
        let is_about_its_end = input.get("compare").and_then(Value::as_str) == Some("end");
        let decision = match (has_landed, asked.is_empty()) {
            _ if is_about_its_end => "none",
            (true, _) => "permit",
            (false, false) => "ask",
            (false, true) => "deny",
        };
        StepTrace {
            text: told.unwrap_or_default(),
            answer: json!({"decision": decision, "value": {"stop": stop, "asked": asked}}),
            questions,
            ..StepTrace::of(StepOutcome::Ran)
        }
    }

    /// What a child does is part of the step in which it was delegated to.
    fn wait_for(&self, children: &[Value]) {
        let until = Instant::now() + CHILDREN_WITHIN;
        for child in children {
            while !self.model.has_finished(child) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn lines(&mut self, lines: &[Value]) -> StepTrace {
        let mut answers = Vec::new();
        for line in lines {
            let (bytes, id) = match line {
                Value::String(text) => (text.clone(), None),
                other => (
                    other.to_string().replace("$SESSION", &self.session),
                    other.get("id").cloned(),
                ),
            };
            self.client.line(&bytes);
            if let Some(id) = id {
                answers.push(self.client.answer_to(&id).in_a_word());
            }
        }
        // Whoever answers this is there.
        self.client.request("session/list", json!({}));
        let is_there = !matches!(self.client.answer(|_, _| None), Came::Gone | Came::Nothing);
        StepTrace {
            answer: json!({
                "decision": "none",
                "value": {"answers": answers, "is_there": is_there},
            }),
            ..StepTrace::of(StepOutcome::Ran)
        }
    }
}

/// What the user does beside the conversation.
fn by_hand(command: &str, cwd: &str) -> Result<(), String> {
    let done = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(cwd)
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the user's own `{command}` ended with {status}")),
        Err(error) => Err(format!("the user's own `{command}`: {error}")),
    }
}
